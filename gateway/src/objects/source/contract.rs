//! The calls to the database: the functions of schema `lanes` for offloading and recall, as a
//! trait.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use thiserror::Error;

use crate::objects::model::History;

/// A sealed segment that is older than its table's `hot`, and still local.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueSegment {
    /// The oid of the table.
    pub target: u32,
    /// The part that the segment belongs to. Parts are offloaded as a whole.
    pub part: i64,
    /// The number of its first row.
    pub first_row: i64,
    /// The number of rows.
    pub rows: i64,
    /// The bytes of its image.
    pub bytes: i64,
    /// Its key in object storage. It is stable, and never that of another segment.
    pub key: String,
}

/// The rows that a part replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartRows {
    /// The storage id of the table's file.
    pub storage: u64,
    /// The first row.
    pub first_row: u64,
    /// The end of the rows (exclusive).
    pub end_row: u64,
    /// The types of the table's columns by position; `None` for a dropped column.
    pub types: Vec<Option<String>>,
    /// The position up to which the database's WAL is flushed.
    pub wal_place: u64,
}

/// Rows of a table that are only in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalRows {
    /// The oid of the table.
    pub target: u32,
    /// The storage id of its file.
    pub storage: u64,
    /// The first row.
    pub first_row: u64,
    /// The end of the rows (exclusive). A table without such rows has one empty range.
    pub end_row: u64,
}

/// The definition of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// The result of `lanes.table_definition`.
    pub json: String,
    /// A number that changes whenever the definition may have changed.
    pub version: i64,
}

/// Sealed segments that are older than their tables' `hot`, and still in the database's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Backlog {
    /// The number of their rows.
    pub rows: u64,
    /// The bytes of their images.
    pub bytes: u64,
}

/// The identity of a database.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Identity {
    /// `<system id>/<database's oid>`.
    pub scope: String,
    /// Distinguishes its data directory from copies of it.
    pub directory: String,
    /// Its state as a primary; `None` if it is a standby.
    pub primary: Option<Primary>,
}

/// The state of a primary.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Primary {
    /// Its timelines.
    pub history: History,
    /// The position up to which its WAL is flushed.
    pub wal_place: u64,
}

/// Why a call failed.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum SourceError {
    /// The database's extension lacks the function.
    #[error("{0}")]
    Unsupported(String),
    /// The session is lost, and with it the claim if the session had it. The outcome of the call is
    /// unknown.
    #[error("{0}")]
    Lost(String),
    /// The call failed, but the session is usable.
    #[error("{0}")]
    Failed(String),
}

/// A database with tables whose segments may be in object storage. All calls from
/// [`due`](Source::due) to [`scope`](Source::scope) except [`backlog`](Source::backlog) run in the
/// session that has the claim, and fail with [`SourceError::Lost`] without one.
pub trait Source: Send + Sync + 'static {
    /// Checks whether the database has the functions.
    fn supports(&self) -> impl Future<Output = Result<(), SourceError>> + Send;

    /// Returns the identity of the database.
    fn identity(&self) -> impl Future<Output = Result<Identity, SourceError>> + Send;

    /// Returns the identity of the database behind the session that has the claim. With several
    /// hosts in the connection string, or one address for a primary and its standby, each session
    /// may lead to another server.
    fn claimed_identity(&self) -> impl Future<Output = Result<Identity, SourceError>> + Send;

    /// Acquires the claim if no other gateway has it. Returns whether this one has it now.
    fn claim(&self) -> impl Future<Output = Result<bool, SourceError>> + Send;

    /// Releases the claim, and ends all sessions.
    fn release(&self) -> impl Future<Output = ()> + Send;

    /// Returns segments that are due for offload: whole parts, oldest first, about `wanted`
    /// segments.
    fn due(&self, wanted: i32)
    -> impl Future<Output = Result<Vec<DueSegment>, SourceError>> + Send;

    /// Returns how much is due, regardless of the claim.
    fn backlog(&self) -> impl Future<Output = Result<Backlog, SourceError>> + Send;

    /// Returns the image of a segment.
    fn image(
        &self,
        segment: &DueSegment,
    ) -> impl Future<Output = Result<Bytes, SourceError>> + Send;

    /// Marks a part as remote after all its segments are durable. Returns false if it is no longer
    /// live, so that its segments are orphans.
    fn commit(
        &self,
        target: u32,
        part: i64,
    ) -> impl Future<Output = Result<bool, SourceError>> + Send;

    /// Returns the rows of a part; `None` if it is no longer live.
    fn part_rows(
        &self,
        target: u32,
        part: i64,
    ) -> impl Future<Output = Result<Option<PartRows>, SourceError>> + Send;

    /// Returns the definition of a table; `None` if it does not exist.
    fn definition(
        &self,
        target: u32,
    ) -> impl Future<Output = Result<Option<Definition>, SourceError>> + Send;

    /// Returns the versions of the definitions of those tables that exist.
    fn definition_versions(
        &self,
        targets: &[u32],
    ) -> impl Future<Output = Result<Vec<(u32, i64)>, SourceError>> + Send;

    /// Returns the timelines that led to the database's current state.
    fn history(&self) -> impl Future<Output = Result<History, SourceError>> + Send;

    /// Returns the rows of all tables that are only in the database.
    fn local_rows(&self) -> impl Future<Output = Result<Vec<LocalRows>, SourceError>> + Send;

    /// Calls `each` for each key that a live remote part names.
    fn remote_keys(
        &self,
        each: &mut (dyn FnMut(&str) + Send),
    ) -> impl Future<Output = Result<(), SourceError>> + Send;

    /// Returns the prefix of this database's keys: `<system id>/<database's oid>`.
    fn scope(&self) -> impl Future<Output = Result<String, SourceError>> + Send;

    /// Waits at most `wait` until queries request segments. Returns their keys.
    fn wanted(
        &self,
        wait: Duration,
    ) -> impl Future<Output = Result<Vec<String>, SourceError>> + Send;

    /// Supplies a requested segment.
    fn supply(
        &self,
        key: &str,
        image: &[u8],
    ) -> impl Future<Output = Result<(), SourceError>> + Send;

    /// Reports to waiting queries why a segment cannot be read.
    fn fail(&self, key: &str, reason: &str)
    -> impl Future<Output = Result<(), SourceError>> + Send;
}
