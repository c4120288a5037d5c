//! The routine table: every callback of the table access method, each of which recovers its arguments and delegates.

#![allow(
    clippy::too_many_arguments,
    reason = "signatures that Postgres prescribes"
)]

use pgrx::PgMemoryContexts;
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::bitmap::BitmapRows;
use super::modify::{self, Conflicts, LockRequest};
use super::sample::{AnalyzeBlock, SampleBlock};
use super::{bitmap, index, refuse, relation, rewrite};
use crate::maintenance::shorten::Effort;
use crate::maintenance::vacuum;
use crate::maintenance::vacuum_report::Audience;
use crate::pg::cluster_sort::ClusterSort;
use crate::pg::slot::{self, Slot};
use crate::pg::snapshot::Snapshot;
use crate::pg::table::{self, OpenTable};
use crate::pg::whole_error::whole;
use crate::pg::{ports, transaction};
use crate::table::scan::{ParallelState, Scan, SharedSegments};
use crate::table::{insert, kept, one_row, pending_rows, tid};

static ROUTINE: pg_sys::TableAmRoutine = pg_sys::TableAmRoutine {
    type_: pg_sys::NodeTag::T_TableAmRoutine,
    slot_callbacks: Some(slot_callbacks),
    scan_begin: Some(scan_begin),
    scan_end: Some(scan_end),
    scan_rescan: Some(scan_rescan),
    scan_getnextslot: Some(scan_getnextslot),
    scan_set_tidrange: Some(scan_set_tidrange),
    scan_getnextslot_tidrange: Some(scan_getnextslot),
    parallelscan_estimate: Some(parallelscan_estimate),
    parallelscan_initialize: Some(parallelscan_initialize),
    parallelscan_reinitialize: Some(parallelscan_reinitialize),
    index_fetch_begin: Some(index::index_fetch_begin),
    index_fetch_reset: Some(index::index_fetch_reset),
    index_fetch_end: Some(index::index_fetch_end),
    index_fetch_tuple: Some(index::index_fetch_tuple),
    tuple_fetch_row_version: Some(tuple_fetch_row_version),
    tuple_tid_valid: Some(tuple_tid_valid),
    tuple_get_latest_tid: Some(tuple_get_latest_tid),
    tuple_satisfies_snapshot: Some(tuple_satisfies_snapshot),
    index_delete_tuples: Some(index::index_delete_tuples),
    tuple_insert: Some(tuple_insert),
    tuple_insert_speculative: Some(index::tuple_insert_speculative),
    tuple_complete_speculative: Some(index::tuple_complete_speculative),
    multi_insert: Some(multi_insert),
    tuple_delete: Some(tuple_delete),
    tuple_update: Some(tuple_update),
    tuple_lock: Some(tuple_lock),
    finish_bulk_insert: Some(finish_bulk_insert),
    #[cfg(feature = "pg15")]
    relation_set_new_filenode: Some(relation_set_new_file),
    #[cfg(not(feature = "pg15"))]
    relation_set_new_filelocator: Some(relation_set_new_file),
    relation_nontransactional_truncate: Some(relation_nontransactional_truncate),
    relation_copy_data: Some(relation_copy_data),
    relation_copy_for_cluster: Some(relation_copy_for_cluster),
    relation_vacuum: Some(relation_vacuum),
    scan_analyze_next_block: Some(scan_analyze_next_block),
    scan_analyze_next_tuple: Some(scan_analyze_next_tuple),
    index_build_range_scan: Some(index::index_build_range_scan),
    index_validate_scan: Some(index::index_validate_scan),
    relation_size: Some(relation_size),
    relation_needs_toast_table: Some(relation_needs_toast_table),
    relation_toast_am: Some(refuse::relation_toast_am),
    relation_fetch_toast_slice: Some(refuse::relation_fetch_toast_slice),
    relation_estimate_size: Some(relation_estimate_size),
    #[cfg(not(feature = "pg18"))]
    scan_bitmap_next_block: Some(bitmap::scan_bitmap_next_block),
    scan_bitmap_next_tuple: Some(bitmap::scan_bitmap_next_tuple),
    scan_sample_next_block: Some(scan_sample_next_block),
    scan_sample_next_tuple: Some(scan_sample_next_tuple),
};

/// Makes lanes tables recognisable by their routine table. Called from `_PG_init`.
pub fn register() {
    table::register_routine(routine());
}

