//! `LanesTopN` under execution: rows that pass the quals, in order.
//!
//! ```text
//! pass: vectors from the end where the first rows are expected ── zones ── pushed quals ──► best rows (kept quals last)
//!       best rows ── fetched by number ──► a slot a row
//! asked for more: another pass, which keeps more rows, beginning after the last one
//! ```
//! Who asks for no more than the first pass keeps, as a LIMIT does, pays for one. Memory is bounded by `work_mem`.

use std::ffi::CStr;

use lanes_columnar::order::BestRows;
use lanes_columnar::vector::Evaluation;
use pgrx::pg_sys;

use super::plan;
use super::row_plan::RowPlan;
use crate::custom_scan::node::{Node, Planned, Routines};
use crate::expressions::sort_key;
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::nodes::scan::state::begin_table;
use crate::pg::datum::RowOutlet;
use crate::pg::explain::Explain;
use crate::pg::{nodes, ports};
use crate::vectors::kept_rows::KeptRows;
use crate::vectors::prune::Filter;
use crate::vectors::vector_source::{Counters, VectorSource};

static ROUTINES: Routines = Routines::of::<TopNState>();

/// A node under execution.
#[derive(Default)]
pub struct TopNState {
    /// Attributes that the plan asks for, ascending.
    attributes: Vec<usize>,
    /// Quals that are not vectorised.
    kept: *mut pg_sys::ExprState,
    /// All quals, for rows that come from elsewhere (`EvalPlanQual`).
    recheck: *mut pg_sys::ExprState,
    counters: Counters,
    passed: u64,
    passes: u64,
    bytes: usize,
}

/// What exists from the first row on.
pub struct Running {
    source: VectorSource,
    translator: Translator,
    filter: Filter,
    best: BestRows,
    rows: KeptRows,
    /// Attributes that a pass looks at.
    looked_at: Vec<usize>,
    /// Rows that the next pass keeps, and the most that one may keep.
    pass_rows: usize,
    pass_rows_max: usize,
    /// Whether a pass may find more rows.
    more: bool,
}

impl Node for TopNState {
    const NAME: &'static CStr = c"LanesTopN";
    const ROUTINES: &'static Routines = &ROUTINES;
    const IS_RECHECKED: bool = true;
    type Running = Running;

    unsafe fn plan(planned: &Planned) {
        // SAFETY: the planner's live structures.
        unsafe { plan::plan(planned) }
    }

    unsafe fn begin(&mut self, node: *mut pg_sys::CustomScanState) {
        // SAFETY: a node freshly initialised by PostgreSQL.
        unsafe {
            let plan = RowPlan::of((*node).ss.ps.plan.cast());
            self.attributes = begin_table(node, plan.kept);
            self.kept = pg_sys::ExecInitQual(plan.kept, node.cast());
            let all = pg_sys::list_concat_copy(plan.pushed, plan.kept);
            self.recheck = pg_sys::ExecInitQual(all, node.cast());
        }
    }

    unsafe fn start(&mut self, node: *mut pg_sys::CustomScanState) -> Translation<Running> {
        // SAFETY: a node in execution.
        unsafe {
            let scan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
            let estate = (*node).ss.ps.state;
            let plan = RowPlan::of(scan);
            let mut translator = Translator::new(Scalars::Evaluated(&raw mut (*node).ss.ps));
            let filter = Filter::of(&mut translator, nodes::list(plan.pushed))?;
            let best = BestRows::new(sort_key::keys(&mut translator, &plan.keys)?);
            let relation = (*node).ss.ss_currentRelation;
            let rows = KeptRows::new(relation, &self.attributes, (*estate).es_query_cxt);
            let width = (*scan).scan.plan.plan_width.max(0) as usize;
            let row_bytes = BestRows::ROW_BYTES + rows.row_bytes() + width;
            let pass_rows_max = (pg_sys::work_mem as usize * 1024 / row_bytes).max(1);
            let mut looked_at = translator.attributes();
            if !self.kept.is_null() {
                looked_at.extend_from_slice(&self.attributes);
            }
            let zones_wanted = filter.zones_wanted.clone();
            Ok(Running {
                source: VectorSource::begin(relation, (*estate).es_snapshot, zones_wanted),
                looked_at,
                translator,
                filter,
                best,
                rows,
                pass_rows: (plan.first_pass as usize).min(pass_rows_max),
                pass_rows_max,
                more: true,
            })
        }
    }

