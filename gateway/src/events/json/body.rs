//! The forms of a body: an array of objects, one object per line, or one object over several lines.

use serde::de::{DeserializeSeed, Deserializer, SeqAccess, Visitor};

use super::rows::Rows;
use crate::events::format::Malformed;
use crate::model::{Room, Table};

/// Decodes a JSON body, replaces `out` by the batch, and returns the number of rows. On an error
/// `out` is unchanged.
///
/// There may be at most `rows_max` rows. The columns take at most `bytes_max` bytes, where text
/// counts as the length of the body, and so does `out`, except for a few hundred bytes per column.
/// `room` is grown row by row for what both hold. An empty body is a batch without rows.
///
/// # Errors
/// Returns the first fault, with its row and column.
pub fn decode(
    body: &[u8],
    table: &Table,
    rows_max: usize,
    bytes_max: usize,
    room: &mut Room,
    out: &mut Vec<u8>,
) -> Result<usize, Malformed> {
    let text = std::str::from_utf8(body).map_err(|error| Malformed::NotUtf8 {
        byte: error.valid_up_to(),
    })?;
    let mut rows = Rows::new(table, text, rows_max, bytes_max, room);
    read(text, &mut rows)?;
    rows.finish(out)
}

/// A consumer of objects.
pub(super) trait Objects {
    /// Consumes the next object.
    fn take<'de, D: Deserializer<'de>>(&mut self, deserializer: D) -> Result<(), D::Error>;

    /// Takes the fault that ended the parsing, if the consumer found it and not the parser.
    fn take_fault(&mut self) -> Option<Malformed>;

    /// Drops all objects consumed so far.
    fn restart(&mut self);
}

/// Passes all objects of a body to `objects`.
pub(super) fn read(text: &str, objects: &mut impl Objects) -> Result<(), Malformed> {
    if text.trim_ascii_start().starts_with('[') {
        return one_value(text, objects, Form::Array);
    }
    let mut lines = lines(text);
    let Some((number, line)) = lines.next() else {
        return Ok(());
    };
    match one_line(number, line, objects) {
        // The first object does not end on its line: the body is one object over several lines.
        Err(fault) if fault.is_cut_off => {
            objects.restart();
            one_value(text, objects, Form::Object)
        }
        first => {
            first.map_err(|fault| fault.malformed)?;
            for (number, line) in lines {
                one_line(number, line, objects).map_err(|fault| fault.malformed)?;
            }
            Ok(())
        }
    }
}

/// Returns the lines that are not empty, numbered from 1. JSON has no raw newline within a string,
/// so this splits no string.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = text;
    let mut number = 0;
    std::iter::from_fn(move || {
        loop {
            if rest.is_empty() {
                return None;
            }
            let (line, after) = match memchr::memchr(b'\n', rest.as_bytes()) {
                Some(end) => (&rest[..end], &rest[end + 1..]),
                None => (rest, ""),
            };
            rest = after;
            number += 1;
            if !line.trim_ascii_start().is_empty() {
                return Some((number, line));
            }
        }
    })
}

struct Fault {
    malformed: Malformed,
    /// Whether the text ended within a value.
    is_cut_off: bool,
}

fn one_line(number: usize, line: &str, objects: &mut impl Objects) -> Result<(), Fault> {
    let mut parser = sonic_rs::Deserializer::from_str(line);
    objects.take(&mut parser).map_err(|error| Fault {
        is_cut_off: error.is_eof(),
        malformed: blame(objects, &error, number),
    })?;
    parser.end().map_err(|error| Fault {
        is_cut_off: false,
        malformed: trailing(&error, number),
    })
}

/// Returns the fault of something that follows an object.
fn trailing(error: &sonic_rs::Error, first_line: usize) -> Malformed {
    Malformed::Trailing {
        line: first_line + error.line().saturating_sub(1),
        column: error.column(),
    }
}

enum Form {
    Array,
    Object,
}

fn one_value(text: &str, objects: &mut impl Objects, form: Form) -> Result<(), Malformed> {
    let mut parser = sonic_rs::Deserializer::from_str(text);
    match form {
        Form::Array => parser
            .deserialize_seq(ArrayVisitor(&mut *objects))
            .and_then(|()| parser.end())
            .map_err(|error| blame(objects, &error, 1)),
        Form::Object => {
            let taken = objects.take(&mut parser);
            taken.map_err(|error| blame(objects, &error, 1))?;
            parser.end().map_err(|error| trailing(&error, 1))
        }
    }
}

/// Returns the fault that a visitor left, or otherwise the parser's own error.
fn blame(objects: &mut impl Objects, error: &sonic_rs::Error, first_line: usize) -> Malformed {
    if let Some(fault) = objects.take_fault() {
        return fault;
    }
    let text = error.to_string();
    // The parser adds an excerpt with a marker on further lines, and its position.
    let problem = text.lines().next().unwrap_or_default();
    let problem = problem.split(" at line ").next().unwrap_or_default();
    Malformed::Syntax {
        line: first_line + error.line().saturating_sub(1),
        column: error.column(),
        problem: problem.to_owned(),
    }
}

struct ObjectSeed<'o, O>(&'o mut O);

impl<'de, O: Objects> DeserializeSeed<'de> for ObjectSeed<'_, O> {
    type Value = ();

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.0.take(deserializer)
    }
}

struct ArrayVisitor<'o, O>(&'o mut O);

impl<'de, O: Objects> Visitor<'de> for ArrayVisitor<'_, O> {
    type Value = ();

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("an array of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<(), A::Error> {
        while sequence
            .next_element_seed(ObjectSeed(&mut *self.0))?
            .is_some()
        {}
        Ok(())
    }
}
