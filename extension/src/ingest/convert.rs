//! The SQL types that each batch type can be appended to. A conversion has the meaning of an
//! assignment cast. Types without a conversion are refused, except that `Text` goes into every type
//! by its input function, as in COPY.

use lanes_wire::{ColumnType, ColumnView, Values};
use pgrx::pg_sys;

use super::refusal::Refusal;

/// PostgreSQL counts from 2000-01-01, batches from 1970-01-01.
const EPOCH_DAYS: i32 = 10_957;
const EPOCH_MICROSECONDS: i64 = EPOCH_DAYS as i64 * 86_400_000_000;

/// How values of a batch column become values of an attribute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Conversion {
    /// `Bool` to bool.
    Bool,
    /// Any integer to int2, int4 or int8.
    Integer { width: usize },
    /// Any number to float4 or float8.
    Float { width: usize },
    /// `Timestamp` to timestamptz or timestamp.
    Timestamp,
    /// `Date` to date.
    Date,
    /// `Uuid` to uuid.
    Uuid,
    /// `Text` to text, varchar or bpchar.
    Text,
    /// `Bytes` to bytea.
    Bytes,
    /// `Text`, or an integer in digits, to any type by its input function.
    Input,
}

impl Conversion {
    /// The conversion from a batch type to a type that is no domain, or to the type under a domain.
    pub fn find(from: ColumnType, to: pg_sys::Oid) -> Option<Self> {
        use ColumnType as From;
        match (from, to) {
            (From::Bool, pg_sys::BOOLOID) => Some(Self::Bool),
            (From::Int16 | From::Int32 | From::Int64, pg_sys::INT2OID) => {
                Some(Self::Integer { width: 2 })
            }
            (From::Int16 | From::Int32 | From::Int64, pg_sys::INT4OID) => {
                Some(Self::Integer { width: 4 })
            }
            (From::Int16 | From::Int32 | From::Int64, pg_sys::INT8OID) => {
                Some(Self::Integer { width: 8 })
            }
            (From::Int16 | From::Int32 | From::Int64, pg_sys::NUMERICOID) => Some(Self::Input),
            (
                From::Int16 | From::Int32 | From::Int64 | From::Float32 | From::Float64,
                pg_sys::FLOAT4OID | pg_sys::FLOAT8OID,
            ) => Some(Self::Float {
                width: if to == pg_sys::FLOAT4OID { 4 } else { 8 },
            }),
            (From::Timestamp, pg_sys::TIMESTAMPTZOID | pg_sys::TIMESTAMPOID) => {
                Some(Self::Timestamp)
            }
            (From::Date, pg_sys::DATEOID) => Some(Self::Date),
            (From::Uuid, pg_sys::UUIDOID) => Some(Self::Uuid),
            (From::Text, pg_sys::TEXTOID | pg_sys::VARCHAROID | pg_sys::BPCHAROID) => {
                Some(Self::Text)
            }
            (From::Text, _) => Some(Self::Input),
            (From::Bytes, pg_sys::BYTEAOID) => Some(Self::Bytes),
            _ => None,
        }
    }

    /// Bytes of a converted value, for those that [`fixed`] converts.
    pub fn width(self) -> Option<usize> {
        match self {
            Self::Integer { width } | Self::Float { width } => Some(width),
            Self::Timestamp => Some(8),
            Self::Date => Some(4),
            Self::Bool | Self::Uuid | Self::Text | Self::Bytes | Self::Input => None,
        }
    }

    /// Whether the batch's bytes are the attribute's bytes.
    pub fn is_identity(self, from: ColumnType) -> bool {
        match self {
            Self::Integer { width } => from.width() == Some(width),
            Self::Float { width } => {
                from.width() == Some(width)
                    && matches!(from, ColumnType::Float32 | ColumnType::Float64)
            }
            Self::Uuid => true,
            _ => false,
        }
    }
}

enum Number {
    Integer(i64),
    Float32(f32),
    Float64(f64),
}

fn read<const N: usize>(values: &Values<'_>, row: usize) -> [u8; N] {
    values.arrays::<N>().map_or([0; N], |arrays| arrays[row])
}

/// The integer of a row of an integer column.
pub fn integer(column: &ColumnView<'_>, row: usize) -> i64 {
    match column.column_type() {
        ColumnType::Int16 => i16::from_le_bytes(read(column.values(), row)).into(),
        ColumnType::Int32 => i32::from_le_bytes(read(column.values(), row)).into(),
        _ => i64::from_le_bytes(read(column.values(), row)),
    }
}

fn number(column: &ColumnView<'_>, row: usize) -> Number {
    match column.column_type() {
        ColumnType::Float32 => Number::Float32(f32::from_le_bytes(read(column.values(), row))),
        ColumnType::Float64 => Number::Float64(f64::from_le_bytes(read(column.values(), row))),
        _ => Number::Integer(integer(column, row)),
    }
}

/// A timestamp, from microseconds since 1970 to microseconds since 2000. Infinities stay infinite.
/// A verified timestamp cannot overflow. A value under a NULL may, but has no meaning.
pub fn timestamp(unix: i64) -> i64 {
    if unix == i64::MIN || unix == i64::MAX {
        unix
    } else {
        unix.wrapping_sub(EPOCH_MICROSECONDS)
    }
}

/// A date, from days since 1970 to days since 2000, by the rules of [`timestamp`].
pub fn date(unix: i32) -> i32 {
    if unix == i32::MIN || unix == i32::MAX {
        unix
    } else {
        unix.wrapping_sub(EPOCH_DAYS)
    }
}

/// The converted value of a row that is not NULL, in the low [`Conversion::width`] bytes.
pub fn fixed(column: &ColumnView<'_>, conversion: Conversion, row: usize) -> Result<u64, Refusal> {
    let out_of_range = |column_type| Refusal::OutOfRange {
        column: column.name().to_owned(),
        column_type,
        row,
    };
    match conversion {
        Conversion::Integer { width: 2 } => i16::try_from(integer(column, row))
            .map(|value| value as u64)
            .map_err(|_| out_of_range("smallint")),
        Conversion::Integer { width: 4 } => i32::try_from(integer(column, row))
            .map(|value| value as u64)
            .map_err(|_| out_of_range("integer")),
        Conversion::Integer { .. } => Ok(integer(column, row) as u64),
        Conversion::Float { width: 4 } => match number(column, row) {
            Number::Integer(value) => Ok((value as f32).to_bits().into()),
            Number::Float32(value) => Ok(value.to_bits().into()),
            Number::Float64(value) => {
                let narrow = value as f32;
                // As in PostgreSQL's cast, overflow and underflow are errors.
                if narrow.is_infinite() && value.is_finite() || narrow == 0.0 && value != 0.0 {
                    return Err(out_of_range("real"));
                }
                Ok(narrow.to_bits().into())
            }
        },
        Conversion::Float { .. } => Ok(match number(column, row) {
            Number::Integer(value) => (value as f64).to_bits(),
            Number::Float32(value) => f64::from(value).to_bits(),
            Number::Float64(value) => value.to_bits(),
        }),
        Conversion::Timestamp => {
            Ok(timestamp(i64::from_le_bytes(read(column.values(), row))) as u64)
        }
        Conversion::Date => Ok(date(i32::from_le_bytes(read(column.values(), row))) as u64),
        Conversion::Bool
        | Conversion::Uuid
        | Conversion::Text
        | Conversion::Bytes
        | Conversion::Input => Ok(0),
    }
}
