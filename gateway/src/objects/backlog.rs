//! How much waits to be offloaded, and from which amount on requests wait too.
//!
//! While the object store is away, rows stay in the database's files and requests are answered as ever: there is room for
//! [`BacklogLimit::bytes_max`]. From there on every write is answered 503 with a time to come back, until enough has gone, so that a store that is
//! away for days ends in back-pressure and not in a full disk, which ends PostgreSQL. The database is asked, not what this gateway
//! remembers: a gateway that is started while the store is away, or that stands by, refuses as well.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::model::{ObjectMetrics, ObjectStatus};
use super::source::{Backlog, Source, SourceError};

/// How much may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BacklogLimit {
    /// Bytes of images; 0 for any number.
    pub bytes_max: u64,
}

impl BacklogLimit {
    /// Why writes are refused while so much waits, if they are.
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

/// Asks again and again how much waits, and lets requests know.
pub struct BacklogWatch<S> {
    /// The database.
    pub source: Arc<S>,
    /// How much may wait.
    pub limit: BacklogLimit,
    /// How often it is asked.
    pub interval: Duration,
    /// Where requests look.
    pub status: Arc<ObjectStatus>,
    /// Gauges.
    pub metrics: Arc<ObjectMetrics>,
}

impl<S: Source> BacklogWatch<S> {
    /// Runs until it is dropped.
    pub async fn run(&self) {
        loop {
            match self.source.backlog().await {
                Ok(backlog) => self.tell(backlog),
                // An extension without the function offloads nothing, so nothing waits.
                Err(SourceError::Unsupported(_)) => self.tell(Backlog::default()),
                // What was known last holds: without a database there is nothing to write to either.
                Err(error) => tracing::debug!("what waits to be offloaded is not known: {error}"),
            }
            sleep(self.interval).await;
        }
    }

    fn tell(&self, backlog: Backlog) {
        let objects = &self.metrics;
        objects.backlog_rows.set(signed(backlog.rows));
        objects.backlog_bytes.set(signed(backlog.bytes));
        let refusal = self.limit.refusal(backlog);
        match (&refusal, self.status.backlog_refusal().is_some()) {
            (Some(reason), false) => tracing::error!("writes are refused: {reason}"),
            (None, true) => tracing::info!("writes are taken again: object storage has caught up"),
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
    fn the_limit_itself_may_wait_and_none_is_none() {
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
    async fn writes_are_refused_while_too_much_waits() {
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
        // The database away: what is known holds.
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
