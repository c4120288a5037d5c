//! `tuple_lock`: a lock on a row, or on its newest version.

use pgrx::pg_sys::LockTupleMode::{LockTupleExclusive, LockTupleKeyShare};
use pgrx::pg_sys::TM_Result;
use pgrx::{PgLogLevel, PgSqlErrorCode, ereport, pg_sys};

use super::conflict::{HeldRow, Patience, RowClaim, Verdict};
use crate::pg::access::RowLock;
use crate::pg::slot::Slot;
use crate::pg::table::OpenTable;
use crate::storage::tombstone::{FLAG_MOVED, Tombstone, kind};
use crate::table::visibility::{XidStatus, xid_status};
use crate::table::{one_row, tid};

/// Why a lock went on from the row that was asked for.
#[derive(Clone, Copy)]
enum Path {
    /// It did not go on.
    Here,
    /// The newest version is to be locked instead: this update leads there.
    Newest(Tombstone),
    /// This transaction's own update leads to the newest version. Its command comes after the one that locks: a
    /// function of the query has updated the row, after another session had updated it before.
    Own(Tombstone),
    /// An update that keeps the key does not conflict with the lock. This row is locked and returned. The versions
    /// that updates have made of it are locked too, so that a session that deletes the newest one finds the lock. A
    /// foreign key's check needs that.
    Along(u64),
}

/// Locks a row and stores it into the slot; `id` becomes that of the version that is locked.
pub fn lock(
    table: OpenTable<'_>,
    id: &mut pg_sys::ItemPointerData,
    slot: Slot<'_>,
    request: RowLock,
    failure: &mut pg_sys::TM_FailureData,
) -> TM_Result::Type {
    let Some(row) = tid::to_row(id) else {
        return TM_Result::TM_Invisible;
    };
    let patience = match request.policy {
        pg_sys::LockWaitPolicy::LockWaitSkip => Patience::GiveUp,
        pg_sys::LockWaitPolicy::LockWaitError => Patience::Fail,
        _ => Patience::Wait,
    };
    let reason = pg_sys::XLTW_Oper::XLTW_Lock;
    let mut claim = RowClaim::new(table, row, request.mode, request.command, reason);
    // The transaction gets its id before the tail is locked.
    let lock = claim.tombstone(kind::LOCK, row, 0);
    failure.traversed = false;
    let mut path = Path::Here;
    loop {
        let Some(held) = claim.hold() else {
            return TM_Result::TM_Invisible;
        };
        match Step::next(held.verdict, path, claim.row, request) {
            Step::Wait(xid) => {
                drop(held);
                if !claim.wait_for(xid, patience) {
                    return refuse_to_wait(table, patience);
                }
            }
            Step::Take => {
                let next = held.successor_in_progress(claim.row);
                take(table, &claim, held, &lock, slot);
                *id = tid::from_row(claim.row);
                let Some(next) = next else {
                    return finish(table, id, slot, path);
                };
                path = Path::Along(path.returned(claim.row));
                claim.move_to(next, true);
            }
            Step::GoOn(to, row) => {
                drop(held);
                if let Path::Newest(update) = to {
                    refuse_moved(&update);
                    failure.traversed = true;
                }
                path = to;
                claim.move_to(row, !matches!(path, Path::Newest(_)));
            }
            Step::Finish => return finish(table, id, slot, path),
            Step::Refuse(update) => return report_own(&update, held.run.cmin, failure),
            Step::Show => {
                one_row::store_row(&held.reader, &held.content, &held.run, claim.row, slot);
                return TM_Result::TM_Invisible;
            }
            Step::Report(verdict) => return verdict.report(failure),
        }
    }
}

/// The next step of a lock, after a row on its path was judged.
enum Step {
    /// To wait for a transaction, and judge the row again.
    Wait(u32),
    /// To lock the row.
    Take,
    /// To go on to another row.
    GoOn(Path, u64),
    /// To return: the rows that were to be locked are locked.
    Finish,
    /// To report that a later command of this transaction made the newest version, to which this update leads.
    Refuse(Tombstone),
    /// To return the row although it is not visible.
    Show,
    /// To report the verdict.
    Report(Verdict),
}

