//! A JSON value, converted and appended to the buffer of its column.

use std::borrow::Cow;

use lanes_wire::{BuildError, ColumnBuffer, limits};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use sonic_rs::LazyValue;
use uuid::Uuid;

use super::raw::{self, Unstorable};
use crate::events::format::time_text;
use crate::model::ColumnKind;

/// The maximum number of characters of a value that a message shows.
const SHOWN_CHARACTERS_MAX: usize = 48;

/// What is wrong with a value. The caller adds its row and column.
pub(super) enum ValueFault {
    Unfit {
        found: String,
        expected: &'static str,
    },
    Nul,
    Build(BuildError),
}

impl From<BuildError> for ValueFault {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::NulInText => Self::Nul,
            error => Self::Build(error),
        }
    }
}

/// Returns the text, truncated for a message.
pub(super) fn clipped(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Whether values of this kind are kept as written.
pub(super) fn needs_raw_text(kind: ColumnKind) -> bool {
    matches!(kind, ColumnKind::Numeric | ColumnKind::Json)
}

fn expected(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::Bool => "true or false",
        ColumnKind::Int2 => "an integer from -32768 to 32767",
        ColumnKind::Int4 => "an integer from -2147483648 to 2147483647",
        ColumnKind::Int8 => "an integer from -9223372036854775808 to 9223372036854775807",
        ColumnKind::Float4 => {
            "a number in the range of real, \"NaN\", \"Infinity\" or \"-Infinity\""
        }
        ColumnKind::Float8 => "a number, \"NaN\", \"Infinity\" or \"-Infinity\"",
        ColumnKind::Numeric => "a number or a string",
        ColumnKind::Timestamp => {
            "a timestamp (RFC 3339 text, or integer microseconds since 1970-01-01 UTC)"
        }
        ColumnKind::Date => "a date (YYYY-MM-DD)",
        ColumnKind::Uuid => "a uuid",
        ColumnKind::Bytes => "a string of \\x and hexadecimal digits",
        ColumnKind::Json => "JSON without unpaired surrogates",
        ColumnKind::Text => "a string",
        ColumnKind::Other => {
            "a string as PostgreSQL writes values of the type (an array: \"{1,2}\")"
        }
    }
}

/// Appends one value to `column`, or sets `fault`.
pub(super) struct ValueSeed<'r> {
    pub(super) kind: ColumnKind,
    pub(super) column: &'r mut ColumnBuffer,
    pub(super) fault: &'r mut Option<ValueFault>,
}

impl ValueSeed<'_> {
    #[cold]
    fn fail<E: Error>(self, fault: ValueFault) -> E {
        *self.fault = Some(fault);
        E::custom("")
    }

    #[cold]
    fn unfit<E: Error>(self, found: String) -> E {
        let expected = expected(self.kind);
        self.fail(ValueFault::Unfit { found, expected })
    }

    #[inline]
    fn stored<E: Error>(self, result: Result<(), BuildError>) -> Result<(), E> {
        match result {
            Ok(()) => Ok(()),
            Err(error) => Err(self.fail(error.into())),
        }
    }

    /// Appends an integer if the column accepts it; `None` if it is out of range or has the wrong
    /// type.
    #[inline]
    fn integer(&mut self, value: i64) -> Option<Result<(), BuildError>> {
        Some(match self.kind {
            ColumnKind::Int2 => self.column.push_i16(i16::try_from(value).ok()?),
            ColumnKind::Int4 => self.column.push_i32(i32::try_from(value).ok()?),
            ColumnKind::Int8 => self.column.push_i64(value),
            ColumnKind::Float4 => self.column.push_f32(value as f32),
            ColumnKind::Float8 => self.column.push_f64(value as f64),
            ColumnKind::Timestamp if limits::is_storable_timestamp(value) => {
                self.column.push_i64(value)
            }
            _ => return None,
        })
    }

    /// Appends a number with a fraction, an exponent, or more digits than an integer has.
    #[inline]
    fn float(&mut self, value: f64) -> Option<Result<(), BuildError>> {
        Some(match self.kind {
            ColumnKind::Float4 => {
                let rounded = value as f32;
                if rounded.is_infinite() {
                    return None;
                }
                self.column.push_f32(rounded)
            }
            ColumnKind::Float8 => self.column.push_f64(value),
            // The parser returns -0 as the float 0.
            _ if value == 0.0 => return self.integer(0),
            _ => return None,
        })
    }

    #[inline]
    fn string(&mut self, value: &str) -> Option<Result<(), BuildError>> {
        Some(match self.kind {
            ColumnKind::Text | ColumnKind::Other | ColumnKind::Numeric => {
                self.column.push_text(value)
            }
            ColumnKind::Timestamp => self.column.push_i64(time_text::timestamp(value)?),
            ColumnKind::Date => self.column.push_i32(time_text::date(value)?),
            ColumnKind::Uuid => self
                .column
                .push_uuid(Uuid::try_parse(value).ok()?.into_bytes()),
            ColumnKind::Bytes => self.column.push_bytes(&bytes_of_hex(value)?),
            ColumnKind::Int2 | ColumnKind::Int4 | ColumnKind::Int8 => {
                return self.integer(value.parse().ok()?);
            }
            ColumnKind::Float4 => self.column.push_f32(special(value)? as f32),
            ColumnKind::Float8 => self.column.push_f64(special(value)?),
            ColumnKind::Bool | ColumnKind::Json => return None,
        })
    }

    /// Appends a value that is kept as text. `text` is valid JSON without surrounding white space.
    fn raw<E: Error>(mut self, text: &str) -> Result<(), E> {
        if self.kind == ColumnKind::Json {
            return match raw::unstorable(text.as_bytes()) {
                None => {
                    let result = self.column.push_text(text);
                    self.stored(result)
                }
                Some(Unstorable::Nul) => Err(self.fail(ValueFault::Nul)),
                Some(Unstorable::Surrogate) => Err(self.unfit(clipped(text))),
            };
        }
        match text.as_bytes().first() {
            Some(b'-' | b'0'..=b'9') => {
                let result = self.column.push_text(text);
                self.stored(result)
            }
            Some(b'"') => match sonic_rs::from_str::<Cow<'_, str>>(text) {
                Ok(value) => match self.string(&value) {
                    Some(result) => self.stored(result),
                    None => Err(self.unfit(clipped(text))),
                },
                Err(_) => Err(self.unfit(clipped(text))),
            },
            Some(b'[') => Err(self.unfit("an array".to_owned())),
            Some(b'{') => Err(self.unfit("an object".to_owned())),
            _ => Err(self.unfit(clipped(text))),
        }
    }
}

