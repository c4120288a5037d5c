//! `LanesTopN` under execution: rows that pass the quals, in order.
//!
//! ```text
//! pass: vectors from the end where the first rows are expected ── zones ── pushed quals ──► best rows (kept quals last)
//!       best rows ── fetched by number ──► a slot a row
//! asked for more: another pass, which keeps more rows, beginning after the last one
//! ```
//! Who asks for no more than the first pass keeps, as a LIMIT does, pays for one. Memory is bounded by `work_mem`.

use lanes_columnar::order::BestRows;
use lanes_columnar::vector::predicate::Predicate;
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::kept_rows::KeptRows;
use super::prune::Prune;
use super::row_plan::RowPlan;
use super::state::Static;
use super::top_n_plan;
use super::translate::{Scalars, Translator};
use super::vector_source::{Counters, VectorSource};
use super::{explain, scan_state, sort_key, state};
use crate::error;
use crate::pg::datum::RowOutlet;
use crate::pg::{nodes, ports};
use crate::table_am::insert_buffer;

static METHODS: Static<pg_sys::CustomExecMethods> = Static(pg_sys::CustomExecMethods {
    CustomName: top_n_plan::NAME.as_ptr(),
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
    ExplainCustomScan: Some(explain_top_n),
});

/// A node under execution.
#[derive(Default)]
struct TopNState {
    /// Attributes that the plan asks for, ascending.
    attributes: Vec<usize>,
    /// Quals that are not vectorised.
    kept: *mut pg_sys::ExprState,
    /// All quals, for rows that come from elsewhere (`EvalPlanQual`).
    recheck: *mut pg_sys::ExprState,
    running: Option<Running>,
    counters: Counters,
    passed: u64,
    passes: u64,
    bytes: usize,
}

/// What exists from the first row on.
struct Running {
    source: VectorSource,
    translator: Translator,
    quals: Vec<Predicate>,
    prunes: Vec<Prune>,
    best: BestRows,
    rows: KeptRows,
    /// Rows that the next pass keeps, and the most that one may keep.
    pass_rows: usize,
    pass_rows_max: usize,
    /// Whether a pass may find more rows.
    more: bool,
}

#[pg_guard]
pub unsafe extern "C-unwind" fn create(_scan: *mut pg_sys::CustomScan) -> *mut pg_sys::Node {
    // SAFETY: static methods.
    unsafe { state::make::<TopNState>(&raw const METHODS.0) }
}

