//! SlateDB as a [`Store`].
//!
//! ```text
//! i<key>   nothing       read by keys()
//! s<key>   the image     read by get()
//! r<name>  a record      read by records()
//! ```
//!
//! The first two are written and deleted in one batch. A scan reads values together with their
//! keys, so without the first kind a scan of all keys would read all images.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use object_store::ObjectStore;
use object_store::path::Path;
use parking_lot::Mutex;
use slatedb::admin::{Admin, AdminBuilder};
use slatedb::compactor::{Compaction, CompactionSpec, SourceId};
use slatedb::config::{FlushOptions, FlushType, ReadOptions, ScanOptions};
use slatedb::db_cache::SplitCache;
use slatedb::db_cache::moka::{MokaCache, MokaCacheOptions};
use slatedb::{CloseReason, Db, DbReaderMode, ErrorKind, WriteBatch, WriteHandle};
use tokio::time::timeout;

use super::cache_metrics::CacheMetrics;
use super::location::Location;
use super::observed::{LastError, Observed};
use super::reader::StoreReader;
use super::slate_settings::settings;
use super::{Images, Opener, Store, StoreError};
use crate::objects::model::ObjectMetrics;
use crate::objects::model::record::Change;

/// The timeout for reading one image, including SlateDB's repetitions.
pub const GET_TIMEOUT: Duration = Duration::from_secs(20);
/// The timeout for opening the store: some dozen requests, and the log since the last table.
const OPEN_TIMEOUT: Duration = Duration::from_secs(60);
/// The timeout for writing what is unwritten when the gateway stops. What is not written by then is
/// put again by the next gateway.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);
/// The number of bytes that a scan of keys reads at once.
pub(crate) const READ_AHEAD_BYTES: usize = 1 << 20;
/// The id of the only scope of the cache.
pub(crate) const CACHE_ID: u64 = 0;

/// The folder of SlateDB's manifests. A store has at least one.
const MANIFESTS: &str = "manifest";

const INDEX: u8 = b'i';
pub(crate) const IMAGE: u8 = b's';
pub(crate) const RECORD: u8 = b'r';

/// Opens SlateDB.
pub struct SlateOpener {
    objects: Objects,
    metadata_bytes_max: usize,
    metrics: Arc<ObjectMetrics>,
}

enum Objects {
    At(Location),
    Given(Arc<dyn ObjectStore>),
}

impl SlateOpener {
    /// Creates an opener for the store at `location`, which caches `metadata_bytes_max` of its
    /// indexes and filters.
    pub fn new(location: Location, metadata_bytes_max: usize, metrics: Arc<ObjectMetrics>) -> Self {
        Self {
            objects: Objects::At(location),
            metadata_bytes_max,
            metrics,
        }
    }

    /// Returns the object store with counted requests, the path of the store in it, and the holder
    /// of its last error.
    fn observed(&self) -> Result<(Arc<dyn ObjectStore>, Path, LastError), StoreError> {
        let (objects, path) = match &self.objects {
            Objects::At(location) => location.open()?,
            Objects::Given(objects) => (Arc::clone(objects), Path::from("segments")),
        };
        let last_error = LastError::default();
        let observed = Observed::new(objects, Arc::clone(&self.metrics), last_error.clone());
        Ok((Arc::new(observed), path, last_error))
    }

    /// Creates an opener for a store in an object store, which is treated like a directory.
    pub fn on(objects: Arc<dyn ObjectStore>, metrics: Arc<ObjectMetrics>) -> Self {
        Self {
            objects: Objects::Given(objects),
            metadata_bytes_max: 1 << 20,
            metrics,
        }
    }
}

impl Opener for SlateOpener {
    type Store = SlateStore;
    type Reader = StoreReader;

    async fn read(&self) -> Result<Option<StoreReader>, StoreError> {
        let (observed, path, last_error) = self.observed()?;
        let opening = async {
            let manifests = path.clone().join(MANIFESTS);
            let mut manifests = observed.list(Some(&manifests));
            match manifests.next().await {
                None => return Ok(None),
                Some(Err(error)) => return Err(error.to_string()),
                Some(Ok(_)) => {}
            }
            let reading = StoreReader::of(path, Arc::clone(&observed), DbReaderMode::FollowLatest);
            reading.await.map(Some)
        };
        match timeout(OPEN_TIMEOUT, opening).await {
            Ok(opened) => opened.map_err(StoreError::Unavailable),
            Err(_) => Err(late("opened", OPEN_TIMEOUT, &last_error)),
        }
    }

