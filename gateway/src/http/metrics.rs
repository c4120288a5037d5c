//! Metrics of HTTP: requests, their latency and what they hold.

use axum::http::StatusCode;
use prometheus::{Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge};

use crate::metrics::Families;
use crate::model::AckLevel;

/// The number of routes that are counted without looking up labels.
const HOT_ROUTES: usize = 2;

/// Counters, gauges and histograms of HTTP requests.
pub struct HttpMetrics {
    /// Requests answered, by route and status.
    pub requests: IntCounterVec,
    request_seconds: HistogramVec,
    hot_routes: [HotRoute; HOT_ROUTES],
    /// Open connections.
    pub connections: IntGauge,
    /// Bytes of the bodies of write requests, as sent.
    pub body_bytes: IntCounter,
    /// Seconds from the head of a write request to its acknowledgement, by level.
    pub ack_seconds: [Histogram; AckLevel::ALL.len()],
    /// Bytes reserved by requests that are not answered yet.
    pub pending_bytes: IntGauge,
}

/// The handles of a route that takes data.
struct HotRoute {
    route: &'static str,
    stored: IntCounter,
    seconds: Histogram,
}

impl HttpMetrics {
    /// Registers the metrics. Successful requests to `hot_routes` are counted without looking up
    /// labels.
    pub fn new(families: &Families, hot_routes: [&'static str; HOT_ROUTES]) -> Self {
        let requests = families.counters(
            "http_requests_total",
            "HTTP requests answered.",
            &["route", "status"],
        );
        let request_seconds = families.latencies(
            "http_request_duration_seconds",
            "Seconds from the head of a request to its answer.",
            "route",
        );
        Self {
            hot_routes: hot_routes.map(|route| HotRoute {
                route,
                stored: requests.with_label_values(&[route, "204"]),
                seconds: request_seconds.with_label_values(&[route]),
            }),
            requests,
            request_seconds,
            connections: families.gauge("http_connections", "Open HTTP connections."),
            body_bytes: families.counter(
                "body_bytes_total",
                "Bytes of the bodies of write requests, as sent.",
            ),
            ack_seconds: families.latencies_by_level(
                "ack_duration_seconds",
                "Seconds from the head of a write request to its acknowledgement.",
            ),
            pending_bytes: families.gauge(
                "pending_bytes",
                "Bytes reserved by requests that are not answered yet.",
            ),
        }
    }

    /// Counts a request and records its latency.
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
}
