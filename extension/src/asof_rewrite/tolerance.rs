//! Tolerances: their types, and the check that they are neither negative nor NULL.
//!
//! | type of the times | type of the tolerance | converted to |
//! |---|---|---|
//! | timestamptz, timestamp | interval | interval |
//! | date | interval; an integer of days | interval; int4 |
//! | int2, int4, int8 | an integer; numeric; a float | int8 (so that small types do not overflow); numeric; float8 |
//! | numeric | an integer, numeric; a float | numeric; float8 |
//! | float4, float8 | any number | float8 |
//!
//! A literal without a type is an interval or a number, depending on the times. A tolerance that folds to a constant is
//! checked when the query is planned, any other by `lanes.asof_tolerance(…)` when it is evaluated.

use std::ffi::CStr;

use pgrx::prelude::*;
use pgrx::{AnyNumeric, FromDatum, PgSqlErrorCode, pg_sys};

use super::marker;
use crate::error;
use crate::pg::{names, tree};

const HINT: &str = "A tolerance is how far away a match may be: zero or more.";

/// The type in which distances between values of a type are measured; `None` if they have no distance.
///
/// # Safety
/// Runs inside a transaction.
pub unsafe fn measured_type(kind: pg_sys::Oid) -> Option<pg_sys::Oid> {
    // SAFETY: a catalogue look-up.
    match unsafe { pg_sys::getBaseType(kind) } {
        pg_sys::INT2OID | pg_sys::INT4OID | pg_sys::INT8OID => Some(pg_sys::INT8OID),
        pg_sys::FLOAT4OID | pg_sys::FLOAT8OID => Some(pg_sys::FLOAT8OID),
        kind @ (pg_sys::TIMESTAMPTZOID
        | pg_sys::TIMESTAMPOID
        | pg_sys::DATEOID
        | pg_sys::NUMERICOID) => Some(kind),
        _ => None,
    }
}

fn taken_as(times: pg_sys::Oid, given: pg_sys::Oid) -> Option<pg_sys::Oid> {
    use pg_sys::{
        DATEOID, FLOAT4OID, FLOAT8OID, INT2OID, INT4OID, INT8OID, INTERVALOID, NUMERICOID,
        TIMESTAMPOID, TIMESTAMPTZOID, UNKNOWNOID,
    };
    Some(match (times, given) {
        (TIMESTAMPTZOID | TIMESTAMPOID | DATEOID, INTERVALOID | UNKNOWNOID) => INTERVALOID,
        (DATEOID, INT2OID | INT4OID | INT8OID) => INT4OID,
        (INT2OID | INT4OID | INT8OID, INT2OID | INT4OID | INT8OID | UNKNOWNOID) => INT8OID,
        (INT2OID | INT4OID | INT8OID, NUMERICOID) => NUMERICOID,
        (NUMERICOID, INT2OID | INT4OID | INT8OID | NUMERICOID | UNKNOWNOID) => NUMERICOID,
        (FLOAT4OID | FLOAT8OID, INT2OID | INT4OID | INT8OID | NUMERICOID | UNKNOWNOID) => FLOAT8OID,
        (
            INT2OID | INT4OID | INT8OID | NUMERICOID | FLOAT4OID | FLOAT8OID,
            FLOAT4OID | FLOAT8OID,
        ) => FLOAT8OID,
        _ => return None,
    })
}

/// A checked tolerance for times of a type, converted to a type that can be added to them.
///
/// # Safety
/// A live expression.
pub unsafe fn checked(given: *mut pg_sys::Node, times: pg_sys::Oid) -> *mut pg_sys::Node {
    // SAFETY: a live expression; the cast follows the tag.
    unsafe {
        let given_type = pg_sys::exprType(given);
        let Some(wanted) = taken_as(pg_sys::getBaseType(times), pg_sys::getBaseType(given_type))
        else {
            error::raise(
                PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
                format!(
                    "a tolerance of type {} does not fit times of type {}",
                    names::type_name(given_type),
                    names::type_name(times)
                ),
                "Use an interval for timestamps and dates, and a number for numbers.",
            )
        };
        let coerced = pg_sys::coerce_to_target_type(
            std::ptr::null_mut(),
            tree::copy(given),
            given_type,
            wanted,
            -1,
            pg_sys::CoercionContext::COERCION_ASSIGNMENT,
            pg_sys::CoercionForm::COERCE_IMPLICIT_CAST,
            -1,
        );
        if coerced.is_null() {
            error::raise(
                PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
                format!(
                    "a tolerance of type {} cannot be read as {}",
                    names::type_name(given_type),
                    names::type_name(wanted)
                ),
                HINT,
            );
        }
        let folded = pg_sys::eval_const_expressions(std::ptr::null_mut(), coerced);
        if tree::is_a(folded, pg_sys::NodeTag::T_Const) {
            let constant: *const pg_sys::Const = folded.cast();
            check(wanted, (*constant).constvalue, (*constant).constisnull);
            return folded;
        }
        let check = marker::function(c"asof_tolerance", &[wanted]);
        pg_sys::makeFuncExpr(
            check,
            wanted,
            tree::list(&[coerced]),
            pg_sys::InvalidOid,
            pg_sys::InvalidOid,
            pg_sys::CoercionForm::COERCE_EXPLICIT_CALL,
        )
        .cast()
    }
}

