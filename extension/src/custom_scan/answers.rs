//! The engine's answers as PostgreSQL's datums, computed as the final functions of its aggregates compute them.

use lanes_columnar::aggregate::{Answer, KeyValue};
use lanes_columnar::vector::number::Scalar;
use pgrx::pg_sys;

use super::aggregate_call::{KeyShape, Moment, Shape};
use super::epoch_bucket;
use super::translate::to_datum;
use crate::functions::float8;

/// A result; `None` is NULL. Memory is of the current context.
pub fn datum(answer: Answer, shape: Shape) -> Option<pg_sys::Datum> {
    match (answer, shape) {
        (Answer::Null, _) => None,
        (Answer::Count(count), _) => Some(pg_sys::Datum::from(count as i64)),
        (Answer::Integer(sum), Shape::BigInt) => Some(pg_sys::Datum::from(sum as i64)),
        (Answer::Integer(sum), _) => Some(numeric(sum)),
        (Answer::Number(scalar), Shape::Number(number)) => Some(to_datum(number, scalar)),
        (Answer::Number(scalar), _) => Some(pg_sys::Datum::from(scalar.0 as usize)),
        (Answer::Quotient(dividend, divisor), _) => Some(double(float8::divide(dividend, divisor))),
        (Answer::Truth(truth), _) => Some(pg_sys::Datum::from(truth)),
        // SAFETY: two numerics; the divisor is not zero.
        (Answer::Average { count, sum }, _) => unsafe {
            let sides = [Some(numeric(sum)), Some(numeric(i128::from(count)))];
            pgrx::direct_function_call_as_datum(pg_sys::numeric_div, &sides)
        },
        (
            Answer::Moments {
                count,
                sum,
                squares,
            },
            Shape::Moment(moment),
        ) => match moment {
            Moment::Average => Some(double(sum / count)),
            Moment::Variance { sample: true, .. } if count <= 1.0 => None,
            Moment::Variance { sample, root } => {
                let variance = squares / if sample { count - 1.0 } else { count };
                Some(double(if root { variance.sqrt() } else { variance }))
            }
        },
        (Answer::Moments { .. } | Answer::IntegerMoments { .. }, _) => None,
    }
}

/// A key; `None` is NULL. A text is lent: it lives as long as the groups.
pub fn key_datum(value: KeyValue<'_>, shape: KeyShape) -> Option<pg_sys::Datum> {
    match (value, shape) {
        (KeyValue::Null, _) => None,
        (KeyValue::Text(item), _) => Some(pg_sys::Datum::from(item.as_ptr().cast_mut())),
        (KeyValue::Number(scalar), KeyShape::Number(number)) => Some(to_datum(number, scalar)),
        (KeyValue::Number(Scalar(bits)), KeyShape::Epoch(factor)) => {
            Some(epoch_bucket::answer(bits as i64, factor))
        }
        (KeyValue::Number(Scalar(bits)), _) => Some(pg_sys::Datum::from(bits as usize)),
        (KeyValue::Truth(truth), _) => Some(pg_sys::Datum::from(truth)),
    }
}

fn double(value: f64) -> pg_sys::Datum {
    pg_sys::Datum::from(value.to_bits() as usize)
}

/// An exact integer as a numeric.
fn numeric(value: i128) -> pg_sys::Datum {
    // SAFETY: both give a palloc'd numeric.
    unsafe {
        if let Ok(small) = i64::try_from(value) {
            return pg_sys::Datum::from(pg_sys::int64_to_numeric(small));
        }
        let text = std::ffi::CString::new(value.to_string()).unwrap_or_default();
        let arguments = [
            Some(pg_sys::Datum::from(text.as_ptr().cast_mut())),
            Some(pg_sys::Datum::from(0u32)),
            Some(pg_sys::Datum::from(-1i32)),
        ];
        pgrx::direct_function_call_as_datum(pg_sys::numeric_in, &arguments)
            .expect("numeric input gives a number")
    }
}
