//! Groups of which there are many: found by all keys at once.
//!
//! ```text
//! integers ──────────────────────► a word of the row's key ─┐
//! other keys ── id of the value ─► a word of the row's key ─┴─► KeyTable ──► group ids
//! ```
//! Pairs of ids need a table for each key's values and one for each further key. That is fast while the tables fit
//! into the cache. Once there are more than [`GROUPS_MIN`] groups, and most combinations of the keys' values do not
//! occur, groups move here. Their ids stay.

use super::group::{GroupKey, Groups};
use super::key::{KeyReader, canonical, spread};
use super::key_table::{KeyTable, RowWords, WORDS_MAX};
use super::key_values::{KeyValue, KeyValues};
use super::pairs::Pairs;
use crate::limits::VECTOR_ROWS;
use crate::vector::Evaluation;
use crate::vector::frame::Frame;
use crate::vector::number::{NumberType, Scalar};
use crate::vector::selection::Selection;
use crate::vector::value::Operand;
use crate::with_number;

/// Fewer groups stay where they are.
pub(super) const GROUPS_MIN: usize = 1 << 14;
/// A step before the last that hashes fewer pairs finds them in the cache.
const HASHED_MIN: usize = 1 << 16;
/// Such a step is cheap too if there are more than so many groups for each of its pairs. The labels of
/// a series are such a step: its pairs are few, and each goes with many minutes.
const HASHED_SHARE: usize = 8;

/// The groups.
pub(super) struct WideGroups {
    pub(super) table: KeyTable,
    rows: RowWords,
    /// For each key, in the order in which they are paired, whether its word is the value itself.
    direct: Vec<bool>,
}

impl WideGroups {
    /// Whether a key's word is the value itself. Otherwise it is the value's id.
    pub(super) fn is_direct(&self, place: usize) -> bool {
        self.direct[place]
    }

    /// The number that a group's value has: the group's own if the key's word is the value.
    pub(super) fn number(&self, group: u32, place: usize) -> u32 {
        match self.direct[place] {
            true => group,
            false => self.table.word(group, place).unwrap_or(0) as u32,
        }
    }

    /// The value of a key whose word it is, of a group.
    pub(super) fn value(&self, group: u32, place: usize) -> KeyValue<'static> {
        let word = self.table.word(group, place);
        word.map_or(KeyValue::Null, |word| KeyValue::Number(Scalar(word)))
    }

    pub(super) fn bytes(&self) -> usize {
        self.table.bytes()
    }

    /// Writes the ids of the groups of the selected rows.
    pub(super) fn assign(
        &mut self,
        keys: &mut [GroupKey],
        frame: &Frame<'_>,
        selection: &Selection,
        ids: &mut [u32; VECTOR_ROWS],
    ) -> Evaluation<()> {
        self.read(keys, frame, selection, ids)?;
        self.table.ids(&mut self.rows, selection, frame.rows, ids);
        Ok(())
    }

    /// Writes the ids of the known groups among those of the selected rows, and returns their rows.
    pub(super) fn find(
        &mut self,
        keys: &mut [GroupKey],
        frame: &Frame<'_>,
        selection: &Selection,
        ids: &mut [u32; VECTOR_ROWS],
    ) -> Evaluation<Selection> {
        self.read(keys, frame, selection, ids)?;
        Ok(self.table.known(&mut self.rows, selection, frame.rows, ids))
    }

    /// Reads the words of the selected rows' keys.
    fn read(
        &mut self,
        keys: &mut [GroupKey],
        frame: &Frame<'_>,
        selection: &Selection,
        ids: &mut [u32; VECTOR_ROWS],
    ) -> Evaluation<()> {
        self.rows.has_nulls = false;
        for (place, key) in keys.iter_mut().enumerate() {
            let GroupKey { reader, values, .. } = key;
            match self.direct[place] {
                true => self.rows.read_numbers(place, reader, frame, selection)?,
                false => {
                    let key = (reader, values);
                    self.rows.read_ids(place, key, frame, selection, ids)?;
                }
            }
        }
        Ok(())
    }
}

impl RowWords {
    /// Reads a word of the selected rows' keys: the ids of values. They are also written to `ids`.
    pub(crate) fn read_ids(
        &mut self,
        word: usize,
        (reader, values): (&mut KeyReader, &mut KeyValues),
        frame: &Frame<'_>,
        selection: &Selection,
        ids: &mut [u32; VECTOR_ROWS],
    ) -> Evaluation<()> {
        spread(&reader.assign(values, frame, selection)?, selection, ids);
        let words = &mut self.words[word];
        selection.for_each_of(frame.rows, |row| words[row] = ids[row].into());
        Ok(())
    }

    /// Reads a word of the selected rows' keys: the canonical bits of a number.
    pub(crate) fn read_numbers(
        &mut self,
        word: usize,
        reader: &mut KeyReader,
        frame: &Frame<'_>,
        selection: &Selection,
    ) -> Evaluation<()> {
        let value = reader.number_mut().expect("the key is a number");
        let number = value.number();
        let operand = value.evaluate(frame, selection)?;
        self.copy_numbers(word, number, &operand, selection, frame.rows);
        Ok(())
    }

    /// Makes the canonical bits of numbers a word of the selected rows' keys.
    pub(crate) fn copy_numbers(
        &mut self,
        word: usize,
        number: NumberType,
        operand: &Operand,
        selection: &Selection,
        rows: usize,
    ) {
        let words = &mut self.words[word];
        with_number!(number, T => selection.for_each_of(rows, |row| {
            // SAFETY: the operand has a `T` for each row of the vector.
            words[row] = canonical(unsafe { operand.get::<T>(row) });
        }));
        let valid = operand.valid(selection);
        if valid != *selection {
            self.set_null(word, &selection.and_not(&valid));
        }
    }
}

