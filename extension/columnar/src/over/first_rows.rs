//! Rows that can be among the first ones of their partitions, chosen while rows arrive.
//!
//! Of each partition, the best keys so far are known. A row whose key comes after all of these is none of the first
//! rows, whatever follows. So most rows are dropped before anything else of them is read.

use crate::limits::VECTOR_ROWS;
use crate::vector::number::NumberType;
use crate::vector::operands;
use crate::vector::selection::Selection;
use crate::vector::value::Operand;

/// So many first rows of each partition are worth a list of their keys.
const FIRST_MAX: usize = 64;

/// The best keys of each partition.
pub struct FirstRows {
    first: usize,
    /// Whether of rows with equal keys the earlier ones are before the later ones. Otherwise all of them count.
    breaks_ties: bool,
    nulls_first: bool,
    is_descending: bool,
    /// So many keys of each partition, ascending.
    best: Vec<u64>,
    /// How many of them there are, by partition.
    counts: Vec<u32>,
    /// The last of them, by partition; the greatest number while more are wanted.
    lasts: Vec<u64>,
    keys: Box<[u64; VECTOR_ROWS]>,
}

impl FirstRows {
    /// No row yet. The first of the keys that rows are ordered by decides. If it `breaks_ties`, of rows with equal keys
    /// the earlier ones are before the later ones. `None`: for so many first rows this does not pay.
    pub fn new(
        first: usize,
        (nulls_first, is_descending): (bool, bool),
        breaks_ties: bool,
    ) -> Option<FirstRows> {
        FirstRows::pays(first).then(|| FirstRows {
            first,
            breaks_ties,
            nulls_first,
            is_descending,
            best: Vec::new(),
            counts: Vec::new(),
            lasts: Vec::new(),
            keys: Box::new([0; VECTOR_ROWS]),
        })
    }

    /// Whether a list of so many keys of each partition pays.
    pub fn pays(first: usize) -> bool {
        (1..=FIRST_MAX).contains(&first)
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        let keys = self.best.capacity() + self.lasts.capacity();
        keys * size_of::<u64>() + self.counts.capacity() * size_of::<u32>()
    }

    /// Removes rows that cannot be among the first ones. `ids` are the partitions of rows, of which there are so many
    /// so far. Without a key all rows are equal.
    pub fn narrow(
        &mut self,
        (ids, partitions): (&[u32], usize),
        key: Option<(NumberType, Operand)>,
        rows: &mut Selection,
    ) {
        self.counts.resize(partitions, 0);
        self.lasts.resize(partitions, u64::MAX);
        self.best.resize(partitions * self.first, 0);
        if let Some((number, operand)) = key {
            self.read(number, operand, rows);
        }
        let mut kept = Selection::NONE;
        let before = *rows;
        before.for_each(|row| {
            let is_kept = self.takes(ids[row] as usize, self.keys[row]);
            kept.words[row / 64] |= u64::from(is_kept) << (row % 64);
        });
        *rows = kept;
    }

    /// Reads the keys of a vector as unsigned integers of the wanted order. NULL becomes the least or the greatest,
    /// which others may be too: from then on ties do not decide.
    fn read(&mut self, number: NumberType, operand: Operand, rows: &Selection) {
        let valid = operand.valid(rows);
        operands::unsigned_order_keys(number, operand, &valid, self.is_descending, &mut self.keys);
        if valid != *rows {
            self.breaks_ties = false;
            let null = if self.nulls_first { 0 } else { u64::MAX };
            rows.and_not(&valid).for_each(|row| self.keys[row] = null);
        }
    }

    /// Whether a row with this key can be one of the first of its partition.
    #[inline]
    fn takes(&mut self, partition: usize, key: u64) -> bool {
        let last = self.lasts[partition];
        if key > last {
            return false;
        }
        if key == last && self.counts[partition] as usize == self.first {
            return !self.breaks_ties;
        }
        self.insert(partition, key);
        true
    }

    /// Adds a key to the best ones, of which the last may have to leave.
    fn insert(&mut self, partition: usize, key: u64) {
        let start = partition * self.first;
        let count = self.counts[partition] as usize;
        let best = &mut self.best[start..start + self.first];
        let mut place = count.min(self.first - 1);
        while place > 0 && best[place - 1] > key {
            best[place] = best[place - 1];
            place -= 1;
        }
        best[place] = key;
        self.counts[partition] = (count + 1).min(self.first) as u32;
        if count + 1 >= self.first {
            self.lasts[partition] = best[self.first - 1];
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::vector::number::Scalar;

    /// A vector's operand: numbers, and which of them are not NULL.
    fn operand(values: &[i64], validity: &[u64]) -> Operand {
        Operand::Each {
            values: values.as_ptr().cast(),
            validity: validity.as_ptr(),
        }
    }

    proptest! {
        #[test]
        fn first_rows_are_never_dropped(
            vectors in prop::collection::vec(
                prop::collection::vec((0..4_u32, prop::option::weighted(0.9, -5..5_i64)), 1..60), 1..5),
            first in 1..4_usize, nulls_first: bool, is_descending: bool, breaks_ties: bool,
        ) {
            let mut rows = FirstRows::new(first, (nulls_first, is_descending), breaks_ties).unwrap();
            let (mut all, mut kept) = (Vec::new(), Vec::new());
            for vector in &vectors {
                let ids: Vec<u32> = vector.iter().map(|(id, _)| *id).collect();
                let values: Vec<i64> = vector.iter().map(|(_, key)| key.unwrap_or(0)).collect();
                let mut validity = vec![0; VECTOR_ROWS / 64];
                for (row, (_, key)) in vector.iter().enumerate() {
                    validity[row / 64] |= u64::from(key.is_some()) << (row % 64);
                }
                let mut selection = Selection::first(vector.len());
                let key = (NumberType::I64, operand(&values, &validity));
                rows.narrow((&ids, 4), Some(key), &mut selection);
                for (row, (id, key)) in vector.iter().enumerate() {
                    let key = key.map(|key| if is_descending { -key } else { key });
                    let place = (key.is_none() != nulls_first, key.unwrap_or(0));
                    kept.push(selection.contains(row));
                    all.push((*id, place));
                }
            }
            for (row, (id, place)) in all.iter().enumerate() {
                let before = |other: &usize| {
                    let (other_id, other_place) = all[*other];
                    let is_tied = other_place == *place && *other < row && breaks_ties;
                    other_id == *id && (other_place < *place || is_tied)
                };
                let is_first = (0..all.len()).filter(before).count() < first;
                prop_assert!(kept[row] || !is_first);
            }
        }
    }

    #[test]
    fn later_rows_are_dropped() {
        let mut rows = FirstRows::new(2, (false, false), true).unwrap();
        let key = |value: i64| Some((NumberType::I64, Operand::Same(Scalar(value as u64))));
        let mut kept = Vec::new();
        for value in [3, 4, 4, 5, 3, 3, 1] {
            let mut selection = Selection::first(1);
            rows.narrow((&[0], 1), key(value), &mut selection);
            kept.push(selection.contains(0));
        }
        assert_eq!(kept, [true, true, false, false, true, false, true]);
        assert!(FirstRows::new(0, (false, false), true).is_none());
        assert!(FirstRows::new(65, (false, false), true).is_none());
    }
}
