//! Keys of a small side that has many: found by all of their values at once.
//!
//! ```text
//! numbers ───────────────────────► a word of the row's key ─┐
//! other keys ── id of the value ─► a word of the row's key ─┴─► KeyTable ──► id of the key
//! ```
//! Few keys have a hash table of the values of each key, and another of pairs of keys, and rows are
//! looked up in them one by one. [`KeyTable`] looks up a whole vector, so the processor waits for
//! the memory of many rows at a time. The keys move here once there are [`KEYS_MIN`], and keep
//! their ids.

use crate::aggregate::key::{KeyReader, canonical};
use crate::aggregate::key_table::{KeyTable, RowWords, WORDS_MAX};
use crate::aggregate::key_values::UNKNOWN;
use crate::aggregate::stretches::StretchList;
use crate::limits::VECTOR_ROWS;
use crate::vector::Evaluation;
use crate::vector::frame::Frame;
use crate::vector::number::NumberType;
use crate::vector::selection::Selection;
use crate::vector::value::Operand;
use crate::with_number;

use super::equal_key::EqualKey;
use super::found::{Found, NO_ROW};

/// Fewer keys are in the cache, wherever they are.
pub(super) const KEYS_MIN: usize = if cfg!(test) { 8 } else { 1 << 12 };
/// Bytes of the filter for each key, at most.
const FILTER_BYTES_A_KEY: usize = 2;
/// Rows come in stretches of equal keys if fewer than one in so many has other keys than the row before.
const STRETCH_ROWS: usize = 4;

/// The keys of a small side.
pub(super) struct ManyKeys {
    table: KeyTable,
    rows: RowWords,
    /// For each key, whether its word is the value itself: the canonical bits of a number.
    direct: Vec<bool>,
    /// The words of one row.
    row: Vec<u64>,
    stretches: StretchList,
}

impl ManyKeys {
    /// Whether such keys may move here. A single key that is no number has its ids already.
    pub(super) fn may_take(keys: &[EqualKey]) -> bool {
        let is_number = |key: &EqualKey| key.reader.number().is_some();
        keys.len() <= WORDS_MAX && (keys.len() > 1 || keys.iter().any(is_number))
    }

    /// The keys with the ids below `count`. `id_of` gives the id of the value of a key in the key of an id.
    pub(super) fn take(
        keys: &mut [EqualKey],
        count: usize,
        id_of: impl Fn(u32, usize) -> u32,
    ) -> Self {
        let width = keys.len();
        let direct = keys.iter().map(|key| key.reader.number().is_some());
        let mut many = ManyKeys {
            table: KeyTable::new(width),
            rows: RowWords::new(width),
            direct: direct.collect(),
            row: Vec::with_capacity(width),
            stretches: StretchList::default(),
        };
        // The canonical bits of the numbers of each direct key, by id.
        let bits: Vec<Option<Vec<u64>>> = keys
            .iter()
            .map(|key| key.reader.number().map(|_| key.bits()))
            .collect();
        let mut ids = Box::new([0; VECTOR_ROWS]);
        for first in (0..count).step_by(VECTOR_ROWS) {
            let rows = VECTOR_ROWS.min(count - first);
            for (key, words) in many.rows.words.iter_mut().enumerate() {
                for (row, word) in words[..rows].iter_mut().enumerate() {
                    let id = id_of((first + row) as u32, key);
                    *word = match &bits[key] {
                        Some(bits) => bits[id as usize],
                        None => id.into(),
                    };
                }
            }
            let all = Selection::first(rows);
            many.table.ids(&mut many.rows, &all, rows, &mut ids);
        }
        debug_assert_eq!(many.table.len(), count, "ids have different keys");
        let direct = keys.iter_mut().zip(&many.direct);
        direct
            .filter(|(_, is_direct)| **is_direct)
            .for_each(|(key, _)| key.forget());
        many
    }

    /// Whether a key's word is the value itself.
    pub(super) fn is_direct(&self, key: usize) -> bool {
        self.direct[key]
    }

