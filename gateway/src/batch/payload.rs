//! What a request adds to a batch.

use lanes_wire::BuildError;
use prometheus::IntCounter;

use crate::observe::Metrics;

/// Bytes of a batch after which nothing is kept for the next one. A joiner holds about four times as much.
pub const JOINED_BYTES_KEPT: usize = 512 << 10;

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

    /// Readies a joiner to be kept: one that has grown past [`JOINED_BYTES_KEPT`] gives its memory back.
    fn trim(joiner: &mut Self::Joiner);

    /// The counter of rows committed.
    fn stored(metrics: &Metrics) -> &IntCounter;
}
