//! The ids of pairs of ids, dense from 0 in order of appearance: an array where pairs lie close together, as those of
//! times and series do, else a hash table.

use crate::aggregate::key_values::UNKNOWN;
use crate::aggregate::pairs::Pairs;

/// The array may have this many cells for each pair.
const CELLS_FACTOR: usize = 8;
/// The array may have this many cells, however few pairs there are.
const CELLS_MIN: usize = 4_096;

/// Pairs and their ids.
#[derive(Default)]
pub(super) struct PairTable {
    /// By the left id, then by the right one; [`UNKNOWN`] where there is no pair.
    cells: Vec<Vec<u32>>,
    cell_count: usize,
    /// How many pairs there are.
    pairs: usize,
    /// All pairs instead, once they lie too far apart.
    hashed: Option<Pairs>,
}

impl PairTable {
    /// The id of a pair, a new one for a new pair.
    pub(super) fn id(&mut self, left: u32, right: u32) -> u32 {
        if let Some(hashed) = &mut self.hashed {
            return hashed.id(left, right);
        }
        let (row, column) = (left as usize, right as usize);
        let known = self.known(left, right);
        if known != UNKNOWN {
            return known;
        }
        let length = self.cells.get(row).map_or(0, Vec::len);
        let more = (column + 1).saturating_sub(length) + (row + 1).saturating_sub(self.cells.len());
        if self.cell_count + more > (self.pairs * CELLS_FACTOR).max(CELLS_MIN) {
            return self.hash().id(left, right);
        }
        if self.cells.len() <= row {
            self.cells.resize_with(row + 1, Vec::new);
        }
        let cells = &mut self.cells[row];
        if cells.len() <= column {
            cells.resize(column + 1, UNKNOWN);
        }
        cells[column] = self.pairs as u32;
        self.cell_count += more;
        self.pairs += 1;
        cells[column]
    }

    /// The id of a pair, or [`UNKNOWN`] for a pair that [`Self::id`] was never asked for.
    #[inline]
    pub(super) fn known(&self, left: u32, right: u32) -> u32 {
        if let Some(hashed) = &self.hashed {
            return hashed.known(left, right);
        }
        let cells = self.cells.get(left as usize);
        let cell = cells.and_then(|cells| cells.get(right as usize));
        cell.copied().unwrap_or(UNKNOWN)
    }

    /// Moves all pairs into a hash table.
    fn hash(&mut self) -> &mut Pairs {
        let mut pairs = vec![(0, 0); self.pairs];
        for (left, cells) in self.cells.iter().enumerate() {
            for (right, id) in cells.iter().enumerate() {
                if *id != UNKNOWN {
                    pairs[*id as usize] = (left as u32, right as u32);
                }
            }
        }
        self.cells = Vec::new();
        let hashed = self.hashed.insert(Pairs::default());
        for (left, right) in pairs {
            hashed.id(left, right);
        }
        hashed
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        let cells = self.cells.iter().map(|cells| cells.capacity() * 4);
        cells.sum::<usize>()
            + self.cells.capacity() * size_of::<Vec<u32>>()
            + self.hashed.as_ref().map_or(0, Pairs::bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids of pairs in the order in which these come, and whether an array was enough.
    fn check(pairs: impl Iterator<Item = (u32, u32)> + Clone) -> bool {
        let mut table = PairTable::default();
        let mut ids = std::collections::HashMap::new();
        for (left, right) in pairs.clone() {
            let next = ids.len() as u32;
            assert_eq!(
                table.known(left, right),
                *ids.get(&(left, right)).unwrap_or(&UNKNOWN)
            );
            let id = *ids.entry((left, right)).or_insert(next);
            assert_eq!(table.id(left, right), id);
        }
        for (left, right) in pairs {
            assert_eq!(table.known(left, right), ids[&(left, right)]);
        }
        assert_eq!(table.known(1 << 30, 3), UNKNOWN);
        assert!(table.bytes() > 0);
        table.hashed.is_none()
    }

    #[test]
    fn pairs_that_lie_close_together_need_no_hash_table() {
        let each = (0..360_u32).flat_map(|left| (0..100).map(move |right| (left, right)));
        assert!(check(each.clone()));
        assert!(check(
            each.map(|(left, right)| (right, left)).chain([(5, 5)])
        ));
    }

    #[test]
    fn pairs_that_lie_far_apart_are_hashed_with_the_same_ids() {
        assert!(!check((0..3_000).map(|id| (id, id))));
        assert!(!check(
            (0..3_000).map(|id| (3_000 - id, id % 7 * 1_000_000))
        ));
        assert!(!check((0..9).map(|id| (u32::MAX - 1 - id, id))));
    }
}
