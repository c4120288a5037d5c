//! The ids of pairs of ids, dense from 0 in order of appearance.
//!
//! Ids of keys are dense themselves. If most combinations of them occur, such as series and
//! minutes, there is a table with a cell for each combination: a pair is found by a multiplication,
//! and pairs that follow each other lie side by side. If few combinations occur, most cells would
//! be empty. Then pairs are hashed.

use std::ops::Range;

use super::key_values::{MixMap, UNKNOWN};
use crate::buffer::reserve_huge;

/// A table may have so many cells for each pair, and so many more.
const CELLS_A_PAIR: usize = 8;
const CELLS_MIN: usize = 64 << 10;

/// Pairs of ids, and the id of each.
#[derive(Default)]
pub(crate) struct Pairs {
    table: Table,
    pairs: Vec<(u32, u32)>,
}

enum Table {
    /// A row of cells for each left id, each `1 << shift` long.
    Cells {
        shift: u32,
        cells: Vec<u32>,
    },
    Hashed(MixMap<u64>),
}

impl Default for Table {
    fn default() -> Table {
        Table::Cells {
            shift: 0,
            cells: Vec::new(),
        }
    }
}

#[inline]
fn hashed(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

/// The cell of a pair whose right id fits into a row; otherwise a number past the last cell of any
/// table.
#[inline]
fn cell(shift: u32, left: u32, right: u32) -> usize {
    match u64::from(right) >> shift {
        0 => (left as usize) << shift | right as usize,
        _ => usize::MAX,
    }
}

impl Pairs {
    /// The id of a pair. A new pair gets one.
    #[inline]
    pub(crate) fn id(&mut self, left: u32, right: u32) -> u32 {
        if let Table::Cells { shift, cells } = &mut self.table
            && let Some(id) = cells.get_mut(cell(*shift, left, right))
        {
            if *id == UNKNOWN {
                let count = self.pairs.len();
                *id = count as u32;
                reserve_huge(&mut self.pairs, count + 1);
                self.pairs.push((left, right));
            }
            return *id;
        }
        self.id_of_hashed_or_new(left, right)
    }

    #[inline(never)]
    fn id_of_hashed_or_new(&mut self, left: u32, right: u32) -> u32 {
        let next = self.pairs.len() as u32;
        if self.make_room(left, right)
            && let Table::Cells { shift, cells } = &mut self.table
        {
            cells[cell(*shift, left, right)] = next;
            self.pairs.push((left, right));
            return next;
        }
        let Table::Hashed(ids) = &mut self.table else {
            unreachable!("a table without room for a pair is hashed");
        };
        let pairs = &mut self.pairs;
        *ids.entry(hashed(left, right)).or_insert_with(|| {
            pairs.push((left, right));
            next
        })
    }

    /// Makes a table of cells large enough for a pair; false if pairs are hashed.
    fn make_room(&mut self, left: u32, right: u32) -> bool {
        let Table::Cells { shift, cells } = &mut self.table else {
            return false;
        };
        let wider = u32::BITS - right.leading_zeros();
        let wanted_shift = wider.max(*shift);
        let rows = left as usize + 1;
        let most = CELLS_A_PAIR * self.pairs.len() + CELLS_MIN;
        if rows > most >> wanted_shift {
            let pairs = self.pairs.iter().zip(0..);
            let ids = pairs.map(|(&(left, right), id)| (hashed(left, right), id));
            self.table = Table::Hashed(ids.collect());
            return false;
        }
        if wanted_shift > *shift {
            let rows = rows.max(cells.len() >> *shift);
            *cells = vec![UNKNOWN; rows << wanted_shift];
            *shift = wanted_shift;
            for (&(left, right), id) in self.pairs.iter().zip(0..) {
                cells[cell(wanted_shift, left, right)] = id;
            }
        } else if rows << wanted_shift > cells.len() {
            // The vector grows by doubling.
            cells.resize(rows << wanted_shift, UNKNOWN);
        }
        true
    }

    /// The id of a pair, or [`UNKNOWN`] if [`Self::id`] was never called for it.
    #[inline]
    pub(crate) fn known(&self, left: u32, right: u32) -> u32 {
        let id = match &self.table {
            Table::Cells { shift, cells } => cells.get(cell(*shift, left, right)),
            Table::Hashed(ids) => ids.get(&hashed(left, right)),
        };
        id.copied().unwrap_or(UNKNOWN)
    }

    /// The pair of an id.
    #[inline]
    pub(crate) fn pair(&self, id: u32) -> (u32, u32) {
        self.pairs[id as usize]
    }

    /// The pairs of some ids.
    pub(crate) fn pairs(&self, ids: Range<usize>) -> &[(u32, u32)] {
        &self.pairs[ids]
    }

    /// Frees the memory by which pairs are found. [`Self::pairs`] remain.
    pub(crate) fn free_table(&mut self) {
        self.table = Table::default();
    }

    /// Whether most combinations of the ids do not occur.
    pub(crate) fn is_hashed(&self) -> bool {
        matches!(self.table, Table::Hashed(_))
    }

    /// The number of pairs.
    pub(crate) fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        let table = match &self.table {
            Table::Cells { cells, .. } => cells.capacity() * size_of::<u32>(),
            Table::Hashed(ids) => ids.capacity() * 16,
        };
        table + self.pairs.capacity() * 8
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    /// Looks up pairs and compares each result with a map.
    fn check(asked: impl IntoIterator<Item = (u32, u32)>) -> Pairs {
        let (mut pairs, mut expected) = (Pairs::default(), HashMap::new());
        for (left, right) in asked {
            let next = expected.len() as u32;
            let is_new = !expected.contains_key(&(left, right));
            assert_eq!(pairs.known(left, right) == UNKNOWN, is_new);
            let id = *expected.entry((left, right)).or_insert(next);
            assert_eq!(pairs.id(left, right), id);
            assert_eq!(pairs.known(left, right), id);
            assert_eq!(pairs.pair(id), (left, right));
            assert_eq!(pairs.len(), expected.len());
        }
        pairs
    }

    #[test]
    fn all_combinations_have_cells_in_either_order() {
        let series_first = (0..3_000).flat_map(|left| (0..61).map(move |right| (left, right)));
        let pairs = check(series_first.clone());
        assert!(matches!(pairs.table, Table::Cells { .. }));
        let minutes_first = series_first.map(|(left, right)| (right, left));
        let pairs = check(minutes_first);
        assert!(matches!(pairs.table, Table::Cells { .. }));
        assert!(pairs.bytes() < 183_000 * (8 * 2 + 4 * CELLS_A_PAIR * 2));
    }

    #[test]
    fn few_of_many_combinations_are_hashed() {
        let pairs = check((0..20_000).map(|id| (id, id)));
        assert!(matches!(pairs.table, Table::Hashed(_)));
        let pairs = check([(u32::MAX - 1, 0), (0, u32::MAX - 1), (u32::MAX - 1, 0)]);
        assert!(matches!(pairs.table, Table::Hashed(_)));
        assert!(pairs.bytes() < 1_000);
    }

    proptest! {
        #[test]
        fn ids_are_those_of_a_map(
            lefts in 1u32..2_000,
            rights in 1u32..2_000,
            asked in prop::collection::vec((any::<u32>(), any::<u32>()), 0..3_000),
        ) {
            check(asked.into_iter().map(|(left, right)| (left % lefts, right % rights)));
        }
    }
}
