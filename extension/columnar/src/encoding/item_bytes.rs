//! Items as a section holds them: blocks of lengths, then the bytes of all, compressed if that
//! saves a good part.

use super::block::BlockLayout;
use super::block_write::BlockWriter;
use super::blocks::Blocks;
use super::bytes::{ByteReader, malformed, write_varint};
use super::format::{AS_THEY_ARE, COMPRESSED};
use crate::error::Result;
use crate::limits::{IMAGE_BYTES_MAX, VECTOR_ROWS};

/// Fewer bytes are not worth compressing.
const COMPRESSED_BYTES_MIN: usize = 64;

/// No LZ4 block holds more bytes for each of its own.
const EXPANSION_MAX: usize = 255;

/// Appends lengths and marked bytes.
pub(super) fn write_items<'i>(items: impl Iterator<Item = &'i [u8]>, out: &mut Vec<u8>) {
    let (mut lengths, mut bytes) = (Vec::new(), Vec::new());
    for item in items {
        lengths.push(item.len() as u64);
        bytes.extend_from_slice(item);
    }
    let (mut writer, mut blocks) = (BlockWriter::new(0), Vec::new());
    for lengths in lengths.chunks(VECTOR_ROWS) {
        writer.write(lengths, true, &mut blocks);
    }
    write_varint(blocks.len() as u64, out);
    out.append(&mut blocks);
    if bytes.len() >= COMPRESSED_BYTES_MIN {
        let compressed = lz4_flex::block::compress(&bytes);
        if compressed.len() < bytes.len() - bytes.len() / 8 {
            out.push(COMPRESSED);
            write_varint(bytes.len() as u64, out);
            out.extend_from_slice(&compressed);
            return;
        }
    }
    out.push(AS_THEY_ARE);
    out.extend_from_slice(&bytes);
}

/// Reads `count` items, which fill the section. Compressed bytes are decompressed into `room`.
pub(super) fn each_item<'r, 'a: 'r>(
    reader: &mut ByteReader<'a>,
    count: usize,
    is_marked: bool,
    room: &'r mut Vec<u8>,
    mut visit: impl FnMut(&'r [u8]),
) -> Result<()> {
    let block_bytes = reader.count()?;
    let mut lengths_of = reader.part(block_bytes)?;
    let mut bytes = unpack(reader, is_marked, room)?;
    let mut lengths = [0; VECTOR_ROWS];
    let mut left = count;
    while left > 0 {
        let rows = left.min(VECTOR_ROWS);
        lengths_of = read_lengths(lengths_of, &mut lengths[..rows])?;
        for &length in &lengths[..rows] {
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let Some((item, rest)) = bytes.split_at_checked(length) else {
                return malformed("its items have fewer bytes than they should");
            };
            visit(item);
            bytes = rest;
        }
        left -= rows;
    }
    if !bytes.is_empty() {
        return malformed("its items have more bytes than they should");
    }
    lengths_of.end()
}

/// Reads as many items as there are `lengths`, at most a vector, which fill the section: their lengths, and the bytes
/// of all, one item after the other. Compressed bytes are decompressed into `room`.
pub(super) fn items_together<'r, 'a: 'r>(
    reader: &mut ByteReader<'a>,
    is_marked: bool,
    room: &'r mut Vec<u8>,
    lengths: &mut [u64],
) -> Result<&'r [u8]> {
    let block_bytes = reader.count()?;
    let lengths_of = reader.part(block_bytes)?;
    let bytes = unpack(reader, is_marked, room)?;
    let rest = read_lengths(lengths_of, lengths)?;
    let all = lengths
        .iter()
        .fold(0, |all: u64, length| all.saturating_add(*length));
    if all != bytes.len() as u64 {
        return malformed("its items have not as many bytes as they should");
    }
    rest.end()?;
    Ok(bytes)
}

/// Reads lengths of at most a vector of items, and returns what follows them.
fn read_lengths<'a>(lengths_of: ByteReader<'a>, lengths: &mut [u64]) -> Result<ByteReader<'a>> {
    let mut blocks = Blocks::new(lengths_of, lengths.len(), BlockLayout::NUMBERS);
    let mut at = 0;
    for block in blocks.by_ref() {
        let block = block?;
        block.verify(0)?;
        block.decode(&mut lengths[at..at + block.rows], 0);
        at += block.rows;
    }
    Ok(blocks.reader)
}

/// Whether the bytes of the section's items are compressed.
pub(super) fn is_compressed(mut reader: ByteReader<'_>) -> Result<bool> {
    let block_bytes = reader.count()?;
    reader.bytes(block_bytes)?;
    Ok(reader.byte()? == COMPRESSED)
}

/// The bytes of all items, which are all that is left of the section.
fn unpack<'r, 'a: 'r>(
    reader: &mut ByteReader<'a>,
    is_marked: bool,
    room: &'r mut Vec<u8>,
) -> Result<&'r [u8]> {
    let mark = if is_marked {
        reader.byte()?
    } else {
        AS_THEY_ARE
    };
    match mark {
        AS_THEY_ARE => reader.bytes(reader.remaining()),
        COMPRESSED => {
            let count = reader.count()?;
            let compressed = reader.bytes(reader.remaining())?;
            if count
                > compressed
                    .len()
                    .saturating_mul(EXPANSION_MAX)
                    .min(IMAGE_BYTES_MAX)
            {
                return malformed("its items cannot be as many bytes");
            }
            room.clear();
            room.resize(count, 0);
            match lz4_flex::block::decompress_into(compressed, room) {
                Ok(found) if found == count => Ok(room),
                _ => malformed("the bytes of its items cannot be decompressed"),
            }
        }
        _ => malformed("the mark of its items' bytes is not known"),
    }
}
