//! A reader of the store beside its writer.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use object_store::ObjectStore;
use object_store::path::Path;
use slatedb::config::{DbReaderOptions, ReadOptions, ScanOptions};
use slatedb::{DbReader, DbReaderMode};
use tokio::time::{sleep, timeout};

use super::location::Location;
use super::slate::{CACHE_ID, GET_TIMEOUT, IMAGE, READ_AHEAD_BYTES, RECORD, metadata_cache, spelt};
use super::{Images, Reader, StoreError};
use crate::clock;

/// The memory for indexes and filters.
const METADATA_BYTES_MAX: usize = 64 << 20;
/// The time after which written values are seen.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long the reader waits for a segment that the database names, because it sees segments a
/// little later than they are written.
const APPEARS_WITHIN: Duration = Duration::from_secs(10);

/// A store that is only read.
pub struct StoreReader {
    reader: DbReader,
}

impl StoreReader {
    /// Opens the store at a location and follows its changes. Nothing that is being read is deleted
    /// meanwhile.
    ///
    /// # Errors
    /// Returns an error if the store does not exist, or cannot be read.
    pub async fn open(location: &Location) -> Result<Self, String> {
        if let Location::Directory(directory) = location
            && !directory.is_dir()
        {
            return Err(format!("directory {} does not exist", directory.display()));
        }
        let (objects, path) = location.open().map_err(|error| error.to_string())?;
        Self::of(path, objects, DbReaderMode::ManagedCheckpoint).await
    }

    /// Opens the store at a path of an object store.
    ///
    /// # Errors
    /// Returns an error like [`StoreReader::open`].
    pub async fn of(
        path: Path,
        objects: Arc<dyn ObjectStore>,
        mode: DbReaderMode,
    ) -> Result<Self, String> {
        let options = DbReaderOptions {
            manifest_poll_interval: POLL_INTERVAL,
            ..DbReaderOptions::default()
        };
        let reader = DbReader::builder(path, objects)
            .with_options(options)
            .with_reader_mode(mode)
            .with_db_cache(metadata_cache(METADATA_BYTES_MAX), CACHE_ID)
            .build()
            .await;
        let reader = reader.map_err(|error| format!("could not open the object store: {error}"))?;
        Ok(Self { reader })
    }

    /// Returns the image of a segment.
    ///
    /// # Errors
    /// Returns an error if it does not exist, or cannot be read.
    pub async fn image(&self, key: &str) -> Result<Bytes, String> {
        self.there(IMAGE, key).await
    }

    /// Returns a record.
    ///
    /// # Errors
    /// Returns an error if it does not exist, or cannot be read.
    pub async fn record(&self, name: &str) -> Result<Bytes, String> {
        self.there(RECORD, name).await
    }

    async fn there(&self, kind: u8, name: &str) -> Result<Bytes, String> {
        let found = self.find(kind, name).await?;
        found.ok_or_else(|| format!("{name} is not in the object store"))
    }

    async fn find(&self, kind: u8, name: &str) -> Result<Option<Bytes>, String> {
        let options = ReadOptions::new().with_cache_blocks(false);
        let name_bytes = spelt(kind, name);
        let found = self.reader.get_with_options(name_bytes, &options).await;
        found.map_err(|error| format!("could not read {name}: {error}"))
    }

    /// Returns all records whose names begin with `prefix`, in the order of names.
    ///
    /// # Errors
    /// Returns an error if they cannot be read.
    pub async fn records(&self, prefix: &str) -> Result<Vec<(String, Bytes)>, String> {
        let failed = |error: slatedb::Error| format!("could not read {prefix}: {error}");
        let options = ScanOptions::new().with_read_ahead_bytes(READ_AHEAD_BYTES);
        let mut scan = self
            .reader
            .scan_prefix_with_options(spelt(RECORD, prefix), .., &options)
            .await
            .map_err(failed)?;
        let mut records = Vec::new();
        while let Some(record) = scan.next().await.map_err(failed)? {
            let name = String::from_utf8_lossy(&record.key[1..]).into_owned();
            records.push((name, record.value));
        }
        Ok(records)
    }

    /// Closes the reader.
    pub async fn close(&self) {
        // The reader is not used any more, so its error does not matter.
        let _ = self.reader.close().await;
    }
}

impl Images for StoreReader {
    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        let until = clock::now() + APPEARS_WITHIN;
        loop {
            let found = in_time(self.find(IMAGE, key)).await?;
            if found.is_some() || clock::now() >= until {
                return Ok(found);
            }
            sleep(POLL_INTERVAL).await;
        }
    }
}

impl Reader for StoreReader {
    async fn record(&self, name: &str) -> Result<Option<Bytes>, StoreError> {
        in_time(self.find(RECORD, name)).await
    }

    async fn close(&self) {
        Self::close(self).await;
    }
}

/// Awaits an operation for at most [`GET_TIMEOUT`], because SlateDB repeats failed requests
/// forever.
async fn in_time(
    finding: impl Future<Output = Result<Option<Bytes>, String>>,
) -> Result<Option<Bytes>, StoreError> {
    match timeout(GET_TIMEOUT, finding).await {
        Ok(found) => found.map_err(StoreError::Unavailable),
        Err(_) => Err(StoreError::Unavailable(format!(
            "the object store did not answer within {GET_TIMEOUT:?}"
        ))),
    }
}
