//! `floor(extract(epoch from ts) / 60) * 60`: buckets of seconds, as dashboards write them for any PostgreSQL.
//!
//! All of it is `numeric`, and slow a row. Here a time is divided as an integer of microseconds, and a `numeric` is made a
//! group. The quotient of numerics is rounded, to no less than 17 digits; so it is below an integer exactly if the true
//! quotient is, as long as a microsecond is more of the time than half a unit of the 17th digit: 5e-17. Times of
//! [`EXACT_BEFORE`] microseconds and more from 1970 (the year 2286) are left to PostgreSQL, one by one. Widths are multiples
//! of a microsecond; infinite times are buckets of their own.

use lanes_columnar::aggregate::Key;
use lanes_columnar::aggregate::key::{Bucket, Buckets};
use lanes_columnar::vector::number::NumberType;
use pgrx::{PgMemoryContexts, pg_sys};

use super::aggregate_call::KeyShape;
use super::translate::{Translation, Translator, strip};
use crate::pg::{datum, names, nodes};

/// See the head of this file.
const EXACT_BEFORE: i128 = 10_000_000_000_000_000;

/// From PostgreSQL's epoch to that of Unix.
const EPOCH_SECONDS: i128 = 946_684_800;
const SECOND: i128 = 1_000_000;
const DAY: i128 = 86_400 * SECOND;

/// Which function gives the seconds, and so how times are kept.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Source {
    /// `timestamp`.
    Timestamp,
    /// `timestamp with time zone`.
    Zoned,
    /// `date`.
    Date,
}

/// Buckets of a width.
struct EpochBuckets {
    source: Source,
    /// Microseconds.
    width: i128,
    /// The text and the width as the expression has them.
    field: pg_sys::Datum,
    divisor: pg_sys::Datum,
}

/// The key that an expression stands for; `None` if it is not one of these.
///
/// # Safety
/// `node` is a live expression over one table; its constants outlive the scan.
pub unsafe fn key(
    translator: &mut Translator,
    node: *mut pg_sys::Node,
) -> Translation<Option<(Key, KeyShape)>> {
    // SAFETY: the caller's promise.
    unsafe {
        let (floor, factor) = match call(node, pg_sys::F_NUMERIC_MUL) {
            Some(sides) => match constant(sides[1]) {
                Some(factor) => (sides[0], Some(factor)),
                None => return Ok(None),
            },
            None => (node, None),
        };
        let Some(floored) = call(floor, pg_sys::F_FLOOR_NUMERIC) else {
            return Ok(None);
        };
        let Some(sides) = call(floored[0], pg_sys::F_NUMERIC_DIV) else {
            return Ok(None);
        };
        let sources = [
            (pg_sys::F_EXTRACT_TEXT_TIMESTAMPTZ, Source::Zoned),
            (pg_sys::F_EXTRACT_TEXT_TIMESTAMP, Source::Timestamp),
            (pg_sys::F_EXTRACT_TEXT_DATE, Source::Date),
        ];
        let found = sources
            .into_iter()
            .find_map(|(function, source)| Some((call(sides[0], function)?, source)));
        let (Some((arguments, source)), Some(divisor)) = (found, constant(sides[1])) else {
            return Ok(None);
        };
        let Some(field) = constant(arguments[0]) else {
            return Ok(None);
        };
        if !datum::text_payload(field).eq_ignore_ascii_case(b"epoch") {
            return Ok(None);
        }
        let Some(width) = microseconds(&text_of(divisor)) else {
            return Err("a bucket of no whole number of microseconds".into());
        };
        if factor.is_some_and(|factor| microseconds(&text_of(factor)).is_none()) {
            return Err("a multiple of no whole number of microseconds".into());
        }
        let time = translator.value(arguments[1])?;
        let narrow = source == Source::Date;
        if time.number()
            != if narrow {
                NumberType::I32
            } else {
                NumberType::I64
            }
        {
            return Ok(None);
        }
        let buckets = EpochBuckets {
            source,
            width,
            field,
            divisor,
        };
        let key = Key::Bucket(time, Box::new(buckets));
        Ok(Some((key, KeyShape::Epoch(factor))))
    }
}

