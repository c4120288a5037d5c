//! The callbacks of tables, generic over the traits of [`super`]: rows, relations, and the building and cleaning of
//! indexes.

#![allow(
    clippy::too_many_arguments,
    reason = "signatures that Postgres prescribes"
)]

use std::ffi::c_void;

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::index::{IndexAccess, IndexBuild, IndexedRows};
use super::relation::RelationAccess;
use super::rows::{Conflicts, RowAccess, RowLock};
use super::scan_callbacks::scan_of;
use crate::pg::cluster_sort::ClusterIndex;
use crate::pg::index::{Deletion, EntryMaker, EntrySink, FoundEntries, IndexDescription};
use crate::pg::ports;
use crate::pg::slot::Slot;
use crate::pg::snapshot::Snapshot;
use crate::pg::table::OpenTable;
use crate::pg::tree::plan_node;
use crate::pg::whole_error::whole;

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn tuple_fetch_row_version<A: RowAccess>(
    relation: pg_sys::Relation,
    id: pg_sys::ItemPointer,
    snapshot: pg_sys::Snapshot,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: PostgreSQL passes an open table, a live id and snapshot, and a slot of the table.
    unsafe {
        let (table, slot) = (OpenTable::new(relation), Slot::new(slot));
        Snapshot::new(snapshot).is_some_and(|seen| A::fetch(table, &*id, seen, slot))
    }
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn tuple_get_latest_tid<A: RowAccess>(
    descriptor: pg_sys::TableScanDesc,
    id: pg_sys::ItemPointer,
) {
    // SAFETY: made by `scan_begin`, whose table is open and whose snapshot is live; the id is the caller's.
    unsafe {
        let table = OpenTable::new((*descriptor).rs_rd);
        if let Some(snapshot) = Snapshot::new((*descriptor).rs_snapshot) {
            A::follow_updates(table, snapshot, &mut *id);
        }
    }
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn tuple_satisfies_snapshot<A: RowAccess>(
    relation: pg_sys::Relation,
    slot: *mut pg_sys::TupleTableSlot,
    snapshot: pg_sys::Snapshot,
) -> bool {
    // SAFETY: PostgreSQL passes an open table, a filled slot of it and a live snapshot.
    unsafe {
        let (table, slot) = (OpenTable::new(relation), Slot::new(slot));
        Snapshot::new(snapshot).is_some_and(|seen| A::is_visible(table, slot, seen))
    }
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn tuple_insert<A: RowAccess>(
    relation: pg_sys::Relation,
    slot: *mut pg_sys::TupleTableSlot,
    command: pg_sys::CommandId,
    options: i32,
    bulk: *mut pg_sys::BulkInsertStateData,
) {
    whole(|| {
        // SAFETY: PostgreSQL passes a filled slot of the table, which stays open until the executor
        // run or the bulk insert ends: all that holds the table longer than this call.
        let (table, slot) = unsafe { (OpenTable::new(relation), Slot::new(slot)) };
        A::insert(table, slot, command, options, !bulk.is_null());
    })
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn multi_insert<A: RowAccess>(
    relation: pg_sys::Relation,
    slots: *mut *mut pg_sys::TupleTableSlot,
    count: i32,
    command: pg_sys::CommandId,
    options: i32,
    _bulk: *mut pg_sys::BulkInsertStateData,
) {
    whole(|| {
        // SAFETY: PostgreSQL passes an open table and so many filled slots of it.
        unsafe {
            let slots = std::slice::from_raw_parts(slots, count as usize).iter();
            let slots = slots.map(|&slot| Slot::new(slot));
            A::insert_all(OpenTable::new(relation), slots, command, options);
        }
    })
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn finish_bulk_insert<A: RowAccess>(
    relation: pg_sys::Relation,
    _options: i32,
) {
    whole(|| {
        A::finish_bulk_insert(OpenTable::new(relation));
    })
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn tuple_insert_speculative<A: RowAccess>(
    relation: pg_sys::Relation,
    slot: *mut pg_sys::TupleTableSlot,
    command: pg_sys::CommandId,
    options: i32,
    _bulk: *mut pg_sys::BulkInsertStateData,
    token: u32,
) {
    // SAFETY: PostgreSQL passes an open table and a filled slot of it.
    let (table, slot) = unsafe { (OpenTable::new(relation), Slot::new(slot)) };
    A::insert_speculatively(table, slot, command, options, token);
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn tuple_complete_speculative<A: RowAccess>(
    relation: pg_sys::Relation,
    slot: *mut pg_sys::TupleTableSlot,
    _token: u32,
    succeeded: bool,
) {
    // SAFETY: PostgreSQL passes an open table and the slot of the row that was inserted.
    let (table, slot) = unsafe { (OpenTable::new(relation), Slot::new(slot)) };
    A::complete_speculation(table, slot, succeeded);
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn tuple_delete<A: RowAccess>(
    relation: pg_sys::Relation,
    id: pg_sys::ItemPointer,
    command: pg_sys::CommandId,
    _snapshot: pg_sys::Snapshot,
    crosscheck: pg_sys::Snapshot,
    wait: bool,
    failure: *mut pg_sys::TM_FailureData,
    changing_partition: bool,
) -> pg_sys::TM_Result::Type {
    // SAFETY: PostgreSQL passes an open table, live data, and a snapshot or null.
    unsafe {
        let (table, crosscheck) = (OpenTable::new(relation), Snapshot::new(crosscheck));
        let conflicts = Conflicts { crosscheck, wait };
        let failure = &mut *failure;
        A::delete(table, &*id, command, conflicts, changing_partition, failure)
    }
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn tuple_update<A: RowAccess>(
    relation: pg_sys::Relation,
    id: pg_sys::ItemPointer,
    slot: *mut pg_sys::TupleTableSlot,
    command: pg_sys::CommandId,
    _snapshot: pg_sys::Snapshot,
    crosscheck: pg_sys::Snapshot,
    wait: bool,
    failure: *mut pg_sys::TM_FailureData,
    mode: *mut pg_sys::LockTupleMode::Type,
    update_indexes: *mut ports::UpdateIndexes,
) -> pg_sys::TM_Result::Type {
    // SAFETY: PostgreSQL passes an open table, a filled slot of it, live data, and a snapshot or null.
    unsafe {
        let (table, slot) = (OpenTable::new(relation), Slot::new(slot));
        let crosscheck = Snapshot::new(crosscheck);
        let conflicts = Conflicts { crosscheck, wait };
        let updated = A::update(table, &*id, slot, command, conflicts, &mut *failure);
        *update_indexes = match updated.needs_entries {
            true => ports::UPDATE_ALL_INDEXES,
            false => ports::UPDATE_NO_INDEXES,
        };
        *mode = updated.mode;
        updated.result
    }
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn tuple_lock<A: RowAccess>(
    relation: pg_sys::Relation,
    id: pg_sys::ItemPointer,
    _snapshot: pg_sys::Snapshot,
    slot: *mut pg_sys::TupleTableSlot,
    command: pg_sys::CommandId,
    mode: pg_sys::LockTupleMode::Type,
    policy: pg_sys::LockWaitPolicy::Type,
    flags: u8,
    failure: *mut pg_sys::TM_FailureData,
) -> pg_sys::TM_Result::Type {
    let request = RowLock {
        command,
        mode,
        policy,
        follows_updates: u32::from(flags) & pg_sys::TUPLE_LOCK_FLAG_FIND_LAST_VERSION != 0,
    };
    // SAFETY: PostgreSQL passes an open table, a slot of it, and live data.
    unsafe {
        let (table, slot) = (OpenTable::new(relation), Slot::new(slot));
        A::lock(table, &mut *id, slot, request, &mut *failure)
    }
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn relation_set_new_file<A: RelationAccess>(
    relation: pg_sys::Relation,
    locator: *const ports::RelFileLocator,
    persistence: std::ffi::c_char,
    freeze: *mut pg_sys::TransactionId,
    freeze_multi: *mut pg_sys::MultiXactId,
) {
    // SAFETY: PostgreSQL passes an open table, a locator, and places for the results.
    unsafe {
        let oldest = A::set_new_file(OpenTable::new(relation), &*locator, persistence);
        *freeze = oldest.transaction;
        *freeze_multi = oldest.multixact;
    }
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn relation_nontransactional_truncate<A: RelationAccess>(
    table: pg_sys::Relation,
) {
    A::truncate(OpenTable::new(table));
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn relation_copy_data<A: RelationAccess>(
    table: pg_sys::Relation,
    locator: *const ports::RelFileLocator,
) {
    // SAFETY: PostgreSQL passes a table that is open and exclusively locked, and a locator.
    unsafe { A::copy_data(OpenTable::new(table), &*locator) }
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn relation_copy_for_cluster<A: RelationAccess>(
    source: pg_sys::Relation,
    target: pg_sys::Relation,
    index: pg_sys::Relation,
    _sorts: bool,
    horizon: pg_sys::TransactionId,
    _freeze: *mut pg_sys::TransactionId,
    _freeze_multi: *mut pg_sys::MultiXactId,
    kept: *mut f64,
    removed: *mut f64,
    recently_dead: *mut f64,
) {
    whole(|| {
        // SAFETY: PostgreSQL passes two tables that are open and exclusively locked, an open index of the first or
        // null, and places for the counts.
        unsafe {
            let (source, target) = (OpenTable::new(source), OpenTable::new(target));
            let order = (!index.is_null()).then(|| ClusterIndex::new(source, index));
            let counts = A::copy_rows(source, target, order, horizon.into_inner());
            *kept = counts.kept;
            *removed = counts.removed;
            *recently_dead = counts.recently_dead;
        }
    })
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn relation_vacuum<A: RelationAccess>(
    relation: pg_sys::Relation,
    parameters: *mut pg_sys::VacuumParams,
    _strategy: pg_sys::BufferAccessStrategy,
) {
    // SAFETY: PostgreSQL passes a table that is open and locked in ShareUpdateExclusive mode, and live parameters.
    let (table, parameters) = unsafe { (OpenTable::new(relation), &*parameters) };
    A::vacuum(table, parameters);
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn relation_size<A: RelationAccess>(
    relation: pg_sys::Relation,
    fork: pg_sys::ForkNumber::Type,
) -> u64 {
    A::size(OpenTable::new(relation), fork)
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn relation_estimate_size<A: RelationAccess>(
    relation: pg_sys::Relation,
    _widths: *mut i32,
    pages: *mut pg_sys::BlockNumber,
    tuples: *mut f64,
    all_visible_fraction: *mut f64,
) {
    // SAFETY: PostgreSQL passes an open table and places for the results.
    unsafe {
        let estimate = A::estimate(OpenTable::new(relation));
        *pages = estimate.pages;
        *tuples = estimate.rows;
        *all_visible_fraction = estimate.all_visible;
    }
}

#[pg_guard]
pub(super) extern "C-unwind" fn relation_needs_toast_table(_relation: pg_sys::Relation) -> bool {
    false
}

#[pg_guard]
pub(super) extern "C-unwind" fn relation_toast_am<A: RelationAccess>(
    _relation: pg_sys::Relation,
) -> pg_sys::Oid {
    A::refuse_toast()
}

#[pg_guard]
pub(super) extern "C-unwind" fn relation_fetch_toast_slice<A: RelationAccess>(
    _toast: pg_sys::Relation,
    _value: pg_sys::Oid,
    _size: i32,
    _offset: i32,
    _length: i32,
    _result: *mut pg_sys::varlena,
) {
    A::refuse_toast()
}

/// Chooses the index entries that may be deleted: [`IndexAccess::delete_entries`].
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn index_delete_tuples<A: IndexAccess>(
    relation: pg_sys::Relation,
    operation: *mut pg_sys::TM_IndexDeleteOp,
) -> pg_sys::TransactionId {
    // SAFETY: PostgreSQL passes an open table, and a sound description of the entries.
    let (table, mut entries) = unsafe { (OpenTable::new(relation), Deletion::new(operation)) };
    A::delete_entries(table, &mut entries)
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn index_build_range_scan<A: IndexAccess>(
    relation: pg_sys::Relation,
    index: pg_sys::Relation,
    info: *mut pg_sys::IndexInfo,
    _allow_sync: bool,
    _any_visible: bool,
    progress: bool,
    start: pg_sys::BlockNumber,
    blocks: pg_sys::BlockNumber,
    callback: pg_sys::IndexBuildCallback,
    state: *mut c_void,
    shared: pg_sys::TableScanDesc,
) -> f64 {
    whole(|| {
        // SAFETY: PostgreSQL passes an open table and index, a description of the index, and a
        // callback with its state. A scan, if there is one, is a participant's of a parallel build.
        unsafe {
            let table = OpenTable::new(relation);
            let is_brin = OpenTable::new(index).access_method() == pg_sys::BRIN_AM_OID;
            A::check_index(table, is_brin);
            let sink = EntrySink::new(index, callback, state);
            let info: IndexDescription<'_> = plan_node(info);
            let is_concurrent = info.is_concurrent();
            let mut maker = EntryMaker::begin(table, OpenTable::new(index), info);
            let mut build = |rows| {
                let maker = &mut maker;
                let build = IndexBuild {
                    maker,
                    sink: &sink,
                    is_brin,
                    is_concurrent,
                    is_reported: progress,
                };
                A::build(table, rows, build)
            };
            let alive = if !shared.is_null() {
                let alive = build(IndexedRows::Scanned(scan_of::<A::Scan>(shared)));
                ports::table_endscan(shared);
                alive
            } else if blocks != pg_sys::InvalidBlockNumber {
                let first = u64::from(start);
                build(IndexedRows::Blocks(first..first + u64::from(blocks)))
            } else if !is_concurrent {
                build(IndexedRows::Seen(None))
            } else {
                let snapshot = pg_sys::RegisterSnapshot(pg_sys::GetTransactionSnapshot());
                let alive = build(IndexedRows::Seen(Snapshot::new(snapshot)));
                pg_sys::UnregisterSnapshot(snapshot);
                alive
            };
            maker.finish();
            alive
        }
    })
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn index_validate_scan<A: IndexAccess>(
    relation: pg_sys::Relation,
    index: pg_sys::Relation,
    info: *mut pg_sys::IndexInfo,
    snapshot: pg_sys::Snapshot,
    state: *mut pg_sys::ValidateIndexState,
) {
    whole(|| {
        // SAFETY: PostgreSQL passes an open table and index, a description of the index, a live snapshot and sorted
        // entries.
        unsafe {
            let table = OpenTable::new(relation);
            let mut maker = EntryMaker::begin(table, OpenTable::new(index), plan_node(info));
            if let Some(snapshot) = Snapshot::new(snapshot) {
                A::complete(table, snapshot, &mut maker, &mut FoundEntries::new(state));
            }
            maker.finish();
        }
    })
}
