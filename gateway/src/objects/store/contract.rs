//! The object store as a trait: images of segments and records under keys.

use std::future::Future;

use bytes::Bytes;
use thiserror::Error;

use crate::objects::model::record::Change;
use crate::objects::source::SourceError;

/// Why an operation of the store failed.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum StoreError {
    /// Another gateway has opened the store. This handle is unusable, and opening the store again
    /// would fence the other gateway.
    #[error("another gateway has opened the object store")]
    Fenced,
    /// This handle is unusable. The store may be opened again.
    #[error("{0}")]
    Closed(String),
    /// The operation may succeed later.
    #[error("{0}")]
    Unavailable(String),
}

/// Why a round of offloading or collecting ended early.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum RoundError {
    /// The database failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A source of images.
pub trait Images: Send + Sync + 'static {
    /// Returns the image under a key, within a bounded time.
    fn get(&self, key: &str) -> impl Future<Output = Result<Option<Bytes>, StoreError>> + Send;
}

/// A store that another gateway may have open.
pub trait Reader: Images {
    /// Returns a record if it exists, within a bounded time.
    fn record(&self, name: &str) -> impl Future<Output = Result<Option<Bytes>, StoreError>> + Send;

    /// Closes the reader.
    fn close(&self) -> impl Future<Output = ()> + Send;
}

/// An open store. This handle is its only writer until [`StoreError::Fenced`].
pub trait Store: Images {
    /// Puts an image, replacing an earlier one. It is durable after [`durable`](Store::durable).
    /// Waits while too much is unwritten.
    fn put(&self, key: &str, image: Bytes) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Waits until everything put before is durable, however long that takes.
    fn durable(&self) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Deletes keys durably.
    fn delete(&self, keys: &[String]) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Writes changes of records, all or none. They are durable after [`durable`](Store::durable),
    /// and not before earlier puts.
    fn write(&self, changes: Vec<Change>) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Calls `each` for each record whose name begins with `prefix`, in the order of names.
    fn records(
        &self,
        prefix: &str,
        each: &mut (dyn FnMut(&str, Bytes) + Send),
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Calls `each` for each key.
    fn keys(
        &self,
        each: &mut (dyn FnMut(&str) + Send),
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Starts to rewrite the store without deleted values, so that their bytes are freed some
    /// minutes later. Returns false if this is not possible now because a part of the store is
    /// being rewritten.
    fn reclaim(&self) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Waits until this handle is unusable. Returns why.
    fn closed(&self) -> impl Future<Output = StoreError> + Send;

    /// Writes what is unwritten and closes the store, within a bounded time.
    fn close(&self) -> impl Future<Output = ()> + Send;
}

/// Opens a store.
pub trait Opener: Send + Sync + 'static {
    /// An open store.
    type Store: Store;
    /// A store that is opened for reading only.
    type Reader: Reader;

    /// Opens the store for reading beside its writer, within a bounded time. Returns `None` if it
    /// does not exist yet.
    fn read(&self) -> impl Future<Output = Result<Option<Self::Reader>, StoreError>> + Send;

    /// Opens the store as its only writer within a bounded time. This fences the previous writer.
    fn open(&self) -> impl Future<Output = Result<Self::Store, StoreError>> + Send;
}
