//! `lanes.vwap(price, volume)`: `sum(price * volume) / nullif(sum(volume), 0)` over the rows where neither is NULL.
//!
//! The state is a `float8[]` of three numbers: rows, sum of products, sum of volumes. Within an
//! aggregate it is changed in place. Sums begin with the first row, not with zero, so zeros have
//! the same sign as in `sum`.

use pgrx::{PgSqlErrorCode, pg_sys};

use crate::arithmetic::float8;
use crate::error;
use crate::pg::call::{Call, Float8Array, float8_datum};

crate::sql_callables! {
    lanes_vwap_transition, pg_finfo_lanes_vwap_transition => transition;
    lanes_vwap_combine, pg_finfo_lanes_vwap_combine => combine;
    lanes_vwap_final, pg_finfo_lanes_vwap_final => finish;
}

/// The number of rows, the sum of price × volume, and the sum of volume.
pub type Sums = [f64; 3];

/// The sums with a row added.
#[inline]
pub fn accumulate(sums: &Sums, price: f64, volume: f64) -> Sums {
    merge(sums, &[1.0, float8::multiply(price, volume), volume])
}

/// The sums of two states.
#[inline]
pub fn merge(left: &Sums, right: &Sums) -> Sums {
    if left[0] == 0.0 {
        *right
    } else if right[0] == 0.0 {
        *left
    } else {
        [
            left[0] + right[0],
            float8::add(left[1], right[1]),
            float8::add(left[2], right[2]),
        ]
    }
}

/// The average; `None` without rows or volume.
pub fn average(sums: &Sums) -> Option<f64> {
    (sums[0] != 0.0 && sums[2] != 0.0).then(|| float8::divide(sums[1], sums[2]))
}

fn transition(call: &Call) -> Option<pg_sys::Datum> {
    let (price, volume) = (call.float8(1)?, call.float8(2)?);
    update(call, |sums| accumulate(sums, price, volume))
}

fn combine(call: &Call) -> Option<pg_sys::Datum> {
    let other = sums(call, 1)?.numbers;
    update(call, |sums| merge(sums, &other))
}

fn finish(call: &Call) -> Option<pg_sys::Datum> {
    average(&sums(call, 0)?.numbers).map(float8_datum)
}

/// Changes the state. Outside an aggregate, the state is a copy.
fn update(call: &Call, change: impl FnOnce(&Sums) -> Sums) -> Option<pg_sys::Datum> {
    let state = sums(call, 0)?;
    state.numbers = change(&state.numbers);
    Some(pg_sys::Datum::from(&raw mut *state))
}

/// A state, checked to be an array of three numbers.
fn sums(call: &Call, argument: usize) -> Option<&mut Float8Array<3>> {
    let state = call.float8_array::<3>(argument)?;
    Some(state.unwrap_or_else(|_| {
        error::raise(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            "the state of lanes.vwap must be an array of three float8",
            "Call the aggregate, not its parts.",
        )
    }))
}
