//! A remote read request, from its bytes to selectors and times.
//!
//! ```text
//! ReadRequest  { 1: repeated Query, 2: repeated ResponseType (SAMPLES = 0, STREAMED_XOR_CHUNKS = 1) }
//! Query        { 1: int64 start_timestamp_ms, 2: int64 end_timestamp_ms, 3: repeated LabelMatcher, 4: ReadHints }
//! LabelMatcher { 1: Type (EQ = 0, NEQ = 1, RE = 2, NRE = 3), 2: string name, 3: string value }
//! ReadHints    { 3: int64 start_ms, 4: int64 end_ms; the others do not change the answer }
//! ```

use lanes_promql::matcher::{MatchOperator, Matcher};
use lanes_promql::quote::quote;
use thiserror::Error;

use super::super::selectors::canonical;
use super::super::syntax::REGEXES_MAX;
use crate::series::protobuf::{DELIMITED, ProtobufError, Reader, VARINT};

/// The maximum number of queries in a request. Each is looked up in the label index.
pub const QUERIES_MAX: usize = 100;
/// The maximum number of matchers in a request.
const MATCHERS_MAX: usize = 1_000;

/// Why bytes are no acceptable request.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum RequestError {
    /// The bytes are not protobuf.
    #[error(transparent)]
    Protobuf(#[from] ProtobufError),
    /// A text of a matcher is no text of PostgreSQL.
    #[error("a matcher has a text that is not UTF-8 or contains NUL")]
    Text,
    /// The type of a matcher is unknown.
    #[error("matcher type {0} is unknown; EQ is 0, NEQ 1, RE 2 and NRE 3")]
    MatcherType(u64),
    /// A regular expression is wrong.
    #[error("matcher {name}: {reason}")]
    Regex {
        /// The name of the label, quoted.
        name: String,
        /// The fault.
        reason: String,
    },
    /// The request has too many of something.
    #[error("more than {most} {what} in a request")]
    TooMany {
        /// The limit.
        most: usize,
        /// The subject of the limit.
        what: &'static str,
    },
    /// None of the accepted types of answers can be given.
    #[error(
        "none of accepted_response_types is supported; use SAMPLES (0) or STREAMED_XOR_CHUNKS (1)"
    )]
    ResponseType,
}

/// The types of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseType {
    /// One compressed message.
    Samples,
    /// A stream of frames.
    StreamedXorChunks,
}

/// A query of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadQuery {
    /// The selector, as the SQL functions of labels read it.
    pub selector: String,
    /// The first time, in milliseconds since 1970.
    pub start: i64,
    /// The last time.
    pub end: i64,
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadRequest {
    /// The queries.
    pub queries: Vec<ReadQuery>,
    /// The type of the answer.
    pub response_type: ResponseType,
}

/// How many of its parts a request has so far.
#[derive(Debug, Default)]
struct Counts {
    queries: usize,
    matchers: usize,
    regexes: usize,
}

/// The field of the queries, and that of the types of answers.
const QUERIES: u32 = 1;
const RESPONSE_TYPES: u32 = 2;

impl ReadRequest {
    /// Reads a request that is decompressed already.
    ///
    /// # Errors
    /// Returns why it is no acceptable request.
    pub fn decode(bytes: &[u8]) -> Result<Self, RequestError> {
        let mut counts = Counts::default();
        let mut queries = Vec::new();
        let mut accepted = Accepted::default();
        let mut reader = Reader::new(bytes);
        while let Some(key) = reader.key()? {
            match (key.field, key.wire_type) {
                (QUERIES, DELIMITED) => {
                    count(&mut counts.queries, QUERIES_MAX, "queries")?;
                    queries.push(query(reader.delimited()?, &mut counts)?);
                }
                (RESPONSE_TYPES, VARINT) => accepted.add(reader.varint()?),
                (RESPONSE_TYPES, DELIMITED) => {
                    let mut packed = Reader::new(reader.delimited()?);
                    while !packed.is_empty() {
                        accepted.add(packed.varint()?);
                    }
                }
                (QUERIES | RESPONSE_TYPES, _) => return Err(key.mismatch().into()),
                (_, wire_type) => reader.skip(wire_type)?,
            }
        }
        Ok(Self {
            queries,
            response_type: accepted.chosen()?,
        })
    }
}

