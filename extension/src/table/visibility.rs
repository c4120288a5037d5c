//! Whether a transaction's work counts under a snapshot. The rules are those of the heap
//! (`HeapTupleSatisfiesMVCC` and its siblings), applied to a run or a tombstone instead of a tuple.
//!
//! ```text
//! frozen flag            -> counts for everybody
//! dead flag              -> counts for nobody
//! fading flag            -> counts for MVCC snapshots taken before the transaction was over, whether or not it committed
//! our own transaction    -> counts when its command came before the snapshot's
//! in the snapshot's list -> does not count (it was running when the snapshot was taken)
//! committed              -> counts
//! anything else          -> aborted or crashed: does not count
//! ```

use lanes_columnar::arena::RunEntry;
use pgrx::pg_sys;

use crate::storage::directory::{FLAG_COMMITTED, FLAG_DEAD, FLAG_FADING, FLAG_FROZEN};
use crate::storage::tombstone::Tombstone;

/// A snapshot, with what is asked of it most kept at hand.
#[derive(Clone, Copy)]
pub struct Snapshot {
    raw: pg_sys::Snapshot,
    kind: pg_sys::SnapshotType::Type,
}

/// What is known of a transaction without a snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum XidStatus {
    /// Ours, or a live subtransaction of ours.
    Current,
    /// Another's, still running (or prepared).
    Running,
    Committed,
    Aborted,
}

/// The state of a transaction now.
pub fn xid_status(xid: u32) -> XidStatus {
    let id: pg_sys::TransactionId = xid.into();
    // SAFETY: plain look-ups; the order (running before committed) is the one that leaves no gap.
    unsafe {
        if pg_sys::TransactionIdIsCurrentTransactionId(id) {
            XidStatus::Current
        } else if pg_sys::TransactionIdIsInProgress(id) {
            XidStatus::Running
        } else if pg_sys::TransactionIdDidCommit(id) {
            XidStatus::Committed
        } else {
            XidStatus::Aborted
        }
    }
}

/// Whether this process runs VACUUM, so that others' snapshots pass over its transaction id, and over its snapshots
/// too.
pub fn is_vacuum() -> bool {
    // SAFETY: this process's own entry among all processes, whose flags nobody else writes.
    let flags = unsafe { (*pg_sys::MyProc).statusFlags };
    u32::from(flags) & pg_sys::PROC_IN_VACUUM != 0
}

/// `TransactionIdPrecedes` for normal transaction ids.
pub fn xid_precedes(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl Snapshot {
    /// # Safety
    /// `raw` is live as long as this value is used.
    pub unsafe fn new(raw: pg_sys::Snapshot) -> Snapshot {
        Snapshot {
            raw,
            // SAFETY: the caller's promise.
            kind: unsafe { (*raw).snapshot_type },
        }
    }

    /// The C snapshot.
    pub fn raw(&self) -> pg_sys::Snapshot {
        self.raw
    }

    /// Forgets what an earlier row told a dirty snapshot.
    pub fn reset_dirty(&self) {
        if self.kind == pg_sys::SnapshotType::SNAPSHOT_DIRTY {
            // SAFETY: live by `new`'s promise; dirty snapshots are owned by their one user.
            unsafe {
                (*self.raw).xmin = pg_sys::InvalidTransactionId;
                (*self.raw).xmax = pg_sys::InvalidTransactionId;
                (*self.raw).speculativeToken = 0;
            }
        }
    }

    /// Whether the rows of a run exist under this snapshot. `learned` is told flags that later checks may trust.
    pub fn sees_run(&self, run: &RunEntry, learned: impl FnOnce(u32)) -> bool {
        if run.flags & FLAG_DEAD != 0 {
            return false;
        }
        if run.flags & FLAG_FADING != 0 {
            return self.precedes_end_of(run.xmin);
        }
        if run.flags & FLAG_FROZEN != 0 {
            return true;
        }
        self.counts(
            run.xmin,
            run.cmin,
            run.flags & FLAG_COMMITTED != 0,
            learned,
            false,
        )
    }

    /// Whether a tombstone's deletion counts under this snapshot.
    pub fn sees_deletion(&self, tombstone: &Tombstone) -> bool {
        if !tombstone.deletes() {
            return false;
        }
        if tombstone.is_frozen() {
            return true;
        }
        self.counts(tombstone.xmax, tombstone.cmax, false, |_| {}, true)
    }

    /// Whether the snapshot was taken before a transaction of another session was over, or before it began.
    fn precedes_end_of(&self, xid: u32) -> bool {
        let id: pg_sys::TransactionId = xid.into();
        // SAFETY: live by `new`'s promise.
        unsafe {
            match self.kind {
                pg_sys::SnapshotType::SNAPSHOT_MVCC => {
                    !pg_sys::TransactionIdIsCurrentTransactionId(id)
                        && pg_sys::XidInMVCCSnapshot(id, self.raw)
                }
                pg_sys::SnapshotType::SNAPSHOT_ANY => true,
                _ => false,
            }
        }
    }

    fn counts(
        &self,
        xid: u32,
        cid: u32,
        known_committed: bool,
        learned: impl FnOnce(u32),
        is_deletion: bool,
    ) -> bool {
        let id: pg_sys::TransactionId = xid.into();
        // SAFETY: live by `new`'s promise.
        unsafe {
            match self.kind {
                pg_sys::SnapshotType::SNAPSHOT_MVCC => {
                    if !known_committed && pg_sys::TransactionIdIsCurrentTransactionId(id) {
                        return cid < (*self.raw).curcid;
                    }
                    if pg_sys::XidInMVCCSnapshot(id, self.raw) {
                        return false;
                    }
                    if known_committed {
                        return true;
                    }
                    let committed = pg_sys::TransactionIdDidCommit(id);
                    // A commit record that is not flushed yet may still be lost: a shared flag must not outlive it,
                    // but the arena dies with the server, so the flag is as short-lived as the doubt.
                    learned(if committed { FLAG_COMMITTED } else { FLAG_DEAD });
                    committed
                }
                // Everything that was ever inserted exists, and nothing of it was deleted.
                pg_sys::SnapshotType::SNAPSHOT_ANY => !is_deletion,
                pg_sys::SnapshotType::SNAPSHOT_DIRTY => match xid_status(xid) {
                    XidStatus::Current | XidStatus::Committed => true,
                    XidStatus::Aborted => false,
                    XidStatus::Running => {
                        if is_deletion {
                            (*self.raw).xmax = id;
                            false
                        } else {
                            (*self.raw).xmin = id;
                            true
                        }
                    }
                },
                pg_sys::SnapshotType::SNAPSHOT_NON_VACUUMABLE => match xid_status(xid) {
                    XidStatus::Current | XidStatus::Running => !is_deletion,
                    XidStatus::Committed => {
                        !is_deletion || pg_sys::GlobalVisTestIsRemovableXid((*self.raw).vistest, id)
                    }
                    XidStatus::Aborted => false,
                },
                pg_sys::SnapshotType::SNAPSHOT_SELF | pg_sys::SnapshotType::SNAPSHOT_TOAST => {
                    matches!(xid_status(xid), XidStatus::Current | XidStatus::Committed)
                }
                _ => pgrx::error!(
                    "lanes tables cannot be read under a historic (logical decoding) snapshot"
                ),
            }
        }
    }
}
