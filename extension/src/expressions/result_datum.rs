//! The engine's results as datums, computed as the final functions of PostgreSQL's aggregates compute them.

use lanes_columnar::aggregate::{Answer, KeyValue};
use lanes_columnar::vector::EvaluationError;
use lanes_columnar::vector::number::Scalar;
use pgrx::IntoDatum;
use pgrx::pg_sys::Datum;

use super::aggregate_call::{KeyShape, Moment, Shape};
use super::epoch_bucket;
use super::translate::to_datum;
use crate::arithmetic::float8;
use crate::error;
use crate::pg::datum;
use crate::pg::numeric::Numeric;

/// The datum of an aggregate's result, in the current memory context; `None` is NULL.
pub fn datum(answer: Answer, shape: Shape) -> Option<Datum> {
    match (answer, shape) {
        (answer, Shape::State(state)) => state.datum(answer),
        (Answer::Null, _) => None,
        (Answer::Count(count), _) => Some(Datum::from(count as i64)),
        (Answer::Bits(bits), _) => Some(Datum::from(bits as usize)),
        (Answer::Integer(sum), Shape::BigInt) => Some(Datum::from(sum as i64)),
        (Answer::Integer(sum), _) => Some(Numeric::from_integer(sum).datum()),
        (Answer::Number(scalar), Shape::Number(number)) => Some(to_datum(number, scalar)),
        (Answer::Number(scalar), _) => Some(Datum::from(scalar.0 as usize)),
        (Answer::Quotient(dividend, divisor), _) => Some(double(float8::divide(dividend, divisor))),
        (Answer::Truth(truth), _) => Some(Datum::from(truth)),
        (Answer::OutOfRange, _) => error::evaluation(EvaluationError::FloatOverflow),
        (Answer::Average { count, sum }, _) => {
            let (sum, count) = (
                Numeric::from_integer(sum),
                Numeric::from_integer(count.into()),
            );
            Some(sum.divided_by(count).datum())
        }
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
        ) => exact_variance(count, sum, Numeric::from_integer(squares), sample, root),
        (
            Answer::WideMoments {
                count,
                sum,
                squares,
            },
            Shape::Moment(Moment::Variance { sample, root }),
        ) => exact_variance(count, sum, of_digits(squares), sample, root),
        (Answer::PairMoments(moments), Shape::OfPairs(wanted)) => {
            wanted.result(moments).map(double)
        }
        // Lists are in the accumulator: see `integers` and `numbers`.
        (
            Answer::Moments { .. }
            | Answer::IntegerMoments { .. }
            | Answer::WideMoments { .. }
            | Answer::PairMoments(_)
            | Answer::List
            | Answer::Several,
            _,
        ) => None,
    }
}

/// The array of integers that counts are, in the current memory context.
pub fn integers(counts: &[u32]) -> Option<Datum> {
    let count = |count: &u32| {
        let count = i32::try_from(*count);
        count.unwrap_or_else(|_| error::evaluation(EvaluationError::IntegerOutOfRange(4)))
    };
    counts.iter().map(count).collect::<Vec<i32>>().into_datum()
}

/// The array of numbers that answers are, in the current memory context; `None`: the shape is none of an array.
pub fn numbers(answers: &[Answer], shape: Shape) -> Option<Datum> {
    let Shape::Numbers(number, element) = shape else {
        return None;
    };
    let datum = |answer: &Answer| match answer {
        Answer::Number(scalar) => Some(to_datum(number, *scalar)),
        _ => None,
    };
    let elements: Vec<_> = answers.iter().map(datum).collect();
    Some(datum::list(&elements, element))
}

/// The scalar of a result that is a number or a boolean; `None` is NULL.
#[inline]
pub fn scalar(answer: Answer, shape: Shape) -> Option<Scalar> {
    match (answer, shape) {
        (Answer::Number(scalar), _) => Some(scalar),
        (Answer::Count(count), _) => Some(Scalar(count)),
        (Answer::Truth(truth), _) => Some(Scalar(truth.into())),
        // All other results are integers of 64 bits or doubles.
        (answer, shape) => datum(answer, shape).map(|datum| Scalar(datum.value() as u64)),
    }
}

/// The variance of integers or its root, with the digits that PostgreSQL's own final functions compute; `None`, for
/// NULL, for a sample of one.
fn exact_variance(
    count: u64,
    sum: i128,
    squares: Numeric,
    sample: bool,
    root: bool,
) -> Option<Datum> {
    if sample && count == 1 {
        return None;
    }
    let number = Numeric::from_integer;
    let (counted, sum) = (number(count.into()), number(sum));
    let above = counted.times(squares).minus(sum.times(sum));
    let below = counted.times(number(i128::from(count) - i128::from(sample)));
    if !above.is_greater(number(0)) {
        return Some(number(0).datum());
    }
    let variance = above.divided_by(below);
    Some(match root {
        true => exact_root(variance).datum(),
        false => variance.datum(),
    })
}

/// The integer that has these digits to the base of 2^64, from the least one on.
fn of_digits(digits: [u64; 3]) -> Numeric {
    let base = Numeric::from_integer(1 << 64);
    let [last, middle, first] = digits.map(|digit| Numeric::from_integer(digit.into()));
    first.times(base).plus(middle).times(base).plus(last)
}

/// The square root of a variance.
///
/// PostgreSQL rounds the root once, to the variance's digits. The function `sqrt` may return more
/// digits, so its result is rounded a second time here. Rounded twice, the root is too great if it
/// was first rounded up to a half. That is the case if the true root is below the half.
fn exact_root(variance: Numeric) -> Numeric {
    let digits = variance.scale();
    let rounded = variance.sqrt().round(digits);
    let digits = digits as usize;
    let unit = match digits {
        0 => Numeric::from_integer(1),
        digits => Numeric::from_text(&format!("0.{}1", "0".repeat(digits - 1))),
    };
    let half = Numeric::from_text(&format!("0.{}5", "0".repeat(digits)));
    let middle = rounded.minus(half);
    match middle.times(middle).is_greater(variance) {
        true => rounded.minus(unit),
        false => rounded,
    }
}

/// The datum of a group's key; `None` is NULL. A text or a uuid lives as long as the groups.
pub fn key_datum(value: KeyValue<'_>, shape: KeyShape) -> Option<Datum> {
    match (value, shape) {
        (KeyValue::Null, _) => None,
        (KeyValue::Text(item), _) => Some(Datum::from(item.as_ptr().cast_mut())),
        (KeyValue::Bytes16(bytes), _) => Some(Datum::from(bytes.as_ptr().cast_mut())),
        (KeyValue::Number(scalar), KeyShape::Number(number)) => Some(to_datum(number, scalar)),
        (KeyValue::Number(Scalar(bits)), KeyShape::Epoch(factor)) => {
            Some(epoch_bucket::result(bits as i64, factor))
        }
        (KeyValue::Number(Scalar(bits)), _) => Some(Datum::from(bits as usize)),
        (KeyValue::Truth(truth), _) => Some(Datum::from(truth)),
    }
}

fn double(value: f64) -> Datum {
    Datum::from(value.to_bits() as usize)
}
