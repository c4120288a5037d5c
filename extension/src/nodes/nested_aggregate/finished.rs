//! The input of a nested aggregation: finished groups, or rows with window functions.

use std::ops::Range;

use lanes_columnar::aggregate::Numbers;
use lanes_columnar::vector::number::Scalar;
use pgrx::pg_sys;

use crate::nodes::engine::results::Groups;

/// Groups or rows, each with keys and results.
pub trait Finished {
    /// How many there are.
    fn count(&self) -> usize;

    /// Writes the numbers of their values of a key, after [`Self::key_datums`] has returned these.
    fn key_numbers(&self, key: usize, rows: Range<usize>, out: &mut [u32]);

    /// All values of a key, by their numbers. They live until the node starts again, or the rows are replaced.
    fn key_datums(&mut self, key: usize) -> Vec<Option<pg_sys::Datum>>;

    /// Writes results, which are numbers of 64 bits; false if they have to be read [one by one](Self::result).
    fn numbers(&self, result: usize, rows: Range<usize>, out: &mut Numbers<'_>) -> bool;

    /// A result, if it is a number or a bool.
    fn result(&self, row: usize, result: usize) -> Option<Scalar>;

    /// Whether there are more than those in memory.
    fn has_more(&self) -> bool {
        false
    }

    /// Replaces those in memory by the next ones; false if there are none.
    fn replace(&mut self) -> bool {
        false
    }
}

impl Finished for Groups {
    fn count(&self) -> usize {
        Groups::count(self)
    }

    fn key_numbers(&self, key: usize, rows: Range<usize>, out: &mut [u32]) {
        Groups::key_numbers(self, key, rows, out);
    }

    fn key_datums(&mut self, key: usize) -> Vec<Option<pg_sys::Datum>> {
        Groups::key_datums(self, key)
    }

    fn numbers(&self, result: usize, rows: Range<usize>, out: &mut Numbers<'_>) -> bool {
        Groups::numbers(self, result, rows, out)
    }

    fn result(&self, row: usize, result: usize) -> Option<Scalar> {
        Groups::result(self, row, result)
    }

    fn has_more(&self) -> bool {
        Groups::has_more(self)
    }

    fn replace(&mut self) -> bool {
        Groups::replace(self)
    }
}
