//! Inference of columns for a missing table, from the values of its first body.
//!
//! | values of a key, in all objects of the body | column |
//! |---|---|
//! | `true`, `false` | boolean |
//! | integers within the range of bigint | bigint |
//! | numbers | double precision |
//! | strings, all of them RFC 3339 timestamps | timestamptz |
//! | strings | text |
//! | arrays, objects | jsonb |
//! | only `null`, or values of several types | none: an error |

use std::fmt;

use chrono::DateTime;
use hashbrown::HashMap;
use lanes_wire::limits;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::body::{Objects, read};
use super::raw;
use super::value::clipped;
use crate::events::format::{Malformed, time_text};
use crate::model::ColumnKind;

/// Returns names and kinds in the order in which the keys first appear.
///
/// # Errors
/// Returns an error if the body is not JSON, has more than `rows_max` rows, has a key twice in one
/// object, or has a key without a type.
pub fn columns(body: &[u8], rows_max: usize) -> Result<Vec<(String, ColumnKind)>, Malformed> {
    let text = std::str::from_utf8(body).map_err(|error| Malformed::NotUtf8 {
        byte: error.valid_up_to(),
    })?;
    // The parser skips values by recursion.
    if let Some(byte) = raw::too_deep(body) {
        let depth_max = raw::DEPTH_MAX;
        return Err(Malformed::TooDeep { byte, depth_max });
    }
    let mut keys = Keys {
        rows_max,
        ..Keys::default()
    };
    read(text, &mut keys)?;
    let columns = keys.found.into_iter().map(|key| match key.found {
        Found::Nothing => Err(no_type(key.name, "every value is null")),
        Found::Mixture => Err(no_type(key.name, "its values are of more than one type")),
        Found::One(kind) => Ok((key.name, kind)),
    });
    columns.collect()
}

fn no_type(name: String, problem: &'static str) -> Malformed {
    Malformed::NoType {
        column: clipped(&name),
        problem,
    }
}

/// The type of the values of a key so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    One(ColumnKind),
    Mixture,
}

impl Found {
    /// Combines the type with that of another value; `None` stands for `null`.
    fn and(self, kind: Option<ColumnKind>) -> Self {
        use ColumnKind::{Float8, Int8, Text, Timestamp};
        let Some(kind) = kind else { return self };
        match self {
            Self::Nothing => Self::One(kind),
            Self::One(before) if before == kind => self,
            Self::One(before) => match (before, kind) {
                (Int8, Float8) | (Float8, Int8) => Self::One(Float8),
                (Text, Timestamp) | (Timestamp, Text) => Self::One(Text),
                _ => Self::Mixture,
            },
            Self::Mixture => self,
        }
    }
}

/// A key.
struct Key {
    name: String,
    found: Found,
    /// The last object with this key, counted from 1.
    row: usize,
}

/// The keys of the objects so far.
#[derive(Default)]
struct Keys {
    rows_max: usize,
    rows: usize,
    found: Vec<Key>,
    places: HashMap<String, usize>,
    fault: Option<Malformed>,
}

impl Keys {
    fn fail<E: Error>(&mut self, fault: Malformed) -> E {
        self.fault = Some(fault);
        E::custom("")
    }

    fn place<E: Error>(&mut self, name: &str) -> Result<usize, E> {
        let row = self.rows + 1;
        if let Some(&place) = self.places.get(name) {
            let before = std::mem::replace(&mut self.found[place].row, row);
            if before == row {
                let name = clipped(name);
                return Err(self.fail(Malformed::DuplicateKey { row, name }));
            }
            return Ok(place);
        }
        let place = self.found.len();
        if place == limits::COLUMNS_MAX {
            return Err(self.fail(lanes_wire::BuildError::TooManyColumns.into()));
        }
        self.found.push(Key {
            name: name.to_owned(),
            found: Found::Nothing,
            row,
        });
        self.places.insert(name.to_owned(), place);
        Ok(place)
    }
}

impl Objects for Keys {
    fn take<'de, D: Deserializer<'de>>(&mut self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(ObjectVisitor(self))
    }

    fn take_fault(&mut self) -> Option<Malformed> {
        self.fault.take()
    }

    fn restart(&mut self) {
        *self = Self {
            rows_max: self.rows_max,
            ..Self::default()
        };
    }
}

struct ObjectVisitor<'k>(&'k mut Keys);

impl<'de> Visitor<'de> for ObjectVisitor<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let keys = self.0;
        if keys.rows == keys.rows_max {
            let rows_max = keys.rows_max;
            return Err(keys.fail(Malformed::TooManyRows { rows_max }));
        }
        while let Some(place) = map.next_key_seed(KeySeed(keys))? {
            let kind = map.next_value_seed(KindSeed)?;
            let found = &mut keys.found[place].found;
            *found = found.and(kind);
        }
        keys.rows += 1;
        Ok(())
    }
}

