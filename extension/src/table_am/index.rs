//! The callbacks for indexes: fetching rows for index scans and bitmaps, building, and INSERT … ON CONFLICT.

#![allow(
    clippy::too_many_arguments,
    reason = "signatures that Postgres prescribes"
)]

use std::ffi::c_void;

use pgrx::prelude::*;
use pgrx::{PgMemoryContexts, pg_sys};

use super::routine::ScanState;
use crate::pg::executor::{in_context, small_context};
use crate::pg::index::{Deletion, EntryMaker, EntrySink, FoundEntries};
use crate::pg::ports;
use crate::pg::slot::Slot;
use crate::pg::snapshot::{Snapshot, SnapshotKind};
use crate::pg::table::OpenTable;
use crate::pg::transaction;
use crate::pg::tree::plan_node;
use crate::pg::whole_error::whole;
use crate::table::index_build::EntryOrder;
use crate::table::index_fetch::{self, Found, IndexFetch};
use crate::table::scan::Scan;
use crate::table::tid::BLOCK_ROWS;
use crate::table::{fate, index_build, insert, speculation};
use crate::table_options;

/// A fetch descriptor: Postgres's part, then ours.
#[repr(C)]
struct FetchDescriptor {
    base: pg_sys::IndexFetchTableData,
    /// Made by the first fetch under an MVCC snapshot; null before.
    fetch: *mut IndexFetch<'static>,
    /// The context of `fetch`, which goes with it. A statement may fetch for each of its rows in the same memory
    /// context, so each has one of its own.
    memory: pg_sys::MemoryContext,
    /// The oldest transaction that some snapshot may not see, once a fetch under another snapshot has asked for it; 0
    /// before.
    horizon: u32,
}

/// Checks of uniqueness begin a fetch for each duplicate key. They need nothing that must be dropped.
#[pg_guard]
pub unsafe extern "C-unwind" fn index_fetch_begin(
    relation: pg_sys::Relation,
) -> *mut pg_sys::IndexFetchTableData {
    // SAFETY: PostgreSQL passes a table that stays open until `index_fetch_end`.
    unsafe {
        let descriptor: *mut FetchDescriptor = pg_sys::palloc0(size_of::<FetchDescriptor>()).cast();
        (*descriptor).base.rel = relation;
        descriptor.cast()
    }
}

/// # Safety
/// `descriptor` was made by `index_fetch_begin`.
unsafe fn fetch_of<'a>(
    descriptor: *mut pg_sys::IndexFetchTableData,
) -> &'a mut IndexFetch<'static> {
    // SAFETY: the caller's promise.
    unsafe {
        let descriptor = descriptor.cast::<FetchDescriptor>();
        if (*descriptor).fetch.is_null() {
            let around = pg_sys::GetMemoryChunkContext(descriptor.cast());
            let memory = in_context(around, || small_context(c"lanes index fetch"));
            let fetch = IndexFetch::begin(OpenTable::new((*descriptor).base.rel));
            (*descriptor).memory = memory;
            (*descriptor).fetch = PgMemoryContexts::For(memory).leak_and_drop_on_delete(fetch);
        }
        &mut *(*descriptor).fetch
    }
}

/// Nothing is released: the scan goes on with the same snapshot.
#[pg_guard]
pub unsafe extern "C-unwind" fn index_fetch_reset(_descriptor: *mut pg_sys::IndexFetchTableData) {}

#[pg_guard]
pub unsafe extern "C-unwind" fn index_fetch_end(descriptor: *mut pg_sys::IndexFetchTableData) {
    // SAFETY: made by `index_fetch_begin`; the fetch goes with its memory context.
    unsafe {
        let memory = (*descriptor.cast::<FetchDescriptor>()).memory;
        if !memory.is_null() {
            pg_sys::MemoryContextDelete(memory);
        }
        pg_sys::pfree(descriptor.cast());
    }
}

#[pg_guard]
pub unsafe extern "C-unwind" fn index_fetch_tuple(
    descriptor: *mut pg_sys::IndexFetchTableData,
    id: pg_sys::ItemPointer,
    snapshot: pg_sys::Snapshot,
    slot: *mut pg_sys::TupleTableSlot,
    call_again: *mut bool,
    all_dead: *mut bool,
) -> bool {
    // SAFETY: made by `index_fetch_begin`; PostgreSQL passes a live id and snapshot, a slot of the table, and places
    // for the results, of which the last may be null.
    unsafe {
        *call_again = false;
        let slot = Slot::new(slot);
        slot.clear();
        let found = match Snapshot::new(snapshot) {
            Some(seen) if seen.kind() == SnapshotKind::Mvcc => {
                fetch_of(descriptor).fetch(&*id, seen, slot)
            }
            Some(seen) => {
                let table = OpenTable::new((*descriptor).rel);
                let horizon = &mut (*descriptor.cast::<FetchDescriptor>()).horizon;
                index_fetch::fetch_current(table, &*id, seen, slot, || {
                    if *horizon == 0 {
                        *horizon = table.oldest_non_removable_xid();
                    }
                    *horizon
                })
            }
            None => Found::Nothing,
        };
        if let Some(all_dead) = all_dead.as_mut() {
            *all_dead = found == Found::Gone;
        }
        found == Found::Row
    }
}

