//! The log, as sinks see it: whether it is open, what the store contains already, and a way to put
//! entries.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot, watch};

use super::release::Bounds;
use crate::clock;
use crate::objects::model::ObjectMetrics;
use crate::objects::model::record::{Change, Head, RegistryRecord};

/// The maximum number of waiting puts. Further ones wait for room. There are no more than batches
/// in flight.
const JOBS_MAX: usize = 64;

/// Why an entry is not known to be durable.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum LogError {
    /// The store is not open, or was lost meanwhile.
    #[error(
        "the object store is not open in this gateway (GET /-/ready shows why), so acknowledgement level \"object\" cannot be kept now"
    )]
    NotOpen,
    /// The store refused.
    #[error("{0}")]
    Refused(String),
}

/// An entry, and what is written together with it.
#[derive(Debug, Default)]
pub struct Put {
    /// The entry's head and its name, if there is an entry.
    pub entry: Option<(String, Head)>,
    /// Everything to write, including the entry and its head.
    pub changes: Vec<Change>,
    /// The scope, oid and version of the table whose definition is included.
    pub table: Option<(String, u32, i64)>,
    /// A scope and its registry, whose series up to its last id are included or already in the
    /// store.
    pub registry: Option<(String, RegistryRecord)>,
}

pub(super) struct Job {
    pub(super) put: Put,
    pub(super) reply: oneshot::Sender<Result<(), LogError>>,
}

/// Held while the definition of one table is put.
type TableLock = Arc<tokio::sync::Mutex<()>>;

/// The log of one gateway.
pub struct ObjectLog {
    jobs: mpsc::Sender<Job>,
    is_open: watch::Sender<bool>,
    known: Mutex<Known>,
    /// Locks of tables. A lock is held from before a definition is read until it is put, so that
    /// the latest definition that was read is the last one put.
    defining: Mutex<HashMap<(String, u32), TableLock>>,
    metrics: Arc<ObjectMetrics>,
}

/// What the store contains.
#[derive(Default)]
struct Known {
    /// Tables whose definitions are in the store, and their version; `None` if another gateway has
    /// put them.
    tables: HashMap<(String, u32), Option<i64>>,
    registries: HashMap<String, RegistryRecord>,
    heads: BTreeMap<String, Arc<Head>>,
    bytes: u64,
    bounds: Bounds,
}

impl ObjectLog {
    pub(super) fn new(metrics: Arc<ObjectMetrics>) -> (Arc<Self>, mpsc::Receiver<Job>) {
        let (jobs, received) = mpsc::channel(JOBS_MAX);
        let log = Self {
            jobs,
            is_open: watch::Sender::new(false),
            known: Mutex::default(),
            defining: Mutex::default(),
            metrics,
        };
        (Arc::new(log), received)
    }

    /// Whether entries are accepted.
    ///
    /// # Errors
    /// Returns an error if they are not.
    pub fn check_open(&self) -> Result<(), LogError> {
        if *self.is_open.borrow() {
            Ok(())
        } else {
            Err(LogError::NotOpen)
        }
    }

    /// Whether the store has this version of a table's definition.
    pub fn knows_table(&self, scope: &str, target: u32, version: i64) -> bool {
        let known = self.known.lock();
        known.tables.get(&(scope.to_owned(), target)) == Some(&Some(version))
    }

