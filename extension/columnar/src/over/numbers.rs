//! A column of numbers in private memory.

use crate::bits;
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
        NumberColumn {
            values: Vec::with_capacity(rows),
            nulls: Vec::new(),
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
        let values = rows.iter().map(|row| self.values[*row as usize]).collect();
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
