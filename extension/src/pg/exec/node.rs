//! A custom scan node, and its plan.

use pgrx::pg_sys;

use super::child::Child;
use super::expression::{Projection, RowContext, RowExpression, RowQual};
use super::memory::Memory;
use super::scalar::{self, RunningNode};
use super::slot::Slot;
use super::table::QueryTable;
use crate::pg::functions::executor as functions;
use crate::pg::snapshot::Snapshot;
use crate::pg::table::OpenTable;
use crate::pg::tree::view::{View, views};
use crate::pg::tree::{
    CustomScan, Expr, List, PlannedStmt, RangeTblEntry, Relids, SubPlan, plan_field,
};

views! {
    /// A custom scan node during one callback.
    ExecNode of CustomScanState {
    } {
        /// The node's plan, which outlives the node.
        plan = ss.ps.plan: CustomScan<'p>;
        estate = ss.ps.state: Estate;
        opened_table = ss.ss_currentRelation: OpenTable<'static>;
        /// Where the node evaluates its expressions.
        context = ss.ps.ps_ExprContext: RowContext;
        /// The slot in which the node forms its rows.
        scan_slot = ss.ss_ScanTupleSlot: Slot;
        own_result_slot = ss.ps.ps_ResultTupleSlot: Slot;
        /// The conditions on the node's rows.
        qual = ss.ps.qual: RowQual;
        /// The computation of the node's result.
        projection = ss.ps.ps_ProjInfo: Projection;
        /// The parameters that have changed since the last scan.
        changed_parameters = ss.ps.chgParam: Relids<'static>;
        shown_children = custom_ps: List<'static, Child>;
        /// The subqueries that the node has.
        subplans = ss.ps.subPlan: List<'p, SubPlanNode<'p>>;
    } {} {
        set_shown_children = custom_ps: List<'static, Child>;
    }

    /// A subquery of a node.
    SubPlanNode of SubPlanState {} {
        subplan: SubPlan<'p>;
    } {}

    /// The state of an execution.
    ExecutorState of EState {
        /// The flags with which the query was started.
        flags = es_top_eflags: i32;
        es_jit_flags: i32;
        /// The number of rows that the statement has changed.
        processed = es_processed: u64;
        /// The rows that all finished calls of the executor have processed together.
        #[cfg(not(feature = "pg15"))]
        total_processed = es_total_processed: u64;
    } {
        /// Memory that lives as long as the query.
        memory = es_query_cxt: Memory;
        /// The query's snapshot.
        snapshot = es_snapshot: Option<Snapshot<'static>>;
        range_table = es_range_table: List<'p, RangeTblEntry<'p>>;
        statement = es_plannedstmt: Option<PlannedStmt<'p>>;
        es_epq_active: Option<RecheckState<'p>>;
    } {
        set_jit_flags = es_jit_flags: i32;
        set_processed = es_processed: u64;
        #[cfg(not(feature = "pg15"))]
        set_total_processed = es_total_processed: u64;
    }

    /// The state of a check of rows that were changed concurrently.
    RecheckState of EPQState {} {} {}
}

/// The state of an execution.
pub type Estate = ExecutorState<'static>;

impl ExecutorState<'static> {
    /// Whether a row is checked once more that was changed concurrently (`EvalPlanQual`).
    pub fn is_rechecking(self) -> bool {
        self.es_epq_active().is_some()
    }
}

impl<'a> ExecNode<'a> {
    /// The node as PostgreSQL's functions take it.
    #[inline]
    pub fn as_raw(self) -> *mut pg_sys::CustomScanState {
        self.as_ptr()
    }

    /// The node as a plan's state.
    #[inline]
    pub fn plan_state(self) -> *mut pg_sys::PlanState {
        self.as_ptr().cast()
    }

    /// The node as any plan under execution.
    pub fn as_child(self) -> Child {
        plan_field::<Option<Child>>(self.plan_state()).expect("a node is a plan's state")
    }

