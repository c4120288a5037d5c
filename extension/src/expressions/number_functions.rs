//! PostgreSQL's functions of numbers that have an exact counterpart in the engine, by their OIDs.

use lanes_columnar::vector::number::{NumberType, Operation};
use lanes_columnar::vector::text_length::TextUnit;
use lanes_columnar::vector::value::Rounding;
use pgrx::pg_sys;

use super::translate::Translation;
use crate::pg::text;
use crate::pg::tree::{Const, Expr};
use crate::pg::typed_datum::TypedDatum;

/// The operator of a function of two numbers, and the type in which it is computed.
pub fn arithmetic(function: u32) -> Option<(NumberType, Operation)> {
    use NumberType::{F32, F64, I16, I32, I64};
    use Operation::{Add, Divide, Modulo, Multiply, Subtract};
    Some(match function {
        pg_sys::F_INT2PL => (I16, Add),
        pg_sys::F_INT2MI => (I16, Subtract),
        pg_sys::F_INT2MUL => (I16, Multiply),
        pg_sys::F_INT2DIV => (I16, Divide),
        pg_sys::F_INT2MOD => (I16, Modulo),
        pg_sys::F_INT4PL | pg_sys::F_INT24PL | pg_sys::F_INT42PL => (I32, Add),
        pg_sys::F_INT4MI | pg_sys::F_INT24MI | pg_sys::F_INT42MI => (I32, Subtract),
        pg_sys::F_INT4MUL | pg_sys::F_INT24MUL | pg_sys::F_INT42MUL => (I32, Multiply),
        pg_sys::F_INT4DIV | pg_sys::F_INT24DIV | pg_sys::F_INT42DIV => (I32, Divide),
        pg_sys::F_INT4MOD => (I32, Modulo),
        pg_sys::F_INT8PL
        | pg_sys::F_INT48PL
        | pg_sys::F_INT84PL
        | pg_sys::F_INT28PL
        | pg_sys::F_INT82PL => (I64, Add),
        pg_sys::F_INT8MI
        | pg_sys::F_INT48MI
        | pg_sys::F_INT84MI
        | pg_sys::F_INT28MI
        | pg_sys::F_INT82MI => (I64, Subtract),
        pg_sys::F_INT8MUL
        | pg_sys::F_INT48MUL
        | pg_sys::F_INT84MUL
        | pg_sys::F_INT28MUL
        | pg_sys::F_INT82MUL => (I64, Multiply),
        pg_sys::F_INT8DIV
        | pg_sys::F_INT48DIV
        | pg_sys::F_INT84DIV
        | pg_sys::F_INT28DIV
        | pg_sys::F_INT82DIV => (I64, Divide),
        pg_sys::F_INT8MOD => (I64, Modulo),
        pg_sys::F_FLOAT4PL => (F32, Add),
        pg_sys::F_FLOAT4MI => (F32, Subtract),
        pg_sys::F_FLOAT4MUL => (F32, Multiply),
        pg_sys::F_FLOAT4DIV => (F32, Divide),
        pg_sys::F_FLOAT8PL | pg_sys::F_FLOAT48PL | pg_sys::F_FLOAT84PL => (F64, Add),
        pg_sys::F_FLOAT8MI | pg_sys::F_FLOAT48MI | pg_sys::F_FLOAT84MI => (F64, Subtract),
        pg_sys::F_FLOAT8MUL | pg_sys::F_FLOAT48MUL | pg_sys::F_FLOAT84MUL => (F64, Multiply),
        pg_sys::F_FLOAT8DIV | pg_sys::F_FLOAT48DIV | pg_sys::F_FLOAT84DIV => (F64, Divide),
        _ => return None,
    })
}

/// How a function measures a text, if it returns the length of one. `None` also where characters have several bytes and
/// are not those of UTF-8.
pub fn text_unit(function: u32) -> Option<TextUnit> {
    match function {
        pg_sys::F_OCTET_LENGTH_TEXT => Some(TextUnit::Bytes),
        pg_sys::F_LENGTH_TEXT | pg_sys::F_CHAR_LENGTH_TEXT | pg_sys::F_CHARACTER_LENGTH_TEXT => {
            text::length_unit()
        }
        _ => None,
    }
}

