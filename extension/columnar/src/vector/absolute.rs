//! Numbers without their signs: PostgreSQL's `abs`.

use super::number::{Number, NumberType, Operation, Scalar};
use super::selection::Selection;
use super::value::{Buffer, Operand};
use super::{Evaluation, EvaluationError};

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
    let (numbers, validity) = match operand {
        Operand::Each { values, validity } => (values.cast::<T>(), validity),
        Operand::Same(number) if !selection.is_empty() => {
            return Ok(Operand::Same(checked(T::of_scalar(number))?.to_scalar()));
        }
        other => return Ok(other),
    };
    let out = buffer.values.as_mut_ptr().cast::<T>();
    let mut doubtful = false;
    // SAFETY: the operand has a `T` for each row of the vector, the buffer room for as many.
    unsafe {
        for row in 0..rows {
            let (value, doubt) = fast(*numbers.add(row));
            *out.add(row) = value;
            doubtful |= doubt;
        }
        if doubtful {
            // Perhaps only in rows that do not count.
            operand.valid(selection).try_for_each(|row| {
                *out.add(row) = checked(*numbers.add(row))?;
                Ok::<(), EvaluationError>(())
            })?;
        }
    }
    Ok(Operand::Each {
        values: out.cast_const().cast(),
        validity,
    })
}

/// A number without its sign.
fn checked<T: Number>(value: T) -> Evaluation<T> {
    match fast(value) {
        (_, true) => T::ZERO.apply(Operation::Subtract, value),
        (value, false) => Ok(value),
    }
}
