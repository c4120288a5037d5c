use lanes_wire::{BatchError, ColumnType};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgLogLevel, PgSqlErrorCode, function_name, pg_sys};

/// Why a batch is not appended.
#[derive(Debug)]
pub enum Refusal {
    /// The bytes are no valid batch.
    Batch(BatchError),
    /// There is no table with this oid, or not any more.
    NoTable { table: pg_sys::Oid },
    /// The target is neither a table, a partitioned table nor a foreign table.
    TargetKind { table: String },
    /// A temporary table of another session.
    OtherTemporary { table: String },
    /// Citus keeps the table's rows in shards.
    Distributed { table: String },
    /// Row-level security applies to the caller.
    RowSecurity { table: String },
    /// An INSERT on the table is rewritten by a rule.
    Rule { table: String },
    /// The rows do not go directly into lanes, so nobody could say where they lie.
    NotPlaced {
        table: String,
        because: &'static str,
    },
    /// The table has no column with a name that the batch has.
    UnknownColumn { table: String, column: String },
    /// A generated column, or an identity column that is always generated.
    Generated { column: String, kind: &'static str },
    /// The batch's type cannot be converted to the column's.
    TypeDiffers {
        column: String,
        column_type: String,
        found: ColumnType,
    },
    /// A NULL, or no value, for a NOT NULL column.
    NotNull {
        table: String,
        column: String,
        row: Option<usize>,
    },
    /// A number outside the range of the column's type.
    OutOfRange {
        column: String,
        column_type: &'static str,
        row: usize,
    },
}

impl From<BatchError> for Refusal {
    fn from(error: BatchError) -> Self {
        Refusal::Batch(error)
    }
}

impl Refusal {
    /// Raises the refusal as an ERROR.
    pub fn report(self) -> ! {
        use PgSqlErrorCode as Code;
        let (code, message, detail, hint) = match self {
            Refusal::Batch(error) => (
                Code::ERRCODE_BAD_COPY_FILE_FORMAT,
                format!("invalid batch: {error}"),
                None,
                Some(
                    "The format is described in the schema batch.fbs of the wire crate.".to_owned(),
                ),
            ),
            Refusal::NoTable { table } => (
                Code::ERRCODE_UNDEFINED_TABLE,
                format!(
                    "cannot append: there is no table with oid {}",
                    table.to_u32()
                ),
                None,
                None,
            ),
            Refusal::TargetKind { table } => (
                Code::ERRCODE_WRONG_OBJECT_TYPE,
                format!("cannot append to \"{table}\""),
                Some("It is neither a table, a partitioned table nor a foreign table.".to_owned()),
                Some("Append to the table under it.".to_owned()),
            ),
            Refusal::OtherTemporary { table } => (
                Code::ERRCODE_FEATURE_NOT_SUPPORTED,
                format!("cannot append to \"{table}\", a temporary table of another session"),
                None,
                None,
            ),
            Refusal::Distributed { table } => (
                Code::ERRCODE_FEATURE_NOT_SUPPORTED,
                format!("cannot append to \"{table}\": Citus has distributed the table"),
                None,
                Some("Use COPY or INSERT, whose rows Citus sends to the shards.".to_owned()),
            ),
            Refusal::RowSecurity { table } => (
                Code::ERRCODE_FEATURE_NOT_SUPPORTED,
                format!("cannot append to \"{table}\": row-level security applies to you"),
                None,
                Some("Use INSERT, or a role that owns the table or has BYPASSRLS.".to_owned()),
            ),
            Refusal::Rule { table } => (
                Code::ERRCODE_FEATURE_NOT_SUPPORTED,
                format!("cannot append to \"{table}\": a rule rewrites its INSERTs"),
                None,
                Some("Use INSERT, or a trigger in place of the rule.".to_owned()),
            ),
            Refusal::NotPlaced { table, because } => (
                Code::ERRCODE_FEATURE_NOT_SUPPORTED,
                format!("cannot log rows of \"{table}\" in object storage: {because}"),
                None,
                Some("Use another level of acknowledgement for this table.".to_owned()),
            ),
            Refusal::UnknownColumn { table, column } => (
                Code::ERRCODE_UNDEFINED_COLUMN,
                format!("column \"{column}\" of relation \"{table}\" does not exist"),
                None,
                None,
            ),
            Refusal::Generated { column, kind } => (
                Code::ERRCODE_GENERATED_ALWAYS,
                format!("cannot insert a value into column \"{column}\""),
                Some(format!("Column \"{column}\" is {kind}.")),
                Some("Leave the column out of the batch.".to_owned()),
            ),
            Refusal::TypeDiffers {
                column,
                column_type,
                found,
            } => (
                Code::ERRCODE_DATATYPE_MISMATCH,
                format!("column \"{column}\" is of type {column_type} but the batch holds {found}"),
                None,
                Some(
                    "Send the column's own type, or Text in the form that the type reads."
                        .to_owned(),
                ),
            ),
            Refusal::NotNull { table, column, row } => (
                Code::ERRCODE_NOT_NULL_VIOLATION,
                format!(
                    "null value in column \"{column}\" of relation \"{table}\" violates not-null constraint"
                ),
                Some(match row {
                    Some(row) => format!("Row {row} of the batch, counted from 0."),
                    None => "The batch lacks the column and it has no default.".to_owned(),
                }),
                None,
            ),
            Refusal::OutOfRange {
                column,
                column_type,
                row,
            } => (
                Code::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                format!("value for column \"{column}\" is out of range for type {column_type}"),
                Some(format!("Row {row} of the batch, counted from 0.")),
                None,
            ),
        };
        let mut report = ErrorReport::new(code, message, function_name!());
        if let Some(detail) = detail {
            report = report.set_detail(detail);
        }
        if let Some(hint) = hint {
            report = report.set_hint(hint);
        }
        report.report(PgLogLevel::ERROR);
        unreachable!("an ERROR does not return")
    }
}
