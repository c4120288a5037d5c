//! Plans below a node, under execution.

use pgrx::pg_sys;

use super::expression::{Projection, RowContext, RowQual};
use super::slot::Slot;
use crate::pg::descriptor::Descriptor;
use crate::pg::executor;
use crate::pg::tree::View;

/// A plan under execution, which outlives this handle.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Child(*mut pg_sys::PlanState);

impl Child {
    /// # Safety
    /// `state` lives as long as the handle and its copies are used.
    pub unsafe fn of(state: *mut pg_sys::PlanState) -> Child {
        Child(state)
    }

    /// The plan's state as PostgreSQL's functions take it.
    #[inline]
    pub fn as_raw(self) -> *mut pg_sys::PlanState {
        self.0
    }

    /// The next row; an empty slot at the end. An ERROR jumps.
    #[inline]
    pub fn next_row(self) -> Slot {
        // SAFETY: `of` was promised a live state, whose execution has begun.
        unsafe { Slot::of(executor::next_row(self.0)) }
    }

    /// As [`Self::next_row`], but an ERROR becomes a panic.
    #[inline]
    pub fn next_row_guarded(self) -> Slot {
        // SAFETY: the frames within the boundary have nothing to drop.
        unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| self.next_row()) }
    }

    /// Whether the state has this tag.
    pub fn is_a(self, tag: pg_sys::NodeTag) -> bool {
        // SAFETY: `of` was promised a live state.
        unsafe { (*self.0).type_ == tag }
    }

    /// The plan's outer, or only, child.
    pub fn left(self) -> Option<Child> {
        // SAFETY: `of` was promised a live state.
        let left = unsafe { (*self.0).lefttree };
        (!left.is_null()).then_some(Child(left))
    }

    /// The input of a projection that has no condition of its own.
    pub fn plain_projection_input(self) -> Option<Child> {
        if !self.is_a(pg_sys::NodeTag::T_ResultState) || !self.qual().is_empty() {
            return None;
        }
        // SAFETY: the cast follows the tag.
        let constant = unsafe { (*self.0.cast::<pg_sys::ResultState>()).resconstantqual };
        self.left().filter(|_| constant.is_null())
    }

    /// The type of each column of the plan's result.
    pub fn column_types(self) -> Vec<pg_sys::Oid> {
        // SAFETY: a live state has a descriptor of its result.
        let descriptor = unsafe { Descriptor::at((*self.0).ps_ResultTupleDesc) };
        let columns = descriptor.attributes();
        columns.map(|column| column.atttypid).collect()
    }

    /// A virtual slot for rows of the plan's result, in the current memory context.
    pub fn new_slot(self) -> Slot {
        // SAFETY: the descriptor lives as long as the plan's state.
        unsafe { Slot::of_virtual((*self.0).ps_ResultTupleDesc) }
    }

    /// The plan of the sub-select that the plan scans; `None` for any other plan.
    pub fn sub_select(self) -> Option<Child> {
        if !self.is_a(pg_sys::NodeTag::T_SubqueryScanState) {
            return None;
        }
        // SAFETY: the cast follows the tag.
        unsafe { Some(Child((*self.0.cast::<pg_sys::SubqueryScanState>()).subplan)) }
    }

    /// Where the plan evaluates its expressions.
    pub fn context(self) -> RowContext {
        // SAFETY: `of` was promised a live state.
        unsafe { RowContext::of((*self.0).ps_ExprContext) }
    }

    /// The conditions on the plan's result.
    pub fn qual(self) -> RowQual {
        // SAFETY: `of` was promised a live state.
        unsafe { RowQual::of((*self.0).qual) }
    }

    /// The computation of the plan's result rows.
    pub fn projection(self) -> Projection {
        // SAFETY: `of` was promised a live state.
        unsafe { Projection::of((*self.0).ps_ProjInfo) }
    }

    /// The plan's target list.
    pub fn target_list(self) -> *mut pg_sys::List {
        // SAFETY: `of` was promised a live state, which has a plan.
        unsafe { (*(*self.0).plan).targetlist }
    }

    /// Whether the query checks a row once more that was changed concurrently (`EvalPlanQual`).
    pub fn is_rechecking(self) -> bool {
        // SAFETY: `of` was promised a live state.
        unsafe { !(*(*self.0).state).es_epq_active.is_null() }
    }

    /// Rescans the plan. `ExecProcNode` does so before the first row if parameters have changed.
    pub fn rescan(self) {
        // SAFETY: `of` was promised a live state, whose execution has begun.
        unsafe { pg_sys::ExecReScan(self.0) }
    }

    /// Rescans the plan if parameters have changed that it depends on.
    pub fn rescan_if_changed(self) {
        if self.has_changed_parameters() {
            self.rescan();
        }
    }

    /// Whether parameters have changed that the plan depends on.
    pub fn has_changed_parameters(self) -> bool {
        // SAFETY: `of` was promised a live state.
        unsafe { !(*self.0).chgParam.is_null() }
    }

    /// Passes on that these parameters have changed.
    pub fn add_changed_parameters(self, changed: *mut pg_sys::Bitmapset) {
        if !changed.is_null() {
            // SAFETY: `of` was promised a live state; the set is the parent's.
            unsafe { pg_sys::UpdateChangedParamSet(self.0, changed) }
        }
    }

    /// Ends the plan's execution.
    pub fn end(self) {
        // SAFETY: `of` was promised a live state; nobody uses it any more.
        unsafe { pg_sys::ExecEndNode(self.0) }
    }

    /// The counters of EXPLAIN ANALYZE.
    pub fn instrument(self) -> Instrument {
        // SAFETY: `of` was promised a live state.
        Instrument(unsafe { (*self.0).instrument })
    }
}

