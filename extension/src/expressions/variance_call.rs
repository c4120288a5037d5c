//! Translates calls of variances and standard deviations.

use lanes_columnar::aggregate::sum::IntegerResult;
use lanes_columnar::aggregate::wide_moments::WideMoments;
use lanes_columnar::vector::number::NumberType;
use pgrx::pg_sys;

use super::aggregate_call::{self, Moment, Parts, Shape};
use super::translate::{Translation, Translator};
use crate::pg::tree::Expr;

/// Whether a variance is of a sample, and whether its root is the result.
pub type Spread = (bool, bool);

/// The type of numbers whose variance or deviation an aggregate, by its OID, computes.
pub fn spread_of(function: u32) -> Option<(NumberType, Spread)> {
    use NumberType::{F32, F64, I16, I32, I64};
    use pg_sys::*;
    Some(match function {
        F_VAR_POP_INT2 => (I16, (false, false)),
        F_VAR_POP_INT4 => (I32, (false, false)),
        F_VAR_POP_FLOAT4 => (F32, (false, false)),
        F_VAR_POP_FLOAT8 => (F64, (false, false)),
        F_VAR_SAMP_INT2 | F_VARIANCE_INT2 => (I16, (true, false)),
        F_VAR_SAMP_INT4 | F_VARIANCE_INT4 => (I32, (true, false)),
        F_VAR_SAMP_FLOAT4 | F_VARIANCE_FLOAT4 => (F32, (true, false)),
        F_VAR_SAMP_FLOAT8 | F_VARIANCE_FLOAT8 => (F64, (true, false)),
        F_STDDEV_POP_INT2 => (I16, (false, true)),
        F_STDDEV_POP_INT4 => (I32, (false, true)),
        F_STDDEV_POP_FLOAT4 => (F32, (false, true)),
        F_STDDEV_POP_FLOAT8 => (F64, (false, true)),
        F_STDDEV_SAMP_INT2 | F_STDDEV_INT2 => (I16, (true, true)),
        F_STDDEV_SAMP_INT4 | F_STDDEV_INT4 => (I32, (true, true)),
        F_STDDEV_SAMP_FLOAT4 | F_STDDEV_FLOAT4 => (F32, (true, true)),
        F_STDDEV_SAMP_FLOAT8 | F_STDDEV_FLOAT8 => (F64, (true, true)),
        F_VAR_POP_INT8 => (I64, (false, false)),
        F_VAR_SAMP_INT8 | F_VARIANCE_INT8 => (I64, (true, false)),
        F_STDDEV_POP_INT8 => (I64, (false, true)),
        F_STDDEV_SAMP_INT8 | F_STDDEV_INT8 => (I64, (true, true)),
        _ => return None,
    })
}

/// A variance or deviation of numbers of a type.
pub fn variance(
    translator: &mut Translator,
    argument: Expr<'_>,
    number: NumberType,
    (sample, root): Spread,
) -> Translation<Parts> {
    let moment = Moment::Variance { sample, root };
    let shape = Shape::Moment(moment);
    match number {
        NumberType::I16 => {
            aggregate_call::integers::<i16>(translator, argument, IntegerResult::Moments, shape)
        }
        NumberType::I32 => {
            aggregate_call::integers::<i32>(translator, argument, IntegerResult::Moments, shape)
        }
        NumberType::F32 => aggregate_call::moments::<f32>(translator, argument, moment),
        NumberType::F64 => aggregate_call::moments::<f64>(translator, argument, moment),
        NumberType::I64 => {
            let value = aggregate_call::number(translator, argument, number)?;
            Ok((value, Box::new(WideMoments::default()), shape))
        }
    }
}
