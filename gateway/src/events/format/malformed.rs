//! What is wrong with a body, in words for its sender.

use lanes_wire::BuildError;

use crate::model::Overloaded;

/// Why a body cannot become a batch: the text of a 400. All but one are the sender's to mend; a retry gives the same answer.
///
/// Rows and lines count from 1, and in an Arrow stream over all its record batches.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// It may be a batch, but there is no room to read it now: answered 503.
    #[error(transparent)]
    Overloaded(#[from] Overloaded),
    /// The body is not UTF-8.
    #[error("body is not UTF-8 at byte {byte}")]
    NotUtf8 {
        /// The first bad byte, from 0.
        byte: usize,
    },
    /// The body is not JSON.
    #[error("not JSON at line {line}, column {column}: {problem}")]
    Syntax {
        /// The line.
        line: usize,
        /// The byte in the line, from 1.
        column: usize,
        /// What is wrong there.
        problem: String,
    },
    /// Something after an object on its line.
    #[error(
        "line {line}, column {column}: something follows the object; send one object a line (application/x-ndjson), or an array of objects"
    )]
    Trailing {
        /// The line.
        line: usize,
        /// The byte in the line, from 1.
        column: usize,
    },
    /// JSON nested so deep that reading it could exhaust the stack, here or in PostgreSQL.
    #[error("JSON is nested deeper than {depth_max} levels at byte {byte}")]
    TooDeep {
        /// Where the level too many begins, from 0.
        byte: usize,
        /// The limit.
        depth_max: usize,
    },
    /// A row is JSON, but no object.
    #[error("row {row}: found {found} where an object is expected")]
    NotAnObject {
        /// The row.
        row: usize,
        /// What is there instead.
        found: String,
    },
    /// A key that is no column.
    #[error("row {row}: table {table} has no column \"{name}\"")]
    UnknownKey {
        /// The row.
        row: usize,
        /// The table.
        table: String,
        /// The key.
        name: String,
    },
    /// A key twice in one object.
    #[error("row {row}: key \"{name}\" appears more than once")]
    DuplicateKey {
        /// The row.
        row: usize,
        /// The key.
        name: String,
    },
    /// A value that the column does not take.
    #[error("row {row}, column \"{column}\": found {found} where {expected} is expected")]
    Value {
        /// The row.
        row: usize,
        /// The column.
        column: String,
        /// The value, shortened.
        found: String,
        /// What the column takes.
        expected: &'static str,
    },
    /// Text that PostgreSQL cannot store.
    #[error("row {row}, column \"{column}\": text holds a NUL character")]
    Nul {
        /// The row.
        row: usize,
        /// The column.
        column: String,
    },
    /// More rows than one request may bring.
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
    /// Objects, all of them empty.
    #[error(
        "every object is empty: a row needs a column; one whose value is null leaves the others to their defaults"
    )]
    NoColumns,
    /// The body is not an Arrow stream as a whole.
    #[error("not an Arrow IPC stream: {problem}")]
    Stream {
        /// What is wrong.
        problem: String,
    },
    /// One message of an Arrow stream is broken.
    #[error("Arrow IPC stream, message {message}: {problem}")]
    Message {
        /// The message, from 1; the schema is the first.
        message: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// Compressed record batches: how much memory they would take is not known before they have taken it.
    #[error(
        "Arrow IPC stream, message {message}: its buffers are compressed ({codec}); send them uncompressed"
    )]
    Compressed {
        /// The message, from 1.
        message: usize,
        /// The codec's name.
        codec: &'static str,
    },
    /// An Arrow column that is none of the table's.
    #[error("table {table} has no column \"{name}\"")]
    UnknownColumn {
        /// The table.
        table: String,
        /// The column.
        name: String,
    },
    /// An Arrow type without a counterpart in a batch.
    #[error(
        "column \"{column}\": Arrow type {found} is not supported; cast it to text, which a column of any type takes (an array as '{{1,2}}')"
    )]
    ArrowType {
        /// The column.
        column: String,
        /// The type, as Arrow writes it.
        found: String,
    },
    /// A table is to be created, and a column's type cannot be told from the body.
    #[error("column \"{column}\": {problem}, so a table cannot be created for it; create it first")]
    NoType {
        /// The column.
        column: String,
        /// Why not.
        problem: &'static str,
    },
    /// The columns do not make a batch.
    #[error(transparent)]
    Batch(#[from] BuildError),
}

impl Malformed {
    /// Whether another table might take the body: it speaks of columns that the table lacks, or of values that a column does not take.
    pub fn is_of_table(&self) -> bool {
        matches!(
            self,
            Self::UnknownKey { .. } | Self::UnknownColumn { .. } | Self::Value { .. }
        )
    }
}
