//! DELETE, UPDATE and row locks.
//!
//! All three decide about a row by one function, [`conflict::judge`], while the tail of the
//! tombstone chain is locked. They then either add a tombstone at once, or release the tail and
//! wait:
//!
//! ```text
//! loop
//!   lock the tombstone tail; read the row's tombstones
//!   judge the row for the lock mode that the operation needs
//!     free      -> add the tombstone (UPDATE: after the run of the new version) and return TM_Ok
//!     busy      -> release the tail; queue for the row's heavyweight lock; wait for the transaction; again
//!     otherwise -> return TM_Invisible, TM_SelfModified, TM_Updated or TM_Deleted
//! ```
//!
//! The decision and the tombstone are under one lock, so a lock that is reported as taken is taken. The heavyweight row
//! lock only orders those who wait.

use pgrx::pg_sys;
use pgrx::pg_sys::LockTupleMode::{LockTupleExclusive, LockTupleNoKeyExclusive};
use pgrx::pg_sys::TM_Result;

use crate::pg::access::Conflicts;
use crate::pg::index_columns;
use crate::pg::slot::{RowHeader, Slot};
use crate::pg::snapshot::Snapshot;
use crate::pg::table::OpenTable;
use crate::pg::transaction;
use crate::storage::tombstone::{FLAG_MOVED, Tail, Tombstone, kind};
use crate::table::append::PreparedRun;
use crate::table::logged_rows::{self, OldImage};
use crate::table::reader::Reader;
use crate::table::row_columns::RowColumns;
use crate::table::visibility::{XidStatus, xid_status};
use crate::table::{kept, one_row, pending_rows, serializable, tid};

mod conflict;
mod lock;

use conflict::{HeldRow, LockMode, OldRow, Patience, RowClaim, Verdict};
pub use lock::lock;

/// `tuple_delete`. `is_moved` says that the row's next version goes to another partition.
pub fn delete(
    table: OpenTable<'_>,
    id: &pg_sys::ItemPointerData,
    command: pg_sys::CommandId,
    conflicts: Conflicts<'_>,
    is_moved: bool,
    failure: &mut pg_sys::TM_FailureData,
) -> TM_Result::Type {
    let Some(row) = tid::to_row(id) else {
        return TM_Result::TM_Invisible;
    };
    let reason = pg_sys::XLTW_Oper::XLTW_Delete;
    let mut claim = RowClaim::new(table, row, LockTupleExclusive, command, reason);
    let read_as = serializable::row_id(table, row);
    table.check_conflict_in(read_as);
    // The transaction gets its id before the tail is locked.
    let flags = if is_moved { FLAG_MOVED } else { 0 };
    let tombstone = claim.tombstone(kind::DELETE, row, flags);
    let mut image = None;
    loop {
        let Some(mut held) = claim.hold_in(|old| {
            image.get_or_insert_with(|| image_of(old, None));
            LockTupleExclusive
        }) else {
            return TM_Result::TM_Invisible;
        };
        match held.verdict {
            Verdict::Free => {
                if !held.passes(conflicts.crosscheck, row) {
                    return TM_Result::TM_Updated;
                }
                // Again, with the tail held: a reader since the first check has either locked the table or the row,
                // which this finds, or will find the tombstone.
                table.check_conflict_in(read_as);
                let image = image.take().expect("a row that is held was read");
                logged_rows::log_delete(table, image);
                held.tail.push(table, &tombstone, &held.content.tombstones);
                table.count_delete();
                return TM_Result::TM_Ok;
            }
            Verdict::Busy(xid) => {
                drop(held);
                if !conflicts.wait {
                    return TM_Result::TM_BeingModified;
                }
                claim.wait_for(xid, Patience::Wait);
            }
            verdict => return verdict.report(failure),
        }
    }
}

