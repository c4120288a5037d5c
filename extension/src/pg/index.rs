//! Indexes: making their entries from rows, and cleaning them up.

use std::ffi::c_void;
use std::marker::PhantomData;

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::descriptor::Descriptor;
use super::executor;
use super::slot::Slot;
use super::table::OpenTable;
use super::tree::View;
use super::tree::view::views;

/// Columns of an index at most.
const COLUMNS_MAX: usize = pg_sys::INDEX_MAX_KEYS as usize;

/// Values of the columns of an index entry.
pub struct Entry {
    values: [pg_sys::Datum; COLUMNS_MAX],
    nulls: [bool; COLUMNS_MAX],
}

impl Default for Entry {
    /// NULL in all columns.
    fn default() -> Entry {
        Entry {
            values: [pg_sys::Datum::null(); COLUMNS_MAX],
            nulls: [true; COLUMNS_MAX],
        }
    }
}

impl Entry {
    /// Whether the first column is NULL.
    pub fn begins_with_null(&self) -> bool {
        self.nulls[0]
    }

    /// An entry with these first columns; `None` is NULL.
    pub fn of_columns(columns: impl Iterator<Item = Option<pg_sys::Datum>>) -> Entry {
        let mut entry = Entry::default();
        for (place, column) in columns.enumerate() {
            entry.nulls[place] = column.is_none();
            entry.values[place] = column.unwrap_or(pg_sys::Datum::null());
        }
        entry
    }

    /// Copies the first columns.
    pub fn copy_to(&self, values: &mut [pg_sys::Datum], nulls: &mut [bool]) {
        let count = values.len();
        values.copy_from_slice(&self.values[..count]);
        nulls.copy_from_slice(&self.nulls[..count]);
    }
}

views! {
    /// The description of an index.
    IndexDescription of IndexInfo {
        /// Whether the index is made while others write to the table.
        is_concurrent = ii_Concurrent: bool;
    } {} {}
}

/// Computes the entries of one index from rows of its table.
pub struct EntryMaker<'a> {
    index: pg_sys::Relation,
    info: *mut pg_sys::IndexInfo,
    estate: *mut pg_sys::EState,
    context: *mut pg_sys::ExprContext,
    predicate: *mut pg_sys::ExprState,
    slot: *mut pg_sys::TupleTableSlot,
    table: OpenTable<'a>,
}