    /// The query's snapshot.
    pub fn snapshot(self) -> Option<Snapshot<'static>> {
        self.estate().snapshot()
    }

    /// The table that PostgreSQL opened for a node that scans one table. It closes the table after the node has ended.
    pub fn scanned_table(self) -> QueryTable {
        QueryTable::new(self.opened_table(), self.snapshot())
    }

    /// A table of the query's range table, which was locked when the plan was made ready.
    pub fn range_table(self, index: u32) -> QueryTable {
        let table = functions::ExecGetRangeTableRelation(self.estate(), index);
        QueryTable::new(table, self.snapshot())
    }

    /// Opens a table of the range table as the one that the node reads.
    pub fn open_table(self, index: u32) -> QueryTable {
        let table = self.range_table(index);
        scalar::reads(self, table.open().0);
        table
    }

    /// The object id of a table of the query's range table, which need not be open.
    pub fn range_table_oid(self, index: u32) -> pg_sys::Oid {
        let entry = self.estate().range_table().get(index as usize - 1);
        entry.expect("the index is the plan's own").relid()
    }

    /// Memory that lives until the node starts again.
    pub fn lasting_memory(self) -> Memory {
        RunningNode::of(self).memory()
    }

    /// Memory that lives as long as the query.
    pub fn query_memory(self) -> Memory {
        self.estate().memory()
    }

    /// The slot of the node's result, if the node computes one.
    #[inline]
    pub fn result_slot(self) -> Option<Slot> {
        let slot = self.own_result_slot();
        (!slot.is_null()).then_some(slot)
    }

    /// Initialises an expression of the node's plan without compiling it, in the current memory context, which outlives
    /// the node's execution. Compilation takes milliseconds and saves microseconds.
    pub fn initialise_uncompiled(self, expression: *mut pg_sys::Node) -> RowExpression {
        let expression: Option<Expr<'_>> = plan_field(expression);
        let estate = self.estate();
        let jit = estate.es_jit_flags();
        estate.set_jit_flags(jit & !(pg_sys::PGJIT_EXPR as i32));
        let expression = expression.expect("an expression of the plan");
        let state = functions::ExecInitExpr(expression, Some(self.as_child()));
        estate.set_jit_flags(jit);
        state
    }

    /// Initialises a list of conditions over the node's rows.
    pub fn initialise_qual(self, conditions: *mut pg_sys::List) -> RowQual {
        functions::ExecInitQual(plan_field(conditions), Some(self.as_child()))
    }

    /// Whether a row is checked once more that was changed concurrently (`EvalPlanQual`).
    pub fn is_rechecking(self) -> bool {
        self.estate().is_rechecking()
    }

    /// Initialises a plan as the node's last child.
    pub fn begin_child(self, plan: *mut pg_sys::Plan, flags: i32) -> Child {
        let plan = plan_field::<Option<_>>(plan).expect("a plan of the node's own");
        self.query_memory().enter(|| {
            let child = functions::ExecInitNode(plan, self.estate(), flags);
            let mut children = self.shown_children();
            children.push(child);
            self.set_shown_children(children);
            child
        })
    }

    /// The flags with which the query was started.
    pub fn flags(self) -> i32 {
        self.estate().flags()
    }

    /// Rescans children of the node.
    pub fn rescan(self, children: Vec<Child>) {
        for child in children {
            child.add_changed_parameters(self.changed_parameters());
            // With changed parameters, a child rescans itself before its next row.
            if !child.has_changed_parameters() {
                child.rescan();
            }
        }
    }

    /// The children that EXPLAIN shows: those that execution has begun, unless one is [replaced](Self::show_child).
    pub fn children(self) -> Vec<Child> {
        self.shown_children().iter().collect()
    }

    /// Shows another plan in place of a child in EXPLAIN.
    pub fn show_child(self, index: usize, shown: Child) {
        self.shown_children().set(index, shown);
    }
}

/// The plan of a custom scan node.
pub type CustomPlan<'a> = CustomScan<'a>;

impl CustomScan<'_> {
    /// The entries of the node's target list: one expression for each column of its result.
    pub fn target_list(self) -> *mut pg_sys::List {
        self.as_plan().targetlist().as_ptr()
    }

    /// The conditions on the node's rows.
    pub fn quals(self) -> *mut pg_sys::List {
        self.as_plan().qual().as_ptr()
    }

    /// `custom_exprs`
    pub fn expressions(self) -> *mut pg_sys::List {
        self.custom_exprs().as_ptr()
    }

    /// The expressions of `custom_scan_tlist`.
    pub fn entries(self) -> impl Iterator<Item = *mut pg_sys::Node> {
        let entries = self.custom_scan_tlist().iter();
        entries.map(|entry| entry.expr().as_ptr())
    }

    /// `custom_private`
    pub fn private(self) -> *mut pg_sys::List {
        self.custom_private().as_ptr()
    }

    /// The plans of the node's children.
    pub fn children(self) -> impl Iterator<Item = *mut pg_sys::Plan> {
        self.custom_plans().iter().map(View::as_ptr)
    }

    /// The expected bytes of a result row.
    pub fn width(self) -> usize {
        self.as_plan().plan_width().max(0) as usize
    }
}

/// Initialises an expression that belongs to no node, in the current memory context.
pub fn initialise(expression: *mut pg_sys::Expr) -> RowExpression {
    let expression: Option<Expr<'_>> = plan_field(expression.cast());
    functions::ExecInitExpr(expression.expect("an expression of the plan"), None)
}

/// Initialises a list of conditions that belong to no node, in the current memory context.
pub fn initialise_qual(conditions: *mut pg_sys::List) -> RowQual {
    functions::ExecInitQual(plan_field(conditions), None)
}

/// A new context for expressions, which lives as long as the query.
pub fn new_context(node: ExecNode<'_>) -> RowContext {
    functions::CreateExprContext(node.estate())
}
