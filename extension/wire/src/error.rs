use crate::ColumnType;
use crate::limits;

/// The reason why a buffer is not a batch. The sender must correct it: a retry fails in the same
/// way.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// Longer than [`limits::BATCH_BYTES_MAX`].
    #[error("batch of {bytes} bytes is longer than {max} bytes", max = limits::BATCH_BYTES_MAX)]
    TooLong {
        /// Length of the buffer.
        bytes: usize,
    },
    /// The identifier `LNB1` is not at byte 4.
    #[error("not a batch: the FlatBuffers file identifier is not \"LNB1\"")]
    NotABatch,
    /// A table, vtable, vector or reference leaves the buffer or its parent.
    #[error("malformed FlatBuffer at byte {position}: {problem}")]
    Malformed {
        /// Where the broken part is referred from or lies.
        position: usize,
        /// The fault of the table.
        problem: &'static str,
    },
    /// The batch needs a newer reader.
    #[error("batch requires features that this version does not know (bits {bits:#x})")]
    UnknownFeatures {
        /// The unknown bits.
        bits: u32,
    },
    /// More than [`limits::ROWS_MAX`] rows.
    #[error("batch of {rows} rows has more than {max} rows", max = limits::ROWS_MAX)]
    TooManyRows {
        /// Rows declared.
        rows: usize,
    },
    /// More than [`limits::COLUMNS_MAX`] columns.
    #[error("batch of {columns} columns has more than {max} columns", max = limits::COLUMNS_MAX)]
    TooManyColumns {
        /// Columns declared.
        columns: usize,
    },
    /// Rows without a column: a few bytes must not insert millions of rows.
    #[error("batch of {rows} rows has no columns")]
    NoColumns {
        /// Rows declared.
        rows: usize,
    },
    /// The vectors together are longer than the buffer, so some are shared.
    #[error("vectors overlap: together they are longer than the batch")]
    SharedVectors,
    /// A column's name is absent, empty, too long, not UTF-8 or holds a NUL.
    #[error("column {index}: {problem}")]
    ColumnName {
        /// Position of the column in the batch, from 0.
        index: usize,
        /// The fault of the name.
        problem: &'static str,
    },
    /// Two columns have one name.
    #[error("column \"{name}\" appears more than once")]
    DuplicateColumn {
        /// The name.
        name: String,
    },
    /// A column breaks a rule of its type.
    #[error("column \"{name}\": {error}")]
    Column {
        /// The column's name.
        name: String,
        /// The rule.
        error: ColumnError,
    },
}