fn count(number: &mut usize, most: usize, what: &'static str) -> Result<(), RequestError> {
    *number += 1;
    match *number > most {
        true => Err(RequestError::TooMany { most, what }),
        false => Ok(()),
    }
}

/// The types of answers that a client accepts, in the order of its preference.
#[derive(Debug, Default)]
struct Accepted {
    is_any_named: bool,
    first_known: Option<ResponseType>,
}

impl Accepted {
    fn add(&mut self, number: u64) {
        self.is_any_named = true;
        let known = match number {
            0 => Some(ResponseType::Samples),
            1 => Some(ResponseType::StreamedXorChunks),
            _ => None,
        };
        self.first_known = self.first_known.or(known);
    }

    /// Returns the first type that is known. Clients that name none are older than the second type.
    fn chosen(self) -> Result<ResponseType, RequestError> {
        match self.first_known {
            None if self.is_any_named => Err(RequestError::ResponseType),
            chosen => Ok(chosen.unwrap_or(ResponseType::Samples)),
        }
    }
}

fn query(message: &[u8], counts: &mut Counts) -> Result<ReadQuery, RequestError> {
    let (mut start, mut end) = (0, 0);
    let mut hints = None;
    let mut matchers = Vec::new();
    let mut reader = Reader::new(message);
    while let Some(key) = reader.key()? {
        match (key.field, key.wire_type) {
            (1, VARINT) => start = reader.varint()? as i64,
            (2, VARINT) => end = reader.varint()? as i64,
            (3, DELIMITED) => {
                count(&mut counts.matchers, MATCHERS_MAX, "matchers")?;
                matchers.push(matcher(reader.delimited()?, counts)?);
            }
            (4, DELIMITED) => hints = hint(reader.delimited()?)?,
            (1..=4, _) => return Err(key.mismatch().into()),
            (_, wire_type) => reader.skip(wire_type)?,
        }
    }
    // The times of the query are those of a whole PromQL expression, the hints those of one selector.
    if let Some((first, last)) = hints {
        (start, end) = (start.max(first), end.min(last));
    }
    Ok(ReadQuery {
        selector: canonical(&matchers),
        start,
        end,
    })
}

fn matcher(message: &[u8], counts: &mut Counts) -> Result<Matcher, RequestError> {
    let (mut kind, mut name, mut value) = (0, "", "");
    let mut reader = Reader::new(message);
    while let Some(key) = reader.key()? {
        match (key.field, key.wire_type) {
            (1, VARINT) => kind = reader.varint()?,
            (2, DELIMITED) => name = text(reader.delimited()?)?,
            (3, DELIMITED) => value = text(reader.delimited()?)?,
            (1..=3, _) => return Err(key.mismatch().into()),
            (_, wire_type) => reader.skip(wire_type)?,
        }
    }
    let operator = match kind {
        0 => MatchOperator::Equal,
        1 => MatchOperator::NotEqual,
        2 => MatchOperator::Matches,
        3 => MatchOperator::NotMatches,
        other => return Err(RequestError::MatcherType(other)),
    };
    if matches!(operator, MatchOperator::Matches | MatchOperator::NotMatches) {
        count(&mut counts.regexes, REGEXES_MAX, "regular expressions")?;
    }
    Matcher::new(name, operator, value).map_err(|reason| RequestError::Regex {
        name: quote(name),
        reason,
    })
}

fn text(bytes: &[u8]) -> Result<&str, RequestError> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => Err(RequestError::Text),
    }
}

/// Returns the times of a hint. Without an end there are none.
fn hint(message: &[u8]) -> Result<Option<(i64, i64)>, RequestError> {
    let (mut start, mut end) = (0, 0);
    let mut reader = Reader::new(message);
    while let Some(key) = reader.key()? {
        match (key.field, key.wire_type) {
            (3, VARINT) => start = reader.varint()? as i64,
            (4, VARINT) => end = reader.varint()? as i64,
            (3 | 4, _) => return Err(key.mismatch().into()),
            (_, wire_type) => reader.skip(wire_type)?,
        }
    }
    Ok((end > 0 && start <= end).then_some((start, end)))
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
