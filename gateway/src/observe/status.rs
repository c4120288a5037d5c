//! The state of the gateway as a person asks for it, and the moving rate of stored samples.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::metrics::Metrics;
use crate::clock::{self, Instant};
use crate::objects::ObjectState;

/// Observations kept, one a second.
const OBSERVATIONS: usize = 32;

/// The rate is taken between this many of the latest observations that something was stored before: a second apart
/// where requests come all the time; and as far apart as scrapes are where one sender sends what it scrapes, so that
/// the rate is steady there too.
const RATE_CHANGES: usize = 6;

/// Between two observations.
const OBSERVED_APART: Duration = Duration::from_secs(1);

/// What supervision last found.
#[derive(Default)]
pub struct Status {
    /// PostgreSQL takes batches.
    is_postgres_up: AtomicBool,
    /// There are synchronous standbys.
    has_standbys: AtomicBool,
    /// Shutdown has begun.
    is_stopping: AtomicBool,
    /// Series in the database, -1 before the first look.
    series: AtomicI64,
    /// Samples stored so far, at times past.
    stored: Mutex<VecDeque<(Instant, u64)>>,
    /// What is done about object storage.
    objects: Mutex<ObjectState>,
    /// Why writes are refused until object storage has caught up.
    backlog_refusal: Mutex<Option<String>>,
    /// Whether there is such a reason: all that most requests look at.
    is_backlog_full: AtomicBool,
}

impl Status {
    /// Takes note of a look at PostgreSQL.
    pub fn set_postgres(&self, health: Option<crate::deliver::Health>) {
        self.is_postgres_up
            .store(health.is_some(), Ordering::Release);
        if let Some(health) = health {
            self.has_standbys
                .store(health.has_standbys, Ordering::Release);
            self.series.store(health.series, Ordering::Release);
        }
    }

    /// Shutdown begins.
    pub fn set_stopping(&self) {
        self.is_stopping.store(true, Ordering::Release);
    }

    /// Takes note of what is done about object storage.
    pub fn set_objects(&self, state: ObjectState) {
        *self.objects.lock() = state;
    }

    /// What is done about object storage. Requests should be sent here whatever it is.
    pub fn objects(&self) -> ObjectState {
        *self.objects.lock()
    }

    /// Takes note of why writes are refused until object storage has caught up.
    pub fn set_backlog_refusal(&self, refusal: Option<String>) {
        let is_full = refusal.is_some();
        *self.backlog_refusal.lock() = refusal;
        self.is_backlog_full.store(is_full, Ordering::Release);
    }

    /// Why writes are refused until object storage has caught up.
    pub fn backlog_refusal(&self) -> Option<String> {
        let is_full = self.is_backlog_full.load(Ordering::Acquire);
        is_full
            .then(|| self.backlog_refusal.lock().clone())
            .flatten()
    }

    /// Whether requests should be sent here.
    pub fn is_ready(&self) -> bool {
        self.is_postgres_up.load(Ordering::Acquire) && !self.is_stopping.load(Ordering::Acquire)
    }

    /// Whether level `replica` is known to be impossible.
    pub fn lacks_standbys(&self) -> bool {
        self.is_postgres_up.load(Ordering::Acquire) && !self.has_standbys.load(Ordering::Acquire)
    }

    /// Takes note of the samples stored so far.
    pub fn observe_stored(&self, samples: u64) {
        let mut stored = self.stored.lock();
        stored.push_back((clock::now(), samples));
        if stored.len() > OBSERVATIONS {
            stored.pop_front();
        }
    }

    /// Samples a second lately; 0 once nothing has come for twice as long as between the stores before.
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
        // A first store has nothing to be measured from but the observations before it.
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
    pub fn json(&self, metrics: &Metrics, cached: usize, pending_bytes: usize) -> Value {
        // Of remote write and events together.
        let requests = |statuses: &[&str]| -> u64 {
            [crate::receive::write::ROUTE, crate::events::write::ROUTE]
                .iter()
                .flat_map(|route| statuses.iter().map(move |status| [*route, *status]))
                .map(|labels| metrics.requests.with_label_values(&labels).get())
                .sum()
        };
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "ready": self.is_ready(),
            "postgres_up": self.is_postgres_up.load(Ordering::Acquire),
            "samples_per_second": (self.samples_per_second() * 10.0).round() / 10.0,
            "rows": metrics.samples_stored.get(),
            "events": metrics.events_stored.get(),
            "series": self.series.load(Ordering::Acquire).max(0),
            "series_cached": cached,
            "pending_bytes": pending_bytes,
            "objects": self.objects().name(),
            "objects_backlog_bytes": metrics.objects.backlog_bytes.get(),
            "writes_refused_for": self.backlog_refusal(),
            "requests_stored": requests(&["204"]),
            "requests_refused": requests(&["400", "403", "404", "415", "503"]),
            "requests_repeated": metrics.requests_repeated.get(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_rate_is_that_of_the_last_seconds() {
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
            // 420 of them every five seconds.
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
        status.set_postgres(Some(crate::deliver::Health {
            missing_standbys: 0,
            has_standbys: false,
            series: 3,
        }));
        assert!(status.is_ready() && status.lacks_standbys());
        assert_eq!(status.json(&Metrics::new(), 0, 7)["series"], 3);
        status.set_postgres(None);
        assert!(!status.is_ready() && !status.lacks_standbys());
        status.set_postgres(Some(crate::deliver::Health {
            missing_standbys: 0,
            has_standbys: true,
            series: 3,
        }));
        status.set_stopping();
        assert!(!status.is_ready());
    }
}