#[pg_guard]
unsafe extern "C-unwind" fn begin(
    node: *mut pg_sys::CustomScanState,
    _estate: *mut pg_sys::EState,
    _flags: i32,
) {
    // SAFETY: a node of ours, freshly initialised by PostgreSQL.
    unsafe {
        let scan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
        let plan = RowPlan::of(scan);
        let ours = state::of::<TopNState>(node);
        // If this runs in workers, those cannot see what is still gathered in this process.
        insert_buffer::flush_table((*(*node).ss.ss_currentRelation).rd_id);
        let descriptor = (*(*node).ss.ss_currentRelation).rd_att;
        ours.attributes = scan_state::attributes(scan, plan.kept, descriptor);
        ours.kept = pg_sys::ExecInitQual(plan.kept, node.cast());
        let all = pg_sys::list_concat_copy(plan.pushed, plan.kept);
        ours.recheck = pg_sys::ExecInitQual(all, node.cast());
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn execute(
    node: *mut pg_sys::CustomScanState,
) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: a node of ours.
    unsafe { pg_sys::ExecScan(&raw mut (*node).ss, Some(next), Some(recheck)) }
}

/// The next row in order; null at the end.
#[pg_guard]
unsafe extern "C-unwind" fn next(node: *mut pg_sys::ScanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: `execute` hands over a node of ours; the slot is a virtual one of the table.
    unsafe {
        let slot = (*node).ss_ScanTupleSlot;
        let node = node.cast::<pg_sys::CustomScanState>();
        let ours = state::of::<TopNState>(node);
        ports::ExecClearTuple(slot);
        if ours.running.is_none() {
            ours.running = Some(Running::begin(node, &ours.attributes));
        }
        let TopNState {
            running: Some(running),
            ..
        } = ours
        else {
            return std::ptr::null_mut();
        };
        loop {
            if running.rows.store_next(slot) {
                return slot;
            }
            if !running.more {
                return std::ptr::null_mut();
            }
            ours.passed += running.pass(node, &ours.attributes, ours.kept);
            ours.passes += 1;
            ours.bytes = ours.bytes.max(running.bytes());
            ours.counters = running.source.counters;
        }
    }
}

impl Running {
    /// Parameters have their values now.
    unsafe fn begin(node: *mut pg_sys::CustomScanState, attributes: &[usize]) -> Running {
        // SAFETY: a node of ours, in execution.
        unsafe {
            let scan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
            let estate = (*node).ss.ps.state;
            let plan = RowPlan::of(scan);
            let mut translator = Translator::new(Scalars::Evaluated(&raw mut (*node).ss.ps));
            let (mut quals, mut prunes) = (Vec::new(), Vec::new());
            for qual in nodes::list::<pg_sys::Node>(plan.pushed) {
                let predicate = translator
                    .predicate(qual)
                    .unwrap_or_else(|reason| error::unplanned(&reason));
                Prune::of(&predicate, &mut prunes);
                quals.push(predicate);
            }
            let best = BestRows::new(sort_key::keys(&mut translator, &plan.keys));
            let relation = (*node).ss.ss_currentRelation;
            let rows = KeptRows::new(relation, attributes, (*estate).es_query_cxt);
            let width = (*scan).scan.plan.plan_width.max(0) as usize;
            let row_bytes = BestRows::ROW_BYTES + rows.row_bytes() + width;
            let pass_rows_max = (pg_sys::work_mem as usize * 1024 / row_bytes).max(1);
            Running {
                source: VectorSource::begin(relation, (*estate).es_snapshot, Vec::new()),
                translator,
                quals,
                prunes,
                best,
                rows,
                pass_rows: (plan.first_pass as usize).min(pass_rows_max),
                pass_rows_max,
                more: true,
            }
        }
    }

    /// Finds the next rows; gives how many rows passed the pushed quals.
    unsafe fn pass(
        &mut self,
        node: *mut pg_sys::CustomScanState,
        attributes: &[usize],
        kept: *mut pg_sys::ExprState,
    ) -> u64 {
        let mut passed = 0;
        let scalars = &self.translator.scalars;
        let zoned = self.best.zone_attribute();
        self.best.begin(self.pass_rows);
        self.source.rewind(self.best.is_backward());
        while let Some(mut selection) = self.source.next(&self.prunes, scalars) {
            let frame = self.source.frame(scalars);
            let zone = zoned.and_then(|attribute| self.source.zone(attribute));
            if zone.is_some_and(|zone| !self.best.can_take(&frame, &selection, &zone)) {
                self.source.skip(&selection);
                continue;
            }
            for qual in &mut self.quals {
                if selection.is_empty() {
                    break;
                }
                match qual.evaluate(&frame, &selection) {
                    Ok(truth) => selection = truth.yes,
                    Err(failure) => error::evaluation(failure),
                }
            }
            if selection.is_empty() {
                continue;
            }
            passed += selection.count() as u64;
            let (outlet, place) = (self.source.outlet(), self.source.place(0));
            let accept = |row: usize| {
                // SAFETY: a node of ours; the lanes of the vector are alive.
                kept.is_null() || unsafe { accepts(node, attributes, kept, outlet, place + row) }
            };
            let first_row = self.source.row_number(place);
            if let Err(failure) = self.best.offer(&frame, first_row, &selection, accept) {
                error::evaluation(failure);
            }
        }
        let found = self.best.take();
        self.more = found.more;
        self.rows.fetch(&mut self.source, found.rows);
        self.pass_rows = (self.pass_rows * top_n_plan::PASS_GROWTH).min(self.pass_rows_max);
        passed
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
        pg_sys::MemoryContextReset((*context).ecxt_per_tuple_memory);
        ports::ExecClearTuple(slot);
        for &attribute in attributes {
            let (values, nulls) = ((*slot).tts_values, (*slot).tts_isnull);
            (*outlet).read(place, attribute, attribute + 1, values, nulls);
        }
        (*slot).tts_tableOid = (*(*node).ss.ss_currentRelation).rd_id;
        pg_sys::ExecStoreVirtualTuple(slot);
        (*context).ecxt_scantuple = slot;
        let passes = nodes::exec_qual(kept, context);
        ports::ExecClearTuple(slot);
        passes
    }
}

/// Whether a row that came from elsewhere passes all quals.
#[pg_guard]
unsafe extern "C-unwind" fn recheck(
    node: *mut pg_sys::ScanState,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: `execute` hands over a node of ours; the slot is filled.
    unsafe {
        // Expressions of this node expect a slot whose values are all there.
        ports::slot_getallattrs(slot);
        let context = (*node).ps.ps_ExprContext;
        (*context).ecxt_scantuple = slot;
        nodes::exec_qual(state::of::<TopNState>(node.cast()).recheck, context)
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn rescan(node: *mut pg_sys::CustomScanState) {
    // SAFETY: a node of ours.
    unsafe {
        stop(node);
        pg_sys::ExecScanReScan(&raw mut (*node).ss);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn end(node: *mut pg_sys::CustomScanState) {
    // SAFETY: a node of ours.
    unsafe { stop(node) }
}

unsafe fn stop(node: *mut pg_sys::CustomScanState) {
    // SAFETY: a node of ours; the slot lets go of the rows before they go.
    unsafe {
        ports::ExecClearTuple((*node).ss.ss_ScanTupleSlot);
        if let Some(running) = state::of::<TopNState>(node).running.take() {
            running.source.end();
            running.rows.free();
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn explain_top_n(
    node: *mut pg_sys::CustomScanState,
    ancestors: *mut pg_sys::List,
    output: *mut pg_sys::ExplainState,
) {
    // SAFETY: a node of ours, and EXPLAIN's live structures.
    unsafe {
        let plan = RowPlan::of((*node).ss.ps.plan.cast());
        let ours = state::of::<TopNState>(node);
        explain::order(&plan.keys, node, ancestors, output);
        explain::quals(node, plan.pushed, ancestors, output);
        explain::filter(node, plan.kept, ancestors, output);
        explain::reasons(plan.reasons, output);
        if (*output).analyze {
            explain::counters(&ours.counters, output);
            explain::integer(c"Vector Rows Passed", ours.passed, output);
            explain::integer(c"Passes", ours.passes, output);
            explain::kilobytes(c"Memory", ours.bytes, output);
        }
    }
}
