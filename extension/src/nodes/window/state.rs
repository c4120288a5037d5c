//! `LanesWindow` under execution.
//!
//! ```text
//! first pass: times only ── in order? ──► yes: vectors as they come              ┐
//!                                    └──► no:  rows sorted by time, then number   ┴──► a state for each partition ──► slots
//! ```

use std::ffi::CStr;

use lanes_columnar::vector::Evaluation;

use super::offer;
use super::plan::WindowPlan;
use super::row_order::RowOrder;
use crate::custom_scan::callbacks::Callbacks;
use crate::custom_scan::node::{NextRow, Node, Planned};
use crate::custom_scan::privilege;
use crate::expressions::translate::Translation;
use crate::pg::exec::node::ExecNode;
use crate::pg::exec::slot::SlotWriter;
use crate::pg::explain::Explain;
use crate::vectors::counters::Counters;

static CALLBACKS: Callbacks = Callbacks::of::<WindowState>();

/// The node's state.
#[derive(Default)]
pub struct WindowState {
    counters: Counters,
    passed: u64,
    partitions: usize,
    bytes: usize,
    /// Whether the rows had to be sorted by time.
    is_sorted: bool,
}

impl Node for WindowState {
    const NAME: &'static CStr = c"LanesWindow";
    const CALLBACKS: &'static Callbacks = &CALLBACKS;
    type Running = RowOrder;

    fn plan(planned: &Planned) {
        offer::plan(planned);
    }

    fn begin(&mut self, node: ExecNode<'_>) {
        privilege::check_execute(WindowPlan::of(node.plan()).expressions());
    }

    fn start(&mut self, node: ExecNode<'_>) -> Translation<RowOrder> {
        RowOrder::begin(node)
    }

    fn next(
        &mut self,
        running: &mut RowOrder,
        _node: ExecNode<'_>,
        row: &mut SlotWriter<'_>,
    ) -> Evaluation<NextRow> {
        running.write_next(row).map(NextRow::written)
    }

    fn note(&mut self, running: &mut RowOrder) {
        self.counters = running.input.source.counters();
        self.passed = running.input.passed;
        self.partitions = running.input.partitions();
        self.bytes = running.values.bytes(&running.input);
        self.is_sorted = running.sorted.is_some();
    }

    fn end(running: RowOrder) {
        running.free();
    }

    fn explain(&self, explain: &Explain) {
        let plan = WindowPlan::of(explain.plan());
        explain.table(plan.index);
        explain.expressions(c"Window Functions", &plan.shown_calls());
        explain.expressions(c"Partition By", &plan.keys);
        explain.expressions(c"Order By", &[plan.time]);
        explain.quals(&plan.quals);
        if explain.is_analyze() {
            self.counters.explain(explain);
            explain.integer(c"Vector Rows Passed", self.passed);
            explain.integer(c"Partitions", self.partitions as u64);
            explain.kilobytes(c"Memory", self.bytes);
            if self.is_sorted {
                explain.text(c"Rows Sorted", "as they were out of order");
            }
        }
    }
}
