//! `LanesLatest` under execution: one pass that finds the first row of each group, then a slot a row.

use lanes_columnar::aggregate::Aggregation;
use lanes_columnar::order::BestOfGroup;
use lanes_columnar::vector::predicate::Predicate;
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::kept_rows::KeptRows;
use super::prune::Prune;
use super::row_plan::RowPlan;
use super::state::Static;
use super::translate::{Scalars, Translator};
use super::vector_source::{Counters, VectorSource};
use super::{
    aggregate_call, explain, latest_plan, privilege, scan_state, sort_key, state, top_n_state,
};
use crate::error;
use crate::pg::{nodes, ports};
use crate::table_am::insert_buffer;

static METHODS: Static<pg_sys::CustomExecMethods> = Static(pg_sys::CustomExecMethods {
    CustomName: latest_plan::NAME.as_ptr(),
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
    ExplainCustomScan: Some(explain_latest),
});

/// Rows that are copied out of their lanes at a time.
const ROWS_FETCHED: usize = 4_096;

/// A node under execution.
#[derive(Default)]
struct LatestState {
    /// Attributes that the plan asks for, ascending.
    attributes: Vec<usize>,
    /// Quals that are not vectorised.
    kept: *mut pg_sys::ExprState,
    found: Option<Found>,
    counters: Counters,
    passed: u64,
    bytes: usize,
}

/// The groups' rows.
struct Found {
    source: VectorSource,
    /// Their numbers, ascending, and how many of them were fetched.
    numbers: Vec<u64>,
    fetched: usize,
    rows: KeptRows,
}

#[pg_guard]
pub unsafe extern "C-unwind" fn create(_scan: *mut pg_sys::CustomScan) -> *mut pg_sys::Node {
    // SAFETY: static methods.
    unsafe { state::make::<LatestState>(&raw const METHODS.0) }
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
        privilege::check_execute(std::iter::once((*scan).custom_exprs.cast()));
        let ours = state::of::<LatestState>(node);
        // If this runs in a worker, that cannot see what is still gathered in this process.
        insert_buffer::flush_table((*(*node).ss.ss_currentRelation).rd_id);
        let descriptor = (*(*node).ss.ss_currentRelation).rd_att;
        ours.attributes = scan_state::attributes(scan, plan.kept, descriptor);
        ours.kept = pg_sys::ExecInitQual(plan.kept, node.cast());
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn execute(
    node: *mut pg_sys::CustomScanState,
) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: a node of ours.
    unsafe {
        let (slot, context) = ((*node).ss.ss_ScanTupleSlot, (*node).ss.ps.ps_ExprContext);
        ports::CHECK_FOR_INTERRUPTS();
        pg_sys::MemoryContextReset((*context).ecxt_per_tuple_memory);
        ports::ExecClearTuple(slot);
        if !next(node, slot) {
            let result = (*node).ss.ps.ps_ResultTupleSlot;
            if !result.is_null() {
                ports::ExecClearTuple(result);
            }
            return std::ptr::null_mut();
        }
        (*context).ecxt_scantuple = slot;
        nodes::exec_project((*node).ss.ps.ps_ProjInfo, slot)
    }
}

/// Stores the next row; false at the end.
unsafe fn next(node: *mut pg_sys::CustomScanState, slot: *mut pg_sys::TupleTableSlot) -> bool {
    // SAFETY: a node of ours, with its scan slot, which is empty.
    unsafe {
        let ours = state::of::<LatestState>(node);
        if ours.found.is_none() {
            ours.found = Some(find(node, ours));
        }
        let Some(found) = &mut ours.found else {
            return false;
        };
        loop {
            if found.rows.store_next(slot) {
                return true;
            }
            if found.fetched == found.numbers.len() {
                return false;
            }
            let to = (found.fetched + ROWS_FETCHED).min(found.numbers.len());
            let numbers = found.numbers[found.fetched..to].to_vec();
            found.rows.fetch(&mut found.source, numbers);
            found.fetched = to;
        }
    }
}

