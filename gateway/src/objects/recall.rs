//! Recall of segments that queries request. One task waits for keys, and several fetch segments.

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
/// The pause after an error, or if all keys were known already.
const PAUSE: Duration = Duration::from_millis(50);
const ERROR_PAUSE: Duration = Duration::from_secs(1);

/// Recalls segments. Clones are cheap.
pub struct Recall<S, T> {
    /// The database.
    pub source: Arc<S>,
    /// The store that segments are read from.
    pub store: Arc<T>,
    /// Metrics of object storage.
    pub metrics: Arc<ObjectMetrics>,
    /// The number of segments fetched at the same time, and so held in memory.
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
    /// Runs until it is dropped, which also ends the fetches.
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
                // While all fetchers are busy, no more keys are requested.
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

    /// Fetches one segment and supplies it to the queries that wait for it, or the reason why it
    /// cannot be read.
    pub async fn fetch(&self, key: &str) {
        let objects = &self.metrics;
        let started = clock::now();
        let outcome = match self.store.get(key).await {
            Ok(Some(image)) => {
                objects.recall_bytes.inc_by(image.len() as u64);
                match self.answer(|| self.source.supply(key, &image)).await {
                    Ok(()) => "supplied",
                    // The image may be damaged. The waiting queries have to be informed.
                    Err(SourceError::Failed(reason)) => {
                        self.refuse(key, &reason).await;
                        "refused"
                    }
                    // The waiting queries are offered to the next gateway.
                    Err(error) => {
                        tracing::warn!(
                            key,
                            "could not supply a segment that a query requests: {error}"
                        );
                        "unsupplied"
                    }
                }
            }
            Ok(None) => {
                self.refuse(key, "the segment does not exist in object storage")
                    .await;
                "missing"
            }
            // Another gateway has the store now. It is asked when this one does not answer.
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
        tracing::warn!(
            key,
            "could not read a segment that a query requests: {reason}"
        );
        if let Err(error) = self.answer(|| self.source.fail(key, reason)).await {
            // The waiting queries time out.
            tracing::warn!(key, "could not report this to the query: {error}");
        }
    }

    /// Repeats the call over a new session if the old one was lost. Answering twice is harmless.
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
