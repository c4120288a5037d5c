//! `lanes.vwap(price, volume)`: `sum(price * volume) / nullif(sum(volume), 0)` of the rows where neither is NULL.
//!
//! The state is a `float8[]` of three: rows, sum of products, sum of volumes. Within an aggregate it is changed in
//! place. Sums begin with the first row, not with zero, so that the sign of zeros is that of `sum`.

use std::mem::size_of;

use pgrx::{PgSqlErrorCode, pg_sys};

use super::float8;
use crate::error;
use crate::pg::call::{Call, float8_datum};

crate::sql_callables! {
    lanes_vwap_transition, pg_finfo_lanes_vwap_transition => transition;
    lanes_vwap_combine, pg_finfo_lanes_vwap_combine => combine;
    lanes_vwap_final, pg_finfo_lanes_vwap_final => finish;
}

/// Rows, sum of price × volume, sum of volume.
pub type Sums = [f64; 3];

/// A one-dimensional array of three float8 without NULLs, as Postgres lays it out.
#[repr(C)]
struct SumsArray {
    header: pg_sys::ArrayType,
    dimension: i32,
    lower_bound: i32,
    sums: Sums,
}

const _: () = assert!(size_of::<SumsArray>() == 48);

/// One more row.
#[inline]
pub fn accumulate(sums: &Sums, price: f64, volume: f64) -> Sums {
    merge(sums, &[1.0, float8::multiply(price, volume), volume])
}

/// The sums of both.
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
    let other = sums(call.argument(1)?);
    // SAFETY: checked by `sums`.
    update(call, |sums| merge(sums, unsafe { &(*other).sums }))
}

fn finish(call: &Call) -> Option<pg_sys::Datum> {
    // SAFETY: checked by `sums`.
    let sums = unsafe { (*sums(call.argument(0)?)).sums };
    average(&sums).map(float8_datum)
}

/// Changes the state: in place where it is an aggregate's own, else in a copy.
fn update(call: &Call, change: impl FnOnce(&Sums) -> Sums) -> Option<pg_sys::Datum> {
    let mut state = sums(call.argument(0)?);
    // SAFETY: `sums` gives an array of three; the copy is one.
    unsafe {
        let changed = change(&(*state).sums);
        if call.aggregate_memory().is_none() {
            let copy = pg_sys::palloc(size_of::<SumsArray>()).cast::<SumsArray>();
            copy.copy_from_nonoverlapping(state, 1);
            state = copy;
        }
        (*state).sums = changed;
    }
    Some(pg_sys::Datum::from(state))
}

/// The array behind a datum, checked to be one of three numbers.
fn sums(datum: pg_sys::Datum) -> *mut SumsArray {
    let mut array = datum.cast_mut_ptr::<SumsArray>();
    // SAFETY: SQL declares the argument as float8[], so this is a varlena; the low bits of its first byte are zero if it
    // lies plainly, else it is unpacked; an array has at least its header.
    unsafe {
        if *array.cast::<u8>() & 3 != 0 {
            array = pg_sys::pg_detoast_datum(array.cast()).cast();
        }
        let bytes = (array.cast::<u32>().read() >> 2) as usize;
        let header = &(*array).header;
        let is_plain = bytes == size_of::<SumsArray>()
            && header.ndim == 1
            && header.dataoffset == 0
            && header.elemtype == pg_sys::FLOAT8OID
            && (*array).dimension == 3;
        if !is_plain {
            error::raise(
                PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                "the state of lanes.vwap must be an array of three float8",
                "Call the aggregate, not its parts.",
            );
        }
    }
    array
}