/// The routine table.
pub fn routine() -> *const pg_sys::TableAmRoutine {
    &raw const ROUTINE
}

/// The access method's handler function. Postgres calls handlers without the argument that their signature demands,
/// so this one takes its call as it comes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn lanes_handler(_call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    pg_sys::Datum::from(routine().cast_mut())
}

/// Postgres's record of the handler's calling convention (`PG_FUNCTION_INFO_V1`).
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pg_finfo_lanes_handler() -> &'static pg_sys::Pg_finfo_record {
    static VERSION_1: pg_sys::Pg_finfo_record = pg_sys::Pg_finfo_record { api_version: 1 };
    &VERSION_1
}

/// A scan descriptor: Postgres's part, then ours. Postgres never frees it with our knowledge when a query fails, so
/// what it owns hangs off the memory context that it lies in.
#[repr(C)]
struct ScanDescriptor {
    base: pg_sys::TableScanDescData,
    state: *mut ScanState,
}

pub(super) struct ScanState {
    /// Gone once the scan has ended.
    scan: Option<Scan<'static>>,
    pub(super) bitmap: BitmapRows,
    analyze: AnalyzeBlock,
    sample: SampleBlock,
    rows_returned: i64,
}

impl ScanState {
    /// # Safety
    /// `descriptor` was made by `scan_begin`.
    pub(super) unsafe fn of<'a>(descriptor: pg_sys::TableScanDesc) -> &'a mut ScanState {
        // SAFETY: the caller's promise.
        unsafe { &mut *(*descriptor.cast::<ScanDescriptor>()).state }
    }

