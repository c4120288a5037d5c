//! Values as the ASOF join compares them: times as integers in the order of the times, and keys as
//! bytes that are equal if the keys are.

use lanes_columnar::join::key_set::place_of_float as order_of_float;
use pgrx::pg_sys;

use super::datum;

/// The kind of a type: how its values are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Kind {
    /// int2
    Int2 = 0,
    /// int4
    Int4 = 1,
    /// int8
    Int8 = 2,
    /// float4
    Float4 = 3,
    /// float8
    Float8 = 4,
    /// date
    Date = 5,
    /// timestamp
    Timestamp = 6,
    /// timestamptz
    Timestamptz = 7,
    /// bool; a key only
    Bool = 8,
    /// text, varchar; a key only
    Text = 9,
    /// uuid; a key only
    Uuid = 10,
}

const ALL: [Kind; 11] = [
    Kind::Int2,
    Kind::Int4,
    Kind::Int8,
    Kind::Float4,
    Kind::Float8,
    Kind::Date,
    Kind::Timestamp,
    Kind::Timestamptz,
    Kind::Bool,
    Kind::Text,
    Kind::Uuid,
];

impl Kind {
    /// The kind of an operator's declared input type.
    pub fn of_type(kind: pg_sys::Oid) -> Option<Kind> {
        Some(match kind {
            pg_sys::INT2OID => Kind::Int2,
            pg_sys::INT4OID => Kind::Int4,
            pg_sys::INT8OID => Kind::Int8,
            pg_sys::FLOAT4OID => Kind::Float4,
            pg_sys::FLOAT8OID => Kind::Float8,
            pg_sys::DATEOID => Kind::Date,
            pg_sys::TIMESTAMPOID => Kind::Timestamp,
            pg_sys::TIMESTAMPTZOID => Kind::Timestamptz,
            pg_sys::BOOLOID => Kind::Bool,
            pg_sys::TEXTOID | pg_sys::VARCHAROID => Kind::Text,
            pg_sys::UUIDOID => Kind::Uuid,
            _ => return None,
        })
    }

    /// The kind with this number.
    pub fn from_number(number: i32) -> Option<Kind> {
        ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// Whether values of two kinds are equal, and ordered, exactly as their images are.
    pub fn compares_with(self, other: Kind) -> bool {
        self == other
            || self.is_integer() && other.is_integer()
            || self.is_float() && other.is_float()
    }

    fn is_integer(self) -> bool {
        matches!(self, Kind::Int2 | Kind::Int4 | Kind::Int8)
    }

    fn is_float(self) -> bool {
        matches!(self, Kind::Float4 | Kind::Float8)
    }

    /// Whether the images of values are in the values' order.
    pub fn is_ordered(self) -> bool {
        !matches!(self, Kind::Bool | Kind::Text | Kind::Uuid)
    }

    /// The image of a value: an integer in the order of the type's own operators.
    pub fn ordered(self, value: pg_sys::Datum) -> i64 {
        match self {
            Kind::Int2 => i64::from(value.value() as i16),
            Kind::Int4 | Kind::Date => i64::from(value.value() as i32),
            Kind::Float4 => order_of_float(f64::from(f32::from_bits(value.value() as u32))),
            Kind::Float8 => order_of_float(f64::from_bits(value.value() as u64)),
            Kind::Bool => i64::from(value.value() & 0xff != 0),
            Kind::Int8 | Kind::Timestamp | Kind::Timestamptz | Kind::Text | Kind::Uuid => {
                value.value() as i64
            }
        }
    }

    /// Appends the image of a key: a value of this kind. A detoasted copy is allocated in the current memory context.
    pub fn append_key(self, value: pg_sys::Datum, key: &mut Vec<u8>) {
        match self {
            Kind::Text => {
                let bytes = datum::payload(value);
                key.extend_from_slice(&(bytes.len() as u32).to_ne_bytes());
                key.extend_from_slice(bytes);
            }
            Kind::Uuid => key.extend_from_slice(datum::bytes_of(value, 16)),
            _ => key.extend_from_slice(&self.ordered(value).to_ne_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_order_as_postgres_orders_them() {
        let ascending = [
            f64::NEG_INFINITY,
            f64::MIN,
            -1.0,
            -f64::MIN_POSITIVE,
            0.0,
            f64::MIN_POSITIVE,
            1.0,
            f64::MAX,
            f64::INFINITY,
            f64::NAN,
        ];
        assert!(ascending.is_sorted_by(|a, b| order_of_float(*a) < order_of_float(*b)));
        assert_eq!(order_of_float(-0.0), order_of_float(0.0));
        assert_eq!(order_of_float(-f64::NAN), order_of_float(f64::NAN));
    }

    #[test]
    fn kinds_survive_as_numbers() {
        for kind in ALL {
            assert_eq!(Kind::from_number(kind as i32), Some(kind));
        }
        assert_eq!(Kind::from_number(11), None);
        assert_eq!(Kind::from_number(-1), None);
    }
}
