//! Functions of SQL on values that are built in.
//!
//! Each is called by the function of C that implements it, with values of the types that SQL declares.

use std::ffi::{CStr, CString};

use lanes_columnar::vector::decimal::Decimal;
use pgrx::datum::Interval;
use pgrx::pg_sys::{self, Datum, Oid};
use pgrx::{FromDatum, IntoDatum};

use crate::pg::numeric::Numeric;
use crate::pg::time_zone::ZoneName;

/// A value as an argument of such a function.
pub trait Value {
    /// The argument.
    fn into_argument(self) -> Option<Datum>;
}

/// The result of a function of SQL.
pub trait Returned: Sized {
    /// The value of a result, which is not NULL.
    ///
    /// # Safety
    /// The datum is of the type that this one stands for.
    unsafe fn of_result(datum: Datum) -> Self;
}

macro_rules! by_value {
    ($($type:ty),*) => {$(
        impl Value for $type {
            fn into_argument(self) -> Option<Datum> {
                Some(Datum::from(self))
            }
        }

        impl Returned for $type {
            unsafe fn of_result(datum: Datum) -> $type {
                datum.value() as $type
            }
        }
    )*};
}

by_value!(i32, i64);

impl Value for Oid {
    fn into_argument(self) -> Option<Datum> {
        Some(self.into())
    }
}

impl Value for Numeric {
    fn into_argument(self) -> Option<Datum> {
        Some(self.datum())
    }
}

impl Returned for Numeric {
    unsafe fn of_result(datum: Datum) -> Numeric {
        Numeric::new(datum)
    }
}

/// A C string.
impl Value for &CStr {
    fn into_argument(self) -> Option<Datum> {
        Some(Datum::from(self.as_ptr()))
    }
}

/// The text of a C string.
impl Returned for String {
    unsafe fn of_result(datum: Datum) -> String {
        // SAFETY: the trait's contract: the string ends with a NUL.
        let text = unsafe { CStr::from_ptr(datum.cast_mut_ptr()) };
        text.to_string_lossy().into_owned()
    }
}

/// A text.
impl Value for &str {
    fn into_argument(self) -> Option<Datum> {
        self.into_datum()
    }
}

impl Value for ZoneName {
    fn into_argument(self) -> Option<Datum> {
        Some(self.0)
    }
}

/// A value that is used as its datum alone.
impl Returned for Datum {
    unsafe fn of_result(datum: Datum) -> Datum {
        datum
    }
}

impl Returned for Interval {
    unsafe fn of_result(datum: Datum) -> Interval {
        // SAFETY: the trait's contract.
        let interval = unsafe { Interval::from_datum(datum, false) };
        interval.expect("a value that is not NULL")
    }
}

