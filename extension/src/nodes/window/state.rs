//! `LanesWindow` under execution.
//!
//! ```text
//! first pass: times only ── in order? ──► yes: vectors as they come              ┐
//!                                    └──► no:  rows sorted by time, then number   ┴──► a state for each partition ──► slots
//! ```
//! SQL's own functions are computed for [all rows](super::partitioned) before the first one is returned.

use std::ffi::CStr;

use lanes_columnar::vector::Evaluation;
use pgrx::pg_sys;

use super::offer;
use super::partitioned::plan::{DirectedKey, PartitionedPlan, is_partitioned};
use super::partitioned::results::{PartitionedRows, Reading, RowReader};
use super::plan::{WindowPlan, shown_calls};
use super::row_order::RowOrder;
use crate::custom_scan::callbacks::Callbacks;
use crate::custom_scan::node::{NextRow, Node, Planned};
use crate::custom_scan::{privilege, stand_in};
use crate::expressions::translate::Translation;
use crate::pg::exec::child::Child;
use crate::pg::exec::node::{CustomPlan, ExecNode};
use crate::pg::exec::slot::SlotWriter;
use crate::pg::explain::Explain;
use crate::pg::tree::{Expr, View};

static CALLBACKS: Callbacks = Callbacks::of::<WindowState>();

/// The node's state.
#[derive(Default)]
pub struct WindowState {
    reading: Reading,
    /// How another node reads the rows, if it does not take them one by one.
    pub reader: Option<RowReader>,
}

/// The rows, or the plan that returns them instead.
pub enum Rows {
    ByTime(Box<RowOrder>),
    Partitioned(Box<PartitionedRows>),
    /// PostgreSQL's own plan.
    StandIn(Child),
}

impl Rows {
    /// The rows with SQL's own functions, if they are in memory.
    pub fn partitioned(&mut self) -> Option<&mut PartitionedRows> {
        match self {
            Rows::Partitioned(rows) => Some(rows),
            Rows::ByTime(_) | Rows::StandIn(_) => None,
        }
    }
}

impl Node for WindowState {
    const NAME: &'static CStr = c"LanesWindow";
    const CALLBACKS: &'static Callbacks = &CALLBACKS;
    type Running = Rows;

    fn stand_in(rows: &Rows) -> Option<Child> {
        match rows {
            Rows::StandIn(child) => Some(*child),
            Rows::ByTime(_) | Rows::Partitioned(_) => None,
        }
    }

    fn plan(planned: &Planned) {
        offer::plan(planned);
    }

    fn begin(&mut self, node: ExecNode<'_>) {
        match is_partitioned(node.plan()) {
            true => check_execute(PartitionedPlan::of(node.plan()).expressions()),
            false => check_execute(WindowPlan::of(node.plan()).expressions()),
        }
    }

    fn start(&mut self, node: ExecNode<'_>) -> Translation<Rows> {
        if !is_partitioned(node.plan()) {
            return Ok(Rows::ByTime(Box::new(RowOrder::begin(node)?)));
        }
        if !self.reading.has_handed_over
            && let Some(rows) =
                PartitionedRows::begin(node, self.reader.as_ref(), &mut self.reading)?
        {
            return Ok(Rows::Partitioned(Box::new(rows)));
        }
        self.reading.has_handed_over = true;
        Ok(Rows::StandIn(stand_in::begin(node, 0)))
    }

    fn next(
        &mut self,
        rows: &mut Rows,
        node: ExecNode<'_>,
        row: &mut SlotWriter<'_>,
    ) -> Evaluation<NextRow> {
        Ok(NextRow::written(match rows {
            Rows::ByTime(order) => order.write_next(row)?,
            Rows::Partitioned(rows) => rows.write_next(node, row),
            Rows::StandIn(_) => false,
        }))
    }

    fn note(&mut self, rows: &mut Rows) {
        if let Rows::ByTime(order) = rows {
            self.reading = Reading {
                counters: order.input.source.counters(),
                passed: order.input.passed,
                partitions: order.input.partitions(),
                bytes: order.values.bytes(&order.input),
                parts: 1,
                is_sorted: order.sorted.is_some(),
                has_handed_over: false,
            };
        }
    }

    fn rewind(rows: &mut Rows, node: ExecNode<'_>) -> bool {
        match rows {
            // Equal parameters and an equal snapshot give equal rows.
            Rows::Partitioned(rows) => node.changed_parameters().is_null() && rows.rewind(),
            _ => false,
        }
    }

    fn end(rows: Rows) {
        match rows {
            Rows::ByTime(order) => order.free(),
            Rows::Partitioned(rows) => rows.stop(),
            Rows::StandIn(_) => {}
        }
    }

    fn explain(&self, explain: &Explain) {
        match is_partitioned(explain.plan()) {
            true => explain_partitioned(explain.plan(), explain),
            false => explain_by_time(explain.plan(), explain),
        }
        if explain.is_analyze() {
            self.explain_execution(explain);
        }
    }
}

impl WindowState {
    fn explain_execution(&self, explain: &Explain) {
        let reading = &self.reading;
        reading.counters.explain(explain);
        explain.integer(c"Vector Rows Passed", reading.passed);
        explain.integer(c"Partitions", reading.partitions as u64);
        explain.kilobytes(c"Memory", reading.bytes);
        if reading.parts > 1 {
            explain.integer(c"Passes", reading.parts as u64 + 1);
        }
        if reading.is_sorted {
            explain.text(c"Rows Sorted", "as they were out of order");
        }
        if reading.has_handed_over {
            explain.text(c"Handed Over", stand_in::ROWS_TOO_LARGE);
        }
    }
}

fn check_execute<'p>(expressions: impl Iterator<Item = Expr<'p>>) {
    privilege::check_execute(expressions.map(View::as_ptr));
}

fn pointers(expressions: &[Expr<'_>]) -> Vec<*mut pg_sys::Node> {
    expressions.iter().map(|node| node.as_ptr()).collect()
}

fn explain_by_time(plan: CustomPlan<'_>, explain: &Explain) {
    let plan = WindowPlan::of(plan);
    explain.table(plan.index);
    explain.expressions(c"Window Functions", &shown_calls(&plan.calls));
    explain.expressions(c"Partition By", &pointers(&plan.keys));
    explain.expressions(c"Order By", &pointers(&[plan.time]));
    explain.quals(&pointers(&plan.quals));
}

fn explain_partitioned(plan: CustomPlan<'_>, explain: &Explain) {
    let plan = PartitionedPlan::of(plan);
    let directed = |keys: &[DirectedKey<'_>]| {
        let expressions: Vec<_> = keys.iter().map(|key| key.expression.as_ptr()).collect();
        let texts = explain.deparse(&expressions).into_iter().zip(keys);
        let texts: Vec<_> = texts.map(|(text, key)| text + key.direction()).collect();
        texts.join(", ")
    };
    explain.table(plan.index);
    explain.expressions(c"Window Functions", &shown_calls(&plan.calls));
    if !plan.keys.is_empty() {
        explain.text(c"Partition By", &directed(&plan.keys));
    }
    if !plan.orders.is_empty() {
        explain.text(c"Order By", &directed(&plan.orders));
    }
    explain.quals(&pointers(&plan.quals));
}
