//! `tuple_lock`: a lock on a row, or on its newest version.

use pgrx::pg_sys::TM_Result;
use pgrx::{PgLogLevel, PgSqlErrorCode, ereport, pg_sys};

use super::conflict::{HeldRow, LockMode, Patience, RowClaim, Verdict};
use crate::pg::slot::Slot;
use crate::pg::table::OpenTable;
use crate::storage::tombstone::{FLAG_MOVED, Tail, Tombstone, kind};
use crate::table::visibility::{XidStatus, xid_status};
use crate::table::{one_row, tid};

/// A lock that a command requests on a row.
#[derive(Clone, Copy)]
pub struct LockRequest {
    command: pg_sys::CommandId,
    mode: LockMode,
    patience: Patience,
    /// Whether to lock the newest version if the row was updated.
    follows_updates: bool,
}

impl LockRequest {
    /// The request in PostgreSQL's terms.
    pub fn new(
        command: pg_sys::CommandId,
        mode: LockMode,
        policy: pg_sys::LockWaitPolicy::Type,
        flags: u8,
    ) -> LockRequest {
        LockRequest {
            command,
            mode,
            patience: match policy {
                pg_sys::LockWaitPolicy::LockWaitSkip => Patience::GiveUp,
                pg_sys::LockWaitPolicy::LockWaitError => Patience::Fail,
                _ => Patience::Wait,
            },
            follows_updates: u32::from(flags) & pg_sys::TUPLE_LOCK_FLAG_FIND_LAST_VERSION != 0,
        }
    }
}

/// Locks a row and stores it into the slot; `id` becomes that of the version that is locked.
pub fn lock(
    table: OpenTable<'_>,
    id: &mut pg_sys::ItemPointerData,
    slot: Slot<'_>,
    request: LockRequest,
    failure: &mut pg_sys::TM_FailureData,
) -> TM_Result::Type {
    let Some(row) = tid::to_row(id) else {
        return TM_Result::TM_Invisible;
    };
    let reason = pg_sys::XLTW_Oper::XLTW_Lock;
    let mut claim = RowClaim::new(table, row, request.mode, request.command, reason);
    // The transaction gets its id before the tail is locked.
    let mut lock = claim.tombstone(kind::LOCK, row, 0);
    failure.traversed = false;
    let mut followed: Option<Tombstone> = None;
    loop {
        let Some(held) = claim.hold() else {
            return TM_Result::TM_Invisible;
        };
        match held.verdict {
            Verdict::Free => {
                take(table, &claim, held, &lock, slot);
                *id = tid::from_row(claim.row);
                return TM_Result::TM_Ok;
            }
            Verdict::Busy(xid) => {
                drop(held);
                if !claim.wait_for(xid, request.patience) {
                    refuse_to_wait(table, request.patience);
                    return TM_Result::TM_WouldBlock;
                }
            }
            Verdict::Updated(tombstone) if request.follows_updates => {
                drop(held);
                refuse_moved(&tombstone);
                followed = Some(tombstone);
                failure.traversed = true;
                claim.move_to(tombstone.next_row);
                (lock.row, lock.next_row) = (tombstone.next_row, tombstone.next_row);
            }
            // A later command of this transaction made the newest version.
            Verdict::Invisible if let Some(tombstone) = followed => {
                failure.xmax = tombstone.xmax.into();
                failure.cmax = held.run.cmin;
                return TM_Result::TM_SelfModified;
            }
            // INSERT … ON CONFLICT tells from the row whether its own command made it.
            Verdict::Invisible => {
                one_row::store_row(&held.reader, &held.content, &held.run, claim.row, slot);
                return TM_Result::TM_Invisible;
            }
            verdict => return verdict.report(failure),
        }
    }
}

/// Adds the lock unless this transaction has one that is as strong, and stores the row into the slot.
fn take(
    table: OpenTable<'_>,
    claim: &RowClaim<'_>,
    held: HeldRow<'_>,
    lock: &Tombstone,
    slot: Slot<'_>,
) {
    let next_version = held.successor_in_progress(claim.row);
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
        tail.push(table, lock, &content.tombstones);
    }
    // A version that another transaction is making, with which this lock does not conflict, is locked too.
    if let Some(next) = next_version {
        let along = Tombstone {
            row: next,
            next_row: next,
            ..*lock
        };
        Tail::lock(table, &content.meta).push(table, &along, &content.tombstones);
    }
    one_row::store_row(&reader, &content, &run, claim.row, slot);
}

fn refuse_to_wait(table: OpenTable<'_>, patience: Patience) {
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