impl<'a> EntryMaker<'a> {
    /// Begins with an open index of the table, and its description.
    pub fn begin(
        table: OpenTable<'a>,
        index: OpenTable<'a>,
        info: IndexDescription<'a>,
    ) -> EntryMaker<'a> {
        let (index, info) = (index.as_ptr(), View::as_ptr(info));
        // SAFETY: index and description live for `'a`; what is made here lives in the current memory context and is
        // freed by `finish`, or with the context after an ERROR.
        unsafe {
            let estate = pg_sys::CreateExecutorState();
            let context = pg_sys::MakePerTupleExprContext(estate);
            let slot = pg_sys::table_slot_create(table.as_ptr(), std::ptr::null_mut());
            (*context).ecxt_scantuple = slot;
            let predicate = pg_sys::ExecPrepareQual((*info).ii_Predicate, estate);
            EntryMaker {
                index,
                info,
                estate,
                context,
                predicate,
                slot,
                table,
            }
        }
    }

    /// The slot that [`make`](Self::make) takes the row from.
    pub fn slot(&self) -> Slot<'a> {
        // SAFETY: made in `begin`, and of the table's row type.
        unsafe { Slot::new(self.slot) }
    }

    /// The entry of the row in the slot; `None`: the index is partial and does not have the row. The values live
    /// until the next call.
    pub fn make(&mut self) -> Option<Entry> {
        // SAFETY: all of it was made in `begin`; the slot is filled.
        unsafe {
            executor::reset(self.context);
            if !self.predicate.is_null() {
                let (predicate, context) = (self.predicate, self.context);
                // The frames within the boundary have nothing to drop.
                if !pg_sys::ffi::pg_guard_ffi_boundary(|| executor::passes(predicate, context)) {
                    return None;
                }
            }
            let mut entry = Entry::default();
            executor::in_context((*self.context).ecxt_per_tuple_memory, || {
                let (values, nulls) = (entry.values.as_mut_ptr(), entry.nulls.as_mut_ptr());
                pg_sys::FormIndexDatum(self.info, self.slot, self.estate, values, nulls);
            });
            Some(entry)
        }
    }

    /// Inserts an entry into the index for a row that is visible to everybody who may use the index, or checks
    /// uniqueness against those who do not see it.
    pub fn insert(&mut self, entry: &mut Entry, mut id: pg_sys::ItemPointerData) {
        // SAFETY: the index and its description live; the entry was made for this index.
        unsafe {
            let unique = match (*self.info).ii_Unique {
                true => pg_sys::IndexUniqueCheck::UNIQUE_CHECK_YES,
                false => pg_sys::IndexUniqueCheck::UNIQUE_CHECK_NO,
            };
            executor::in_context((*self.context).ecxt_per_tuple_memory, || {
                pg_sys::index_insert(
                    self.index,
                    entry.values.as_mut_ptr(),
                    entry.nulls.as_mut_ptr(),
                    &raw mut id,
                    self.table.as_ptr(),
                    unique,
                    false,
                    self.info,
                );
            });
        }
    }

    /// Frees what was made.
    pub fn finish(self) {
        // SAFETY: made in `begin`, and freed once.
        unsafe {
            pg_sys::ExecDropSingleTupleTableSlot(self.slot);
            pg_sys::FreeExecutorState(self.estate);
            // They pointed into what was freed.
            (*self.info).ii_ExpressionsState = std::ptr::null_mut();
            (*self.info).ii_PredicateState = std::ptr::null_mut();
        }
    }
}

/// The callback of an index that is being built. It takes entries.
pub struct EntrySink {
    index: pg_sys::Relation,
    callback: pg_sys::IndexBuildCallback,
    state: *mut c_void,
}

impl EntrySink {
    /// # Safety
    /// `callback` takes entries of the open `index`, with `state`.
    pub unsafe fn new(
        index: pg_sys::Relation,
        callback: pg_sys::IndexBuildCallback,
        state: *mut c_void,
    ) -> EntrySink {
        EntrySink {
            index,
            callback,
            state,
        }
    }

    /// The types of the index's columns, and their modifiers.
    pub fn column_types(&self) -> Vec<(pg_sys::Oid, i32)> {
        // SAFETY: `new` was promised an open index; its descriptor lives while it is open.
        let descriptor = unsafe { Descriptor::at((*self.index).rd_att) };
        let columns = descriptor.attributes();
        columns
            .map(|column| (column.atttypid, column.atttypmod))
            .collect()
    }

    /// Passes on the entry of a row. Rows that are not alive are left out of checks of uniqueness.
    pub fn take(&self, entry: &mut Entry, mut id: pg_sys::ItemPointerData, is_alive: bool) {
        // SAFETY: promised to `new`.
        unsafe {
            if let Some(callback) = self.callback {
                let (id, values, nulls) = (
                    &raw mut id,
                    entry.values.as_mut_ptr(),
                    entry.nulls.as_mut_ptr(),
                );
                // The frame within the boundary has nothing to drop.
                pg_sys::ffi::pg_guard_ffi_boundary(|| {
                    callback(self.index, id, values, nulls, is_alive, self.state)
                });
            }
        }
    }
}

/// The indexes of a table, open for a VACUUM of it.
pub struct VacuumedIndexes<'a> {
    table: OpenTable<'a>,
    indexes: *mut pg_sys::Relation,
    count: i32,
}

