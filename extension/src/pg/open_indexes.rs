//! The open indexes of a table to which rows are written together, as by `lanes.append` and `INSERT … SELECT`.
//!
//! ```text
//! the rows of a run, written ──► for each index: the rows in about the order of its key ──► an entry each
//! ```
//! Neighbours in the order of a btree's key go to the same page, which is then in the processor's cache, and the btree
//! tries the page of the last entry first. The [order](KeyOrder) is about that of the key, and the result is the same
//! in any order, except for which of several rows that violate a constraint is reported. `INSERT … SELECT` reports the
//! first of them, as PostgreSQL does, so its rows go one by one to all indexes where an index has a constraint.
//!
//! An ERROR such as a violated constraint has to keep its constraint's name, so it jumps over these frames as
//! PostgreSQL's own. What they use therefore lies in memory contexts of PostgreSQL's, and goes with them.

use pgrx::{PgMemoryContexts, pg_sys};

use super::datum::RowOutlet;
use super::descriptor::Descriptor;
use super::executor;
use super::key_order::KeyOrder;
use super::ports;
use super::slot::{RowHeader, Slot};
use super::table::OpenTable;
use super::tree::view::Field;
use super::tree::{Oids, View};
use super::whole_error::guard;

pub mod arbiters;

unsafe extern "C-unwind" {
    #[link_name = "ExecInsertIndexTuples"]
    fn insert_entries(
        target: *mut pg_sys::ResultRelInfo,
        slot: *mut pg_sys::TupleTableSlot,
        estate: *mut pg_sys::EState,
        update: bool,
        no_duplicate_error: bool,
        conflict: *mut bool,
        arbiters: *mut pg_sys::List,
        #[cfg(not(feature = "pg15"))] only_summarizing: bool,
    ) -> *mut pg_sys::List;
    #[link_name = "ExecCheckIndexConstraints"]
    fn check_keys(
        target: *mut pg_sys::ResultRelInfo,
        slot: *mut pg_sys::TupleTableSlot,
        estate: *mut pg_sys::EState,
        found: pg_sys::ItemPointer,
        #[cfg(feature = "pg18")] own: pg_sys::ItemPointer,
        arbiters: *mut pg_sys::List,
    ) -> bool;
    #[link_name = "FormIndexDatum"]
    fn form_entry(
        info: *mut pg_sys::IndexInfo,
        slot: *mut pg_sys::TupleTableSlot,
        estate: *mut pg_sys::EState,
        values: *mut pg_sys::Datum,
        nulls: *mut bool,
    );
    #[link_name = "index_insert"]
    fn insert_entry(
        index: pg_sys::Relation,
        values: *mut pg_sys::Datum,
        nulls: *mut bool,
        id: pg_sys::ItemPointer,
        table: pg_sys::Relation,
        unique: pg_sys::IndexUniqueCheck::Type,
        is_unchanged: bool,
        info: *mut pg_sys::IndexInfo,
    ) -> bool;
    #[link_name = "ExecPrepareQual"]
    fn prepare_predicate(
        predicate: *mut pg_sys::List,
        estate: *mut pg_sys::EState,
    ) -> *mut pg_sys::ExprState;
}

/// Rows between two looks for interrupts.
const INTERRUPT_ROWS: usize = 1024;

/// Columns of an index at most.
const COLUMNS_MAX: usize = pg_sys::INDEX_MAX_KEYS as usize;

/// The open indexes. They go with the memory in which they were opened, and with the transaction, after an ERROR, and
/// are otherwise [closed](OpenIndexes::close).
#[derive(Clone, Copy)]
pub struct OpenIndexes {
    own: *mut pg_sys::ResultRelInfo,
    estate: *mut pg_sys::EState,
    context: *mut pg_sys::ExprContext,
    slot: *mut pg_sys::TupleTableSlot,
    /// The indexes whose keys decide whether a row is inserted, by ON CONFLICT; null: all of them.
    arbiters: *mut pg_sys::List,
}

