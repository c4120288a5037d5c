//! `LanesTopN` under execution: the rows that pass the conditions, in order.
//!
//! ```text
//! pass: vectors from the end where the first rows are expected ── zones ── pushed conditions ──► best rows
//!       a row that would become one of the best ── other conditions
//!       best rows ── fetched by number ──► a slot for each row
//! more rows requested: another pass, which keeps more rows and begins after the last one
//! ```
//! A LIMIT requests no more rows than the first pass keeps, so it costs one pass. The memory limit is
//! `work_mem`. A pass whose texts exceed it keeps fewer rows.

use std::ffi::CStr;

use lanes_columnar::order::{BestRows, SortBy};
use lanes_columnar::vector::Evaluation;

use super::offer::{self, PASS_GROWTH};
use super::row_plan::RowPlan;
use crate::custom_scan::callbacks::Callbacks;
use crate::custom_scan::node::{NextRow, Node, Planned};
use crate::expressions::sort_key;
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::nodes::scan::plan::begin_table;
use crate::nodes::scan::row_filter::RowFilter;
use crate::pg::exec::expression::RowQual;
use crate::pg::exec::memory::work_memory_limit;
use crate::pg::exec::node::ExecNode;
use crate::pg::exec::slot::SlotWriter;
use crate::pg::explain::Explain;
use crate::pg::tree::View;
use crate::vectors::counters::Counters;
use crate::vectors::kept_rows::KeptRows;
use crate::vectors::prune::Filter;
use crate::vectors::vector_source::VectorSource;

static CALLBACKS: Callbacks = Callbacks::of::<TopNState>();

/// The node's state.
#[derive(Default)]
pub struct TopNState {
    /// The attributes that the plan reads, ascending.
    attributes: Vec<usize>,
    /// The conditions that PostgreSQL evaluates.
    kept: RowQual,
    /// All conditions, for rows that PostgreSQL rechecks.
    recheck: RowQual,
    counters: Counters,
    passed: u64,
    passes: u64,
    bytes: usize,
}

/// The passes, from the first row on.
pub struct RunningTopN {
    source: VectorSource,
    translator: Translator,
    filter: Filter,
    row_filter: RowFilter,
    best: BestRows,
    rows: KeptRows,
    /// The attributes that a pass reads.
    looked_at: Vec<usize>,
    /// How many rows the next pass keeps, and the most that a pass may keep.
    pass_rows: usize,
    pass_rows_max: usize,
    /// The most bytes of items that the rows of a pass may have.
    item_bytes_max: usize,
    /// Whether another pass may find rows.
    has_more: bool,
}

impl Node for TopNState {
    const NAME: &'static CStr = c"LanesTopN";
    const CALLBACKS: &'static Callbacks = &CALLBACKS;
    const IS_RECHECKED: bool = true;
    type Running = RunningTopN;

    fn plan(planned: &Planned) {
        offer::plan(planned);
    }

    fn begin(&mut self, node: ExecNode<'_>) {
        let plan = RowPlan::of(node.plan());
        self.attributes = begin_table(node, plan.kept.as_ptr());
        self.kept = node.initialise_qual(plan.kept.as_ptr());
        self.recheck = node.initialise_qual(plan.all_quals().as_ptr());
    }

    fn start(&mut self, node: ExecNode<'_>) -> Translation<RunningTopN> {
        let plan = RowPlan::of(node.plan());
        let mut translator = Translator::new(Scalars::of(node));
        let filter = Filter::of(&mut translator, plan.pushed.iter().map(View::as_ptr))?;
        let keys = sort_key::keys(&mut translator, &plan.keys)?;
        let has_items = keys.iter().any(|key| matches!(key.by, SortBy::Item(..)));
        let best = BestRows::new(keys);
        let table = node.scanned_table();
        let rows = KeptRows::new(table, &self.attributes, node.query_memory());
        let row_bytes = BestRows::ROW_BYTES + rows.row_bytes() + node.plan().width();
        // The items of a pass may take one half of the memory, its rows the other.
        let item_bytes_max = work_memory_limit() / 2;
        let rows_bytes_max = match has_items {
            true => item_bytes_max,
            false => work_memory_limit(),
        };
        let pass_rows_max = (rows_bytes_max / row_bytes).max(1);
        let mut looked_at = translator.attributes();
        if !self.kept.is_empty() {
            looked_at.extend_from_slice(&self.attributes);
        }
        Ok(RunningTopN {
            source: VectorSource::begin(table, filter.zones_wanted.clone()),
            looked_at,
            translator,
            filter,
            row_filter: RowFilter::new(node, self.kept, &self.attributes),
            best,
            rows,
            pass_rows: (plan.first_pass as usize).min(pass_rows_max),
            pass_rows_max,
            item_bytes_max,
            has_more: true,
        })
    }

    fn next(
        &mut self,
        running: &mut RunningTopN,
        _node: ExecNode<'_>,
        row: &mut SlotWriter<'_>,
    ) -> Evaluation<NextRow> {
        loop {
            if running.rows.write_next(row) {
                return Ok(NextRow::Written);
            }
            if !running.has_more {
                return Ok(NextRow::End);
            }
            self.passed += running.pass()?;
            self.passes += 1;
            self.bytes = self.bytes.max(running.bytes());
        }
    }

    fn recheck(&self) -> RowQual {
        self.recheck
    }

    fn note(&mut self, running: &mut RunningTopN) {
        self.counters = running.source.counters();
    }

    fn end(running: RunningTopN) {
        running.source.end();
        running.rows.free();
        running.row_filter.free();
    }

    fn explain(&self, explain: &Explain) {
        RowPlan::of(explain.plan()).explain(explain);
        if explain.is_analyze() {
            self.counters.explain(explain);
            explain.integer(c"Vector Rows Passed", self.passed);
            explain.integer(c"Passes", self.passes);
            explain.kilobytes(c"Memory", self.bytes);
        }
    }
}

impl RunningTopN {
    /// Finds the next rows, and returns how many rows passed the pushed conditions.
    fn pass(&mut self) -> Evaluation<u64> {
        let mut passed = 0;
        let scalars = &self.translator.scalars;
        let zoned = self.best.zone_attribute();
        self.best.begin(self.pass_rows, self.item_bytes_max);
        self.source.want_only(self.looked_at.clone());
        self.source.rewind(self.best.is_backward());
        while self.source.advance(&mut self.filter, scalars) {
            let zone = zoned.and_then(|attribute| self.source.zone(attribute));
            let frame = self.source.frame(scalars);
            let visible = self.source.visible().0;
            if zone.is_some_and(|zone| !self.best.can_take(&frame, visible, &zone)) {
                self.source.skip();
                continue;
            }
            let Some(selection) = self.source.narrow(&mut self.filter, scalars)? else {
                continue;
            };
            let frame = self.source.frame(scalars);
            passed += selection.count() as u64;
            let (source, row_filter) = (&self.source, &self.row_filter);
            let accept = |row: usize| row_filter.passes(source, row);
            let first_row = source.row_number(source.place(0));
            self.best.offer(&frame, first_row, &selection, accept)?;
        }
        let found = self.best.take();
        self.has_more = found.more;
        self.rows.fetch(&mut self.source, found.rows);
        self.pass_rows = (self.pass_rows * PASS_GROWTH).min(self.pass_rows_max);
        Ok(passed)
    }

    fn bytes(&self) -> usize {
        self.best.bytes() + self.rows.bytes()
    }
}
