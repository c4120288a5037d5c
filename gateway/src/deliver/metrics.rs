//! Metrics of what is sent to PostgreSQL, and of PostgreSQL as the gateway sees it.

use prometheus::{Histogram, IntCounter, IntCounterVec, IntGauge};

use crate::metrics::Families;
use crate::model::{AckLevel, RowKind};

/// Counters, gauges and histograms of delivery.
pub struct DeliverMetrics {
    /// Samples committed.
    pub samples_stored: IntCounter,
    /// Events committed.
    pub events_stored: IntCounter,
    /// Requests acknowledged without being applied again.
    pub requests_repeated: IntCounter,
    /// Rows of each batch sent.
    pub batch_rows: Histogram,
    /// Bytes of each batch sent.
    pub batch_bytes: Histogram,
    /// Seconds of each append call, by level.
    pub append_seconds: [Histogram; AckLevel::ALL.len()],
    /// Seconds that batches ready to be sent waited for a session, by level.
    pub session_wait_seconds: [Histogram; AckLevel::ALL.len()],
    /// Failed calls to PostgreSQL, by SQLSTATE or kind.
    pub postgres_errors: IntCounterVec,
    /// Sessions opened with PostgreSQL.
    pub postgres_sessions_opened: IntCounter,
    /// 1 while PostgreSQL accepts batches.
    pub postgres_up: IntGauge,
    /// Synchronous standbys that are not connected.
    pub postgres_standbys_missing: IntGauge,
    /// 1 while PostgreSQL refuses writes because its disk is full.
    pub postgres_disk_full: IntGauge,
}

impl DeliverMetrics {
    /// Registers the metrics.
    pub fn new(families: &Families) -> Self {
        Self {
            samples_stored: families
                .counter("samples_stored_total", "Samples committed in PostgreSQL."),
            events_stored: families
                .counter("events_stored_total", "Events committed in PostgreSQL."),
            requests_repeated: families.counter(
                "requests_repeated_total",
                "Repeated write requests that were acknowledged without being applied again.",
            ),
            batch_rows: families.histogram(
                "batch_rows",
                "Rows of the batches sent.",
                powers_of_4(1.0, 11),
            ),
            batch_bytes: families.histogram(
                "batch_bytes",
                "Bytes of the batches sent.",
                powers_of_4(256.0, 10),
            ),
            append_seconds: families.latencies_by_level(
                "append_duration_seconds",
                "Seconds of an append in PostgreSQL, including its commit.",
            ),
            session_wait_seconds: families.latencies_by_level(
                "session_wait_duration_seconds",
                "Seconds that a batch ready to be sent waited for a session. \
                 While this grows, PostgreSQL is the bottleneck, not the gateway.",
            ),
            postgres_errors: families.counters(
                "postgres_errors_total",
                "Failed calls to PostgreSQL.",
                &["sqlstate"],
            ),
            postgres_sessions_opened: families.counter(
                "postgres_sessions_opened_total",
                "Sessions opened with PostgreSQL.",
            ),
            postgres_up: families.gauge("postgres_up", "1 while PostgreSQL accepts batches."),
            postgres_standbys_missing: families.gauge(
                "postgres_standbys_missing",
                "Synchronous standbys that commits wait for and that are not connected.",
            ),
            postgres_disk_full: families.gauge(
                "postgres_disk_full",
                "1 while PostgreSQL refuses writes because its disk is full.",
            ),
        }
    }

    /// The counter of committed rows of this kind.
    pub fn rows_stored(&self, kind: RowKind) -> &IntCounter {
        match kind {
            RowKind::Sample => &self.samples_stored,
            RowKind::Event => &self.events_stored,
        }
    }

    /// Returns the reason for the answer to a request whose commit was not confirmed before its
    /// deadline.
    pub fn late_reason(&self, level: AckLevel) -> String {
        let reason = "PostgreSQL has not confirmed the request in time (ack.timeout)";
        let missing = self.postgres_standbys_missing.get();
        match level {
            _ if self.postgres_disk_full.get() != 0 => format!("{reason}: its disk is full"),
            AckLevel::Replica if missing > 0 => {
                format!("{reason}; synchronous standbys are missing: {missing}")
            }
            _ => reason.to_owned(),
        }
    }
}

fn powers_of_4(first: f64, count: i32) -> Vec<f64> {
    (0..count).map(|power| first * 4f64.powi(power)).collect()
}
