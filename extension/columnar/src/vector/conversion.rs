//! Conversions of numbers from type to type, as PostgreSQL's casts do them.

use super::number::{Number, NumberType, Scalar};
use super::selection::Selection;
use super::value::{Buffer, Operand};
use super::{Evaluation, EvaluationError};
use crate::with_number;

/// The numbers of a vector as numbers of another type.
pub(super) fn convert<A: Number, B: Number>(
    operand: Operand,
    rows: usize,
    selection: &Selection,
    buffer: &mut Buffer,
) -> Evaluation<Operand> {
    let out = buffer.values.as_mut_ptr().cast::<B>();
    let (source, validity) = match operand {
        Operand::Null => return Ok(Operand::Null),
        Operand::Same(scalar) if selection.is_empty() => return Ok(Operand::Same(scalar)),
        Operand::Same(scalar) => {
            return Ok(Operand::Same(
                convert_one::<A, B>(A::of_scalar(scalar))?.to_scalar(),
            ));
        }
        Operand::Each { values, validity } => (values.cast::<A>(), validity),
    };
    let counted = operand.valid(selection);
    let always_fits = match (A::TYPE, B::TYPE) {
        (_, NumberType::F64) => true,
        (NumberType::F32, _) | (NumberType::F64, _) => false,
        (_, NumberType::F32) => true,
        (a, b) => a.width() <= b.width(),
    };
    // SAFETY: the operand has `A`s for all rows, the buffer room for as many `B`s.
    unsafe {
        if always_fits {
            for row in 0..rows {
                *out.add(row) = widen::<A, B>(*source.add(row));
            }
        } else {
            counted.try_for_each(|row| {
                *out.add(row) = convert_one::<A, B>(*source.add(row))?;
                Ok::<(), EvaluationError>(())
            })?;
        }
    }
    Ok(Operand::Each {
        values: out.cast_const().cast(),
        validity,
    })
}

/// The number of the type `from` that equals `wide` after a conversion to the type `to`. Returns
/// `None` if there is none, or if the conversion does not keep the order of all numbers.
pub(super) fn narrow_twin(from: NumberType, to: NumberType, wide: Scalar) -> Option<Scalar> {
    let keeps_order = match (from, to) {
        (NumberType::I32 | NumberType::I64, NumberType::F32) | (NumberType::I64, _) => false,
        (from, to) => from.width() < to.width() && (!from.is_float() || to.is_float()),
    };
    if !keeps_order {
        return None;
    }
    with_number!(from, A => with_number!(to, B => {
        let wide = B::of_scalar(wide);
        let narrow = convert_one::<B, A>(wide).ok()?;
        widen::<A, B>(narrow).order(wide).is_eq().then(|| narrow.to_scalar())
    }))
}

/// A conversion that cannot fail.
#[inline]
fn widen<A: Number, B: Number>(value: A) -> B {
    match B::TYPE {
        NumberType::F64 => B::of_scalar(value.to_f64().to_scalar()),
        // From an integer: rounded once, as the C cast does.
        NumberType::F32 => B::of_scalar((value.to_scalar().0 as i64 as f32).to_scalar()),
        _ => B::of_scalar(value.to_scalar()),
    }
}

/// A conversion with the rules of PostgreSQL's casts: rounding half to even, and an error if the
/// result does not fit.
pub(super) fn convert_one<A: Number, B: Number>(value: A) -> Evaluation<B> {
    let out_of_range = EvaluationError::IntegerOutOfRange(B::TYPE.width() as u8);
    if A::TYPE.is_float() {
        let wide = value.to_f64();
        return match B::TYPE {
            NumberType::F64 => Ok(B::of_scalar(wide.to_scalar())),
            NumberType::F32 => {
                let narrow = wide as f32;
                if narrow.is_infinite() && !wide.is_infinite() {
                    Err(EvaluationError::FloatOverflow)
                } else if narrow == 0.0 && wide != 0.0 {
                    Err(EvaluationError::FloatUnderflow)
                } else {
                    Ok(B::of_scalar(narrow.to_scalar()))
                }
            }
            integer => {
                let bits = integer.width() * 8;
                let limit = 2f64.powi(bits as i32 - 1);
                let rounded = wide.round_ties_even();
                if rounded.is_nan() || rounded < -limit || rounded >= limit {
                    return Err(out_of_range);
                }
                Ok(B::of_scalar((rounded as i64).to_scalar()))
            }
        };
    }
    let wide = value.to_scalar().0 as i64;
    let fits = match B::TYPE {
        NumberType::I16 => i16::try_from(wide).is_ok(),
        NumberType::I32 => i32::try_from(wide).is_ok(),
        NumberType::I64 | NumberType::F32 | NumberType::F64 => true,
    };
    if fits {
        Ok(widen::<A, B>(value))
    } else {
        Err(out_of_range)
    }
}
