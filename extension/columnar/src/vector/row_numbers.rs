//! Room for the numbers of a vector that are written row by row.

use super::VECTOR_WORDS;
use super::number::{Number, Scalar};
use super::selection::Selection;
use super::value::Operand;
use crate::limits::VECTOR_ROWS;

/// A number or NULL for each row of a vector. Rows that were not written are NULL.
pub(super) struct RowNumbers {
    /// Values of the expression's type, side by side.
    values: Box<[u64; VECTOR_ROWS]>,
    validity: [u64; VECTOR_WORDS],
}

impl RowNumbers {
    /// All rows are NULL.
    pub(super) fn new() -> RowNumbers {
        RowNumbers {
            values: Box::new([0; VECTOR_ROWS]),
            validity: [0; VECTOR_WORDS],
        }
    }

    /// Makes all rows NULL.
    pub(super) fn clear(&mut self) {
        self.validity.fill(0);
    }

    /// Writes the number of a row.
    ///
    /// # Panics
    /// If a vector has no such row.
    #[inline]
    pub(super) fn set<T: Number>(&mut self, row: usize, number: Option<Scalar>) {
        assert!(row < VECTOR_ROWS, "row {row} of a vector");
        if let Some(scalar) = number {
            self.validity[row / 64] |= 1 << (row % 64);
            // SAFETY: there is room for so many numbers of 64 bits, and no number is wider.
            unsafe { *self.values.as_mut_ptr().cast::<T>().add(row) = T::of_scalar(scalar) };
        }
    }

    /// Copies the numbers of some rows.
    ///
    /// # Safety
    /// The operand is of type `T`, and the rows are rows of its vector.
    pub(super) unsafe fn copy<T: Number>(&mut self, operand: Operand, rows: &Selection) {
        let valid = operand.valid(rows);
        let values = self.values.as_mut_ptr().cast::<T>();
        for (index, word) in valid.words.iter().enumerate() {
            self.validity[index] |= word;
            let mut open = *word;
            // SAFETY: this function's contract; there is room for the numbers of all rows.
            unsafe {
                if open == u64::MAX {
                    for row in index * 64..index * 64 + 64 {
                        *values.add(row) = operand.get::<T>(row);
                    }
                    continue;
                }
                while open != 0 {
                    let row = index * 64 + open.trailing_zeros() as usize;
                    open &= open - 1;
                    *values.add(row) = operand.get::<T>(row);
                }
            }
        }
    }

    /// The numbers. They are valid until the next change.
    pub(super) fn operand(&self) -> Operand {
        Operand::Each {
            values: self.values.as_ptr().cast(),
            validity: self.validity.as_ptr(),
        }
    }
}
