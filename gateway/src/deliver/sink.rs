//! The calls of the gateway to a database.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::model::{AckLevel, ColumnKind, Digest, InsertPrivilege, Table, Target};
use crate::series::{LabelSet, SeriesId};

/// A batch to append.
#[derive(Debug, Clone, Copy)]
pub struct Append<'a> {
    /// The promise that must hold when the call returns.
    pub level: AckLevel,
    /// The table to append to.
    pub target: Target,
    /// The encoded batch.
    pub batch: &'a [u8],
    /// The distinct digests of the requests in the batch that have one.
    pub digests: &'a [Digest],
    /// For each digest, the digest of its body if it has to be compared with that of the request
    /// applied before.
    pub bodies: &'a [Option<Digest>],
    /// For each digest, the number of rows before those of its request, and the number of its rows.
    pub places: &'a [(usize, usize)],
}

impl<'a> Append<'a> {
    /// `digests` and `bodies` in the form of parameters. Both `lanes.append_once` and
    /// `lanes.append_logged` take them.
    pub(super) fn digest_bytes(&self) -> (Vec<&'a [u8]>, Vec<Option<&'a [u8]>>) {
        let digests = self.digests.iter().map(|digest| digest.0.as_slice());
        let bodies = self.bodies.iter();
        let bodies = bodies.map(|body| body.as_ref().map(|body| body.0.as_slice()));
        (digests.collect(), bodies.collect())
    }
}

/// A request that was applied before, by any gateway.
#[derive(Debug, Clone, Copy)]
pub struct Repeated<'a> {
    /// The table that it was appended to.
    pub target: Target,
    /// The digest by which it was recognised.
    pub digest: Digest,
    /// The rows of this request, as a batch.
    pub batch: &'a [u8],
}

/// The ids of label sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    /// The ids, in the order requested.
    pub ids: Vec<SeriesId>,
    /// The registry generation that they belong to.
    pub generation: u64,
}

/// The health of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Health {
    /// Whether there are synchronous standbys to wait for, so that level `replica` can be kept.
    pub has_standbys: bool,
    /// The number of synchronous standbys that commits wait for and that are not connected.
    pub missing_standbys: i32,
    /// The number of registered series.
    pub series: i64,
}

/// Why a call failed.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum SinkError {
    /// The call may succeed later: the database is unavailable, busy, or needs an operator. The
    /// outcome of this call may be unknown.
    #[error("{0}")]
    Unavailable(String),
    /// The session was lost before the answer arrived. The rows may be applied, and without a
    /// digest this cannot be found out.
    #[error(
        "{0}; it is unknown whether the request is stored (with an Idempotency-Key it could be repeated safely)"
    )]
    OutcomeUnknown(String),
    /// The data is refused and would be refused again. Nothing was applied.
    #[error("{0}")]
    Refused(String),
    /// Some digests exist already. Nothing was applied.
    #[error("requests at {applied:?} were applied before")]
    Duplicates {
        /// The indexes of requests that were applied before.
        applied: Vec<usize>,
        /// The indexes of requests whose key was applied before with another body. Each is also in
        /// `applied`.
        reused: Vec<usize>,
    },
    /// The gateway's role lacks a privilege. Nothing was applied.
    #[error("{0}")]
    Forbidden(String),
    /// The table no longer exists, or its columns have changed. Nothing was applied.
    #[error("{0}")]
    TableChanged(String),
    /// The ids belong to another registry. Nothing was applied.
    #[error("the series registry has changed; send the request again")]
    OtherRegistry,
}

/// The message for level `object` if there is no log.
pub const NO_LOG: &str = "acknowledgement level \"object\" requires object storage: set objects.url in the gateway's configuration";

/// A database.
pub trait Sink: Send + Sync + 'static {
    /// Returns the same database for another thread. Sessions are driven by the thread that opened
    /// them.
    fn for_another_thread(self: &Arc<Self>) -> Arc<Self> {
        Arc::clone(self)
    }

    /// Returns the ids of `label_sets`. Unknown ones are registered durably.
    fn register(
        &self,
        label_sets: &[&LabelSet],
    ) -> impl Future<Output = Result<Registered, SinkError>> + Send;

    /// Returns the ids of those of `label_sets` that are registered; 0 for others.
    fn look_up(
        &self,
        label_sets: &[&LabelSet],
    ) -> impl Future<Output = Result<Registered, SinkError>> + Send;

    /// Describes the table with this schema and name; `None` if it does not exist.
    fn describe(
        &self,
        schema: &str,
        table: &str,
    ) -> impl Future<Output = Result<Option<Table>, SinkError>> + Send;

    /// Looks up whether a role may insert into a table: `schema.table`, quoted where SQL requires it.
    fn may_insert(
        &self,
        role: &str,
        table: &str,
    ) -> impl Future<Output = Result<InsertPrivilege, SinkError>> + Send;

    /// Creates a lanes table with these nullable columns, unless a table with this name exists.
    fn create(
        &self,
        schema: &str,
        table: &str,
        columns: &[(&str, ColumnKind)],
        is_unlogged: bool,
    ) -> impl Future<Output = Result<(), SinkError>> + Send;

    /// Appends one batch and its digests in one transaction, at its level.
    fn append(&self, append: Append<'_>) -> impl Future<Output = Result<(), SinkError>> + Send;

    /// Makes everything committed so far as durable as `level`. Used for requests whose digest was
    /// found and which may have been committed by another gateway.
    fn confirm(&self, level: AckLevel) -> impl Future<Output = Result<(), SinkError>> + Send;

    /// Puts a request that was applied before into the log of object storage. Used at level
    /// [`AckLevel::Object`], after [`confirm`](Sink::confirm).
    fn log_again(
        &self,
        repeated: Repeated<'_>,
    ) -> impl Future<Output = Result<(), SinkError>> + Send {
        let _ = repeated;
        async { Err(SinkError::Unavailable(NO_LOG.to_owned())) }
    }

    /// Checks whether the database accepts batches now.
    fn health(&self) -> impl Future<Output = Result<Health, SinkError>> + Send;

    /// Removes some digests older than `window`. Returns their number; 0 if none are left.
    fn forget(&self, window: Duration) -> impl Future<Output = Result<u64, SinkError>> + Send;
}
