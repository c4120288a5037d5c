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
        let mut report = ErrorReport::new(self.code(), self.message(), function_name!());
        if let Some(detail) = self.detail() {
            report = report.set_detail(detail);
        }
        if let Some(hint) = self.hint() {
            report = report.set_hint(hint);
        }
        report.report(PgLogLevel::ERROR);
        unreachable!("an ERROR does not return")
    }

    fn code(&self) -> PgSqlErrorCode {
        use PgSqlErrorCode as Code;
        match self {
            Refusal::Batch(_) => Code::ERRCODE_BAD_COPY_FILE_FORMAT,
            Refusal::NoTable { .. } => Code::ERRCODE_UNDEFINED_TABLE,
            Refusal::TargetKind { .. } => Code::ERRCODE_WRONG_OBJECT_TYPE,
            Refusal::OtherTemporary { .. }
            | Refusal::Distributed { .. }
            | Refusal::RowSecurity { .. }
            | Refusal::Rule { .. }
            | Refusal::NotPlaced { .. } => Code::ERRCODE_FEATURE_NOT_SUPPORTED,
            Refusal::UnknownColumn { .. } => Code::ERRCODE_UNDEFINED_COLUMN,
            Refusal::Generated { .. } => Code::ERRCODE_GENERATED_ALWAYS,
            Refusal::TypeDiffers { .. } => Code::ERRCODE_DATATYPE_MISMATCH,
            Refusal::NotNull { .. } => Code::ERRCODE_NOT_NULL_VIOLATION,
            Refusal::OutOfRange { .. } => Code::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
        }
    }

    fn message(&self) -> String {
        match self {
            Refusal::Batch(error) => format!("invalid batch: {error}"),
            Refusal::NoTable { table } => format!(
                "cannot append: there is no table with oid {}",
                table.to_u32()
            ),
            Refusal::TargetKind { table } => format!("cannot append to \"{table}\""),
            Refusal::OtherTemporary { table } => {
                format!("cannot append to \"{table}\", a temporary table of another session")
            }
            Refusal::Distributed { table } => {
                format!("cannot append to \"{table}\": Citus has distributed the table")
            }
            Refusal::RowSecurity { table } => {
                format!("cannot append to \"{table}\": row-level security applies to you")
            }
            Refusal::Rule { table } => {
                format!("cannot append to \"{table}\": a rule rewrites its INSERTs")
            }
            Refusal::NotPlaced { table, because } => {
                format!("cannot log rows of \"{table}\" in object storage: {because}")
            }
            Refusal::UnknownColumn { table, column } => {
                format!("column \"{column}\" of relation \"{table}\" does not exist")
            }
            Refusal::Generated { column, .. } => {
                format!("cannot insert a value into column \"{column}\"")
            }
            Refusal::TypeDiffers {
                column,
                column_type,
                found,
            } => {
                format!("column \"{column}\" is of type {column_type} but the batch holds {found}")
            }
            Refusal::NotNull { table, column, .. } => format!(
                "null value in column \"{column}\" of relation \"{table}\" violates not-null constraint"
            ),
            Refusal::OutOfRange {
                column,
                column_type,
                ..
            } => format!("value for column \"{column}\" is out of range for type {column_type}"),
        }
    }

    fn detail(&self) -> Option<String> {
        let of_row = |row: &usize| format!("Row {row} of the batch, counted from 0.");
        match self {
            Refusal::TargetKind { .. } => {
                Some("It is neither a table, a partitioned table nor a foreign table.".to_owned())
            }
            Refusal::Generated { column, kind } => Some(format!("Column \"{column}\" is {kind}.")),
            Refusal::NotNull { row: Some(row), .. } | Refusal::OutOfRange { row, .. } => {
                Some(of_row(row))
            }
            Refusal::NotNull { row: None, .. } => {
                Some("The batch lacks the column and it has no default.".to_owned())
            }
            Refusal::Batch(_)
            | Refusal::NoTable { .. }
            | Refusal::OtherTemporary { .. }
            | Refusal::Distributed { .. }
            | Refusal::RowSecurity { .. }
            | Refusal::Rule { .. }
            | Refusal::NotPlaced { .. }
            | Refusal::UnknownColumn { .. }
            | Refusal::TypeDiffers { .. } => None,
        }
    }

    fn hint(&self) -> Option<&'static str> {
        match self {
            Refusal::Batch(_) => {
                Some("The format is described in the schema batch.fbs of the wire crate.")
            }
            Refusal::TargetKind { .. } => Some("Append to the table under it."),
            Refusal::Distributed { .. } => {
                Some("Use COPY or INSERT, whose rows Citus sends to the shards.")
            }
            Refusal::RowSecurity { .. } => {
                Some("Use INSERT, or a role that owns the table or has BYPASSRLS.")
            }
            Refusal::Rule { .. } => Some("Use INSERT, or a trigger in place of the rule."),
            Refusal::NotPlaced { .. } => {
                Some("Use another level of acknowledgement for this table.")
            }
            Refusal::Generated { .. } => Some("Leave the column out of the batch."),
            Refusal::TypeDiffers { .. } => {
                Some("Send the column's own type, or Text in the form that the type reads.")
            }
            Refusal::NoTable { .. }
            | Refusal::OtherTemporary { .. }
            | Refusal::UnknownColumn { .. }
            | Refusal::NotNull { .. }
            | Refusal::OutOfRange { .. } => None,
        }
    }
}
