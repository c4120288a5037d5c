//! `floor(extract(epoch from ts) / 60) * 60`: buckets of seconds, as dashboards write them for any PostgreSQL.
//!
//! PostgreSQL computes all of this with `numeric`, slowly, for each row. Here a time is divided as an integer of
//! microseconds, and a `numeric` is made once a group.
//!
//! The quotient of two numerics is rounded to 17 digits or more. It is therefore below an integer
//! exactly if the true quotient is, as long as one microsecond, relative to the time, is more than
//! half a unit of the 17th digit: 5e-17. Times that are [`EXACT_BEFORE`] microseconds or more from
//! 1970 (after the year 2286) are left to PostgreSQL, one by one. Widths are multiples of a
//! microsecond. Infinite times are buckets of their own.

use lanes_columnar::aggregate::Key;
use lanes_columnar::aggregate::key::{Bucket, Buckets};
use lanes_columnar::vector::number::NumberType;
use pgrx::pg_sys::{self, Datum};

use super::aggregate_call::KeyShape;
use super::buckets::BucketKey;
use super::translate::{Translation, Translator};
use crate::pg::exec::memory::scratch;
use crate::pg::numeric::{self, Numeric, Time};
use crate::pg::tree::{Const, Expr, List, call_of};
use crate::pg::typed_datum::TypedDatum;

/// The distance from 1970, in microseconds, from which buckets are left to PostgreSQL. The head of
/// this file explains it.
const EXACT_BEFORE: i128 = 10_000_000_000_000_000;

/// Seconds from Unix's epoch to PostgreSQL's.
const EPOCH_SECONDS: i128 = 946_684_800;
const SECOND: i128 = 1_000_000;
const DAY: i128 = 86_400 * SECOND;

/// The type of the times.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Source {
    /// `timestamp`
    Timestamp,
    /// `timestamp with time zone`
    Zoned,
    /// `date`
    Date,
}

/// Buckets of one width.
struct EpochBuckets {
    source: Source,
    /// The width in microseconds.
    width: i128,
    /// The width as the expression spells it; `None` in tests.
    divisor: Option<Numeric>,
}

/// The key of a group that such an expression stands for; `None` for another expression.
///
/// # Errors
/// If the width or the factor is not a whole number of microseconds.
pub fn key(translator: &mut Translator, expr: Expr<'_>) -> Translation<Option<(Key, KeyShape)>> {
    let Some(parts) = Parts::of(expr) else {
        return Ok(None);
    };
    let Some(width) = microseconds(&parts.divisor.to_text()) else {
        return Err("a bucket of no whole number of microseconds".into());
    };
    let is_whole = |factor: Numeric| microseconds(&factor.to_text()).is_some();
    if !parts.factor.is_none_or(is_whole) {
        return Err("a multiple of no whole number of microseconds".into());
    }
    let time = translator.value(parts.time)?;
    let wanted = match parts.source {
        Source::Date => NumberType::I32,
        Source::Timestamp | Source::Zoned => NumberType::I64,
    };
    if time.number() != wanted {
        return Ok(None);
    }
    let buckets = EpochBuckets {
        source: parts.source,
        width,
        divisor: Some(parts.divisor),
    };
    let key = Key::Bucket(time, Box::new(buckets));
    Ok(Some((key, KeyShape::Epoch(parts.factor))))
}

/// The bucket that such an expression is, for estimates.
pub fn bucket_key(expr: Expr<'_>) -> Option<BucketKey<'_>> {
    let parts = Parts::of(expr)?;
    let micros = microseconds(&parts.divisor.to_text())? as f64;
    let width = match parts.source {
        Source::Date => micros / DAY as f64,
        Source::Timestamp | Source::Zoned => micros,
    };
    let time = parts.time;
    Some(BucketKey { time, width })
}

/// `floor(extract('epoch' from time) / divisor) [* factor]`
struct Parts<'p> {
    time: Expr<'p>,
    source: Source,
    divisor: Numeric,
    factor: Option<Numeric>,
}

impl<'p> Parts<'p> {
    fn of(expr: Expr<'p>) -> Option<Parts<'p>> {
        let (floor, factor) = match call(expr, pg_sys::F_NUMERIC_MUL) {
            Some(sides) => (sides.get(0)?, Some(number(sides.get(1)?)?)),
            None => (expr, None),
        };
        let floored = call(floor, pg_sys::F_FLOOR_NUMERIC)?;
        let sides = call(floored.first()?, pg_sys::F_NUMERIC_DIV)?;
        let sources = [
            (pg_sys::F_EXTRACT_TEXT_TIMESTAMPTZ, Source::Zoned),
            (pg_sys::F_EXTRACT_TEXT_TIMESTAMP, Source::Timestamp),
            (pg_sys::F_EXTRACT_TEXT_DATE, Source::Date),
        ];
        let seconds = sides.get(0)?;
        let (arguments, source) = sources
            .into_iter()
            .find_map(|(function, source)| Some((call(seconds, function)?, source)))?;
        let field = constant(arguments.get(0)?)?.bytes()?;
        field.eq_ignore_ascii_case(b"epoch").then_some(())?;
        Some(Parts {
            time: arguments.get(1)?,
            source,
            divisor: number(sides.get(1)?)?,
            factor,
        })
    }
}

/// The arguments of a call of a function, by an operator or not; `None` for another expression.
fn call(expr: Expr<'_>, function: u32) -> Option<List<'_, Expr<'_>>> {
    let (called, arguments) = call_of(expr.stripped())?;
    (called.to_u32() == function).then_some(arguments)
}

/// The value of a constant that is not NULL.
fn constant(expr: Expr<'_>) -> Option<TypedDatum> {
    expr.as_const().and_then(Const::value)
}

/// The value of a constant that is a numeric.
fn number(expr: Expr<'_>) -> Option<Numeric> {
    constant(expr)?.numeric()
}

/// The microseconds of a number of seconds; `None` unless they are whole, positive and below 2^63.
fn microseconds(seconds: &str) -> Option<i128> {
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (micros, rest) = fraction.split_at(fraction.len().min(6));
    if !digits(whole) || rest.bytes().any(|byte| byte != b'0') {
        return None;
    }
    let micros = format!("{micros:0<6}").parse::<i128>().ok()?;
    let all = whole.parse::<i64>().ok()?;
    let all = i128::from(all) * SECOND + micros;
    (all > 0 && all <= i128::from(i64::MAX)).then_some(all)
}

impl EpochBuckets {
    /// The microseconds of one unit of a time, and the microseconds from 1970 to its zero.
    fn scale(&self) -> (i128, i128) {
        match self.source {
            Source::Date => (DAY, EPOCH_SECONDS * SECOND),
            Source::Timestamp | Source::Zoned => (1, EPOCH_SECONDS * SECOND),
        }
    }

