//! Errors of calls to PostgreSQL, and their meaning for the session, the batch and the sender.

use tokio_postgres::error::SqlState;

use super::sink::SinkError;
use crate::connect::reason::{is_of_tls, reason};

/// The error of a call, and whether the session is still usable.
#[derive(Debug)]
pub struct CallError {
    /// The error.
    pub error: SinkError,
    /// A label for metrics: the SQLSTATE, or `connection`, `tls` or `timeout`.
    pub kind: String,
    /// Whether the session may be used again.
    pub is_session_good: bool,
}

/// Converts the columns `applied` and `reused` of `lanes.append_once`, which are indexes from 1 on,
/// or NULL.
pub(super) fn check_applied(
    applied: Option<Vec<i32>>,
    reused: Option<Vec<i32>>,
) -> Result<(), CallError> {
    let Some(applied) = applied else {
        return Ok(());
    };
    let from_zero = |places: Vec<i32>| {
        let places = places.into_iter().map(|place| usize::try_from(place - 1));
        places.filter_map(Result::ok).collect()
    };
    Err(CallError {
        error: SinkError::Duplicates {
            applied: from_zero(applied),
            reused: from_zero(reused.unwrap_or_default()),
        },
        kind: "applied_before".to_owned(),
        is_session_good: true,
    })
}

/// Converts the error of a statement that creates an object named by the sender.
pub(super) fn of_definition(error: CallError) -> CallError {
    let SinkError::Unavailable(reason) = error.error else {
        return error;
    };
    let error_of = match error.kind.as_str() {
        "42501" => SinkError::Forbidden(reason),
        // The schema does not exist.
        "3F000" => SinkError::TableChanged(reason),
        kind if kind.starts_with("42") => SinkError::Refused(reason),
        _ => SinkError::Unavailable(reason),
    };
    CallError {
        error: error_of,
        ..error
    }
}

/// Converts an error of registration. Constraint violations there concern the registry, which an
/// operator can repair, and not the sender's data.
pub(super) fn of_registration(error: CallError) -> CallError {
    match error.error {
        SinkError::Refused(reason)
            if matches!(error.kind.get(..2), Some("23" | "54")) || error.kind == "22003" =>
        {
            CallError {
                error: SinkError::Unavailable(reason),
                ..error
            }
        }
        _ => error,
    }
}

/// Converts an error of an append to a table named by the sender. The sender can correct some
/// errors that, for the table of samples, only an operator can.
pub(super) fn of_table(error: CallError, is_once: bool) -> CallError {
    let SinkError::Unavailable(reason) = error.error else {
        return error;
    };
    let error_of = match error.kind.as_str() {
        // Undefined table, undefined column, wrong type, generated column, not-null violation: the
        // table has changed since it was described.
        "42P01" | "42703" | "42804" | "428C9" => SinkError::TableChanged(reason),
        "42501" => SinkError::Forbidden(reason),
        // Row-level security, rules, unsupported kinds of relation.
        "0A000" | "42809" => SinkError::Refused(reason),
        // The session was lost, or the transaction has committed locally and may not have reached
        // the standbys.
        "connection" | "tls" | "timeout" | "01000" | "no_standbys" | "57P01" | "57P02"
            if !is_once =>
        {
            SinkError::OutcomeUnknown(reason)
        }
        _ => SinkError::Unavailable(reason),
    };
    CallError {
        error: error_of,
        ..error
    }
}

/// Returns the error of level `replica` without any standby.
pub fn no_standbys() -> CallError {
    CallError {
        error: SinkError::Unavailable(NO_STANDBYS.to_owned()),
        kind: "no_standbys".to_owned(),
        is_session_good: true,
    }
}

/// The message for level `replica` if there is no standby.
pub const NO_STANDBYS: &str = "acknowledgement level \"replica\" cannot be kept: PostgreSQL's synchronous_standby_names is empty; set it, or request another level";

pub(super) fn timed_out(reason: String) -> CallError {
    CallError {
        error: SinkError::Unavailable(reason),
        kind: "timeout".to_owned(),
        is_session_good: false,
    }
}

pub(super) fn call_error(error: &tokio_postgres::Error, is_closed: bool) -> CallError {
    let Some(database_error) = error.as_db_error() else {
        let kind = match is_of_tls(error) {
            true => "tls",
            false => "connection",
        };
        return CallError {
            error: SinkError::Unavailable(reason(error)),
            kind: kind.to_owned(),
            is_session_good: false,
        };
    };
    let code = database_error.code();
    CallError {
        error: sink_error(code, database_error.message()),
        kind: code.code().to_owned(),
        is_session_good: !is_closed,
    }
}

/// Converts an SQLSTATE. Only data that can never be stored is refused. Everything that an operator
/// can repair is worth a retry.
fn sink_error(code: &SqlState, message: &str) -> SinkError {
    let remedy = match code {
        &SqlState::INSUFFICIENT_PRIVILEGE if is_of_extension(message) => GRANT_GATEWAY,
        _ => "",
    };
    let reason = format!("PostgreSQL: {message} (SQLSTATE {}){remedy}", code.code());
    match code.code().get(..2) {
        // Data exception, integrity constraint violation, with check option violation, program
        // limit exceeded.
        Some("22" | "23" | "44" | "54") => SinkError::Refused(reason),
        _ => SinkError::Unavailable(reason),
    }
}

