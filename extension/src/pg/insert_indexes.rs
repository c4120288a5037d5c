//! The indexes of a table into which INSERT hands over rows one by one that are written together.
//!
//! The executor makes the index entries of a row right after it has handed the row over, by the row's tuple id. A row
//! that is written later has none by then. So the executor is shown a table without indexes, and the entries are made
//! once the rows are written, by [`OpenIndexes`].

use pgrx::pg_sys;

use super::exec::child::Instrument;
use super::exec::expression::Projection;
use super::exec::memory::Memory;
use super::exec::node::Estate;
use super::open_indexes::OpenIndexes;
use super::table::{OpenTable, TriggerRow};
use super::tree::view::views;
use super::tree::{Expr, List, Oids, QueryDesc};
use super::{executor, server};

views! {
    /// The state of a plan that changes tables.
    ChangeNode of ModifyTableState {
        operation: pg_sys::CmdType::Type;
        /// How many tables it changes.
        mt_nrels: i32;
        /// Whether its rows count as those of the statement.
        canSetTag: bool;
    } {
        plan = ps.plan: ChangePlan<'p>;
        /// The first table that it changes.
        target = resultRelInfo: Option<TargetTable>;
        /// The counters of EXPLAIN ANALYZE.
        instrument = ps.instrument: Instrument;
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
        /// The indexes that ON CONFLICT names; none: all.
        arbiters = ri_onConflictArbiterIndexes: Oids<'static>;
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
    /// For ON CONFLICT DO NOTHING.
    statement: Option<Statement>,
}

/// What counts the rows of an INSERT.
#[derive(Clone, Copy)]
struct Statement {
    estate: Estate,
    counts: bool,
    instrument: Instrument,
}

impl InsertTarget {
    /// The target of a query. `None`: it is no plain INSERT into one lanes table, or something asks for tuple ids: a
    /// trigger, RETURNING, ON CONFLICT DO UPDATE, a view's check. With one snapshot for the whole transaction, ON
    /// CONFLICT DO NOTHING asks for the id of the other row.
    pub fn of(query: QueryDesc<'_>) -> Option<InsertTarget> {
        let state = query.planstate()?;
        let change: ChangeNode<'_> = executor::as_node(state, pg_sys::NodeTag::T_ModifyTableState)?;
        let target = change.target()?;
        let estate = query.estate()?;
        let action = change.plan().onConflictAction();
        let passes_over = action == pg_sys::OnConflictAction::ONCONFLICT_NOTHING;
        let has_action = action != pg_sys::OnConflictAction::ONCONFLICT_NONE;
        let is_plain = change.operation() == pg_sys::CmdType::CMD_INSERT
            && change.mt_nrels() == 1
            && (!has_action || (passes_over && !server::has_fixed_snapshot()))
            && target.ri_TrigDesc().is_none()
            && target.ri_WithCheckOptions().is_empty()
            && target.ri_projectReturning().is_null()
            && target.ri_FdwRoutine().is_none();
        let statement = Statement {
            estate,
            counts: change.canSetTag(),
            instrument: change.instrument(),
        };
        let is_wanted = is_plain && target.table().is_lanes();
        is_wanted.then_some(InsertTarget {
            target,
            memory: estate.memory(),
            statement: passes_over.then_some(statement),
        })
    }

    /// Whether rows are passed over whose keys are there already.
    pub fn passes_over(self) -> bool {
        self.statement.is_some()
    }

    /// Whether it is this table.
    pub fn is(self, table: OpenTable<'_>) -> bool {
        self.target.table() == table
    }

    /// Opens the table's indexes, and shows the executor none of them from now on. `None`: the executor has to insert
    /// row by row, because of an index that makes others wait in the middle of a row.
    pub fn take_over(self) -> Option<InsertIndexes> {
        let table = self.target.table();
        let open = || {
            self.memory
                .enter(|| OpenIndexes::open_with(table, self.target.arbiters()))
        };
        let (indexes, asking) = match self.statement {
            None => (self.memory.enter(|| OpenIndexes::open(table)), None),
            Some(statement) => {
                let indexes = open();
                if !indexes.decide_all_keys() {
                    indexes.close();
                    return None;
                }
                (indexes, Some((statement, open())))
            }
        };
        let hidden = self.target.shown();
        self.target.show(0);
        Some(InsertIndexes {
            target: self.target,
            asking,
            hidden,
            indexes,
        })
    }
}

/// The open indexes of an [`InsertTarget`]. They go with the query's memory after an ERROR, and are otherwise
/// [given back](InsertIndexes::give_back) before the query ends.
#[derive(Clone, Copy)]
pub struct InsertIndexes {
    target: TargetTable,
    /// For ON CONFLICT DO NOTHING: the statement, and the indexes again. These are asked for keys: while they are, a
    /// function of an index may run a query, before which the gathered rows are written and entered.
    asking: Option<(Statement, OpenIndexes)>,
    /// The number of indexes that the executor saw.
    hidden: i32,
    pub indexes: OpenIndexes,
}

impl InsertIndexes {
    /// Whether rows are passed over whose keys are there already.
    pub fn passes_over(self) -> bool {
        self.asking.is_some()
    }

    /// The indexes to be asked for keys, where rows may be passed over.
    pub fn asked(self) -> OpenIndexes {
        self.asking.map_or(self.indexes, |(_, asked)| asked)
    }

    /// Notes that rows are passed over that the executor counts, or has counted, as inserted. `is_over`: it has
    /// returned.
    pub fn pass_over(self, rows: usize, is_over: bool) {
        let Some((statement, _)) = self.asking.filter(|_| rows > 0) else {
            return;
        };
        statement.instrument.add_conflicts(rows as f64);
        if !statement.counts {
            return;
        }
        let estate = statement.estate;
        // The executor counts a row after it has handed it over, so this may be below 0 for a moment.
        estate.set_processed(estate.processed().wrapping_sub(rows as u64));
        #[cfg(not(feature = "pg15"))]
        if is_over {
            estate.set_total_processed(estate.total_processed().wrapping_sub(rows as u64));
        }
        #[cfg(feature = "pg15")]
        let _ = is_over;
    }

    /// Closes the indexes, and shows them to the executor again.
    pub fn give_back(self) {
        self.indexes.close();
        if let Some((_, asked)) = self.asking {
            asked.close();
        }
        self.target.show(self.hidden);
    }
}