/// Leaves of the entries that an index would like to delete those of rows that are gone.
#[pg_guard]
pub unsafe extern "C-unwind" fn index_delete_tuples(
    relation: pg_sys::Relation,
    operation: *mut pg_sys::TM_IndexDeleteOp,
) -> pg_sys::TransactionId {
    // SAFETY: PostgreSQL passes an open table, and a sound description of the entries.
    let (table, mut entries) = unsafe { (OpenTable::new(relation), Deletion::new(operation)) };
    let horizon = table.oldest_non_removable_xid();
    match entries.retain(fate::gone_entries(table, horizon)) {
        0 => pg_sys::InvalidTransactionId,
        // All that deleted or wrote these rows is older.
        _ => transaction::before(horizon).into(),
    }
}

/// Refuses an index that a lanes table cannot have.
pub fn check(table: pg_sys::Oid, is_brin: bool) {
    #[cfg(any(feature = "pg17", feature = "pg18"))]
    if is_brin {
        super::refuse::brin();
    }
    #[cfg(not(any(feature = "pg17", feature = "pg18")))]
    let _ = is_brin;
    if table_options::of(table).dedup {
        table_options::refuse_index_with_dedup();
    }
}

#[pg_guard]
pub unsafe extern "C-unwind" fn index_build_range_scan(
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
            check(table.oid(), is_brin);
            let order = match is_brin {
                true => EntryOrder::Numbers,
                false => EntryOrder::Any,
            };
            let sink = EntrySink::new(index, callback, state);
            let mut maker = EntryMaker::begin(table, OpenTable::new(index), plan_node(info));
            let sees_all = !(*info).ii_Concurrent;
            let mut build = |scan: &mut Scan<'static>| {
                index_build::build(scan, sees_all, order, &mut maker, &sink, progress)
            };
            let alive = if !shared.is_null() {
                let alive = build(ScanState::of(shared).scan());
                ports::table_endscan(shared);
                alive
            } else if blocks != pg_sys::InvalidBlockNumber {
                let first = u64::from(start) * BLOCK_ROWS;
                let numbers = first..first + u64::from(blocks) * BLOCK_ROWS;
                index_build::build_range(&mut Scan::begin(table, None), numbers, &mut maker, &sink)
            } else if sees_all {
                build(&mut Scan::begin(table, None))
            } else {
                let snapshot = pg_sys::RegisterSnapshot(pg_sys::GetTransactionSnapshot());
                let alive = build(&mut Scan::begin(table, Snapshot::new(snapshot)));
                pg_sys::UnregisterSnapshot(snapshot);
                alive
            };
            maker.finish();
            alive
        }
    })
}

#[pg_guard]
pub unsafe extern "C-unwind" fn index_validate_scan(
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
                index_build::complete(table, snapshot, &mut maker, &mut FoundEntries::new(state));
            }
            maker.finish();
        }
    })
}

#[pg_guard]
pub unsafe extern "C-unwind" fn tuple_insert_speculative(
    relation: pg_sys::Relation,
    slot: *mut pg_sys::TupleTableSlot,
    command: pg_sys::CommandId,
    options: i32,
    _bulk: *mut pg_sys::BulkInsertStateData,
    token: u32,
) {
    // SAFETY: PostgreSQL passes an open table and a filled slot of it.
    let (table, slot) = unsafe { (OpenTable::new(relation), Slot::new(slot)) };
    // Logged when it is sure to stay.
    let options = options | pg_sys::TABLE_INSERT_NO_LOGICAL as i32;
    insert::insert_slots(table, std::iter::once(slot), command, options);
    speculation::begin(table, slot, token);
}

#[pg_guard]
pub unsafe extern "C-unwind" fn tuple_complete_speculative(
    relation: pg_sys::Relation,
    slot: *mut pg_sys::TupleTableSlot,
    _token: u32,
    succeeded: bool,
) {
    // SAFETY: PostgreSQL passes an open table and the slot of the row that was inserted.
    let (table, slot) = unsafe { (OpenTable::new(relation), Slot::new(slot)) };
    speculation::complete(table, slot, succeeded);
}