    /// The bucket of a time; `None` if rounding might make PostgreSQL's another one.
    fn divided(&self, time: i64) -> Option<Bucket> {
        let infinite = match self.source {
            Source::Date => [i32::MIN.into(), i32::MAX.into()],
            Source::Timestamp | Source::Zoned => [i64::MIN, i64::MAX],
        };
        let point = |value| Bucket {
            value,
            first: time,
            last: time,
        };
        if time == infinite[0] {
            return Some(point(i64::MIN));
        }
        if time == infinite[1] {
            return Some(point(i64::MAX));
        }
        let (unit, zero) = self.scale();
        let epoch = i128::from(time) * unit + zero;
        if epoch.abs() >= EXACT_BEFORE {
            return None;
        }
        let number = epoch.div_euclid(self.width);
        let first = (number * self.width).max(1 - EXACT_BEFORE);
        let last = (number * self.width + self.width - 1).min(EXACT_BEFORE - 1);
        Some(Bucket {
            value: number as i64,
            first: -((zero - first).div_euclid(unit)) as i64,
            last: (last - zero).div_euclid(unit) as i64,
        })
    }

    /// The number of a time's bucket, computed by PostgreSQL.
    fn computed(&self, time: i64) -> i64 {
        let Some(divisor) = self.divisor else {
            return 0;
        };
        let time = match self.source {
            Source::Date => Time::Date(time as i32),
            Source::Timestamp => Time::Timestamp(time),
            Source::Zoned => Time::Zoned(time),
        };
        // The number has at most 63 bits, as the width is at least a microsecond.
        scratch(|| {
            numeric::epoch_of(time)
                .divided_by(divisor)
                .floor()
                .to_bigint()
        })
    }
}

impl Buckets for EpochBuckets {
    fn bucket(&mut self, time: i64) -> Bucket {
        self.divided(time).unwrap_or_else(|| Bucket {
            value: self.computed(time),
            first: time,
            last: time,
        })
    }
}

/// The value of the expression for a bucket's number, in the current memory context.
pub fn result(number: i64, factor: Option<Numeric>) -> Datum {
    let number = match number {
        i64::MIN => Numeric::from_text("-Infinity"),
        i64::MAX => Numeric::from_text("Infinity"),
        number => Numeric::from_integer(number.into()),
    };
    let product = match factor {
        None => number,
        Some(factor) => number.times(factor),
    };
    product.datum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths() {
        for (text, expected) in [
            ("60", Some(60_000_000)),
            ("0.500", Some(500_000)),
            ("0.000001", Some(1)),
            ("1.50000000", Some(1_500_000)),
            ("9223372036854.775807", Some(i64::MAX.into())),
            ("9223372036854.775808", None),
            ("0", None),
            ("0.0000005", None),
            ("-60", None),
            ("NaN", None),
            ("Infinity", None),
            ("", None),
        ] {
            assert_eq!(microseconds(text), expected, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn buckets_hold_their_times(
            time in proptest::prelude::any::<i64>(), shift in 0..40_u32, width in 1..100_000_000_i64, days in proptest::prelude::any::<bool>(),
        ) {
            let source = if days { Source::Date } else { Source::Zoned };
            let buckets = EpochBuckets { source, width: width.into(), divisor: None };
            let time = if days { i64::from((time >> 32) as i32) } else { time };
            let time = time >> shift;
            let (unit, zero) = buckets.scale();
            let number = |time: i64| (i128::from(time) * unit + zero).div_euclid(width.into());
            if let Some(bucket) = buckets.divided(time) && bucket.value != i64::MIN && bucket.value != i64::MAX {
                assert!(bucket.first <= time && time <= bucket.last, "{bucket:?} of {time}");
                assert_eq!(number(bucket.first), bucket.value.into());
                assert_eq!(number(bucket.last), bucket.value.into());
                assert_eq!(number(time), bucket.value.into());
                if (i128::from(time) * unit + zero).abs() < EXACT_BEFORE / 2 && unit == 1 {
                    assert_ne!(number(bucket.first - 1), bucket.value.into());
                    assert_ne!(number(bucket.last + 1), bucket.value.into());
                }
            }
        }
    }
}
