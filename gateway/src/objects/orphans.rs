//! Deletion of objects that no live part names, after they have been seen for some time.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_128;

use super::model::ObjectMetrics;
use super::model::record::{self, Change};
use super::source::Source;
use super::store::{RoundError, Store, StoreError};
use crate::clock::{self, Instant};

/// The maximum number of orphans remembered from round to round. Others follow later.
const CANDIDATES_MAX: usize = 100_000;
/// The number of keys deleted in one write.
const BATCH_KEYS: usize = 1000;
/// The store is rewritten when it has at most this many live keys for each deleted one.
const LIVE_TO_DELETED: usize = 4;
/// The record with the number of keys deleted since the store was last rewritten.
const DELETED: &str = "deleted";

/// Collecting, and its state from round to round.
pub struct Orphans<S, T> {
    /// The database.
    pub source: Arc<S>,
    /// The store to collect in.
    pub store: Arc<T>,
    /// Metrics of object storage.
    pub metrics: Arc<ObjectMetrics>,
    /// How long an object must have been an orphan.
    pub age: Duration,
    /// When orphans were first seen.
    first_seen: HashMap<String, Instant>,
    /// The prefixes of this database's keys. There are several after its system id has changed.
    scopes: HashSet<String>,
}

impl<S: Source, T: Store> Orphans<S, T> {
    /// Creates the initial state.
    pub fn new(source: Arc<S>, store: Arc<T>, metrics: Arc<ObjectMetrics>, age: Duration) -> Self {
        Self {
            source,
            store,
            metrics,
            age,
            first_seen: HashMap::new(),
            scopes: HashSet::new(),
        }
    }

    /// Finds orphans, and deletes those that were first seen long enough ago. Returns their number.
    /// No part may be offloaded meanwhile.
    ///
    /// # Errors
    /// Returns an error if the database or the store fails. The state is kept in this case.
    pub async fn round(&mut self) -> Result<usize, RoundError> {
        // Hashes are kept instead of keys: a database that is years old names millions.
        let mut remote: HashSet<u128> = HashSet::new();
        if self.scopes.is_empty() {
            self.scopes.insert(self.source.scope().await?);
        }
        let scopes = &mut self.scopes;
        let mut note = |key: &str| {
            remote.insert(xxh3_128(key.as_bytes()));
            if let Some(scope) = scope_of(key)
                && !scopes.contains(scope)
            {
                scopes.insert(scope.to_owned());
            }
        };
        self.source.remote_keys(&mut note).await?;
        let (now, scopes, before) = (clock::now(), &self.scopes, &self.first_seen);
        let mut first_seen: HashMap<String, Instant> = HashMap::new();
        let mut live = 0;
        let mut look = |key: &str| {
            live += 1;
            let is_ours = scope_of(key).is_some_and(|scope| scopes.contains(scope));
            if is_ours
                && first_seen.len() < CANDIDATES_MAX
                && !remote.contains(&xxh3_128(key.as_bytes()))
            {
                let since = before.get(key).copied().unwrap_or(now);
                first_seen.insert(key.to_owned(), since);
            }
        };
        self.store.keys(&mut look).await?;
        self.first_seen = first_seen;
        let due: Vec<String> = self
            .first_seen
            .iter()
            // An orphan must have been seen twice, whatever the age.
            .filter(|(_, since)| **since < now && now - **since >= self.age)
            .map(|(key, _)| key.clone())
            .collect();
        self.delete(&due).await?;
        self.reclaim(due.len(), live - due.len()).await?;
        Ok(due.len())
    }

    /// Deletes objects, and before them the records of their parts.
    async fn delete(&mut self, due: &[String]) -> Result<(), RoundError> {
        for keys in due.chunks(BATCH_KEYS) {
            // Records are deleted before their segments, so that a part with a record is complete.
            let parts: BTreeSet<String> = keys
                .iter()
                .filter_map(|key| record::part_name_of(key))
                .collect();
            self.store
                .write(parts.into_iter().map(Change::delete).collect())
                .await?;
            self.store.delete(keys).await?;
            self.metrics.orphans.inc_by(keys.len() as u64);
            for key in keys {
                self.first_seen.remove(key);
            }
        }
        if !due.is_empty() {
            tracing::info!(objects = due.len(), "deleted orphans in object storage");
        }
        Ok(())
    }

    /// Rewrites the store once a large share of it is deleted, because SlateDB itself does so only
    /// as more is written. The store is thus never much larger than its live bytes, and each byte
    /// is rewritten a few times at most.
    async fn reclaim(&self, deleted: usize, live: usize) -> Result<(), RoundError> {
        let mut before = 0;
        let mut note = |_: &str, value: Bytes| before = record::read(DELETED, &value).unwrap_or(0);
        self.store.records(DELETED, &mut note).await?;
        let all = before + deleted;
        let count = |all: usize| vec![Change::document(DELETED.to_owned(), &all)];
        if all != before {
            self.store.write(count(all)).await?;
        }
        if all == 0 || all * LIVE_TO_DELETED < live {
            return Ok(());
        }
        match self.store.reclaim().await {
            Ok(true) => {
                self.metrics.rewritten.inc();
                self.store.write(count(0)).await?;
            }
            Ok(false) => {}
            // The next round tries again.
            Err(StoreError::Unavailable(reason)) => {
                tracing::warn!("could not rewrite the object store now: {reason}");
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

/// Returns the prefix of a key: `<system id>/<database>`.
pub fn scope_of(key: &str) -> Option<&str> {
    let (database_end, _) = key.match_indices('/').nth(1)?;
    Some(&key[..database_end])
}
