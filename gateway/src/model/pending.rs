//! A request that waits to be stored.

use tokio::sync::oneshot;

use super::budget::Reservation;
use super::digest::Digest;
use super::outcome::Outcome;
use super::target::Target;
use crate::clock::Instant;

/// A request on its way to the database.
#[derive(Debug)]
pub struct Pending<P> {
    /// The rows to append.
    pub payload: P,
    /// The table to append to.
    pub target: Target,
    /// The digest by which a repetition is recognised. A request without one is applied each time
    /// that it is sent.
    pub digest: Option<Digest>,
    /// The digest of the body, if `digest` is that of a key chosen by the sender. The same key
    /// with another body is refused.
    pub body: Option<Digest>,
    /// The time after which nobody waits for the outcome.
    pub deadline: Instant,
    /// The memory that the request holds, released with the outcome.
    pub reservation: Reservation,
    /// Receives the outcome.
    pub reply: oneshot::Sender<Outcome>,
}
