//! Values of operands, row by row, for users outside of this crate.
//!
//! An [`Operand`] is made for a vector, and has a number of its type for each row of the vector.
//! The caller reads it before the vector that it was made for is left.

use super::number::{Number, NumberType, Scalar};
use super::selection::Selection;
use super::value::Operand;
use crate::aggregate::ema::order_key;
use crate::limits::VECTOR_ROWS;
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

/// Calls `visit` for each selected row.
#[inline(always)]
fn each(rows: &Selection, visit: impl FnMut(usize)) {
    let count = rows.count();
    match *rows == Selection::first(count) {
        true => (0..count).for_each(visit),
        false => rows.for_each(visit),
    }
}

/// Appends a number of each selected row. No number of the column is NULL.
#[inline(always)]
fn append_each(rows: &Selection, column: &mut NumberColumn, number: impl Fn(usize) -> u64) {
    let count = rows.count();
    match *rows == Selection::first(count) {
        true => column.extend((0..count).map(number)),
        false => rows.for_each(|row| column.push_value(number(row))),
    }
}

/// Writes the numbers of the selected rows, which are not NULL, as unsigned integers in the same order, or in the
/// opposite one.
pub fn unsigned_order_keys(
    number: NumberType,
    operand: Operand,
    rows: &Selection,
    is_descending: bool,
    keys: &mut [u64; VECTOR_ROWS],
) {
    let flip = if is_descending { u64::MAX } else { 0 };
    with_number!(number, T => each(rows, |row| {
        // SAFETY: the operand has a number of this type for each row of its vector.
        let key = order_key(unsafe { operand.get::<T>(row) });
        keys[row] = (key as u64 ^ 1 << 63) ^ flip;
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
    column.reserve(rows.count());
    with_number!(number, T => {
        // SAFETY: the operand has a number of this type for each row of its vector.
        let scalar = |row: usize| unsafe { operand.get::<T>(row) }.to_scalar().0;
        if valid == *rows && !column.has_nulls() {
            return append_each(rows, column, scalar);
        }
        rows.for_each(|row| match valid.contains(row) {
            true => column.push_value(scalar(row)),
            false => column.push_null(),
        });
    });
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
    column.reserve(rows.count());
    with_number!(number, T => {
        let key = |row: usize| {
            // SAFETY: the operand has a number of this type for each row of its vector.
            let number = unsafe { operand.get::<T>(row) };
            (order_key(number) as u64 ^ 1 << 63) ^ flip
        };
        if valid == *rows && !column.has_nulls() {
            return append_each(rows, column, key);
        }
        rows.for_each(|row| match valid.contains(row) {
            true => column.push_value(key(row)),
            false => column.push_null(),
        });
    });
}
