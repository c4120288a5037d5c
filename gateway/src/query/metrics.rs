//! Metrics of queries.

use std::sync::Arc;

use prometheus::{HistogramVec, IntCounter, IntCounterVec, IntGauge};

use crate::clock::{self, Instant};
use crate::metrics::Families;

/// Counters, gauges and histograms of the query API.
pub struct QueryMetrics {
    /// Requests, by route and outcome.
    pub queries: IntCounterVec,
    query_seconds: HistogramVec,
    /// Sessions that run a statement or are being cancelled.
    pub sessions_in_use: IntGauge,
    /// Requests refused because all sessions were in use.
    pub refused: IntCounter,
    /// Statements that were cancelled because their client went away.
    pub canceled: IntCounter,
    /// Samples that remote reads were answered with.
    pub samples_read: IntCounter,
    /// Samples deleted through the admin API.
    pub samples_deleted: IntCounter,
}

impl QueryMetrics {
    /// Registers the metrics.
    pub fn new(families: &Families) -> Self {
        Self {
            queries: families.counters(
                "queries_total",
                "Requests to the query API, by how they ended: success, a type of error, or client_gone.",
                &["route", "outcome"],
            ),
            query_seconds: families.latencies(
                "query_duration_seconds",
                "Seconds from the head of a request to the query API to the end of its answer.",
                "route",
            ),
            sessions_in_use: families.gauge(
                "query_sessions_in_use",
                "Sessions with PostgreSQL that run a query.",
            ),
            refused: families.counter(
                "queries_refused_total",
                "Queries refused because all sessions (query.sessions) were in use for too long.",
            ),
            canceled: families.counter(
                "queries_canceled_total",
                "Statements cancelled because their client went away.",
            ),
            samples_read: families.counter(
                "remote_read_samples_total",
                "Samples read from PostgreSQL for remote reads.",
            ),
            samples_deleted: families.counter(
                "deleted_samples_total",
                "Samples deleted through the admin API.",
            ),
        }
    }
}

/// The outcome of a request whose client went away.
const CLIENT_GONE: &str = "client_gone";

/// Counts a request when it is dropped, which is when its answer has been sent.
pub struct Observation {
    metrics: Arc<QueryMetrics>,
    route: &'static str,
    outcome: &'static str,
    started: Instant,
}

impl Observation {
    /// Starts observing a request.
    pub fn start(metrics: &Arc<QueryMetrics>, route: &'static str) -> Self {
        Self {
            metrics: Arc::clone(metrics),
            route,
            outcome: CLIENT_GONE,
            started: clock::now(),
        }
    }

    /// Notes how the request has ended.
    pub fn end(&mut self, outcome: &'static str) {
        self.outcome = outcome;
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        let seconds = (clock::now() - self.started).as_secs_f64();
        let labels = [self.route, self.outcome];
        self.metrics.queries.with_label_values(&labels).inc();
        let latency = self.metrics.query_seconds.with_label_values(&[self.route]);
        latency.observe(seconds);
    }
}
