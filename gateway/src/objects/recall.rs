//! Segments that queries want, back: one task waits for keys, several fetch at once.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::model::ObjectMetrics;
use super::source::{Source, SourceError};
use super::store::{Images, StoreError};
use crate::clock;

/// How long one call waits for keys.
const WAIT: Duration = Duration::from_secs(5);
/// Pause where all keys were known already, and after an error.
const PAUSE: Duration = Duration::from_millis(50);
const ERROR_PAUSE: Duration = Duration::from_secs(1);

/// What recalls segments; cheap to clone.
pub struct Recall<S, T> {
    /// The database.
    pub source: Arc<S>,
    /// Where segments are.
    pub store: Arc<T>,
    /// Counters.
    pub metrics: Arc<ObjectMetrics>,
    /// Segments fetched at once, and so in memory.
    pub at_once: usize,
}

impl<S, T> Clone for Recall<S, T> {
    fn clone(&self) -> Self {
        Self {
            source: Arc::clone(&self.source),
            store: Arc::clone(&self.store),
            metrics: Arc::clone(&self.metrics),
            at_once: self.at_once,
        }
    }
}

impl<S: Source, T: Images> Recall<S, T> {
    /// Runs until it is dropped, which ends the fetches too.
    pub async fn run(self) {
        let slots = Arc::new(Semaphore::new(self.at_once));
        let fetching: Arc<Mutex<HashSet<String>>> = Arc::default();
        let mut fetches = JoinSet::new();
        loop {
            while fetches.try_join_next().is_some() {}
            let keys = match self.source.wanted(WAIT).await {
                Ok(keys) => keys,
                Err(error) => {
                    tracing::debug!("recall: {error}");
                    self.metrics.retried("recall");
                    sleep(ERROR_PAUSE).await;
                    continue;
                }
            };
            let is_any = !keys.is_empty();
            let mut is_new = false;
            for key in keys {
                if !fetching.lock().insert(key.clone()) {
                    continue;
                }
                is_new = true;
                // While all fetch, no more are asked for.
                let Ok(slot) = Arc::clone(&slots).acquire_owned().await else {
                    return;
                };
                let (recall, fetching) = (self.clone(), Arc::clone(&fetching));
                fetches.spawn(async move {
                    recall.fetch(&key).await;
                    fetching.lock().remove(&key);
                    drop(slot);
                });
            }
            if is_any && !is_new {
                sleep(PAUSE).await;
            }
        }
    }

    /// Fetches one segment and gives it to those who want it, or the reason why not.
    pub async fn fetch(&self, key: &str) {
        let objects = &self.metrics;
        let started = clock::now();
        let outcome = match self.store.get(key).await {
            Ok(Some(image)) => {
                objects.recall_bytes.inc_by(image.len() as u64);
                match self.answer(|| self.source.supply(key, &image)).await {
                    Ok(()) => "supplied",
                    // Damaged, say: those who wait should know.
                    Err(SourceError::Failed(reason)) => {
                        self.refuse(key, &reason).await;
                        "refused"
                    }
                    // Whoever waits is offered to the next gateway.
                    Err(error) => {
                        tracing::warn!(
                            key,
                            "a segment that a query wants is not supplied: {error}"
                        );
                        "unsupplied"
                    }
                }
            }
            Ok(None) => {
                self.refuse(key, "object storage has no such segment").await;
                "missing"
            }
            // Another gateway has it now, and is asked when this one does not answer.
            Err(StoreError::Fenced | StoreError::Closed(_)) => "left",
            Err(StoreError::Unavailable(reason)) => {
                self.refuse(key, &reason).await;
                "failed"
            }
        };
        objects.recalls.with_label_values(&[outcome]).inc();
        objects
            .recall_seconds
            .observe((clock::now() - started).as_secs_f64());
    }

    async fn refuse(&self, key: &str, reason: &str) {
        tracing::warn!(key, "a segment that a query wants cannot be had: {reason}");
        if let Err(error) = self.answer(|| self.source.fail(key, reason)).await {
            // Whoever waits gives up in time.
            tracing::warn!(key, "nor can that be told: {error}");
        }
    }

    /// Once more over a new session where the old one was lost: to answer twice does no harm.
    async fn answer<F>(&self, call: impl Fn() -> F) -> Result<(), SourceError>
    where
        F: Future<Output = Result<(), SourceError>>,
    {
        match call().await {
            Err(SourceError::Lost(_)) => {
                self.metrics.retried("recall");
                call().await
            }
            answered => answered,
        }
    }
}
