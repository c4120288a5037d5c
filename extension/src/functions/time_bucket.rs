//! `lanes.time_bucket` and its alias `lanes.xbar`: the start of the bucket that a time, a date or an integer lies in.
//! Infinite times are returned as they are.

use pgrx::{PgSqlErrorCode, direct_function_call, pg_sys};

use super::bucket::{Bucket, BucketError, Parts};
use super::bucket_zone::floor_in_zone;
use super::zone_clock::ZoneClock;
use crate::error;
use crate::pg::call::{Call, Remembered};

crate::sql_callables! {
    lanes_time_bucket_timestamp, pg_finfo_lanes_time_bucket_timestamp => of_timestamp;
    lanes_time_bucket_date, pg_finfo_lanes_time_bucket_date => of_date;
    lanes_time_bucket_zone, pg_finfo_lanes_time_bucket_zone => of_timestamp_in_zone;
    lanes_time_bucket_bigint, pg_finfo_lanes_time_bucket_bigint => of_bigint;
    lanes_time_bucket_integer, pg_finfo_lanes_time_bucket_integer => of_integer;
}

/// (interval, timestamp or timestamptz [, origin of the same type])
fn of_timestamp(call: &Call) -> Option<pg_sys::Datum> {
    let bucket = legal(Bucket::timestamps(width(call)?, call.int8(2)));
    let value = call.int8(1)?;
    if is_infinite(value) {
        return call.argument(1);
    }
    Some(timestamp_in_range(bucket.floor(value)))
}

/// (interval, date [, date])
fn of_date(call: &Call) -> Option<pg_sys::Datum> {
    let bucket = legal(Bucket::dates(width(call)?, call.int4(2)));
    let value = call.int4(1)?;
    if matches!(value, i32::MIN | i32::MAX) {
        return call.argument(1);
    }
    let start = bucket
        .floor(value as i64)
        .and_then(|start| i32::try_from(start).ok());
    Some(pg_sys::Datum::from(start.unwrap_or_else(|| {
        out_of_range(PgSqlErrorCode::ERRCODE_DATETIME_FIELD_OVERFLOW, "date")
    })))
}

// SAFETY: zero bytes are a clock that remembers nothing.
unsafe impl Remembered for ZoneClock {}

/// (interval, timestamptz, text)
fn of_timestamp_in_zone(call: &Call) -> Option<pg_sys::Datum> {
    let bucket = legal(Bucket::timestamps(width(call)?, None));
    let (value, zone) = (call.int8(1)?, call.argument(2)?);
    // An unknown zone is an error for every value.
    if is_infinite(value) {
        local(zone, 0);
        return call.argument(1);
    }
    // SAFETY: SQL declares the argument as text. The memory is this function's alone; the body computes, and asks
    // another function.
    let remembered = unsafe {
        let name = call.text(2)?;
        call.with_memory(|clock: &mut ZoneClock| {
            clock.set_zone(name).then(|| {
                floor_in_zone(&bucket, value, |instant| {
                    clock.local(instant, |instant| local(zone, instant))
                })
            })
        })
    };
    let start = remembered
        .flatten()
        .unwrap_or_else(|| floor_in_zone(&bucket, value, |instant| local(zone, instant)));
    Some(timestamp_in_range(start))
}

/// The clock of a zone, given as text, at an instant.
fn local(zone: pg_sys::Datum, instant: i64) -> i64 {
    // SAFETY: `timezone(text, timestamptz)` called with what it is declared with; it is strict and gives no NULL.
    let local = unsafe {
        direct_function_call::<i64>(
            pg_sys::timestamptz_zone,
            &[Some(zone), Some(pg_sys::Datum::from(instant))],
        )
    };
    local.unwrap_or(instant)
}

/// (bigint, bigint)
fn of_bigint(call: &Call) -> Option<pg_sys::Datum> {
    let start = legal(Bucket::bigints(call.int8(0)?)).floor(call.int8(1)?);
    Some(pg_sys::Datum::from(start.unwrap_or_else(|| {
        out_of_range(PgSqlErrorCode::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE, "bigint")
    })))
}

/// (integer, integer)
fn of_integer(call: &Call) -> Option<pg_sys::Datum> {
    let start = legal(Bucket::integers(call.int4(0)?)).floor(call.int4(1)? as i64);
    let start = start.and_then(|start| i32::try_from(start).ok());
    Some(pg_sys::Datum::from(start.unwrap_or_else(|| {
        out_of_range(
            PgSqlErrorCode::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
            "integer",
        )
    })))
}

fn width(call: &Call) -> Option<Parts> {
    // SAFETY: SQL declares the first argument of these functions as interval.
    let (months, days, micros) = unsafe { call.interval(0)? };
    Some(Parts {
        months,
        days,
        micros,
    })
}

fn is_infinite(value: i64) -> bool {
    matches!(value, i64::MIN | i64::MAX)
}

fn timestamp_in_range(start: Option<i64>) -> pg_sys::Datum {
    pg_sys::Datum::from(start.unwrap_or_else(|| {
        out_of_range(PgSqlErrorCode::ERRCODE_DATETIME_FIELD_OVERFLOW, "timestamp")
    }))
}

fn out_of_range(code: PgSqlErrorCode, what: &str) -> ! {
    error::raise(
        code,
        format!("{what} out of range"),
        "The start of the bucket lies before the least value of the type.",
    )
}

/// The bucket, or the ERROR that says why there is none. The vectorised executor raises the same.
pub fn legal(bucket: Result<Bucket, BucketError>) -> Bucket {
    bucket.unwrap_or_else(|why| refuse(why))
}

fn refuse(why: BucketError) -> ! {
    let (message, hint) = match why {
        BucketError::WidthNotPositive => (
            "the width of a bucket must be greater than zero",
            "Give a positive width, such as '1 minute'.",
        ),
        BucketError::MonthsMixed => (
            "the width of a bucket cannot mix months with days or time",
            "Give months and years alone, or days, hours and smaller units alone.",
        ),
        BucketError::WidthTooWide => (
            "the width of a bucket is out of range",
            "Give a width of at most 106751991 days, or one in months.",
        ),
        BucketError::WidthNotDays => (
            "the width of a bucket of dates must be whole days",
            "Cast the date to timestamp for shorter buckets.",
        ),
        BucketError::OriginInfinite => (
            "the origin of buckets must be finite",
            "Give a time at which a bucket is to start.",
        ),
        BucketError::OriginNotMonthStart => (
            "the origin of buckets of months must be the first day of a month, at midnight",
            "Origins with time zone are taken in UTC.",
        ),
    };
    error::raise(
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        message,
        hint,
    )
}
