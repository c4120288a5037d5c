//! Serializable isolation: what was read, and conflicts with those who write it.

use pgrx::pg_sys;

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
///
/// # Safety
/// Open relation, live snapshot.
pub unsafe fn PredicateLockRelation(relation: pg_sys::Relation, snapshot: pg_sys::Snapshot) {
    // SAFETY: the caller's promise; the boundary turns an ERROR into a panic.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| predicate_lock_relation(relation, snapshot)) }
}

/// Serializable isolation: this transaction reads a row, which `inserter` wrote.
///
/// # Safety
/// Open relation, live snapshot.
pub unsafe fn PredicateLockTID(
    relation: pg_sys::Relation,
    mut tid: pg_sys::ItemPointerData,
    snapshot: pg_sys::Snapshot,
    inserter: u32,
) {
    let tid = &raw mut tid;
    // SAFETY: the caller's promise; the boundary turns an ERROR into a panic.
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| {
            predicate_lock_row(relation, tid, snapshot, inserter.into())
        })
    }
}

/// Serializable isolation: whether scans under this snapshot must report the writers they do not see.
///
/// # Safety
/// Open relation, live snapshot.
pub unsafe fn serializable_check_needed(
    relation: pg_sys::Relation,
    snapshot: pg_sys::Snapshot,
) -> bool {
    // SAFETY: the caller's promise; the boundary turns an ERROR into a panic.
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| {
            CheckForSerializableConflictOutNeeded(relation, snapshot)
        })
    }
}

/// Serializable isolation: this transaction read around a row that `xid` wrote.
///
/// # Safety
/// Open relation, live snapshot.
pub unsafe fn CheckForSerializableConflictOut(
    relation: pg_sys::Relation,
    xid: u32,
    snapshot: pg_sys::Snapshot,
) {
    // SAFETY: the caller's promise; the boundary turns an ERROR into a panic.
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| check_conflict_out(relation, xid.into(), snapshot))
    }
}

/// Serializable isolation: this transaction is about to write the relation, or a row of it.
///
/// # Safety
/// Open relation.
#[inline]
pub unsafe fn CheckForSerializableConflictIn(
    relation: pg_sys::Relation,
    row: Option<pg_sys::ItemPointerData>,
) {
    // SAFETY: reads the level of the transaction.
    if unsafe { pg_sys::XactIsoLevel } != pg_sys::XACT_SERIALIZABLE as i32 {
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
    // SAFETY: the caller's promise; the boundary turns an ERROR into a panic.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| check_conflict_in(relation, tid, block)) }
}
