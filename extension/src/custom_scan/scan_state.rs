//! `LanesScan`: rows of a table that pass the pushed quals, a slot a row.
//!
//! A slot gets only the attributes that the plan's target list and remaining quals ask for, straight from the lanes.

use std::ptr::NonNull;

use lanes_columnar::vector::predicate::Predicate;
use lanes_columnar::vector::selection::Selection;
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::prune::Prune;
use super::shared_scan::SharedScan;
use super::state::Static;
use super::translate::{Scalars, Translator};
use super::vector_source::{Counters, VectorSource};
use super::{explain, plan, state};
use crate::error;
use crate::pg::{nodes, ports};
use crate::table_am::insert_buffer;

static METHODS: Static<pg_sys::CustomExecMethods> = Static(pg_sys::CustomExecMethods {
    CustomName: plan::SCAN_NAME.as_ptr(),
    BeginCustomScan: Some(begin),
    ExecCustomScan: Some(execute),
    EndCustomScan: Some(end),
    ReScanCustomScan: Some(rescan),
    MarkPosCustomScan: None,
    RestrPosCustomScan: None,
    EstimateDSMCustomScan: Some(estimate_shared),
    InitializeDSMCustomScan: Some(initialize_shared),
    ReInitializeDSMCustomScan: Some(reinitialize_shared),
    InitializeWorkerCustomScan: Some(initialize_worker),
    ShutdownCustomScan: Some(shutdown),
    ExplainCustomScan: Some(explain_scan),
});

/// A scan under execution.
#[derive(Default)]
struct ScanState {
    /// Attributes that the plan asks for, ascending.
    attributes: Vec<usize>,
    /// The pushed quals, for rows that come from elsewhere (`EvalPlanQual`).
    recheck: *mut pg_sys::ExprState,
    running: Option<Running>,
    counters: Counters,
    passed: u64,
    /// Of a parallel scan: what the participants share, and what was heard from workers.
    shared: Option<NonNull<SharedScan>>,
    of_workers: Counters,
}

/// What exists from the first row on.
struct Running {
    source: VectorSource,
    translator: Translator,
    quals: Vec<Predicate>,
    prunes: Vec<Prune>,
    selection: Selection,
    next: usize,
}

#[pg_guard]
pub unsafe extern "C-unwind" fn create(_scan: *mut pg_sys::CustomScan) -> *mut pg_sys::Node {
    // SAFETY: static methods.
    unsafe { state::make::<ScanState>(&raw const METHODS.0) }
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
        let ours = state::of::<ScanState>(node);
        // If this runs in workers, those cannot see what is still gathered in this process.
        insert_buffer::flush_table((*(*node).ss.ss_currentRelation).rd_id);
        let descriptor = (*(*node).ss.ss_currentRelation).rd_att;
        ours.attributes = attributes(scan, std::ptr::null_mut(), descriptor);
        ours.recheck = pg_sys::ExecInitQual((*scan).custom_exprs, node.cast());
    }
}

/// The attributes that a plan's own expressions ask for, and some quals.
///
/// # Safety
/// A live plan of a scan of a table with this descriptor.
pub unsafe fn attributes(
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
unsafe extern "C-unwind" fn execute(
    node: *mut pg_sys::CustomScanState,
) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: a node of ours.
    unsafe { pg_sys::ExecScan(&raw mut (*node).ss, Some(next), Some(recheck)) }
}

/// The next row that passes the pushed quals; null at the end.
#[pg_guard]
unsafe extern "C-unwind" fn next(node: *mut pg_sys::ScanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: `execute` hands over a node of ours; slot and lanes are alive, and the slot has room for all attributes.
    unsafe {
        let slot = (*node).ss_ScanTupleSlot;
        let custom = node.cast::<pg_sys::CustomScanState>();
        let ours = state::of::<ScanState>(custom);
        ports::ExecClearTuple(slot);
        if ours.running.is_none() {
            let mut running = Running::begin(custom);
            if let Some(shared) = ours.shared {
                running
                    .source
                    .share(&raw const (*shared.as_ptr()).taken);
            }
            ours.running = Some(running);
        }
        let Some(running) = &mut ours.running else {
            return std::ptr::null_mut();
        };
        let Some(row) = running.next_row(&mut ours.passed) else {
            ours.counters = running.source.counters;
            return std::ptr::null_mut();
        };
        ours.counters = running.source.counters;
        let (outlet, place) = (running.source.outlet(), running.source.place(row));
        let (values, nulls) = ((*slot).tts_values, (*slot).tts_isnull);
        for &attribute in &ours.attributes {
            (*outlet).read(place, attribute, attribute + 1, values, nulls);
        }
        (*slot).tts_tid = running.source.tid(row);
        (*slot).tts_tableOid = (*(*node).ss_currentRelation).rd_id;
        pg_sys::ExecStoreVirtualTuple(slot)
    }
}

