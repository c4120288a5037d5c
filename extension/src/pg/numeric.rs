//! Arithmetic of `numeric`, by PostgreSQL's own functions. Results are in the current memory context.

use lanes_columnar::vector::decimal::Decimal;
use pgrx::IntoDatum;
use pgrx::pg_sys::{Datum, Oid};

use super::functions::values;
use super::numeric_digits::NumericDigits;

/// A numeric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Numeric(Datum);

impl Numeric {
    /// A datum that is a numeric, which lives as long as the result is used.
    pub(in crate::pg) fn new(datum: Datum) -> Numeric {
        Numeric(datum)
    }

    /// An integer as a numeric.
    pub fn from_integer(value: i128) -> Numeric {
        match i64::try_from(value) {
            Ok(small) => values::int64_to_numeric(small),
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
        values::numeric_decimal(self)
    }

    /// The numeric that a text spells. It is an ERROR if the text is not a number.
    pub fn from_text(text: &str) -> Numeric {
        values::numeric_in(&values::c_string(text), Oid::INVALID, -1)
    }

    /// The datum.
    pub fn datum(self) -> Datum {
        self.0
    }

    /// The text that spells the number.
    pub fn to_text(self) -> String {
        values::numeric_out(self)
    }

    /// `self + other`
    pub fn plus(self, other: Numeric) -> Numeric {
        values::numeric_add(self, other)
    }

    /// `self - other`
    pub fn minus(self, other: Numeric) -> Numeric {
        values::numeric_sub(self, other)
    }

    /// `self * other`
    pub fn times(self, other: Numeric) -> Numeric {
        values::numeric_mul(self, other)
    }

    /// `self / other`. It is an ERROR if `other` is zero.
    pub fn divided_by(self, other: Numeric) -> Numeric {
        values::numeric_div(self, other)
    }

    /// `floor(self)`
    pub fn floor(self) -> Numeric {
        values::numeric_floor(self)
    }

    /// `sqrt(self)`. It is an ERROR if the number is negative.
    pub fn sqrt(self) -> Numeric {
        values::numeric_sqrt(self)
    }

    /// `scale(self)`: the number of digits after the point. It is an ERROR if the value is NaN or infinite.
    pub fn scale(self) -> i32 {
        values::numeric_scale(self)
    }

    /// `round(self, scale)`
    pub fn round(self, scale: i32) -> Numeric {
        values::numeric_round(self, scale)
    }

    /// Whether the value is not a number.
    pub fn is_nan(self) -> bool {
        values::numeric_is_nan(self)
    }

    /// Whether the number is greater than another.
    pub fn is_greater(self, other: Numeric) -> bool {
        values::numeric_cmp(self, other) > 0
    }

    /// The number as a bigint, rounded. It is an ERROR if it is out of range.
    pub fn to_bigint(self) -> i64 {
        values::numeric_int8(self)
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
    let field = "epoch";
    match time {
        Time::Timestamp(time) => values::extract_timestamp(field, time),
        Time::Zoned(time) => values::extract_timestamptz(field, time),
        Time::Date(day) => values::extract_date(field, day),
    }
}
