//! What INSERT, UPDATE, DELETE and row locks do to the rows of a table, as a trait.

use pgrx::pg_sys;
use pgrx::pg_sys::{CommandId, ItemPointerData, TM_FailureData, TM_Result};

use crate::pg::slot::Slot;
use crate::pg::snapshot::Snapshot;
use crate::pg::table::OpenTable;

/// The rows of tables, one by one.
pub trait RowAccess: 'static {
    /// Stores the row with an id in the slot, if the snapshot sees it.
    fn fetch(
        table: OpenTable<'_>,
        id: &ItemPointerData,
        snapshot: Snapshot<'_>,
        slot: Slot<'_>,
    ) -> bool;

    /// Whether the snapshot sees the slot's row.
    fn is_visible(table: OpenTable<'_>, slot: Slot<'_>, snapshot: Snapshot<'_>) -> bool;

    /// Makes `id` that of the newest version of the row that the snapshot sees.
    fn follow_updates(table: OpenTable<'_>, snapshot: Snapshot<'_>, id: &mut ItemPointerData);

    /// Inserts the slot's row. The table stays open until the executor run or the bulk insert ends.
    fn insert(
        table: OpenTable<'static>,
        slot: Slot<'_>,
        command: CommandId,
        options: i32,
        is_bulk: bool,
    );

    /// Inserts the rows of the slots.
    fn insert_all<'s>(
        table: OpenTable<'_>,
        slots: impl ExactSizeIterator<Item = Slot<'s>>,
        command: CommandId,
        options: i32,
    );

    /// Ends a bulk insert. The table is about to be closed.
    fn finish_bulk_insert(table: OpenTable<'_>);

    /// Inserts the slot's row for INSERT … ON CONFLICT, which takes the row back if an index has its key already.
    /// Another transaction that finds the row before this is decided waits on the token, and not for this transaction's
    /// end.
    fn insert_speculatively(
        table: OpenTable<'_>,
        slot: Slot<'_>,
        command: CommandId,
        options: i32,
        token: u32,
    );

    /// Decides whether the slot's row, inserted speculatively, stays.
    fn complete_speculation(table: OpenTable<'_>, slot: Slot<'_>, stays: bool);

    /// Deletes a row. `is_moved` says that the row's next version goes to another partition.
    fn delete(
        table: OpenTable<'_>,
        id: &ItemPointerData,
        command: CommandId,
        conflicts: Conflicts<'_>,
        is_moved: bool,
        failure: &mut TM_FailureData,
    ) -> TM_Result::Type;

    /// Makes the slot's row the new version of a row.
    fn update(
        table: OpenTable<'_>,
        id: &ItemPointerData,
        slot: Slot<'_>,
        command: CommandId,
        conflicts: Conflicts<'_>,
        failure: &mut TM_FailureData,
    ) -> Updated;

    /// Locks a row and stores it in the slot; `id` becomes that of the version that is locked.
    fn lock(
        table: OpenTable<'_>,
        id: &mut ItemPointerData,
        slot: Slot<'_>,
        request: RowLock,
        failure: &mut TM_FailureData,
    ) -> TM_Result::Type;
}

/// How DELETE and UPDATE treat a row that conflicts with them.
#[derive(Clone, Copy)]
pub struct Conflicts<'a> {
    /// A snapshot that has to see the row too: referential-integrity actions under REPEATABLE READ pass one.
    pub crosscheck: Option<Snapshot<'a>>,
    /// Whether to wait for a transaction that holds the row.
    pub wait: bool,
}

/// What an UPDATE has done.
pub struct Updated {
    pub result: TM_Result::Type,
    /// The mode of the lock that the UPDATE needs on the old version. After a conflict, PostgreSQL locks the row's
    /// newest version in this mode.
    pub mode: pg_sys::LockTupleMode::Type,
    /// Whether each index needs an entry for the new version.
    pub needs_entries: bool,
}

/// A lock that a command requests on a row.
#[derive(Clone, Copy)]
pub struct RowLock {
    pub command: CommandId,
    pub mode: pg_sys::LockTupleMode::Type,
    pub policy: pg_sys::LockWaitPolicy::Type,
    /// Whether to lock the newest version if the row was updated.
    pub follows_updates: bool,
}
