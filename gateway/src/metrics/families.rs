//! The registry of metric families. Each part of the gateway adds its own families and keeps the
//! handles that it counts with.
//!
//! The help texts, which `GET /metrics` returns, document the names.

use prometheus::core::Collector;
use prometheus::proto::MetricFamily;
use prometheus::{
    Gauge, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry, TextEncoder,
};

use super::process::ProcessMetrics;
use crate::model::AckLevel;

/// Upper bounds, in seconds, of the buckets for latencies of requests.
pub const LATENCY_BUCKETS: [f64; 15] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

/// A registry of metric families. Clones share it.
///
/// The methods that register a family panic if its name is not legal or is already taken. A test
/// registers the families of all parts, so this never happens in operation.
#[derive(Clone)]
pub struct Families {
    registry: Registry,
}

impl Default for Families {
    fn default() -> Self {
        Self::new()
    }
}

impl Families {
    /// Creates a registry that holds the version of the gateway and the metrics of its process.
    pub fn new() -> Self {
        let families = Self {
            registry: Registry::new(),
        };
        let build_info = families.gauges(
            "build_info",
            "Always 1; the label contains the version.",
            &["version"],
        );
        build_info
            .with_label_values(&[env!("CARGO_PKG_VERSION")])
            .set(1);
        #[cfg(target_os = "linux")]
        families.add(ProcessMetrics::new());
        families
    }

    /// Registers a counter.
    pub fn counter(&self, name: &str, help: &str) -> IntCounter {
        self.add_new(IntCounter::with_opts(options(name, help)))
    }

    /// Registers a counter with labels.
    pub fn counters(&self, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
        self.add_new(IntCounterVec::new(options(name, help), labels))
    }

    /// Registers a gauge of whole numbers.
    pub fn gauge(&self, name: &str, help: &str) -> IntGauge {
        self.add_new(IntGauge::with_opts(options(name, help)))
    }

    /// Registers a gauge of seconds.
    pub fn seconds(&self, name: &str, help: &str) -> Gauge {
        self.add_new(Gauge::with_opts(options(name, help)))
    }

    /// Registers a gauge of whole numbers with labels.
    pub fn gauges(&self, name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
        self.add_new(IntGaugeVec::new(options(name, help), labels))
    }

    /// Registers a histogram.
    pub fn histogram(&self, name: &str, help: &str, buckets: Vec<f64>) -> Histogram {
        let options = HistogramOpts::from(options(name, help)).buckets(buckets);
        self.add_new(Histogram::with_opts(options))
    }

    /// Registers a histogram of latencies with one label.
    pub fn latencies(&self, name: &str, help: &str, label: &str) -> HistogramVec {
        let options = HistogramOpts::from(options(name, help)).buckets(LATENCY_BUCKETS.to_vec());
        self.add_new(HistogramVec::new(options, &[label]))
    }

    /// Registers a histogram of latencies for each level of acknowledgement, in the order of
    /// [`AckLevel::ALL`].
    pub fn latencies_by_level(&self, name: &str, help: &str) -> [Histogram; AckLevel::ALL.len()] {
        let vector = self.latencies(name, help, "level");
        AckLevel::ALL.map(|level| vector.with_label_values(&[level.name()]))
    }

    /// Registers a collector that computes its values when metrics are gathered.
    pub fn add(&self, collector: impl Collector + 'static) {
        self.registry
            .register(Box::new(collector))
            .expect("metric names are distinct");
    }

    fn add_new<C: Collector + Clone + 'static>(&self, collector: prometheus::Result<C>) -> C {
        let collector = collector.expect("metric names and labels are legal");
        self.add(collector.clone());
        collector
    }

    /// Returns the current values of all families.
    pub fn gather(&self) -> Vec<MetricFamily> {
        self.registry.gather()
    }

    /// Returns the current values in the text format that Prometheus scrapes.
    pub fn text(&self) -> String {
        TextEncoder::new()
            .encode_to_string(&self.gather())
            .unwrap_or_else(|error| format!("# {error}\n"))
    }
}

/// Returns the options of a family; its name is prefixed with `lanes_gateway_`.
pub fn options(name: &str, help: &str) -> Opts {
    Opts::new(format!("lanes_gateway_{name}"), help)
}