impl Running {
    /// Parameters have their values now.
    unsafe fn begin(node: *mut pg_sys::CustomScanState) -> Running {
        // SAFETY: a node of ours, in execution.
        unsafe {
            let scan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
            let mut translator = Translator::new(Scalars::Evaluated(&raw mut (*node).ss.ps));
            let (mut quals, mut prunes) = (Vec::new(), Vec::new());
            // What translation leaves behind has to live as long as the scan.
            let context = (*(*node).ss.ps.state).es_query_cxt;
            let before = pg_sys::MemoryContextSwitchTo(context);
            for qual in nodes::list::<pg_sys::Node>((*scan).custom_exprs) {
                let predicate = translator
                    .predicate(qual)
                    .unwrap_or_else(|reason| error::unplanned(&reason));
                Prune::of(&predicate, &mut prunes);
                quals.push(predicate);
            }
            pg_sys::MemoryContextSwitchTo(before);
            let snapshot = (*(*node).ss.ps.state).es_snapshot;
            Running {
                source: VectorSource::begin((*node).ss.ss_currentRelation, snapshot, Vec::new()),
                translator,
                quals,
                prunes,
                selection: Selection::NONE,
                next: 0,
            }
        }
    }

    /// The next row that passes; its place is relative to the source's vector.
    fn next_row(&mut self, passed: &mut u64) -> Option<usize> {
        loop {
            if let Some(row) = self.selection.next(self.next) {
                self.next = row + 1;
                return Some(row);
            }
            let scalars = &self.translator.scalars;
            let mut selection = self.source.next(&self.prunes, scalars)?;
            let frame = self.source.frame(scalars);
            for qual in &mut self.quals {
                if selection.is_empty() {
                    break;
                }
                match qual.evaluate(&frame, &selection) {
                    Ok(truth) => selection = truth.yes,
                    Err(failure) => error::evaluation(failure),
                }
            }
            *passed += selection.count() as u64;
            (self.selection, self.next) = (selection, 0);
        }
    }
}

/// Whether a row that came from elsewhere passes the pushed quals.
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
        let ours = state::of::<ScanState>(node.cast());
        nodes::exec_qual(ours.recheck, context)
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn rescan(node: *mut pg_sys::CustomScanState) {
    // SAFETY: a node of ours; the slot must let go of the lanes before they go.
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
        state::of::<ScanState>(node).shared = NonNull::new(memory.cast());
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
    unsafe { state::of::<ScanState>(node).shared = NonNull::new(memory.cast()) }
}

/// The last moment at which what is shared can be used: workers tell what they did, the leader hears it.
#[pg_guard]
unsafe extern "C-unwind" fn shutdown(node: *mut pg_sys::CustomScanState) {
    // SAFETY: a node of ours; what is shared is still there.
    unsafe {
        let ours = state::of::<ScanState>(node);
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

unsafe fn stop(node: *mut pg_sys::CustomScanState) {
    // SAFETY: a node of ours; the slot lets go of the lanes before they go.
    unsafe {
        ports::ExecClearTuple((*node).ss.ss_ScanTupleSlot);
        if let Some(running) = state::of::<ScanState>(node).running.take() {
            running.source.end();
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn explain_scan(
    node: *mut pg_sys::CustomScanState,
    ancestors: *mut pg_sys::List,
    output: *mut pg_sys::ExplainState,
) {
    // SAFETY: a node of ours, and EXPLAIN's live structures.
    unsafe {
        let scan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
        let ours = state::of::<ScanState>(node);
        explain::quals(node, (*scan).custom_exprs, ancestors, output);
        explain::reasons((*scan).custom_private, output);
        if (*output).analyze {
            explain::counters(&ours.counters.plus(&ours.of_workers), output);
            explain::integer(c"Vector Rows Passed", ours.passed, output);
        }
    }
}
