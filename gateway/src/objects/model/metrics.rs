//! Metrics of object storage.

use prometheus::{Histogram, IntCounter, IntCounterVec, IntGauge, IntGaugeVec};

use super::log_metrics::LogMetrics;
use super::offload_metrics::OffloadMetrics;
use super::state::ObjectState;
use crate::metrics::Families;

/// Upper bounds, in seconds, of the buckets for latencies of object storage.
pub(super) const LATENCY_BUCKETS: [f64; 14] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

/// Counters and gauges of object storage. All are 0 while it is off.
pub struct ObjectMetrics {
    state: IntGaugeVec,
    retries: IntCounterVec,
    /// Times that another gateway took over.
    pub fenced: IntCounter,
    /// Rows of all segments that wait to be offloaded.
    pub backlog_rows: IntGauge,
    /// Bytes of all segments that wait to be offloaded.
    pub backlog_bytes: IntGauge,
    /// Objects deleted because no part names them.
    pub orphans: IntCounter,
    /// Times that the store was rewritten to reclaim deleted bytes.
    pub rewritten: IntCounter,
    /// Segments requested by queries, by outcome.
    pub recalls: IntCounterVec,
    /// Bytes of images read for queries.
    pub recall_bytes: IntCounter,
    /// Seconds from the start of a recall to its answer.
    pub recall_seconds: Histogram,
    /// Offloading of segments.
    pub offload: OffloadMetrics,
    /// The log.
    pub log: LogMetrics,
    /// Requests to the object store.
    pub store: StoreMetrics,
}

/// Counters of requests to the object store.
pub struct StoreMetrics {
    /// Requests, by operation.
    pub requests: IntCounterVec,
    /// Failed requests, by operation.
    pub errors: IntCounterVec,
    /// Look-ups of indexes and filters in memory, by kind and result.
    pub cache_looks: IntCounterVec,
}

impl ObjectMetrics {
    /// Registers the metrics.
    pub fn new(families: &Families) -> Self {
        let metrics = Self {
            state: families.gauges(
                "objects_state",
                "1 for the current state of offloading, 0 for all other states.",
                &["state"],
            ),
            retries: families.counters(
                "objects_retries_total",
                "Repeated steps of offloading and recall.",
                &["step"],
            ),
            fenced: families.counter(
                "objects_fenced_total",
                "Times that another gateway took over the object store.",
            ),
            backlog_rows: families.gauge(
                "objects_backlog_rows",
                "Rows of all sealed segments that wait to be offloaded by any gateway.",
            ),
            backlog_bytes: families.gauge(
                "objects_backlog_bytes",
                "Bytes of all sealed segments that wait to be offloaded. \
                 Above objects.backlog_bytes_max, writes are refused.",
            ),
            orphans: families.counter(
                "objects_orphans_deleted_total",
                "Segments deleted from the object store because no part names them.",
            ),
            rewritten: families.counter(
                "objects_rewritten_total",
                "Times that the object store was rewritten to reclaim the bytes of deleted segments.",
            ),
            recalls: families.counters(
                "objects_recalls_total",
                "Segments that queries requested from the object store.",
                &["outcome"],
            ),
            recall_bytes: families.counter(
                "objects_recall_bytes_total",
                "Bytes of segments read from the object store for queries.",
            ),
            recall_seconds: families.histogram(
                "objects_recall_duration_seconds",
                "Seconds to fetch a segment that a query requests and to hand it over.",
                LATENCY_BUCKETS.to_vec(),
            ),
            offload: OffloadMetrics::new(families),
            log: LogMetrics::new(families),
            store: StoreMetrics::new(families),
        };
        metrics.set_state(ObjectState::Off);
        metrics
    }

    /// Publishes the state.
    pub fn set_state(&self, state: ObjectState) {
        for each in ObjectState::ALL {
            self.state
                .with_label_values(&[each.name()])
                .set(i64::from(each == state));
        }
    }

    /// Counts a repeated step.
    pub fn retried(&self, step: &str) {
        self.retries.with_label_values(&[step]).inc();
    }
}

impl StoreMetrics {
    fn new(families: &Families) -> Self {
        Self {
            requests: families.counters(
                "objects_requests_total",
                "Requests to the object store.",
                &["operation"],
            ),
            errors: families.counters(
                "objects_errors_total",
                "Failed requests to the object store. Each is repeated.",
                &["operation"],
            ),
            cache_looks: families.counters(
                "objects_cache_looks_total",
                "Look-ups of indexes and filters of the object store in memory.",
                &["kind", "result"],
            ),
        }
    }
}
