//! The indexes of a table into which INSERT hands over rows one by one that are written together.
//!
//! The executor makes the index entries of a row right after it has handed the row over, by the row's tuple id. A row
//! that is written later has none by then. So the executor is shown a table without indexes, and the entries are made
//! once the rows are written, by [`OpenIndexes`].

use std::ptr::NonNull;

use pgrx::pg_sys;

use super::executor;
use super::open_indexes::OpenIndexes;
use super::table::OpenTable;
use super::tree::{QueryDesc, View};

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
        // SAFETY: the query is in execution, its table is open, and its memory lives as long as it.
        unsafe {
            let table = OpenTable::new(self.target.as_ref().ri_RelationDesc);
            let indexes = executor::in_context(self.memory, || OpenIndexes::open(table));
            let shown = &raw mut (*self.target.as_ptr()).ri_NumIndices;
            let hidden = shown.replace(0);
            InsertIndexes {
                shown,
                hidden,
                indexes,
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
    pub indexes: OpenIndexes,
}

impl InsertIndexes {
    /// Closes the indexes, and shows them to the executor again.
    pub fn give_back(self) {
        self.indexes.close();
        // SAFETY: the query is in execution.
        unsafe { *self.shown = self.hidden }
    }
}
