//! The times between attempts.

use std::time::Duration;

/// How long the tasks of object storage wait between attempts.
#[derive(Debug, Clone, Copy)]
pub struct Pauses {
    /// Between checks whether the extension has the functions.
    pub unsupported: Duration,
    /// Between attempts to open the store, and between rounds after an error. It doubles with each
    /// attempt, up to [`Pauses::longest`].
    pub error: Duration,
    /// The longest pause after repeated errors.
    pub longest: Duration,
    /// Between attempts to acquire the claim.
    pub claim: Duration,
    /// From the moment that this gateway is fenced to its first attempt to acquire the claim.
    pub standby: Duration,
    /// Between looks at the owner of a store that belongs to another database.
    pub foreign: Duration,
}

impl Default for Pauses {
    fn default() -> Self {
        Self {
            unsupported: Duration::from_secs(30),
            error: Duration::from_secs(1),
            longest: Duration::from_secs(60),
            claim: Duration::from_secs(1),
            standby: Duration::from_secs(60),
            foreign: Duration::from_secs(10),
        }
    }
}
