//! Metrics of the log of object storage.

use prometheus::{Gauge, Histogram, IntCounter, IntGauge};

use super::metrics::LATENCY_BUCKETS;
use crate::metrics::Families;

/// Counters and gauges of the log.
pub struct LogMetrics {
    /// Entries put.
    pub puts: IntCounter,
    /// Bytes of entries put, and of what was put with them.
    pub put_bytes: IntCounter,
    /// Seconds until an entry is durable, or has failed.
    pub put_seconds: Histogram,
    /// Entries in the store.
    pub entries: IntGauge,
    /// Entries whose rows the database lost by a failover or a restore to an earlier point.
    pub lost_entries: IntGauge,
    /// Bytes of the batches of the entries in the store.
    pub bytes: IntGauge,
    /// Seconds since the oldest entry in the store was put.
    pub age_seconds: Gauge,
    /// Entries deleted because their rows are in segments, or gone.
    pub released: IntCounter,
}

impl LogMetrics {
    pub(super) fn new(families: &Families) -> Self {
        Self {
            puts: families.counter(
                "objects_log_puts_total",
                "Entries put into the log, which holds what is acknowledged at level object.",
            ),
            put_bytes: families.counter(
                "objects_log_put_bytes_total",
                "Bytes put into the log, including table definitions and series.",
            ),
            put_seconds: families.histogram(
                "objects_log_put_duration_seconds",
                "Seconds until an entry of the log is durable in the object store.",
                LATENCY_BUCKETS.to_vec(),
            ),
            entries: families.gauge(
                "objects_log_entries",
                "Entries of the log whose rows are not all in segments of the object store.",
            ),
            lost_entries: families.gauge(
                "objects_log_lost_entries",
                "Entries of the log whose rows the database lost when it changed to another \
                 timeline. They are kept.",
            ),
            bytes: families.gauge(
                "objects_log_bytes",
                "Bytes of the rows of all entries of the log.",
            ),
            age_seconds: families.seconds(
                "objects_log_age_seconds",
                "Seconds since the oldest entry of the log was put.",
            ),
            released: families.counter(
                "objects_log_released_total",
                "Entries of the log deleted because their rows are in segments, or gone.",
            ),
        }
    }
}
