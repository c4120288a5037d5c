//! Conflicts over a row: who holds it, and how to wait for them.

#![allow(
    non_upper_case_globals,
    reason = "PostgreSQL's own names of lock modes"
)]

use lanes_columnar::arena::RunEntry;
use pgrx::pg_sys;
use pgrx::pg_sys::LockTupleMode::{
    LockTupleExclusive, LockTupleKeyShare, LockTupleNoKeyExclusive, LockTupleShare,
};
use pgrx::pg_sys::TM_Result;

use crate::pg::lock::RowQueueLock;
use crate::pg::snapshot::Snapshot;
use crate::pg::table::OpenTable;
use crate::pg::{ports, transaction};
use crate::storage::directory::{FLAG_COMMITTED, FLAG_DEAD, FLAG_FROZEN};
use crate::storage::tombstone::{FLAG_MOVED, Tail, Tombstone, kind};
use crate::table::kept::Extent;
use crate::table::reader::{Content, Reader};
use crate::table::visibility::{XidStatus, xid_status};
use crate::table::{one_row, pending_rows, row_numbers, tid};

/// A mode of row locks.
pub type LockMode = pg_sys::LockTupleMode::Type;

/// The offset of a tuple id that means "moved to another partition" (`MovedPartitionsOffsetNumber`).
const MOVED_OFFSET: u16 = 0xfffd;

/// Whether a command may change or lock a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Free,
    /// Another transaction, still under way, holds a lock or made a change that conflicts.
    Busy(u32),
    /// The row does not exist for this command.
    Invisible,
    /// A later command of this transaction deleted or updated the row.
    SelfModified(Tombstone),
    Updated(Tombstone),
    Deleted(Tombstone),
}

/// Whether two lock modes exclude each other.
fn conflicts(a: LockMode, b: LockMode) -> bool {
    let (weak, strong) = (a.min(b), a.max(b));
    match strong {
        LockTupleExclusive => true,
        LockTupleNoKeyExclusive => weak >= LockTupleShare,
        _ => false,
    }
}

/// Decides whether a command may lock a row in `mode`, by its run and its tombstones. `is_successor`: an update
/// leads to the row, so the transaction that inserted it need not have committed.
pub fn judge(
    run: &RunEntry,
    tombstones: &[Tombstone],
    command: pg_sys::CommandId,
    mode: LockMode,
    is_successor: bool,
) -> Verdict {
    if run.flags & FLAG_DEAD != 0 {
        return Verdict::Invisible;
    }
    if run.flags & (FLAG_FROZEN | FLAG_COMMITTED) == 0 {
        match xid_status(run.xmin) {
            XidStatus::Current if run.cmin < command => {}
            XidStatus::Committed => {}
            XidStatus::Current | XidStatus::Running if is_successor => {}
            _ => return Verdict::Invisible,
        }
    }
    let mut busy = None;
    for tombstone in tombstones {
        if tombstone.kind == kind::VOID {
            continue;
        }
        if tombstone.deletes() && tombstone.is_frozen() {
            return gone(tombstone);
        }
        match (xid_status(tombstone.xmax), tombstone.deletes()) {
            (XidStatus::Aborted, _) | (XidStatus::Committed | XidStatus::Current, false) => {}
            (XidStatus::Committed, true) => return gone(tombstone),
            (XidStatus::Current, true) if tombstone.cmax >= command => {
                return Verdict::SelfModified(*tombstone);
            }
            (XidStatus::Current, true) => return Verdict::Invisible,
            (XidStatus::Running, _) => {
                if conflicts(tombstone.mode as LockMode, mode) {
                    busy = Some(tombstone.xmax);
                }
            }
        }
    }
    busy.map_or(Verdict::Free, Verdict::Busy)
}

fn gone(tombstone: &Tombstone) -> Verdict {
    if tombstone.kind == kind::UPDATE || tombstone.flags & FLAG_MOVED != 0 {
        Verdict::Updated(*tombstone)
    } else {
        Verdict::Deleted(*tombstone)
    }
}

