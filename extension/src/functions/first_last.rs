//! `lanes.first(value, ts)` and `lanes.last(value, ts)`: the value at the smallest and at the largest time.
//!
//! Rows whose time is NULL are ignored. A NULL value is not, and may be the result. Among equal
//! times, `first` is of the row that arrives first, and `last` is of the row that arrives last.
//! Times are compared as keys of 64 bits, which are in the order of their type.

use std::cmp::Ordering;

use lanes_columnar::aggregate::ema::order_key;
use pgrx::{IntoDatum, PgSqlErrorCode, pg_sys};

use crate::error;
use crate::pg::call::Call;
use crate::pg::kept_value::{KeptValue, Storage};

crate::sql_callables! {
    lanes_first_64, pg_finfo_lanes_first_64 => |call| transition(call, call.int8(2), Ordering::Less);
    lanes_first_32, pg_finfo_lanes_first_32 => |call| transition(call, key_32(call), Ordering::Less);
    lanes_first_float8, pg_finfo_lanes_first_float8 => |call| transition(call, key_float8(call), Ordering::Less);
    lanes_last_64, pg_finfo_lanes_last_64 => |call| transition(call, call.int8(2), Ordering::Greater);
    lanes_last_32, pg_finfo_lanes_last_32 => |call| transition(call, key_32(call), Ordering::Greater);
    lanes_last_float8, pg_finfo_lanes_last_float8 => |call| transition(call, key_float8(call), Ordering::Greater);
    lanes_first_combine, pg_finfo_lanes_first_combine => |call| combine(call, Ordering::Less);
    lanes_last_combine, pg_finfo_lanes_last_combine => |call| combine(call, Ordering::Greater);
    lanes_first_last_serialise, pg_finfo_lanes_first_last_serialise => serialise;
    lanes_first_last_deserialise, pg_finfo_lanes_first_last_deserialise => deserialise;
    lanes_first_last_final, pg_finfo_lanes_first_last_final => finish;
}

fn key_32(call: &Call) -> Option<i64> {
    call.int4(2).map(i64::from)
}

fn key_float8(call: &Call) -> Option<i64> {
    call.float8(2).map(order_key)
}

/// The row that is kept.
#[derive(Clone, Copy)]
#[repr(C)]
struct Kept {
    key: i64,
    value: KeptValue,
}

/// The state as the datum that PostgreSQL passes on.
fn datum(state: &mut Kept) -> pg_sys::Datum {
    pg_sys::Datum::from(&raw mut *state)
}

/// Adds a row. Its key replaces the one that is kept if it compares as `better`.
#[inline]
fn transition(call: &Call, key: Option<i64>, better: Ordering) -> Option<pg_sys::Datum> {
    let state = call.state::<Kept>(0);
    let Some(key) = key else {
        return state.map(datum);
    };
    let memory = super::aggregate_memory(call);
    let state = match state {
        Some(state) if !replaces(key, state.key, better) => return Some(datum(state)),
        Some(state) => state,
        None => call.new_state(
            memory,
            Kept {
                key,
                value: KeptValue::null(storage(call)),
            },
        ),
    };
    state.key = key;
    state.value.keep_argument(memory, call, 1);
    Some(datum(state))
}

/// Whether the later of two rows replaces the earlier. Of equal keys the first is `first`, and the last is `last`.
#[inline]
fn replaces(later: i64, earlier: i64, better: Ordering) -> bool {
    match better {
        Ordering::Less => later < earlier,
        _ => later >= earlier,
    }
}

fn combine(call: &Call, better: Ordering) -> Option<pg_sys::Datum> {
    let earlier = call.state::<Kept>(0);
    let Some(later) = call.state::<Kept>(1) else {
        return earlier.map(datum);
    };
    let memory = super::aggregate_memory(call);
    let state = match earlier {
        Some(earlier) if !replaces(later.key, earlier.key, better) => return Some(datum(earlier)),
        Some(earlier) => earlier,
        None => call.new_state(
            memory,
            Kept {
                key: later.key,
                value: KeptValue::null_like(&later.value),
            },
        ),
    };
    state.key = later.key;
    state.value.keep_other(memory, &later.value);
    Some(datum(state))
}

fn serialise(call: &Call) -> Option<pg_sys::Datum> {
    let kept = call.state::<Kept>(0)?;
    let mut bytes = Vec::with_capacity(64);
    bytes.extend_from_slice(&kept.key.to_ne_bytes());
    kept.value.serialise(&mut bytes);
    bytes.into_datum()
}

fn deserialise(call: &Call) -> Option<pg_sys::Datum> {
    let (key, value) = call.text(0)?.split_first_chunk()?;
    let kept = Kept {
        key: i64::from_ne_bytes(*key),
        value: KeptValue::restore(value)?,
    };
    Some(datum(call.new_state(call.current_memory(), kept)))
}

fn finish(call: &Call) -> Option<pg_sys::Datum> {
    // The value is copied, because the state of a window function goes on changing.
    call.state::<Kept>(0)?.value.copied()
}

/// How the values of a call are stored.
fn storage(call: &Call) -> Storage {
    Storage::of_argument(call, 1).unwrap_or_else(|| {
        error::raise(
            PgSqlErrorCode::ERRCODE_INDETERMINATE_DATATYPE,
            "could not determine the type of the value",
            "Cast the first argument to the type that it should have.",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_floats_are_in_the_order_of_postgresql() {
        let ascending = [
            f64::NEG_INFINITY,
            f64::MIN,
            -1.0,
            -f64::from_bits(1),
            0.0,
            f64::from_bits(1),
            1.0,
            f64::MAX,
            f64::INFINITY,
            f64::NAN,
        ];
        for pair in ascending.windows(2) {
            assert!(order_key(pair[0]) < order_key(pair[1]), "{pair:?}");
        }
        assert_eq!(order_key(-0.0), order_key(0.0));
        assert_eq!(order_key(-f64::NAN), order_key(f64::NAN));
    }
}
