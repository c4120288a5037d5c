//! What a request adds to a batch.

use lanes_wire::BuildError;
use prometheus::IntCounter;

use crate::observe::Metrics;

/// A joiner that has come to hold more than this is not kept for the next batch.
pub const JOINER_BYTES_MAX: usize = 2 << 20;
/// All joiners that are kept, of all accumulators together; one for which there is no room is not kept.
pub const JOINERS_BYTES_MAX: usize = 32 << 20;

/// Rows of one request, on their way into a batch of many.
pub trait Payload: Send + Sync + 'static {
    /// What brings rows together; kept from batch to batch for its memory.
    type Joiner: Default + Send + 'static;

    /// How many.
    fn rows(&self) -> usize;

    /// One batch of all rows, in the order of the payloads; one that is alone may be its own batch.
    ///
    /// # Errors
    /// If there are more rows or bytes than a batch holds.
    fn encode<'a>(
        payloads: &[&'a Self],
        joiner: &'a mut Self::Joiner,
    ) -> Result<&'a [u8], BuildError>
    where
        Self: Sized;

    /// Bytes that a joiner holds.
    fn joiner_bytes(joiner: &Self::Joiner) -> usize;

    /// The counter of rows committed.
    fn stored(metrics: &Metrics) -> &IntCounter;
}