/// Raises an error unless a value is zero or more.
///
/// # Safety
/// `value` is of type `kind`, one of those that [`taken_as`] names.
unsafe fn check(kind: pg_sys::Oid, value: pg_sys::Datum, is_null: bool) {
    // SAFETY: the caller's promise.
    let legal = unsafe {
        match kind {
            _ if is_null => false,
            pg_sys::INT4OID => value.value() as i32 >= 0,
            pg_sys::INT8OID => value.value() as i64 >= 0,
            // False for NaN.
            pg_sys::FLOAT8OID => f64::from_bits(value.value() as u64) >= 0.0,
            pg_sys::NUMERICOID => AnyNumeric::from_datum(value, false)
                .is_some_and(|number| !number.is_nan() && number >= AnyNumeric::from(0)),
            _ => {
                // As intervals compare: a month is 30 days, a day 24 hours.
                let interval = &*value.cast_mut_ptr::<pg_sys::Interval>();
                let days = i128::from(interval.month) * 30 + i128::from(interval.day);
                days * 86_400_000_000 + i128::from(interval.time) >= 0
            }
        }
    };
    if !legal {
        error::raise(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            "the tolerance of an ASOF join must not be negative or NULL",
            HINT,
        );
    }
}

/// `lanes.asof_tolerance(t)`: returns its argument, unless that is negative or NULL.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn lanes_asof_tolerance(
    call: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    // SAFETY: the manager of functions calls with the declared argument; every overload returns what it is given.
    unsafe {
        let argument = (*call).args.as_slice(1)[0];
        let kind = pg_sys::get_fn_expr_argtype((*call).flinfo, 0);
        check(kind, argument.value, argument.isnull);
        argument.value
    }
}

super::version_1!(pg_finfo_lanes_asof_tolerance);

/// The distance function for times of a type that [`measured_type`] names.
///
/// # Safety
/// Runs inside a transaction.
pub unsafe fn distance_function(kind: pg_sys::Oid) -> pg_sys::Oid {
    const NAME: &CStr = c"asof_distance";
    // SAFETY: a catalogue look-up.
    unsafe { marker::function(NAME, &[kind, kind]) }
}

/// An unsigned distance as a signed number in the same order.
fn ordered(distance: u64) -> i64 {
    (distance ^ (1 << 63)) as i64
}

/// `|a - b|` of timestamps. Infinity is infinitely far from everything but itself.
fn distance_timestamp(a: i64, b: i64) -> i64 {
    let infinite = |time: i64| time == i64::MIN || time == i64::MAX;
    if a != b && (infinite(a) || infinite(b)) {
        return i64::MAX;
    }
    ordered(a.abs_diff(b))
}

/// `|a - b|` of dates, see [`distance_timestamp`].
fn distance_date(a: i32, b: i32) -> i64 {
    let infinite = |day: i32| day == i32::MIN || day == i32::MAX;
    if a != b && (infinite(a) || infinite(b)) {
        return i64::MAX;
    }
    ordered(u64::from(a.abs_diff(b)))
}

/// `|a - b|` of floats. NaN is equal to itself and infinitely far from everything else.
fn distance_float(a: f64, b: f64) -> f64 {
    if a == b || (a.is_nan() && b.is_nan()) {
        0.0
    } else if a.is_nan() || b.is_nan() {
        f64::INFINITY
    } else {
        (a - b).abs()
    }
}

unsafe fn pair(call: pg_sys::FunctionCallInfo) -> (pg_sys::Datum, pg_sys::Datum) {
    // SAFETY: a strict function of two arguments.
    unsafe {
        let arguments = (*call).args.as_slice(2);
        (arguments[0].value, arguments[1].value)
    }
}

/// `lanes.asof_distance` of two timestamps.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn lanes_asof_distance_timestamp(
    call: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    // SAFETY: declared with two timestamps.
    let (a, b) = unsafe { pair(call) };
    distance_timestamp(a.value() as i64, b.value() as i64).into()
}

/// `lanes.asof_distance` of two dates.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn lanes_asof_distance_date(
    call: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    // SAFETY: declared with two dates.
    let (a, b) = unsafe { pair(call) };
    distance_date(a.value() as i32, b.value() as i32).into()
}

/// `lanes.asof_distance` of two integers.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn lanes_asof_distance_integer(
    call: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    // SAFETY: declared with two int8.
    let (a, b) = unsafe { pair(call) };
    ordered((a.value() as i64).abs_diff(b.value() as i64)).into()
}

/// `lanes.asof_distance` of two floats.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn lanes_asof_distance_float(
    call: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    // SAFETY: declared with two float8.
    let (a, b) = unsafe { pair(call) };
    let distance = distance_float(
        f64::from_bits(a.value() as u64),
        f64::from_bits(b.value() as u64),
    );
    pg_sys::Datum::from(distance.to_bits() as usize)
}

super::version_1!(pg_finfo_lanes_asof_distance_timestamp);
super::version_1!(pg_finfo_lanes_asof_distance_date);
super::version_1!(pg_finfo_lanes_asof_distance_integer);
super::version_1!(pg_finfo_lanes_asof_distance_float);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_order_as_numbers_do_to_the_last_value() {
        assert!(ordered(0) < ordered(1));
        assert!(ordered(u64::MAX - 1) < ordered(u64::MAX));
        assert_eq!(ordered(i64::MIN.abs_diff(i64::MAX)), i64::MAX);
    }

    #[test]
    fn infinity_is_as_far_on_both_sides() {
        assert_eq!(
            distance_timestamp(0, i64::MIN),
            distance_timestamp(0, i64::MAX)
        );
        assert!(distance_timestamp(i64::MAX, i64::MAX) < distance_timestamp(1, 2));
        assert!(distance_timestamp(i64::MIN + 1, i64::MAX - 1) < distance_timestamp(0, i64::MAX));
        assert_eq!(distance_date(0, i32::MIN), distance_date(i32::MAX, 0));
        assert_eq!(distance_float(f64::INFINITY, f64::INFINITY), 0.0);
        assert_eq!(distance_float(f64::NAN, f64::NAN), 0.0);
        assert_eq!(distance_float(f64::NAN, 0.0), f64::INFINITY);
    }
}
