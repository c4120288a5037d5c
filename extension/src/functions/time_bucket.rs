//! `lanes.time_bucket` and its alias `lanes.xbar`: the start of the bucket that contains a time, a date or an integer.
//! Infinite times are returned unchanged.

use pgrx::{PgSqlErrorCode, pg_sys};

use crate::arithmetic::bucket::{Bucket, BucketError, Parts};
use crate::arithmetic::bucket_zone::floor_in_zone;
use crate::arithmetic::zone_clock::ZoneClock;
use crate::error;
use crate::pg::call::Call;
use crate::pg::time_zone;

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

/// (interval, timestamptz, text)
fn of_timestamp_in_zone(call: &Call) -> Option<pg_sys::Datum> {
    let bucket = legal(Bucket::timestamps(width(call)?, None));
    let (value, zone) = (call.int8(1)?, call.argument(2)?);
    // An unknown zone is an error, even if the value needs no zone.
    if is_infinite(value) {
        time_zone::local(zone, 0);
        return call.argument(1);
    }
    let name = call.text(2)?;
    let from_clock = call.with_memory(|clock: &mut ZoneClock| {
        clock.set_zone(name).then(|| {
            floor_in_zone(&bucket, value, |instant| {
                clock.local(instant, |instant| time_zone::local(zone, instant))
            })
        })
    });
    let start = from_clock.flatten().unwrap_or_else(|| {
        floor_in_zone(&bucket, value, |instant| time_zone::local(zone, instant))
    });
    Some(timestamp_in_range(start))
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
    let (months, days, micros) = call.interval(0)?;
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
        "The start of the bucket is less than the smallest value of the type.",
    )
}

/// The bucket. An illegal width or origin is an error, which the vectorised executor raises too.
pub fn legal(bucket: Result<Bucket, BucketError>) -> Bucket {
    bucket.unwrap_or_else(|why| refuse(why))
}

fn refuse(why: BucketError) -> ! {
    let (message, hint) = match why {
        BucketError::WidthNotPositive => (
            "the width of a bucket must be greater than zero",
            "Use a positive width, such as '1 minute'.",
        ),
        BucketError::MonthsMixed => (
            "the width of a bucket cannot mix months with days or time",
            "Use months and years only, or days, hours and smaller units only.",
        ),
        BucketError::WidthTooWide => (
            "the width of a bucket is out of range",
            "Use a width of at most 106751991 days, or a width in months.",
        ),
        BucketError::WidthNotDays => (
            "the width of a bucket of dates must be whole days",
            "Cast the date to timestamp for shorter buckets.",
        ),
        BucketError::OriginInfinite => (
            "the origin of buckets must be finite",
            "Use a time at which a bucket should start.",
        ),
        BucketError::OriginNotMonthStart => (
            "the origin of buckets of months must be the first day of a month, at midnight",
            "Origins with time zone are converted to UTC.",
        ),
    };
    error::raise(
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        message,
        hint,
    )
}
