//! The label index: the series of each value of each label.
//!
//! The index consists of *runs*. A run covers the series of a range of ids. It never changes;
//! several runs are merged into a new one. A run is a directory and blocks:
//!
//! ```text
//! directory   for each label name, in the order of bytes: the number of series that have it, the number of its values,
//!             the number of values that no earlier run has, and for each of its blocks the first value and the number
//!             of series with the commonest value
//! block       values of one name, in the order of bytes, each with the ids of the series that have it (postings)
//! ```
//! Each name begins with a block whose first value is empty: its ids are those of all series with
//! the label. The empty name has the ids of all series of the run.
//!
//! | module | one thing |
//! |---|---|
//! | [`build`] | label sets to a run |
//! | [`mod@merge`] | several runs to one |
//! | [`mod@select`] | the ids that a selector selects |
//! | [`top`] | the values of the most series |
//! | [`directory`] | the directory of a run |
//! | [`block`] | a block: values and their postings |
//! | [`postings`] | ids as bytes |
//! | [`cursor`] | numbers and texts in bytes |
//!
//! Several runs may have equal values. Merging keeps the counts of new values right as long as no
//! earlier run is removed: the sum over all runs is the number of a label's values.
//!
//! Invariants: the ids of a run are in its range; runs that are used together have disjoint ranges.
//! The owner of the runs decides which runs are used, and so what a reader may see.
//!
//! Failures: damaged bytes are reported as [`Malformed`](crate::Malformed), whatever they contain.
//! Nothing is read beyond them.

pub mod block;
pub mod build;
pub mod cursor;
pub mod directory;
pub mod merge;
pub mod postings;
pub mod select;
#[cfg(test)]
mod tests;
pub mod top;

pub use build::Builder;
pub use directory::{Directory, VERSION};
pub use merge::merge;
pub use select::{each_term, passing, presence, select};

/// Reads blocks of a run.
pub trait Blocks {
    /// The error of reading a block.
    type Error: From<crate::Malformed>;

    /// Calls `take` with the bytes of each of these blocks, which are in ascending order.
    ///
    /// # Errors
    /// If a block cannot be read, or `take` fails.
    fn read(
        &mut self,
        blocks: &[usize],
        take: &mut dyn FnMut(&[u8]) -> Result<(), crate::Malformed>,
    ) -> Result<(), Self::Error>;
}

/// The blocks of a run that is not stored.
impl Blocks for Vec<Vec<u8>> {
    type Error = crate::Malformed;

    fn read(
        &mut self,
        blocks: &[usize],
        take: &mut dyn FnMut(&[u8]) -> Result<(), crate::Malformed>,
    ) -> Result<(), crate::Malformed> {
        blocks.iter().try_for_each(|block| {
            let block = self.get(*block);
            take(block.ok_or(crate::Malformed("a block is missing"))?)
        })
    }
}