struct KeySeed<'k>(&'k mut Keys);

impl<'de> DeserializeSeed<'de> for KeySeed<'_> {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for KeySeed<'_> {
    type Value = usize;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the name of a column")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<usize, E> {
        self.0.place(key)
    }
}

/// Deserializes a value to the kind of a column that accepts it; `None` for `null`.
struct KindSeed;

impl<'de> DeserializeSeed<'de> for KindSeed {
    type Value = Option<ColumnKind>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for KindSeed {
    type Value = Option<ColumnKind>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Some(ColumnKind::Bool))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Some(ColumnKind::Int8))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Some(match i64::try_from(value) {
            Ok(_) => ColumnKind::Int8,
            Err(_) => ColumnKind::Float8,
        }))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Some(ColumnKind::Float8))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Self::Value, E> {
        // Decoding accepts more timestamps than RFC 3339, so both have to agree.
        let is_timestamp =
            DateTime::parse_from_rfc3339(value).is_ok() && time_text::timestamp(value).is_some();
        Ok(Some(match is_timestamp {
            true => ColumnKind::Timestamp,
            false => ColumnKind::Text,
        }))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Self::Value, A::Error> {
        while sequence.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Some(ColumnKind::Json))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Some(ColumnKind::Json))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(body: &str) -> Result<Vec<(String, ColumnKind)>, String> {
        columns(body.as_bytes(), 10).map_err(|error| error.to_string())
    }

    fn named(columns: &[(&str, ColumnKind)]) -> Vec<(String, ColumnKind)> {
        let named = columns
            .iter()
            .map(|(name, kind)| ((*name).to_owned(), *kind));
        named.collect()
    }

    #[test]
    fn kinds_are_those_of_all_values() {
        let body = r#"[
            {"at": "2026-01-05T16:00:00Z", "n": 1, "x": 1, "t": "2026-01-05T16:00:00.5+01:00", "b": null, "big": 9223372036854775808},
            {"at": "2026-01-05t16:00:00.123-08:00", "n": -9223372036854775808, "x": 0.5, "t": "now", "b": true, "tags": ["a"]},
            {"x": 2, "tags": {"k": [1]}, "b": false, "day": "2026-01-05", "when": "infinity", "": 1}
        ]"#;
        let expected = named(&[
            ("at", ColumnKind::Timestamp),
            ("n", ColumnKind::Int8),
            ("x", ColumnKind::Float8),
            ("t", ColumnKind::Text),
            ("b", ColumnKind::Bool),
            ("big", ColumnKind::Float8),
            ("tags", ColumnKind::Json),
            ("day", ColumnKind::Text),
            ("when", ColumnKind::Text),
            ("", ColumnKind::Int8),
        ]);
        assert_eq!(of(body), Ok(expected));
    }

    #[test]
    fn every_form_of_a_body_is_read() {
        let expected = Ok(named(&[("a", ColumnKind::Int8), ("b", ColumnKind::Text)]));
        for body in [
            r#"[{"a": 1, "b": "x"}]"#,
            "{\"a\": 1}\n\n{\"a\": 2, \"b\": \"x\"}\n",
            "{\n\"a\": 1,\n\"b\": \"x\"\n}",
        ] {
            assert_eq!(of(body), expected, "{body}");
        }
        assert_eq!(of(""), Ok(Vec::new()));
        assert_eq!(of("[{}, {}]"), Ok(Vec::new()));
    }

    #[test]
    fn columns_of_no_type_are_named() {
        for (body, expected) in [
            (
                r#"[{"a": 1, "b": null}]"#,
                "column \"b\": every value is null",
            ),
            (
                r#"[{"a": 1}, {"a": "1"}]"#,
                "column \"a\": its values are of more than one type",
            ),
            (r#"[{"a": true}, {"a": 1}]"#, "column \"a\""),
            (
                r#"[{"a": 1}, {"a": 1, "a": 1}]"#,
                "row 2: key \"a\" appears more than once",
            ),
            (r#"[{"a": {}}, {"a": "{}"}]"#, "column \"a\""),
        ] {
            let error = of(body).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn bodies_are_bounded() {
        let deep = format!("[{{\"a\": {}1{}}}]", "[".repeat(40), "]".repeat(40));
        let many = "{\"a\": 1}\n".repeat(11);
        let wide: Vec<String> = (0..=limits::COLUMNS_MAX)
            .map(|n| format!("\"{n}\": 1"))
            .collect();
        let wide = format!("[{{{}}}]", wide.join(","));
        for body in [deep, many, wide, "[{\"a\":".to_owned(), "[1]".to_owned()] {
            assert!(of(&body).is_err(), "{}", &body[..20.min(body.len())]);
        }
    }
}
