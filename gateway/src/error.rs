//! The answers other than success: a few kinds, each with its status, mapped here and nowhere else.

use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use thiserror::Error;

use crate::deliver::AckLevel;
use crate::observe::Metrics;

/// Seconds after which a sender is asked to come again.
const RETRY_AFTER_SECONDS: u16 = 2;

/// Why a request is not answered with 204.
///
/// | kind | status | what senders do with it |
/// |---|---|---|
/// | `BadRequest` | 400 | drop the request and log the reason |
/// | `Forbidden` | 403 | the same; for events, and for web pages of other sites |
/// | `NotFound` | 404 | the same; only for events |
/// | `Unprocessable` | 422 | the same; only for events |
/// | `UnsupportedMedia` | 415 | fall back to another protocol, or drop |
/// | `Busy` | 503 with Retry-After | repeat the same request |
///
/// Not used on purpose: 413, which vmagent repeats for ever; 429 and 408, after which Prometheus drops the data by default.
#[derive(Debug, Error, PartialEq, Eq, Clone)]
pub enum Refusal {
    /// Repeating this request is of no use.
    #[error("{0}")]
    BadRequest(String),
    /// The gateway may not do that.
    #[error("{0}")]
    Forbidden(String),
    /// There is no such table.
    #[error("{0}")]
    NotFound(String),
    /// It is legal by itself, and contradicts what is stored.
    #[error("{0}")]
    Unprocessable(String),
    /// Another protocol or encoding is spoken here.
    #[error("{0}")]
    UnsupportedMedia(String),
    /// Repeating this request is right.
    #[error("{0}")]
    Busy(String),
}

impl Refusal {
    /// The status of the answer.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::Unprocessable(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::UnsupportedMedia(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Busy(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

/// The answer to a request whose commit was not confirmed by its deadline.
pub fn late(level: AckLevel, metrics: &Metrics) -> Refusal {
    let reason = "PostgreSQL has not confirmed the request in time (ack.timeout)";
    let missing = metrics.postgres_standbys_missing.get();
    Refusal::Busy(match level {
        _ if metrics.postgres_disk_full.get() != 0 => format!("{reason}: its disk is full"),
        AckLevel::Replica if missing > 0 => {
            format!("{reason}; synchronous standbys are missing: {missing}")
        }
        _ => reason.to_owned(),
    })
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = (self.status(), format!("{self}\n")).into_response();
        if matches!(self, Self::Busy(_)) {
            response
                .headers_mut()
                .insert(RETRY_AFTER, HeaderValue::from(RETRY_AFTER_SECONDS));
        }
        response
    }
}
