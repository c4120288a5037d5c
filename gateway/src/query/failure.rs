//! Why a request has no answer: a few kinds, each mapped to Prometheus's `errorType` and to its
//! status code here and nowhere else.

use axum::Json;
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tokio_postgres::error::SqlState;

use crate::connect::reason::reason;
use crate::http::Refusal;
use crate::http::refusal::RETRY_AFTER_SECONDS;

/// The kinds of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A parameter or a query is wrong.
    BadData,
    /// The query cannot be evaluated.
    Execution,
    /// The role may not read what the query needs.
    Forbidden,
    /// The query took too long.
    Timeout,
    /// The statement was cancelled by somebody else.
    Canceled,
    /// The request cannot be served now. The client may repeat it.
    Unavailable,
}

impl Kind {
    /// The value of `errorType`, which is also the outcome in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::BadData => "bad_data",
            Self::Execution => "execution",
            Self::Forbidden => "forbidden",
            Self::Timeout => "timeout",
            Self::Canceled => "canceled",
            Self::Unavailable => "unavailable",
        }
    }

    fn status(self) -> StatusCode {
        match self {
            Self::BadData => StatusCode::BAD_REQUEST,
            Self::Execution => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::Timeout | Self::Canceled | Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

/// Why a request has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Failure {
    /// The kind.
    pub kind: Kind,
    /// The value of `error`.
    pub text: String,
}

/// The body of an answer that is an error.
#[derive(Serialize)]
struct ErrorBody<'a> {
    status: &'static str,
    #[serde(rename = "errorType")]
    error_type: &'static str,
    error: &'a str,
}

/// The remedy for a role for which `lanes.grant_reader` was not called.
const GRANT_READER: &str = "; to grant the role of query.connection its privileges, run SELECT lanes.grant_reader('ROLE') as a superuser";

impl Failure {
    /// Returns a failure of this kind.
    pub fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self {
            kind,
            text: text.into(),
        }
    }

    /// Returns the failure of a request that is wrong.
    pub fn bad_data(text: impl Into<String>) -> Self {
        Self::new(Kind::BadData, text)
    }

    /// Returns the failure of a wrong parameter.
    pub fn invalid(parameter: &str, reason: impl std::fmt::Display) -> Self {
        Self::bad_data(format!("invalid parameter \"{parameter}\": {reason}"))
    }

    /// Returns the failure of a request that the client may repeat.
    pub fn unavailable(text: impl Into<String>) -> Self {
        Self::new(Kind::Unavailable, text)
    }

    /// Returns the failure of a query that took too long, in Prometheus's words.
    pub fn timeout() -> Self {
        let text = "query timed out in expression evaluation";
        Self::new(Kind::Timeout, text)
    }

    /// Converts the error of taking a role.
    pub fn of_role(error: &tokio_postgres::Error, role: &str) -> Self {
        match error.as_db_error() {
            // 22023: there is no such role.
            Some(error) if ["42501", "22023"].contains(&error.code().code()) => Self::new(
                Kind::Forbidden,
                format!(
                    "{}; a user reads as its PostgreSQL role, so create the role {role:?}, and GRANT it to the role of query.connection",
                    error.message()
                ),
            ),
            _ => Self::of_database(error, false, Some(role)),
        }
    }

    /// Converts an error of the driver or of the database. `role` is that of the user, if it is not
    /// that of the login. `is_late` says whether the time of the
    /// query has passed: texts in other languages would not tell a timeout from a cancellation.
    pub fn of_database(error: &tokio_postgres::Error, is_late: bool, role: Option<&str>) -> Self {
        match error.as_db_error() {
            Some(error) => {
                let failure = Self::of_sqlstate(error.code(), error.message(), is_late, role);
                match error.hint() {
                    Some(hint) => failure.with_hint(error.code(), hint),
                    None => failure,
                }
            }
            None => Self::unavailable(reason(error)),
        }
    }

    /// Appends PostgreSQL's hint, unless the text is Prometheus's own or has a remedy already.
    fn with_hint(mut self, code: &SqlState, hint: &str) -> Self {
        if !["22023", "42501", "42601", "57014"].contains(&code.code()) {
            self.text = format!("{}. Hint: {hint}", self.text);
        }
        self
    }

    fn of_sqlstate(code: &SqlState, message: &str, is_late: bool, role: Option<&str>) -> Self {
        match code.code() {
            "42601" => Self::invalid("query", message),
            "57014" if is_late => Self::timeout(),
            "57014" => Self::new(
                Kind::Canceled,
                "query was canceled in expression evaluation",
            ),
            "42501" => Self::new(
                Kind::Forbidden,
                match role {
                    None => format!("{message}{GRANT_READER}"),
                    Some(role) => format!(
                        "{message}; to let the role {role:?} read, run SELECT lanes.grant_reader('ROLE') as a superuser"
                    ),
                },
            ),
            code if code == "53300"
                || ["08", "28"].contains(&code.get(..2).unwrap_or_default()) =>
            {
                Self::unavailable(format!("PostgreSQL: {message}"))
            }
            code if code.starts_with("57P0") => Self::unavailable(format!("PostgreSQL: {message}")),
            _ => Self::new(Kind::Execution, message),
        }
    }
}

