//! The blocks of a vector one after the other, and the items whose lengths blocks hold.

use super::block::{Block, Shape};
use super::bytes::{Reader, malformed};
use crate::error::Result;
use crate::limits::VECTOR_ROWS;

/// The blocks of a vector.
#[derive(Clone, Copy)]
pub(super) struct Blocks<'a> {
    /// What follows the blocks read so far.
    pub(super) reader: Reader<'a>,
    rows_left: usize,
    pub(super) shape: Shape,
}

impl<'a> Blocks<'a> {
    pub(super) fn new(reader: Reader<'a>, rows: usize, shape: Shape) -> Self {
        Blocks {
            reader,
            rows_left: rows,
            shape,
        }
    }
}

impl<'a> Iterator for Blocks<'a> {
    type Item = Result<Block<'a>>;

    fn next(&mut self) -> Option<Result<Block<'a>>> {
        if self.rows_left == 0 {
            return None;
        }
        let block = Block::parse(&mut self.reader, self.rows_left, self.shape);
        match &block {
            Ok(block) => self.rows_left -= block.rows,
            Err(_) => self.rows_left = 0,
        }
        Some(block)
    }
}

/// Reads lengths and bytes of `count` items, which fill the section.
pub(super) fn each_item<'a>(
    reader: &mut Reader<'a>,
    count: usize,
    mut visit: impl FnMut(&'a [u8]),
) -> Result<()> {
    let block_bytes = reader.count()?;
    let mut lengths_of = reader.part(block_bytes)?;
    let mut lengths = [0; VECTOR_ROWS];
    let mut left = count;
    while left > 0 {
        let rows = left.min(VECTOR_ROWS);
        let mut blocks = Blocks::new(lengths_of, rows, Shape::NUMBERS);
        let mut at = 0;
        for block in blocks.by_ref() {
            let block = block?;
            block.verify(0)?;
            block.decode(&mut lengths[at..at + block.rows], 0);
            at += block.rows;
        }
        lengths_of = blocks.reader;
        for &length in &lengths[..rows] {
            let Ok(length) = usize::try_from(length) else {
                return malformed("an item is too long");
            };
            visit(reader.bytes(length)?);
        }
        left -= rows;
    }
    lengths_of.end()?;
    reader.end()
}
