//! `LanesScan`: rows of a table that pass the pushed quals, a slot a row.
//!
//! A slot gets only the attributes that the plan's target list and remaining quals ask for, straight from the lanes.

use std::ffi::CStr;
use std::ptr::NonNull;

use lanes_columnar::vector::Evaluation;
use lanes_columnar::vector::selection::Selection;
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::shared_scan::SharedScan;
use crate::custom_scan::node::{self, Node, Planned, Routines};
use crate::custom_scan::{self};
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::nodes::engine::plan;
use crate::pg::explain::Explain;
use crate::pg::nodes;
use crate::table_am::insert_buffer;
use crate::vectors::prune::Filter;
use crate::vectors::vector_source::{Counters, VectorSource};

static ROUTINES: Routines = {
    let mut routines = Routines::of::<ScanState>();
    routines.execution.EstimateDSMCustomScan = Some(estimate_shared);
    routines.execution.InitializeDSMCustomScan = Some(initialize_shared);
    routines.execution.ReInitializeDSMCustomScan = Some(reinitialize_shared);
    routines.execution.InitializeWorkerCustomScan = Some(initialize_worker);
    routines.execution.ShutdownCustomScan = Some(shutdown);
    routines
};

/// A scan under execution.
#[derive(Default)]
pub struct ScanState {
    /// Attributes that the plan asks for, ascending.
    attributes: Vec<usize>,
    /// The pushed quals, for rows that come from elsewhere (`EvalPlanQual`).
    recheck: *mut pg_sys::ExprState,
    counters: Counters,
    passed: u64,
    /// Rows of vectors before this row are left out.
    first_row: u64,
    /// Of a parallel scan: what the participants share, and what was heard from workers.
    shared: Option<NonNull<SharedScan>>,
    of_workers: Counters,
}

/// What exists from the first row on.
pub struct Running {
    pub source: VectorSource,
    translator: Translator,
    filter: Filter,
    selection: Selection,
    next: usize,
}

impl Node for ScanState {
    const NAME: &'static CStr = c"LanesScan";
    const ROUTINES: &'static Routines = &ROUTINES;
    const IS_RECHECKED: bool = true;
    type Running = Running;

    unsafe fn plan(planned: &Planned) {
        // SAFETY: the planner's live structures.
        unsafe { plan::plan_scan(planned) }
    }

    unsafe fn begin(&mut self, node: *mut pg_sys::CustomScanState) {
        // SAFETY: a node freshly initialised by PostgreSQL.
        unsafe {
            let scan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
            self.attributes = begin_table(node, std::ptr::null_mut());
            self.recheck = pg_sys::ExecInitQual((*scan).custom_exprs, node.cast());
        }
    }

    unsafe fn start(&mut self, node: *mut pg_sys::CustomScanState) -> Translation<Running> {
        // SAFETY: a node in execution.
        unsafe {
            let scan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
            let mut translator = Translator::new(Scalars::Evaluated(&raw mut (*node).ss.ps));
            let filter = Filter::of(&mut translator, nodes::list((*scan).custom_exprs))?;
            let snapshot = (*(*node).ss.ps.state).es_snapshot;
            let relation = (*node).ss.ss_currentRelation;
            let mut source = VectorSource::begin(relation, snapshot, filter.zones_wanted.clone());
            source.want_only([self.attributes.clone(), translator.attributes()].concat());
            if let Some(shared) = self.shared {
                source.share(&raw const (*shared.as_ptr()).taken);
            }
            Ok(Running {
                source,
                translator,
                filter,
                selection: Selection::NONE,
                next: 0,
            })
        }
    }

    unsafe fn next(
        &mut self,
        running: &mut Running,
        node: *mut pg_sys::CustomScanState,
        slot: *mut pg_sys::TupleTableSlot,
    ) -> Evaluation<bool> {
        let Some(row) = running.next_row(&mut self.passed, self.first_row)? else {
            return Ok(false);
        };
        // SAFETY: slot and lanes are alive, and the slot has room for all attributes.
        unsafe {
            let (outlet, place) = (running.source.outlet(), running.source.place(row));
            let (values, nulls) = ((*slot).tts_values, (*slot).tts_isnull);
            for &attribute in &self.attributes {
                (*outlet).read(place, attribute, attribute + 1, values, nulls);
            }
            (*slot).tts_tid = running.source.tid(row);
            (*slot).tts_tableOid = (*(*node).ss.ss_currentRelation).rd_id;
        }
        Ok(true)
    }

    fn recheck(&self) -> *mut pg_sys::ExprState {
        self.recheck
    }

    fn note(&mut self, running: &mut Running) {
        self.counters = running.source.counters();
    }

    unsafe fn end(running: Running) {
        running.source.end();
    }

    unsafe fn explain(&self, explain: &Explain) {
        // SAFETY: the plan's own lists.
        unsafe {
            let quals: Vec<_> = nodes::list((*explain.plan()).custom_exprs).collect();
            explain.quals(&quals);
            explain.reasons(custom_scan::private_data::reasons(explain.plan()));
        }
        if explain.is_analyze() {
            self.counters.plus(&self.of_workers).explain(explain);
            explain.integer(c"Vector Rows Passed", self.passed);
        }
    }
}