/// Rows of a table in the memory of its open indexes.
pub struct HeldRows<T: 'static> {
    held: *mut (RowOutlet, T),
    memory: pg_sys::MemoryContext,
}

/// The entries of an index that are made together.
struct IndexEntries {
    index: pg_sys::Relation,
    info: *mut pg_sys::IndexInfo,
    /// The condition of a partial index.
    predicate: *mut pg_sys::ExprState,
    /// Whether columns alone are indexed, so that no row has to be shown to expressions.
    has_columns_alone: bool,
}

impl OpenIndexes {
    /// Opens the indexes of a table, in the current memory context.
    pub fn open(table: OpenTable<'_>) -> OpenIndexes {
        Self::open_for(table, None)
    }

    /// Opens the indexes of a table for INSERT … ON CONFLICT DO NOTHING. `arbiters` live as long as the result.
    pub fn open_with(table: OpenTable<'_>, arbiters: Oids<'static>) -> OpenIndexes {
        Self::open_for(table, Some(arbiters))
    }

    fn open_for(table: OpenTable<'_>, arbiters: Option<Oids<'static>>) -> OpenIndexes {
        // SAFETY: the table is open, and what is made lives in the memory of the state.
        unsafe {
            let estate = pg_sys::CreateExecutorState();
            executor::in_context((*estate).es_query_cxt, || {
                let own: *mut pg_sys::ResultRelInfo =
                    pg_sys::palloc0(size_of::<pg_sys::ResultRelInfo>()).cast();
                (*own).type_ = pg_sys::NodeTag::T_ResultRelInfo;
                pg_sys::InitResultRelInfo(own, table.as_ptr(), 0, std::ptr::null_mut(), 0);
                pg_sys::ExecOpenIndices(own, arbiters.is_some());
                OpenIndexes {
                    own,
                    estate,
                    context: pg_sys::MakePerTupleExprContext(estate),
                    slot: pg_sys::table_slot_create(table.as_ptr(), std::ptr::null_mut()),
                    arbiters: arbiters.map_or(std::ptr::null_mut(), Oids::raw),
                }
            })
        }
    }

    /// Whether each key that may be there already keeps a row from being inserted, and is found without waiting when
    /// the row's entries are made. Otherwise some are errors, or belong to an exclusion constraint.
    pub fn decide_all_keys(self) -> bool {
        let arbiters = self.arbiters;
        // SAFETY: the indexes are open; the arbiters live.
        self.all(|index, info| unsafe {
            let decides = || arbiters.is_null() || pg_sys::list_member_oid(arbiters, index.rd_id);
            let is_immediate = (*index.rd_index).indimmediate;
            info.ii_ExclusionOps.is_null() && (!info.ii_Unique || (is_immediate && decides()))
        })
    }

    /// Whether no arbiter has a key of the slot's row. Waits for the transactions that decide this. An ERROR jumps over
    /// this frame.
    pub fn have_no_key_of(self, slot: Slot<'_>) -> bool {
        let mut found = pg_sys::ItemPointerData::default();
        // SAFETY: everything was made by `open`; the slot is live. No frame here owns anything.
        unsafe {
            executor::reset(self.context);
            executor::in_context((*self.context).ecxt_per_tuple_memory, || {
                #[cfg(feature = "pg18")]
                let mut own = pg_sys::ItemPointerData::default();
                check_keys(
                    self.own,
                    slot.as_ptr(),
                    self.estate,
                    &raw mut found,
                    #[cfg(feature = "pg18")]
                    &raw mut own,
                    self.arbiters,
                )
            })
        }
    }

