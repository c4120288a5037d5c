//! Metrics of the offloading of segments.

use std::sync::Arc;

use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{Gauge, IntCounter, IntGauge};

use crate::clock::{self, Instant};
use crate::metrics::Families;
use crate::metrics::families::options;

/// Counters and gauges of offloading.
pub struct OffloadMetrics {
    oldest_due: Arc<Mutex<Option<Instant>>>,
    /// Rows listed as due and not offloaded yet.
    pub lag_rows: IntGauge,
    /// Images put.
    pub puts: IntCounter,
    /// Bytes of images put.
    pub put_bytes: IntCounter,
    /// Parts that became remote.
    pub parts: IntCounter,
    /// Rows of the parts that became remote.
    pub part_rows: IntCounter,
}

impl OffloadMetrics {
    pub(super) fn new(families: &Families) -> Self {
        let oldest_due = Arc::default();
        families.add(Lag::new(Arc::clone(&oldest_due)));
        Self {
            oldest_due,
            lag_rows: families.gauge(
                "objects_offload_lag_rows",
                "Rows of sealed segments listed for offload and not offloaded yet.",
            ),
            puts: families.counter("objects_puts_total", "Segments put into the object store."),
            put_bytes: families.counter(
                "objects_put_bytes_total",
                "Bytes of segments put into the object store.",
            ),
            parts: families.counter(
                "objects_parts_offloaded_total",
                "Parts whose segments are in object storage only.",
            ),
            part_rows: families.counter(
                "objects_rows_offloaded_total",
                "Rows whose segments are in object storage only.",
            ),
        }
    }

    /// Records when the oldest part that is still due was first listed, and the number of rows due.
    /// The time is `None` if nothing is due or if this gateway no longer offloads.
    pub fn set_lag(&self, oldest_due: Option<Instant>, rows: i64) {
        *self.oldest_due.lock() = oldest_due;
        self.lag_rows.set(rows);
    }
}

/// The seconds since the oldest part that is still due was first listed. They pass while the
/// gateway waits for an unavailable store, so they are computed when metrics are gathered.
struct Lag {
    oldest_due: Arc<Mutex<Option<Instant>>>,
    gauge: Gauge,
}

impl Lag {
    fn new(oldest_due: Arc<Mutex<Option<Instant>>>) -> Self {
        let gauge = Gauge::with_opts(options(
            "objects_offload_lag_seconds",
            "Seconds since the oldest part that still waits to be offloaded was first listed.",
        ));
        Self {
            oldest_due,
            gauge: gauge.expect("the name is legal"),
        }
    }
}

impl Collector for Lag {
    fn desc(&self) -> Vec<&Desc> {
        self.gauge.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let oldest = *self.oldest_due.lock();
        let lag = oldest.map_or(0.0, |oldest| (clock::now() - oldest).as_secs_f64());
        self.gauge.set(lag);
        self.gauge.collect()
    }
}
