//! Metrics of object storage.

use std::sync::{Mutex, PoisonError};

use prometheus::{
    Gauge, Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry,
};

use super::metrics::{add, options};
use crate::clock::{self, Instant};
use crate::objects::ObjectState;

/// Counters and gauges; all 0 where object storage is off.
pub struct ObjectMetrics {
    state: IntGaugeVec,
    /// Times that another gateway took over.
    pub fenced: IntCounter,
    /// When the oldest part that is still due was first listed.
    oldest_due: Mutex<Option<Instant>>,
    /// Seconds since then, as of the last look.
    lag_seconds: Gauge,
    /// Rows listed as due and not offloaded yet.
    pub lag_rows: IntGauge,
    /// Rows of all that is due.
    pub backlog_rows: IntGauge,
    /// Bytes of all that is due.
    pub backlog_bytes: IntGauge,
    /// Images put.
    pub puts: IntCounter,
    /// Bytes of images put.
    pub put_bytes: IntCounter,
    /// Parts that became remote.
    pub parts: IntCounter,
    /// Rows of those.
    pub part_rows: IntCounter,
    /// Objects deleted that no part names.
    pub orphans: IntCounter,
    /// Times that the store was rewritten without what was deleted.
    pub rewritten: IntCounter,
    /// Segments that queries wanted, by outcome.
    pub recalls: IntCounterVec,
    /// Bytes of images read.
    pub recall_bytes: IntCounter,
    /// Seconds from the moment a segment's turn comes to its answer.
    pub recall_seconds: Histogram,
    /// Entries of the log put.
    pub log_puts: IntCounter,
    /// Bytes of those, and of what went with them.
    pub log_put_bytes: IntCounter,
    /// Seconds from the moment an entry is to be put until it is durable, or known not to be.
    pub log_put_seconds: Histogram,
    /// Entries that are in the store.
    pub log_entries: IntGauge,
    /// Entries whose rows the database lost by a failover or a restore to an earlier point.
    pub log_lost_entries: IntGauge,
    /// Bytes of their batches.
    pub log_bytes: IntGauge,
    /// Seconds since the oldest of them was put.
    pub log_age_seconds: Gauge,
    /// Entries deleted because their rows are in segments, or gone.
    pub log_released: IntCounter,
    retries: IntCounterVec,
    /// Requests to the object store, by operation.
    pub requests: IntCounterVec,
    /// Those that failed.
    pub errors: IntCounterVec,
    /// Looks for indexes and filters, by kind and result.
    pub cache_looks: IntCounterVec,
}