/// Where a deleted row's next version is: the row itself when there is none.
fn successor(tombstone: &Tombstone) -> pg_sys::ItemPointerData {
    if tombstone.flags & FLAG_MOVED != 0 {
        let mut moved = tid::from_row(tombstone.row);
        moved.ip_blkid = pg_sys::BlockIdData {
            bi_hi: u16::MAX,
            bi_lo: u16::MAX,
        };
        moved.ip_posid = MOVED_OFFSET;
        return moved;
    }
    tid::from_row(if tombstone.kind == kind::UPDATE {
        tombstone.next_row
    } else {
        tombstone.row
    })
}

impl Verdict {
    /// The result of an operation that ends with this verdict. Reports who took the row.
    pub fn report(self, failure: &mut pg_sys::TM_FailureData) -> TM_Result::Type {
        let (result, tombstone) = match self {
            Verdict::Free => return TM_Result::TM_Ok,
            Verdict::Busy(_) => return TM_Result::TM_BeingModified,
            Verdict::Invisible => return TM_Result::TM_Invisible,
            Verdict::SelfModified(tombstone) => (TM_Result::TM_SelfModified, tombstone),
            Verdict::Updated(tombstone) => (TM_Result::TM_Updated, tombstone),
            Verdict::Deleted(tombstone) => (TM_Result::TM_Deleted, tombstone),
        };
        failure.ctid = successor(&tombstone);
        failure.xmax = tombstone.xmax.into();
        failure.cmax = match result {
            TM_Result::TM_SelfModified => tombstone.cmax,
            _ => pg_sys::InvalidCommandId,
        };
        result
    }
}

/// What an operation does about a row that another transaction holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    Wait,
    GiveUp,
    Fail,
}

/// A row that an operation is going to change or lock.
pub struct RowClaim<'a> {
    table: OpenTable<'a>,
    pub row: u64,
    mode: LockMode,
    command: pg_sys::CommandId,
    /// What the operation is called in a report of a deadlock.
    reason: pg_sys::XLTW_Oper::Type,
    /// Whether this transaction has locked the row before. It must not queue then: whoever is first in the queue may
    /// wait for that lock.
    has_lock: bool,
    /// Whether an update leads to the row: see [`judge`].
    is_successor: bool,
    queue: Option<RowQueueLock<'a>>,
}

/// A row as it is before it is changed. Its values never change.
#[derive(Clone, Copy)]
pub struct OldRow<'a> {
    pub reader: &'a Reader<'a>,
    pub content: &'a Content,
    pub row: u64,
}

/// The state of a row, which nobody can change as long as the tail is held.
pub struct HeldRow<'a> {
    pub reader: Reader<'a>,
    pub content: Content,
    pub tail: Tail,
    pub run: RunEntry,
    pub verdict: Verdict,
}

impl HeldRow<'_> {
    /// The row locks of other transactions that are under way.
    pub fn locks_of_others(&self, row: u64) -> Vec<Tombstone> {
        let tombstones = self.content.tombstones.borrow();
        let running =
            |t: &&Tombstone| t.kind == kind::LOCK && xid_status(t.xmax) == XidStatus::Running;
        tombstones
            .of_row(row)
            .iter()
            .filter(running)
            .copied()
            .collect()
    }

    /// The transaction or subtransaction by which this transaction has locked the row.
    pub fn own_lock(&self, row: u64) -> Option<u32> {
        let tombstones = self.content.tombstones.borrow();
        let is_own =
            |t: &&Tombstone| t.kind == kind::LOCK && xid_status(t.xmax) == XidStatus::Current;
        tombstones.of_row(row).iter().find(is_own).map(|t| t.xmax)
    }

    /// The new version of the row that another transaction, still under way, is making.
    pub fn successor_in_progress(&self, row: u64) -> Option<u64> {
        let tombstones = self.content.tombstones.borrow();
        let running =
            |t: &&Tombstone| t.kind == kind::UPDATE && xid_status(t.xmax) == XidStatus::Running;
        tombstones
            .of_row(row)
            .iter()
            .find(running)
            .map(|t| t.next_row)
    }

    /// Whether a further snapshot, if there is one, sees the row.
    pub fn passes(&mut self, crosscheck: Option<Snapshot<'_>>, row: u64) -> bool {
        crosscheck
            .is_none_or(|snapshot| one_row::visible_row(&mut self.content, snapshot, row).is_some())
    }
}

