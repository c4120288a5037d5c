//! `LanesAsofJoin` under execution.
//!
//! ```text
//! start: the right table ── HistoryReader ──► History ──► Join
//! next:  a left row ── Join: search by key and time ──► the match ── the loop's conditions and projection ──► result
//! ```
//! The node runs the nested loop below it instead:
//! - where rows are rechecked that were changed concurrently, or the plan contains no [`AsofPlan`];
//! - where the history would exceed its memory limit. That is known before the first left row is read.

use std::ffi::CStr;

use lanes_columnar::vector::Evaluation;

use super::join::{Join, JoinExpressions};
use super::plan::AsofPlan;
use super::reader::HistoryReader;
use super::translate;
use crate::custom_scan::callbacks::Callbacks;
use crate::custom_scan::node::{NextRow, Node, Planned};
use crate::custom_scan::{names, stand_in};
use crate::expressions::translate::Translation;
use crate::pg::exec::child::{Child, NestedLoop};
use crate::pg::exec::node::{CustomPlan, ExecNode};
use crate::pg::exec::slot::SlotWriter;
use crate::pg::explain::Explain;

static CALLBACKS: Callbacks = Callbacks::of::<AsofState>();

/// The node's state.
#[derive(Default)]
pub struct AsofState {
    /// The nested loop, or whatever PostgreSQL has put in its place.
    below: Option<Child>,
    /// The expressions of the join; `None` if the loop runs itself.
    expressions: Option<JoinExpressions>,
    /// The right side while it is read. It lies here because an ERROR may jump over the code that reads it.
    reader: Option<HistoryReader>,
    /// Whether the node replaces the loop.
    is_join: bool,
    /// Whether the loop runs because the history would have exceeded its memory limit.
    handed_over: bool,
    counters: AsofCounters,
}

/// The counters of an ASOF join, for EXPLAIN.
#[derive(Clone, Copy, Default)]
pub struct AsofCounters {
    pub rows: usize,
    pub keys: usize,
    pub keys_sorted: usize,
    pub searches: u64,
    pub bytes: usize,
}

/// The join, from the first row on.
pub struct RunningAsof {
    below: Child,
    /// `None`: the loop runs itself.
    join: Option<Join>,
}

impl Node for AsofState {
    const NAME: &'static CStr = names::ASOF_JOIN;
    const CALLBACKS: &'static Callbacks = &CALLBACKS;
    type Running = RunningAsof;

    fn children(_plan: CustomPlan<'_>) -> usize {
        1
    }

    fn plan(planned: &Planned) {
        translate::plan(planned);
    }

    fn begin(&mut self, node: ExecNode<'_>) {
        let Some(&below) = node.children().first() else {
            return;
        };
        self.below = Some(below);
        let nested = NestedLoop::of(below).filter(|_| !node.is_rechecking());
        if let (Some(nested), Some(plan)) = (nested, AsofPlan::of(node.plan())) {
            self.expressions = Some(JoinExpressions::begin(plan, nested, node));
            self.is_join = true;
            // EXPLAIN shows the plan that runs: the left side.
            node.show_child(0, nested.outer());
        }
    }

    /// Reads the right side.
    fn start(&mut self, node: ExecNode<'_>) -> Translation<RunningAsof> {
        let Some(below) = self.below else {
            return Err("an ASOF join without its nested loop".into());
        };
        let Some(expressions) = self.expressions.take() else {
            return Ok(RunningAsof { below, join: None });
        };
        // The left side is executed by itself, so the loop does not pass on that parameters have changed.
        below.rescan_if_changed();
        let reader = HistoryReader::new(&expressions, node.snapshot());
        let history = self.reader.insert(reader).read();
        self.reader = None;
        let join = match history {
            Some(history) => Some(Join::new(expressions, history)),
            None => {
                expressions.free();
                node.show_child(0, below);
                self.is_join = false;
                self.handed_over = true;
                None
            }
        };
        Ok(RunningAsof { below, join })
    }

    fn next(
        &mut self,
        running: &mut RunningAsof,
        _node: ExecNode<'_>,
        _row: &mut SlotWriter<'_>,
    ) -> Evaluation<NextRow> {
        let slot = match &mut running.join {
            Some(join) => join.next_row(),
            None => Some(running.below.next_row_guarded()),
        };
        let slot = slot.filter(|slot| !slot.is_empty());
        Ok(slot.map_or(NextRow::End, NextRow::Other))
    }

    fn note(&mut self, running: &mut RunningAsof) {
        if let Some(join) = &running.join {
            self.counters = join.counters();
        }
    }

    /// The history stays: the tables that it was read from look the same throughout the query.
    fn rewind(running: &mut RunningAsof, node: ExecNode<'_>) -> bool {
        running
            .below
            .add_changed_parameters(node.changed_parameters());
        running.below.rescan();
        true
    }

    fn end(running: RunningAsof) {
        if let Some(join) = running.join {
            join.free();
        }
    }

    /// The whole loop, although EXPLAIN may show its left side alone.
    fn children_begun(&self, _node: ExecNode<'_>) -> Vec<Child> {
        self.below.into_iter().collect()
    }

    fn explain(&self, explain: &Explain) {
        if !self.is_join {
            explain.text(c"Algorithm", "nested loop");
            if self.handed_over && explain.is_analyze() {
                explain.text(c"Handed Over", stand_in::RIGHT_SIDE_TOO_LARGE);
            }
            return;
        }
        if let Some(plan) = AsofPlan::of(explain.plan()) {
            explain.properties(plan.properties.as_ptr());
        }
        if explain.is_analyze() && self.expressions.is_none() {
            explain.integer(c"Right Rows", self.counters.rows as u64);
            explain.integer(c"Right Keys", self.counters.keys as u64);
            explain.integer(c"Keys Sorted", self.counters.keys_sorted as u64);
            explain.integer(c"Searches", self.counters.searches);
            explain.kilobytes(c"Memory", self.counters.bytes);
        }
    }
}
