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

/// Serializable isolation: this transaction is about to write the relation.
///
/// # Safety
/// Open relation.
#[inline]
pub unsafe fn CheckForSerializableConflictIn(relation: pg_sys::Relation) {
    // SAFETY: the caller's promise; the boundary turns an ERROR into a panic.
    unsafe {
        // Other transactions keep no record of what they read, and the check would return at once.
        if pg_sys::XactIsoLevel != pg_sys::XACT_SERIALIZABLE as i32 {
            return;
        }
        pg_sys::ffi::pg_guard_ffi_boundary(|| {
            check_conflict_in(relation, std::ptr::null_mut(), pg_sys::InvalidBlockNumber)
        })
    }
}
