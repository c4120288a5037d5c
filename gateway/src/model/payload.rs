//! The rows that a request adds to a batch.

use lanes_wire::BuildError;

/// What the rows of a payload are, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowKind {
    /// Samples of series.
    Sample,
    /// Events of any table.
    Event,
}

/// The rows of one request, which become part of a batch.
pub trait Payload: Send + Sync + 'static {
    /// Buffers in which rows of several requests are joined. They are reused from batch to batch.
    type Joiner: Default + Send + 'static;

    /// What the rows are.
    const KIND: RowKind;

    /// The number of rows.
    fn rows(&self) -> usize;

    /// Encodes the rows of all payloads, in their order, as one batch. A single payload may be its
    /// own batch.
    ///
    /// # Errors
    /// Returns an error if there are more rows or bytes than a batch can hold.
    fn encode<'a>(
        payloads: &[&'a Self],
        joiner: &'a mut Self::Joiner,
    ) -> Result<&'a [u8], BuildError>
    where
        Self: Sized;

    /// The bytes that a joiner holds.
    fn joiner_bytes(joiner: &Self::Joiner) -> usize;
}
