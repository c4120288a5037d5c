//! `lanes.delta(x)` and `lanes.rate(x, ts)`: window functions that compare a row with the row
//! before it in its partition.
//!
//! They keep the last row in the partition's memory, so the cost of a row does not depend on the
//! length of the partition. The result for a row whose x or ts is NULL is NULL, and the next row is
//! compared with the row before it.

use lanes_columnar::window::rate;
use pgrx::{PgSqlErrorCode, pg_sys};

use crate::arithmetic::float8;
use crate::error;
use crate::pg::call::{self, Call, float8_datum};

crate::sql_callables! {
    lanes_delta_float8, pg_finfo_lanes_delta_float8 => delta_float8;
    lanes_delta_bigint, pg_finfo_lanes_delta_bigint => delta_bigint;
    lanes_delta_integer, pg_finfo_lanes_delta_integer => delta_integer;
    lanes_rate, pg_finfo_lanes_rate => rate_of_row;
}

/// The last row without NULLs, if there was one.
#[derive(Clone, Copy, Default)]
struct Previous {
    is_there: bool,
    x: u64,
    ts: i64,
}

impl Previous {
    /// Keeps a row, and returns the row that was kept before.
    fn replace(&mut self, x: u64, ts: i64) -> Option<Previous> {
        let before = std::mem::replace(
            self,
            Previous {
                is_there: true,
                x,
                ts,
            },
        );
        before.is_there.then_some(before)
    }
}

fn delta_float8(call: &Call) -> Option<pg_sys::Datum> {
    let (x, before) = difference(call)?;
    let (x, before) = (call::float8(x), call::float8(before));
    Some(float8_datum(float8::subtract(x, before)))
}

fn delta_bigint(call: &Call) -> Option<pg_sys::Datum> {
    let (x, before) = difference(call)?;
    let delta = call::int8(x).checked_sub(call::int8(before));
    Some(pg_sys::Datum::from(
        delta.unwrap_or_else(|| out_of_range("bigint")),
    ))
}

fn delta_integer(call: &Call) -> Option<pg_sys::Datum> {
    let (x, before) = difference(call)?;
    let delta = call::int4(x).checked_sub(call::int4(before));
    Some(pg_sys::Datum::from(
        delta.unwrap_or_else(|| out_of_range("integer")),
    ))
}

/// The values of this row and of the row before, if both exist.
fn difference(call: &Call) -> Option<(pg_sys::Datum, pg_sys::Datum)> {
    with_row(call, "delta", |[x], previous| {
        let x = x?;
        let before = previous.replace(x.value() as u64, 0)?;
        Some((x, pg_sys::Datum::from(before.x)))
    })
}

fn rate_of_row(call: &Call) -> Option<pg_sys::Datum> {
    with_row(call, "rate", |[x, ts], previous| {
        let (x, ts) = (call::float8(x?), call::int8(ts?));
        if matches!(ts, i64::MIN | i64::MAX) {
            return None;
        }
        let before = previous.replace(x.to_bits(), ts)?;
        let rate = rate(f64::from_bits(before.x), before.ts, x, ts);
        rate.unwrap_or_else(|failure| error::evaluation(failure))
            .map(float8_datum)
    })
}

/// Runs `body` with this row's arguments and the row that the partition keeps.
fn with_row<const N: usize, R>(
    call: &Call,
    name: &str,
    body: impl FnOnce([Option<pg_sys::Datum>; N], &mut Previous) -> R,
) -> R {
    call.window_row(body).unwrap_or_else(|| no_window(name))
}

/// Raises the error for a difference that is out of its type's range.
pub fn out_of_range(what: &str) -> ! {
    error::raise(
        PgSqlErrorCode::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
        format!("{what} out of range"),
        "Cast the argument of lanes.delta to a wider type.",
    )
}

fn no_window(name: &str) -> ! {
    error::raise(
        PgSqlErrorCode::ERRCODE_WINDOWING_ERROR,
        format!("lanes.{name} is a window function"),
        "Call it with OVER (PARTITION BY ... ORDER BY ...).",
    )
}
