//! Supervision: once a second a look at PostgreSQL and an update of the gauges, and once a minute
//! the removal of old digests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use super::status::Status;
use crate::clock;
use crate::deliver::{DeliverMetrics, Sink};
use crate::http::HttpMetrics;
use crate::model::Budget;
use crate::series::{SeriesCache, SeriesMetrics};

const LOOK_INTERVAL: Duration = Duration::from_secs(1);
const FORGET_INTERVAL: Duration = Duration::from_secs(60);

/// Looks at the database and publishes what it finds.
pub struct Supervision<S> {
    /// The database.
    pub sink: Arc<S>,
    /// Receives the state of the database.
    pub status: Arc<Status>,
    /// Receives the bytes of pending requests.
    pub http: Arc<HttpMetrics>,
    /// Receives the sizes of the cache and the index of series.
    pub series: Arc<SeriesMetrics>,
    /// Receives the state of the database.
    pub deliver: Arc<DeliverMetrics>,
    /// Known series.
    pub cache: Arc<SeriesCache>,
    /// The memory of all requests.
    pub budget: Budget,
    /// How long digests are kept.
    pub request_window: Duration,
    /// Whether the log says that standbys are missing.
    pub is_missing_logged: AtomicBool,
}

impl<S: Sink> Supervision<S> {
    /// Runs until the task is aborted.
    pub async fn run(self) {
        let mut looks = interval(LOOK_INTERVAL);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut forget_at = clock::now() + FORGET_INTERVAL;
        loop {
            looks.tick().await;
            self.look().await;
            if clock::now() >= forget_at {
                self.forget().await;
                forget_at = clock::now() + FORGET_INTERVAL;
            }
        }
    }

    async fn look(&self) {
        self.status
            .observe_stored(self.deliver.samples_stored.get());
        self.http
            .pending_bytes
            .set(i64::try_from(self.budget.pending_bytes()).unwrap_or(i64::MAX));
        self.series.measure(&self.cache);
        let health = self.sink.health().await.ok();
        self.deliver.postgres_up.set(i64::from(health.is_some()));
        if let Some(health) = &health {
            self.note_standbys(health.missing_standbys);
        }
        self.status.set_postgres(health);
    }

    /// Logs once that standbys are missing, and once that they are connected again.
    fn note_standbys(&self, missing: i32) {
        let gauge = &self.deliver.postgres_standbys_missing;
        let before = gauge.get();
        gauge.set(i64::from(missing));
        // Require two looks in a row: a single one may fall between the reload of a setting and the
        // connection of the standby that it names.
        if before > 0 && missing > 0 && !self.is_missing_logged.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                missing,
                "synchronous standbys are missing: acknowledgement level \"replica\" waits for them"
            );
        }
        if missing == 0 && self.is_missing_logged.swap(false, Ordering::Relaxed) {
            tracing::info!("all synchronous standbys are connected again");
        }
    }

    async fn forget(&self) {
        // Digests are removed in portions to keep transactions short. The sink logs errors, and the
        // next round continues.
        while let Ok(1..) = self.sink.forget(self.request_window).await {
            tokio::task::yield_now().await;
        }
    }
}