/// The arguments of a call, by an operator or not, of this function.
unsafe fn call(node: *mut pg_sys::Node, function: u32) -> Option<Vec<*mut pg_sys::Node>> {
    // SAFETY: `key`'s caller promised a live expression; it is read as what its tag says.
    unsafe {
        let node = strip(node);
        let (called, arguments) = match (*node).type_ {
            pg_sys::NodeTag::T_OpExpr => {
                let operation = &*node.cast::<pg_sys::OpExpr>();
                (operation.opfuncid, operation.args)
            }
            pg_sys::NodeTag::T_FuncExpr => {
                let call = &*node.cast::<pg_sys::FuncExpr>();
                (call.funcid, call.args)
            }
            _ => return None,
        };
        (called.to_u32() == function).then(|| nodes::list(arguments).collect())
    }
}

/// The datum of a constant that is not NULL.
unsafe fn constant(node: *mut pg_sys::Node) -> Option<pg_sys::Datum> {
    // SAFETY: as for `call`.
    unsafe {
        if (*node).type_ != pg_sys::NodeTag::T_Const {
            return None;
        }
        let constant = &*node.cast::<pg_sys::Const>();
        (!constant.constisnull).then_some(constant.constvalue)
    }
}

/// A numeric as text.
unsafe fn text_of(number: pg_sys::Datum) -> String {
    // SAFETY: the caller has a numeric; a C string is given.
    unsafe {
        let text = pgrx::direct_function_call_as_datum(pg_sys::numeric_out, &[Some(number)]);
        let text: *const std::ffi::c_char =
            text.map_or(std::ptr::null(), |text| text.cast_mut_ptr());
        names::text(text).unwrap_or_default()
    }
}

/// Positive seconds as microseconds; `None` if they are none, or none of 63 bits.
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
    /// Microseconds that one unit of a time is, and those from 1970 to its zero.
    fn scale(&self) -> (i128, i128) {
        match self.source {
            Source::Date => (DAY, EPOCH_SECONDS * SECOND),
            Source::Timestamp | Source::Zoned => (1, EPOCH_SECONDS * SECOND),
        }
    }

    /// The bucket of a time, if it is surely PostgreSQL's.
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

    /// What PostgreSQL says.
    fn asked(&self, time: i64) -> i64 {
        let mut memory = PgMemoryContexts::new("lanes epoch bucket");
        // SAFETY: a text and a time, two numerics, and a numeric of no more than 63 bits, as the width is at least a
        // microsecond.
        unsafe {
            memory.switch_to(|_| {
                let time = match self.source {
                    Source::Date => pg_sys::Datum::from(time as i32),
                    Source::Timestamp | Source::Zoned => pg_sys::Datum::from(time),
                };
                let extract = match self.source {
                    Source::Date => pg_sys::extract_date,
                    Source::Timestamp => pg_sys::extract_timestamp,
                    Source::Zoned => pg_sys::extract_timestamptz,
                };
                let of = pgrx::direct_function_call_as_datum;
                let seconds = of(extract, &[Some(self.field), Some(time)]);
                let quotient = of(pg_sys::numeric_div, &[seconds, Some(self.divisor)]);
                let number = of(pg_sys::numeric_floor, &[quotient]);
                let number = of(pg_sys::numeric_int8, &[number]);
                number.map_or(0, |number| number.value() as i64)
            })
        }
    }
}

impl Buckets for EpochBuckets {
    fn bucket(&mut self, time: i64) -> Bucket {
        self.divided(time).unwrap_or_else(|| Bucket {
            value: self.asked(time),
            first: time,
            last: time,
        })
    }
}

/// The number of a bucket as the expression gives it. Memory is of the current context.
pub fn answer(number: i64, factor: Option<pg_sys::Datum>) -> pg_sys::Datum {
    let infinite = |text: &std::ffi::CStr| {
        let arguments = [
            Some(pg_sys::Datum::from(text.as_ptr().cast_mut())),
            Some(pg_sys::Datum::from(0u32)),
            Some(pg_sys::Datum::from(-1i32)),
        ];
        // SAFETY: input of a numeric.
        unsafe { pgrx::direct_function_call_as_datum(pg_sys::numeric_in, &arguments) }
    };
    let number = match number {
        i64::MIN => infinite(c"-Infinity"),
        i64::MAX => infinite(c"Infinity"),
        // SAFETY: gives a palloc'd numeric.
        number => Some(pg_sys::Datum::from(unsafe {
            pg_sys::int64_to_numeric(number)
        })),
    };
    let product = match factor {
        None => number,
        // SAFETY: two numerics.
        Some(factor) => unsafe {
            pgrx::direct_function_call_as_datum(pg_sys::numeric_mul, &[number, Some(factor)])
        },
    };
    product.expect("numeric functions give numbers")
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
            let null = pg_sys::Datum::null();
            let buckets = EpochBuckets { source, width: width.into(), field: null, divisor: null };
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
