//! A column of numbers in private memory.

use std::ops::Range;

use crate::bits;
use crate::buffer::reserve_huge;
use crate::vector::number::Scalar;

/// A column of numbers, some of which are NULL.
///
/// Invariant: `nulls` is empty until the first NULL, and has a bit for each row afterwards.
#[derive(Clone, Default)]
pub struct NumberColumn {
    values: Vec<u64>,
    nulls: Vec<u64>,
}

impl NumberColumn {
    /// No row, with room for so many.
    pub fn with_room(rows: usize) -> NumberColumn {
        let mut column = NumberColumn::default();
        column.reserve(rows);
        column
    }

    /// The numbers, if none is NULL.
    #[inline]
    pub fn values(&self) -> &[u64] {
        debug_assert!(self.nulls.is_empty());
        &self.values
    }

    /// Makes room for so many more rows.
    #[inline]
    pub fn reserve(&mut self, rows: usize) {
        let wanted = self.values.len() + rows;
        reserve_huge(&mut self.values, wanted);
    }

    /// Writes some rows: their numbers, and a bit for each that is not NULL. The bits begin with a word.
    pub fn copy(&self, rows: Range<usize>, values: &mut [u64], validity: &mut [u64]) {
        let count = rows.len();
        values[..count].copy_from_slice(&self.values[rows.clone()]);
        for (word, bits) in validity[..bits::words(count)].iter_mut().enumerate() {
            *bits = u64::MAX >> (64 - (count - 64 * word).min(64));
        }
        if self.has_nulls() {
            let nulls = rows
                .enumerate()
                .filter(|(_, row)| bits::get(&self.nulls, *row));
            nulls.for_each(|(place, _)| validity[place / 64] &= !(1 << (place % 64)));
        }
    }

    /// How many rows there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Adds a row.
    #[inline]
    pub fn push(&mut self, value: Option<Scalar>) {
        match value {
            Some(Scalar(bits)) => self.push_value(bits),
            None => self.push_null(),
        }
    }

    /// Adds a row that is not NULL.
    #[inline]
    pub fn push_value(&mut self, bits: u64) {
        if !self.nulls.is_empty() && self.values.len().is_multiple_of(64) {
            self.nulls.push(0);
        }
        self.values.push(bits);
    }

    /// Adds numbers. None of the column is NULL.
    #[inline]
    pub fn extend(&mut self, numbers: impl ExactSizeIterator<Item = u64>) {
        debug_assert!(self.nulls.is_empty());
        self.reserve(numbers.len());
        self.values.extend(numbers);
    }

    /// Adds rows that are not NULL.
    #[inline]
    pub fn push_values(&mut self, numbers: impl ExactSizeIterator<Item = u64>) {
        match self.nulls.is_empty() {
            true => self.extend(numbers),
            false => numbers.for_each(|number| self.push_value(number)),
        }
    }

    /// Replaces each number.
    pub fn replace(&mut self, by: impl Fn(u64) -> u64) {
        self.values.iter_mut().for_each(|value| *value = by(*value));
    }

    /// Adds NULL.
    #[inline]
    pub fn push_null(&mut self) {
        let row = self.values.len();
        self.values.push(0);
        self.nulls.resize(bits::words(row + 1), 0);
        self.nulls[row / 64] |= 1 << (row % 64);
    }

    /// Whether some row is NULL.
    #[inline]
    pub fn has_nulls(&self) -> bool {
        !self.nulls.is_empty()
    }

    /// Whether a row is NULL.
    #[inline]
    pub fn is_null(&self, row: usize) -> bool {
        !self.nulls.is_empty() && bits::get(&self.nulls, row)
    }

    /// The number of a row; `None` is NULL.
    #[inline]
    pub fn get(&self, row: usize) -> Option<Scalar> {
        (!self.is_null(row)).then(|| Scalar(self.values[row]))
    }

    /// The named rows in this order.
    pub fn gather(&self, rows: &[u32]) -> NumberColumn {
        let mut values = Vec::new();
        reserve_huge(&mut values, rows.len());
        values.extend(rows.iter().map(|row| self.values[*row as usize]));
        let mut nulls = Vec::new();
        if self.has_nulls() {
            nulls = vec![0; bits::words(rows.len())];
            for (place, row) in rows.iter().enumerate() {
                let is_null = bits::get(&self.nulls, *row as usize);
                nulls[place / 64] |= u64::from(is_null) << (place % 64);
            }
        }
        NumberColumn { values, nulls }
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        size_of::<u64>() * (self.values.capacity() + self.nulls.capacity())
    }
}