/// The remedy for a role for which `lanes.grant_gateway` was not called.
const GRANT_GATEWAY: &str = "; to grant the gateway's role its privileges, run SELECT lanes.grant_gateway('ROLE') as a superuser";

/// Whether the role lacks a privilege that every gateway needs, rather than one on a user's table.
/// The remedy is omitted for messages in languages other than English.
fn is_of_extension(message: &str) -> bool {
    let object = message.strip_prefix("permission denied for ");
    object.is_some_and(|object| {
        let table = object.strip_prefix("table ");
        let tables = ["samples", "requests", "registry", "series_runs"];
        object == "schema lanes"
            || object.starts_with("function ")
            || object.starts_with("procedure ")
            || table.is_some_and(|table| tables.contains(&table))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_may_be_committed_are_not_appended_again_without_a_digest() {
        let unavailable = |kind: &str| CallError {
            error: SinkError::Unavailable("text".to_owned()),
            kind: kind.to_owned(),
            is_session_good: true,
        };
        for after_commit in [
            no_standbys(),
            timed_out("text".to_owned()),
            unavailable("connection"),
            unavailable("tls"),
            unavailable("01000"),
            unavailable("57P01"),
            unavailable("57P02"),
        ] {
            let kind = after_commit.kind.clone();
            let error = of_table(after_commit, false).error;
            assert!(matches!(error, SinkError::OutcomeUnknown(_)), "{kind}");
            let error = of_table(unavailable(&kind), true).error;
            assert!(matches!(error, SinkError::Unavailable(_)), "{kind}");
        }
        for before_commit in ["53300", "40P01", "55P03", "57014"] {
            let error = of_table(unavailable(before_commit), false).error;
            assert!(
                matches!(error, SinkError::Unavailable(_)),
                "{before_commit}"
            );
        }
    }

    #[test]
    fn definitions_and_registrations_fail_in_their_own_ways() {
        let call_error = |code: &str| CallError {
            error: sink_error(&SqlState::from_code(code), "text"),
            kind: code.to_owned(),
            is_session_good: true,
        };
        for (code, expected) in [
            ("42501", "Forbidden"),
            ("3F000", "TableChanged"),
            ("42704", "Refused"),
            ("53300", "Unavailable"),
        ] {
            let error = format!("{:?}", of_definition(call_error(code)).error);
            assert!(error.starts_with(expected), "{code}: {error}");
        }
        for (code, expected) in [
            ("23505", "Unavailable"),
            ("54000", "Unavailable"),
            ("22003", "Unavailable"),
            ("22021", "Refused"),
        ] {
            let error = format!("{:?}", of_registration(call_error(code)).error);
            assert!(error.starts_with(expected), "{code}: {error}");
        }
        let forbidden = of_table(call_error("42501"), false).error;
        assert!(matches!(forbidden, SinkError::Forbidden(_)));
    }

    #[test]
    fn a_missing_privilege_is_reported_with_its_remedy() {
        let reason = |code: &SqlState, message: &str| format!("{:?}", sink_error(code, message));
        let denied = &SqlState::INSUFFICIENT_PRIVILEGE;
        for object in [
            "function registry_identity",
            "schema lanes",
            "table samples",
        ] {
            let reason = reason(denied, &format!("permission denied for {object}"));
            assert!(reason.contains("lanes.grant_gateway"), "{reason}");
        }
        for (code, message) in [
            (denied, "permission denied for table ticks"),
            (denied, "permission denied for schema public"),
            (
                &SqlState::UNDEFINED_FUNCTION,
                "permission denied for function f",
            ),
        ] {
            let reason = reason(code, message);
            assert!(!reason.contains("lanes.grant_gateway"), "{reason}");
        }
    }

    #[test]
    fn indexes_of_requests_applied_before_are_reported() {
        assert!(check_applied(None, None).is_ok());
        let error = check_applied(Some(vec![1, 4]), Some(vec![4])).unwrap_err();
        let expected = SinkError::Duplicates {
            applied: vec![0, 3],
            reused: vec![3],
        };
        assert_eq!((error.error, error.is_session_good), (expected, true));
    }

    #[test]
    fn sqlstates_mean_retry_or_refusal() {
        let error = |code: &str| sink_error(&SqlState::from_code(code), "text");
        for code in ["22P04", "23514", "44000", "54000"] {
            assert!(matches!(error(code), SinkError::Refused(_)), "{code}");
        }
        for code in [
            "LN001", "57P01", "53300", "40P01", "42501", "42P01", "25006", "08006", "XX000",
            "0A000",
        ] {
            assert!(matches!(error(code), SinkError::Unavailable(_)), "{code}");
        }
    }
}
