//! Index entries of rows that INSERT hands over one by one and that are written together.
//!
//! The executor makes the index entries of a row right after it has handed the row over, by the row's tuple id. A row
//! that is written later has none by then. So the executor is shown a table without indexes, and the entries are made
//! here once the rows are written, as COPY makes them for its batches.
//!
//! An ERROR such as a violated constraint has to keep its constraint's name, so it jumps over these frames as
//! PostgreSQL's own. What they use therefore lies in memory contexts of the query, and goes with them.

use std::ptr::NonNull;

use pgrx::{PgMemoryContexts, pg_sys};

use super::datum::RowOutlet;
use super::executor;
use super::ports;
use super::slot::{RowHeader, Slot};
use super::table::OpenTable;
use super::tree::{QueryDesc, View};

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
}

/// Rows between two looks for interrupts.
const INTERRUPT_ROWS: usize = 1024;

/// The table of an INSERT in execution, where nothing but its indexes asks for the tuple ids of the new rows.
#[derive(Clone, Copy)]
pub struct InsertTarget {
    target: NonNull<pg_sys::ResultRelInfo>,
    /// Memory that lives as long as the query.
    memory: pg_sys::MemoryContext,
}

impl InsertTarget {
    /// The target of a query. `None`: it is no plain INSERT into one lanes table, or something asks for tuple ids: a
    /// trigger, RETURNING, ON CONFLICT, a view's check.
    pub fn of(query: QueryDesc<'_>) -> Option<InsertTarget> {
        // SAFETY: a live query; casts follow tags; the states of a query live as long as it.
        unsafe {
            let query = &*query.as_ptr();
            let state = query.planstate.as_ref()?;
            if state.type_ != pg_sys::NodeTag::T_ModifyTableState {
                return None;
            }
            let state = &*query.planstate.cast::<pg_sys::ModifyTableState>();
            let plan = &*state.ps.plan.cast::<pg_sys::ModifyTable>();
            let target = NonNull::new(state.resultRelInfo)?;
            let it = target.as_ref();
            let is_plain = state.operation == pg_sys::CmdType::CMD_INSERT
                && state.mt_nrels == 1
                && plan.onConflictAction == pg_sys::OnConflictAction::ONCONFLICT_NONE
                && it.ri_TrigDesc.is_null()
                && it.ri_WithCheckOptions.is_null()
                && it.ri_projectReturning.is_null()
                && it.ri_FdwRoutine.is_null();
            if !is_plain || !OpenTable::new(it.ri_RelationDesc).is_lanes() {
                return None;
            }
            Some(InsertTarget {
                target,
                memory: (*query.estate).es_query_cxt,
            })
        }
    }

    /// Whether it is this table.
    pub fn is(self, table: OpenTable<'_>) -> bool {
        // SAFETY: the query is in execution.
        unsafe { self.target.as_ref().ri_RelationDesc == table.as_ptr() }
    }

    /// Opens the table's indexes, and shows the executor none of them from now on.
    pub fn take_over(self) -> InsertIndexes {
        // SAFETY: the query is in execution, its table is open, and what is made lives in its memory.
        unsafe {
            let table = self.target.as_ref().ri_RelationDesc;
            let estate = executor::in_context(self.memory, || pg_sys::CreateExecutorState());
            let (own, context, slot) = executor::in_context((*estate).es_query_cxt, || {
                let own: *mut pg_sys::ResultRelInfo =
                    pg_sys::palloc0(size_of::<pg_sys::ResultRelInfo>()).cast();
                (*own).type_ = pg_sys::NodeTag::T_ResultRelInfo;
                pg_sys::InitResultRelInfo(own, table, 0, std::ptr::null_mut(), 0);
                pg_sys::ExecOpenIndices(own, false);
                let context = pg_sys::MakePerTupleExprContext(estate);
                let slot = pg_sys::table_slot_create(table, std::ptr::null_mut());
                (own, context, slot)
            });
            let shown = &raw mut (*self.target.as_ptr()).ri_NumIndices;
            let hidden = shown.replace(0);
            InsertIndexes {
                shown,
                hidden,
                own,
                estate,
                context,
                slot,
            }
        }
    }
}

/// The open indexes of an [`InsertTarget`]. They go with the query's memory after an ERROR, and are otherwise
/// [given back](InsertIndexes::give_back) before the query ends.
#[derive(Clone, Copy)]
pub struct InsertIndexes {
    /// The number of indexes that the executor sees, and what it was.
    shown: *mut i32,
    hidden: i32,
    own: *mut pg_sys::ResultRelInfo,
    estate: *mut pg_sys::EState,
    context: *mut pg_sys::ExprContext,
    slot: *mut pg_sys::TupleTableSlot,
}

/// Rows of a table in the query's memory.
pub struct HeldRows<T: 'static> {
    held: *mut (RowOutlet, T),
    memory: pg_sys::MemoryContext,
}

impl InsertIndexes {
    /// Keeps rows until they are [released](HeldRows::release), or the query's memory goes. `outlet` reads them from
    /// `keeper`, which owns their lanes.
    pub fn hold<T>(self, outlet: RowOutlet, keeper: T) -> HeldRows<T> {
        // SAFETY: the state's memory is live; the new context is a child of it.
        unsafe {
            let memory = executor::in_context((*self.estate).es_query_cxt, || {
                executor::small_context(c"lanes inserted rows")
            });
            let held = PgMemoryContexts::For(memory).leak_and_drop_on_delete((outlet, keeper));
            HeldRows { held, memory }
        }
    }

    /// Makes the entries of `count` held rows, whose tuple ids `id_of` tells. An ERROR jumps over this frame.
    pub fn enter<T>(
        self,
        rows: &HeldRows<T>,
        count: usize,
        header: RowHeader,
        id_of: impl Fn(usize) -> pg_sys::ItemPointerData + Copy,
    ) {
        // SAFETY: everything was made by `take_over`; the rows are held. No frame here owns anything.
        unsafe {
            let table = (*(*self.own).ri_RelationDesc).rd_id;
            let outlet = &(*rows.held).0;
            let slot = Slot::new(self.slot);
            for row in 0..count {
                if row % INTERRUPT_ROWS == 0 {
                    ports::CHECK_FOR_INTERRUPTS();
                }
                slot.store(outlet, row, id_of(row), table, header);
                executor::reset(self.context);
                let (mut conflict, none) = (false, std::ptr::null_mut());
                executor::in_context((*self.context).ecxt_per_tuple_memory, || {
                    insert_entries(
                        self.own,
                        self.slot,
                        self.estate,
                        false,
                        false,
                        &raw mut conflict,
                        none,
                        #[cfg(not(feature = "pg15"))]
                        false,
                    );
                });
            }
            slot.clear();
        }
    }

    /// Closes the indexes, and shows them to the executor again.
    pub fn give_back(self) {
        // SAFETY: everything was made by `take_over`, and the query is in execution.
        unsafe {
            pg_sys::ExecDropSingleTupleTableSlot(self.slot);
            pg_sys::ExecCloseIndices(self.own);
            pg_sys::FreeExecutorState(self.estate);
            *self.shown = self.hidden;
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