impl<'a> VacuumedIndexes<'a> {
    /// Opens all indexes of a table.
    pub fn open(table: OpenTable<'a>) -> VacuumedIndexes<'a> {
        let (mut indexes, mut count) = (std::ptr::null_mut(), 0);
        // SAFETY: the table is open and locked by the caller's VACUUM.
        unsafe {
            let mode = pg_sys::RowExclusiveLock as i32;
            pg_sys::vac_open_indexes(table.as_ptr(), mode, &raw mut count, &raw mut indexes);
        }
        VacuumedIndexes {
            table,
            indexes,
            count,
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Removes the entries of rows that are gone, and brings the indexes and their statistics up to date; how many
    /// entries were removed. `rows` is the number of rows that the table has.
    pub fn clean(
        &self,
        rows: u64,
        mut is_gone: impl FnMut(&pg_sys::ItemPointerData) -> bool,
    ) -> u64 {
        let mut removed = 0;
        for place in 0..self.count as usize {
            // SAFETY: there are so many open indexes.
            let index = OpenTable::new(unsafe { *self.indexes.add(place) });
            let visit = Visit {
                table: self.table,
                index,
                rows: rows as f64,
                is_estimate: false,
            };
            removed += visit.clean(&mut is_gone);
            super::ports::CHECK_FOR_INTERRUPTS();
        }
        removed
    }
}

impl Drop for VacuumedIndexes<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: opened by `open`; the locks are kept until the transaction ends, as VACUUM of a heap keeps them.
            unsafe {
                pg_sys::vac_close_indexes(self.count, self.indexes, pg_sys::NoLock as i32);
            }
        }
    }
}

/// A question about each entry: whether the row with this id is gone, so that the entry has to go too.
type IsGone<'f> = &'f mut dyn FnMut(&pg_sys::ItemPointerData) -> bool;

/// A visit of all entries of an index, in the index's own order. Index access methods of every kind read all entries
/// for VACUUM alone, so a visit asks as VACUUM does.
struct Visit<'a> {
    #[cfg_attr(
        feature = "pg15",
        expect(dead_code, reason = "later versions of PostgreSQL ask for it")
    )]
    table: OpenTable<'a>,
    index: OpenTable<'a>,
    /// The number of rows that the table has.
    rows: f64,
    is_estimate: bool,
}

