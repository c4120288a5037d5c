//! Arithmetic of `numeric`, by PostgreSQL's own functions. Results are in the current memory context.

use std::ffi::CStr;

use lanes_columnar::vector::decimal::Decimal;
use pgrx::IntoDatum;
use pgrx::pg_sys::{self, Datum};

use super::numeric_digits::NumericDigits;

/// A numeric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Numeric(Datum);

type Function = unsafe fn(pg_sys::FunctionCallInfo) -> Datum;

/// Calls a function with arguments of the types that it takes.
///
/// # Safety
/// The function takes these arguments and never returns NULL for them.
unsafe fn call(function: Function, arguments: &[Datum]) -> Datum {
    let arguments: Vec<Option<Datum>> = arguments.iter().copied().map(Some).collect();
    // SAFETY: see above.
    let result = unsafe { pgrx::direct_function_call_as_datum(function, &arguments) };
    result.expect("functions of numerics return values")
}

impl Numeric {
    /// A datum that is a numeric.
    ///
    /// # Safety
    /// The datum is a live numeric.
    pub unsafe fn new(datum: Datum) -> Numeric {
        Numeric(datum)
    }

    /// An integer as a numeric.
    pub fn from_integer(value: i128) -> Numeric {
        match i64::try_from(value) {
            // SAFETY: allocates a numeric.
            Ok(small) => Numeric(Datum::from(unsafe { pg_sys::int64_to_numeric(small) })),
            Err(_) => Numeric::from_text(&value.to_string()),
        }
    }

    /// An integer divided by ten to the power of `scale`, with so many digits after the point.
    pub fn from_scaled(value: i128, scale: u8) -> Numeric {
        // A numeric is a varlena, as bytes are.
        let datum = NumericDigits::of(value, scale).payload().into_datum();
        Numeric(datum.unwrap_or(Datum::null()))
    }

    /// The number as a decimal; `None` if it does not fit.
    pub fn decimal(self) -> Option<Decimal> {
        // SAFETY: a live numeric, detoasted.
        unsafe { Decimal::of_item(pg_sys::pg_detoast_datum(self.0.cast_mut_ptr()).cast()) }
    }

    /// The numeric that a text spells. It is an ERROR if the text is not a number.
    pub fn from_text(text: &str) -> Numeric {
        let text = std::ffi::CString::new(text).unwrap_or_default();
        let arguments = [
            Datum::from(text.as_ptr().cast_mut()),
            Datum::from(0u32),
            Datum::from(-1i32),
        ];
        // SAFETY: the input function takes a C string, a type that it ignores, and a modifier.
        Numeric(unsafe { call(pg_sys::numeric_in, &arguments) })
    }

    /// The datum.
    pub fn datum(self) -> Datum {
        self.0
    }

    /// The text that spells the number.
    pub fn to_text(self) -> String {
        // SAFETY: the output function takes a numeric and returns a C string.
        let text = unsafe { call(pg_sys::numeric_out, &[self.0]) };
        // SAFETY: a string that ends with a NUL.
        let text = unsafe { CStr::from_ptr(text.cast_mut_ptr()) };
        text.to_string_lossy().into_owned()
    }

    /// `self + other` and its like: a function of two numerics.
    fn with(self, function: Function, other: Numeric) -> Numeric {
        // SAFETY: the callers below pass functions that take and return numerics.
        Numeric(unsafe { call(function, &[self.0, other.0]) })
    }

    /// `self - other`
    pub fn minus(self, other: Numeric) -> Numeric {
        self.with(pg_sys::numeric_sub, other)
    }

    /// `self * other`
    pub fn times(self, other: Numeric) -> Numeric {
        self.with(pg_sys::numeric_mul, other)
    }

    /// `self / other`. It is an ERROR if `other` is zero.
    pub fn divided_by(self, other: Numeric) -> Numeric {
        self.with(pg_sys::numeric_div, other)
    }

    /// `floor(self)`
    pub fn floor(self) -> Numeric {
        // SAFETY: takes and returns a numeric.
        Numeric(unsafe { call(pg_sys::numeric_floor, &[self.0]) })
    }

    /// `sqrt(self)`. It is an ERROR if the number is negative.
    pub fn sqrt(self) -> Numeric {
        // SAFETY: takes and returns a numeric.
        Numeric(unsafe { call(pg_sys::numeric_sqrt, &[self.0]) })
    }

    /// `scale(self)`: the number of digits after the point.
    pub fn scale(self) -> i32 {
        // SAFETY: takes a numeric and returns an integer; the callers' numbers are finite, so it is not NULL.
        unsafe { call(pg_sys::numeric_scale, &[self.0]) }.value() as i32
    }

    /// `round(self, scale)`
    pub fn round(self, scale: i32) -> Numeric {
        // SAFETY: takes a numeric and an integer and returns a numeric.
        Numeric(unsafe { call(pg_sys::numeric_round, &[self.0, Datum::from(scale)]) })
    }

    /// Whether the value is not a number.
    pub fn is_nan(self) -> bool {
        // SAFETY: a live numeric, detoasted.
        unsafe { pg_sys::numeric_is_nan(pg_sys::pg_detoast_datum(self.0.cast_mut_ptr()).cast()) }
    }

    /// Whether the number is greater than another.
    pub fn is_greater(self, other: Numeric) -> bool {
        // SAFETY: takes two numerics and returns an integer.
        unsafe { call(pg_sys::numeric_cmp, &[self.0, other.0]) }.value() as i32 > 0
    }

    /// The number as a bigint, rounded. It is an ERROR if it is out of range.
    pub fn to_bigint(self) -> i64 {
        // SAFETY: takes a numeric and returns a bigint.
        unsafe { call(pg_sys::numeric_int8, &[self.0]) }.value() as i64
    }
}

/// A time whose seconds since 1970 are extracted.
#[derive(Clone, Copy, Debug)]
pub enum Time {
    /// `timestamp`, in microseconds.
    Timestamp(i64),
    /// `timestamp with time zone`, in microseconds.
    Zoned(i64),
    /// `date`, in days.
    Date(i32),
}

/// `extract(epoch from time)`
pub fn epoch_of(time: Time) -> Numeric {
    let (function, time): (Function, Datum) = match time {
        Time::Timestamp(time) => (pg_sys::extract_timestamp, Datum::from(time)),
        Time::Zoned(time) => (pg_sys::extract_timestamptz, Datum::from(time)),
        Time::Date(day) => (pg_sys::extract_date, Datum::from(day)),
    };
    let field = pgrx::IntoDatum::into_datum("epoch").unwrap_or(Datum::null());
    // SAFETY: each function takes a text and a time of its type and returns a numeric.
    Numeric(unsafe { call(function, &[field, time]) })
}