impl Groups {
    /// Moves the groups if they are many, and few combinations of their keys' values occur. The vector before had no
    /// stretches of rows of one group.
    pub(super) fn widen_if_many(&mut self) {
        let are_many =
            |pairs: &Pairs| pairs.len() >= HASHED_MIN && pairs.len() >= self.len() / HASHED_SHARE;
        let is_hashed = || match self.pairs.split_last() {
            None => {
                let mut keys = self.keys.iter();
                keys.any(|key| key.values.has_scattered_numbers())
            }
            Some((last, before)) => {
                let mut before = before.iter();
                last.is_hashed() || before.any(|pairs| pairs.is_hashed() && are_many(pairs))
            }
        };
        let is_many = self.len() >= GROUPS_MIN && is_hashed();
        #[cfg(test)]
        let is_many = self.wide_from.map_or(is_many, |from| self.len() >= from);
        if !is_many || self.wide.is_some() || self.keys.len() > WORDS_MAX {
            return;
        }
        let direct: Vec<bool> = self.keys.iter().map(Groups::is_direct).collect();
        if self.keys.len() == 1 && !direct[0] {
            return;
        }
        // The groups are read from the lists of pairs and values alone.
        self.pairs.iter_mut().for_each(Pairs::free_table);
        for (key, _) in self
            .keys
            .iter_mut()
            .zip(&direct)
            .filter(|(_, direct)| **direct)
        {
            key.values.free_number_ids();
        }
        let width = self.keys.len();
        let mut wide = WideGroups {
            table: KeyTable::new(width),
            rows: RowWords::new(width),
            direct,
        };
        for first in (0..self.len()).step_by(VECTOR_ROWS) {
            let count = VECTOR_ROWS.min(self.len() - first);
            self.copy(first, count, &mut wide);
            let all = Selection::first(count);
            let ids = &mut self.ids;
            wide.table.ids(&mut wide.rows, &all, count, ids);
            debug_assert!(
                (first as u32..)
                    .zip(&ids[..count])
                    .all(|(id, found)| id == *found)
            );
        }
        self.pairs.clear();
        for (key, is_direct) in self.keys.iter_mut().zip(&wide.direct) {
            if *is_direct {
                key.values = Default::default();
                key.reader.forget();
            }
        }
        self.wide = Some(Box::new(wide));
    }

    /// Whether the values of a key are their own words: integers, unless equal values need one number.
    fn is_direct(key: &GroupKey) -> bool {
        key.reader.is_integer() && !key.shares_numbers
    }

    /// Reads the words of some groups' keys.
    fn copy(&self, first: usize, count: usize, wide: &mut WideGroups) {
        wide.rows.has_nulls = false;
        for (place, key) in self.keys.iter().enumerate() {
            let mut nulls = Selection::NONE;
            for row in 0..count {
                let number = self.number_of((first + row) as u32, place, self.pairs.len());
                let word = match wide.direct[place] {
                    false => u64::from(number),
                    true => match key.values.value(number) {
                        KeyValue::Number(scalar) => scalar.0,
                        _ => {
                            nulls.insert(row, row + 1);
                            0
                        }
                    },
                };
                wide.rows.words[place][row] = word;
            }
            if !nulls.is_empty() {
                wide.rows.set_null(place, &nulls);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::key::Key;
    use super::*;
    use crate::column::Column;
    use crate::test_support::INT8;
    use crate::vector::value::Value;

    /// The groups of rows with these keys.
    fn groups_of(rows: &[[i64; 3]]) -> Groups {
        let key = |key| Key::Number(Value::Column(NumberType::I64, key));
        let mut groups = Groups::new((0..3).map(key).collect());
        for rows in rows.chunks(VECTOR_ROWS) {
            let columns = [0, 1, 2].map(|key| {
                let mut column = Column::new(INT8);
                let values = rows.iter().map(|row| row[key].to_ne_bytes());
                values.for_each(|value| column.push_fixed(&value));
                column
            });
            let lanes = columns.each_ref().map(Column::lane);
            let frame = Frame {
                lanes: &lanes,
                ..Frame::of_nulls(rows.len(), &[])
            };
            let all = Selection::first(rows.len());
            groups.assign(&frame, &all).unwrap();
            groups.end_vector();
        }
        groups
    }

    #[test]
    fn groups_move_if_few_combinations_of_their_keys_occur() {
        let of_two_keys = |row: i64| [row * 1_000_003, row * 7 % 99_991, 0];
        let rows: Vec<_> = (0..3 * GROUPS_MIN as i64).map(of_two_keys).collect();
        let groups = groups_of(&rows);
        assert_eq!(groups.len(), rows.len());
        assert!(groups.wide.is_none(), "a few pairs are in the cache");
        let rows: Vec<_> = (0..2 * HASHED_MIN as i64).map(of_two_keys).collect();
        let groups = groups_of(&rows);
        assert_eq!(groups.len(), rows.len());
        assert!(groups.wide.is_some());
    }

    #[test]
    fn series_with_labels_and_minutes_stay() {
        let series = GROUPS_MIN as i64 + 5_000;
        let of_minute =
            |minute| (0..series).map(move |series| [series * 1_000_003, series * 7 % 997, minute]);
        let rows: Vec<_> = (0..8).flat_map(of_minute).collect();
        let groups = groups_of(&rows);
        assert_eq!(groups.len(), rows.len());
        assert!(groups.wide.is_none());
    }
}