    async fn open(&self) -> Result<SlateStore, StoreError> {
        let (observed, path, last_error) = self.observed()?;
        let has_conditional_put = match &self.objects {
            Objects::At(location) => location.has_conditional_put(),
            Objects::Given(_) => false,
        };
        let cache = metadata_cache(self.metadata_bytes_max);
        let admin = AdminBuilder::new(path.clone(), Arc::clone(&observed)).build();
        let opening = Db::builder(path, observed)
            .with_settings(settings(has_conditional_put))
            .with_db_cache(cache, CACHE_ID)
            .with_metrics_recorder(Arc::new(CacheMetrics::new(Arc::clone(&self.metrics))))
            .build();
        match timeout(OPEN_TIMEOUT, opening).await {
            Ok(Ok(db)) => Ok(SlateStore {
                db,
                last: Mutex::default(),
                last_error,
                admin,
            }),
            Ok(Err(error)) => Err(store_error(&error)),
            Err(_) => Err(late("opened", OPEN_TIMEOUT, &last_error)),
        }
    }
}

/// Creates a cache for indexes and filters only. The database caches images itself.
pub(crate) fn metadata_cache(bytes_max: usize) -> Arc<SplitCache> {
    let metadata = MokaCache::new_with_opts(MokaCacheOptions {
        max_capacity: bytes_max as u64,
        ..MokaCacheOptions::default()
    });
    Arc::new(SplitCache::new().with_meta_cache(Some(Arc::new(metadata))))
}

/// An open SlateDB.
pub struct SlateStore {
    db: Db,
    /// The last write. Writes become durable in their order.
    last: Mutex<Option<WriteHandle>>,
    last_error: LastError,
    admin: Admin,
}

impl SlateStore {
    async fn write_batch(&self, batch: WriteBatch) -> Result<(), StoreError> {
        let handle = self
            .db
            .write(batch)
            .await
            .map_err(|error| store_error(&error))?;
        let mut last = self.last.lock();
        if last
            .as_ref()
            .is_none_or(|last| last.seqnum() < handle.seqnum())
        {
            *last = Some(handle);
        }
        Ok(())
    }
}

impl Images for SlateStore {
    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        let options = ReadOptions::new().with_cache_blocks(false);
        let key = spelt(IMAGE, key);
        match timeout(GET_TIMEOUT, self.db.get_with_options(key, &options)).await {
            Ok(result) => result.map_err(|error| store_error(&error)),
            Err(_) => Err(late("read", GET_TIMEOUT, &self.last_error)),
        }
    }
}

impl Store for SlateStore {
    async fn put(&self, key: &str, image: Bytes) -> Result<(), StoreError> {
        let mut batch = WriteBatch::new();
        batch.put_bytes(Bytes::from(spelt(IMAGE, key)), image);
        batch.put(spelt(INDEX, key), b"");
        self.write_batch(batch).await
    }

    async fn durable(&self) -> Result<(), StoreError> {
        let last = self.last.lock().clone();
        match last {
            Some(last) => last
                .await_durable()
                .await
                .map_err(|error| store_error(&error)),
            None => Ok(()),
        }
    }

    async fn delete(&self, keys: &[String]) -> Result<(), StoreError> {
        if keys.is_empty() {
            return Ok(());
        }
        let mut batch = WriteBatch::new();
        for key in keys {
            batch.delete(spelt(IMAGE, key));
            batch.delete(spelt(INDEX, key));
        }
        self.write_batch(batch).await?;
        self.durable().await
    }

    async fn write(&self, changes: Vec<Change>) -> Result<(), StoreError> {
        if changes.is_empty() {
            return Ok(());
        }
        let mut batch = WriteBatch::new();
        for change in changes {
            let name = spelt(RECORD, &change.name);
            match change.value {
                Some(value) => batch.put_bytes(Bytes::from(name), value),
                None => batch.delete(name),
            }
        }
        self.write_batch(batch).await
    }