impl<'a> RowClaim<'a> {
    /// A claim on a row of a table.
    pub fn new(
        table: OpenTable<'a>,
        row: u64,
        mode: LockMode,
        command: pg_sys::CommandId,
        reason: pg_sys::XLTW_Oper::Type,
    ) -> RowClaim<'a> {
        RowClaim {
            table,
            row,
            mode,
            command,
            reason,
            has_lock: false,
            is_successor: false,
            queue: None,
        }
    }

    /// Claims another row instead. `is_successor`: see [`judge`].
    pub fn move_to(&mut self, row: u64, is_successor: bool) {
        self.queue = None;
        self.has_lock = false;
        self.is_successor = is_successor;
        self.row = row;
    }

    /// The mode in which the row is claimed.
    pub fn mode(&self) -> LockMode {
        self.mode
    }

    /// Locks the tombstone tail and judges the row. `None`: there is no such row.
    pub fn hold(&mut self) -> Option<HeldRow<'a>> {
        let mode = self.mode;
        self.hold_in(|_| mode)
    }

    /// Holds the row in a mode that depends on what it is. `mode_for` is called before the tail is locked.
    pub fn hold_in(
        &mut self,
        mode_for: impl FnOnce(OldRow<'_>) -> LockMode,
    ) -> Option<HeldRow<'a>> {
        row_numbers::keep(self.table);
        pending_rows::flush_table(self.table.oid());
        let descriptor = self.table.descriptor();
        let mut reader = Reader::open_to(self.table, descriptor, Extent::Run(self.row));
        let content = reader.content.take()?;
        let run = content.run_of(self.row).map(|(_, run)| run);
        row_numbers::check_row_of(self.table, &content, run.as_ref());
        let run = run?;
        self.mode = mode_for(OldRow {
            reader: &reader,
            content: &content,
            row: self.row,
        });
        let tail = Tail::lock(self.table, &content.meta);
        content
            .tombstones
            .borrow_mut()
            .read_on(self.table, &content.meta, Some(&tail));
        let verdict = judge(
            &run,
            content.tombstones.borrow().of_row(self.row),
            self.command,
            self.mode,
            self.is_successor,
        );
        let held = HeldRow {
            reader,
            content,
            tail,
            run,
            verdict,
        };
        self.has_lock |= held.own_lock(self.row).is_some();
        Some(held)
    }

    /// Waits until a transaction is over; false if patience ends first. The tail is not held.
    pub fn wait_for(&mut self, xid: u32, patience: Patience) -> bool {
        let id = tid::from_row(self.row);
        let lock_mode = match self.mode {
            LockTupleKeyShare => pg_sys::AccessShareLock,
            LockTupleShare => pg_sys::RowShareLock,
            LockTupleNoKeyExclusive => pg_sys::ExclusiveLock,
            _ => pg_sys::AccessExclusiveLock,
        } as i32;
        let must_queue = self.queue.is_none() && !self.has_lock;
        if patience == Patience::Wait {
            if must_queue {
                self.queue = Some(RowQueueLock::acquire(self.table, id, lock_mode));
            }
            self.table.wait_for_transaction(xid, id, self.reason);
            return true;
        }
        if must_queue {
            self.queue = RowQueueLock::try_acquire(self.table, id, lock_mode);
        }
        (self.queue.is_some() || self.has_lock) && ports::ConditionalXactLockTableWait(xid)
    }

    /// A tombstone of the current transaction for the row. The transaction gets its id here if it has none.
    pub fn tombstone(&self, kind: u16, next_row: u64, flags: u32) -> Tombstone {
        Tombstone {
            row: self.row,
            next_row,
            xmax: transaction::current_xid(),
            cmax: self.command,
            kind,
            mode: self.mode as u16,
            flags,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_modes_conflict_as_postgres_documents() {
        let modes = [
            LockTupleKeyShare,
            LockTupleShare,
            LockTupleNoKeyExclusive,
            LockTupleExclusive,
        ];
        let table = [
            [false, false, false, true],
            [false, false, true, true],
            [false, true, true, true],
            [true, true, true, true],
        ];
        for (i, a) in modes.iter().enumerate() {
            for (j, b) in modes.iter().enumerate() {
                assert_eq!(conflicts(*a, *b), table[i][j], "{a} against {b}");
            }
        }
    }
}
