//! The pulse: once a second a look at PostgreSQL, the gauges, and now and then the removal of old digests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use super::metrics::Metrics;
use super::status::Status;
use crate::batch::{Budget, SeriesCache};
use crate::clock;
use crate::deliver::Sink;

const PULSE: Duration = Duration::from_secs(1);
const FORGET_INTERVAL: Duration = Duration::from_secs(60);

/// What is looked after.
pub struct Supervision<S> {
    /// The database.
    pub sink: Arc<S>,
    /// Where the findings go.
    pub status: Arc<Status>,
    /// Gauges.
    pub metrics: Arc<Metrics>,
    /// Looked at.
    pub cache: Arc<SeriesCache>,
    /// Looked at.
    pub budget: Budget,
    /// How long digests are kept.
    pub request_window: Duration,
    /// Whether it was said that standbys are missing.
    pub is_missing_told: AtomicBool,
}

impl<S: Sink> Supervision<S> {
    /// Runs until it is aborted.
    pub async fn run(self) {
        let mut pulse = interval(PULSE);
        pulse.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut forget_at = clock::now() + FORGET_INTERVAL;
        loop {
            pulse.tick().await;
            self.beat().await;
            if clock::now() >= forget_at {
                self.forget().await;
                forget_at = clock::now() + FORGET_INTERVAL;
            }
        }
    }

    async fn beat(&self) {
        self.status
            .observe_stored(self.metrics.samples_stored.get());
        self.metrics
            .pending_bytes
            .set(i64::try_from(self.budget.pending_bytes()).unwrap_or(i64::MAX));
        self.metrics
            .series_cached
            .set(i64::try_from(self.cache.entries()).unwrap_or(i64::MAX));
        for (gauge, bytes) in [
            (&self.metrics.series_cache_bytes, self.cache.bytes()),
            (&self.metrics.series_index_bytes, self.cache.index_bytes()),
        ] {
            gauge.set(i64::try_from(bytes).unwrap_or(i64::MAX));
        }
        let health = self.sink.health().await.ok();
        self.metrics.postgres_up.set(i64::from(health.is_some()));
        if let Some(health) = &health {
            self.note_standbys(health.missing_standbys);
        }
        self.status.set_postgres(health);
    }

    /// Says once that standbys are missing, and once that they are back.
    fn note_standbys(&self, missing: i32) {
        let gauge = &self.metrics.postgres_standbys_missing;
        let before = gauge.get();
        gauge.set(i64::from(missing));
        // Two looks in a row: one may fall between a setting that is reloaded and the standby that it names.
        if before > 0 && missing > 0 && !self.is_missing_told.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                missing,
                "synchronous standbys are missing: acknowledgement level \"replica\" waits for them"
            );
        }
        if missing == 0 && self.is_missing_told.swap(false, Ordering::Relaxed) {
            tracing::info!("all synchronous standbys are connected again");
        }
    }

    async fn forget(&self) {
        // In portions, so that no transaction is long; an error is noted by the sink and the next round goes on.
        while let Ok(1..) = self.sink.forget(self.request_window).await {
            tokio::task::yield_now().await;
        }
    }
}