    /// A slot with one of the held rows.
    pub fn show<T>(
        self,
        rows: &HeldRows<T>,
        row: usize,
        id: pg_sys::ItemPointerData,
        header: RowHeader,
    ) -> Slot<'static> {
        // SAFETY: everything was made by `open`, and the rows are held.
        unsafe {
            let slot = Slot::new(self.slot);
            let table = (*(*self.own).ri_RelationDesc).rd_id;
            slot.store(&(*rows.held).0, row, id, table, header);
            slot
        }
    }

    /// Makes the entries of the row that is [shown](Self::show); false: an arbiter has its key already, and the row is
    /// to be taken back. An ERROR jumps over this frame.
    pub fn enter_shown(self) -> bool {
        // SAFETY: everything was made by `open`. No frame here owns anything.
        unsafe { !self.insert_entries(true).0 }
    }

    fn count(self) -> usize {
        // SAFETY: the indexes are open.
        unsafe { (*self.own).ri_NumIndices as usize }
    }

    /// The numbers of the columns in the key of an index, if it is unique and has the row of the last call of
    /// [`Self::have_no_key_of`]. A column that is computed has the number 0.
    fn unique_columns(self, place: usize) -> Option<&'static [i16]> {
        // SAFETY: the indexes are open as long as the query, and that call has left the row in the context.
        unsafe {
            let info = &**(*self.own).ri_IndexRelationInfo.add(place);
            let has_row = || {
                info.ii_Predicate.is_null()
                    || executor::passes(info.ii_PredicateState, self.context)
            };
            let columns = &info.ii_IndexAttrNumbers[..info.ii_NumIndexKeyAttrs as usize];
            (info.ii_Unique && has_row()).then_some(columns)
        }
    }

    /// Lets PostgreSQL make the entries of the row in the slot: whether an arbiter has its key already, if that is no
    /// error, and whether the row may violate a deferrable constraint.
    ///
    /// # Safety
    /// The indexes are open, and the slot is filled. No frame up to the boundary owns anything.
    unsafe fn insert_entries(self, is_speculative: bool) -> (bool, bool) {
        let mut conflict = false;
        // SAFETY: this function's contract.
        unsafe {
            executor::reset(self.context);
            let rechecks = executor::in_context((*self.context).ecxt_per_tuple_memory, || {
                insert_entries(
                    self.own,
                    self.slot,
                    self.estate,
                    false,
                    is_speculative,
                    &raw mut conflict,
                    self.arbiters,
                    #[cfg(not(feature = "pg15"))]
                    false,
                )
            });
            (conflict, !rechecks.is_null())
        }
    }

    /// Keeps rows until they are [released](HeldRows::release), or the memory of the indexes goes. `outlet` reads them
    /// from `keeper`, which owns their lanes.
    pub fn hold<T>(self, outlet: RowOutlet, keeper: T) -> HeldRows<T> {
        // SAFETY: the state's memory is live; the new context is a child of it.
        unsafe {
            let memory = || executor::small_context(c"lanes inserted rows");
            let memory = executor::in_context((*self.estate).es_query_cxt, memory);
            let held = PgMemoryContexts::For(memory).leak_and_drop_on_delete((outlet, keeper));
            HeldRows { held, memory }
        }
    }

    /// Makes the entries of `count` held rows, whose tuple ids `id_of` tells. If rows violate a constraint, the first
    /// of them is reported. An ERROR jumps over this frame.
    pub fn enter<T>(
        self,
        rows: &HeldRows<T>,
        count: usize,
        header: RowHeader,
        id_of: impl Fn(usize) -> pg_sys::ItemPointerData + Copy,
    ) {
        // SAFETY: everything was made by `open`; the rows are held. No frame here owns anything.
        unsafe {
            let outlet = &(*rows.held).0;
            if self.refuses_no_row() {
                self.enter_by_index(outlet, count, header, id_of, rows.memory);
            } else {
                // An INSERT into a table with a deferrable constraint, which has a trigger, gathers no rows.
                self.enter_row_by_row(outlet, count, header, id_of);
            }
        }
    }

    /// Makes the entries of `count` rows that the caller owns, whose tuple ids `id_of` tells. If rows violate a
    /// constraint, any of them is reported. An ERROR becomes a panic. True: rows may violate a deferrable exclusion
    /// constraint, of which nobody is told.
    pub fn enter_guarded(
        self,
        outlet: &RowOutlet,
        count: usize,
        header: RowHeader,
        id_of: impl Fn(usize) -> pg_sys::ItemPointerData + Copy,
    ) -> bool {
        // SAFETY: everything was made by `open`; the rows live as long as this call. No frame within the boundary owns
        // anything, and a panic, as of a cancelled statement, becomes an ERROR within it.
        unsafe {
            let memory = || executor::small_context(c"lanes entered rows");
            let memory = executor::in_context((*self.estate).es_query_cxt, memory);
            let is_unsure = pg_sys::ffi::pg_guard_ffi_boundary(|| {
                guard(|| {
                    if self.excludes_rows() {
                        return self.enter_row_by_row(outlet, count, header, id_of);
                    }
                    self.enter_by_index(outlet, count, header, id_of, memory);
                    false
                })
            });
            pg_sys::MemoryContextDelete(memory);
            is_unsure
        }
    }

    /// Makes the entries of `count` rows, one index after the other. The memory is for this alone.
    ///
    /// # Safety
    /// The indexes are open, and the rows live. No frame here owns anything, because an ERROR jumps over it.
    unsafe fn enter_by_index(
        self,
        outlet: &RowOutlet,
        count: usize,
        header: RowHeader,
        id_of: impl Fn(usize) -> pg_sys::ItemPointerData + Copy,
        memory: pg_sys::MemoryContext,
    ) {
        // SAFETY: this function's contract.
        unsafe {
            for place in 0..self.count() {
                let entries = self.entries_of(place);
                if !(*entries.info).ii_ReadyForInserts {
                    continue;
                }
                let order = entries.order(outlet, count, memory);
                for at in 0..count {
                    if at % INTERRUPT_ROWS == 0 {
                        ports::CHECK_FOR_INTERRUPTS();
                    }
                    let row = order.as_ref().map_or(at, |order| order.row(at));
                    self.enter_one(&entries, outlet, row, id_of(row), header);
                }
            }
            Slot::new(self.slot).clear();
        }
    }

    /// Whether an index has an exclusion constraint. All other constraints are checked by the index itself.
    fn excludes_rows(self) -> bool {
        !self.all(|_, info| info.ii_ExclusionOps.is_null())
    }

    /// Whether no index has a constraint that a row may violate.
    fn refuses_no_row(self) -> bool {
        self.all(|_, info| info.ii_ExclusionOps.is_null() && !info.ii_Unique)
    }

    /// Whether something is true of all indexes.
    fn all(self, is: impl Fn(&pg_sys::RelationData, &pg_sys::IndexInfo) -> bool) -> bool {
        // SAFETY: the indexes are open, and there is one at each place.
        (0..self.count()).all(|place| unsafe {
            let index = *(*self.own).ri_IndexRelationDescs.add(place);
            is(&*index, &**(*self.own).ri_IndexRelationInfo.add(place))
        })
    }

    /// Lets PostgreSQL make the entries of all indexes for one row after the other. True: rows may violate a deferrable
    /// constraint.
    ///
    /// # Safety
    /// The indexes are open, and the rows are held. No frame here owns anything.
    unsafe fn enter_row_by_row(
        self,
        outlet: &RowOutlet,
        count: usize,
        header: RowHeader,
        id_of: impl Fn(usize) -> pg_sys::ItemPointerData + Copy,
    ) -> bool {
        // SAFETY: this function's contract.
        unsafe {
            let table = (*(*self.own).ri_RelationDesc).rd_id;
            let (slot, mut is_unsure) = (Slot::new(self.slot), false);
            for row in 0..count {
                if row % INTERRUPT_ROWS == 0 {
                    ports::CHECK_FOR_INTERRUPTS();
                }
                slot.store(outlet, row, id_of(row), table, header);
                is_unsure |= self.insert_entries(false).1;
            }
            slot.clear();
            is_unsure
        }
    }

    /// An index, ready for entries.
    ///
    /// # Safety
    /// The indexes are open, and there is one at this place.
    unsafe fn entries_of(self, place: usize) -> IndexEntries {
        // SAFETY: this function's contract.
        unsafe {
            let index = *(*self.own).ri_IndexRelationDescs.add(place);
            let info = *(*self.own).ri_IndexRelationInfo.add(place);
            if !(*info).ii_Predicate.is_null() && (*info).ii_PredicateState.is_null() {
                (*info).ii_PredicateState = prepare_predicate((*info).ii_Predicate, self.estate);
            }
            (*self.context).ecxt_scantuple = self.slot;
            IndexEntries {
                index,
                info,
                predicate: (*info).ii_PredicateState,
                has_columns_alone: (*info).ii_Expressions.is_null()
                    && (*info).ii_Predicate.is_null(),
            }
        }
    }

    /// Makes the entry of a row in one index, unless the index is partial and does not have the row.
    ///
    /// # Safety
    /// As for [`Self::enter_row_by_row`].
    #[inline(always)]
    unsafe fn enter_one(
        self,
        entries: &IndexEntries,
        outlet: &RowOutlet,
        row: usize,
        mut id: pg_sys::ItemPointerData,
        header: RowHeader,
    ) {
        let (mut values, mut nulls) = ([pg_sys::Datum::null(); COLUMNS_MAX], [true; COLUMNS_MAX]);
        // SAFETY: this function's contract.
        unsafe {
            let (info, table) = (entries.info, (*self.own).ri_RelationDesc);
            executor::reset(self.context);
            if entries.has_columns_alone {
                for column in 0..(*info).ii_NumIndexAttrs as usize {
                    let attribute = (*info).ii_IndexAttrNumbers[column] as usize - 1;
                    (values[column], nulls[column]) = outlet.value(row, attribute);
                }
            } else {
                Slot::new(self.slot).store(outlet, row, id, (*table).rd_id, header);
                if !executor::passes(entries.predicate, self.context) {
                    return;
                }
            }
            let unique = match (*info).ii_Unique {
                true => pg_sys::IndexUniqueCheck::UNIQUE_CHECK_YES,
                false => pg_sys::IndexUniqueCheck::UNIQUE_CHECK_NO,
            };
            executor::in_context((*self.context).ecxt_per_tuple_memory, || {
                let (values, nulls) = (values.as_mut_ptr(), nulls.as_mut_ptr());
                if !entries.has_columns_alone {
                    form_entry(info, self.slot, self.estate, values, nulls);
                }
                let (index, id) = (entries.index, &raw mut id);
                insert_entry(index, values, nulls, id, table, unique, false, info);
            });
        }
    }

    /// Closes the indexes, and frees what was made.
    pub fn close(self) {
        // SAFETY: everything was made by `open`.
        unsafe {
            pg_sys::ExecDropSingleTupleTableSlot(self.slot);
            pg_sys::ExecCloseIndices(self.own);
            pg_sys::FreeExecutorState(self.estate);
        }
    }
}

