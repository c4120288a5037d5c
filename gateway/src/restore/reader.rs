//! The store, read beside whoever has it.

use std::sync::Arc;

use bytes::Bytes;
use object_store::ObjectStore;
use object_store::path::Path;
use slatedb::DbReader;
use slatedb::config::ScanOptions;

use crate::objects::Location;
use crate::objects::slate::{IMAGE, READ_AHEAD_BYTES, RECORD, spelt};

/// An object store that is only read.
pub struct StoreReader {
    reader: DbReader,
}

impl StoreReader {
    /// Opens what is at a location.
    ///
    /// # Errors
    /// There is nothing, or it cannot be read.
    pub async fn open(location: &Location) -> Result<Self, String> {
        if let Location::Directory(directory) = location
            && !directory.is_dir()
        {
            return Err(format!(
                "{}: there is no such directory",
                directory.display()
            ));
        }
        let (objects, path) = location.open().map_err(|error| error.to_string())?;
        Self::of(path, objects).await
    }

    /// Opens what lies below a path of an object store.
    ///
    /// # Errors
    /// As for [`StoreReader::open`].
    pub async fn of(path: Path, objects: Arc<dyn ObjectStore>) -> Result<Self, String> {
        let reader = DbReader::builder(path, objects).build().await;
        let reader =
            reader.map_err(|error| format!("the object store cannot be opened: {error}"))?;
        Ok(Self { reader })
    }

    /// A segment's image.
    ///
    /// # Errors
    /// It is not there, or cannot be read.
    pub async fn image(&self, key: &str) -> Result<Bytes, String> {
        self.get(IMAGE, key).await
    }

    /// A record.
    ///
    /// # Errors
    /// It is not there, or cannot be read.
    pub async fn record(&self, name: &str) -> Result<Bytes, String> {
        self.get(RECORD, name).await
    }

    async fn get(&self, kind: u8, name: &str) -> Result<Bytes, String> {
        match self.reader.get(spelt(kind, name)).await {
            Ok(Some(value)) => Ok(value),
            Ok(None) => Err(format!("{name} is not in the object store")),
            Err(error) => Err(format!("{name} cannot be read: {error}")),
        }
    }

    /// All records whose names begin so, in the order of names.
    ///
    /// # Errors
    /// They cannot be read.
    pub async fn records(&self, prefix: &str) -> Result<Vec<(String, Bytes)>, String> {
        let failed = |error: slatedb::Error| format!("{prefix} cannot be read: {error}");
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

    /// Gives the store back.
    pub async fn close(&self) {
        // It is read no more, so its error is nobody's.
        let _ = self.reader.close().await;
    }
}
