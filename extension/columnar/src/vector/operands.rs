//! Values of operands, row by row, for users outside of this crate.
//!
//! An [`Operand`] is made for a vector, and has a number of its type for each row of the vector.
//! The caller reads it before the vector that it was made for is left.

use super::number::{Number, NumberType, Scalar};
use super::selection::Selection;
use super::value::Operand;
use crate::aggregate::ema::order_key;
use crate::over::numbers::NumberColumn;
use crate::with_number;

/// The number of a row, which is not NULL.
#[inline]
pub fn scalar(number: NumberType, operand: Operand, row: usize) -> Scalar {
    // SAFETY: the operand has a number of this type for each row of its vector.
    with_number!(number, T => unsafe { operand.get::<T>(row).to_scalar() })
}

/// The number of a row; `None` is NULL.
#[inline]
pub fn value(number: NumberType, operand: Operand, row: usize) -> Option<Scalar> {
    // SAFETY: the operand has a number for each row of its vector.
    let is_valid = unsafe { operand.is_valid(row) };
    is_valid.then(|| scalar(number, operand, row))
}

/// Writes the numbers of the selected rows, which are not NULL, as integers in the same order.
pub fn order_keys(number: NumberType, operand: Operand, rows: &Selection, keys: &mut [i64]) {
    with_number!(number, T => rows.for_each(|row| {
        // SAFETY: the operand has a number of this type for each row of its vector.
        keys[row] = order_key(unsafe { operand.get::<T>(row) });
    }));
}

/// Appends the numbers of the selected rows; NULL for those that are not among the counted rows,
/// for which alone the operand was evaluated.
pub fn append(
    number: NumberType,
    operand: Operand,
    rows: &Selection,
    counted: &Selection,
    column: &mut NumberColumn,
) {
    let valid = operand.valid(counted);
    with_number!(number, T => rows.for_each(|row| match valid.contains(row) {
        // SAFETY: the operand has a number of this type for each row of its vector.
        true => column.push_value(unsafe { operand.get::<T>(row) }.to_scalar().0),
        false => column.push_null(),
    }));
}

/// Appends the numbers of the selected rows as unsigned integers in the same order, or in the
/// opposite one.
pub fn append_order_keys(
    number: NumberType,
    operand: Operand,
    rows: &Selection,
    is_descending: bool,
    column: &mut NumberColumn,
) {
    let flip = if is_descending { u64::MAX } else { 0 };
    let valid = operand.valid(rows);
    with_number!(number, T => rows.for_each(|row| match valid.contains(row) {
        true => {
            // SAFETY: the operand has a number of this type for each row of its vector.
            let key = order_key(unsafe { operand.get::<T>(row) });
            column.push_value((key as u64 ^ 1 << 63) ^ flip);
        }
        false => column.push_null(),
    }));
}