impl IndexEntries {
    /// The rows in about the order of the index's key, in this memory. `None`: they are in that order, or have none.
    ///
    /// # Safety
    /// The index is open, and the rows are held.
    unsafe fn order<'a>(
        &self,
        outlet: &RowOutlet,
        count: usize,
        memory: pg_sys::MemoryContext,
    ) -> Option<&'a KeyOrder> {
        // SAFETY: this function's contract; the order lives until the memory is deleted.
        unsafe {
            if (*(*self.index).rd_rel).relam != pg_sys::BTREE_AM_OID {
                return None;
            }
            let info = &*self.info;
            let columns = &info.ii_IndexAttrNumbers[..info.ii_NumIndexKeyAttrs as usize];
            let descriptor = Descriptor::at((*self.index).rd_att);
            let types = (0..columns.len()).map(|column| descriptor.attribute(column).atttypid);
            let keys = columns.iter().copied().zip(types);
            let order = KeyOrder::of(outlet, count, keys)?;
            Some(&*PgMemoryContexts::For(memory).leak_and_drop_on_delete(order))
        }
    }
}

impl<T> HeldRows<T> {
    /// Frees the rows.
    pub fn release(self) {
        // SAFETY: made by `hold`; dropping the rows is a callback of their context.
        unsafe { pg_sys::MemoryContextDelete(self.memory) }
    }
}