impl Failure {
    /// Returns the response of routes whose answers are no JSON.
    pub fn into_text_response(self) -> Response {
        let response = (self.kind.status(), format!("{}\n", self.text)).into_response();
        self.with_retry(response)
    }

    fn with_retry(&self, mut response: Response) -> Response {
        if self.kind == Kind::Unavailable {
            let headers = response.headers_mut();
            headers.insert(RETRY_AFTER, HeaderValue::from(RETRY_AFTER_SECONDS));
        }
        response
    }
}

impl From<Refusal> for Failure {
    /// Converts the refusal of a body.
    fn from(refusal: Refusal) -> Self {
        let kind = match refusal {
            Refusal::Busy(_) => Kind::Unavailable,
            Refusal::Forbidden(_) => Kind::Forbidden,
            _ => Kind::BadData,
        };
        Self::new(kind, refusal.to_string())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let body = ErrorBody {
            status: "error",
            error_type: self.kind.name(),
            error: &self.text,
        };
        let response = (self.kind.status(), Json(body)).into_response();
        self.with_retry(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlstates_are_mapped_to_prometheus_errors() {
        for (code, is_late, kind, status) in [
            ("42601", false, Kind::BadData, 400),
            ("57014", true, Kind::Timeout, 503),
            ("57014", false, Kind::Canceled, 503),
            ("42501", false, Kind::Forbidden, 403),
            ("53300", false, Kind::Unavailable, 503),
            ("57P01", false, Kind::Unavailable, 503),
            ("57P03", false, Kind::Unavailable, 503),
            ("08006", false, Kind::Unavailable, 503),
            ("28P01", false, Kind::Unavailable, 503),
            ("22023", false, Kind::Execution, 422),
            ("54000", true, Kind::Execution, 422),
            ("XX000", false, Kind::Execution, 422),
        ] {
            let failure = Failure::of_sqlstate(&SqlState::from_code(code), "text", is_late, None);
            assert_eq!(failure.kind, kind, "{code}");
            assert_eq!(failure.kind.status().as_u16(), status, "{code}");
            let response = failure.into_response();
            let repeats = response.headers().contains_key(RETRY_AFTER);
            assert_eq!(repeats, kind == Kind::Unavailable, "{code}");
        }
    }

    #[test]
    fn texts_are_those_of_prometheus() {
        let of = |code: &str| {
            Failure::of_sqlstate(
                &SqlState::from_code(code),
                "1:2: parse error: x",
                true,
                None,
            )
            .text
        };
        assert_eq!(
            of("42601"),
            "invalid parameter \"query\": 1:2: parse error: x"
        );
        assert_eq!(of("57014"), "query timed out in expression evaluation");
        assert_eq!(of("22023"), "1:2: parse error: x");
        assert!(of("42501").contains("role of query.connection"));
        let denied = SqlState::from_code("42501");
        let of_user = Failure::of_sqlstate(&denied, "no", false, Some("alice")).text;
        assert!(of_user.contains("role \"alice\" read"), "{of_user}");
    }

    #[test]
    fn hints_are_appended_to_texts_that_are_not_prometheus_s() {
        for (code, expected) in [
            ("54000", "too many. Hint: Select fewer."),
            ("0A000", "too many. Hint: Select fewer."),
            ("22023", "too many"),
            ("42601", "too many"),
            ("42501", "too many"),
        ] {
            let failure = Failure::new(Kind::Execution, "too many");
            let failure = failure.with_hint(&SqlState::from_code(code), "Select fewer.");
            assert_eq!(failure.text, expected, "{code}");
        }
    }

    #[test]
    fn bodies_have_the_keys_in_order() {
        let body = ErrorBody {
            status: "error",
            error_type: Kind::BadData.name(),
            error: "a \"b\"",
        };
        assert_eq!(
            serde_json::to_string(&body).unwrap(),
            r#"{"status":"error","errorType":"bad_data","error":"a \"b\""}"#
        );
    }
}
