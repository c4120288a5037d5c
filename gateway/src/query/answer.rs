//! Rows as the pieces of a body.

use std::collections::BTreeMap;
use std::io;

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use serde_json::Value;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use super::failure::{Failure, Kind};
use super::federate::{self, Lines};
use super::metrics::Observation;
use super::remote_read::answer::{FRAMES_TYPE, Frames, Packed, SAMPLES_TYPE};
use super::running::Rows;

/// The bytes from which on the items of a list are passed on.
pub const PIECE_BYTES: usize = 16 << 10;

/// The warning of Prometheus that a list is not complete.
const TRUNCATED: &str = "results truncated due to limit";

/// An answer to a request.
pub enum Answer {
    /// The value of `data`.
    Data(Value),
    /// No content.
    Nothing,
    /// Rows whose first column has a piece of the body each.
    Pieces(Rows),
    /// A list whose items are made of rows.
    List(List),
    /// Lines of the text format that Prometheus scrapes.
    Lines(Lines),
    /// Samples for remote read, compressed by snappy.
    Packed(Packed),
    /// Frames of chunks for remote read.
    Frames(Frames),
}

/// A list whose items are made of rows.
pub struct List {
    /// The rows.
    pub rows: Rows,
    /// Returns the JSON text of a row.
    pub item: fn(&Row) -> Result<String, Failure>,
    /// The maximum number of items; 0 for no limit. There may be one row more.
    pub limit: usize,
}

impl Answer {
    /// Returns the answer whose data are the JSON text of the only row.
    ///
    /// # Errors
    /// Returns a failure if the rows cannot be read, or there is no JSON.
    pub async fn of_json(rows: Rows) -> Result<Self, Failure> {
        let rows = rows.collect().await?;
        let unreadable = |reason: String| Failure::new(Kind::Execution, reason);
        let row = rows
            .first()
            .ok_or_else(|| unreadable("no row".to_owned()))?;
        let data = serde_json::from_str(text(row, 0)?);
        data.map(Self::Data)
            .map_err(|error| unreadable(error.to_string()))
    }

    /// Returns the response. The observation ends with the last piece of its body.
    pub fn into_response(self, mut observation: Observation) -> Response {
        let mut media_type = "application/json";
        let is_snappy = matches!(self, Self::Packed(_));
        let body = match self {
            Self::Nothing => {
                observation.end(SUCCESS);
                return axum::http::StatusCode::NO_CONTENT.into_response();
            }
            Self::Data(data) => {
                observation.end(SUCCESS);
                Body::from(format!(r#"{{"status":"success","data":{data}}}"#))
            }
            Self::Pieces(rows) => streamed(Source::Pieces(rows), observation),
            Self::List(list) => streamed(Source::List(ListWriter::new(list)), observation),
            Self::Lines(lines) => {
                media_type = federate::MEDIA_TYPE;
                streamed(Source::Lines(lines), observation)
            }
            Self::Packed(packed) => {
                media_type = SAMPLES_TYPE;
                streamed(Source::Packed(packed), observation)
            }
            Self::Frames(frames) => {
                media_type = FRAMES_TYPE;
                streamed(Source::Frames(frames), observation)
            }
        };
        let mut response = ([(CONTENT_TYPE, media_type)], body).into_response();
        if is_snappy {
            let headers = response.headers_mut();
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("snappy"));
        }
        response
    }
}

/// The outcome of a request that was answered.
const SUCCESS: &str = "success";

/// A body that is not sent yet.
enum Source {
    Pieces(Rows),
    List(ListWriter),
    Lines(Lines),
    Packed(Packed),
    Frames(Frames),
}

impl Source {
    /// Returns the next piece; `None` at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        match self {
            Self::Pieces(rows) => match rows.next().await? {
                Some(row) => Ok(Some(Bytes::copy_from_slice(text(&row, 0)?.as_bytes()))),
                None => Ok(None),
            },
            Self::List(list) => list.next().await,
            Self::Lines(lines) => lines.next().await,
            Self::Packed(packed) => Ok(packed.next_piece()),
            Self::Frames(frames) => frames.next().await,
        }
    }
}

fn streamed(source: Source, observation: Observation) -> Body {
    Body::from_stream(stream::try_unfold(
        (source, observation),
        async |(mut source, mut observation)| match source.next().await {
            Ok(Some(piece)) => Ok(Some((piece, (source, observation)))),
            Ok(None) => {
                observation.end(SUCCESS);
                Ok(None)
            }
            Err(failure) => {
                // The status code is sent. Only a body without its end tells the client.
                tracing::warn!("an answer to a query could not be completed: {failure}");
                observation.end(failure.kind.name());
                Err(io::Error::other(failure))
            }
        },
    ))
}

/// Writes a list from rows.
struct ListWriter {
    list: List,
    written: usize,
    state: ListState,
}

enum ListState {
    Begin,
    Items,
    End,
}

impl ListWriter {
    fn new(list: List) -> Self {
        Self {
            list,
            written: 0,
            state: ListState::Begin,
        }
    }

    async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        let mut piece = match self.state {
            ListState::Begin => String::from(r#"{"status":"success","data":["#),
            ListState::Items => String::new(),
            ListState::End => return Ok(None),
        };
        self.state = ListState::Items;
        while piece.len() < PIECE_BYTES {
            let Some(row) = self.list.rows.next().await? else {
                piece.push_str("]}");
                self.state = ListState::End;
                break;
            };
            if self.list.limit > 0 && self.written == self.list.limit {
                // The statement has at most this row more, and so ends.
                while self.list.rows.next().await?.is_some() {}
                piece.push_str(&format!(r#"],"warnings":["{TRUNCATED}"]}}"#));
                self.state = ListState::End;
                break;
            }
            if self.written > 0 {
                piece.push(',');
            }
            piece.push_str(&(self.list.item)(&row)?);
            self.written += 1;
        }
        Ok(Some(piece.into()))
    }
}

/// Reads a column.
///
/// # Errors
/// Returns a failure if the column has another type, or is NULL.
pub fn read<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, Failure> {
    row.try_get(column)
        .map_err(|error| Failure::of_database(&error, false, None))
}

/// Reads a column of type `text`.
///
/// # Errors
/// Returns a failure if the column is NULL.
pub fn text(row: &Row, column: usize) -> Result<&str, Failure> {
    read(row, column)
}

/// Returns the JSON text of a row whose first column is a text.
///
/// # Errors
/// Returns a failure if the column is NULL.
pub fn text_item(row: &Row) -> Result<String, Failure> {
    Ok(Value::from(text(row, 0)?).to_string())
}

/// Reads the JSON text of stored labels, in the order of their names.
///
/// # Errors
/// Returns a failure if the text is no object of texts.
pub fn label_set(labels: &str) -> Result<BTreeMap<String, String>, Failure> {
    serde_json::from_str(labels)
        .map_err(|error| Failure::new(Kind::Execution, format!("a stored label set: {error}")))
}
