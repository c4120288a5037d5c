//! Metrics of limits.

use prometheus::{IntCounterVec, IntGaugeVec};

use crate::metrics::Families;

/// Counters and gauges of users that have limits.
pub struct QuotaMetrics {
    /// Samples and events refused, by user and limit.
    pub samples_refused: IntCounterVec,
    /// Series refused, by user and limit.
    pub series_refused: IntCounterVec,
    /// Series of this day, by user.
    pub series: IntGaugeVec,
    /// Names of metrics, by user.
    pub metric_names: IntGaugeVec,
}

impl QuotaMetrics {
    /// Registers the metrics.
    pub fn new(families: &Families) -> Self {
        Self {
            samples_refused: families.counters(
                "user_samples_refused_total",
                "Samples and events refused because their user exceeds a limit, by user and limit. Requests refused \
                    before they are read are not counted.",
                &["user", "limit"],
            ),
            series_refused: families.counters(
                "user_series_refused_total",
                "Series refused because their user exceeds a limit, by user and limit. A series counts each time that \
                    it is sent.",
                &["user", "limit"],
            ),
            series: families.gauges(
                "user_series",
                "Series that a user with the limit series_max has written today, up to the limit.",
                &["user"],
            ),
            metric_names: families.gauges(
                "user_metric_names",
                "Metric names that a user with the limit metric_names_max has written, up to the limit.",
                &["user"],
            ),
        }
    }
}
