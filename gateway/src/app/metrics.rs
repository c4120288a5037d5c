//! The metrics of all parts, as the application hands them out.

use std::sync::Arc;

use crate::access::AccessMetrics;
use crate::deliver::DeliverMetrics;
use crate::events;
use crate::http::HttpMetrics;
use crate::metrics::Families;
use crate::objects::model::ObjectMetrics;
use crate::query::QueryMetrics;
use crate::quota::QuotaMetrics;
use crate::receive::{self, ReceiveMetrics};
use crate::series::SeriesMetrics;

/// The metrics of each part, registered with one registry. Clones share them.
#[derive(Clone)]
pub struct AppMetrics {
    /// The registry that metrics are gathered from.
    pub families: Families,
    /// Metrics of HTTP requests.
    pub http: Arc<HttpMetrics>,
    /// Metrics of credentials and TLS.
    pub access: Arc<AccessMetrics>,
    /// Metrics of the limits of users.
    pub quota: Arc<QuotaMetrics>,
    /// Metrics of remote write.
    pub receive: Arc<ReceiveMetrics>,
    /// Metrics of series.
    pub series: Arc<SeriesMetrics>,
    /// Metrics of delivery to PostgreSQL.
    pub deliver: Arc<DeliverMetrics>,
    /// Metrics of object storage.
    pub objects: Arc<ObjectMetrics>,
    /// Metrics of queries.
    pub query: Arc<QueryMetrics>,
}

impl Default for AppMetrics {
    fn default() -> Self {
        let families = Families::new();
        let hot_routes = [receive::write::ROUTE, events::write::ROUTE];
        Self {
            http: Arc::new(HttpMetrics::new(&families, hot_routes)),
            access: Arc::new(AccessMetrics::new(&families)),
            quota: Arc::new(QuotaMetrics::new(&families)),
            receive: Arc::new(ReceiveMetrics::new(&families)),
            series: Arc::new(SeriesMetrics::new(&families)),
            deliver: Arc::new(DeliverMetrics::new(&families)),
            objects: Arc::new(ObjectMetrics::new(&families)),
            query: Arc::new(QueryMetrics::new(&families)),
            families,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_every_metric_that_is_set() {
        let metrics = AppMetrics::default();
        metrics.deliver.samples_stored.inc_by(3);
        metrics
            .http
            .requests
            .with_label_values(&["/api/v1/write", "204"])
            .inc();
        let text = metrics.families.text();
        for line in [
            "lanes_gateway_samples_stored_total 3",
            "lanes_gateway_http_requests_total{route=\"/api/v1/write\",status=\"204\"} 1",
            "lanes_gateway_ack_duration_seconds_bucket{level=\"wal\",le=\"0.001\"} 0",
            "lanes_gateway_objects_state{state=\"off\"} 1",
            "process_resident_memory_bytes",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
