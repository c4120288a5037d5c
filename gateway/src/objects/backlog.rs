//! The backlog of segments that wait to be offloaded, and the limit above which writes are refused.
//!
//! While the object store is unavailable, rows stay in the database's files and writes are
//! accepted, up to [`BacklogLimit::bytes_max`]. Beyond it every write is answered with 503 and a
//! time to repeat it, until enough has been offloaded. A store that is unavailable for days
//! therefore leads to back-pressure and not to a full disk, which would stop PostgreSQL. The
//! database is queried, so that a gateway that was started meanwhile, or that stands by, refuses
//! writes as well.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::model::{ObjectMetrics, ObjectStatus};
use super::source::{Backlog, Source, SourceError};

/// The limit of the backlog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BacklogLimit {
    /// The maximum bytes of images; 0 for no limit.
    pub bytes_max: u64,
}

impl BacklogLimit {
    /// Returns why writes are refused with this backlog, if they are.
    pub fn refusal(self, backlog: Backlog) -> Option<String> {
        let Self { bytes_max } = self;
        let bytes = backlog.bytes;
        (bytes_max > 0 && bytes > bytes_max).then(|| {
            format!(
                "object storage is behind: {bytes} bytes of segments wait to be offloaded, more than {bytes_max} \
                 (objects.backlog_bytes_max); see lanes_gateway_objects_errors_total"
            )
        })
    }
}

/// Queries the backlog periodically, and publishes whether writes are refused.
pub struct BacklogWatch<S> {
    /// The database.
    pub source: Arc<S>,
    /// The limit of the backlog.
    pub limit: BacklogLimit,
    /// The time between two queries.
    pub interval: Duration,
    /// Where requests look.
    pub status: Arc<ObjectStatus>,
    /// Metrics of object storage.
    pub metrics: Arc<ObjectMetrics>,
}

impl<S: Source> BacklogWatch<S> {
    /// Runs until it is dropped.
    pub async fn run(&self) {
        loop {
            match self.source.backlog().await {
                Ok(backlog) => self.publish(backlog),
                // An extension without the function offloads nothing, so nothing waits.
                Err(SourceError::Unsupported(_)) => self.publish(Backlog::default()),
                // The last known backlog remains valid: without a database there is nothing to
                // write to either.
                Err(error) => tracing::debug!("could not query the backlog: {error}"),
            }
            sleep(self.interval).await;
        }
    }

    fn publish(&self, backlog: Backlog) {
        let objects = &self.metrics;
        objects.backlog_rows.set(signed(backlog.rows));
        objects.backlog_bytes.set(signed(backlog.bytes));
        let refusal = self.limit.refusal(backlog);
        match (&refusal, self.status.backlog_refusal().is_some()) {
            (Some(reason), false) => tracing::error!("writes are refused: {reason}"),
            (None, true) => {
                tracing::info!("writes are accepted again: object storage has caught up")
            }
            _ => {}
        }
        self.status.set_backlog_refusal(refusal);
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Families;
    use crate::objects::test_support::{FakeSource, World};

    #[test]
    fn the_limit_is_inclusive_and_can_be_disabled() {
        let limit = BacklogLimit { bytes_max: 10 };
        let backlog = |bytes| Backlog { rows: 1, bytes };
        assert_eq!(limit.refusal(backlog(10)), None);
        let reason = limit.refusal(backlog(11)).unwrap();
        assert!(
            reason.contains("11 bytes") && reason.contains("backlog_bytes_max"),
            "{reason}"
        );
        let none = BacklogLimit { bytes_max: 0 };
        assert_eq!(none.refusal(backlog(u64::MAX)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn writes_are_refused_while_the_backlog_is_over_its_limit() {
        let world = Arc::new(World::default());
        let status = Arc::new(ObjectStatus::default());
        let metrics = Arc::new(ObjectMetrics::new(&Families::new()));
        let second = Duration::from_secs(1);
        let watch = BacklogWatch {
            source: Arc::new(FakeSource::new(&world, 1)),
            limit: BacklogLimit { bytes_max: 5 },
            interval: second,
            status: Arc::clone(&status),
            metrics: Arc::clone(&metrics),
        };
        let running = tokio::spawn(async move { watch.run().await });
        sleep(second / 2).await;
        assert_eq!(status.backlog_refusal(), None);
        // Two segments of three bytes each.
        world.seal(1, 2);
        sleep(second).await;
        assert!(status.backlog_refusal().is_some());
        assert_eq!(metrics.backlog_bytes.get(), 6);
        assert_eq!(metrics.backlog_rows.get(), 20);
        // The database is unavailable, so the last known backlog remains valid.
        world.state().is_away = true;
        sleep(second).await;
        assert!(status.backlog_refusal().is_some());
        world.state().is_away = false;
        world.state().local.clear();
        sleep(second).await;
        assert_eq!(status.backlog_refusal(), None);
        assert_eq!(metrics.backlog_bytes.get(), 0);
        running.abort();
    }
}
