//! Room for the numbers of a vector that are written row by row.

use super::VECTOR_WORDS;
use super::number::{Number, NumberType, Scalar};
use super::selection::Selection;
use super::value::Operand;
use crate::limits::VECTOR_ROWS;
use lanes_simd::copy::{self, Bits};

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

    /// Copies the numbers of the selected rows of a vector of so many rows.
    ///
    /// # Safety
    /// The operand is of the type `number`, and of such a vector.
    pub(super) unsafe fn copy(
        &mut self,
        number: NumberType,
        operand: Operand,
        rows: usize,
        selection: &Selection,
    ) {
        let valid = operand.valid(selection);
        let pairs = self.validity.iter_mut().zip(&valid.words);
        pairs.for_each(|(known, word)| *known |= word);
        // SAFETY: this function's contract; there is room for the numbers of all rows.
        unsafe {
            match number.width() {
                2 => self.copy_bits::<u16>(operand, rows, &valid, |bits| bits as u16),
                4 => self.copy_bits::<u32>(operand, rows, &valid, |bits| bits as u32),
                _ => self.copy_bits::<u64>(operand, rows, &valid, |bits| bits),
            }
        }
    }

    /// Copies the numbers of some rows by their bits, which those of a [`Scalar`] end with.
    ///
    /// # Safety
    /// As for [`copy`](Self::copy), and numbers have the size of `B`.
    unsafe fn copy_bits<B: Bits>(
        &mut self,
        operand: Operand,
        rows: usize,
        valid: &Selection,
        bits: fn(u64) -> B,
    ) {
        let (out, words) = (self.values.as_mut_ptr().cast::<B>(), valid.as_ptr());
        // SAFETY: this function's contract.
        unsafe {
            match operand {
                Operand::Each { values, .. } => copy::selected(values.cast(), rows, words, out),
                Operand::Same(Scalar(value)) => copy::fill(bits(value), rows, words, out),
                Operand::Null => {}
            }
        }
    }

    /// The numbers of the selected rows. They are valid until the next change.
    pub(super) fn operand(&self, selection: &Selection) -> Operand {
        let mut words = selection.words.iter().zip(&self.validity);
        let has_nulls = words.any(|(selected, valid)| selected & !valid != 0);
        Operand::Each {
            values: self.values.as_ptr().cast(),
            validity: match has_nulls {
                true => self.validity.as_ptr(),
                false => std::ptr::null(),
            },
        }
    }
}