/// `tuple_update`: a new version is a new row. Also returns the mode in which the row was locked.
pub fn update(
    table: OpenTable<'_>,
    id: &pg_sys::ItemPointerData,
    slot: Slot<'_>,
    command: pg_sys::CommandId,
    conflicts: Conflicts<'_>,
    failure: &mut pg_sys::TM_FailureData,
) -> (TM_Result::Type, LockMode) {
    let Some(row) = tid::to_row(id) else {
        return (TM_Result::TM_Invisible, LockTupleNoKeyExclusive);
    };
    let reason = pg_sys::XLTW_Oper::XLTW_Update;
    // The mode is known when the row has been read, which holding it does on the way.
    let mut claim = RowClaim::new(table, row, LockTupleExclusive, command, reason);
    let read_as = serializable::row_id(table, row);
    table.check_conflict_in(read_as);
    // The transaction gets its id before the tail is locked.
    let xid = transaction::current_xid();
    let new_row = RowColumns::of_slot(table, slot);
    let mut prepared = PreparedRun::encode(table, new_row.kinds(), new_row.columns(), 1);
    let mut known = None;
    loop {
        let held = claim.hold_in(|old| {
            let judged = || (mode_of_update(old, slot), image_of(old, Some(slot)));
            known.get_or_insert_with(judged).0
        });
        let mode = claim.mode();
        let Some(mut held) = held else {
            return (TM_Result::TM_Invisible, mode);
        };
        match held.verdict {
            // Waiting comes before pages of the new version are written, not after.
            Verdict::Free if !prepared.is_ready() => {
                drop(held);
                prepared.write_pages();
                continue;
            }
            Verdict::Free => {}
            Verdict::Busy(xid) => {
                drop(held);
                if !conflicts.wait {
                    return (TM_Result::TM_BeingModified, mode);
                }
                // Nobody waits with blocks of no entry's. Others may change the table meanwhile.
                drop(prepared);
                claim.wait_for(xid, Patience::Wait);
                prepared = PreparedRun::encode(table, new_row.kinds(), new_row.columns(), 1);
                continue;
            }
            verdict => return (verdict.report(failure), mode),
        }
        if !held.passes(conflicts.crosscheck, row) {
            return (TM_Result::TM_Updated, mode);
        }
        table.check_conflict_in(read_as);
        let (_, image) = known.take().expect("a row that is held was read");
        add_version(&claim, held, prepared, image, slot, (xid, command));
        return (TM_Result::TM_Ok, mode);
    }
}

/// Logs, adds and counts a new version, which is prepared, in place of a claimed row with this
/// image, and notes in the slot where it is.
fn add_version(
    claim: &RowClaim<'_>,
    held: HeldRow<'_>,
    prepared: PreparedRun<'_>,
    image: OldImage,
    slot: Slot<'_>,
    (xid, command): (u32, pg_sys::CommandId),
) {
    let table = held.reader.table;
    logged_rows::log_update(table, prepared.image(), image);
    let next_row = prepared.publish(xid, command, 0);
    let header = RowHeader {
        xmax: held.own_lock(claim.row).unwrap_or(0),
        ..RowHeader::new(xid, command)
    };
    replace(claim, held, next_row);
    slot.set_written(tid::from_row(next_row), table.oid(), header);
    table.count_update();
}

/// Adds the tombstone of a claimed row, which a new version replaces, and moves the locks of others to that version.
fn replace(claim: &RowClaim<'_>, held: HeldRow<'_>, next_row: u64) {
    let table = held.reader.table;
    let locks = held.locks_of_others(claim.row);
    let tombstone = claim.tombstone(kind::UPDATE, next_row, 0);
    held.tail.push(table, &tombstone, &held.content.tombstones);
    // Locks that do not conflict with this update hold for the new version too, which nobody else sees yet.
    for lock in locks {
        let moved = Tombstone {
            row: next_row,
            next_row,
            ..lock
        };
        let tail = Tail::lock(table, &held.content.meta);
        tail.push(table, &moved, &held.content.tombstones);
    }
}

/// The logged image of a row that is deleted, or updated to the values in the slot, for logical decoding.
fn image_of(old: OldRow<'_>, new: Option<Slot<'_>>) -> OldImage {
    let table = old.reader.table;
    if !table.is_logically_logged() {
        return OldImage::Unlogged;
    }
    let view = one_row::view(old.reader, old.content, old.row);
    logged_rows::old_image(table, view.outlet(), view.place(old.row), new)
}

/// The lock mode of an update of a row to the values in the slot. Rows of other tables may refer to a key, so
/// changing one conflicts with FOR KEY SHARE.
fn mode_of_update(old: OldRow<'_>, slot: Slot<'_>) -> LockMode {
    let table = old.reader.table;
    let keys = kept::indexes(table).keys;
    if keys.is_empty() {
        return LockTupleNoKeyExclusive;
    }
    let view = one_row::view(old.reader, old.content, old.row);
    match index_columns::have_equal_bytes(table, view.outlet(), view.place(old.row), slot, &keys) {
        true => LockTupleNoKeyExclusive,
        false => LockTupleExclusive,
    }
}

/// `tuple_get_latest_tid`: follows a row's updates as far as the snapshot sees them.
pub fn latest(table: OpenTable<'_>, snapshot: Snapshot<'_>, id: &mut pg_sys::ItemPointerData) {
    let Some(mut row) = tid::to_row(id) else {
        return;
    };
    pending_rows::flush_table(table.oid());
    let mut reader = Reader::open(table);
    let Some(mut content) = reader.content.take() else {
        return;
    };
    loop {
        if one_row::visible_row(&mut content, snapshot, row).is_some() {
            *id = tid::from_row(row);
        }
        let is_followed = |t: &&Tombstone| {
            t.kind == kind::UPDATE && (t.is_frozen() || xid_status(t.xmax) != XidStatus::Aborted)
        };
        let tombstones = content.tombstones.borrow();
        let next = tombstones.of_row(row).iter().find(is_followed);
        let Some(next) = next.map(|tombstone| tombstone.next_row) else {
            return;
        };
        drop(tombstones);
        row = next;
    }
}
