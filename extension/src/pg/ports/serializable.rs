//! Serializable isolation: what was read, and conflicts with those who write it.

use pgrx::pg_sys;

use crate::pg::functions::process;
use crate::pg::snapshot::Snapshot;
use crate::pg::table::OpenTable;

unsafe extern "C-unwind" {
    fn CheckForSerializableConflictOutNeeded(
        relation: pg_sys::Relation,
        snapshot: pg_sys::Snapshot,
    ) -> bool;
    #[link_name = "CheckForSerializableConflictOut"]
    fn check_conflict_out(
        relation: pg_sys::Relation,
        xid: pg_sys::TransactionId,
        snapshot: pg_sys::Snapshot,
    );
    #[link_name = "CheckForSerializableConflictIn"]
    fn check_conflict_in(
        relation: pg_sys::Relation,
        tid: pg_sys::ItemPointer,
        block: pg_sys::BlockNumber,
    );
    #[link_name = "PredicateLockTID"]
    fn predicate_lock_row(
        relation: pg_sys::Relation,
        tid: pg_sys::ItemPointer,
        snapshot: pg_sys::Snapshot,
        inserter: pg_sys::TransactionId,
    );
    #[link_name = "PredicateLockRelation"]
    fn predicate_lock_relation(relation: pg_sys::Relation, snapshot: pg_sys::Snapshot);
}

/// Serializable isolation: this scan reads the whole relation.
pub fn PredicateLockRelation(table: OpenTable<'_>, snapshot: Snapshot<'_>) {
    let relation = table.as_ptr();
    let snapshot = snapshot.as_ptr();
    // SAFETY: the table is open and the snapshot live; the boundary turns an ERROR into a panic.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| predicate_lock_relation(relation, snapshot)) }
}

/// Serializable isolation: this transaction reads a row, which `inserter` wrote.
pub fn PredicateLockTID(
    table: OpenTable<'_>,
    mut tid: pg_sys::ItemPointerData,
    snapshot: Snapshot<'_>,
    inserter: u32,
) {
    let relation = table.as_ptr();
    let snapshot = snapshot.as_ptr();
    let tid = &raw mut tid;
    // SAFETY: the table is open and the snapshot live; the boundary turns an ERROR into a panic.
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| {
            predicate_lock_row(relation, tid, snapshot, inserter.into())
        })
    }
}

/// Serializable isolation: whether scans under this snapshot must report the writers they do not see.
pub fn serializable_check_needed(table: OpenTable<'_>, snapshot: Snapshot<'_>) -> bool {
    let relation = table.as_ptr();
    let snapshot = snapshot.as_ptr();
    // SAFETY: the table is open and the snapshot live; the boundary turns an ERROR into a panic.
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| {
            CheckForSerializableConflictOutNeeded(relation, snapshot)
        })
    }
}

/// Serializable isolation: this transaction read around a row that `xid` wrote.
pub fn CheckForSerializableConflictOut(table: OpenTable<'_>, xid: u32, snapshot: Snapshot<'_>) {
    let relation = table.as_ptr();
    let snapshot = snapshot.as_ptr();
    // SAFETY: the table is open and the snapshot live; the boundary turns an ERROR into a panic.
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| check_conflict_out(relation, xid.into(), snapshot))
    }
}

/// Serializable isolation: this transaction is about to write the relation, or a row of it.
#[inline]
pub fn CheckForSerializableConflictIn(table: OpenTable<'_>, row: Option<pg_sys::ItemPointerData>) {
    let relation = table.as_ptr();
    if process::XactIsoLevel() != pg_sys::XACT_SERIALIZABLE as i32 {
        // Other transactions keep no record of what they read, and the check would return at once.
        return;
    }
    let block = row.map_or(pg_sys::InvalidBlockNumber, |id| {
        u32::from(id.ip_blkid.bi_hi) << 16 | u32::from(id.ip_blkid.bi_lo)
    });
    let mut row = row;
    let tid = row
        .as_mut()
        .map_or(std::ptr::null_mut(), std::ptr::from_mut);
    // SAFETY: the table is open and the snapshot live; the boundary turns an ERROR into a panic.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| check_conflict_in(relation, tid, block)) }
}