/// The type of the numbers that a function negates, if it is a unary minus.
pub fn negation(function: u32) -> Option<NumberType> {
    Some(match function {
        pg_sys::F_INT2UM => NumberType::I16,
        pg_sys::F_INT4UM => NumberType::I32,
        pg_sys::F_INT8UM => NumberType::I64,
        pg_sys::F_FLOAT4UM => NumberType::F32,
        pg_sys::F_FLOAT8UM => NumberType::F64,
        _ => return None,
    })
}

/// Whether a function returns a number without its sign.
pub fn is_absolute(function: u32) -> bool {
    matches!(
        function,
        pg_sys::F_ABS_INT2
            | pg_sys::F_ABS_INT4
            | pg_sys::F_ABS_INT8
            | pg_sys::F_ABS_FLOAT4
            | pg_sys::F_ABS_FLOAT8
            | pg_sys::F_INT2ABS
            | pg_sys::F_INT4ABS
            | pg_sys::F_INT8ABS
            | pg_sys::F_FLOAT4ABS
            | pg_sys::F_FLOAT8ABS
    )
}

/// The sign with which a function adds an interval to a timestamp: 1 or -1.
pub fn shift(function: u32) -> Option<i64> {
    match function {
        pg_sys::F_TIMESTAMP_PL_INTERVAL | pg_sys::F_TIMESTAMPTZ_PL_INTERVAL => Some(1),
        pg_sys::F_TIMESTAMP_MI_INTERVAL | pg_sys::F_TIMESTAMPTZ_MI_INTERVAL => Some(-1),
        _ => None,
    }
}

/// How a function rounds doubles.
pub fn rounding(function: u32) -> Option<Rounding> {
    match function {
        pg_sys::F_FLOOR_FLOAT8 => Some(Rounding::Floor),
        pg_sys::F_CEIL_FLOAT8 | pg_sys::F_CEILING_FLOAT8 => Some(Rounding::Ceiling),
        _ => None,
    }
}

/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;

/// The length in microseconds of a constant interval that a function adds to a timestamp.
///
/// # Errors
/// If the length depends on the timestamp: a month has none, and a day has none in a time zone.
pub fn microseconds(expr: Expr<'_>, function: u32) -> Translation<i64> {
    let constant = expr.as_const().and_then(Const::value);
    let Some(interval) = constant.and_then(TypedDatum::interval) else {
        return Err("an interval that is no constant".into());
    };
    let has_zone = matches!(
        function,
        pg_sys::F_TIMESTAMPTZ_PL_INTERVAL | pg_sys::F_TIMESTAMPTZ_MI_INTERVAL
    );
    if interval.month != 0 || has_zone && interval.day != 0 {
        return Err("an interval of months, or of days in a time zone".into());
    }
    let days = i64::from(interval.day).checked_mul(DAY);
    let length = days.and_then(|days| days.checked_add(interval.time));
    length
        .filter(|length| *length != i64::MIN)
        .ok_or_else(|| "an interval beyond all times".into())
}

/// The types between which a function casts numbers.
pub fn cast(function: u32) -> Option<(NumberType, NumberType)> {
    use NumberType::{F32, F64, I16, I32, I64};
    Some(match function {
        pg_sys::F_INT4_INT2 => (I16, I32),
        pg_sys::F_INT8_INT2 => (I16, I64),
        pg_sys::F_FLOAT4_INT2 => (I16, F32),
        pg_sys::F_FLOAT8_INT2 => (I16, F64),
        pg_sys::F_INT2_INT4 => (I32, I16),
        pg_sys::F_INT8_INT4 => (I32, I64),
        pg_sys::F_FLOAT4_INT4 => (I32, F32),
        pg_sys::F_FLOAT8_INT4 => (I32, F64),
        pg_sys::F_INT2_INT8 => (I64, I16),
        pg_sys::F_INT4_INT8 => (I64, I32),
        pg_sys::F_FLOAT4_INT8 => (I64, F32),
        pg_sys::F_FLOAT8_INT8 => (I64, F64),
        pg_sys::F_INT2_FLOAT4 => (F32, I16),
        pg_sys::F_INT4_FLOAT4 => (F32, I32),
        pg_sys::F_INT8_FLOAT4 => (F32, I64),
        pg_sys::F_FLOAT8_FLOAT4 => (F32, F64),
        pg_sys::F_INT2_FLOAT8 => (F64, I16),
        pg_sys::F_INT4_FLOAT8 => (F64, I32),
        pg_sys::F_INT8_FLOAT8 => (F64, I64),
        pg_sys::F_FLOAT4_FLOAT8 => (F64, F32),
        _ => return None,
    })
}