/// Declares such functions: `fn name(argument: Type) -> Type;`. A result of NULL is a panic, which becomes an ERROR.
macro_rules! sql_functions {
    ($(
        $(#[$meta:meta])*
        fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty;
    )*) => {$(
        $(#[$meta])*
        pub fn $name($($argument: $type),*) -> $result {
            let arguments = [$(Value::into_argument($argument)),*];
            // SAFETY: the table has the types that SQL declares.
            unsafe {
                let result = pgrx::direct_function_call_as_datum(pg_sys::$name, &arguments);
                <$result>::of_result(result.expect("a result that is not NULL"))
            }
        }
    )*};
}

sql_functions! {
    /// `extract(field FROM date)`
    fn extract_date(field: &str, date: i32) -> Numeric;
    /// `extract(field FROM timestamp)`
    fn extract_timestamp(field: &str, time: i64) -> Numeric;
    /// `extract(field FROM timestamptz)`
    fn extract_timestamptz(field: &str, time: i64) -> Numeric;
    /// An interval from its text; the type's OID is ignored.
    fn interval_in(text: &CStr, type_of: Oid, modifier: i32) -> Interval;
    /// A jsonb from its text.
    fn jsonb_in(text: &CStr) -> Datum;
    /// -1, 0 or 1.
    fn numeric_cmp(a: Numeric, b: Numeric) -> i32;
    /// `a / b`
    fn numeric_div(a: Numeric, b: Numeric) -> Numeric;
    /// `floor(a)`
    fn numeric_floor(a: Numeric) -> Numeric;
    /// A numeric from its text; the type's OID is ignored.
    fn numeric_in(text: &CStr, type_of: Oid, modifier: i32) -> Numeric;
    /// The number as a bigint, rounded.
    fn numeric_int8(a: Numeric) -> i64;
    /// `a * b`
    fn numeric_mul(a: Numeric, b: Numeric) -> Numeric;
    /// The text of a numeric.
    fn numeric_out(a: Numeric) -> String;
    /// `round(a, digits)`
    fn numeric_round(a: Numeric, digits: i32) -> Numeric;
    /// `scale(a)`. NaN and the infinities have no scale: SQL returns NULL for them, so this panics.
    fn numeric_scale(a: Numeric) -> i32;
    /// `a + b`
    fn numeric_add(a: Numeric, b: Numeric) -> Numeric;
    /// `sqrt(a)`
    fn numeric_sqrt(a: Numeric) -> Numeric;
    /// `a - b`
    fn numeric_sub(a: Numeric, b: Numeric) -> Numeric;
    /// The bytes that a text such as `1 GB` names.
    fn pg_size_bytes(text: &str) -> i64;
    /// A timestamp of the session's time zone as one with a time zone.
    fn timestamp_timestamptz(time: i64) -> i64;
    /// `timezone(zone, timestamptz)`
    fn timestamptz_zone(zone: ZoneName, time: i64) -> i64;
}

/// A bigint as a numeric.
pub fn int64_to_numeric(value: i64) -> Numeric {
    // SAFETY: the function allocates a numeric.
    Numeric::new(Datum::from(unsafe { pg_sys::int64_to_numeric(value) }))
}

/// Whether a numeric is not a number.
pub fn numeric_is_nan(value: Numeric) -> bool {
    // SAFETY: a live numeric, detoasted.
    unsafe { pg_sys::numeric_is_nan(pg_sys::pg_detoast_datum(value.datum().cast_mut_ptr()).cast()) }
}

/// A numeric as a decimal; `None` if it does not fit.
pub fn numeric_decimal(value: Numeric) -> Option<Decimal> {
    // SAFETY: a live numeric, detoasted.
    unsafe { Decimal::of_item(pg_sys::pg_detoast_datum(value.datum().cast_mut_ptr()).cast()) }
}

/// A value as its type's output function writes it.
pub fn output(function: Oid, value: Datum) -> String {
    // SAFETY: the callers pass a value of the type that the function is of; it returns a C string.
    unsafe { String::of_result(Datum::from(pg_sys::OidOutputFunctionCall(function, value))) }
}

/// Calls `take` with the bytes that a type sends for the value that a text spells. The functions are those of the type,
/// and so is the modifier. What they allocate stays in the current memory context.
pub fn resend(text: &[u8], input: (Oid, Oid, i32), send: Oid, take: impl FnOnce(&[u8])) {
    let (function, parameter, modifier) = input;
    // SAFETY: an input function takes a string that ends with a NUL, and a send function returns a bytea.
    unsafe {
        let string = pg_sys::pnstrdup(text.as_ptr().cast(), text.len());
        let value = pg_sys::OidInputFunctionCall(function, string, parameter, modifier);
        let sent = pg_sys::OidSendFunctionCall(send, value);
        take(pgrx::varlena::varlena_to_byte_slice(sent.cast()));
    }
}

/// The value that the input function of a type reads from a text.
pub fn input(function: Oid, text: &CStr, parameter: Oid) -> Datum {
    // SAFETY: such a function takes a C string, which it only reads.
    unsafe { pg_sys::OidInputFunctionCall(function, text.as_ptr().cast_mut(), parameter, -1) }
}

/// The result of a function of one value.
pub fn call(function: Oid, collation: Oid, value: Datum) -> Datum {
    // SAFETY: the callers pass a value of the type that the function takes; the result is not NULL.
    unsafe { pg_sys::OidFunctionCall1Coll(function, collation, value) }
}

/// A text without NULs as a C string; empty if it has one.
pub fn c_string(text: &str) -> CString {
    CString::new(text).unwrap_or_default()
}
