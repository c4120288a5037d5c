//! INSERT … ON CONFLICT DO NOTHING, for rows that are written together: hints at equal keys, and entries that are made
//! until a key is there already.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use pgrx::pg_sys;

use super::{HeldRows, OpenIndexes};
use crate::pg::datum;
use crate::pg::slot::{RowHeader, Slot};

/// The most keys of a row that are hinted at.
const KEYS_MAX: usize = 8;

/// Numbers of some keys of a row.
#[derive(Clone, Copy, Default)]
pub struct KeyNumbers {
    numbers: [u64; KEYS_MAX],
    count: usize,
}

impl KeyNumbers {
    fn push(&mut self, number: u64) {
        if let Some(place) = self.numbers.get_mut(self.count) {
            *place = number;
            self.count += 1;
        }
    }

    /// The numbers.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        self.numbers[..self.count].iter().copied()
    }
}

impl OpenIndexes {
    /// A number for each key of a row for which [`Self::have_no_key_of`] was just called. Rows with other numbers
    /// mostly have other keys, and equal values mostly have equal bytes: the numbers are hints. An ERROR jumps over
    /// this frame.
    pub fn hash_keys(self, slot: Slot<'_>) -> KeyNumbers {
        let (values, nulls) = slot.read_all();
        let descriptor = slot.descriptor();
        let mut numbers = KeyNumbers::default();
        for place in 0..self.count() {
            let is_hashed = |number: &&[i16]| {
                let mut columns = number.iter();
                columns.all(|&number| number > 0 && !nulls[number as usize - 1])
            };
            let Some(columns) = self.unique_columns(place).filter(is_hashed) else {
                continue;
            };
            let mut hasher = DefaultHasher::new();
            place.hash(&mut hasher);
            for &number in columns {
                let column = number as usize - 1;
                let (value, attribute) = (values[column], descriptor.attribute(column));
                match attribute.attbyval {
                    true => value.value().hash(&mut hasher),
                    false => datum::bytes_of(value, attribute.attlen).hash(&mut hasher),
                }
            }
            numbers.push(hasher.finish());
        }
        numbers
    }

    /// Makes the entries of some of the held rows, one after the other, and returns the first that is to be taken back,
    /// or the end.
    pub fn enter_until_taken<T>(
        self,
        rows: &HeldRows<T>,
        some: Range<usize>,
        header: RowHeader,
        id_of: impl Fn(usize) -> pg_sys::ItemPointerData + Copy,
    ) -> usize {
        let mut row = some.start;
        while row < some.end {
            self.show(rows, row, id_of(row), header);
            if !self.enter_shown() {
                break;
            }
            row += 1;
        }
        row
    }
}