impl Visit<'_> {
    fn info(&self) -> pg_sys::IndexVacuumInfo {
        pg_sys::IndexVacuumInfo {
            index: self.index.as_ptr(),
            message_level: pg_sys::DEBUG2 as i32,
            num_heap_tuples: self.rows,
            estimated_count: self.is_estimate,
            strategy: std::ptr::null_mut(),
            #[cfg(not(feature = "pg15"))]
            heaprel: self.table.as_ptr(),
            ..Default::default()
        }
    }

    /// Asks about each entry.
    fn ask(&self, mut question: IsGone<'_>) -> *mut pg_sys::IndexBulkDeleteResult {
        let (mut info, state) = (self.info(), (&raw mut question).cast::<c_void>());
        let none = std::ptr::null_mut();
        // SAFETY: an open index; the callback's state lives during the call.
        unsafe { pg_sys::index_bulk_delete(&raw mut info, none, Some(entry_is_gone), state) }
    }

    /// Removes the entries of rows that are gone, and brings the index and its statistics up to date; how many entries
    /// were removed.
    fn clean(&self, question: IsGone<'_>) -> u64 {
        let asked = self.ask(question);
        let mut info = self.info();
        // SAFETY: an open index, and the result of the first step.
        unsafe {
            let cleaned = pg_sys::index_vacuum_cleanup(&raw mut info, asked);
            let Some(stats) = cleaned.as_ref() else {
                return 0;
            };
            let removed = stats.tuples_removed as u64;
            if !stats.estimated_count {
                let (pages, entries) = (stats.num_pages, stats.num_index_tuples);
                super::ports::update_index_stats(self.index, pages, entries);
            }
            pg_sys::pfree(cleaned.cast());
            removed
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn entry_is_gone(id: pg_sys::ItemPointer, state: *mut c_void) -> bool {
    // SAFETY: `ask` passes the question, which lives; the id is the index's.
    unsafe {
        let question: &mut IsGone<'_> = &mut *state.cast::<IsGone<'_>>();
        question(&*id)
    }
}

/// Asks about the tuple id of each entry of an open index of a table, and removes those of which `question` holds.
pub fn visit_entries(table: OpenTable<'_>, index: OpenTable<'_>, question: IsGone<'_>) {
    let visit = Visit {
        table,
        index,
        rows: f64::from(table.catalogued_size().1),
        is_estimate: true,
    };
    let stats = visit.ask(question);
    if !stats.is_null() {
        // SAFETY: the access method has allocated the result.
        unsafe { pg_sys::pfree(stats.cast()) }
    }
}

/// The entries that CREATE INDEX CONCURRENTLY found in the index that it is completing.
pub struct FoundEntries<'a> {
    state: *mut pg_sys::ValidateIndexState,
    lives: PhantomData<&'a mut pg_sys::ValidateIndexState>,
}

impl FoundEntries<'_> {
    /// # Safety
    /// `state` lives as long as the value.
    pub unsafe fn new(state: *mut pg_sys::ValidateIndexState) -> Self {
        FoundEntries {
            state,
            lives: PhantomData,
        }
    }

    /// The next entry's tuple id, as (block, offset), ascending.
    pub fn next(&mut self) -> Option<(u32, u16)> {
        let (mut value, mut is_null) = (pg_sys::Datum::null(), false);
        // SAFETY: a live sort of 64-bit numbers that is ready to be read.
        let found = unsafe {
            pg_sys::tuplesort_getdatum(
                (*self.state).tuplesort,
                true,
                #[cfg(not(feature = "pg15"))]
                false,
                &raw mut value,
                &raw mut is_null,
                std::ptr::null_mut(),
            )
        };
        // `itemptr_encode`: the block in the upper 48 bits, the offset in the lower 16.
        let encoded = value.value() as u64;
        found.then_some(((encoded >> 16) as u32, encoded as u16))
    }

    /// Counts a row that was looked at, and whether it lacked an entry.
    pub fn count(&mut self, is_inserted: bool) {
        // SAFETY: promised to `new`.
        unsafe {
            (*self.state).htups += 1.0;
            (*self.state).tups_inserted += f64::from(u8::from(is_inserted));
        }
    }
}

/// See [`Deletion::retain`].
const HOPEFUL_MAX: usize = 16;

/// Entries that an index offers to delete, because a page is full or scans have found that nobody sees the rows.
pub struct Deletion {
    operation: *mut pg_sys::TM_IndexDeleteOp,
}

impl Deletion {
    /// # Safety
    /// `operation` lives as long as the value. Its arrays have as many elements as it says, and the id of an element is
    /// its place in the array of states.
    pub unsafe fn new(operation: *mut pg_sys::TM_IndexDeleteOp) -> Deletion {
        Deletion { operation }
    }

    /// Keeps the entries that the index knows to be dead or of which `is_gone` holds. Returns their number.
    ///
    /// Before it splits a page, an index asks whether older versions of its rows are gone. That costs a look at
    /// each of them and is for nothing in one large UPDATE. So if none of the first [`HOPEFUL_MAX`] versions is
    /// gone that the index hopes for, the others are not looked at.
    pub fn retain(&mut self, mut is_gone: impl FnMut(&pg_sys::ItemPointerData) -> bool) -> usize {
        let (mut kept, mut hopeful) = (0, 0);
        // SAFETY: promised to `new`.
        unsafe {
            let operation = &mut *self.operation;
            let count = operation.ndeltids as usize;
            let wanted = std::slice::from_raw_parts_mut(operation.deltids, count);
            for place in 0..count {
                let entry = wanted[place];
                let state = &mut *operation.status.add(entry.id as usize);
                if operation.bottomup && state.promising && !state.knowndeletable {
                    hopeful += 1;
                    if kept == 0 && hopeful > HOPEFUL_MAX {
                        break;
                    }
                }
                state.knowndeletable = state.knowndeletable || is_gone(&entry.tid);
                if state.knowndeletable {
                    wanted[kept] = entry;
                    kept += 1;
                }
            }
            operation.ndeltids = kept as i32;
        }
        kept
    }
}
