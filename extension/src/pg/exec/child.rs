//! Plans below a node, under execution.

use pgrx::pg_sys;

use super::expression::{Projection, RowContext, RowQual};
use super::node::Estate;
use super::slot::Slot;
use crate::pg::descriptor::Descriptor;
use crate::pg::executor;
use crate::pg::functions::executor as functions;
use crate::pg::tree::view::{nullable_fields, views};
use crate::pg::tree::{Plan, Relids};

views! {
    /// A plan under execution, which outlives this handle.
    PlanNode of PlanState {
        /// The tag of the node.
        tag = type_: pg_sys::NodeTag;
    } {
        plan: Plan<'p>;
        /// The state of the execution.
        estate = state: Estate;
        /// The plan's outer, or only, child.
        left = lefttree: Option<PlanNode<'p>>;
        right = righttree: Option<PlanNode<'p>>;
        /// The descriptor of the plan's result.
        result_descriptor = ps_ResultTupleDesc: Descriptor<'p>;
        /// Where the plan evaluates its expressions.
        context = ps_ExprContext: RowContext;
        /// The conditions on the plan's result.
        qual: RowQual;
        /// The computation of the plan's result rows.
        projection = ps_ProjInfo: Projection;
        /// The parameters that have changed since the last scan.
        changed_parameters = chgParam: Relids<'p>;
        /// The counters of EXPLAIN ANALYZE.
        instrument: Instrument;
    } {}

    /// The state of a plan that scans a table.
    ScanNode of ScanState {
        /// The table, or null.
        ss_currentRelation: pg_sys::Relation;
    } {} {}

    /// The state of a plan that computes or passes on rows.
    ResultNode of ResultState {} {
        resconstantqual: RowQual;
    } {}

    /// The state of a scan of a sub-select.
    SubqueryNode of SubqueryScanState {} {
        subplan: Child;
    } {}

    /// The state of a nested loop.
    LoopNode of NestLoopState {
        jointype = js.jointype: pg_sys::JoinType::Type;
    } {
        joinqual = js.joinqual: RowQual;
        nl_NullInnerTupleSlot: Slot;
    } {}

    /// Counters.
    Counters of Instrumentation {
        tuplecount: f64;
        nfiltered1: f64;
        ntuples2: f64;
    } {} {
        set_rows = tuplecount: f64;
        set_filtered = nfiltered1: f64;
        set_secondary = ntuples2: f64;
    }
}

/// A plan under execution.
pub type Child = PlanNode<'static>;

impl PlanNode<'static> {
    /// The next row; an empty slot at the end. An ERROR jumps.
    #[inline]
    pub fn next_row(self) -> Slot {
        executor::next_row(self)
    }

    /// As [`Self::next_row`], but an ERROR becomes a panic.
    #[inline]
    pub fn next_row_guarded(self) -> Slot {
        executor::guarded(|| self.next_row())
    }

    /// Whether the state has this tag.
    pub fn is_a(self, tag: pg_sys::NodeTag) -> bool {
        self.tag() == tag
    }

    /// The table that PostgreSQL opened for a custom scan node; null if it opened none.
    pub fn opened_table(self) -> pg_sys::Relation {
        let node = executor::as_node(self, pg_sys::NodeTag::T_CustomScanState);
        node.map_or(std::ptr::null_mut(), ScanNode::ss_currentRelation)
    }

    /// The input of a projection that has no condition of its own.
    pub fn plain_projection_input(self) -> Option<Child> {
        let projection: ResultNode<'_> = executor::as_node(self, pg_sys::NodeTag::T_ResultState)?;
        let has_condition = !self.qual().is_empty() || !projection.resconstantqual().is_empty();
        self.left().filter(|_| !has_condition)
    }

    /// The type of each column of the plan's result.
    pub fn column_types(self) -> Vec<pg_sys::Oid> {
        let columns = self.result_descriptor().attributes();
        columns.map(|column| column.atttypid).collect()
    }

    /// A virtual slot for rows of the plan's result, in the current memory context.
    pub fn new_slot(self) -> Slot {
        functions::virtual_slot(self.result_descriptor())
    }

    /// The plan of the sub-select that the plan scans; `None` for any other plan.
    pub fn sub_select(self) -> Option<Child> {
        let scan = executor::as_node(self, pg_sys::NodeTag::T_SubqueryScanState);
        scan.map(SubqueryNode::subplan)
    }

    /// The plan's target list.
    pub fn target_list(self) -> *mut pg_sys::List {
        self.plan().targetlist().as_ptr()
    }

    /// Whether the query checks a row once more that was changed concurrently (`EvalPlanQual`).
    pub fn is_rechecking(self) -> bool {
        self.estate().is_rechecking()
    }

    /// Rescans the plan. `ExecProcNode` does so before the first row if parameters have changed.
    pub fn rescan(self) {
        functions::ExecReScan(self);
    }

    /// Rescans the plan if parameters have changed that it depends on.
    pub fn rescan_if_changed(self) {
        if self.has_changed_parameters() {
            self.rescan();
        }
    }

    /// Whether parameters have changed that the plan depends on.
    pub fn has_changed_parameters(self) -> bool {
        !self.changed_parameters().is_null()
    }

    /// Passes on that these parameters have changed.
    pub fn add_changed_parameters(self, changed: Relids<'_>) {
        if !changed.is_null() {
            functions::UpdateChangedParamSet(self, changed);
        }
    }

    /// Ends the plan's execution.
    pub fn end(self) {
        functions::ExecEndNode(self);
    }
}

