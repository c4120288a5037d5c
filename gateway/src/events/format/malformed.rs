//! Faults of bodies, as messages for their senders.

use lanes_wire::BuildError;

use crate::model::Overloaded;

/// Why a body cannot become a batch: the text of a 400. All faults except one are in the body, so a
/// repetition would get the same answer.
///
/// Rows and lines count from 1, and in an Arrow stream over all record batches.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// There is no room to read the body now. The answer is 503.
    #[error(transparent)]
    Overloaded(#[from] Overloaded),
    /// The body is not UTF-8.
    #[error("body is not UTF-8 at byte {byte}")]
    NotUtf8 {
        /// The first invalid byte, from 0.
        byte: usize,
    },
    /// The body is not JSON.
    #[error("not JSON at line {line}, column {column}: {problem}")]
    Syntax {
        /// The line.
        line: usize,
        /// The byte within the line, from 1.
        column: usize,
        /// The problem at this position.
        problem: String,
    },
    /// Something follows an object on its line.
    #[error(
        "line {line}, column {column}: something follows the object; send one object per line (application/x-ndjson), or an array of objects"
    )]
    Trailing {
        /// The line.
        line: usize,
        /// The byte within the line, from 1.
        column: usize,
    },
    /// The JSON is nested so deeply that reading it could exhaust the stack, here or in PostgreSQL.
    #[error("JSON is nested deeper than {depth_max} levels at byte {byte}")]
    TooDeep {
        /// The start of the first level that is too deep, from 0.
        byte: usize,
        /// The limit.
        depth_max: usize,
    },
    /// A row is JSON, but not an object.
    #[error("row {row}: found {found} where an object is expected")]
    NotAnObject {
        /// The row.
        row: usize,
        /// What was found instead.
        found: String,
    },
    /// A key is not the name of a column.
    #[error("row {row}: table {table} has no column \"{name}\"")]
    UnknownKey {
        /// The row.
        row: usize,
        /// The table.
        table: String,
        /// The key.
        name: String,
    },
    /// A key occurs twice in one object.
    #[error("row {row}: key \"{name}\" appears more than once")]
    DuplicateKey {
        /// The row.
        row: usize,
        /// The key.
        name: String,
    },
    /// The column does not accept the value.
    #[error("row {row}, column \"{column}\": found {found} where {expected} is expected")]
    Value {
        /// The row.
        row: usize,
        /// The column.
        column: String,
        /// The value, shortened.
        found: String,
        /// What the column accepts.
        expected: &'static str,
    },
    /// PostgreSQL cannot store the text.
    #[error("row {row}, column \"{column}\": text contains a NUL character")]
    Nul {
        /// The row.
        row: usize,
        /// The column.
        column: String,
    },
    /// The request has more rows than allowed.
    #[error("more than {rows_max} rows in one request")]
    TooManyRows {
        /// The limit.
        rows_max: usize,
    },
    /// The columns would take more memory than one request may.
    #[error("the rows would take more than {bytes_max} bytes as columns: send fewer at a time")]
    TooLarge {
        /// The limit.
        bytes_max: usize,
    },
    /// All objects are empty.
    #[error("every object is empty, but a row needs at least one column; its value may be null")]
    NoColumns,
    /// The body as a whole is not an Arrow stream.
    #[error("not an Arrow IPC stream: {problem}")]
    Stream {
        /// The problem.
        problem: String,
    },
    /// A message of an Arrow stream is malformed.
    #[error("Arrow IPC stream, message {message}: {problem}")]
    Message {
        /// The message, from 1. The schema is the first.
        message: usize,
        /// The problem.
        problem: String,
    },
    /// Record batches are compressed. Their memory would only be known after it was taken.
    #[error(
        "Arrow IPC stream, message {message}: its buffers are compressed ({codec}); send them uncompressed"
    )]
    Compressed {
        /// The message, from 1.
        message: usize,
        /// The name of the codec.
        codec: &'static str,
    },
    /// An Arrow column is not in the table.
    #[error("table {table} has no column \"{name}\"")]
    UnknownColumn {
        /// The table.
        table: String,
        /// The column.
        name: String,
    },
    /// An Arrow type has no counterpart in a batch.
    #[error(
        "column \"{column}\": Arrow type {found} is not supported; cast it to text, which a column of any type accepts (an array as '{{1,2}}')"
    )]
    ArrowType {
        /// The column.
        column: String,
        /// The type, as Arrow writes it.
        found: String,
    },
    /// The table has to be created, and the type of a column cannot be determined from the body.
    #[error("column \"{column}\": {problem}, so a table cannot be created for it; create it first")]
    NoType {
        /// The column.
        column: String,
        /// The problem.
        problem: &'static str,
    },
    /// The columns are not a valid batch.
    #[error(transparent)]
    Batch(#[from] BuildError),
}

impl Malformed {
    /// Whether another table might accept the body: the fault is a column that the table lacks, or
    /// a value that a column does not accept.
    pub fn is_of_table(&self) -> bool {
        matches!(
            self,
            Self::UnknownKey { .. } | Self::UnknownColumn { .. } | Self::Value { .. }
        )
    }
}
