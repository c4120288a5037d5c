//! Numbers without their signs: PostgreSQL's `abs`.

use super::Evaluation;
use super::number::{Number, NumberType, Operation, Scalar};
use super::selection::Selection;
use super::value::{Buffer, Operand, map};

/// A number without its sign, and whether there is an error: the least integer has no counterpart.
#[inline(always)]
fn fast<T: Number>(value: T) -> (T, bool) {
    let unsigned = |sign: u64| T::of_scalar(Scalar(value.to_scalar().0 & !sign));
    match T::TYPE {
        NumberType::F64 => (unsigned(1 << 63), false),
        NumberType::F32 => (unsigned(1 << 31), false),
        _ if value.order(T::ZERO).is_lt() => T::ZERO.apply_fast(Operation::Subtract, value),
        _ => (value, false),
    }
}

/// The numbers of an operand without their signs.
///
/// # Errors
/// One of the selected integers is the least of its type.
pub(super) fn absolute<T: Number>(
    operand: Operand,
    rows: usize,
    selection: &Selection,
    buffer: &mut Buffer,
) -> Evaluation<Operand> {
    map(operand, (rows, selection), buffer, fast::<T>, checked::<T>)
}

/// A number without its sign, or the error that there is none.
fn checked<T: Number>(value: T) -> Evaluation<T> {
    match fast(value) {
        (_, true) => T::ZERO.apply(Operation::Subtract, value),
        (value, false) => Ok(value),
    }
}