/// A nested loop under execution.
#[derive(Clone, Copy)]
pub struct NestedLoop {
    child: Child,
    state: LoopNode<'static>,
}

impl NestedLoop {
    /// The nested loop that a child is.
    pub fn of(child: Child) -> Option<NestedLoop> {
        let state = executor::as_node(child, pg_sys::NodeTag::T_NestLoopState)?;
        Some(NestedLoop { child, state })
    }

    /// The loop as a plan.
    pub fn child(self) -> Child {
        self.child
    }

    /// The left side.
    pub fn outer(self) -> Child {
        self.child.left().expect("a nested loop has two sides")
    }

    /// The right side.
    pub fn inner(self) -> Child {
        self.child.right().expect("a nested loop has two sides")
    }

    /// The conditions of the join.
    pub fn join_qual(self) -> RowQual {
        self.state.joinqual()
    }

    /// For a LEFT JOIN, the right row of NULLs for left rows without a match.
    pub fn null_row(self) -> Option<Slot> {
        let is_left = self.state.jointype() == pg_sys::JoinType::JOIN_LEFT;
        is_left.then(|| self.state.nl_NullInnerTupleSlot())
    }
}

/// The counters of a plan for EXPLAIN ANALYZE; may be absent.
#[derive(Clone, Copy)]
pub struct InstrumentOf<'p> {
    raw: *mut pg_sys::Instrumentation,
    lifetime: std::marker::PhantomData<&'p ()>,
}

/// The counters of a plan.
pub type Instrument = InstrumentOf<'static>;

nullable_fields!(InstrumentOf: pg_sys::Instrumentation);

impl InstrumentOf<'static> {
    fn counters(self) -> Option<Counters<'static>> {
        crate::pg::tree::plan_field(self.raw)
    }

    /// Begins to measure a call.
    pub fn start(self) {
        if !self.raw.is_null() {
            functions::InstrStartNode(self);
        }
    }

    /// Ends the measurement of a call that returned these rows.
    pub fn stop(self, rows: f64) {
        if !self.raw.is_null() {
            functions::InstrStopNode(self, rows);
        }
    }

    /// Adds rows that were returned.
    pub fn add_rows(self, rows: f64) {
        if let Some(counters) = self.counters() {
            counters.set_rows(counters.tuplecount() + rows);
        }
    }

    /// Adds rows that a condition removed.
    pub fn add_filtered(self, rows: f64) {
        if let Some(counters) = self.counters() {
            counters.set_filtered(counters.nfiltered1() + rows);
        }
    }

    /// Adds rows that INSERT … ON CONFLICT found to be there already.
    pub fn add_conflicts(self, rows: f64) {
        if let Some(counters) = self.counters() {
            counters.set_secondary(counters.ntuples2() + rows);
        }
    }
}