    unsafe fn next(
        &mut self,
        running: &mut Running,
        node: *mut pg_sys::CustomScanState,
        slot: *mut pg_sys::TupleTableSlot,
    ) -> Evaluation<bool> {
        // SAFETY: a node in execution; the slot is a virtual one of the table.
        unsafe {
            loop {
                if running.rows.write_next(slot) {
                    return Ok(true);
                }
                if !running.more {
                    return Ok(false);
                }
                self.passed += running.pass(node, &self.attributes, self.kept)?;
                self.passes += 1;
                self.bytes = self.bytes.max(running.bytes());
            }
        }
    }

    fn recheck(&self) -> *mut pg_sys::ExprState {
        self.recheck
    }

    fn note(&mut self, running: &mut Running) {
        self.counters = running.source.counters();
    }

    unsafe fn end(running: Running) {
        running.source.end();
        // SAFETY: no slot holds a row.
        unsafe { running.rows.free() }
    }

    unsafe fn explain(&self, explain: &Explain) {
        // SAFETY: the node's plan.
        unsafe { RowPlan::of(explain.plan()).explain(explain) }
        if explain.is_analyze() {
            self.counters.explain(explain);
            explain.integer(c"Vector Rows Passed", self.passed);
            explain.integer(c"Passes", self.passes);
            explain.kilobytes(c"Memory", self.bytes);
        }
    }
}

impl Running {
    /// Finds the next rows; gives how many rows passed the pushed quals.
    unsafe fn pass(
        &mut self,
        node: *mut pg_sys::CustomScanState,
        attributes: &[usize],
        kept: *mut pg_sys::ExprState,
    ) -> Evaluation<u64> {
        let mut passed = 0;
        let scalars = &self.translator.scalars;
        let zoned = self.best.zone_attribute();
        self.best.begin(self.pass_rows);
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
            let (outlet, place) = (self.source.outlet(), self.source.place(0));
            let accept = |row: usize| {
                // SAFETY: a node of ours; the lanes of the vector are alive.
                kept.is_null() || unsafe { accepts(node, attributes, kept, outlet, place + row) }
            };
            let first_row = self.source.row_number(place);
            self.best.offer(&frame, first_row, &selection, accept)?;
        }
        let found = self.best.take();
        self.more = found.more;
        self.rows.fetch(&mut self.source, found.rows);
        self.pass_rows = (self.pass_rows * plan::PASS_GROWTH).min(self.pass_rows_max);
        Ok(passed)
    }

    fn bytes(&self) -> usize {
        self.best.bytes() + self.rows.bytes()
    }
}

/// Whether a row passes the quals that are not vectorised.
///
/// # Safety
/// A node of ours under execution, of a scan of a table; the row lies at this place of the lanes, which are alive.
pub unsafe fn accepts(
    node: *mut pg_sys::CustomScanState,
    attributes: &[usize],
    kept: *mut pg_sys::ExprState,
    outlet: *const RowOutlet,
    place: usize,
) -> bool {
    // SAFETY: the caller has a node of ours and the lanes of the row; the slot has room for all attributes.
    unsafe {
        let slot = (*node).ss.ss_ScanTupleSlot;
        let context = (*node).ss.ps.ps_ExprContext;
        ports::MemoryContextReset((*context).ecxt_per_tuple_memory);
        ports::ExecClearTuple(slot);
        for &attribute in attributes {
            let (values, nulls) = ((*slot).tts_values, (*slot).tts_isnull);
            (*outlet).read(place, attribute, attribute + 1, values, nulls);
        }
        (*slot).tts_tableOid = (*(*node).ss.ss_currentRelation).rd_id;
        ports::ExecStoreVirtualTuple(slot);
        (*context).ecxt_scantuple = slot;
        let passes = nodes::exec_qual(kept, context);
        ports::ExecClearTuple(slot);
        passes
    }
}
