//! What the gateway asks of a database.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::model::{AckLevel, ColumnKind, Digest, Table, Target};
use crate::series::{LabelSet, SeriesId};

/// One batch to append.
#[derive(Debug, Clone, Copy)]
pub struct Append<'a> {
    /// What must be true when it returns.
    pub level: AckLevel,
    /// Where.
    pub target: Target,
    /// The encoded batch.
    pub batch: &'a [u8],
    /// The digests of the requests in it that have one; distinct.
    pub digests: &'a [Digest],
    /// For each of them: the digest of its body, if it is to be compared with that of the request applied before.
    pub bodies: &'a [Option<Digest>],
    /// For each of them: rows of the batch before those of its request, and how many these are.
    pub places: &'a [(usize, usize)],
}

impl<'a> Append<'a> {
    /// `digests` and `bodies` as the database takes them.
    pub(super) fn digest_bytes(&self) -> (Vec<&'a [u8]>, Vec<Option<&'a [u8]>>) {
        let digests = self.digests.iter().map(|digest| digest.0.as_slice());
        let bodies = self.bodies.iter();
        let bodies = bodies.map(|body| body.as_ref().map(|body| body.0.as_slice()));
        (digests.collect(), bodies.collect())
    }
}

/// A request that was applied before, by whomever.
#[derive(Debug, Clone, Copy)]
pub struct Repeated<'a> {
    /// Where.
    pub target: Target,
    /// What it was recognised by.
    pub digest: Digest,
    /// Its rows alone, as a batch.
    pub batch: &'a [u8],
}

/// Ids of label sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    /// In the order asked for.
    pub ids: Vec<SeriesId>,
    /// The registry generation that they belong to.
    pub generation: u64,
}

/// What a database says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Health {
    /// Whether there are synchronous standbys to wait for, so that level `replica` can be kept.
    pub has_standbys: bool,
    /// How many of the synchronous standbys that commits wait for are away.
    pub missing_standbys: i32,
    /// Series registered.
    pub series: i64,
}

/// Why a call did not do what it should.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum SinkError {
    /// Try again: the database is away, or busy, or wants an operator. What became of the call may be unknown.
    #[error("{0}")]
    Unavailable(String),
    /// The session was lost before the answer came: applied or not, and there is no digest to tell.
    #[error(
        "{0}; whether the request is stored is not known (with an Idempotency-Key it can be repeated safely)"
    )]
    OutcomeUnknown(String),
    /// Do not try again: the data is refused. Nothing was applied.
    #[error("{0}")]
    Refused(String),
    /// Some digests are there already. Nothing was applied.
    #[error("requests at {applied:?} were applied before")]
    Duplicates {
        /// Places of requests that were applied before.
        applied: Vec<usize>,
        /// Places of requests whose key was applied before with another body; each is among `applied` too.
        reused: Vec<usize>,
    },
    /// The gateway's role lacks the privilege. Nothing was applied.
    #[error("{0}")]
    Forbidden(String),
    /// The table is gone, or its columns have changed. Nothing was applied.
    #[error("{0}")]
    TableChanged(String),
    /// The ids belong to another registry. Nothing was applied.
    #[error("the series registry has changed; send the request again")]
    OtherRegistry,
}

/// What is said of level `object` where there is no log.
pub const NO_LOG: &str = "acknowledgement level \"object\" needs object storage: set objects.url in the gateway's configuration";

/// A database.
pub trait Sink: Send + Sync + 'static {
    /// The same database for another thread: sessions are driven by the thread that opened them.
    fn for_another_thread(self: &Arc<Self>) -> Arc<Self> {
        Arc::clone(self)
    }

    /// Ids of `label_sets`; those not known yet are registered, durably.
    fn register(
        &self,
        label_sets: &[&LabelSet],
    ) -> impl Future<Output = Result<Registered, SinkError>> + Send;

    /// The table of this schema and name; `None` if there is none.
    fn describe(
        &self,
        schema: &str,
        table: &str,
    ) -> impl Future<Output = Result<Option<Table>, SinkError>> + Send;

    /// Creates a lanes table of these columns, all of which take NULLs, unless there is a table of the name.
    fn create(
        &self,
        schema: &str,
        table: &str,
        columns: &[(&str, ColumnKind)],
        is_unlogged: bool,
    ) -> impl Future<Output = Result<(), SinkError>> + Send;

    /// Appends one batch and its digests in one transaction, at its level.
    fn append(&self, append: Append<'_>) -> impl Future<Output = Result<(), SinkError>> + Send;

    /// Makes what is committed by now as sure as `level`: for requests whose digest was found, committed by who knows whom.
    fn confirm(&self, level: AckLevel) -> impl Future<Output = Result<(), SinkError>> + Send;

    /// Puts a request that was applied before into the log of object storage: for level [`AckLevel::Object`], after
    /// [`confirm`](Sink::confirm).
    fn log_again(
        &self,
        repeated: Repeated<'_>,
    ) -> impl Future<Output = Result<(), SinkError>> + Send {
        let _ = repeated;
        async { Err(SinkError::Unavailable(NO_LOG.to_owned())) }
    }

    /// Whether it would take a batch now.
    fn health(&self) -> impl Future<Output = Result<Health, SinkError>> + Send;

    /// Forgets some digests older than `window`; returns how many, 0 when none are left.
    fn forget(&self, window: Duration) -> impl Future<Output = Result<u64, SinkError>> + Send;
}
