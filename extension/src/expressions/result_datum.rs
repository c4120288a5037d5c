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
        (
            Answer::IntegerMoments {
                count,
                sum,
                squares,
            },
            Shape::Moment(Moment::Variance { sample, root }),
        ) => match sample && count == 1 {
            true => None,
            false => Some(exact_variance(count, sum, squares, sample, root)),
        },
        (Answer::Moments { .. } | Answer::IntegerMoments { .. }, _) => None,
    }
}

/// A result that is a number or a truth; `None` is NULL.
#[inline]
pub fn scalar(answer: Answer, shape: Shape) -> Option<Scalar> {
    match (answer, shape) {
        (Answer::Number(scalar), _) => Some(scalar),
        (Answer::Count(count), _) => Some(Scalar(count)),
        (Answer::Truth(truth), _) => Some(Scalar(truth.into())),
        // All other answers are integers of 64 bits or doubles.
        (answer, shape) => datum(answer, shape).map(|datum| Scalar(datum.value() as u64)),
    }
}

/// The variance of integers, or its root, as PostgreSQL's own final functions give it: digits and all.
fn exact_variance(count: u64, sum: i128, squares: i128, sample: bool, root: bool) -> pg_sys::Datum {
    use pg_sys::{numeric_cmp, numeric_div, numeric_mul, numeric_round, numeric_sqrt, numeric_sub};
    type Function = unsafe fn(pg_sys::FunctionCallInfo) -> pg_sys::Datum;
    let of = |function: Function, a: pg_sys::Datum, b: Option<pg_sys::Datum>| {
        let arguments = [Some(a), b];
        let given = if b.is_some() { 2 } else { 1 };
        // SAFETY: functions of one or two numerics that are not NULL, or of one and a scale.
        let result = unsafe { pgrx::direct_function_call_as_datum(function, &arguments[..given]) };
        result.expect("numeric functions give numbers")
    };
    let times = |a, b| of(numeric_mul, a, Some(b));
    let (counted, sum) = (numeric(i128::from(count)), numeric(sum));
    let above = of(
        numeric_sub,
        times(counted, numeric(squares)),
        Some(times(sum, sum)),
    );
    let below = times(counted, numeric(i128::from(count) - i128::from(sample)));
    let is_more = |a, b| of(numeric_cmp, a, Some(b)).value() as i32 > 0;
    if !is_more(above, numeric(0)) {
        return numeric(0);
    }
    let variance = of(numeric_div, above, Some(below));
    if !root {
        return variance;
    }
    // PostgreSQL rounds the root once, to the variance's digits; the function `sqrt` may give more. Rounded twice, it is
    // too great if it was rounded up to a half: if the true root lies below that half.
    let scale = of(pg_sys::numeric_scale, variance, None);
    let rounded = of(numeric_round, of(numeric_sqrt, variance, None), Some(scale));
    let digits = scale.value() as u32 as usize;
    let unit = match digits {
        0 => numeric(1),
        digits => numeric_of_text(&format!("0.{}1", "0".repeat(digits - 1))),
    };
    let half = numeric_of_text(&format!("0.{}5", "0".repeat(digits)));
    let middle = of(numeric_sub, rounded, Some(half));
    match is_more(times(middle, middle), variance) {
        true => of(numeric_sub, rounded, Some(unit)),
        false => rounded,
    }
}

/// A key; `None` is NULL. A text or a uuid is lent: it lives as long as the groups.
pub fn key_datum(value: KeyValue<'_>, shape: KeyShape) -> Option<pg_sys::Datum> {
    match (value, shape) {
        (KeyValue::Null, _) => None,
        (KeyValue::Text(item), _) => Some(pg_sys::Datum::from(item.as_ptr().cast_mut())),
        (KeyValue::Bytes16(bytes), _) => Some(pg_sys::Datum::from(bytes.as_ptr().cast_mut())),
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
    if let Ok(small) = i64::try_from(value) {
        // SAFETY: gives a palloc'd numeric.
        return pg_sys::Datum::from(unsafe { pg_sys::int64_to_numeric(small) });
    }
    numeric_of_text(&value.to_string())
}

fn numeric_of_text(text: &str) -> pg_sys::Datum {
    let text = std::ffi::CString::new(text).unwrap_or_default();
    let arguments = [
        Some(pg_sys::Datum::from(text.as_ptr().cast_mut())),
        Some(pg_sys::Datum::from(0u32)),
        Some(pg_sys::Datum::from(-1i32)),
    ];
    // SAFETY: input of a numeric.
    unsafe {
        pgrx::direct_function_call_as_datum(pg_sys::numeric_in, &arguments)
            .expect("numeric input gives a number")
    }
}
