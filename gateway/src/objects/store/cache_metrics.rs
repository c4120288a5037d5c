//! Adds SlateDB's counters of indexes and filters found in memory to the gateway's metrics. Its
//! other metrics are ignored.

use std::sync::Arc;

use prometheus::IntCounter;
use slatedb::db_cache_stats::ACCESS_COUNT;
use slatedb_common::metrics::{
    CounterFn, GaugeFn, HistogramFn, MetricsRecorder, NoopMetricsRecorder, UpDownCounterFn,
};

use crate::objects::model::ObjectMetrics;

/// A recorder for SlateDB's metrics.
pub struct CacheMetrics {
    metrics: Arc<ObjectMetrics>,
    others: NoopMetricsRecorder,
}

impl CacheMetrics {
    /// Creates a recorder that adds to `metrics`.
    pub fn new(metrics: Arc<ObjectMetrics>) -> Self {
        Self {
            metrics,
            others: NoopMetricsRecorder::new(),
        }
    }
}

struct Counter(IntCounter);

impl CounterFn for Counter {
    fn increment(&self, value: u64) {
        self.0.inc_by(value);
    }
}

impl MetricsRecorder for CacheMetrics {
    fn register_counter(
        &self,
        name: &str,
        description: &str,
        labels: &[(&str, &str)],
    ) -> Arc<dyn CounterFn> {
        let label = |wanted: &str| {
            let found = labels.iter().find(|(name, _)| *name == wanted);
            found.map(|(_, value)| *value)
        };
        match (label("entry_kind"), label("result")) {
            (Some(kind @ ("filter" | "index")), Some(result)) if name == ACCESS_COUNT => {
                let looks = &self.metrics.store.cache_looks;
                Arc::new(Counter(looks.with_label_values(&[kind, result])))
            }
            _ => self.others.register_counter(name, description, labels),
        }
    }

    fn register_gauge(
        &self,
        name: &str,
        description: &str,
        labels: &[(&str, &str)],
    ) -> Arc<dyn GaugeFn> {
        self.others.register_gauge(name, description, labels)
    }

    fn register_up_down_counter(
        &self,
        name: &str,
        description: &str,
        labels: &[(&str, &str)],
    ) -> Arc<dyn UpDownCounterFn> {
        self.others
            .register_up_down_counter(name, description, labels)
    }

    fn register_histogram(
        &self,
        name: &str,
        description: &str,
        labels: &[(&str, &str)],
        boundaries: &[f64],
    ) -> Arc<dyn HistogramFn> {
        self.others
            .register_histogram(name, description, labels, boundaries)
    }
}
