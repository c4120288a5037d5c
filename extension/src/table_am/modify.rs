//! DELETE, UPDATE and row locks.
//!
//! All three ask the same question of a row, [`judge`], with the tombstone chain's tail locked, and either add a
//! tombstone there and then or let go and wait:
//!
//! ```text
//! loop
//!   lock the tombstone tail; read the row's tombstones
//!   judge the row for the lock mode that the operation needs
//!     free      -> add the tombstone (UPDATE: after the new version's run) and answer TM_Ok
//!     busy      -> release the tail; queue on the row's heavyweight lock; wait for that transaction; again
//!     otherwise -> answer TM_Invisible, TM_SelfModified, TM_Updated or TM_Deleted
//! ```
//!
//! The decision and the tombstone are under one lock, so a lock that is reported as taken is taken. The heavyweight
//! row lock is only the queue of those who wait.

#![allow(non_upper_case_globals, reason = "Postgres's own names of lock modes")]

use lanes_columnar::arena::RunEntry;
use pgrx::pg_sys;
use pgrx::{PgLogLevel, PgSqlErrorCode, ereport};

use super::insert;
use crate::pg::lock::RowQueueLock;
use crate::pg::{datum, ports};
use crate::storage::directory::{FLAG_COMMITTED, FLAG_DEAD, FLAG_FROZEN};
use crate::storage::tombstone::{FLAG_MOVED, Tail, Tombstone, kind};
use crate::table::append::PreparedRun;
use crate::table::reader::{Content, Reader};
use crate::table::visibility::{Snapshot, XidStatus, xid_status};
use crate::table::{one_row, row_numbers, tid};

use pg_sys::LockTupleMode::{
    LockTupleExclusive, LockTupleKeyShare, LockTupleNoKeyExclusive, LockTupleShare,
};
use pg_sys::TM_Result;

type LockMode = pg_sys::LockTupleMode::Type;

/// Offset that marks a tuple id as "moved to another partition" (`MovedPartitionsOffsetNumber`).
const MOVED_OFFSET: u16 = 0xfffd;

/// What stands between a command and a row.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Free,
    /// Another transaction, still running, holds what we need.
    Busy(u32),
    /// Not there for this command.
    Invisible,
    /// A later command of our own transaction took it.
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

