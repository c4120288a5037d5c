//! The joined columns of a vector's rows, as operands.

use super::found::Found;
use super::series::SeriesColumn;
use crate::limits::VECTOR_ROWS;
use crate::vector::VECTOR_WORDS;
use crate::vector::number::{Number, NumberType, Scalar};
use crate::vector::selection::Selection;
use crate::vector::value::Operand;
use crate::with_number;

/// Numbers for the rows of a vector.
pub struct JoinedColumn {
    number: NumberType,
    values: Box<[u64; VECTOR_ROWS]>,
    validity: Box<[u64; VECTOR_WORDS]>,
}

impl JoinedColumn {
    /// Nothing yet.
    pub fn new(number: NumberType) -> JoinedColumn {
        JoinedColumn {
            number,
            values: Box::new([0; VECTOR_ROWS]),
            validity: Box::new([0; VECTOR_WORDS]),
        }
    }

    /// The numbers' type.
    pub fn number(&self) -> NumberType {
        self.number
    }

    /// The operand; it changes with the next vector.
    pub fn operand(&self) -> Operand {
        Operand::Each {
            values: self.values.as_ptr().cast(),
            validity: self.validity.as_ptr(),
        }
    }

    /// Takes a column's numbers at the places of some rows; the others are NULL.
    pub fn gather(
        &mut self,
        column: &SeriesColumn,
        places: &[u32; VECTOR_ROWS],
        found: &Selection,
    ) {
        *self.validity = found.words;
        let values = &column.values[..];
        with_number!(self.number, T => {
            let (out, _) = self.parts::<T>();
            found.for_each(|row| out[row] = T::of_scalar(Scalar(values[places[row] as usize])));
        });
        if let Some(valid) = &column.valid {
            found.for_each(|row| {
                if !valid[places[row] as usize] {
                    self.validity[row / 64] &= !(1 << (row % 64));
                }
            });
        }
    }

    /// Takes a column's numbers of what some rows have found; the others are NULL.
    pub fn gather_found(&mut self, column: &SeriesColumn, found: &Found, rows: &Selection) {
        let Some(stretches) = found.stretches() else {
            self.gather(column, found.rows(), rows);
            return;
        };
        *self.validity = rows.words;
        let values = &column.values[..];
        with_number!(self.number, T => {
            let (out, _) = self.parts::<T>();
            for (place, rows) in stretches.iter() {
                // A stretch that found nothing has a place past the last.
                if let Some(value) = values.get(place as usize) {
                    out[rows].fill(T::of_scalar(Scalar(*value)));
                }
            }
        });
        if let Some(valid) = &column.valid {
            for (place, rows) in stretches.iter() {
                if valid.get(place as usize) == Some(&false) {
                    for row in rows {
                        self.validity[row / 64] &= !(1 << (row % 64));
                    }
                }
            }
        }
    }

    /// Forgets the numbers of the vector before.
    pub(super) fn clear(&mut self) {
        self.validity.fill(0);
    }

    /// Sets the number of a row.
    pub(super) fn set<T: Number>(&mut self, row: usize, value: T) {
        let (values, validity) = self.parts::<T>();
        values[row] = value;
        validity[row / 64] |= 1 << (row % 64);
    }

    /// The numbers, and the bits of those that are not NULL.
    pub(super) fn parts<T: Number>(&mut self) -> (&mut [T], &mut [u64; VECTOR_WORDS]) {
        debug_assert_eq!(T::TYPE, self.number);
        // SAFETY: no number is wider than 64 bits or aligned more strictly, and every pattern of
        // bits is a number.
        let values =
            unsafe { std::slice::from_raw_parts_mut(self.values.as_mut_ptr().cast(), VECTOR_ROWS) };
        (values, &mut self.validity)
    }
}
