//! What went wrong in a session, and what it means: to the session, to the batch, to the sender.

use tokio_postgres::error::SqlState;

use super::sink::SinkError;

/// What went wrong in a session, and whether the session is still good.
#[derive(Debug)]
pub struct CallError {
    /// What.
    pub error: SinkError,
    /// For metrics: the SQLSTATE, or `connection` or `timeout`.
    pub kind: String,
    /// Whether the session may be used again.
    pub is_session_good: bool,
}

/// What `applied` and `reused` of `lanes.append_once` say: places from 1 on, or NULL.
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

/// What an error means of a statement that creates what a sender has named.
pub(super) fn of_definition(error: CallError) -> CallError {
    let SinkError::Unavailable(reason) = error.error else {
        return error;
    };
    let error_of = match error.kind.as_str() {
        "42501" => SinkError::Forbidden(reason),
        // There is no such schema.
        "3F000" => SinkError::TableChanged(reason),
        kind if kind.starts_with("42") => SinkError::Refused(reason),
        _ => SinkError::Unavailable(reason),
    };
    CallError {
        error: error_of,
        ..error
    }
}

/// What registration gets wrong an operator can mend, in the registry: nothing of it is the sender's data.
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

/// What an error means when the target is a table that the sender has named: there the sender can mend what in the table of samples an
/// operator must.
pub(super) fn of_table(error: CallError, is_once: bool) -> CallError {
    let SinkError::Unavailable(reason) = error.error else {
        return error;
    };
    let error_of = match error.kind.as_str() {
        // Undefined table, undefined column, other type, generated column, NULL where none may be: described before a change.
        "42P01" | "42703" | "42804" | "428C9" => SinkError::TableChanged(reason),
        "42501" => SinkError::Forbidden(reason),
        // Row-level security, rules, kinds of table.
        "0A000" | "42809" => SinkError::Refused(reason),
        // The session was lost, or the commit is done here and not known to be on the standbys.
        "connection" | "timeout" | "01000" | "no_standbys" | "57P01" | "57P02" if !is_once => {
            SinkError::OutcomeUnknown(reason)
        }
        _ => SinkError::Unavailable(reason),
    };
    CallError {
        error: error_of,
        ..error
    }
}

/// Level `replica` without anything to replicate to.
pub fn no_standbys() -> CallError {
    CallError {
        error: SinkError::Unavailable(NO_STANDBYS.to_owned()),
        kind: "no_standbys".to_owned(),
        is_session_good: true,
    }
}

/// What is said of level `replica` where there is no standby.
pub const NO_STANDBYS: &str = "acknowledgement level \"replica\" cannot be kept: synchronous_standby_names of PostgreSQL is empty; set it, or ask for another level";

pub(super) fn timed_out(reason: String) -> CallError {
    CallError {
        error: SinkError::Unavailable(reason),
        kind: "timeout".to_owned(),
        is_session_good: false,
    }
}

pub(super) fn call_error(error: &tokio_postgres::Error, is_closed: bool) -> CallError {
    let Some(database_error) = error.as_db_error() else {
        let reason = match std::error::Error::source(error) {
            Some(source) => format!("PostgreSQL: {error}: {source}"),
            None => format!("PostgreSQL: {error}"),
        };
        return CallError {
            error: SinkError::Unavailable(reason),
            kind: "connection".to_owned(),
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

/// What an SQLSTATE means to a sender. Only data that can never be stored is refused; all that an operator can mend is worth a retry.
fn sink_error(code: &SqlState, message: &str) -> SinkError {
    let remedy = match code {
        &SqlState::INSUFFICIENT_PRIVILEGE if is_of_extension(message) => GRANT_GATEWAY,
        _ => "",
    };
    let reason = format!("PostgreSQL: {message} (SQLSTATE {}){remedy}", code.code());
    match code.code().get(..2) {
        // Data exception, constraint violated, check option violated, a program limit passed.
        Some("22" | "23" | "44" | "54") => SinkError::Refused(reason),
        _ => SinkError::Unavailable(reason),
    }
}

/// What a role lacks that no `lanes.grant_gateway` was called for.
const GRANT_GATEWAY: &str =
    "; SELECT lanes.grant_gateway('ROLE'), as a superuser, grants the gateway's role what it needs";

/// Whether a role lacks what every gateway needs, rather than a right on somebody's table. Messages in other languages than
/// English go without the remedy.
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
    fn what_may_be_committed_is_not_appended_again_without_a_digest() {
        let unavailable = |kind: &str| CallError {
            error: SinkError::Unavailable("text".to_owned()),
            kind: kind.to_owned(),
            is_session_good: true,
        };
        for after_commit in [
            no_standbys(),
            timed_out("text".to_owned()),
            unavailable("connection"),
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
    fn a_role_without_the_rights_of_a_gateway_is_told_how_to_get_them() {
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
    fn places_of_requests_applied_before_are_told() {
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