fn judge(
    run: &RunEntry,
    tombstones: &[Tombstone],
    command: pg_sys::CommandId,
    mode: LockMode,
) -> Verdict {
    if run.flags & FLAG_DEAD != 0 {
        return Verdict::Invisible;
    }
    if run.flags & (FLAG_FROZEN | FLAG_COMMITTED) == 0 {
        match xid_status(run.xmin) {
            XidStatus::Current if run.cmin < command => {}
            XidStatus::Committed => {}
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

/// Reports a verdict that ends the operation without success.
unsafe fn report(verdict: &Verdict, failure: *mut pg_sys::TM_FailureData) -> TM_Result::Type {
    let (result, tombstone) = match verdict {
        Verdict::Free => return TM_Result::TM_Ok,
        Verdict::Busy(_) => return TM_Result::TM_BeingModified,
        Verdict::Invisible => return TM_Result::TM_Invisible,
        Verdict::SelfModified(tombstone) => (TM_Result::TM_SelfModified, tombstone),
        Verdict::Updated(tombstone) => (TM_Result::TM_Updated, tombstone),
        Verdict::Deleted(tombstone) => (TM_Result::TM_Deleted, tombstone),
    };
    // SAFETY: the executor's own failure record.
    unsafe {
        (*failure).ctid = successor(tombstone);
        (*failure).xmax = tombstone.xmax.into();
        (*failure).cmax = if result == TM_Result::TM_SelfModified {
            tombstone.cmax
        } else {
            pg_sys::InvalidCommandId
        };
    }
    result
}

/// How long to wait for another transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Patience {
    Wait,
    GiveUp,
    Fail,
}

/// One row that an operation is after.
struct Target {
    relation: pg_sys::Relation,
    row: u64,
    mode: LockMode,
    command: pg_sys::CommandId,
    reason: pg_sys::XLTW_Oper::Type,
    queue: Option<RowQueueLock>,
}

/// The row's state, with nobody able to change it as long as the tail is held.
struct Held {
    reader: Reader,
    content: Content,
    tail: Tail,
    run: RunEntry,
    verdict: Verdict,
}

impl Held {
    /// Row locks of other transactions that still run.
    fn locks_of_others(&self, row: u64) -> Vec<Tombstone> {
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

    /// The new version that another transaction, still running, is making of the row.
    fn successor_in_progress(&self, row: u64) -> Option<u64> {
        let tombstones = self.content.tombstones.borrow();
        let running =
            |t: &&Tombstone| t.kind == kind::UPDATE && xid_status(t.xmax) == XidStatus::Running;
        tombstones
            .of_row(row)
            .iter()
            .find(running)
            .map(|t| t.next_row)
    }
}

impl Target {
    /// Locks the tombstone tail and judges the row.
    unsafe fn hold(&self) -> Option<Held> {
        // SAFETY: the operation's caller promised an open table.
        unsafe {
            row_numbers::keep(self.relation);
            let mut reader = Reader::open(self.relation);
            let content = reader.content.take()?;
            row_numbers::check_row(self.relation, &content, self.row);
            let (_, run) = content.run_of(self.row)?;
            let tail = Tail::lock(self.relation, &content.meta);
            content
                .tombstones
                .borrow_mut()
                .read_on(self.relation, &content.meta, Some(&tail));
            let verdict = judge(
                &run,
                content.tombstones.borrow().of_row(self.row),
                self.command,
                self.mode,
            );
            Some(Held {
                reader,
                content,
                tail,
                run,
                verdict,
            })
        }
    }

    /// Waits for a transaction; false when patience ends before it does.
    unsafe fn wait_for(&mut self, xid: u32, patience: Patience) -> bool {
        let mut id = tid::from_row(self.row);
        let hardware = match self.mode {
            LockTupleKeyShare => pg_sys::AccessShareLock,
            LockTupleShare => pg_sys::RowShareLock,
            LockTupleNoKeyExclusive => pg_sys::ExclusiveLock,
            _ => pg_sys::AccessExclusiveLock,
        } as i32;
        // SAFETY: the relation is open; no lightweight lock is held here.
        unsafe {
            if patience == Patience::Wait {
                if self.queue.is_none() {
                    self.queue = Some(RowQueueLock::acquire(self.relation, id, hardware));
                }
                pg_sys::XactLockTableWait(xid.into(), self.relation, &mut id, self.reason);
                return true;
            }
            if self.queue.is_none() {
                self.queue = RowQueueLock::try_acquire(self.relation, id, hardware);
            }
            self.queue.is_some() && ports::ConditionalXactLockTableWait(xid)
        }
    }

    fn tombstone(&self, kind: u16, next_row: u64, flags: u32) -> Tombstone {
        // SAFETY: a plain call; the transaction gets its id here if it has none.
        let xmax = unsafe { pg_sys::GetCurrentTransactionId() }.into_inner();
        Tombstone {
            row: self.row,
            next_row,
            xmax,
            cmax: self.command,
            kind,
            mode: self.mode as u16,
            flags,
        }
    }
}

/// `tuple_delete`.
///
/// # Safety
/// The table access method's contract for this callback.
pub unsafe fn delete(
    relation: pg_sys::Relation,
    id: &pg_sys::ItemPointerData,
    command: pg_sys::CommandId,
    crosscheck: pg_sys::Snapshot,
    wait: bool,
    failure: *mut pg_sys::TM_FailureData,
    changing_partition: bool,
) -> TM_Result::Type {
    let Some(row) = tid::to_row(id) else {
        return TM_Result::TM_Invisible;
    };
    let mut target = Target {
        relation,
        row,
        mode: LockTupleExclusive,
        command,
        reason: pg_sys::XLTW_Oper::XLTW_Delete,
        queue: None,
    };
    // SAFETY: the caller's promise; the transaction id is assigned before the tail is locked.
    unsafe {
        ports::CheckForSerializableConflictIn(relation);
        let flags = if changing_partition { FLAG_MOVED } else { 0 };
        let tombstone = target.tombstone(kind::DELETE, row, flags);
        loop {
            let Some(mut held) = target.hold() else {
                return TM_Result::TM_Invisible;
            };
            match held.verdict {
                Verdict::Free => {
                    if !crosscheck_passes(&mut held, row, crosscheck) {
                        return TM_Result::TM_Updated;
                    }
                    // Again, with the tail held: a reader since the first check has either locked the relation, which
                    // this finds, or will find the tombstone.
                    ports::CheckForSerializableConflictIn(relation);
                    held.tail.push(relation, &tombstone);
                    pg_sys::pgstat_count_heap_delete(relation);
                    return TM_Result::TM_Ok;
                }
                Verdict::Busy(xid) => {
                    drop(held);
                    if !wait {
                        return TM_Result::TM_BeingModified;
                    }
                    target.wait_for(xid, Patience::Wait);
                }
                verdict => return report(&verdict, failure),
            }
        }
    }
}

/// `tuple_update`: a new version is a new row.
///
/// # Safety
/// The table access method's contract for this callback.
#[expect(clippy::too_many_arguments, reason = "the callback's signature")]
pub unsafe fn update(
    relation: pg_sys::Relation,
    id: &pg_sys::ItemPointerData,
    slot: *mut pg_sys::TupleTableSlot,
    command: pg_sys::CommandId,
    crosscheck: pg_sys::Snapshot,
    wait: bool,
    failure: *mut pg_sys::TM_FailureData,
    mode: *mut LockMode,
) -> TM_Result::Type {
    let Some(row) = tid::to_row(id) else {
        return TM_Result::TM_Invisible;
    };
    let mut target = Target {
        relation,
        row,
        // No index means no key that another row could refer to.
        mode: LockTupleNoKeyExclusive,
        command,
        reason: pg_sys::XLTW_Oper::XLTW_Update,
        queue: None,
    };
    // SAFETY: the caller's promise; the transaction id is assigned before the tail is locked.
    unsafe {
        *mode = target.mode;
        ports::CheckForSerializableConflictIn(relation);
        let xid = pg_sys::GetCurrentTransactionId().into_inner();
        let kinds = datum::kinds((*relation).rd_att);
        let columns = insert::columns_of((*relation).rd_att, &kinds, slot);
        loop {
            // Wait before the new version is written, not after.
            let Some(held) = target.hold() else {
                return TM_Result::TM_Invisible;
            };
            match held.verdict {
                Verdict::Free => drop(held),
                Verdict::Busy(xid) => {
                    drop(held);
                    if !wait {
                        return TM_Result::TM_BeingModified;
                    }
                    target.wait_for(xid, Patience::Wait);
                    continue;
                }
                verdict => return report(&verdict, failure),
            }
            let prepared = PreparedRun::write(relation, &kinds, &columns, 1);
            let Some(mut held) = target.hold() else {
                return TM_Result::TM_Invisible;
            };
            if held.verdict != Verdict::Free {
                continue;
            }
            if !crosscheck_passes(&mut held, row, crosscheck) {
                return TM_Result::TM_Updated;
            }
            ports::CheckForSerializableConflictIn(relation);
            let next_row = prepared.publish(xid, command, 0);
            let locks = held.locks_of_others(row);
            held.tail
                .push(relation, &target.tombstone(kind::UPDATE, next_row, 0));
            (*slot).tts_tid = tid::from_row(next_row);
            (*slot).tts_tableOid = (*relation).rd_id;
            // Locks that this update does not conflict with hold for the new version too, which nobody else sees yet.
            for lock in locks {
                let moved = Tombstone {
                    row: next_row,
                    next_row,
                    ..lock
                };
                Tail::lock(relation, &held.content.meta).push(relation, &moved);
            }
            ports::pgstat_count_heap_update(relation);
            return TM_Result::TM_Ok;
        }
    }
}

/// Referential-integrity actions under REPEATABLE READ also ask that an older snapshot sees the row.
unsafe fn crosscheck_passes(held: &mut Held, row: u64, crosscheck: pg_sys::Snapshot) -> bool {
    if crosscheck.is_null() {
        return true;
    }
    // SAFETY: a live snapshot.
    let snapshot = unsafe { Snapshot::new(crosscheck) };
    one_row::visible_row(&mut held.content, &snapshot, row).is_some()
}

/// `tuple_lock`.
///
/// # Safety
/// The table access method's contract for this callback.
#[expect(clippy::too_many_arguments, reason = "the callback's signature")]
pub unsafe fn lock(
    relation: pg_sys::Relation,
    id: *mut pg_sys::ItemPointerData,
    slot: *mut pg_sys::TupleTableSlot,
    command: pg_sys::CommandId,
    mode: LockMode,
    policy: pg_sys::LockWaitPolicy::Type,
    flags: u8,
    failure: *mut pg_sys::TM_FailureData,
) -> TM_Result::Type {
    let patience = match policy {
        pg_sys::LockWaitPolicy::LockWaitSkip => Patience::GiveUp,
        pg_sys::LockWaitPolicy::LockWaitError => Patience::Fail,
        _ => Patience::Wait,
    };
    let follow = flags as u32 & pg_sys::TUPLE_LOCK_FLAG_FIND_LAST_VERSION != 0;
    // SAFETY: the caller's promise; the transaction id is assigned before the tail is locked.
    unsafe {
        let Some(row) = tid::to_row(&*id) else {
            return TM_Result::TM_Invisible;
        };
        let mut target = Target {
            relation,
            row,
            mode,
            command,
            reason: pg_sys::XLTW_Oper::XLTW_Lock,
            queue: None,
        };
        let mut lock = target.tombstone(kind::LOCK, row, 0);
        (*failure).traversed = false;
        let mut followed: Option<Tombstone> = None;
        loop {
            let Some(held) = target.hold() else {
                return TM_Result::TM_Invisible;
            };
            match held.verdict {
                Verdict::Free => {
                    let successor = held.successor_in_progress(target.row);
                    let Held {
                        reader,
                        content,
                        tail,
                        run,
                        ..
                    } = held;
                    let already = content
                        .tombstones
                        .borrow()
                        .of_row(target.row)
                        .iter()
                        .any(|t| {
                            t.kind == kind::LOCK
                                && t.mode as LockMode >= mode
                                && xid_status(t.xmax) == XidStatus::Current
                        });
                    if already {
                        drop(tail);
                    } else {
                        tail.push(relation, &lock);
                    }
                    // A version in the making, which this lock does not conflict with, is locked along.
                    if let Some(next) = successor {
                        let along = Tombstone {
                            row: next,
                            next_row: next,
                            ..lock
                        };
                        Tail::lock(relation, &content.meta).push(relation, &along);
                    }
                    one_row::store_row(&reader, &content, &run, target.row, slot);
                    *id = tid::from_row(target.row);
                    return TM_Result::TM_Ok;
                }
                Verdict::Busy(xid) => {
                    drop(held);
                    if !target.wait_for(xid, patience) {
                        if patience == Patience::Fail {
                            ereport!(
                                PgLogLevel::ERROR,
                                PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE,
                                format!(
                                    "could not obtain lock on row in relation \"{}\"",
                                    ports::RelationGetRelationName(relation)
                                )
                            );
                        }
                        return TM_Result::TM_WouldBlock;
                    }
                }
                Verdict::Updated(ref tombstone) if follow => {
                    if tombstone.flags & FLAG_MOVED != 0 {
                        ereport!(
                            PgLogLevel::ERROR,
                            PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE,
                            "tuple to be locked was already moved to another partition due to concurrent update"
                        );
                    }
                    let tombstone = *tombstone;
                    drop(held);
                    followed = Some(tombstone);
                    (*failure).traversed = true;
                    target.queue = None;
                    target.row = tombstone.next_row;
                    lock.row = tombstone.next_row;
                    lock.next_row = tombstone.next_row;
                }
                // The newest version is a later command's of our own.
                Verdict::Invisible if let Some(tombstone) = followed => {
                    (*failure).xmax = tombstone.xmax.into();
                    (*failure).cmax = held.run.cmin;
                    return TM_Result::TM_SelfModified;
                }
                verdict => return report(&verdict, failure),
            }
        }
    }
}

/// `tuple_get_latest_tid`: follows a row's updates as far as the snapshot sees them.
///
/// # Safety
/// `relation` is an open lanes table, `raw` a live snapshot.
pub unsafe fn latest(
    relation: pg_sys::Relation,
    raw: pg_sys::Snapshot,
    id: &mut pg_sys::ItemPointerData,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let Some(mut row) = tid::to_row(id) else {
            return;
        };
        let mut reader = Reader::open(relation);
        let Some(mut content) = reader.content.take() else {
            return;
        };
        let snapshot = Snapshot::new(raw);
        loop {
            if one_row::visible_row(&mut content, &snapshot, row).is_some() {
                *id = tid::from_row(row);
            }
            let next = content
                .tombstones
                .borrow()
                .of_row(row)
                .iter()
                .find(|t| {
                    t.kind == kind::UPDATE
                        && (t.is_frozen() || xid_status(t.xmax) != XidStatus::Aborted)
                })
                .map(|t| t.next_row);
            match next {
                Some(next) => row = next,
                None => return,
            }
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
