//! A block: values of one label, each with its postings; compressed where that makes it smaller.

use std::borrow::Cow;

use super::cursor::{Cursor, Text, write_after, write_number};
use super::postings::Postings;
use crate::Malformed;

/// Bytes after which a block is full: a look for one value reads one block, and smaller ones
/// compress less.
const BLOCK_BYTES: usize = 16 << 10;

const PLAIN: u8 = 0;
const LZ4: u8 = 1;
/// The greatest ratio of a block's length to its compressed length, a property of LZ4.
const LZ4_RATIO_MAX: usize = 255;

/// A block as it is written.
#[derive(Default)]
pub struct BlockWriter {
    bytes: Vec<u8>,
    room: Vec<u8>,
    last: String,
    most: u64,
}

impl BlockWriter {
    /// Whether nothing has been written.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether another value should go into the next block.
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= BLOCK_BYTES
    }

    /// Appends a value that comes after all others.
    pub fn push(&mut self, value: &str, postings: &Postings) {
        write_after(&self.last, value, &mut self.bytes);
        value.clone_into(&mut self.last);
        self.room.clear();
        postings.write(&mut self.room);
        let series = postings.count();
        if !value.is_empty() {
            self.most = self.most.max(series);
        }
        write_number(series, &mut self.bytes);
        write_number(self.room.len() as u64, &mut self.bytes);
        self.bytes.extend_from_slice(&self.room);
    }

    /// The block, and the number of series with its commonest value. The next block begins empty.
    pub fn finish(&mut self) -> (Vec<u8>, u64) {
        self.last.clear();
        let most = std::mem::take(&mut self.most);
        let bytes = std::mem::take(&mut self.bytes);
        let mut block = vec![LZ4];
        write_number(bytes.len() as u64, &mut block);
        block.extend_from_slice(&lz4_flex::block::compress(&bytes));
        if block.len() > bytes.len() {
            block.clear();
            block.push(PLAIN);
            block.extend_from_slice(&bytes);
        }
        (block, most)
    }
}

/// The bytes of a block before they were compressed.
fn decompress(block: &[u8]) -> Result<Cow<'_, [u8]>, Malformed> {
    let mut cursor = Cursor(block);
    match cursor.bytes(1)? {
        [PLAIN] => Ok(Cow::Borrowed(cursor.0)),
        [LZ4] => {
            let length = cursor.small()? as usize;
            if length / LZ4_RATIO_MAX > cursor.0.len() {
                return Err(Malformed("a block cannot be as long as it says"));
            }
            match lz4_flex::block::decompress(cursor.0, length) {
                Ok(bytes) if bytes.len() == length => Ok(Cow::Owned(bytes)),
                _ => Err(Malformed("a block cannot be decompressed")),
            }
        }
        _ => Err(Malformed("a block is of an unknown form")),
    }
}

/// A value of a block.
pub struct Term<'b> {
    /// The value.
    pub value: &'b str,
    /// The number of series with this value.
    pub series: u64,
    /// Their ids, as [`Postings`] writes them.
    pub postings: &'b [u8],
}

/// Calls `visit` with each value of a block until it returns false.
///
/// # Errors
/// If the bytes are not a block, or `visit` fails.
pub fn each_term(
    block: &[u8],
    mut visit: impl FnMut(Term) -> Result<bool, Malformed>,
) -> Result<(), Malformed> {
    let block = decompress(block)?;
    let (mut cursor, mut text) = (Cursor(&block), Text::default());
    while !cursor.0.is_empty() {
        cursor.text_after(&mut text)?;
        let series = cursor.number()?;
        let length = cursor.count()?;
        let term = Term {
            value: text.as_str()?,
            series,
            postings: cursor.bytes(length)?,
        };
        if !visit(term)? {
            break;
        }
    }
    Ok(())
}
