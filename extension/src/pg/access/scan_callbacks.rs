//! The callbacks of scans, generic over the [`ScanAccess`], and of index fetches, generic over the [`IndexAccess`].
//!
//! A descriptor is PostgreSQL's part, then ours. PostgreSQL never frees it with our knowledge when a query fails, so
//! what it owns hangs off a memory context.
//!
//! Invariants:
//! - A scan's descriptor was made by `scan_begin` for the same type of scan, and a fetch's by `index_fetch_begin`: the
//!   callbacks of one routine table are all for one access method.
//! - What a descriptor owns is borrowed by one callback at a time.

use pgrx::PgMemoryContexts;
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::index::{Found, IndexAccess};
use super::scan::{ScanAccess, ScanPurpose, ScanStart};
use crate::pg::executor::{in_context, small_context};
use crate::pg::slot::{self, Slot};
use crate::pg::snapshot::{Snapshot, SnapshotKind};
use crate::pg::table::OpenTable;
use crate::pg::whole_error::whole;

/// A scan descriptor.
#[repr(C)]
struct ScanDescriptor<S> {
    base: pg_sys::TableScanDescData,
    state: *mut S,
    /// Whether the query has to check its conditions for each row of the bitmap's block.
    #[cfg(feature = "pg18")]
    recheck: bool,
}

/// The descriptor of a parallel scan, in shared memory.
#[repr(C)]
struct ParallelScan<S> {
    base: pg_sys::ParallelTableScanDescData,
    own: S,
}