/// Reads the table.
unsafe fn find(node: *mut pg_sys::CustomScanState, ours: &mut LatestState) -> Found {
    // SAFETY: a node of ours, in execution; parameters have their values now.
    unsafe {
        let estate = (*node).ss.ps.state;
        let relation = (*node).ss.ss_currentRelation;
        // What translation leaves behind has to live as long as the scan.
        let before = pg_sys::MemoryContextSwitchTo((*estate).es_query_cxt);
        let plan = RowPlan::of((*node).ss.ps.plan.cast());
        let mut translator = Translator::new(Scalars::Evaluated(&raw mut (*node).ss.ps));
        let (mut quals, mut prunes) = (Vec::<Predicate>::new(), Vec::new());
        for qual in nodes::list::<pg_sys::Node>(plan.pushed) {
            let predicate = translator
                .predicate(qual)
                .unwrap_or_else(|reason| error::unplanned(&reason));
            Prune::of(&predicate, &mut prunes);
            quals.push(predicate);
        }
        let group = |translator: &mut Translator, node: &*mut pg_sys::Node| {
            let key = aggregate_call::key(translator, *node);
            key.unwrap_or_else(|reason| error::unplanned(&reason)).0
        };
        let groups = plan.groups.iter().map(|node| group(&mut translator, node));
        let mut groups = Aggregation::new(groups.collect(), Vec::new());
        let mut best = BestOfGroup::new(sort_key::keys(&mut translator, &plan.keys));
        pg_sys::MemoryContextSwitchTo(before);

        let mut source = VectorSource::begin(relation, (*estate).es_snapshot, Vec::new());
        source.rewind(best.is_backward());
        let (scalars, kept) = (&translator.scalars, ours.kept);
        let attributes = &ours.attributes;
        while let Some(mut selection) = source.next(&prunes, scalars) {
            let frame = source.frame(scalars);
            for qual in &mut quals {
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
            ours.passed += selection.count() as u64;
            let (outlet, place) = (source.outlet(), source.place(0));
            let accept = |row: usize| {
                kept.is_null() || top_n_state::accepts(node, attributes, kept, outlet, place + row)
            };
            let first_row = source.row_number(place);
            let offered = groups
                .grouping(&frame, &selection)
                .and_then(|(grouping, count)| {
                    best.offer(&frame, first_row, &selection, &grouping, count, accept)
                });
            if let Err(failure) = offered {
                error::evaluation(failure);
            }
        }
        let numbers = best.rows();
        ours.counters = source.counters;
        ours.bytes = groups.bytes() + best.bytes() + numbers.capacity() * size_of::<u64>();
        Found {
            source,
            numbers,
            fetched: 0,
            rows: KeptRows::new(relation, attributes, (*estate).es_query_cxt),
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
        if let Some(found) = state::of::<LatestState>(node).found.take() {
            found.source.end();
            found.rows.free();
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn explain_latest(
    node: *mut pg_sys::CustomScanState,
    ancestors: *mut pg_sys::List,
    output: *mut pg_sys::ExplainState,
) {
    // SAFETY: a node of ours, and EXPLAIN's live structures.
    unsafe {
        let plan = RowPlan::of((*node).ss.ps.plan.cast());
        let ours = state::of::<LatestState>(node);
        explain::expressions(c"Group Key", node, &plan.groups, ancestors, output);
        explain::order(&plan.keys, node, ancestors, output);
        explain::quals(node, plan.pushed, ancestors, output);
        explain::filter(node, plan.kept, ancestors, output);
        explain::reasons(plan.reasons, output);
        if (*output).analyze {
            explain::counters(&ours.counters, output);
            explain::integer(c"Vector Rows Passed", ours.passed, output);
            explain::kilobytes(c"Memory", ours.bytes, output);
        }
    }
}