    /// Acquires the lock of a table. It has to be held from before the definition is read until it
    /// is put.
    pub async fn defining(&self, scope: &str, target: u32) -> tokio::sync::OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.defining.lock();
            // Locks that nobody holds or waits for are dropped, so that the map does not grow with
            // every table that ever existed.
            locks.retain(|_, lock| Arc::strong_count(lock) > 1);
            Arc::clone(locks.entry((scope.to_owned(), target)).or_default())
        };
        lock.lock_owned().await
    }

    /// The tables of a database whose definitions are in the store.
    pub(crate) fn tables(&self, scope: &str) -> Vec<u32> {
        let known = self.known.lock();
        let of_scope = known.tables.keys().filter(|(name, _)| name == scope);
        of_scope.map(|(_, target)| *target).collect()
    }

    /// Records that this version of a table's definition is in the store.
    pub(crate) fn learn_table(&self, scope: &str, target: u32, version: i64) {
        let mut known = self.known.lock();
        known
            .tables
            .insert((scope.to_owned(), target), Some(version));
    }

    /// The last id of a registry's series in the store; 0 if there is none.
    pub fn last_series(&self, scope: &str, epoch: &str) -> i32 {
        let known = self.known.lock();
        let registry = known.registries.get(scope);
        registry
            .filter(|registry| registry.epoch == epoch)
            .map_or(0, |registry| registry.last_id)
    }

    /// Puts an entry, and returns once it is durable.
    ///
    /// # Errors
    /// Returns an error if the entry is not known to be durable. It may nevertheless be, or become
    /// so. Its rows are committed, and it may be put again.
    pub async fn put(&self, put: Put) -> Result<(), LogError> {
        self.check_open()?;
        let started = clock::now();
        let mut open = self.is_open.subscribe();
        let (reply, replied) = oneshot::channel();
        let written = async {
            let sent = self.jobs.send(Job { put, reply }).await;
            sent.map_err(|_| LogError::NotOpen)?;
            replied.await.unwrap_or(Err(LogError::NotOpen))
        };
        let result = tokio::select! {
            biased;
            result = written => result,
            _ = open.wait_for(|open| !open) => Err(LogError::NotOpen),
        };
        let seconds = (clock::now() - started).as_secs_f64();
        self.metrics.log.put_seconds.observe(seconds);
        result
    }

    /// Records that the store is open, and what it contains.
    pub(super) fn open(
        &self,
        heads: BTreeMap<String, Arc<Head>>,
        registries: HashMap<String, RegistryRecord>,
        tables: impl IntoIterator<Item = (String, u32)>,
    ) {
        let bytes = heads.values().map(|head| head.bytes).sum();
        *self.known.lock() = Known {
            tables: tables.into_iter().map(|table| (table, None)).collect(),
            registries,
            heads,
            bytes,
            bounds: Bounds::new(),
        };
        self.is_open.send_replace(true);
    }

    /// Records that the store is lost.
    pub(super) fn close(&self) {
        self.is_open.send_replace(false);
    }

    /// Records that a put is durable.
    pub(super) fn learn(&self, put: Put) {
        let mut known = self.known.lock();
        let Known {
            tables,
            registries,
            heads,
            bytes,
            ..
        } = &mut *known;
        if let Some((scope, target, version)) = put.table {
            tables.insert((scope, target), Some(version));
        }
        if let Some((scope, registry)) = put.registry {
            let is_behind = |known: &RegistryRecord| {
                known.epoch != registry.epoch || known.last_id < registry.last_id
            };
            if registries.get(&scope).is_none_or(is_behind) {
                registries.insert(scope, registry);
            }
        }
        if let Some((name, head)) = put.entry {
            *bytes += head.bytes;
            if let Some(before) = heads.insert(name, Arc::new(head)) {
                *bytes -= before.bytes;
            }
        }
    }

    /// The entries of one database that are durable by now.
    pub(super) fn heads(&self, scope: &str) -> Vec<(String, Arc<Head>)> {
        let prefix = format!("head/{scope}/");
        let known = self.known.lock();
        let heads = known.heads.range(prefix.clone()..);
        heads
            .take_while(|(name, _)| name.starts_with(&prefix))
            .map(|(name, head)| (name.clone(), Arc::clone(head)))
            .collect()
    }

    /// Records that entries were deleted.
    pub(super) fn forget(&self, names: &[String]) {
        let mut known = self.known.lock();
        for name in names {
            if let Some(head) = known.heads.remove(name) {
                known.bytes -= head.bytes;
            }
        }
    }

    /// Calls a function with what release remembers of rewritten tables.
    pub(super) fn with_bounds<R>(&self, use_them: impl FnOnce(&mut Bounds) -> R) -> R {
        use_them(&mut self.known.lock().bounds)
    }

    /// Records that a table's definition was deleted.
    pub(super) fn forget_table(&self, scope: &str, target: u32) {
        let mut known = self.known.lock();
        known.tables.remove(&(scope.to_owned(), target));
    }

    /// Updates the gauges.
    pub(super) fn show(&self) {
        let known = self.known.lock();
        let oldest = known.heads.values().map(|head| head.logged_ms).min();
        let age = oldest.map_or(0, |oldest| clock::unix_ms().saturating_sub(oldest));
        let objects = &self.metrics;
        objects.log.entries.set(known.heads.len() as i64);
        objects.log.bytes.set(known.bytes.try_into().unwrap_or(0));
        objects.log.age_seconds.set(age as f64 / 1000.0);
    }
}
