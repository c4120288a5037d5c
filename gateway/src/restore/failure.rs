//! A failed statement, and whether the cause is its subject or the server.

use std::fmt;

use crate::connect::reason::reason;

/// Why a statement failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    /// The reason, for people.
    reason: String,
    /// Whether the server is the cause, so that another statement would fail too.
    is_of_server: bool,
}

/// Prefixes of SQLSTATEs: the connection, a transaction rollback caused by others, resources (such
/// as a full disk), operator intervention, an I/O error, damaged files. Class XX is not included as
/// a whole, because extensions raise XX000 for invalid values.
const OF_SERVER: [&str; 7] = ["08", "40", "53", "57", "58030", "XX001", "XX002"];

impl Failure {
    /// Describes the failure of a statement.
    pub(super) fn of(what: &str, error: &tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(error) => Self::new(what, error.code().code(), error.message()),
            None => Self {
                reason: format!("{what}: {}", reason(error)),
                is_of_server: true,
            },
        }
    }

    /// Describes the missing result of a function that returns one number.
    pub(super) fn no_answer(what: &str) -> Self {
        Self {
            reason: format!("{what}: no answer"),
            is_of_server: true,
        }
    }

    fn new(what: &str, code: &str, message: &str) -> Self {
        Self {
            reason: format!("{what}: {message} (SQLSTATE {code})"),
            is_of_server: OF_SERVER.iter().any(|class| code.starts_with(class)),
        }
    }

    /// Returns the failure if the subject of the statement is the cause.
    ///
    /// # Errors
    /// Returns the reason if the server is the cause.
    pub(super) fn of_statement(self) -> Result<Self, String> {
        match self.is_of_server {
            true => Err(self.reason),
            false => Ok(self),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.reason)
    }
}

impl From<Failure> for String {
    fn from(failure: Failure) -> Self {
        failure.reason
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_not_caused_by_the_rows() {
        for code in ["53100", "53200", "57014", "58030", "XX001", "40P01"] {
            let failure = Failure::new("INSERT", code, "no room");
            let reason = failure.of_statement().unwrap_err();
            assert_eq!(reason, format!("INSERT: no room (SQLSTATE {code})"));
        }
        for code in [
            "22003", "23514", "42846", "42883", "0A000", "P0001", "XX000", "58P01",
        ] {
            let failure = Failure::new("INSERT", code, "too large");
            assert!(failure.of_statement().is_ok(), "{code}");
        }
    }
}
