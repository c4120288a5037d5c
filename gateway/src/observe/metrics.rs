//! All metrics of the gateway in one place. Names are documented by their help texts at `/metrics`.

use axum::http::StatusCode;
use prometheus::core::Collector;
use prometheus::proto::MetricFamily;
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry, TextEncoder,
};

use super::object_metrics::ObjectMetrics;
use super::process_metrics::ProcessMetrics;
use crate::deliver::AckLevel;

/// Counters, gauges and histograms; cheap to update from anywhere.
pub struct Metrics {
    registry: Registry,
    /// HTTP requests by route and status.
    pub requests: IntCounterVec,
    /// Seconds from head to answer, by route.
    pub request_seconds: HistogramVec,
    hot_routes: [HotRoute; HOT_ROUTES.len()],
    /// Seconds from receipt to acknowledgement of write requests, by level.
    pub ack_seconds: [Histogram; AckLevel::ALL.len()],
    /// Compressed bytes of write requests.
    pub body_bytes: IntCounter,
    /// Decompressed bytes of write requests.
    pub decompressed_bytes: IntCounter,
    /// Samples in requests that could be decoded.
    pub samples_received: IntCounter,
    /// Samples committed.
    pub samples_stored: IntCounter,
    /// Events committed.
    pub events_stored: IntCounter,
    /// Samples refused, by reason.
    pub samples_refused: IntCounterVec,
    /// Exemplars, which are not stored.
    pub exemplars_ignored: IntCounter,
    /// Metadata entries, which are not stored.
    pub metadata_ignored: IntCounter,
    /// Requests acknowledged without being applied again.
    pub requests_repeated: IntCounter,
    /// Label sets sent to be registered.
    pub series_registered: IntCounter,
    /// Entries in the series cache.
    pub series_cached: IntGauge,
    /// Bytes of the series cache.
    pub series_cache_bytes: IntGauge,
    /// Bytes of the index of all registered series.
    pub series_index_bytes: IntGauge,
    /// Rows of each batch sent.
    pub batch_rows: Histogram,
    /// Bytes of each batch sent.
    pub batch_bytes: Histogram,
    /// Seconds of each append call, by level.
    pub append_seconds: [Histogram; AckLevel::ALL.len()],
    /// Seconds that batches ready to leave waited for a session, by level.
    pub session_wait_seconds: [Histogram; AckLevel::ALL.len()],
    /// Bytes of requests not yet answered.
    pub pending_bytes: IntGauge,
    /// Errors of PostgreSQL, by SQLSTATE or kind.
    pub postgres_errors: IntCounterVec,
    /// Sessions opened with PostgreSQL.
    pub postgres_sessions_opened: IntCounter,
    /// 1 while PostgreSQL takes batches.
    pub postgres_up: IntGauge,
    /// Synchronous standbys that are away.
    pub postgres_standbys_missing: IntGauge,
    /// 1 while PostgreSQL refuses writes as its disk is full.
    pub postgres_disk_full: IntGauge,
    /// Open HTTP connections.
    pub connections: IntGauge,
    /// Object storage.
    pub objects: ObjectMetrics,
}

/// The routes that take data.
const HOT_ROUTES: [&str; 2] = [crate::receive::write::ROUTE, crate::events::write::ROUTE];

