//! Errors as Postgres reports them: SQLSTATE, message, hint, decided once each.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgLogLevel, PgSqlErrorCode};

/// Raises an ERROR with a hint.
pub fn raise(code: PgSqlErrorCode, message: impl Into<String>, hint: impl Into<String>) -> ! {
    ErrorReport::new(code, message.into(), "")
        .set_hint(hint.into())
        .report(PgLogLevel::ERROR);
    unreachable!("an ERROR does not return")
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