    /// The canonical bits of all values of a direct key, by the id of the whole key.
    pub(super) fn words(&self, key: usize) -> impl Iterator<Item = (u64, u32)> + '_ {
        let ids = 0..self.table.len() as u32;
        ids.filter_map(move |id| Some((self.table.word(id, key)?, id)))
    }

    /// The id of a key, of which `word` gives the word of each part. A new key gets an id.
    pub(super) fn id(&mut self, words: impl Iterator<Item = u64>) -> u32 {
        self.row.clear();
        self.row.extend(words);
        self.table.id(&self.row)
    }

    /// Writes the ids of the keys of the selected rows of the small side, none of which has a NULL. New keys get ids.
    ///
    /// # Errors
    /// The first error that evaluating a key of a selected row raises.
    pub(super) fn push(
        &mut self,
        keys: &mut [EqualKey],
        small: &mut [KeyReader],
        frame: &Frame<'_>,
        selection: &Selection,
        ids: &mut [u32; VECTOR_ROWS],
    ) -> Evaluation<()> {
        self.rows.has_nulls = false;
        for (place, (key, reader)) in keys.iter_mut().zip(small).enumerate() {
            match self.direct[place] {
                true => self.rows.read_numbers(place, reader, frame, selection)?,
                false => {
                    let key = (reader, &mut key.values);
                    self.rows.read_ids(place, key, frame, selection, ids)?;
                }
            }
        }
        self.table.ids(&mut self.rows, selection, frame.rows, ids);
        Ok(())
    }

    /// There are no more keys. A filter of the keys may take `room` bytes.
    pub(super) fn finish(&mut self, room: usize) {
        if self.table.len() * FILTER_BYTES_A_KEY <= room {
            self.table.expect_unknown();
        }
    }

    /// Finds the small row of each selected row by its keys: `first` gives that of an id. Rows that find none leave the
    /// selection.
    ///
    /// # Errors
    /// The first error that evaluating a key of a selected row raises.
    pub(super) fn find(
        &mut self,
        keys: &mut [EqualKey],
        frame: &Frame<'_>,
        selection: &mut Selection,
        found: &mut Found,
        first: impl Fn(u32) -> u32,
    ) -> Evaluation<()> {
        self.rows.has_nulls = false;
        for (place, key) in keys.iter_mut().enumerate() {
            match key.reader.number_mut().filter(|_| self.direct[place]) {
                Some(value) => {
                    let number = value.number();
                    let operand = value.evaluate(frame, selection)?;
                    if self.direct.len() == 1
                        && self
                            .find_stretches(number, &operand, frame.rows, selection, found, &first)
                    {
                        return Ok(());
                    }
                    self.rows
                        .copy_numbers(place, number, &operand, selection, frame.rows);
                }
                None => {
                    // A value that the small side does not have is [`UNKNOWN`], and so in no key.
                    let key = (&mut key.reader, &mut key.values);
                    let ids = found.rows_mut();
                    self.rows.read_ids(place, key, frame, selection, ids)?;
                }
            }
        }
        let ids = found.rows_mut();
        let has_stretches = !self.rows.has_nulls && self.has_stretches(frame.rows);
        let known = match has_stretches {
            true => self.known_of_stretches(selection, frame.rows, ids),
            false => {
                let rows = &mut self.rows;
                self.table.known(rows, selection, frame.rows, ids)
            }
        };
        known.for_each(|row| ids[row] = first(ids[row]));
        *selection = known;
        Ok(())
    }

    /// Finds the small rows of a single key, whose numbers come in stretches of equal ones. False,
    /// with nothing found, if they do not.
    fn find_stretches(
        &mut self,
        number: NumberType,
        operand: &Operand,
        rows: usize,
        selection: &mut Selection,
        found: &mut Found,
        first: impl Fn(u32) -> u32,
    ) -> bool {
        let (table, stretches) = (&self.table, &mut self.stretches);
        let valid = operand.valid(selection);
        let Operand::Each { values, .. } = *operand else {
            return false;
        };
        let is_cut = !valid.is_empty()
            && with_number!(number, T => {
                let first_of = |row: usize| {
                    // SAFETY: the operand has a `T` for each row of the vector.
                    let word = canonical(unsafe { operand.get::<T>(row) });
                    table.known_id(&[word]).map_or(NO_ROW, &first)
                };
                // SAFETY: as above.
                unsafe { stretches.cut_numbers::<T>(values, rows, &valid, first_of) }
            });
        if is_cut {
            *selection = valid;
            found.find_stretches(stretches.stretches(), selection);
        }
        is_cut
    }

    /// Whether most rows have the keys of the row before.
    fn has_stretches(&self, rows: usize) -> bool {
        let changes = |words: &[u64; VECTOR_ROWS]| {
            let pairs = words[..rows].windows(2);
            pairs.filter(|pair| pair[0] != pair[1]).count()
        };
        let mut words = self.rows.words.iter();
        words.all(|words| changes(words) * STRETCH_ROWS < rows)
    }

    /// As [`KeyTable::known`], but looks up the first row of each stretch of selected rows with
    /// equal keys. No row has a NULL.
    fn known_of_stretches(
        &mut self,
        selection: &Selection,
        rows: usize,
        ids: &mut [u32; VECTOR_ROWS],
    ) -> Selection {
        let mut firsts = Selection::NONE;
        let mut before = None;
        selection.for_each(|row| {
            let is_first = before.is_none_or(|before: usize| self.rows.differ(before, row));
            firsts.words[row / 64] |= u64::from(is_first) << (row % 64);
            before = Some(row);
        });
        let found = self.table.known(&mut self.rows, &firsts, rows, ids);
        let mut known = Selection::NONE;
        let mut id = UNKNOWN;
        selection.for_each(|row| {
            if firsts.contains(row) {
                id = if found.contains(row) {
                    ids[row]
                } else {
                    UNKNOWN
                };
            }
            ids[row] = id;
            known.words[row / 64] |= u64::from(id != UNKNOWN) << (row % 64);
        });
        known
    }

    pub(super) fn bytes(&self) -> usize {
        self.table.bytes() + self.rows.bytes() + self.stretches.bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::super::equal::{EqualJoin, SmallKey};
    use super::*;
    use crate::aggregate::key::Key;
    use crate::column::Column;
    use crate::kind::{LaneKind, Number};
    use crate::vector::value::Value;

    const FLOAT: LaneKind = LaneKind::Fixed {
        width: 8,
        stride: 8,
        number: Number::Float,
    };
    const INTEGER: LaneKind = LaneKind::Fixed {
        width: 8,
        stride: 8,
        number: Number::Signed,
    };

    /// The bits of an integer, and of a float.
    type Row = [Option<u64>; 2];

    fn columns(rows: &[Row]) -> [Column; 2] {
        [0, 1].map(|key| {
            let mut column = Column::new([INTEGER, FLOAT][key]);
            for row in rows {
                match row[key] {
                    Some(value) => column.push_fixed(&value.to_ne_bytes()),
                    None => column.push_null(),
                }
            }
            column
        })
    }

    /// Integers far from each other, so that no array of them is made. Zero follows NULL in sorted rows.
    fn scattered(key: u8) -> u64 {
        (i64::from(key) * 1_000_000_007) as u64
    }

    /// Zeros of both signs are equal, as are all NaNs.
    fn float(key: u8) -> u64 {
        [0.0, -0.0, f64::NAN, -f64::NAN, 1.5][usize::from(key)].to_bits()
    }

    fn equal(key: usize, bits: u64) -> u64 {
        let float = f64::from_bits(bits);
        match key {
            1 if float == 0.0 => 0,
            1 if float.is_nan() => 1,
            _ => bits,
        }
    }

    proptest! {
        #[test]
        fn left_rows_find_the_small_rows_with_their_keys(
            small in prop::collection::vec((any::<Option<u8>>(), prop::option::of(0..5_u8)), 0..200),
            left in prop::collection::vec((any::<Option<u8>>(), prop::option::of(0..5_u8)), 1..600),
            keys in 1..3_usize, is_sorted: bool, has_filter: bool,
        ) {
            let row = |row: &(Option<u8>, Option<u8>)| [row.0.map(scattered), row.1.map(float)];
            let small: Vec<Row> = small.iter().map(row).collect();
            let mut left: Vec<Row> = left.iter().map(row).collect();
            if is_sorted {
                left.sort();
            }
            let types = [NumberType::I64, NumberType::F64];
            let number = |key: usize| Key::Number(Value::Column(types[key], key));
            let key_of = |row: &Row| -> Option<Vec<u64>> {
                let keys = row[..keys].iter().enumerate();
                keys.map(|(key, bits)| bits.map(|bits| equal(key, bits))).collect()
            };
            let mut join = EqualJoin::new((0..keys).map(number).collect());
            let mut expected: HashMap<Vec<u64>, Vec<u32>> = HashMap::new();
            for (row, index) in small.iter().zip(0..) {
                let small = [
                    row[0].map_or(SmallKey::Null, |bits| SmallKey::Integer(bits as i64)),
                    row[1].map_or(SmallKey::Null, |bits| SmallKey::Float(f64::from_bits(bits))),
                ];
                join.push(&small[..keys]);
                if let Some(key) = key_of(row) {
                    expected.entry(key).or_default().push(index);
                }
            }
            join.finish(if has_filter { usize::MAX } else { 0 });
            let columns = columns(&left);
            let lanes = columns.each_ref().map(Column::lane);
            let frame = Frame { lanes: &lanes, ..Frame::of_nulls(left.len(), &[]) };
            let mut selection = Selection::first(left.len());
            let mut found: Vec<Vec<u32>> = vec![Vec::new(); left.len()];
            join.find(&frame, &mut selection).unwrap();
            while !selection.is_empty() {
                selection.for_each(|row| found[row].push(join.found().rows()[row]));
                join.find_next(&mut selection);
            }
            for (row, found) in left.iter().zip(found) {
                let wanted = key_of(row).and_then(|key| expected.get(&key).cloned());
                prop_assert_eq!(found, wanted.unwrap_or_default());
            }
        }
    }
}
