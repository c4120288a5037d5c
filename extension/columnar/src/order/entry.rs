//! A row in an order.

use super::rank::{Order, Rank};
use crate::vector::Evaluation;
use crate::vector::frame::Frame;
use crate::vector::number::{Number, NumberType};
use crate::vector::selection::Selection;
use crate::vector::value::{Operand, Value};
use crate::with_number;

/// Keys of one order at most.
pub const KEYS_MAX: usize = 4;

/// A key of an order.
pub struct SortKey {
    /// A number a row.
    pub value: Value,
    /// In which direction.
    pub order: Order,
}

/// A row with the ranks of its keys; the ranks past the last key are all equal. The row that comes
/// first is the least.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Entry {
    pub(super) ranks: [Rank; KEYS_MAX],
    /// The row's number; if tied rows follow in descending order, its complement.
    place: u64,
}

/// The keys of an order.
pub(super) struct Keys {
    keys: Vec<SortKey>,
    operands: Vec<Operand>,
    validities: Vec<Selection>,
}

impl Keys {
    /// Between one and [`KEYS_MAX`] keys; more are of no effect.
    pub(super) fn new(mut keys: Vec<SortKey>) -> Keys {
        keys.truncate(KEYS_MAX);
        Keys {
            operands: Vec::with_capacity(keys.len()),
            validities: Vec::with_capacity(keys.len()),
            keys,
        }
    }

    pub(super) fn first(&mut self) -> Option<&mut SortKey> {
        self.keys.first_mut()
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether tied rows follow in descending order.
    pub(super) fn reversed(&self) -> bool {
        self.keys.first().is_some_and(|key| key.order.descending)
    }

    /// Computes the keys of the selected rows, for [`Keys::entry`].
    pub(super) fn evaluate(&mut self, frame: &Frame<'_>, selection: &Selection) -> Evaluation<()> {
        self.operands.clear();
        self.validities.clear();
        for key in &mut self.keys {
            let operand = key.value.evaluate(frame, selection)?;
            self.operands.push(operand);
            self.validities.push(operand.valid(selection));
        }
        Ok(())
    }

    /// The rank of a row's first key.
    #[inline]
    pub(super) fn first_rank(&self, row: usize) -> Rank {
        if self.keys.is_empty() {
            return Rank::default();
        }
        self.rank(0, row)
    }

    /// The type of the first key.
    pub(super) fn first_number(&self) -> Option<NumberType> {
        self.keys.first().map(|key| key.value.number())
    }

    /// The rank of the first key like [`Keys::first_rank`], where its type is known.
    #[inline]
    pub(super) fn first_rank_as<T: Number>(&self, row: usize) -> Rank {
        let key = &self.keys[0];
        if !self.validities[0].contains(row) {
            return key.order.null();
        }
        // SAFETY: the operand was computed for the vector of `evaluate`, and this is one of its
        // rows.
        key.order
            .rank::<T>(unsafe { self.operands[0].get::<T>(row) })
    }

    #[inline]
    fn rank(&self, index: usize, row: usize) -> Rank {
        let key = &self.keys[index];
        if !self.validities[index].contains(row) {
            return key.order.null();
        }
        with_number!(key.value.number(), T => {
            // SAFETY: the operand was computed for the vector of `evaluate`, and this is one of its
            // rows.
            key.order.rank::<T>(unsafe { self.operands[index].get::<T>(row) })
        })
    }

    /// A row of the vector, whose first row has the number `first_row`.
    pub(super) fn entry(&self, row: usize, first_row: u64) -> Entry {
        let mut ranks = [Rank::default(); KEYS_MAX];
        for (index, rank) in ranks.iter_mut().enumerate().take(self.keys.len()) {
            *rank = self.rank(index, row);
        }
        let number = first_row + row as u64;
        let place = if self.reversed() { !number } else { number };
        Entry { ranks, place }
    }

    /// The number of an entry's row.
    pub(super) fn row(&self, entry: &Entry) -> u64 {
        if self.reversed() {
            !entry.place
        } else {
            entry.place
        }
    }
}
