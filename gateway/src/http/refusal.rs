//! Why a request is not answered with 204: a few kinds, each mapped to its status code here and
//! nowhere else.
//!
//! Other answers have their statuses elsewhere: those of the query API in `query/failure.rs`, 404 for
//! unknown routes and 405 for wrong methods in `app/router.rs`, those of the page's files in
//! `page/routes.rs`.

use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use thiserror::Error;

/// The seconds after which a sender is asked to repeat a request.
pub const RETRY_AFTER_SECONDS: u16 = 2;

/// The schemes of credentials, as a 401 names them.
const CHALLENGES: [&str; 2] = [
    "Basic realm=\"lanes-gateway\", charset=\"UTF-8\"",
    "Bearer realm=\"lanes-gateway\"",
];

/// Why a request is not answered with 204.
///
/// | kind | status | what senders do |
/// |---|---|---|
/// | `BadRequest` | 400 | drop the request and log the reason |
/// | `Unauthorized` | 401 with WWW-Authenticate | drop it, or ask for credentials |
/// | `Forbidden` | 403 | drop it; used for events, for users without a GRANT and for web pages of other sites |
/// | `NotFound` | 404 | drop it; used for events only |
/// | `Unprocessable` | 422 | drop it; used for events only |
/// | `UnsupportedMedia` | 415 | fall back to another protocol, or drop it |
/// | `TooMany` | 429 with Retry-After | repeat it; Prometheus drops it by default |
/// | `Busy` | 503 with Retry-After | repeat it |
///
/// The gateway does not use 413, which vmagent repeats forever, nor 408, after which Prometheus
/// drops the data. 429 is for users above their limits only, never for overload.
#[derive(Debug, Error, PartialEq, Eq, Clone)]
pub enum Refusal {
    /// The request is wrong, and repeating it would not help.
    #[error("{0}")]
    BadRequest(String),
    /// Credentials are missing or wrong.
    #[error("{0}")]
    Unauthorized(String),
    /// The gateway may not do this, or may not do it for this client.
    #[error("{0}")]
    Forbidden(String),
    /// The table does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The request is valid, but contradicts what is stored.
    #[error("{0}")]
    Unprocessable(String),
    /// The protocol or encoding is not supported.
    #[error("{0}")]
    UnsupportedMedia(String),
    /// The user sends more than it may. It may repeat the request later.
    #[error("{reason}")]
    TooMany {
        /// The limit.
        reason: String,
        /// After how many seconds there is room.
        seconds: u64,
    },
    /// The request cannot be served now. The sender should repeat it.
    #[error("{0}")]
    Busy(String),
}

impl Refusal {
    /// The status code of the answer.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::Unauthorized(_) => StatusCode::UNAUTHORIZED,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::Unprocessable(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::UnsupportedMedia(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooMany { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::Busy(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = (self.status(), format!("{self}\n")).into_response();
        let headers = response.headers_mut();
        match self {
            Self::Busy(_) => {
                headers.insert(RETRY_AFTER, HeaderValue::from(RETRY_AFTER_SECONDS));
            }
            Self::TooMany { seconds, .. } => {
                headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
            }
            Self::Unauthorized(_) => {
                for challenge in CHALLENGES {
                    headers.append(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
                }
            }
            _ => {}
        }
        response
    }
}