/// A nested loop under execution.
#[derive(Clone, Copy)]
pub struct NestedLoop(Child);

impl NestedLoop {
    /// The nested loop that a child is.
    pub fn of(child: Child) -> Option<NestedLoop> {
        let is_loop = child.is_a(pg_sys::NodeTag::T_NestLoopState);
        is_loop.then_some(NestedLoop(child))
    }

    /// The loop as a plan.
    pub fn child(self) -> Child {
        self.0
    }

    fn state(self) -> *mut pg_sys::NestLoopState {
        self.0.as_raw().cast()
    }

    /// The left side.
    pub fn outer(self) -> Child {
        // SAFETY: a live nested loop has both sides.
        unsafe { Child((*self.0.as_raw()).lefttree) }
    }

    /// The right side.
    pub fn inner(self) -> Child {
        // SAFETY: a live nested loop has both sides.
        unsafe { Child((*self.0.as_raw()).righttree) }
    }

    /// The conditions of the join.
    pub fn join_qual(self) -> RowQual {
        // SAFETY: a live nested loop.
        unsafe { RowQual::of((*self.state()).js.joinqual) }
    }

    /// For a LEFT JOIN, the right row of NULLs for left rows without a match.
    pub fn null_row(self) -> Option<Slot> {
        // SAFETY: a live nested loop; only a LEFT JOIN has such a row.
        unsafe {
            let is_left = (*self.state()).js.jointype == pg_sys::JoinType::JOIN_LEFT;
            is_left.then(|| Slot::of((*self.state()).nl_NullInnerTupleSlot))
        }
    }
}

/// The counters of a plan for EXPLAIN ANALYZE; may be absent.
#[derive(Clone, Copy)]
pub struct Instrument(*mut pg_sys::Instrumentation);

impl Instrument {
    /// Begins to measure a call.
    pub fn start(self) {
        if !self.0.is_null() {
            // SAFETY: PostgreSQL made the counters for a plan that is executed.
            unsafe { pg_sys::InstrStartNode(self.0) }
        }
    }

    /// Ends the measurement of a call that returned these rows.
    pub fn stop(self, rows: f64) {
        if !self.0.is_null() {
            // SAFETY: PostgreSQL made the counters for a plan that is executed.
            unsafe { pg_sys::InstrStopNode(self.0, rows) }
        }
    }

    /// Adds rows that were returned.
    pub fn add_rows(self, rows: f64) {
        if !self.0.is_null() {
            // SAFETY: PostgreSQL made the counters for a plan that is executed.
            unsafe { (*self.0).tuplecount += rows }
        }
    }

    /// Adds rows that a condition removed.
    pub fn add_filtered(self, rows: f64) {
        if !self.0.is_null() {
            // SAFETY: PostgreSQL made the counters for a plan that is executed.
            unsafe { (*self.0).nfiltered1 += rows }
        }
    }
}
