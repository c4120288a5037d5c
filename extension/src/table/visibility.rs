//! Whether the work of a transaction counts under a snapshot. The rules are those of the heap
//! (`HeapTupleSatisfiesMVCC` and its siblings), applied to a run or a tombstone instead of a tuple.
//!
//! The first line that applies decides. Dead and fading are flags of runs only.
//!
//! ```text
//! dead                       -> counts for nobody
//! fading                     -> counts for MVCC snapshots for which the transaction is in progress
//! frozen                     -> counts for everybody
//! the current transaction    -> counts if its command came before the snapshot's
//! in the snapshot's list     -> does not count: it was in progress when the snapshot was taken
//! committed                  -> counts
//! anything else              -> aborted or crashed: does not count
//! ```
//! The transaction id of a fading run is one of the time at which the sealing took its rows out, so
//! those snapshots were taken before that. The last four lines are those of MVCC snapshots. The
//! function `counts` of this file has the rules of the other kinds.

use lanes_columnar::arena::RunEntry;

use crate::pg::snapshot::{Snapshot, SnapshotKind};
use crate::pg::transaction;
use crate::storage::directory::{FLAG_COMMITTED, FLAG_DEAD, FLAG_FADING, FLAG_FROZEN};
use crate::storage::tombstone::Tombstone;

pub use crate::pg::transaction::precedes as xid_precedes;

/// The state of a transaction, without regard to a snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum XidStatus {
    /// The current transaction, or a live subtransaction of it.
    Current,
    /// In progress in another session, or prepared.
    Running,
    Committed,
    Aborted,
}

/// The state of a transaction now.
pub fn xid_status(xid: u32) -> XidStatus {
    // A transaction may commit between the look-ups. Then one of them finds it, because "in
    // progress" is tested first.
    if transaction::is_current(xid) {
        XidStatus::Current
    } else if transaction::is_under_way(xid) {
        XidStatus::Running
    } else if transaction::did_commit(xid) {
        XidStatus::Committed
    } else {
        XidStatus::Aborted
    }
}

impl Snapshot<'_> {
    /// Whether the rows of a run exist under this snapshot. `learned` gets flags that later checks
    /// may rely on.
    #[inline]
    pub fn sees_run(self, run: &RunEntry, learned: impl FnOnce(u32)) -> bool {
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

    /// Whether the deletion of a tombstone counts under this snapshot.
    pub fn sees_deletion(self, tombstone: &Tombstone) -> bool {
        if !tombstone.deletes() {
            return false;
        }
        if tombstone.is_frozen() {
            return true;
        }
        self.counts(tombstone.xmax, tombstone.cmax, false, |_| {}, true)
    }

    /// Whether the snapshot was taken before a transaction of another session ended.
    fn precedes_end_of(self, xid: u32) -> bool {
        match self.kind() {
            SnapshotKind::Mvcc => !transaction::is_current(xid) && self.was_under_way(xid),
            SnapshotKind::Any => true,
            _ => false,
        }
    }

    fn counts(
        self,
        xid: u32,
        cid: u32,
        known_committed: bool,
        learned: impl FnOnce(u32),
        is_deletion: bool,
    ) -> bool {
        match self.kind() {
            SnapshotKind::Mvcc => {
                if !known_committed && transaction::is_current(xid) {
                    return cid < self.command();
                }
                if self.was_under_way(xid) {
                    return false;
                }
                if known_committed {
                    return true;
                }
                let committed = transaction::did_commit(xid);
                // A commit record that is not flushed yet may still be lost, and the flag must not
                // survive that. It does not, because the arena ends with the server.
                learned(if committed { FLAG_COMMITTED } else { FLAG_DEAD });
                committed
            }
            // All rows that were ever inserted exist, and no deletion counts.
            SnapshotKind::Any => !is_deletion,
            SnapshotKind::Dirty => match xid_status(xid) {
                XidStatus::Current | XidStatus::Committed => true,
                XidStatus::Aborted => false,
                XidStatus::Running if is_deletion => {
                    self.report_deleter(xid);
                    false
                }
                XidStatus::Running => {
                    self.report_inserter(xid);
                    true
                }
            },
            SnapshotKind::NonVacuumable => match xid_status(xid) {
                XidStatus::Current | XidStatus::Running => !is_deletion,
                XidStatus::Committed => !is_deletion || self.is_removable(xid),
                XidStatus::Aborted => false,
            },
            SnapshotKind::Current => {
                matches!(xid_status(xid), XidStatus::Current | XidStatus::Committed)
            }
            SnapshotKind::Historic => pgrx::error!(
                "lanes tables cannot be read under a historic (logical decoding) snapshot"
            ),
        }
    }
}