impl ScanState {
    /// The rows that pass of the next vector that has such rows; none at the end.
    ///
    /// # Errors
    /// The errors that the quals raise.
    pub fn next_rows(&mut self, running: &mut Running) -> Evaluation<Option<Selection>> {
        running.next_rows(&mut self.passed, self.first_row)
    }
}

impl Running {
    /// The next row that passes, of the vectors that begin at `first_row` or after it; its place is relative to the
    /// source's vector.
    fn next_row(&mut self, passed: &mut u64, first_row: u64) -> Evaluation<Option<usize>> {
        loop {
            if let Some(row) = self.selection.next(self.next) {
                self.next = row + 1;
                return Ok(Some(row));
            }
            let Some(selection) = self.next_rows(passed, first_row)? else {
                return Ok(None);
            };
            (self.selection, self.next) = (selection, 0);
        }
    }

    /// The rows that pass of the next vector that begins at `first_row` or after it and has such rows.
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

/// Lets a `LanesScan` that has not returned a row since it began, or began anew, leave out the vectors before a row.
///
/// # Safety
/// A live node.
pub unsafe fn begin_at(scan: *mut pg_sys::PlanState, first_row: u64) {
    // SAFETY: the caller's promise; the casts follow tag and methods.
    unsafe {
        if !node::is::<ScanState>(scan) {
            crate::error::unplanned("the left side of a join is not scanned by vectors");
        }
        node::state::<ScanState>(scan.cast()).first_row = first_row;
    }
}

/// Makes a scan of a table ready: gives the attributes that its plan asks for, ascending, some quals included.
///
/// # Safety
/// A node of ours that scans a table, freshly initialised by PostgreSQL; live quals of its plan.
pub unsafe fn begin_table(
    node: *mut pg_sys::CustomScanState,
    quals: *mut pg_sys::List,
) -> Vec<usize> {
    // SAFETY: the caller's promise.
    unsafe {
        let relation = (*node).ss.ss_currentRelation;
        // If this runs in workers, those cannot see what is still gathered in this process.
        insert_buffer::flush_table((*relation).rd_id);
        attributes((*node).ss.ps.plan.cast(), quals, (*relation).rd_att)
    }
}

/// The attributes that a plan's own expressions ask for, and some quals.
unsafe fn attributes(
    scan: *mut pg_sys::CustomScan,
    quals: *mut pg_sys::List,
    descriptor: pg_sys::TupleDesc,
) -> Vec<usize> {
    // SAFETY: the plan's live expressions.
    unsafe {
        let table = (*scan).scan.scanrelid;
        let mut found = std::ptr::null_mut();
        let plan = &(*scan).scan.plan;
        pg_sys::pull_varattnos(plan.targetlist.cast(), table, &raw mut found);
        pg_sys::pull_varattnos(plan.qual.cast(), table, &raw mut found);
        pg_sys::pull_varattnos(quals.cast(), table, &raw mut found);
        // What `EvalPlanQual` checks again reads its rows from elsewhere, and in full.
        let asked = |attribute: i32| {
            let offset = attribute - pg_sys::FirstLowInvalidHeapAttributeNumber;
            pg_sys::bms_is_member(offset, found)
        };
        let whole_row = asked(0);
        (0..(*descriptor).natts)
            .filter(|index| whole_row || asked(index + 1))
            .map(|index| index as usize)
            .collect()
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn estimate_shared(
    _node: *mut pg_sys::CustomScanState,
    _context: *mut pg_sys::ParallelContext,
) -> pg_sys::Size {
    size_of::<SharedScan>()
}

#[pg_guard]
unsafe extern "C-unwind" fn initialize_shared(
    node: *mut pg_sys::CustomScanState,
    _context: *mut pg_sys::ParallelContext,
    memory: *mut std::ffi::c_void,
) {
    // SAFETY: PostgreSQL allocated what `estimate_shared` asked for, aligned for anything.
    unsafe {
        memory.cast::<SharedScan>().write(SharedScan::default());
        node::state::<ScanState>(node).shared = NonNull::new(memory.cast());
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn reinitialize_shared(
    _node: *mut pg_sys::CustomScanState,
    _context: *mut pg_sys::ParallelContext,
    memory: *mut std::ffi::c_void,
) {
    // SAFETY: initialised above.
    unsafe { (*memory.cast::<SharedScan>()).restart() }
}

#[pg_guard]
unsafe extern "C-unwind" fn initialize_worker(
    node: *mut pg_sys::CustomScanState,
    _contents: *mut pg_sys::shm_toc,
    memory: *mut std::ffi::c_void,
) {
    // SAFETY: initialised by the leader; it lives as long as the query.
    unsafe { node::state::<ScanState>(node).shared = NonNull::new(memory.cast()) }
}

/// The last moment at which what is shared can be used: workers tell what they did, the leader hears it.
#[pg_guard]
unsafe extern "C-unwind" fn shutdown(node: *mut pg_sys::CustomScanState) {
    // SAFETY: a node of ours; what is shared is still there.
    unsafe {
        let ours = node::state::<ScanState>(node);
        let Some(shared) = ours.shared.take() else {
            return;
        };
        if pg_sys::ParallelWorkerNumber >= 0 {
            shared.as_ref().report(&ours.counters, ours.passed);
            (ours.counters, ours.passed) = Default::default();
        } else {
            let (counters, passed) = shared.as_ref().collect();
            ours.of_workers = ours.of_workers.plus(&counters);
            ours.passed += passed;
        }
    }
}
