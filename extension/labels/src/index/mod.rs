//! The label index: which series have which value of which label.
//!
//! It consists of *runs*. A run covers the series of a range of ids. It never changes; several runs are merged into a
//! new one. A run is a directory and blocks:
//!
//! ```text
//! directory   for each label name, in the order of bytes: how many series have it, how many values it has, how many of
//!             these no earlier run has; with which value each of its blocks begins, and how many series have the
//!             commonest of its values
//! block       values of one name, in the order of bytes, each with the ids of the series that have it (postings)
//! ```
//! Each name begins with a block whose first value is empty: its ids are those of the series that have the label at
//! all. The empty name has the ids of all series of the run.
//!
//! | module | one thing |
//! |---|---|
//! | [`build`] | label sets to a run |
//! | [`merge`] | several runs to one |
//! | [`select`] | the ids that a selector selects |
//! | [`top`] | the values that most series have |
//! | [`directory`] | the directory of a run |
//! | [`block`] | a block: values and their postings |
//! | [`postings`] | ids as bytes |
//! | [`cursor`] | numbers and texts in bytes |
//!
//! The values of several runs may be equal. What each run counts as new is so for all that is made of it by merging, as
//! long as no run before it goes: so the sum over all runs is how many values a label has.
//!
//! Invariants: ids of a run lie in its range; runs that are used together have ranges that do not overlap. Who keeps
//! the runs decides which of them are used, so what a reader may see is decided there.
//!
//! Failures: bytes that are damaged give [`Malformed`](crate::Malformed), whatever they hold; nothing is read beyond
//! them.

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
    /// What can go wrong.
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