/// The scan of a descriptor.
///
/// # Safety
/// `scan_begin::<S>` made the descriptor, and nobody else borrows the scan.
pub(super) unsafe fn scan_of<'a, S>(descriptor: pg_sys::TableScanDesc) -> &'a mut S {
    // SAFETY: the caller's promise.
    unsafe { &mut *(*descriptor.cast::<ScanDescriptor<S>>()).state }
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn slot_callbacks(
    _relation: pg_sys::Relation,
) -> *const pg_sys::TupleTableSlotOps {
    slot::ops()
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn scan_begin<S: ScanAccess>(
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
            let descriptor: *mut ScanDescriptor<S> =
                pg_sys::palloc0(size_of::<ScanDescriptor<S>>()).cast();
            (*descriptor).base.rs_rd = relation;
            (*descriptor).base.rs_snapshot = snapshot;
            (*descriptor).base.rs_nkeys = keys_count;
            (*descriptor).base.rs_key = keys;
            (*descriptor).base.rs_flags = flags;
            (*descriptor).base.rs_parallel = parallel;
            let shared = parallel.cast::<ParallelScan<S::Shared>>().as_ref();
            let state = S::begin(ScanStart {
                table: OpenTable::new(relation),
                snapshot: Snapshot::new(snapshot),
                shared: shared.map(|shared| &shared.own),
                purpose: ScanPurpose::new(flags),
            });
            (*descriptor).state =
                PgMemoryContexts::CurrentMemoryContext.leak_and_drop_on_delete(state);
            descriptor.cast()
        }
    })
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn scan_end<S: ScanAccess>(descriptor: pg_sys::TableScanDesc) {
    // SAFETY: made by `scan_begin`; what is left of the scan goes with its memory context.
    unsafe {
        scan_of::<S>(descriptor).end(OpenTable::new((*descriptor).rs_rd));
        if (*descriptor).rs_flags & pg_sys::ScanOptions::SO_TEMP_SNAPSHOT != 0 {
            pg_sys::UnregisterSnapshot((*descriptor).rs_snapshot);
        }
        pg_sys::RelationDecrementReferenceCount((*descriptor).rs_rd);
    }
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn scan_rescan<S: ScanAccess>(
    descriptor: pg_sys::TableScanDesc,
    _keys: *mut pg_sys::ScanKeyData,
    _set_params: bool,
    _allow_strategy: bool,
    _allow_sync: bool,
    _allow_pagemode: bool,
) {
    // SAFETY: made by `scan_begin`.
    unsafe { scan_of::<S>(descriptor).restart() }
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn scan_getnextslot<S: ScanAccess>(
    descriptor: pg_sys::TableScanDesc,
    direction: pg_sys::ScanDirection::Type,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    let forward = direction != pg_sys::ScanDirection::BackwardScanDirection;
    // SAFETY: made by `scan_begin`; the slot is of the scanned table.
    unsafe { scan_of::<S>(descriptor).next(forward, Slot::new(slot)) }
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn scan_set_tidrange<S: ScanAccess>(
    descriptor: pg_sys::TableScanDesc,
    from: pg_sys::ItemPointer,
    to: pg_sys::ItemPointer,
) {
    // SAFETY: made by `scan_begin`; both pointers are the executor's.
    unsafe { scan_of::<S>(descriptor).set_bounds(&*from, &*to) }
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn tuple_tid_valid<S: ScanAccess>(
    descriptor: pg_sys::TableScanDesc,
    id: pg_sys::ItemPointer,
) -> bool {
    // SAFETY: made by `scan_begin`; the id is live.
    unsafe { scan_of::<S>(descriptor).has_id(&*id) }
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn parallelscan_estimate<S: ScanAccess>(
    _relation: pg_sys::Relation,
) -> pg_sys::Size {
    size_of::<ParallelScan<S::Shared>>()
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn parallelscan_initialize<S: ScanAccess>(
    relation: pg_sys::Relation,
    parallel: pg_sys::ParallelTableScanDesc,
) -> pg_sys::Size {
    // SAFETY: Postgres allocated what `parallelscan_estimate` asked for.
    unsafe {
        let shared = parallel.cast::<ParallelScan<S::Shared>>();
        #[cfg(not(feature = "pg18"))]
        {
            (*shared).base.phs_relid = (*relation).rd_id;
        }
        #[cfg(feature = "pg18")]
        {
            (*shared).base.phs_locator = OpenTable::new(relation).file();
        }
        (*shared).base.phs_syncscan = false;
        (&raw mut (*shared).own).write(S::Shared::default());
    }
    size_of::<ParallelScan<S::Shared>>()
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn parallelscan_reinitialize<S: ScanAccess>(
    _relation: pg_sys::Relation,
    parallel: pg_sys::ParallelTableScanDesc,
) {
    // SAFETY: initialised above; no participant is scanning now.
    unsafe { S::restart_shared(&(*parallel.cast::<ParallelScan<S::Shared>>()).own) }
}

#[cfg(not(feature = "pg18"))]
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn scan_bitmap_next_block<S: ScanAccess>(
    descriptor: pg_sys::TableScanDesc,
    block: *mut pg_sys::TBMIterateResult,
) -> bool {
    // SAFETY: made by `scan_begin`; the block is the bitmap's. A negative count says that its offsets were lost.
    unsafe {
        let count = (*block).ntuples;
        let exact = (count >= 0).then(|| (*block).offsets.as_slice(count as usize));
        scan_of::<S>(descriptor).start_bitmap_block((*block).blockno, exact);
        true
    }
}

#[cfg(not(feature = "pg18"))]
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn scan_bitmap_next_tuple<S: ScanAccess>(
    descriptor: pg_sys::TableScanDesc,
    _block: *mut pg_sys::TBMIterateResult,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: made by `scan_begin`; the slot is of the scanned table.
    unsafe { scan_of::<S>(descriptor).next_of_bitmap(Slot::new(slot)) }
}

/// The next row of all blocks: this version leaves the bitmap to the access method.
#[cfg(feature = "pg18")]
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn scan_bitmap_next_tuple<S: ScanAccess>(
    descriptor: pg_sys::TableScanDesc,
    slot: *mut pg_sys::TupleTableSlot,
    recheck: *mut bool,
    lossy_blocks: *mut u64,
    exact_blocks: *mut u64,
) -> bool {
    const OFFSETS_MAX: usize = crate::pg::ports::MaxHeapTuplesPerPage;
    // SAFETY: made by `scan_begin`; the bitmap's iterator, the slot and the places for results are the executor's.
    unsafe {
        let scan = scan_of::<S>(descriptor);
        loop {
            if scan.next_of_bitmap(Slot::new(slot)) {
                *recheck = (*descriptor.cast::<ScanDescriptor<S>>()).recheck;
                return true;
            }
            let mut block = pg_sys::TBMIterateResult::default();
            let iterator = &raw mut (*descriptor).st.rs_tbmiterator;
            if !pg_sys::tbm_iterate(iterator, &raw mut block) {
                return false;
            }
            let mut offsets = [0u16; OFFSETS_MAX];
            let exact = (!block.lossy).then(|| {
                let count = pg_sys::tbm_extract_page_tuple(
                    &raw mut block,
                    offsets.as_mut_ptr(),
                    OFFSETS_MAX as u32,
                );
                count as usize
            });
            *(if block.lossy {
                lossy_blocks
            } else {
                exact_blocks
            }) += 1;
            scan.start_bitmap_block(block.blockno, exact.map(|count| &offsets[..count]));
            (*descriptor.cast::<ScanDescriptor<S>>()).recheck = block.recheck;
        }
    }
}

#[cfg(any(feature = "pg15", feature = "pg16"))]
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn scan_analyze_next_block<S: ScanAccess>(
    descriptor: pg_sys::TableScanDesc,
    block: pg_sys::BlockNumber,
    _strategy: pg_sys::BufferAccessStrategy,
) -> bool {
    // SAFETY: made by `scan_begin`.
    unsafe { scan_of::<S>(descriptor).start_analyzed_block(block) }
    true
}

#[cfg(not(any(feature = "pg15", feature = "pg16")))]
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn scan_analyze_next_block<S: ScanAccess>(
    descriptor: pg_sys::TableScanDesc,
    stream: *mut pg_sys::ReadStream,
) -> bool {
    // SAFETY: made by `scan_begin`; the stream is ANALYZE's, and only the number of its next block matters.
    unsafe {
        let block = crate::pg::ports::next_streamed_block(stream);
        if let Some(block) = block {
            scan_of::<S>(descriptor).start_analyzed_block(block);
        }
        block.is_some()
    }
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn scan_analyze_next_tuple<S: ScanAccess>(
    descriptor: pg_sys::TableScanDesc,
    _horizon: pg_sys::TransactionId,
    live: *mut f64,
    dead: *mut f64,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: made by `scan_begin`; the counters are ANALYZE's.
    unsafe { scan_of::<S>(descriptor).next_analyzed(&mut *live, &mut *dead, Slot::new(slot)) }
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn scan_sample_next_block<S: ScanAccess>(
    descriptor: pg_sys::TableScanDesc,
    sample: *mut pg_sys::SampleScanState,
) -> bool {
    // SAFETY: made by `scan_begin`; the sampling state is the executor's.
    unsafe {
        let method = (*(*sample).tsmroutine).NextSampleBlock;
        let pick = method.map(|pick| move |blocks| pick(sample, blocks));
        scan_of::<S>(descriptor).next_sampled_block(pick)
    }
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn scan_sample_next_tuple<S: ScanAccess>(
    descriptor: pg_sys::TableScanDesc,
    sample: *mut pg_sys::SampleScanState,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: made by `scan_begin`; the sampling state is the executor's, and the slot of the scanned table.
    unsafe {
        let Some(pick) = (*(*sample).tsmroutine).NextSampleTuple else {
            return false;
        };
        let pick = |block, rows| pick(sample, block, rows);
        scan_of::<S>(descriptor).next_sampled(pick, Slot::new(slot))
    }
}

/// A fetch descriptor.
#[repr(C)]
struct FetchDescriptor<F> {
    base: pg_sys::IndexFetchTableData,
    /// Made by the first fetch under an MVCC snapshot; null before.
    fetch: *mut F,
    /// The context of `fetch`, which goes with it. A statement may fetch for each of its rows in the same memory
    /// context, so each has one of its own.
    memory: pg_sys::MemoryContext,
    /// The oldest transaction that some snapshot may not see, once a fetch under another snapshot has asked for it; 0
    /// before.
    horizon: u32,
}

/// Checks of uniqueness begin a fetch for each duplicate key. They need nothing that must be dropped.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn index_fetch_begin<A: IndexAccess>(
    relation: pg_sys::Relation,
) -> *mut pg_sys::IndexFetchTableData {
    // SAFETY: PostgreSQL passes a table that stays open until `index_fetch_end`.
    unsafe {
        let descriptor: *mut FetchDescriptor<A::Fetch> =
            pg_sys::palloc0(size_of::<FetchDescriptor<A::Fetch>>()).cast();
        (*descriptor).base.rel = relation;
        descriptor.cast()
    }
}

/// # Safety
/// `index_fetch_begin::<A>` made the descriptor, and nobody else borrows the fetch.
unsafe fn fetch_of<'a, A: IndexAccess>(
    descriptor: *mut pg_sys::IndexFetchTableData,
) -> &'a mut A::Fetch {
    // SAFETY: the caller's promise.
    unsafe {
        let descriptor = descriptor.cast::<FetchDescriptor<A::Fetch>>();
        if (*descriptor).fetch.is_null() {
            let around = pg_sys::GetMemoryChunkContext(descriptor.cast());
            let memory = in_context(around, || small_context(c"lanes index fetch"));
            let fetch = A::begin_fetch(OpenTable::new((*descriptor).base.rel));
            (*descriptor).memory = memory;
            (*descriptor).fetch = PgMemoryContexts::For(memory).leak_and_drop_on_delete(fetch);
        }
        &mut *(*descriptor).fetch
    }
}

/// Nothing is released: the scan goes on with the same snapshot.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn index_fetch_reset(
    _descriptor: *mut pg_sys::IndexFetchTableData,
) {
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn index_fetch_end<A: IndexAccess>(
    descriptor: *mut pg_sys::IndexFetchTableData,
) {
    // SAFETY: made by `index_fetch_begin`; the fetch goes with its memory context.
    unsafe {
        let memory = (*descriptor.cast::<FetchDescriptor<A::Fetch>>()).memory;
        if !memory.is_null() {
            pg_sys::MemoryContextDelete(memory);
        }
        pg_sys::pfree(descriptor.cast());
    }
}

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn index_fetch_tuple<A: IndexAccess>(
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
                A::fetch(fetch_of::<A>(descriptor), &*id, seen, slot)
            }
            Some(seen) => {
                let table = OpenTable::new((*descriptor).rel);
                let horizon = &mut (*descriptor.cast::<FetchDescriptor<A::Fetch>>()).horizon;
                A::fetch_current(table, &*id, seen, slot, || {
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
