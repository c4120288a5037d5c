//! One request that waits to be stored, and how its sender learns of the end.

use thiserror::Error;
use tokio::sync::oneshot;

use super::budget::Reservation;
use super::target::Target;
use crate::clock::Instant;

/// What tells a request from all others: the first 16 bytes of SHA-256 over its route and its body as sent. Senders repeat a failed
/// request byte for byte, so an equal digest is the same request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 16]);

impl Digest {
    /// The digest of `body` posted to `route`.
    pub fn of(route: &str, body: &[u8]) -> Self {
        use sha2::{Digest as _, Sha256};
        let mut hasher = Sha256::new();
        hasher.update((route.len() as u64).to_le_bytes());
        hasher.update(route.as_bytes());
        hasher.update(body);
        let hash = hasher.finalize();
        let mut digest = [0; 16];
        digest.copy_from_slice(&hash[..16]);
        Self(digest)
    }
}

/// Why a request is not stored.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Not now; the same request may succeed later. Whether it has been stored may be unknown, and the digest will tell.
    #[error("{0}")]
    Unavailable(String),
    /// Never: the database refuses this very data.
    #[error("{0}")]
    Refused(String),
    /// The gateway's role lacks the privilege. Nothing is stored.
    #[error("{0}")]
    Forbidden(String),
    /// The table is not what it was when the request was held against it. Nothing is stored.
    #[error("{0}")]
    TableChanged(String),
    /// Its sender has given its key to another body before, which is stored. Nothing of this one is.
    #[error(
        "this Idempotency-Key came with another body before, which is stored; another request needs a key of its own"
    )]
    KeyReused,
}

/// Stored; or stored by an earlier attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// By this request.
    Now,
    /// By an earlier one with the same digest; nothing was applied again.
    Before,
}

/// How a request ends.
pub type Outcome = Result<Stored, Fault>;

/// A request on its way.
#[derive(Debug)]
pub struct Pending<P> {
    /// What to append.
    pub payload: P,
    /// Where.
    pub target: Target,
    /// What it is recognised by when it comes again; without one it is another request then.
    pub digest: Option<Digest>,
    /// Of its body, where `digest` is of a key that its sender chose: the same key with another body is refused.
    pub body: Option<Digest>,
    /// After this nobody waits for the outcome any more.
    pub deadline: Instant,
    /// The memory it holds; given back with the outcome.
    pub reservation: Reservation,
    /// Where the outcome goes.
    pub reply: oneshot::Sender<Outcome>,
}

#[cfg(test)]
mod tests {
    use super::Digest;

    #[test]
    fn digests_tell_routes_and_bodies_apart() {
        let digests = [
            Digest::of("a", b"bc"),
            Digest::of("ab", b"c"),
            Digest::of("a", b"bd"),
            Digest::of("", b"abc"),
        ];
        for (index, digest) in digests.iter().enumerate() {
            assert!(!digests[..index].contains(digest));
        }
        assert_eq!(Digest::of("a", b"bc"), digests[0]);
    }
}
