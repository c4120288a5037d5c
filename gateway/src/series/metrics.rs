//! Metrics of known and registered series.

use prometheus::{IntCounter, IntGauge};

use super::cache::SeriesCache;
use crate::metrics::Families;

/// Counters and gauges of series.
pub struct SeriesMetrics {
    /// Label sets sent to PostgreSQL to be registered.
    pub registered: IntCounter,
    cached: IntGauge,
    cache_bytes: IntGauge,
    index_bytes: IntGauge,
}

impl SeriesMetrics {
    /// Registers the metrics.
    pub fn new(families: &Families) -> Self {
        Self {
            registered: families.counter(
                "series_registered_total",
                "Label sets that the cache did not contain and that were sent to PostgreSQL.",
            ),
            cached: families.gauge(
                "series_cache_entries",
                "Label sets whose series id is cached.",
            ),
            cache_bytes: families.gauge(
                "series_cache_bytes",
                "Bytes of the cache from label sets to series ids.",
            ),
            index_bytes: families.gauge(
                "series_index_bytes",
                "Bytes of the index that distinguishes new series from registered ones.",
            ),
        }
    }

    /// Sets the gauges to the current size of the cache and its index.
    pub fn measure(&self, cache: &SeriesCache) {
        for (gauge, size) in [
            (&self.cached, cache.entries()),
            (&self.cache_bytes, cache.bytes()),
            (&self.index_bytes, cache.index_bytes()),
        ] {
            gauge.set(i64::try_from(size).unwrap_or(i64::MAX));
        }
    }
}