/// Which rule a column breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ColumnError {
    /// An unknown type code, or no type code.
    #[error("unknown column type {code}")]
    UnknownType {
        /// The code.
        code: u8,
    },
    /// `values` does not fit the row count.
    #[error("values are {bytes} bytes long where {expected} are needed")]
    ValuesLength {
        /// Bytes found.
        bytes: usize,
        /// Bytes that the rows need.
        expected: usize,
    },
    /// `validity` does not fit the row count.
    #[error("validity bitmap is {bytes} bytes long where {expected} are needed")]
    ValidityLength {
        /// Bytes found.
        bytes: usize,
        /// Bytes that the rows need.
        expected: usize,
    },
    /// A dictionary on a column that is neither text nor bytes.
    #[error("a column of type {column_type} has no dictionary")]
    UnexpectedDictionary {
        /// The column's type.
        column_type: ColumnType,
    },
    /// `bytes` on a fixed-width or on a dictionary-coded column.
    #[error("field \"bytes\" belongs to plain text and bytes columns only")]
    UnexpectedBytes,
    /// `code_bytes` is not 1, 2 or 4.
    #[error("dictionary codes of {code_bytes} bytes: only 1, 2 and 4 exist")]
    CodeBytes {
        /// The width found.
        code_bytes: u8,
    },
    /// A code without an item.
    #[error("dictionary code {code} is past the last of {items} items")]
    CodePastItems {
        /// The greatest code.
        code: u32,
        /// Items in the dictionary.
        items: usize,
    },
    /// More items than [`limits::dictionary_items_max`].
    #[error("dictionary of {items} items has more than {items_max} items")]
    TooManyItems {
        /// Items found.
        items: usize,
        /// Items allowed for this row count.
        items_max: usize,
    },
    /// An end offset is below the one before it.
    #[error("end offset of item {item} is below the one before it")]
    EndsDescend {
        /// The item, from 0.
        item: usize,
    },
    /// The last end offset is not the length of the bytes.
    #[error("items end at byte {end} of {bytes}")]
    EndsMissBytes {
        /// The last end offset.
        end: usize,
        /// Length of the byte vector.
        bytes: usize,
    },
    /// Text is not UTF-8.
    #[error("text is not UTF-8 at byte {byte}")]
    NotUtf8 {
        /// First bad byte of the column's bytes.
        byte: usize,
    },
    /// An item ends inside a character.
    #[error("text item {item} ends inside a UTF-8 character")]
    SplitCharacter {
        /// The item, from 0.
        item: usize,
    },
    /// Text holds a NUL, which PostgreSQL cannot store.
    #[error("text holds a NUL byte")]
    NulInText,
    /// A timestamp before [`limits::TIMESTAMP_MICROSECONDS_MIN`] that is not `-infinity`.
    #[error("timestamp of row {row} is out of range")]
    TimestampRange {
        /// The row, from 0.
        row: usize,
    },
    /// A date outside [`limits::DATE_DAYS_MIN`] and [`limits::DATE_DAYS_MAX`] that is no infinity.
    #[error("date of row {row} is out of range")]
    DateRange {
        /// The row, from 0.
        row: usize,
    },
}

/// Why a batch cannot be built. All but [`BuildError::TooLong`] and [`BuildError::TooManyRows`] are
/// mistakes of the calling code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The encoded batch would be longer than [`limits::BATCH_BYTES_MAX`].
    #[error("batch would be longer than {max} bytes", max = limits::BATCH_BYTES_MAX)]
    TooLong,
    /// Batches to be joined have other columns.
    #[error("column \"{name}\" is not in all batches that are joined, or has another type there")]
    OtherColumns {
        /// The column's name.
        name: String,
    },
    /// More than [`limits::ROWS_MAX`] rows.
    #[error("batch of {rows} rows has more than {max} rows", max = limits::ROWS_MAX)]
    TooManyRows {
        /// The requested number of rows.
        rows: usize,
    },
    /// More than [`limits::COLUMNS_MAX`] columns.
    #[error("batch has more than {max} columns", max = limits::COLUMNS_MAX)]
    TooManyColumns,
    /// Rows without a column.
    #[error("batch of {rows} rows has no columns")]
    NoColumns {
        /// The requested number of rows.
        rows: usize,
    },
    /// A name that is empty, longer than [`limits::NAME_BYTES_MAX`] or holds a NUL.
    #[error("\"{name}\" is no column name")]
    ColumnName {
        /// The name.
        name: String,
    },
    /// Two columns have one name.
    #[error("column \"{name}\" appears more than once")]
    DuplicateColumn {
        /// The name.
        name: String,
    },
    /// A column's values, validity or codes do not fit the row count.
    #[error("column \"{name}\" has {rows} rows where {expected} are needed")]
    ColumnRows {
        /// The column.
        name: String,
        /// Rows (for bitmaps: bytes) it has.
        rows: usize,
        /// Rows (for bitmaps: bytes) it needs.
        expected: usize,
    },
    /// A code without an item, or end offsets that do not ascend to the length of the bytes.
    #[error("column \"{name}\": {problem}")]
    Items {
        /// The column.
        name: String,
        /// The fault.
        problem: &'static str,
    },
    /// A value of another type than the column's.
    #[error("a column of type {column_type} takes no {value} value")]
    ValueType {
        /// The column's type.
        column_type: ColumnType,
        /// The Rust type that was pushed.
        value: &'static str,
    },
    /// Text with a NUL, which PostgreSQL cannot store.
    #[error("text holds a NUL byte")]
    NulInText,
}