    async fn records(
        &self,
        prefix: &str,
        each: &mut (dyn FnMut(&str, Bytes) + Send),
    ) -> Result<(), StoreError> {
        let options = ScanOptions::new().with_read_ahead_bytes(READ_AHEAD_BYTES);
        let mut scan = self
            .db
            .scan_prefix_with_options(spelt(RECORD, prefix), .., &options)
            .await
            .map_err(|error| store_error(&error))?;
        while let Some(entry) = scan.next().await.map_err(|error| store_error(&error))? {
            if let Ok(name) = str::from_utf8(&entry.key[1..]) {
                each(name, entry.value);
            }
        }
        Ok(())
    }

    async fn keys(&self, each: &mut (dyn FnMut(&str) + Send)) -> Result<(), StoreError> {
        let options = ScanOptions::new().with_read_ahead_bytes(READ_AHEAD_BYTES);
        let mut scan = self
            .db
            .scan_prefix_with_options([INDEX], .., &options)
            .await
            .map_err(|error| store_error(&error))?;
        while let Some(entry) = scan.next().await.map_err(|error| store_error(&error))? {
            // Keys were text when they were put.
            if let Ok(key) = str::from_utf8(&entry.key[1..]) {
                each(key);
            }
        }
        Ok(())
    }

    async fn reclaim(&self) -> Result<bool, StoreError> {
        let failed = |error: slatedb::Error| store_error(&error);
        let look = async || self.admin.read_compactor_state_view().await;
        let before = look().await.map_err(failed)?;
        let mut compactions = before.compactions().into_iter();
        if compactions.any(|known| known.recent_compactions().any(Compaction::active)) {
            return Ok(false);
        }
        // The flush writes the deletions to the tables.
        let flush = FlushOptions {
            flush_type: FlushType::MemTable,
        };
        self.db.flush_with_options(flush).await.map_err(failed)?;
        let view = look().await.map_err(failed)?;
        let (tables, runs) = (view.manifest().l0(), view.manifest().compacted());
        let tables = tables.iter().map(|table| SourceId::SstView(table.id));
        let sources = tables.chain(runs.iter().map(|run| SourceId::SortedRun(run.id)));
        // There must be nothing below the destination that a deletion hides.
        let destination = runs.iter().map(|run| run.id).min().unwrap_or(0);
        let spec = CompactionSpec::new(sources.collect(), destination);
        self.admin.submit_compaction(spec).await.map_err(failed)?;
        Ok(true)
    }

    async fn closed(&self) -> StoreError {
        let mut status = self.db.subscribe();
        // If the sender is dropped, the database is closed.
        let reason = match status
            .wait_for(|status| status.close_reason.is_some())
            .await
        {
            Ok(status) => status.close_reason,
            Err(_) => None,
        };
        closed(reason)
    }

    async fn close(&self) {
        match timeout(CLOSE_TIMEOUT, self.db.close()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!("the object store was closed: {error}"),
            Err(_) => tracing::warn!(
                "the object store was not closed within {CLOSE_TIMEOUT:?}; segments being put will be put again later"
            ),
        }
    }
}

pub(crate) fn spelt(kind: u8, key: &str) -> Vec<u8> {
    [&[kind], key.as_bytes()].concat()
}

fn closed(reason: Option<CloseReason>) -> StoreError {
    match reason {
        Some(CloseReason::Fenced) => StoreError::Fenced,
        Some(reason) => StoreError::Closed(format!("the object store was closed ({reason:?})")),
        None => StoreError::Closed("the object store was closed".to_owned()),
    }
}

fn late(what: &str, bound: Duration, last_error: &LastError) -> StoreError {
    let why = last_error.take().unwrap_or_else(|| "no answer".to_owned());
    StoreError::Unavailable(format!(
        "the object store could not be {what} within {bound:?}: {why}"
    ))
}

fn store_error(error: &slatedb::Error) -> StoreError {
    match error.kind() {
        ErrorKind::Closed(reason) => closed(Some(reason)),
        _ => StoreError::Unavailable(format!("object store: {error}")),
    }
}
