//! The blocks of a vector one after the other.

use super::block::{Block, Shape};
use super::bytes::Reader;
use crate::error::Result;

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
