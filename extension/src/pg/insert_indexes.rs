//! The indexes of a table into which INSERT hands over rows one by one that are written together.
//!
//! The executor makes the index entries of a row right after it has handed the row over, by the row's tuple id. A row
//! that is written later has none by then. So the executor is shown a table without indexes, and the entries are made
//! once the rows are written, by [`OpenIndexes`].

use pgrx::pg_sys;

use super::exec::expression::Projection;
use super::exec::memory::Memory;
use super::executor;
use super::open_indexes::OpenIndexes;
use super::table::{OpenTable, TriggerRow};
use super::tree::view::views;
use super::tree::{Expr, List, QueryDesc};

views! {
    /// The state of a plan that changes tables.
    ChangeNode of ModifyTableState {
        operation: pg_sys::CmdType::Type;
        /// How many tables it changes.
        mt_nrels: i32;
    } {
        plan = ps.plan: ChangePlan<'p>;
        /// The first table that it changes.
        target = resultRelInfo: Option<TargetTable>;
    } {}

    /// A plan that changes tables.
    ChangePlan of ModifyTable {
        onConflictAction: pg_sys::OnConflictAction::Type;
    } {} {}

    /// The functions of a foreign table.
    ForeignRoutine of FdwRoutine {} {} {}

    /// The executor's description of a table that a statement changes.
    ChangedTable of ResultRelInfo {
        /// How many indexes the executor sees.
        shown = ri_NumIndices: i32;
    } {
        table = ri_RelationDesc: OpenTable<'p>;
        ri_TrigDesc: Option<TriggerRow<'p>>;
        ri_WithCheckOptions: List<'p, Expr<'p>>;
        ri_projectReturning: Projection;
        ri_FdwRoutine: Option<ForeignRoutine<'p>>;
    } {
        show = ri_NumIndices: i32;
    }
}

type TargetTable = ChangedTable<'static>;

/// The table of an INSERT in execution, where nothing but its indexes asks for the tuple ids of the new rows.
#[derive(Clone, Copy)]
pub struct InsertTarget {
    target: TargetTable,
    /// Memory that lives as long as the query.
    memory: Memory,
}

impl InsertTarget {
    /// The target of a query. `None`: it is no plain INSERT into one lanes table, or something asks for tuple ids: a
    /// trigger, RETURNING, ON CONFLICT, a view's check.
    pub fn of(query: QueryDesc<'_>) -> Option<InsertTarget> {
        let state = query.planstate()?;
        let change: ChangeNode<'_> = executor::as_node(state, pg_sys::NodeTag::T_ModifyTableState)?;
        let target = change.target()?;
        let is_plain = change.operation() == pg_sys::CmdType::CMD_INSERT
            && change.mt_nrels() == 1
            && change.plan().onConflictAction() == pg_sys::OnConflictAction::ONCONFLICT_NONE
            && target.ri_TrigDesc().is_none()
            && target.ri_WithCheckOptions().is_empty()
            && target.ri_projectReturning().is_null()
            && target.ri_FdwRoutine().is_none();
        let memory = query.estate()?.memory();
        let is_wanted = is_plain && target.table().is_lanes();
        is_wanted.then_some(InsertTarget { target, memory })
    }

    /// Whether it is this table.
    pub fn is(self, table: OpenTable<'_>) -> bool {
        self.target.table() == table
    }

    /// Opens the table's indexes, and shows the executor none of them from now on.
    pub fn take_over(self) -> InsertIndexes {
        let table = self.target.table();
        let indexes = self.memory.enter(|| OpenIndexes::open(table));
        let hidden = self.target.shown();
        self.target.show(0);
        InsertIndexes {
            target: self.target,
            hidden,
            indexes,
        }
    }
}

/// The open indexes of an [`InsertTarget`]. They go with the query's memory after an ERROR, and are otherwise
/// [given back](InsertIndexes::give_back) before the query ends.
#[derive(Clone, Copy)]
pub struct InsertIndexes {
    target: TargetTable,
    /// The number of indexes that the executor saw.
    hidden: i32,
    pub indexes: OpenIndexes,
}

impl InsertIndexes {
    /// Closes the indexes, and shows them to the executor again.
    pub fn give_back(self) {
        self.indexes.close();
        self.target.show(self.hidden);
    }
}
