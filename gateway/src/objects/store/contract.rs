//! What is kept: images of segments under keys, as a trait.

use std::future::Future;

use bytes::Bytes;
use thiserror::Error;

use crate::objects::model::record::Change;
use crate::objects::source::SourceError;

/// Why the store did not do what it should.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum StoreError {
    /// Another gateway has opened the store: this handle is of no more use, and opening it again would fence the other one.
    #[error("another gateway has opened the object store")]
    Fenced,
    /// This handle is of no more use; the store may be opened again.
    #[error("{0}")]
    Closed(String),
    /// Try again.
    #[error("{0}")]
    Unavailable(String),
}

/// Why a round of offloading or collecting ended early.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum RoundError {
    /// The database.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What segments are read from.
pub trait Images: Send + Sync + 'static {
    /// The image under a key, within a bounded time.
    fn get(&self, key: &str) -> impl Future<Output = Result<Option<Bytes>, StoreError>> + Send;
}

/// A store that another gateway may have open.
pub trait Reader: Images {
    /// A record, if it is there; within a bounded time.
    fn record(&self, name: &str) -> impl Future<Output = Result<Option<Bytes>, StoreError>> + Send;

    /// Gives it back.
    fn close(&self) -> impl Future<Output = ()> + Send;
}

/// An open store, of which this is the one writer until [`StoreError::Fenced`].
pub trait Store: Images {
    /// Takes an image; durable after [`durable`](Store::durable). Waits while too much is not written yet. What was there under the
    /// key is replaced.
    fn put(&self, key: &str, image: Bytes) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Waits until all that was put before is durable, however long that takes.
    fn durable(&self) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Deletes keys, durably.
    fn delete(&self, keys: &[String]) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Takes changes of records, all or none; durable after [`durable`](Store::durable), and no earlier than what was put before.
    fn write(&self, changes: Vec<Change>) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Tells of each record whose name begins so, in the order of names.
    fn records(
        &self,
        prefix: &str,
        each: &mut (dyn FnMut(&str, Bytes) + Send),
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Tells of each key.
    fn keys(
        &self,
        each: &mut (dyn FnMut(&str) + Send),
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Begins to rewrite what is there without what was deleted, so that its bytes go too: some minutes later. False:
    /// not now, as something of it is being rewritten.
    fn reclaim(&self) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Returns when this handle is of no more use, and why.
    fn closed(&self) -> impl Future<Output = StoreError> + Send;

    /// Writes what is not written yet and ends, within a bounded time.
    fn close(&self) -> impl Future<Output = ()> + Send;
}

/// What opens a store.
pub trait Opener: Send + Sync + 'static {
    /// What is opened.
    type Store: Store;
    /// The store as a gateway reads it that may not write there.
    type Reader: Reader;

    /// Opens the store beside whoever has it, within a bounded time. `None`: there is nothing yet.
    fn read(&self) -> impl Future<Output = Result<Option<Self::Reader>, StoreError>> + Send;

    /// Opens the store as its one writer, which fences the one before; within a bounded time.
    fn open(&self) -> impl Future<Output = Result<Self::Store, StoreError>> + Send;
}