struct HotRoute {
    route: &'static str,
    stored: IntCounter,
    seconds: Histogram,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Registers all metrics on a registry of their own.
    ///
    /// # Panics
    /// If two metrics have one name, which a test rules out.
    pub fn new() -> Self {
        let registry = Registry::new();
        let latency = vec![
            0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
            30.0,
        ];
        let powers_of_4 = |first: f64, count: i32| {
            (0..count)
                .map(|power| first * 4f64.powi(power))
                .collect::<Vec<_>>()
        };
        let counter =
            |name: &str, help: &str| add(&registry, IntCounter::with_opts(options(name, help)));
        let counters = |name: &str, help: &str, labels: &[&str]| {
            add(&registry, IntCounterVec::new(options(name, help), labels))
        };
        let gauge =
            |name: &str, help: &str| add(&registry, IntGauge::with_opts(options(name, help)));
        let histogram = |name: &str, help: &str, buckets: Vec<f64>| {
            add(
                &registry,
                Histogram::with_opts(HistogramOpts::from(options(name, help)).buckets(buckets)),
            )
        };
        let histograms = |name: &str, help: &str, label: &str| {
            let options = HistogramOpts::from(options(name, help)).buckets(latency.clone());
            add(&registry, HistogramVec::new(options, &[label]))
        };
        let by_level = |name: &str, help: &str| {
            let vector = histograms(name, help, "level");
            AckLevel::ALL.map(|level| vector.with_label_values(&[level.name()]))
        };

        let build_info = IntGaugeVec::new(
            options("build_info", "Always 1; the version is a label."),
            &["version"],
        );
        add(&registry, build_info)
            .with_label_values(&[env!("CARGO_PKG_VERSION")])
            .set(1);
        #[cfg(target_os = "linux")]
        registry
            .register(Box::new(ProcessMetrics::new()))
            .expect("process metrics have names of their own");

        let requests = counters(
            "http_requests_total",
            "HTTP requests answered.",
            &["route", "status"],
        );
        let request_seconds = histograms(
            "http_request_duration_seconds",
            "Seconds from a request's head to its answer.",
            "route",
        );
        Self {
            hot_routes: HOT_ROUTES.map(|route| HotRoute {
                route,
                stored: requests.with_label_values(&[route, "204"]),
                seconds: request_seconds.with_label_values(&[route]),
            }),
            requests,
            request_seconds,
            ack_seconds: by_level(
                "ack_duration_seconds",
                "Seconds from a write request's head to its acknowledgement.",
            ),
            body_bytes: counter("body_bytes_total", "Bytes of write requests as sent."),
            decompressed_bytes: counter(
                "decompressed_bytes_total",
                "Bytes of write requests once decompressed.",
            ),
            samples_received: counter("samples_received_total", "Legal samples in write requests."),
            samples_stored: counter("samples_stored_total", "Samples committed in PostgreSQL."),
            events_stored: counter("events_stored_total", "Events committed in PostgreSQL."),
            samples_refused: counters(
                "samples_refused_total",
                "Samples that cannot be stored.",
                &["reason"],
            ),
            exemplars_ignored: counter(
                "exemplars_ignored_total",
                "Exemplars received; they are not stored.",
            ),
            metadata_ignored: counter(
                "metadata_ignored_total",
                "Metadata entries received; they are not stored.",
            ),
            requests_repeated: counter(
                "requests_repeated_total",
                "Write requests that had been applied before and were not again.",
            ),
            series_registered: counter(
                "series_registered_total",
                "Label sets unknown to the cache and sent to PostgreSQL.",
            ),
            series_cached: gauge("series_cache_entries", "Label sets whose id is in memory."),
            series_cache_bytes: gauge(
                "series_cache_bytes",
                "Bytes held for label sets whose id is in memory.",
            ),
            series_index_bytes: gauge(
                "series_index_bytes",
                "Bytes held to tell new series from registered ones.",
            ),
            batch_rows: histogram("batch_rows", "Rows of batches sent.", powers_of_4(1.0, 11)),
            batch_bytes: histogram(
                "batch_bytes",
                "Bytes of batches sent.",
                powers_of_4(256.0, 10),
            ),
            append_seconds: by_level(
                "append_duration_seconds",
                "Seconds of an append in PostgreSQL, commit included.",
            ),
            session_wait_seconds: by_level(
                "session_wait_duration_seconds",
                "Seconds that a batch ready to leave waited for a session. While these add up, PostgreSQL is the bottleneck, not the gateway.",
            ),
            pending_bytes: gauge(
                "pending_bytes",
                "Bytes held by requests that are not answered yet.",
            ),
            postgres_errors: counters(
                "postgres_errors_total",
                "Calls to PostgreSQL that failed.",
                &["sqlstate"],
            ),
            postgres_sessions_opened: counter(
                "postgres_sessions_opened_total",
                "Sessions opened with PostgreSQL.",
            ),
            postgres_up: gauge("postgres_up", "1 while PostgreSQL takes batches."),
            postgres_standbys_missing: gauge(
                "postgres_standbys_missing",
                "Synchronous standbys that commits wait for and that are not connected.",
            ),
            postgres_disk_full: gauge(
                "postgres_disk_full",
                "1 while PostgreSQL refuses writes as its disk is full.",
            ),
            connections: gauge("http_connections", "HTTP connections open."),
            objects: ObjectMetrics::register(&registry),
            registry,
        }
    }

    /// Counts and times a request. Those that succeed on the routes that matter are counted without looking up their labels.
    pub fn request_ended(&self, route: &str, status: StatusCode, seconds: f64) {
        let hot = self.hot_routes.iter().find(|hot| hot.route == route);
        match hot {
            Some(hot) if status == StatusCode::NO_CONTENT => hot.stored.inc(),
            _ => self
                .requests
                .with_label_values(&[route, status.as_str()])
                .inc(),
        }
        match hot {
            Some(hot) => hot.seconds.observe(seconds),
            None => self
                .request_seconds
                .with_label_values(&[route])
                .observe(seconds),
        }
    }

    /// All metrics as they are now.
    pub fn gather(&self) -> Vec<MetricFamily> {
        self.objects.lag_seconds();
        self.registry.gather()
    }

    /// The text format that Prometheus scrapes.
    pub fn text(&self) -> String {
        TextEncoder::new()
            .encode_to_string(&self.gather())
            .unwrap_or_else(|error| format!("# {error}\n"))
    }
}

pub(super) fn options(name: &str, help: &str) -> Opts {
    Opts::new(format!("lanes_gateway_{name}"), help)
}

pub(super) fn add<C: Collector + Clone + 'static>(
    registry: &Registry,
    collector: prometheus::Result<C>,
) -> C {
    let collector = collector.expect("metric names and labels are legal");
    registry
        .register(Box::new(collector.clone()))
        .expect("metric names are distinct");
    collector
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_every_metric_that_is_set() {
        let metrics = Metrics::new();
        metrics.samples_stored.inc_by(3);
        metrics
            .requests
            .with_label_values(&["/api/v1/write", "204"])
            .inc();
        let text = metrics.text();
        for line in [
            "lanes_gateway_samples_stored_total 3",
            "lanes_gateway_http_requests_total{route=\"/api/v1/write\",status=\"204\"} 1",
            "lanes_gateway_ack_duration_seconds_bucket{level=\"wal\",le=\"0.001\"} 0",
            "process_resident_memory_bytes",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
