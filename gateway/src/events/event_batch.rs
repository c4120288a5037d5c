//! The rows of one request, as a verified batch.

use bytes::Bytes;
use lanes_wire::{BatchBuilder, BatchError, BatchView, BuildError, ColumnView, VerifiedBatch};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::model::{Payload, RowKind};

/// A verified batch of crate `lanes-wire`.
#[derive(Debug, Clone)]
pub struct EventBatch {
    batch: VerifiedBatch<Bytes>,
    shape: u64,
}

impl EventBatch {
    /// Verifies `bytes` and then calls `judge`, which may refuse the batch.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a batch, or if `judge` does.
    pub fn verify<E: From<BatchError>>(
        bytes: Bytes,
        judge: impl FnOnce(&BatchView<'_>) -> Result<(), E>,
    ) -> Result<Self, E> {
        let (batch, shape) =
            VerifiedBatch::verify_with(bytes, |view| judge(view).map(|()| shape(view.columns())))?;
        Ok(Self { batch, shape })
    }

    /// The bytes held.
    pub fn bytes(&self) -> usize {
        self.batch.heap_bytes()
    }

    /// A hash of the names and types of the columns, regardless of their order.
    pub fn shape(&self) -> u64 {
        self.shape
    }
}

/// Returns a hash of the set of names and types. If two sets have the same hash, their joined batch
/// is refused and then sent one by one.
fn shape(columns: &[ColumnView<'_>]) -> u64 {
    columns.iter().fold(0, |sum: u64, column| {
        let code = column.column_type().code();
        sum.wrapping_add(xxh3_64_with_seed(column.name().as_bytes(), code.into()))
    })
}

/// The memory of a joiner in multiples of its batch. It holds the batch, and columns that double
/// while they are filled.
const JOINER_TIMES_BATCH: usize = 4;

/// Buffers for the rows of many requests to one table, and the batch that they become. The columns
/// are those of the first batch.
#[derive(Debug, Default)]
pub struct EventJoiner {
    builder: BatchBuilder,
    batch: Vec<u8>,
}

impl EventJoiner {
    fn join(&mut self, payloads: &[&EventBatch]) -> Result<(), BuildError> {
        self.builder.clear();
        for payload in payloads {
            self.builder.append(&payload.batch.view())?;
        }
        self.builder.finish(&mut self.batch)
    }
}

impl Payload for EventBatch {
    type Joiner = EventJoiner;

    const KIND: RowKind = RowKind::Event;

    fn rows(&self) -> usize {
        self.batch.rows()
    }

    fn encode<'a>(
        payloads: &[&'a Self],
        joiner: &'a mut EventJoiner,
    ) -> Result<&'a [u8], BuildError> {
        if let [alone] = payloads {
            return Ok(alone.batch.bytes());
        }
        if let Err(error) = joiner.join(payloads) {
            *joiner = EventJoiner::default();
            return Err(error);
        }
        Ok(&joiner.batch)
    }

    fn joiner_bytes(joiner: &EventJoiner) -> usize {
        JOINER_TIMES_BATCH * joiner.batch.capacity()
    }
}

#[cfg(test)]
mod tests {
    use lanes_wire::ColumnType;

    use super::*;

    fn event_batch(columns: &[(&str, ColumnType)]) -> EventBatch {
        let mut builder = BatchBuilder::new();
        for (name, column_type) in columns {
            let index = builder.add_column(name, *column_type).unwrap();
            builder.column(index).push_null();
        }
        let mut bytes = Vec::new();
        builder.finish(&mut bytes).unwrap();
        EventBatch::verify(bytes.into(), |_| Ok::<_, BatchError>(())).unwrap()
    }

    #[test]
    fn shapes_identify_sets_of_names_and_types() {
        let (a, b) = (("a", ColumnType::Int32), ("b", ColumnType::Text));
        let both = event_batch(&[a, b]).shape();
        assert_eq!(both, event_batch(&[b, a]).shape());
        for other in [
            &[a][..],
            &[a, ("c", ColumnType::Text)],
            &[a, ("b", ColumnType::Bytes)],
        ] {
            assert_ne!(both, event_batch(other).shape(), "{other:?}");
        }
    }

    #[test]
    fn batches_with_columns_in_another_order_are_joined() {
        let (a, b) = (("a", ColumnType::Int32), ("b", ColumnType::Text));
        let parts = [event_batch(&[a, b]), event_batch(&[b, a])];
        let mut joiner = EventJoiner::default();
        for _ in 0..2 {
            let joined = EventBatch::encode(&[&parts[0], &parts[1]], &mut joiner).unwrap();
            assert_eq!(BatchView::verify(joined).unwrap().rows(), 2);
        }
    }

    #[test]
    fn batches_that_cannot_be_joined_leave_nothing_behind() {
        let (a, b) = (("a", ColumnType::Int32), ("b", ColumnType::Text));
        let (one, other) = (event_batch(&[a]), event_batch(&[b]));
        let mut joiner = EventJoiner::default();
        assert!(EventBatch::encode(&[&one, &other], &mut joiner).is_err());
        let joined = EventBatch::encode(&[&other, &other], &mut joiner).unwrap();
        assert_eq!(BatchView::verify(joined).unwrap().rows(), 2);
    }
}
