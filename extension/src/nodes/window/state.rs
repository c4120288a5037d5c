//! `LanesWindow` under execution: the rows of a table in the order of time, with what window functions tell of each.
//!
//! ```text
//! first pass: times only ── in order? ──► yes: vectors as they come          ┐
//!                                    └──► no:  rows sorted by time and number ┴──► states a partition ──► a slot a row
//! ```

use std::ffi::CStr;

use lanes_columnar::vector::Evaluation;
use pgrx::pg_sys;

use super::plan::WindowPlan;
use super::run::Running;
use crate::custom_scan::node::{Node, Planned, Routines};
use crate::custom_scan::privilege;
use crate::expressions::translate::Translation;
use crate::pg::explain::Explain;
use crate::pg::tree;
use crate::vectors::vector_source::Counters;

static ROUTINES: Routines = Routines::of::<WindowState>();

/// A node under execution.
#[derive(Default)]
pub struct WindowState {
    counters: Counters,
    passed: u64,
    partitions: usize,
    bytes: usize,
    /// Whether rows did not come in the order of time.
    sorted: bool,
}

impl Node for WindowState {
    const NAME: &'static CStr = c"LanesWindow";
    const ROUTINES: &'static Routines = &ROUTINES;
    type Running = Running;

    unsafe fn plan(planned: &Planned) {
        // SAFETY: the path remembers all that there is.
        unsafe { planned.take_over() };
    }

    unsafe fn begin(&mut self, node: *mut pg_sys::CustomScanState) {
        // SAFETY: a node freshly initialised by PostgreSQL.
        unsafe {
            let plan = WindowPlan::of((*node).ss.ps.plan.cast());
            privilege::check_execute(plan.expressions());
        }
    }

    unsafe fn start(&mut self, node: *mut pg_sys::CustomScanState) -> Translation<Running> {
        // SAFETY: a node in execution, in the query's memory.
        unsafe { Running::begin(node) }
    }

    unsafe fn next(
        &mut self,
        running: &mut Running,
        _node: *mut pg_sys::CustomScanState,
        slot: *mut pg_sys::TupleTableSlot,
    ) -> Evaluation<bool> {
        // SAFETY: an empty slot of the node's.
        unsafe { running.next_row(slot) }
    }

    fn note(&mut self, running: &mut Running) {
        self.counters = running.input.source.counters();
        self.passed = running.input.passed;
        self.partitions = running.input.partitions();
        self.bytes = running.values.bytes(&running.input);
        self.sorted = running.sorted.is_some();
    }

    unsafe fn end(running: Running) {
        // SAFETY: no slot holds a row.
        unsafe { running.free() }
    }

    unsafe fn explain(&self, explain: &Explain) {
        // SAFETY: the node's plan.
        unsafe {
            let plan = WindowPlan::of(explain.plan());
            explain.table(plan.index);
            let calls: Vec<_> = plan.calls.iter().map(|call| shown(*call)).collect();
            explain.expressions(c"Window Functions", &calls);
            explain.expressions(c"Partition By", &plan.keys);
            explain.expressions(c"Order By", &[plan.time]);
            explain.quals(&plan.quals);
        }
        if explain.is_analyze() {
            self.counters.explain(explain);
            explain.integer(c"Vector Rows Passed", self.passed);
            explain.integer(c"Partitions", self.partitions as u64);
            explain.kilobytes(c"Memory", self.bytes);
            if self.sorted {
                explain.text(c"Rows Sorted", "as they were out of order");
            }
        }
    }
}

/// A call as EXPLAIN shows it: without its window, which is the node's.
unsafe fn shown(call: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: a live WindowFunc of the plan's.
    unsafe {
        let call = &*call.cast::<pg_sys::WindowFunc>();
        let shown = tree::make::<pg_sys::FuncExpr>(pg_sys::NodeTag::T_FuncExpr);
        (*shown).funcid = call.winfnoid;
        (*shown).funcresulttype = call.wintype;
        (*shown).funcformat = pg_sys::CoercionForm::COERCE_EXPLICIT_CALL;
        (*shown).args = call.args;
        shown.cast()
    }
}
