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

use pgrx::{PgSqlErrorCode, pg_sys};

use crate::error;
use crate::pg::numeric::Numeric;
use crate::pg::tree::{Expr, make, parse};
use crate::pg::typed_datum::TypedDatum;
use crate::pg::{call, catalog, names};

const HINT: &str = "A tolerance is how far away a match may be: zero or more.";

/// The type in which distances between values of a type are measured; `None` if they have no distance.
pub fn measured_type(kind: pg_sys::Oid) -> Option<pg_sys::Oid> {
    match catalog::base_type(kind) {
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
pub fn checked<'p>(given: Expr<'p>, times: pg_sys::Oid) -> Expr<'p> {
    let given_type = given.type_of();
    let wanted = taken_as(catalog::base_type(times), catalog::base_type(given_type));
    let Some(wanted) = wanted else {
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
    let Some(coerced) = parse::assigned(given, wanted) else {
        error::raise(
            PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
            format!(
                "a tolerance of type {} cannot be read as {}",
                names::type_name(given_type),
                names::type_name(wanted)
            ),
            HINT,
        );
    };
    let folded = coerced.folded(None);
    if let Some(constant) = folded.as_const() {
        check(constant.value());
        return folded;
    }
    let check = catalog::lanes_function(c"asof_tolerance", &[wanted]);
    make::call(check, wanted, &[coerced])
}

/// Raises an error unless a value of one of the types that [`taken_as`] names is zero or more.
fn check(value: Option<TypedDatum>) {
    if !value.is_some_and(is_legal) {
        error::raise(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            "the tolerance of an ASOF join must not be negative or NULL",
            HINT,
        );
    }
}

fn is_legal(value: TypedDatum) -> bool {
    match value.type_of() {
        pg_sys::INT4OID => call::int4(value.datum()) >= 0,
        pg_sys::INT8OID => call::int8(value.datum()) >= 0,
        // False for NaN.
        pg_sys::FLOAT8OID => call::float8(value.datum()) >= 0.0,
        _ => {
            if let Some(number) = value.numeric() {
                return !number.is_nan() && !Numeric::from_integer(0).is_greater(number);
            }
            // As intervals compare: a month is 30 days, a day 24 hours.
            value.interval().is_some_and(|interval| {
                let days = i128::from(interval.month) * 30 + i128::from(interval.day);
                days * 86_400_000_000 + i128::from(interval.time) >= 0
            })
        }
    }
}

crate::sql_callables! {
    lanes_asof_tolerance, pg_finfo_lanes_asof_tolerance => |call| {
        check(call.typed(0));
        call.argument(0)
    };
    lanes_asof_distance_timestamp, pg_finfo_lanes_asof_distance_timestamp => |call| {
        Some(distance_timestamp(call.int8(0)?, call.int8(1)?).into())
    };
    lanes_asof_distance_date, pg_finfo_lanes_asof_distance_date => |call| {
        Some(distance_date(call.int4(0)?, call.int4(1)?).into())
    };
    lanes_asof_distance_integer, pg_finfo_lanes_asof_distance_integer => |call| {
        Some(ordered(call.int8(0)?.abs_diff(call.int8(1)?)).into())
    };
    lanes_asof_distance_float, pg_finfo_lanes_asof_distance_float => |call| {
        Some(call::float8_datum(distance_float(call.float8(0)?, call.float8(1)?)))
    };
}

/// The distance function for times of a type that [`measured_type`] names.
pub fn distance_function(kind: pg_sys::Oid) -> pg_sys::Oid {
    catalog::lanes_function(c"asof_distance", &[kind, kind])
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
