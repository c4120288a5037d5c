//! Errors as Postgres reports them: SQLSTATE, message, hint, decided once each.

use lanes_columnar::vector::EvaluationError;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgLogLevel, PgSqlErrorCode};

pub mod ema;

/// Raises an ERROR with a hint.
pub fn raise(code: PgSqlErrorCode, message: impl Into<String>, hint: impl Into<String>) -> ! {
    ErrorReport::new(code, message.into(), "")
        .set_hint(hint.into())
        .report(PgLogLevel::ERROR);
    unreachable!("an ERROR does not return")
}

/// Warns, with a hint.
pub fn warn(message: impl Into<String>, hint: impl Into<String>) {
    ErrorReport::new(PgSqlErrorCode::ERRCODE_WARNING, message.into(), "")
        .set_hint(hint.into())
        .report(PgLogLevel::WARNING);
}

/// The table's pages do not say what they must.
pub fn corrupt(message: &str) -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
        format!("corrupt lanes table: {message}"),
        "Restore the table from a backup or a standby; VACUUM and INSERT do not mend it.",
    )
}

/// Something that lanes tables do not do, with what to do instead.
pub fn refuse(what: &str, hint: &str) -> ! {
    raise(PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED, what, hint)
}

/// A size that lanes tables do not hold.
pub fn too_large(what: &str, hint: &str) -> ! {
    raise(PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED, what, hint)
}

/// An expression that the planner could translate and the executor cannot: a defect of ours.
pub fn unplanned(reason: &str) -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
        format!("a vectorised plan cannot be executed: {reason}"),
        "Please report this; SET lanes.vectorize = off runs the query all the same.",
    )
}

/// What a vectorised operator found wrong, as PostgreSQL's own operators report it.
pub fn evaluation(failure: EvaluationError) -> ! {
    let (code, message) = match failure {
        EvaluationError::IntegerOutOfRange(bytes) => (
            PgSqlErrorCode::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
            match bytes {
                2 => "smallint out of range",
                4 => "integer out of range",
                _ => "bigint out of range",
            },
        ),
        EvaluationError::FloatOverflow => (
            PgSqlErrorCode::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
            "value out of range: overflow",
        ),
        EvaluationError::FloatUnderflow => (
            PgSqlErrorCode::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
            "value out of range: underflow",
        ),
        EvaluationError::TimestampOutOfRange => (
            PgSqlErrorCode::ERRCODE_DATETIME_FIELD_OVERFLOW,
            "timestamp out of range",
        ),
        EvaluationError::DivisionByZero => {
            (PgSqlErrorCode::ERRCODE_DIVISION_BY_ZERO, "division by zero")
        }
        EvaluationError::Argument(message) => {
            (PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message)
        }
        EvaluationError::Weight(weight, fault) => ema::refuse(weight, fault),
        EvaluationError::Disordered => unplanned("rows came out of order"),
        EvaluationError::TooMuchMemory => unplanned("the right side of a join does not fit"),
    };
    ErrorReport::new(code, message, "").report(PgLogLevel::ERROR);
    unreachable!("an ERROR does not return")
}
