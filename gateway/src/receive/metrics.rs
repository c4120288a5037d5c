//! Metrics of remote write requests.

use prometheus::{IntCounter, IntCounterVec};

use crate::metrics::Families;

/// Counters of what remote write requests contain.
pub struct ReceiveMetrics {
    /// Bytes of bodies after decompression.
    pub decompressed_bytes: IntCounter,
    /// Samples in requests that could be decoded.
    pub samples_received: IntCounter,
    /// Samples refused, by reason.
    pub samples_refused: IntCounterVec,
    /// Exemplars received; they are not stored.
    pub exemplars_ignored: IntCounter,
    /// Metadata entries received; they are not stored.
    pub metadata_ignored: IntCounter,
}

impl ReceiveMetrics {
    /// Registers the metrics.
    pub fn new(families: &Families) -> Self {
        Self {
            decompressed_bytes: families.counter(
                "decompressed_bytes_total",
                "Bytes of write requests after decompression.",
            ),
            samples_received: families.counter(
                "samples_received_total",
                "Valid samples received in write requests.",
            ),
            samples_refused: families.counters(
                "samples_refused_total",
                "Samples refused because they cannot be stored.",
                &["reason"],
            ),
            exemplars_ignored: families.counter(
                "exemplars_ignored_total",
                "Exemplars received; they are not stored.",
            ),
            metadata_ignored: families.counter(
                "metadata_ignored_total",
                "Metadata entries received; they are not stored.",
            ),
        }
    }
}
