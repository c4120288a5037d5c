//! How a request ends.

use thiserror::Error;

/// Why a request is not stored.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The request cannot be stored now; a repetition may succeed. It may be unknown whether the
    /// request has been stored; its digest decides that when it is repeated.
    #[error("{0}")]
    Unavailable(String),
    /// The database refuses this data, and would refuse it again.
    #[error("{0}")]
    Refused(String),
    /// The gateway's role lacks a privilege. Nothing is stored.
    #[error("{0}")]
    Forbidden(String),
    /// The table has changed since the request was checked against it. Nothing is stored.
    #[error("{0}")]
    TableChanged(String),
    /// The sender has used this key with another body, which is stored. Nothing of this request
    /// is stored.
    #[error(
        "this Idempotency-Key was used before with another body, which is stored; use a new key for each request"
    )]
    KeyReused,
}

/// Which request stored the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// This request.
    Now,
    /// An earlier request with the same digest. Nothing was applied again.
    Before,
}

/// The end of a request: stored, or not.
pub type Outcome = Result<Stored, Fault>;
