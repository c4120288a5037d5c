//! What is asked of the database: the functions of schema `lanes` that offloading and recall go by, as a trait.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use thiserror::Error;

use crate::objects::model::History;

/// A sealed segment that is older than its table's `hot`, and still local.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueSegment {
    /// The table's oid.
    pub target: u32,
    /// The part that it belongs to: offloaded whole.
    pub part: i64,
    /// Its first row's number.
    pub first_row: i64,
    /// Rows.
    pub rows: i64,
    /// Bytes of its image.
    pub bytes: i64,
    /// Its key in object storage: the same at each call, and never another segment's.
    pub key: String,
}

/// The rows that a part takes the place of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartRows {
    /// The storage id of the table's file.
    pub storage: u64,
    /// From this row on,
    pub first_row: u64,
    /// up to this one, which is none of them.
    pub end_row: u64,
    /// The types of the table's columns by their places; `None` where one was dropped.
    pub types: Vec<Option<String>>,
    /// Up to where the database's WAL is on disk.
    pub wal_place: u64,
}

/// Rows of a table that are nowhere but there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalRows {
    /// The table's oid.
    pub target: u32,
    /// The storage id of its file.
    pub storage: u64,
    /// From this row on,
    pub first_row: u64,
    /// up to this one, which is none of them. A table without such rows has one empty range.
    pub end_row: u64,
}

/// A table's definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// What `lanes.table_definition` answers.
    pub json: String,
    /// Changes whenever the definition may.
    pub version: i64,
}

/// Sealed segments that are older than their tables' `hot`, and still in the database's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Backlog {
    /// Their rows.
    pub rows: u64,
    /// Bytes of their images.
    pub bytes: u64,
}

/// What a database says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Identity {
    /// `<system id>/<database's oid>`.
    pub scope: String,
    /// What tells its data directory from a copy of it.
    pub directory: String,
    /// `None`: it is a standby.
    pub primary: Option<Primary>,
}

/// Where a primary is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Primary {
    /// Its timelines.
    pub history: History,
    /// Up to where its WAL is on disk.
    pub wal_place: u64,
}

/// Why a call failed.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum SourceError {
    /// The database's extension has no such function.
    #[error("{0}")]
    Unsupported(String),
    /// The session is lost, and the claim with it if it was the one that had it. What became of the call is unknown.
    #[error("{0}")]
    Lost(String),
    /// The call failed, the session is good.
    #[error("{0}")]
    Failed(String),
}

/// A database with tables whose segments may be elsewhere. All calls from [`due`](Source::due) to [`scope`](Source::scope) but [`backlog`](Source::backlog) run in the
/// session that has the claim, and fail with [`SourceError::Lost`] without one.
pub trait Source: Send + Sync + 'static {
    /// Whether the functions are there.
    fn supports(&self) -> impl Future<Output = Result<(), SourceError>> + Send;

    /// What tells the database from others.
    fn identity(&self) -> impl Future<Output = Result<Identity, SourceError>> + Send;

    /// What tells the database behind the session that has the claim from others: with several hosts in the connection
    /// string, or one address for a primary and its standby, each session may lead to another server.
    fn claimed_identity(&self) -> impl Future<Output = Result<Identity, SourceError>> + Send;

    /// Takes the claim, if no other gateway has it. True if this one has it now.
    fn claim(&self) -> impl Future<Output = Result<bool, SourceError>> + Send;

    /// Gives the claim up, and ends all sessions.
    fn release(&self) -> impl Future<Output = ()> + Send;

    /// Segments due for offload: whole parts, oldest first, about so many segments.
    fn due(&self, wanted: i32)
    -> impl Future<Output = Result<Vec<DueSegment>, SourceError>> + Send;

    /// How much is due, whoever has the claim.
    fn backlog(&self) -> impl Future<Output = Result<Backlog, SourceError>> + Send;

    /// A segment's bytes.
    fn image(
        &self,
        segment: &DueSegment,
    ) -> impl Future<Output = Result<Bytes, SourceError>> + Send;

    /// Marks a part remote, whose segments are all durable. False if it is no longer live, which makes them orphans.
    fn commit(
        &self,
        target: u32,
        part: i64,
    ) -> impl Future<Output = Result<bool, SourceError>> + Send;

    /// The rows of a part; `None` if it is no longer live.
    fn part_rows(
        &self,
        target: u32,
        part: i64,
    ) -> impl Future<Output = Result<Option<PartRows>, SourceError>> + Send;

    /// A table's definition; `None` if there is no such table.
    fn definition(
        &self,
        target: u32,
    ) -> impl Future<Output = Result<Option<Definition>, SourceError>> + Send;

    /// Versions of the definitions of those of these tables that there are.
    fn definition_versions(
        &self,
        targets: &[u32],
    ) -> impl Future<Output = Result<Vec<(u32, i64)>, SourceError>> + Send;

    /// The timelines that led to the database's present state.
    fn history(&self) -> impl Future<Output = Result<History, SourceError>> + Send;

    /// The rows of all tables that are nowhere but there.
    fn local_rows(&self) -> impl Future<Output = Result<Vec<LocalRows>, SourceError>> + Send;

    /// Tells of each key that a live remote part names.
    fn remote_keys(
        &self,
        each: &mut (dyn FnMut(&str) + Send),
    ) -> impl Future<Output = Result<(), SourceError>> + Send;

    /// What this database's keys begin with: `<system id>/<database's oid>`.
    fn scope(&self) -> impl Future<Output = Result<String, SourceError>> + Send;

    /// Waits until queries want segments, at most so long; the keys of those.
    fn wanted(
        &self,
        wait: Duration,
    ) -> impl Future<Output = Result<Vec<String>, SourceError>> + Send;

    /// Gives a wanted segment.
    fn supply(
        &self,
        key: &str,
        image: &[u8],
    ) -> impl Future<Output = Result<(), SourceError>> + Send;

    /// Tells those who wait for a segment why they wait in vain.
    fn fail(&self, key: &str, reason: &str)
    -> impl Future<Output = Result<(), SourceError>> + Send;
}
