//! `LanesScan` under execution.
//!
//! A slot gets only the attributes that the plan's target list and remaining conditions read, directly from the lanes.

use std::ffi::CStr;

use lanes_columnar::vector::Evaluation;
use lanes_columnar::vector::selection::Selection;
use pgrx::pg_sys;

use super::plan;
use super::shared_scan::SharedScan;
use crate::custom_scan::callbacks::{self, Callbacks};
use crate::custom_scan::node::{NextRow, Node, ParallelNode, Planned};
use crate::custom_scan::private_data;
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::pg::exec::child::Child;
use crate::pg::exec::expression::RowQual;
use crate::pg::exec::node::ExecNode;
use crate::pg::exec::parallel::{self, SharedState};
use crate::pg::exec::slot::SlotWriter;
use crate::pg::explain::Explain;
use crate::pg::nodes;
use crate::vectors::counters::Counters;
use crate::vectors::prune::Filter;
use crate::vectors::row_cursor::RowCursor;
use crate::vectors::vector_source::VectorSource;

static CALLBACKS: Callbacks = Callbacks::of_parallel::<ScanState>();

/// The node's state.
#[derive(Default)]
pub struct ScanState {
    /// The attributes that the plan reads, ascending.
    attributes: Vec<usize>,
    /// The pushed conditions, for rows that PostgreSQL rechecks.
    recheck: RowQual,
    counters: Counters,
    passed: u64,
    /// Vectors before this row are skipped.
    first_row: u64,
    /// In a parallel scan, what the participants share.
    shared: Option<SharedState<SharedScan>>,
    /// The counters of workers.
    of_workers: Counters,
}

/// The scan, from the first row on.
pub struct RunningScan {
    pub source: VectorSource,
    translator: Translator,
    filter: Filter,
    table: pg_sys::Oid,
    rows: RowCursor,
}

impl Node for ScanState {
    const NAME: &'static CStr = c"LanesScan";
    const CALLBACKS: &'static Callbacks = &CALLBACKS;
    const IS_RECHECKED: bool = true;
    type Running = RunningScan;

    fn plan(planned: &Planned) {
        plan::plan(planned);
    }

    fn begin(&mut self, node: ExecNode<'_>) {
        self.attributes = plan::begin_table(node, std::ptr::null_mut());
        self.recheck = node.initialise_qual(node.plan().expressions());
    }

    fn start(&mut self, node: ExecNode<'_>) -> Translation<RunningScan> {
        let mut translator = Translator::new(Scalars::of(node));
        let filter = Filter::of(&mut translator, nodes::plan_list(node.plan().expressions()))?;
        let table = node.scanned_table();
        let mut source = VectorSource::begin(table, filter.zones_wanted.clone());
        source.want_only([self.attributes.clone(), translator.attributes()].concat());
        if let Some(shared) = &self.shared {
            source.share(&shared.lasting().taken);
        }
        Ok(RunningScan {
            source,
            translator,
            filter,
            table: table.oid(),
            rows: RowCursor::EMPTY,
        })
    }

    fn next(
        &mut self,
        running: &mut RunningScan,
        _node: ExecNode<'_>,
        row: &mut SlotWriter<'_>,
    ) -> Evaluation<NextRow> {
        let Some(number) = running.next_row(&mut self.passed, self.first_row)? else {
            return Ok(NextRow::End);
        };
        let (outlet, place) = (running.source.outlet(), running.source.place(number));
        for &attribute in &self.attributes {
            row.read_lane(outlet, place, attribute);
        }
        row.set_row(running.source.tid(number), running.table);
        Ok(NextRow::Written)
    }

    fn recheck(&self) -> RowQual {
        self.recheck
    }

    fn note(&mut self, running: &mut RunningScan) {
        self.counters = running.source.counters();
    }

    fn end(running: RunningScan) {
        running.source.end();
    }

    fn explain(&self, explain: &Explain) {
        let quals: Vec<_> = nodes::plan_list(explain.plan().expressions()).collect();
        explain.quals(&quals);
        explain.reasons(private_data::reasons(explain.plan()));
        if explain.is_analyze() {
            self.counters.plus(&self.of_workers).explain(explain);
            explain.integer(c"Vector Rows Passed", self.passed);
        }
    }
}

impl ParallelNode for ScanState {
    type Shared = SharedScan;

    fn attach(&mut self, shared: SharedState<SharedScan>) {
        self.shared = Some(shared);
    }

    fn restart(shared: &SharedScan) {
        shared.restart();
    }

    /// A worker reports its counters; the leader collects those of the workers.
    fn detach(&mut self) {
        let Some(shared) = self.shared.take() else {
            return;
        };
        if parallel::is_worker() {
            shared.report(&self.counters, self.passed);
            (self.counters, self.passed) = Default::default();
        } else {
            let (counters, passed) = shared.collect();
            self.of_workers = self.of_workers.plus(&counters);
            self.passed += passed;
        }
    }
}

impl ScanState {
    /// The rows that pass in the next vector that has such rows; `None` at the end.
    ///
    /// # Errors
    /// The error that a condition raises.
    pub fn next_rows(&mut self, running: &mut RunningScan) -> Evaluation<Option<Selection>> {
        running.next_rows(&mut self.passed, self.first_row)
    }
}

impl RunningScan {
    /// The next row that passes, relative to the source's vector. Vectors before `first_row` are skipped.
    #[inline]
    fn next_row(&mut self, passed: &mut u64, first_row: u64) -> Evaluation<Option<usize>> {
        loop {
            if let Some(row) = self.rows.next_row() {
                return Ok(Some(row));
            }
            let Some(selection) = self.next_rows(passed, first_row)? else {
                return Ok(None);
            };
            self.rows = RowCursor::new(selection);
        }
    }

    /// The rows that pass in the next vector that has such rows. Vectors before `first_row` are skipped.
    fn next_rows(&mut self, passed: &mut u64, first_row: u64) -> Evaluation<Option<Selection>> {
        loop {
            let scalars = &self.translator.scalars;
            let Some(selection) = self.source.next(&mut self.filter, scalars)? else {
                return Ok(None);
            };
            if self.source.row_number(self.source.place(0)) < first_row {
                continue;
            }
            *passed += selection.count() as u64;
            return Ok(Some(selection));
        }
    }
}

/// Makes a `LanesScan` skip the vectors before a row. The scan has returned no row since it began or was rescanned.
pub fn begin_at(scan: Child, first_row: u64) {
    match callbacks::state_of::<ScanState>(scan) {
        Some(state) => state.first_row = first_row,
        None => crate::error::unplanned("the left side of a join is not scanned by vectors"),
    }
}

/// What a `LanesScan` has done so far; zeros for any other plan.
pub fn counters_of(scan: Child) -> Counters {
    callbacks::state_of::<ScanState>(scan).map_or_else(Counters::default, |state| state.counters)
}
