//! The rows of one request, as a verified batch.

use std::hash::Hasher;

use bytes::Bytes;
use lanes_wire::{BatchBuilder, BatchView, BuildError, ColumnView};
use prometheus::IntCounter;
use xxhash_rust::xxh3::Xxh3Default;

use crate::batch::Payload;
use crate::observe::Metrics;

/// A batch of crate `lanes-wire` that has been verified.
#[derive(Debug, Clone)]
pub struct EventBatch {
    bytes: Bytes,
    rows: usize,
    shape: u64,
}

impl EventBatch {
    /// `bytes` are those that `view` was verified from.
    pub fn new(bytes: Bytes, view: &BatchView<'_>) -> Self {
        Self {
            rows: view.rows(),
            shape: shape(view.columns()),
            bytes,
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// What tells batches with other columns apart; their order does not count.
    pub fn shape(&self) -> u64 {
        self.shape
    }
}

/// Equal for equal sets of names and types. Should two sets share one, their batches are refused together and then taken one by one.
fn shape(columns: &[ColumnView<'_>]) -> u64 {
    columns.iter().fold(0, |sum: u64, column| {
        let mut hasher = Xxh3Default::new();
        hasher.write(column.name().as_bytes());
        hasher.write_u8(column.column_type().code());
        sum.wrapping_add(hasher.finish())
    })
}

impl Payload for EventBatch {
    fn rows(&self) -> usize {
        self.rows
    }

    fn encode(payloads: &[&Self], out: &mut Vec<u8>) -> Result<(), BuildError> {
        if let [alone] = payloads {
            out.clear();
            out.extend_from_slice(&alone.bytes);
            return Ok(());
        }
        let mut joined = BatchBuilder::new();
        for payload in payloads {
            let view =
                BatchView::verify(&payload.bytes).expect("a batch that was verified stays one");
            joined.append(&view)?;
        }
        joined.finish(out)
    }

    fn stored(metrics: &Metrics) -> &IntCounter {
        &metrics.events_stored
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
        let view = BatchView::verify(&bytes).unwrap();
        EventBatch::new(Bytes::copy_from_slice(&bytes), &view)
    }

    #[test]
    fn shapes_are_sets_of_names_and_types() {
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
        let mut out = Vec::new();
        EventBatch::encode(&[&parts[0], &parts[1]], &mut out).unwrap();
        assert_eq!(BatchView::verify(&out).unwrap().rows(), 2);
    }
}