    pub(super) fn scan(&mut self) -> &mut Scan<'static> {
        self.scan.as_mut().expect("the scan has not ended")
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn slot_callbacks(
    _relation: pg_sys::Relation,
) -> *const pg_sys::TupleTableSlotOps {
    slot::ops()
}

#[pg_guard]
unsafe extern "C-unwind" fn scan_begin(
    relation: pg_sys::Relation,
    snapshot: pg_sys::Snapshot,
    keys_count: i32,
    keys: *mut pg_sys::ScanKeyData,
    parallel: pg_sys::ParallelTableScanDesc,
    flags: u32,
) -> pg_sys::TableScanDesc {
    whole(|| {
        // SAFETY: the reference count keeps the relation open, and the scan's caller the snapshot,
        // until `scan_end`. Shared state was initialised by `parallelscan_initialize` and outlives
        // its scans.
        unsafe {
            pg_sys::RelationIncrementReferenceCount(relation);
            let (table, seen) = (OpenTable::new(relation), Snapshot::new(snapshot));
            let reads_all = pg_sys::ScanOptions::SO_TYPE_SEQSCAN
                | pg_sys::ScanOptions::SO_TYPE_SAMPLESCAN
                | pg_sys::ScanOptions::SO_TYPE_TIDRANGESCAN;
            if let Some(seen) = seen.filter(|_| flags & reads_all != 0) {
                table.predicate_lock(seen);
            }
            if flags & pg_sys::ScanOptions::SO_TYPE_SEQSCAN != 0 {
                table.count_scan();
            }
            let descriptor: *mut ScanDescriptor =
                pg_sys::palloc0(size_of::<ScanDescriptor>()).cast();
            (*descriptor).base.rs_rd = relation;
            (*descriptor).base.rs_snapshot = snapshot;
            (*descriptor).base.rs_nkeys = keys_count;
            (*descriptor).base.rs_key = keys;
            (*descriptor).base.rs_flags = flags;
            (*descriptor).base.rs_parallel = parallel;
            let mut scan = Scan::begin(table, seen);
            if let Some(shared) = parallel.cast::<ParallelState>().as_ref() {
                scan.share(&shared.segments);
            }
            if flags & pg_sys::ScanOptions::SO_TYPE_TIDSCAN != 0 {
                scan.name_rows();
            }
            let state = ScanState {
                scan: Some(scan),
                bitmap: BitmapRows::default(),
                analyze: AnalyzeBlock::default(),
                sample: SampleBlock::default(),
                rows_returned: 0,
            };
            (*descriptor).state =
                PgMemoryContexts::CurrentMemoryContext.leak_and_drop_on_delete(state);
            descriptor.cast()
        }
    })
}

#[pg_guard]
unsafe extern "C-unwind" fn scan_end(descriptor: pg_sys::TableScanDesc) {
    // SAFETY: made by `scan_begin`; what is left of the state goes with its memory context.
    unsafe {
        let state = ScanState::of(descriptor);
        let table = OpenTable::new((*descriptor).rs_rd);
        table.count_rows_returned(state.rows_returned);
        state.analyze = AnalyzeBlock::default();
        state.scan = None;
        if (*descriptor).rs_flags & pg_sys::ScanOptions::SO_TEMP_SNAPSHOT != 0 {
            pg_sys::UnregisterSnapshot((*descriptor).rs_snapshot);
        }
        pg_sys::RelationDecrementReferenceCount((*descriptor).rs_rd);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn scan_rescan(
    descriptor: pg_sys::TableScanDesc,
    _keys: *mut pg_sys::ScanKeyData,
    _set_params: bool,
    _allow_strategy: bool,
    _allow_sync: bool,
    _allow_pagemode: bool,
) {
    // SAFETY: made by `scan_begin`.
    unsafe {
        let state = ScanState::of(descriptor);
        state.bitmap = BitmapRows::default();
        state.scan().restart();
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn scan_getnextslot(
    descriptor: pg_sys::TableScanDesc,
    direction: pg_sys::ScanDirection::Type,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: made by `scan_begin`; the slot is of the scanned table.
    unsafe {
        let state = ScanState::of(descriptor);
        let found = state.scan().next(
            direction != pg_sys::ScanDirection::BackwardScanDirection,
            Slot::new(slot),
        );
        state.rows_returned += found as i64;
        found
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn scan_set_tidrange(
    descriptor: pg_sys::TableScanDesc,
    from: pg_sys::ItemPointer,
    to: pg_sys::ItemPointer,
) {
    // SAFETY: made by `scan_begin`; both pointers are the executor's.
    unsafe { ScanState::of(descriptor).scan().set_bounds(&*from, &*to) }
}

#[pg_guard]
unsafe extern "C-unwind" fn parallelscan_estimate(_relation: pg_sys::Relation) -> pg_sys::Size {
    size_of::<ParallelState>()
}

#[pg_guard]
unsafe extern "C-unwind" fn parallelscan_initialize(
    relation: pg_sys::Relation,
    parallel: pg_sys::ParallelTableScanDesc,
) -> pg_sys::Size {
    // SAFETY: Postgres allocated what `parallelscan_estimate` asked for.
    unsafe {
        let state = parallel.cast::<ParallelState>();
        #[cfg(not(feature = "pg18"))]
        {
            (*state).base.phs_relid = (*relation).rd_id;
        }
        #[cfg(feature = "pg18")]
        {
            (*state).base.phs_locator = OpenTable::new(relation).file();
        }
        (*state).base.phs_syncscan = false;
        (&raw mut (*state).segments).write(SharedSegments::default());
    }
    size_of::<ParallelState>()
}

#[pg_guard]
unsafe extern "C-unwind" fn parallelscan_reinitialize(
    _relation: pg_sys::Relation,
    parallel: pg_sys::ParallelTableScanDesc,
) {
    // SAFETY: initialised above; no participant is scanning now.
    unsafe { (*parallel.cast::<ParallelState>()).segments.restart() }
}

#[pg_guard]
unsafe extern "C-unwind" fn tuple_fetch_row_version(
    relation: pg_sys::Relation,
    id: pg_sys::ItemPointer,
    snapshot: pg_sys::Snapshot,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: PostgreSQL passes an open table, a live id and snapshot, and a slot of the table.
    unsafe {
        let (table, slot) = (OpenTable::new(relation), Slot::new(slot));
        Snapshot::new(snapshot).is_some_and(|seen| one_row::fetch(table, &*id, seen, slot))
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn tuple_tid_valid(
    descriptor: pg_sys::TableScanDesc,
    id: pg_sys::ItemPointer,
) -> bool {
    // SAFETY: made by `scan_begin`; the id is live.
    unsafe {
        let end = ScanState::of(descriptor).scan().reader.end_row();
        tid::to_row(&*id).is_some_and(|row| row < end)
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn tuple_get_latest_tid(
    descriptor: pg_sys::TableScanDesc,
    id: pg_sys::ItemPointer,
) {
    // SAFETY: made by `scan_begin`, whose table is open and whose snapshot is live; the id is the caller's.
    unsafe {
        let table = OpenTable::new((*descriptor).rs_rd);
        if let Some(snapshot) = Snapshot::new((*descriptor).rs_snapshot) {
            modify::latest(table, snapshot, &mut *id);
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn tuple_satisfies_snapshot(
    relation: pg_sys::Relation,
    slot: *mut pg_sys::TupleTableSlot,
    snapshot: pg_sys::Snapshot,
) -> bool {
    // SAFETY: PostgreSQL passes an open table, a filled slot of it and a live snapshot.
    unsafe {
        let (table, id) = (OpenTable::new(relation), Slot::new(slot).tid());
        Snapshot::new(snapshot).is_some_and(|seen| one_row::exists(table, &id, seen))
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn tuple_insert(
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
        if !pending_rows::gather(!bulk.is_null(), table, slot, command, options) {
            insert::insert_slots(table, std::iter::once(slot), command, options);
        }
    })
}

#[pg_guard]
unsafe extern "C-unwind" fn multi_insert(
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
            insert::insert_slots(OpenTable::new(relation), slots, command, options);
        }
    })
}

#[pg_guard]
unsafe extern "C-unwind" fn finish_bulk_insert(relation: pg_sys::Relation, _options: i32) {
    whole(|| {
        // SAFETY: an open table. Rows that were gathered for it must be written before it is closed.
        let table = unsafe { OpenTable::new(relation) };
        pending_rows::flush_table(table.oid());
    })
}

#[pg_guard]
unsafe extern "C-unwind" fn tuple_delete(
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
        modify::delete(table, &*id, command, conflicts, changing_partition, failure)
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn tuple_update(
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
        *update_indexes = match kept::indexes(table).any {
            true => ports::UPDATE_ALL_INDEXES,
            false => ports::UPDATE_NO_INDEXES,
        };
        let crosscheck = Snapshot::new(crosscheck);
        let conflicts = Conflicts { crosscheck, wait };
        let result;
        (result, *mode) = modify::update(table, &*id, slot, command, conflicts, &mut *failure);
        result
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn tuple_lock(
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
    let request = LockRequest::new(command, mode, policy, flags);
    // SAFETY: PostgreSQL passes an open table, a slot of it, and live data.
    unsafe {
        let (table, slot) = (OpenTable::new(relation), Slot::new(slot));
        modify::lock(table, &mut *id, slot, request, &mut *failure)
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn relation_set_new_file(
    relation: pg_sys::Relation,
    locator: *const ports::RelFileLocator,
    persistence: std::ffi::c_char,
    freeze: *mut pg_sys::TransactionId,
    freeze_multi: *mut pg_sys::MultiXactId,
) {
    // SAFETY: PostgreSQL passes an open table, a locator, and places for the results.
    unsafe {
        *freeze = transaction::recent_xmin();
        *freeze_multi = transaction::oldest_multixact();
        relation::set_new_file(OpenTable::new(relation), &*locator, persistence);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn relation_nontransactional_truncate(table: pg_sys::Relation) {
    // SAFETY: PostgreSQL passes a table that is open and exclusively locked.
    relation::truncate(unsafe { OpenTable::new(table) });
}

#[pg_guard]
unsafe extern "C-unwind" fn relation_copy_data(
    table: pg_sys::Relation,
    locator: *const ports::RelFileLocator,
) {
    // SAFETY: PostgreSQL passes a table that is open and exclusively locked, and a locator.
    unsafe { relation::copy_data(OpenTable::new(table), &*locator) }
}

#[pg_guard]
unsafe extern "C-unwind" fn relation_copy_for_cluster(
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
        // SAFETY: PostgreSQL passes two tables that are open and exclusively locked, and places for the counts.
        unsafe {
            let (source, target) = (OpenTable::new(source), OpenTable::new(target));
            let sort = (!index.is_null())
                .then(|| ClusterSort::begin(source, index).unwrap_or_else(|| refuse::clustering()));
            let counts = rewrite::copy(source, target, sort, horizon.into_inner());
            *kept = counts.kept;
            *removed = counts.removed;
            *recently_dead = counts.recently_dead;
        }
    })
}

#[pg_guard]
unsafe extern "C-unwind" fn relation_vacuum(
    relation: pg_sys::Relation,
    parameters: *mut pg_sys::VacuumParams,
    _strategy: pg_sys::BufferAccessStrategy,
) {
    // SAFETY: PostgreSQL passes a table that is open and locked in ShareUpdateExclusive mode, and live parameters.
    let (table, parameters) = unsafe { (OpenTable::new(relation), &*parameters) };
    // Core has read the table's parameter by now where the statement does not decide.
    let keeps_length = parameters.truncate == pg_sys::VacOptValue::VACOPTVALUE_DISABLED;
    let effort = (!keeps_length).then_some(Effort::VACUUM);
    let cleans_indexes = parameters.index_cleanup != pg_sys::VacOptValue::VACOPTVALUE_DISABLED;
    if parameters.nworkers > 0 && cleans_indexes {
        vacuum::warn_of_workers(table);
    }
    vacuum::vacuum(table, Audience::of(parameters), effort, cleans_indexes);
}

#[cfg(any(feature = "pg15", feature = "pg16"))]
#[pg_guard]
unsafe extern "C-unwind" fn scan_analyze_next_block(
    descriptor: pg_sys::TableScanDesc,
    block: pg_sys::BlockNumber,
    _strategy: pg_sys::BufferAccessStrategy,
) -> bool {
    // SAFETY: made by `scan_begin`.
    unsafe { analyze_block(descriptor, block) }
}

#[cfg(not(any(feature = "pg15", feature = "pg16")))]
#[pg_guard]
unsafe extern "C-unwind" fn scan_analyze_next_block(
    descriptor: pg_sys::TableScanDesc,
    stream: *mut pg_sys::ReadStream,
) -> bool {
    // SAFETY: made by `scan_begin`; the stream is ANALYZE's, and only the number of its next block matters.
    unsafe {
        match ports::next_streamed_block(stream) {
            Some(block) => analyze_block(descriptor, block),
            None => false,
        }
    }
}

unsafe fn analyze_block(descriptor: pg_sys::TableScanDesc, block: pg_sys::BlockNumber) -> bool {
    // SAFETY: made by `scan_begin`.
    unsafe {
        let state = ScanState::of(descriptor);
        if let Some(scan) = &state.scan {
            state.analyze.start(scan, block);
        }
        true
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn scan_analyze_next_tuple(
    descriptor: pg_sys::TableScanDesc,
    _horizon: pg_sys::TransactionId,
    live: *mut f64,
    dead: *mut f64,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: made by `scan_begin`; the counters are ANALYZE's.
    unsafe {
        let (state, slot) = (ScanState::of(descriptor), Slot::new(slot));
        state.scan().describe(slot);
        match &state.scan {
            Some(scan) => state.analyze.next(scan, &mut *live, &mut *dead, slot),
            None => false,
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn relation_size(
    relation: pg_sys::Relation,
    fork: pg_sys::ForkNumber::Type,
) -> u64 {
    // SAFETY: PostgreSQL passes an open table.
    relation::size(unsafe { OpenTable::new(relation) }, fork)
}

#[pg_guard]
unsafe extern "C-unwind" fn relation_needs_toast_table(_relation: pg_sys::Relation) -> bool {
    false
}

#[pg_guard]
unsafe extern "C-unwind" fn relation_estimate_size(
    relation: pg_sys::Relation,
    _widths: *mut i32,
    pages: *mut pg_sys::BlockNumber,
    tuples: *mut f64,
    all_visible_fraction: *mut f64,
) {
    // SAFETY: PostgreSQL passes an open table and places for the results.
    unsafe {
        let estimate = relation::estimate(OpenTable::new(relation));
        *pages = estimate.pages;
        *tuples = estimate.rows;
        *all_visible_fraction = estimate.all_visible;
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn scan_sample_next_block(
    descriptor: pg_sys::TableScanDesc,
    sample: *mut pg_sys::SampleScanState,
) -> bool {
    // SAFETY: made by `scan_begin`; the sampling state is the executor's.
    unsafe {
        let state = ScanState::of(descriptor);
        let method = (*(*sample).tsmroutine).NextSampleBlock;
        let pick = method.map(|pick| move |blocks| pick(sample, blocks));
        match &mut state.scan {
            Some(scan) => state.sample.next_block(scan, pick),
            None => false,
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn scan_sample_next_tuple(
    descriptor: pg_sys::TableScanDesc,
    sample: *mut pg_sys::SampleScanState,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: made by `scan_begin`; the sampling state is the executor's, and the slot of the scanned table.
    unsafe {
        let state = ScanState::of(descriptor);
        match (&mut state.scan, (*(*sample).tsmroutine).NextSampleTuple) {
            (Some(scan), Some(pick)) => {
                let pick = |block, rows| pick(sample, block, rows);
                state.sample.next_row(scan, pick, Slot::new(slot))
            }
            _ => false,
        }
    }
}
