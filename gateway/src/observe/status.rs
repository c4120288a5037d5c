//! The state of the gateway for people, and the current rate of stored samples.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::clock::{self, Instant};
use crate::deliver::{DeliverMetrics, Health};
use crate::http::HttpMetrics;
use crate::objects::model::{ObjectMetrics, ObjectStatus};

/// The number of observations kept. One is made each second.
const OBSERVATIONS: usize = 32;

/// The rate is measured over this many of the latest observations that saw new samples. Under
/// constant load these are one second apart. With a single sender they are one scrape interval
/// apart, so that the rate is steady in this case too.
const RATE_CHANGES: usize = 6;

/// The time between two observations.
const OBSERVED_APART: Duration = Duration::from_secs(1);

/// What supervision found last.
#[derive(Default)]
pub struct Status {
    /// Whether PostgreSQL accepts batches.
    is_postgres_up: AtomicBool,
    /// Whether there are synchronous standbys.
    has_standbys: AtomicBool,
    /// Whether shutdown has begun.
    is_stopping: AtomicBool,
    /// The number of series in the database.
    series: AtomicI64,
    /// The number of samples stored at past times.
    stored: Mutex<VecDeque<(Instant, u64)>>,
    /// What the gateway does about object storage.
    pub objects: Arc<ObjectStatus>,
}

/// What the status is read from besides [`Status`].
pub struct Sources<'a> {
    /// Metrics of HTTP requests.
    pub http: &'a HttpMetrics,
    /// Metrics of delivery to PostgreSQL.
    pub deliver: &'a DeliverMetrics,
    /// Metrics of object storage.
    pub objects: &'a ObjectMetrics,
    /// The number of entries in the cache of series.
    pub series_cached: usize,
    /// Bytes reserved by requests that are not answered yet.
    pub pending_bytes: usize,
}

impl Status {
    /// Records the health of PostgreSQL; `None` if it is unavailable.
    pub fn set_postgres(&self, health: Option<Health>) {
        self.is_postgres_up
            .store(health.is_some(), Ordering::Release);
        if let Some(health) = health {
            self.has_standbys
                .store(health.has_standbys, Ordering::Release);
            self.series.store(health.series, Ordering::Release);
        }
    }

    /// Records that shutdown has begun.
    pub fn set_stopping(&self) {
        self.is_stopping.store(true, Ordering::Release);
    }

    /// Whether the gateway accepts requests.
    pub fn is_ready(&self) -> bool {
        self.is_postgres_up.load(Ordering::Acquire) && !self.is_stopping.load(Ordering::Acquire)
    }

    /// Whether level `replica` is known to be impossible.
    pub fn lacks_standbys(&self) -> bool {
        self.is_postgres_up.load(Ordering::Acquire) && !self.has_standbys.load(Ordering::Acquire)
    }

    /// Records the number of samples stored so far.
    pub fn observe_stored(&self, samples: u64) {
        let mut stored = self.stored.lock();
        stored.push_back((clock::now(), samples));
        if stored.len() > OBSERVATIONS {
            stored.pop_front();
        }
    }

    /// The current rate of stored samples per second. It is 0 after nothing has been stored for
    /// twice the usual time between stores.
    pub fn samples_per_second(&self) -> f64 {
        let stored = self.stored.lock();
        let pairs = stored.iter().zip(stored.iter().skip(1));
        let changes: Vec<_> = pairs
            .filter(|(before, after)| before.1 != after.1)
            .map(|(_, after)| *after)
            .collect();
        let latest = &changes[changes.len().saturating_sub(RATE_CHANGES)..];
        let (Some(&(now, _)), Some(&(until, last))) = (stored.back(), latest.last()) else {
            return 0.0;
        };
        // The first store can only be measured from an observation before it.
        let Some(&(since, first)) = latest
            .first()
            .filter(|_| latest.len() > 1)
            .or(stored.front())
        else {
            return 0.0;
        };
        let stores = latest.len().saturating_sub(1).max(1) as u32;
        let apart = (until - since) / stores;
        if now - until > 2 * apart.max(OBSERVED_APART) || until <= since {
            return 0.0;
        }
        last.saturating_sub(first) as f64 / (until - since).as_secs_f64()
    }

    /// The body of `/api/v1/status`.
    pub fn json(&self, sources: &Sources<'_>) -> Value {
        let Sources {
            http,
            deliver,
            objects,
            series_cached,
            pending_bytes,
        } = sources;
        // Requests of remote write and of events together.
        let requests = |statuses: &[&str]| -> u64 {
            [crate::receive::write::ROUTE, crate::events::write::ROUTE]
                .iter()
                .flat_map(|route| statuses.iter().map(move |status| [*route, *status]))
                .map(|labels| http.requests.with_label_values(&labels).get())
                .sum()
        };
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "ready": self.is_ready(),
            "postgres_up": self.is_postgres_up.load(Ordering::Acquire),
            "samples_per_second": (self.samples_per_second() * 10.0).round() / 10.0,
            "rows": deliver.samples_stored.get(),
            "events": deliver.events_stored.get(),
            "series": self.series.load(Ordering::Acquire).max(0),
            "series_cached": series_cached,
            "pending_bytes": pending_bytes,
            "objects": self.objects.state().name(),
            "objects_backlog_bytes": objects.backlog_bytes.get(),
            "writes_refused_for": self.objects.backlog_refusal(),
            "requests_stored": requests(&["204"]),
            "requests_refused": requests(&["400", "403", "404", "415", "503"]),
            "requests_repeated": deliver.requests_repeated.get(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Families;

    #[tokio::test(start_paused = true)]
    async fn the_rate_is_measured_over_the_last_seconds() {
        let status = Status::default();
        assert_eq!(status.samples_per_second(), 0.0);
        for second in 0..20u64 {
            status.observe_stored(second.min(10) * 100);
            if second == 10 {
                assert_eq!(status.samples_per_second(), 100.0);
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        assert_eq!(status.samples_per_second(), 0.0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_rate_is_steady_where_samples_come_in_bursts() {
        let status = Status::default();
        for second in 0..60u64 {
            // 420 samples arrive every five seconds.
            status.observe_stored(second / 5 * 420);
            if second >= 10 {
                assert_eq!(status.samples_per_second(), 84.0, "{second}");
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    #[test]
    fn ready_needs_postgres_and_no_shutdown() {
        let status = Status::default();
        assert!(!status.is_ready());
        status.set_postgres(Some(Health {
            missing_standbys: 0,
            has_standbys: false,
            series: 3,
        }));
        assert!(status.is_ready() && status.lacks_standbys());
        let families = Families::new();
        let sources = Sources {
            http: &HttpMetrics::new(&families, ["/a", "/b"]),
            deliver: &DeliverMetrics::new(&families),
            objects: &ObjectMetrics::new(&families),
            series_cached: 0,
            pending_bytes: 7,
        };
        assert_eq!(status.json(&sources)["series"], 3);
        status.set_postgres(None);
        assert!(!status.is_ready() && !status.lacks_standbys());
        status.set_postgres(Some(Health {
            missing_standbys: 0,
            has_standbys: true,
            series: 3,
        }));
        status.set_stopping();
        assert!(!status.is_ready());
    }
}
