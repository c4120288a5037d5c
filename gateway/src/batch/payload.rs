//! What a request adds to a batch.

use lanes_wire::BuildError;
use prometheus::IntCounter;

use crate::observe::Metrics;

/// Rows of one request, on their way into a batch of many.
pub trait Payload: Send + Sync + 'static {
    /// How many.
    fn rows(&self) -> usize;

    /// Replaces `out` by one batch of all rows, in the order of the payloads.
    ///
    /// # Errors
    /// If there are more rows or bytes than a batch holds.
    fn encode(payloads: &[&Self], out: &mut Vec<u8>) -> Result<(), BuildError>
    where
        Self: Sized;

    /// The counter of rows committed.
    fn stored(metrics: &Metrics) -> &IntCounter;
}