impl ObjectMetrics {
    pub(super) fn register(registry: &Registry) -> Self {
        let counter =
            |name: &str, help: &str| add(registry, IntCounter::with_opts(options(name, help)));
        let counters = |name: &str, help: &str, labels: &[&str]| {
            add(registry, IntCounterVec::new(options(name, help), labels))
        };
        let latency = vec![
            0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
        ];
        let recall_seconds = HistogramOpts::from(options(
            "objects_recall_duration_seconds",
            "Seconds to fetch a segment that a query wants and to hand it over.",
        ));
        let log_put_seconds = HistogramOpts::from(options(
            "objects_log_put_duration_seconds",
            "Seconds until an entry of the log is durable in the object store.",
        ));
        let metrics = Self {
            log_puts: counter(
                "objects_log_puts_total",
                "Entries put into the log, which keeps what is acknowledged at level object.",
            ),
            log_put_bytes: counter(
                "objects_log_put_bytes_total",
                "Bytes put into the log, definitions and series among them.",
            ),
            log_put_seconds: add(
                registry,
                Histogram::with_opts(log_put_seconds.buckets(latency.clone())),
            ),
            log_entries: add(
                registry,
                IntGauge::with_opts(options(
                    "objects_log_entries",
                    "Entries of the log whose rows are not all in segments of the object store.",
                )),
            ),
            log_lost_entries: add(
                registry,
                IntGauge::with_opts(options(
                    "objects_log_lost_entries",
                    "Entries of the log whose rows the database lost when it went over to another timeline; they are kept.",
                )),
            ),
            log_bytes: add(
                registry,
                IntGauge::with_opts(options(
                    "objects_log_bytes",
                    "Bytes of those entries' rows.",
                )),
            ),
            log_age_seconds: add(
                registry,
                Gauge::with_opts(options(
                    "objects_log_age_seconds",
                    "Seconds since the oldest entry of the log was put.",
                )),
            ),
            log_released: counter(
                "objects_log_released_total",
                "Entries of the log deleted because their rows are in segments, or gone.",
            ),
            state: add(
                registry,
                IntGaugeVec::new(
                    options("objects_state", "1 for the state that offloading is in."),
                    &["state"],
                ),
            ),
            fenced: counter(
                "objects_fenced_total",
                "Times that another gateway took over the object store.",
            ),
            oldest_due: Mutex::default(),
            lag_seconds: add(
                registry,
                Gauge::with_opts(options(
                    "objects_offload_lag_seconds",
                    "Seconds since the oldest part that is still to be offloaded was first seen to be.",
                )),
            ),
            lag_rows: add(
                registry,
                IntGauge::with_opts(options(
                    "objects_offload_lag_rows",
                    "Rows of sealed segments listed for offload and not offloaded yet.",
                )),
            ),
            backlog_rows: add(
                registry,
                IntGauge::with_opts(options(
                    "objects_backlog_rows",
                    "Rows of all sealed segments that wait to be offloaded, whichever gateway does it.",
                )),
            ),
            backlog_bytes: add(
                registry,
                IntGauge::with_opts(options(
                    "objects_backlog_bytes",
                    "Bytes of all sealed segments that wait to be offloaded; above objects.backlog_bytes_max writes are refused.",
                )),
            ),
            puts: counter("objects_puts_total", "Segments put into the object store."),
            put_bytes: counter(
                "objects_put_bytes_total",
                "Bytes of segments put into the object store.",
            ),
            parts: counter(
                "objects_parts_offloaded_total",
                "Parts whose segments are in object storage only.",
            ),
            part_rows: counter(
                "objects_rows_offloaded_total",
                "Rows whose segments are in object storage only.",
            ),
            rewritten: counter(
                "objects_rewritten_total",
                "Times that the object store was rewritten without what was deleted",
            ),
            orphans: counter(
                "objects_orphans_deleted_total",
                "Segments deleted from the object store because no part names them.",
            ),
            recalls: counters(
                "objects_recalls_total",
                "Segments that queries wanted from the object store.",
                &["outcome"],
            ),
            recall_bytes: counter(
                "objects_recall_bytes_total",
                "Bytes of segments read from the object store for queries.",
            ),
            recall_seconds: add(
                registry,
                Histogram::with_opts(recall_seconds.buckets(latency)),
            ),
            retries: counters(
                "objects_retries_total",
                "Steps of offloading and recall that are tried again.",
                &["step"],
            ),
            requests: counters(
                "objects_requests_total",
                "Requests to the object store.",
                &["operation"],
            ),
            errors: counters(
                "objects_errors_total",
                "Requests to the object store that failed; each is repeated.",
                &["operation"],
            ),
            cache_looks: counters(
                "objects_cache_looks_total",
                "Looks for indexes and filters of the object store's tables in memory.",
                &["kind", "result"],
            ),
        };
        metrics.set_state(ObjectState::Off);
        metrics
    }

    /// Shows a state.
    pub fn set_state(&self, state: ObjectState) {
        for each in ObjectState::ALL {
            self.state
                .with_label_values(&[each.name()])
                .set(i64::from(each == state));
        }
    }

    /// Says when the oldest part that is still due was first listed, and how many rows are; `None`: none is, or this gateway does not
    /// offload any more.
    pub fn set_lag(&self, oldest_due: Option<Instant>, rows: i64) {
        *self
            .oldest_due
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = oldest_due;
        self.lag_rows.set(rows);
    }

    /// Seconds since the oldest part that is still due was first listed. They pass while a store that is away is waited for, so they
    /// are counted when somebody looks.
    pub fn lag_seconds(&self) -> f64 {
        let oldest = *self
            .oldest_due
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let lag = oldest.map_or(0.0, |oldest| (clock::now() - oldest).as_secs_f64());
        self.lag_seconds.set(lag);
        lag
    }

    /// Counts a step that is tried again.
    pub fn retried(&self, step: &str) {
        self.retries.with_label_values(&[step]).inc();
    }
}
