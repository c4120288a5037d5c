//! The ids of numbers by their bits. Integers that lie close together are looked up in an array,
//! others in a hash table.
//!
//! The array begins at the least integer that it covers, and grows while it has at most
//! [`CELLS_A_NUMBER`] cells for each number or [`CELLS_MIN`] in all, and at most [`CELLS_MAX`]. The
//! hash table has the numbers outside the array.

use super::key_values::MixMap;

/// The number of cells that may be unused.
const CELLS_MIN: usize = 1 << 12;
/// The number of cells for each number, in addition.
const CELLS_A_NUMBER: usize = 16;
/// The most cells: 1 MiB.
const CELLS_MAX: usize = 1 << 18;
/// No number has this id.
const NONE: u32 = u32::MAX;

#[derive(Default)]
pub(crate) struct NumberIds {
    others: MixMap<u64>,
    /// The integer of the first cell.
    first: i64,
    cells: Vec<u32>,
    /// The number of cells that have an id.
    used: usize,
}

impl NumberIds {
    /// The id of a number, if it has one.
    #[inline]
    pub(crate) fn get(&self, bits: u64) -> Option<u32> {
        match self.cells.get(self.cell(bits)) {
            Some(&NONE) => None,
            Some(&id) => Some(id),
            None => self.others.get(&bits).copied(),
        }
    }

    /// The array's first integer, and the ids of its integers: [`UNKNOWN`](super::key_values::UNKNOWN) of those that
    /// have none. `None` if most numbers are in the hash table.
    pub(crate) fn array(&self) -> Option<(i64, &[u32])> {
        let is_used = !self.cells.is_empty() && !self.are_scattered();
        is_used.then_some((self.first, &self.cells[..]))
    }

    /// Gives an id to a number that has none.
    pub(crate) fn insert(&mut self, bits: u64, id: u32) {
        if self.covers(bits as i64) {
            let cell = self.cell(bits);
            self.cells[cell] = id;
            self.used += 1;
        } else {
            self.others.insert(bits, id);
        }
    }

    /// The numbers and their ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let integers = (0..).map(|cell| (self.first as u64).wrapping_add(cell));
        let in_array = integers.zip(&self.cells).filter(|(_, id)| **id != NONE);
        in_array
            .map(|(bits, id)| (bits, *id))
            .chain(self.others.iter().map(|(bits, id)| (*bits, *id)))
    }

    /// Whether most numbers are in the hash table.
    pub(crate) fn are_scattered(&self) -> bool {
        self.others.len() > self.used
    }

    /// The number of numbers that have an id.
    fn len(&self) -> usize {
        self.used + self.others.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.others.capacity() * 16 + self.cells.capacity() * size_of::<u32>()
    }

    /// The cell of a number; past the last cell if it has none.
    #[inline]
    fn cell(&self, bits: u64) -> usize {
        bits.wrapping_sub(self.first as u64) as usize
    }

    /// Whether the array has a cell for an integer. It grows if that is worth it.
    fn covers(&mut self, integer: i64) -> bool {
        let cells = self.cells.len();
        if self.cell(integer as u64) < cells {
            return true;
        }
        let (first, end) = match cells {
            0 => (integer, i128::from(integer) + 1),
            _ => {
                let end = i128::from(self.first) + cells as i128;
                (self.first.min(integer), end.max(i128::from(integer) + 1))
            }
        };
        let worth = CELLS_MIN.max(CELLS_A_NUMBER * self.len()).min(CELLS_MAX);
        let wanted = end - i128::from(first);
        if wanted > worth as i128 {
            return false;
        }
        // The array doubles, before the first cell or after the last, so that ascending or
        // descending numbers do not cause a copy each.
        let spare = (wanted as usize).min(worth - wanted as usize);
        let is_before = integer < self.first && cells > 0;
        let first = match is_before {
            true => first.saturating_sub(spare as i64),
            false => first,
        };
        self.grow(first, wanted as usize + spare);
        self.cell(integer as u64) < self.cells.len()
    }

    /// Makes an array of so many cells that begins at this integer and covers the existing numbers.
    fn grow(&mut self, first: i64, cells: usize) {
        let mut grown = vec![NONE; cells];
        let moved = self.first.wrapping_sub(first) as usize;
        if !self.cells.is_empty() {
            grown[moved..moved + self.cells.len()].copy_from_slice(&self.cells);
        }
        (self.first, self.cells) = (first, grown);
        let (cells, used) = (&mut self.cells, &mut self.used);
        self.others.retain(|bits, id| {
            let cell = cells.get_mut(bits.wrapping_sub(first as u64) as usize);
            let is_outside = cell.is_none();
            if let Some(cell) = cell {
                *cell = *id;
                *used += 1;
            }
            is_outside
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn look_up_all(numbers: &[i64]) -> NumberIds {
        let mut ids = NumberIds::default();
        for &number in numbers {
            if ids.get(number as u64).is_none() {
                let id = ids.len() as u32;
                ids.insert(number as u64, id);
            }
        }
        ids
    }

    proptest! {
        #[test]
        fn each_number_keeps_its_id(
            numbers in prop::collection::vec(
                prop_oneof![-50..50_i64, -9_000..9_000_i64, any::<i64>(), Just(i64::MIN), Just(i64::MAX)], 0..400),
            others in prop::collection::vec(-10_000..10_000_i64, 0..50),
        ) {
            let ids = look_up_all(&numbers);
            let mut known = std::collections::HashMap::new();
            for &number in &numbers {
                let next = known.len() as u32;
                known.entry(number).or_insert(next);
            }
            for number in numbers.iter().chain(&others) {
                prop_assert_eq!(ids.get(*number as u64), known.get(number).copied());
            }
            prop_assert_eq!(ids.iter().map(|(bits, id)| (bits as i64, id)).collect::<std::collections::HashMap<_, _>>(), known);
            prop_assert!(ids.cells.len() <= CELLS_MAX);
        }
    }

    #[test]
    fn numbers_close_together_lie_in_the_array() {
        let ids = look_up_all(&(0..100_000).rev().collect::<Vec<_>>());
        assert!((100_000..=CELLS_MAX).contains(&ids.cells.len()));
        let far = look_up_all(&[0, 1 << 40, 2 << 40]);
        assert!(far.cells.len() <= CELLS_MIN);
    }
}