/// Describes a number that was parsed as a float. Beyond the integers, it is too large regardless
/// of its notation.
fn real(value: f64) -> String {
    match value.abs() < i64::MAX as f64 {
        true => format!("the number {value:?}, written with a fraction or an exponent,"),
        false => format!("the number {value}"),
    }
}

/// Returns the floats that JSON numbers cannot represent.
fn special(value: &str) -> Option<f64> {
    match value {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

fn bytes_of_hex(value: &str) -> Option<Vec<u8>> {
    let digits = value.strip_prefix("\\x")?.as_bytes();
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    pairs
        .iter()
        .map(|[high, low]| Some((digit(*high)? << 4 | digit(*low)?) as u8))
        .collect()
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = ();

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if needs_raw_text(self.kind) {
            deserializer.deserialize_option(self)
        } else {
            deserializer.deserialize_any(self)
        }
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(expected(self.kind))
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        self.column.push_null();
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let value = LazyValue::deserialize(deserializer)?;
        self.raw(value.as_raw_str())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.column.push_null();
        Ok(())
    }

    #[inline]
    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        if self.kind == ColumnKind::Bool {
            let result = self.column.push_bool(value);
            self.stored(result)
        } else {
            Err(self.unfit(value.to_string()))
        }
    }

    #[inline]
    fn visit_i64<E: Error>(mut self, value: i64) -> Result<(), E> {
        match self.integer(value) {
            Some(result) => self.stored(result),
            None => Err(self.unfit(format!("the number {value}"))),
        }
    }

    #[inline]
    fn visit_u64<E: Error>(mut self, value: u64) -> Result<(), E> {
        let pushed = match i64::try_from(value) {
            Ok(value) => self.integer(value),
            Err(_) => self.float(value as f64),
        };
        match pushed {
            Some(result) => self.stored(result),
            None => Err(self.unfit(format!("the number {value}"))),
        }
    }

    #[inline]
    fn visit_f64<E: Error>(mut self, value: f64) -> Result<(), E> {
        match self.float(value) {
            Some(result) => self.stored(result),
            None => {
                let found = match self.kind {
                    ColumnKind::Int2
                    | ColumnKind::Int4
                    | ColumnKind::Int8
                    | ColumnKind::Timestamp => real(value),
                    _ => format!("the number {value}"),
                };
                Err(self.unfit(found))
            }
        }
    }

    #[inline]
    fn visit_str<E: Error>(mut self, value: &str) -> Result<(), E> {
        match self.string(value) {
            Some(result) => self.stored(result),
            None => Err(self.unfit(format!("the string \"{}\"", clipped(value)))),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<(), A::Error> {
        Err(self.unfit("an array".to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<(), A::Error> {
        Err(self.unfit("an object".to_owned()))
    }
}
