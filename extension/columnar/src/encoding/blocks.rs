//! The blocks of a vector one after the other.

use super::block::{Block, BlockLayout};
use super::bytes::ByteReader;
use crate::error::Result;

/// The blocks of a vector.
#[derive(Clone, Copy)]
pub(super) struct Blocks<'a> {
    /// The bytes after the blocks read so far.
    pub(super) reader: ByteReader<'a>,
    rows_left: usize,
    pub(super) layout: BlockLayout,
}

impl<'a> Blocks<'a> {
    pub(super) fn new(reader: ByteReader<'a>, rows: usize, layout: BlockLayout) -> Self {
        Blocks {
            reader,
            rows_left: rows,
            layout,
        }
    }
}

impl<'a> Iterator for Blocks<'a> {
    type Item = Result<Block<'a>>;

    fn next(&mut self) -> Option<Result<Block<'a>>> {
        if self.rows_left == 0 {
            return None;
        }
        let block = Block::parse(&mut self.reader, self.rows_left, self.layout);
        match &block {
            Ok(block) => self.rows_left -= block.rows,
            Err(_) => self.rows_left = 0,
        }
        Some(block)
    }
}
