//! Keys that are numbers, of which the small side has many: found by all of their values at once.
//!
//! Otherwise each key has a hash table of its values, and pairs of keys have another, and rows are looked up in them
//! one by one. [`KeyTable`] looks up a whole vector, so the processor waits for the memory of many rows at a time.

use crate::aggregate::key::KeyReader;
use crate::aggregate::key_table::{KeyTable, RowWords};
use crate::limits::VECTOR_ROWS;
use crate::vector::Evaluation;
use crate::vector::frame::Frame;
use crate::vector::selection::Selection;

/// Fewer keys are in the cache, wherever they are.
pub(super) const KEYS_MIN: usize = if cfg!(test) { 8 } else { 1 << 12 };
/// Bytes of slots and of the filter for each key.
const BYTES_A_KEY: usize = 28;
/// Rows come in stretches of equal keys if fewer than one in so many has other keys than the row before.
const STRETCH_ROWS: usize = 4;

/// The keys of a small side.
pub(super) struct NumberKeys {
    table: KeyTable,
    rows: RowWords,
}

impl NumberKeys {
    /// The bytes that so many keys of so many words take, roughly.
    pub(super) fn expected_bytes(width: usize, count: usize) -> usize {
        count * (width * size_of::<u64>() + BYTES_A_KEY)
    }

    /// The keys with the ids below `count`, of which `word` gives the canonical bits of each number.
    pub(super) fn new(width: usize, count: usize, word: impl Fn(u32, usize) -> u64) -> Self {
        let mut keys = NumberKeys {
            table: KeyTable::new(width),
            rows: RowWords::new(width),
        };
        let mut ids = Box::new([0; VECTOR_ROWS]);
        for first in (0..count).step_by(VECTOR_ROWS) {
            let rows = VECTOR_ROWS.min(count - first);
            for (key, words) in keys.rows.words.iter_mut().enumerate() {
                for (row, value) in words[..rows].iter_mut().enumerate() {
                    *value = word((first + row) as u32, key);
                }
            }
            let all = Selection::first(rows);
            keys.table.ids(&mut keys.rows, &all, rows, &mut ids);
        }
        debug_assert_eq!(keys.table.len(), count, "ids have different keys");
        keys.table.expect_unknown();
        keys
    }

    /// Writes the ids of the keys of the selected rows, and returns the rows that have one. `None`: rows with
    /// equal keys follow each other, so they are better looked up a stretch at a time.
    ///
    /// # Errors
    /// The first error that evaluating a key of a selected row raises.
    pub(super) fn find<'a>(
        &mut self,
        readers: impl Iterator<Item = &'a mut KeyReader>,
        frame: &Frame<'_>,
        selection: &Selection,
        ids: &mut [u32; VECTOR_ROWS],
    ) -> Evaluation<Option<Selection>> {
        self.rows.has_nulls = false;
        for (key, reader) in readers.enumerate() {
            self.rows.read_numbers(key, reader, frame, selection)?;
        }
        if self.has_stretches(frame.rows) {
            return Ok(None);
        }
        let known = self.table.known(&mut self.rows, selection, frame.rows, ids);
        Ok(Some(known))
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

    pub(super) fn bytes(&self) -> usize {
        self.table.bytes()
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
    use crate::vector::number::NumberType;
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

    /// Integers far from each other, so that no array of them is made.
    fn scattered(key: u8) -> u64 {
        (i64::from(key) * 1_000_000_007 - 90_000_000_000) as u64
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
            keys in 1..3_usize, is_sorted: bool,
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
            join.finish(usize::MAX);
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