impl Step {
    fn next(verdict: Verdict, path: Path, row: u64, request: RowLock) -> Step {
        match (verdict, path) {
            (Verdict::Busy(xid), _) => Step::Wait(xid),
            (Verdict::Invisible, Path::Newest(update))
            | (Verdict::Invisible | Verdict::Free, Path::Own(update)) => Step::Refuse(update),
            (Verdict::SelfModified(update), Path::Newest(_) | Path::Own(_)) => match update.kind {
                kind::UPDATE => Step::GoOn(Path::Own(update), update.next_row),
                _ => Step::Report(Verdict::Deleted(update)),
            },
            (Verdict::Free, _) => Step::Take,
            // The versions that were to be locked along are this transaction's own, or were undone.
            (Verdict::Invisible | Verdict::SelfModified(_), Path::Along(_)) => Step::Finish,
            (Verdict::Updated(update), Path::Here | Path::Along(_))
                if keeps_key(&update) && request.mode == LockTupleKeyShare =>
            {
                Step::GoOn(Path::Along(path.returned(row)), update.next_row)
            }
            (Verdict::Updated(update), _) if request.follows_updates => {
                Step::GoOn(Path::Newest(update), update.next_row)
            }
            // INSERT … ON CONFLICT tells from the row whether its own command made it.
            (Verdict::Invisible, _) => Step::Show,
            (verdict, _) => Step::Report(verdict),
        }
    }
}

impl Path {
    /// The row that is returned where versions after `row` are locked along.
    fn returned(self, row: u64) -> u64 {
        match self {
            Path::Along(first) => first,
            _ => row,
        }
    }
}

/// Whether an update left the row's key as it was, so that FOR KEY SHARE does not conflict with it.
fn keeps_key(update: &Tombstone) -> bool {
    update.kind == kind::UPDATE && update.mode != LockTupleExclusive as u16
}

/// Ends with the row locked, which is stored into the slot unless the last one that was locked has been.
fn finish(
    table: OpenTable<'_>,
    id: &mut pg_sys::ItemPointerData,
    slot: Slot<'_>,
    path: Path,
) -> TM_Result::Type {
    if let Path::Along(row) = path {
        *id = tid::from_row(row);
        if !one_row::read(table, row, slot) {
            return TM_Result::TM_Invisible;
        }
    }
    TM_Result::TM_Ok
}

/// Adds the lock to the claimed row unless this transaction has one that is as strong, and stores the row into the
/// slot.
fn take(
    table: OpenTable<'_>,
    claim: &RowClaim<'_>,
    held: HeldRow<'_>,
    lock: &Tombstone,
    slot: Slot<'_>,
) {
    let HeldRow {
        reader,
        content,
        tail,
        run,
        ..
    } = held;
    let is_enough = |t: &Tombstone| {
        t.kind == kind::LOCK && t.mode >= lock.mode && xid_status(t.xmax) == XidStatus::Current
    };
    let has_lock = content
        .tombstones
        .borrow()
        .of_row(claim.row)
        .iter()
        .any(is_enough);
    if has_lock {
        drop(tail);
    } else {
        let lock = Tombstone {
            row: claim.row,
            next_row: claim.row,
            ..*lock
        };
        tail.push(table, &lock, &content.tombstones);
    }
    one_row::store_row(&reader, &content, &run, claim.row, slot);
}

/// Reports that a later command of this transaction made the newest version, to which this update
/// leads.
fn report_own(
    update: &Tombstone,
    cmin: pg_sys::CommandId,
    failure: &mut pg_sys::TM_FailureData,
) -> TM_Result::Type {
    failure.xmax = update.xmax.into();
    failure.cmax = cmin;
    TM_Result::TM_SelfModified
}

/// Reports that the lock would have to be waited for, as an ERROR if the command wants one.
fn refuse_to_wait(table: OpenTable<'_>, patience: Patience) -> TM_Result::Type {
    if patience == Patience::Fail {
        ereport!(
            PgLogLevel::ERROR,
            PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE,
            format!(
                "could not obtain lock on row in relation \"{}\"",
                table.name()
            )
        );
    }
    TM_Result::TM_WouldBlock
}

fn refuse_moved(tombstone: &Tombstone) {
    if tombstone.flags & FLAG_MOVED != 0 {
        ereport!(
            PgLogLevel::ERROR,
            PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE,
            "tuple to be locked was already moved to another partition due to concurrent update"
        );
    }
}
