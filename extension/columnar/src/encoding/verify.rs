//! Verifying a lane, once, when it is opened.

use super::block::{Block, Form};
use super::blocks::Blocks;
use super::bytes::malformed;
use super::format::{ALL_FALSE, ALL_TRUE, BITMAP, Class, ONE_VALUE, SLACK_BYTES, VALUES};
use super::item_bytes::each_item;
use super::lane::{EncodedLane, WORDS};
use super::vector::DecodedVector;
use crate::bits;
use crate::error::{Error, Result};
use crate::kind::LaneKind;
use crate::limits::VECTOR_ROWS;

/// The kind of a lane whose column is not known: items are checked only as items.
const ITEMS: LaneKind = LaneKind::Varlena {
    dictionary: true,
    packed: false,
};

impl<'a> EncodedLane<'a> {
    /// Verifies a lane of any kind, within an image whose checksum was verified, like
    /// [`open`](Self::open). It calls `is_item` with each item, because only the column knows what
    /// its items must be.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open); also if `is_item` returns false.
    pub fn verify_items(bytes: &'a [u8], is_item: impl FnMut(&[u8]) -> bool) -> Result<Self> {
        let lane = match EncodedLane::reopen(bytes, ITEMS) {
            Err(Error::KindDiffers { .. }) => EncodedLane::reopen(bytes, LaneKind::Absent)?,
            opened => opened?,
        };
        lane.verify()?;
        lane.check_items(is_item)?;
        Ok(lane)
    }

    fn check_items(&self, mut is_item: impl FnMut(&[u8]) -> bool) -> Result<()> {
        let (is_marked, mut room) = (self.header.is_marked, Vec::new());
        let mut are_sound = true;
        match self.header.class {
            Class::Dictionary => {
                let mut reader = self.section(self.header.sections() - 1)?;
                let count = self.header.items as usize;
                let check = |item: &[u8]| are_sound &= is_item(item);
                each_item(&mut reader, count, is_marked, &mut room, check)?;
            }
            Class::Items => {
                for vector in 0..self.vectors() {
                    let mut validity = [0; WORDS];
                    let (mut reader, some_nulls) = self.vector_body(vector, &mut validity)?;
                    let Some(some_nulls) = some_nulls else {
                        continue;
                    };
                    let (rows, mut row) = (self.vector_rows(vector), 0);
                    let check = |item: &[u8]| {
                        // The value of a NULL row is never read.
                        let is_null = some_nulls && !bits::get(&validity, row);
                        are_sound &= is_null || is_item(item);
                        row += 1;
                    };
                    each_item(&mut reader, rows, is_marked, &mut room, check)?;
                }
            }
            _ => {}
        }
        match are_sound {
            true => Ok(()),
            false => malformed("an item is none of its column's"),
        }
    }

    /// Checks all that reading relies on but the checksum and the head.
    pub(super) fn verify(&self) -> Result<()> {
        let (_, slack) = self.bytes.split_at(self.bytes.len() - SLACK_BYTES);
        if slack.iter().any(|&byte| byte != 0) {
            return malformed("it does not end in zeros");
        }
        let has_blocks = matches!(
            self.header.class,
            Class::Integers | Class::Floats | Class::Dictionary
        );
        if !has_blocks && self.header.patterns > 0
            || self.header.class != Class::Dictionary && self.header.items > 0
        {
            return malformed("patterns or items of a class that has none");
        }
        let mut end = self.header.payload_at();
        for index in 0..self.header.sections() {
            let section = self.section(index)?;
            end += section.remaining();
        }
        if end + SLACK_BYTES != self.bytes.len() {
            return malformed("bytes after its last section");
        }
        if self.header.class == Class::Null {
            return Ok(());
        }
        for index in 0..self.header.patterns as usize {
            self.verify_pattern(index)?;
        }
        if self.header.class == Class::Dictionary {
            let mut reader = self.section(self.header.sections() - 1)?;
            let count = self.header.items as usize;
            let mut room = Vec::new();
            each_item(&mut reader, count, self.header.is_marked, &mut room, |_| ())?;
        }
        let mut decoded = DecodedVector::new();
        for vector in 0..self.vectors() {
            self.verify_vector(vector, &mut decoded)?;
        }
        Ok(())
    }

    fn verify_pattern(&self, index: usize) -> Result<()> {
        let mut reader = self.section(index)?;
        let block = Block::parse(&mut reader, VECTOR_ROWS, self.block_layout().in_pattern())?;
        block.verify(self.block_layout().float_width)?;
        reader.end()
    }

    fn verify_vector(&self, vector: usize, decoded: &mut DecodedVector) -> Result<()> {
        let rows = self.vector_rows(vector);
        let mut validity = [0; WORDS];
        let (mut reader, some_nulls) = self.vector_body(vector, &mut validity)?;
        if some_nulls.is_none() {
            return reader.end();
        }
        match self.header.class {
            Class::Null => {}
            Class::Bools => match reader.byte()? {
                ALL_FALSE | ALL_TRUE => {}
                BITMAP => reader.bitmap(rows, &mut validity)?,
                _ => return malformed("the form of its bools is not known"),
            },
            Class::Bytes => {
                let width = usize::from(self.header.width);
                match reader.byte()? {
                    ONE_VALUE => reader.bytes(width)?,
                    VALUES => reader.bytes(rows * width)?,
                    _ => return malformed("the form of its values is not known"),
                };
            }
            Class::Integers | Class::Floats | Class::Dictionary => {
                let mut blocks = Blocks::new(reader, rows, self.block_layout());
                for block in blocks.by_ref() {
                    let block = block?;
                    block.verify(self.block_layout().float_width)?;
                    if let Form::Pattern { index, first } = block.form
                        && first + block.rows > self.pattern(index)?.rows
                    {
                        return malformed("a block is outside its pattern");
                    }
                }
                reader = blocks.reader;
                if self.header.class == Class::Dictionary {
                    self.decode_vector(vector, decoded);
                    let items = self.header.items;
                    if decoded.codes().iter().any(|&code| code >= items) {
                        return malformed("a code is outside the dictionary");
                    }
                }
            }
            Class::Items => {
                let (_, room) = decoded.items();
                each_item(&mut reader, rows, self.header.is_marked, room, |_| ())?;
            }
        }
        reader.end()
    }
}
