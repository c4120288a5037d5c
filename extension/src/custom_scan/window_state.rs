//! `LanesWindow` under execution: the rows of a table in the order of time, with what window functions tell of each.
//!
//! ```text
//! first pass: times only ── in order? ──► yes: vectors as they come          ┐
//!                                    └──► no:  rows sorted by time and number ┴──► states a partition ──► a slot a row
//! ```

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::state::Static;
use super::vector_source::Counters;
use super::window_plan::{self, WindowPlan};
use super::window_run::Running;
use super::{explain, privilege, state};
use crate::error;
use crate::pg::{nodes, ports};

static METHODS: Static<pg_sys::CustomExecMethods> = Static(pg_sys::CustomExecMethods {
    CustomName: window_plan::NAME.as_ptr(),
    BeginCustomScan: Some(begin),
    ExecCustomScan: Some(execute),
    EndCustomScan: Some(end),
    ReScanCustomScan: Some(rescan),
    MarkPosCustomScan: None,
    RestrPosCustomScan: None,
    EstimateDSMCustomScan: None,
    InitializeDSMCustomScan: None,
    ReInitializeDSMCustomScan: None,
    InitializeWorkerCustomScan: None,
    ShutdownCustomScan: None,
    ExplainCustomScan: Some(explain_window),
});

/// A node under execution.
#[derive(Default)]
struct WindowState {
    running: Option<Running>,
    counters: Counters,
    passed: u64,
    partitions: usize,
    bytes: usize,
    /// Whether rows did not come in the order of time.
    sorted: bool,
}

#[pg_guard]
pub unsafe extern "C-unwind" fn create(_scan: *mut pg_sys::CustomScan) -> *mut pg_sys::Node {
    // SAFETY: static methods.
    unsafe { state::make::<WindowState>(&raw const METHODS.0) }
}

#[pg_guard]
unsafe extern "C-unwind" fn begin(
    node: *mut pg_sys::CustomScanState,
    _estate: *mut pg_sys::EState,
    _flags: i32,
) {
    // SAFETY: a node of ours, freshly initialised by PostgreSQL.
    unsafe {
        let plan = WindowPlan::of((*node).ss.ps.plan.cast());
        privilege::check_execute(plan.expressions());
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn execute(
    node: *mut pg_sys::CustomScanState,
) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: a node of ours, in execution.
    unsafe {
        let ours = state::of::<WindowState>(node);
        let slot = (*node).ss.ss_ScanTupleSlot;
        ports::ExecClearTuple(slot);
        if ours.running.is_none() {
            let before = pg_sys::MemoryContextSwitchTo((*(*node).ss.ps.state).es_query_cxt);
            let running = Running::begin(node);
            pg_sys::MemoryContextSwitchTo(before);
            ours.running = Some(running.unwrap_or_else(|reason| error::unplanned(&reason)));
        }
        let Some(running) = &mut ours.running else {
            return std::ptr::null_mut();
        };
        match running.next_row(slot) {
            Err(failure) => error::evaluation(failure),
            Ok(false) => {
                ours.finish();
                let result = (*node).ss.ps.ps_ResultTupleSlot;
                if !result.is_null() {
                    ports::ExecClearTuple(result);
                }
                std::ptr::null_mut()
            }
            Ok(true) => {
                pg_sys::ExecStoreVirtualTuple(slot);
                let context = (*node).ss.ps.ps_ExprContext;
                pg_sys::MemoryContextReset((*context).ecxt_per_tuple_memory);
                (*context).ecxt_scantuple = slot;
                nodes::exec_project((*node).ss.ps.ps_ProjInfo, slot)
            }
        }
    }
}

impl WindowState {
    /// Notes what was done, for EXPLAIN.
    fn finish(&mut self) {
        if let Some(running) = &self.running {
            self.counters = running.input.source.counters;
            self.passed = running.input.passed;
            self.partitions = running.input.partitions();
            self.bytes = running.values.bytes(&running.input);
            self.sorted = running.sorted.is_some();
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn rescan(node: *mut pg_sys::CustomScanState) {
    // SAFETY: a node of ours.
    unsafe { stop(node) }
}

#[pg_guard]
unsafe extern "C-unwind" fn end(node: *mut pg_sys::CustomScanState) {
    // SAFETY: a node of ours.
    unsafe { stop(node) }
}

unsafe fn stop(node: *mut pg_sys::CustomScanState) {
    // SAFETY: a node of ours; the slots let go of the rows before they go.
    unsafe {
        let result = (*node).ss.ps.ps_ResultTupleSlot;
        if !result.is_null() {
            ports::ExecClearTuple(result);
        }
        ports::ExecClearTuple((*node).ss.ss_ScanTupleSlot);
        let ours = state::of::<WindowState>(node);
        ours.finish();
        if let Some(running) = ours.running.take() {
            running.free();
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn explain_window(
    node: *mut pg_sys::CustomScanState,
    ancestors: *mut pg_sys::List,
    output: *mut pg_sys::ExplainState,
) {
    // SAFETY: a node of ours, and EXPLAIN's live structures.
    unsafe {
        let plan = WindowPlan::of((*node).ss.ps.plan.cast());
        explain::table(plan.index, output);
        let calls: Vec<*mut pg_sys::Node> = plan.calls.iter().map(|call| shown(*call)).collect();
        explain::expressions(c"Window Functions", node, &calls, ancestors, output);
        explain::expressions(c"Partition By", node, &plan.keys, ancestors, output);
        explain::expressions(c"Order By", node, &[plan.time], ancestors, output);
        explain::expressions(c"Vector Quals", node, &plan.quals, ancestors, output);
        let ours = state::of::<WindowState>(node);
        if (*output).analyze {
            ours.finish();
            explain::counters(&ours.counters, output);
            explain::integer(c"Vector Rows Passed", ours.passed, output);
            explain::integer(c"Partitions", ours.partitions as u64, output);
            explain::kilobytes(c"Memory", ours.bytes, output);
            if ours.sorted {
                explain::text(c"Rows Sorted", "as they were out of order", output);
            }
        }
    }
}

/// A call as EXPLAIN shows it: without its window, which is the node's.
unsafe fn shown(call: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: a live WindowFunc of the plan's.
    unsafe {
        let call = &*call.cast::<pg_sys::WindowFunc>();
        let shown = nodes::make::<pg_sys::FuncExpr>(pg_sys::NodeTag::T_FuncExpr);
        (*shown).funcid = call.winfnoid;
        (*shown).funcresulttype = call.wintype;
        (*shown).funcformat = pg_sys::CoercionForm::COERCE_EXPLICIT_CALL;
        (*shown).args = call.args;
        shown.cast()
    }
}
