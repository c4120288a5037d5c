//! `LanesAggregate`: a table aggregated in one pass, then a slot a group.

use lanes_columnar::aggregate::Aggregation;
use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::predicate::Predicate;
use lanes_columnar::vector::selection::Selection;
use lanes_columnar::vector::value::Operand;
use lanes_columnar::vector::{Evaluation, EvaluationError, narrow};
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::aggregate_call::{self, KeyShape, Shape};
use super::answers;
use super::join_stage::JoinStage;
use super::own_aggregate::Arrival;
use super::plan::EnginePlan;
use super::prune::Prune;
use super::state::Static;
use super::translate::{Scalars, Translation, Translator};
use super::vector_source::{Counters, VectorSource};
use super::{explain, plan, privilege, state};
use crate::error;
use crate::pg::{nodes, ports};
use crate::table_am::insert_buffer;

static METHODS: Static<pg_sys::CustomExecMethods> = Static(pg_sys::CustomExecMethods {
    CustomName: plan::AGGREGATE_NAME.as_ptr(),
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
    ExplainCustomScan: Some(explain_aggregate),
});

/// An aggregation under execution.
#[derive(Default)]
struct AggregateState {
    results: Option<Results>,
    counters: Counters,
    /// Of a join: what reading its right side took, and how its rows were found.
    join: Option<(Counters, &'static str)>,
    passed: u64,
    /// Vectors whose zones told all.
    vectors_told: u64,
    groups: usize,
    bytes: usize,
    /// Whether rows did not come in the order that an aggregate asks for.
    out_of_order: bool,
}

/// The finished groups.
struct Results {
    aggregation: Aggregation,
    keys: Vec<KeyShape>,
    shapes: Vec<Shape>,
    next: usize,
}

#[pg_guard]
pub unsafe extern "C-unwind" fn create(_scan: *mut pg_sys::CustomScan) -> *mut pg_sys::Node {
    // SAFETY: static methods.
    unsafe { state::make::<AggregateState>(&raw const METHODS.0) }
}

#[pg_guard]
unsafe extern "C-unwind" fn begin(
    node: *mut pg_sys::CustomScanState,
    estate: *mut pg_sys::EState,
    _flags: i32,
) {
    // SAFETY: a node of ours, freshly initialised by PostgreSQL.
    unsafe {
        let plan = EnginePlan::of((*node).ss.ps.plan.cast());
        privilege::check_execute(plan.expressions().into_iter());
        let entry: *mut pg_sys::RangeTblEntry =
            ports::list_nth((*estate).es_range_table, plan.index as i32 - 1);
        // If this runs in a worker, that cannot see what is still gathered in this process.
        insert_buffer::flush_table((*entry).relid);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn execute(
    node: *mut pg_sys::CustomScanState,
) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: a node of ours, in execution.
    unsafe {
        let ours = state::of::<AggregateState>(node);
        if ours.results.is_none() {
            ours.results = Some(aggregate(node, ours));
        }
        let Some(results) = &mut ours.results else {
            return std::ptr::null_mut();
        };
        let slot = (*node).ss.ss_ScanTupleSlot;
        let context = (*node).ss.ps.ps_ExprContext;
        while results.next < results.aggregation.groups() {
            ports::CHECK_FOR_INTERRUPTS();
            pg_sys::MemoryContextReset((*context).ecxt_per_tuple_memory);
            ports::ExecClearTuple(slot);
            let before = pg_sys::MemoryContextSwitchTo((*context).ecxt_per_tuple_memory);
            results.fill(results.next, slot);
            pg_sys::MemoryContextSwitchTo(before);
            results.next += 1;
            pg_sys::ExecStoreVirtualTuple(slot);
            (*context).ecxt_scantuple = slot;
            if nodes::exec_qual((*node).ss.ps.qual, context) {
                return nodes::exec_project((*node).ss.ps.ps_ProjInfo, slot);
            }
        }
        ports::ExecClearTuple(slot);
        let result = (*node).ss.ps.ps_ResultTupleSlot;
        if !result.is_null() {
            ports::ExecClearTuple(result);
        }
        std::ptr::null_mut()
    }
}

impl Results {
    /// Writes a group's keys and answers; what the node never returns is NULL.
    unsafe fn fill(&self, group: usize, slot: *mut pg_sys::TupleTableSlot) {
        // SAFETY: the slot has an attribute for each entry of the plan's list.
        unsafe {
            let attributes = (*(*slot).tts_tupleDescriptor).natts as usize;
            let keys =
                self.keys.iter().enumerate().map(|(key, shape)| {
                    answers::key_datum(self.aggregation.key(group, key), *shape)
                });
            let shapes = self.shapes.iter().enumerate().map(|(aggregate, shape)| {
                answers::datum(self.aggregation.answer(group, aggregate), *shape)
            });
            let nothing = std::iter::repeat(None);
            for (index, value) in keys
                .chain(shapes)
                .chain(nothing)
                .take(attributes)
                .enumerate()
            {
                *(*slot).tts_isnull.add(index) = value.is_none();
                *(*slot).tts_values.add(index) = value.unwrap_or(pg_sys::Datum::null());
            }
        }
    }
}

/// All of a query as the engine's.
struct Program {
    translator: Translator,
    quals: Vec<Predicate>,
    prunes: Vec<Prune>,
    /// The join by time, if there is one, and the quals above it.
    join: Option<JoinStage>,
    quals_above: Vec<Predicate>,
    aggregation: Aggregation,
    keys: Vec<KeyShape>,
    shapes: Vec<Shape>,
    zones_wanted: Vec<usize>,
}

impl Program {
    unsafe fn of(
        plan: &EnginePlan,
        node: *mut pg_sys::CustomScanState,
        arrival: Arrival,
    ) -> Translation<Program> {
        // SAFETY: the caller has a node under execution.
        let plan_state = unsafe { &raw mut (*node).ss.ps };
        let scalars = Scalars::Evaluated(plan_state);
        let mut translator = match &plan.join {
            None => Translator::new(scalars),
            Some(join) => Translator::of_join(scalars, plan.index, join),
        };
        let mut quals_above = Vec::new();
        let mut join = None;
        let (mut quals, mut prunes) = (Vec::new(), Vec::new());
        let (mut keys, mut key_shapes) = (Vec::new(), Vec::new());
        let (mut aggregates, mut shapes) = (Vec::new(), Vec::new());
        let mut zones_wanted = Vec::new();
        // SAFETY: the plan's live expressions.
        unsafe {
            for qual in &plan.quals {
                let predicate = translator.predicate(*qual)?;
                Prune::of(&predicate, &mut prunes);
                quals.push(predicate);
            }
            for node in &plan.keys {
                let (key, shape) = aggregate_call::key(&mut translator, *node)?;
                if let lanes_columnar::aggregate::Key::Bucket(value, _) = &key {
                    zones_wanted.extend(value.column());
                }
                keys.push(key);
                key_shapes.push(shape);
            }
            for call in &plan.calls {
                let (aggregate, shape) =
                    aggregate_call::aggregate(&mut translator, *call, arrival)?;
                zones_wanted.extend(aggregate.zone_wanted());
                aggregates.push(aggregate);
                shapes.push(shape);
            }
            for qual in &plan.quals_above {
                quals_above.push(translator.predicate(*qual)?);
            }
            if let Some(plan) = &plan.join {
                join = Some(JoinStage::begin(plan, plan_state, &mut translator)?);
            }
        }
        Ok(Program {
            translator,
            quals,
            prunes,
            join,
            quals_above,
            aggregation: Aggregation::new(keys, aggregates),
            keys: key_shapes,
            shapes,
            zones_wanted,
        })
    }
}

impl Program {
    /// Takes in the visible rows of a vector, so many; gives how many of them counted.
    fn add(&mut self, frame: &Frame<'_>, visible: &Selection, rows: usize) -> Evaluation<usize> {
        if self.quals.is_empty() && self.join.is_none() && self.quals_above.is_empty() {
            self.aggregation.add_counted(frame, visible, rows)?;
            return Ok(rows);
        }
        let mut selection = *visible;
        narrow(&mut self.quals, frame, &mut selection)?;
        let mut given: &[Operand] = &[];
        if let Some(join) = &mut self.join
            && !selection.is_empty()
        {
            join.find(frame, &mut selection)?;
            given = join.operands();
        }
        let frame = Frame { given, ..*frame };
        narrow(&mut self.quals_above, &frame, &mut selection)?;
        let passed = selection.count();
        self.aggregation.add_counted(&frame, &selection, passed)?;
        Ok(passed)
    }
}

/// Reads the table; a second time if rows do not come in the order that an aggregate asks for.
unsafe fn aggregate(node: *mut pg_sys::CustomScanState, ours: &mut AggregateState) -> Results {
    // SAFETY: the caller's promise.
    unsafe {
        ours.out_of_order = false;
        if let Some(results) = read(node, ours, Arrival::InOrder) {
            return results;
        }
        ours.out_of_order = true;
        read(node, ours, Arrival::Any)
            .unwrap_or_else(|| error::unplanned("sorted rows are out of order"))
    }
}

/// Reads the table; `None` if rows came out of order.
unsafe fn read(
    node: *mut pg_sys::CustomScanState,
    ours: &mut AggregateState,
    arrival: Arrival,
) -> Option<Results> {
    // SAFETY: a node of ours, in execution; the table was locked when the plan was made ready.
    unsafe {
        let estate = (*node).ss.ps.state;
        let scan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
        let plan = EnginePlan::of(scan);
        let table = pg_sys::ExecGetRangeTableRelation(estate, plan.index);
        // What translation leaves behind has to live as long as the scan.
        let before = pg_sys::MemoryContextSwitchTo((*estate).es_query_cxt);
        let program = Program::of(&plan, node, arrival);
        pg_sys::MemoryContextSwitchTo(before);
        let mut program = program.unwrap_or_else(|reason| error::unplanned(&reason));
        let mut zones_wanted = std::mem::take(&mut program.zones_wanted);
        zones_wanted.sort_unstable();
        zones_wanted.dedup();
        let mut source = VectorSource::begin(table, (*estate).es_snapshot, zones_wanted);
        let scalars = std::mem::take(&mut program.translator.scalars);
        ours.passed = 0;
        while source.advance(&program.prunes, &scalars) {
            let (visible, rows) = source.visible();
            match program.add(&source.frame(&scalars), visible, rows) {
                Ok(passed) => ours.passed += passed as u64,
                Err(EvaluationError::Disordered) => {
                    if let Some(join) = &mut program.join {
                        join.end();
                    }
                    source.end();
                    return None;
                }
                Err(failure) => error::evaluation(failure),
            }
        }
        program.aggregation.finish();
        if let Some(join) = &mut program.join {
            ours.join = Some((join.end(), join.algorithm()));
        }
        ours.counters = source.counters;
        source.end();
        ours.vectors_told = program.aggregation.vectors_told();
        ours.groups = program.aggregation.groups();
        ours.bytes = program.aggregation.bytes();
        ours.bytes += program.join.as_ref().map_or(0, JoinStage::bytes);
        Some(Results {
            aggregation: program.aggregation,
            keys: program.keys,
            shapes: program.shapes,
            next: 0,
        })
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn rescan(node: *mut pg_sys::CustomScanState) {
    // SAFETY: a node of ours; the slots must let go of the groups' texts before they go.
    unsafe {
        let result = (*node).ss.ps.ps_ResultTupleSlot;
        if !result.is_null() {
            ports::ExecClearTuple(result);
        }
        ports::ExecClearTuple((*node).ss.ss_ScanTupleSlot);
        let ours = state::of::<AggregateState>(node);
        if (*node).ss.ps.chgParam.is_null() {
            // The same parameters, the same snapshot: the same groups.
            if let Some(results) = &mut ours.results {
                results.next = 0;
            }
        } else {
            ours.results = None;
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn end(node: *mut pg_sys::CustomScanState) {
    // SAFETY: a node of ours.
    unsafe {
        ports::ExecClearTuple((*node).ss.ss_ScanTupleSlot);
        state::of::<AggregateState>(node).results = None;
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn explain_aggregate(
    node: *mut pg_sys::CustomScanState,
    ancestors: *mut pg_sys::List,
    output: *mut pg_sys::ExplainState,
) {
    // SAFETY: a node of ours, and EXPLAIN's live structures.
    unsafe {
        let scan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
        let plan = EnginePlan::of(scan);
        explain::table(plan.index, output);
        explain::expressions(c"Group Key", node, &plan.keys, ancestors, output);
        if let Some(join) = &plan.join {
            explain::text(c"Time Join", &join.describe(), output);
        }
        explain::expressions(c"Vector Quals", node, &plan.quals, ancestors, output);
        explain::expressions(c"Join Filter", node, &plan.quals_above, ancestors, output);
        explain::reasons(plan.reasons, output);
        let ours = state::of::<AggregateState>(node);
        if (*output).analyze {
            explain::counters(&ours.counters, output);
            explain::joined(&ours.join, output);
            explain::integer(c"Vector Rows Passed", ours.passed, output);
            if ours.vectors_told > 0 {
                let label = c"Vectors Answered By Zone Maps";
                explain::integer(label, ours.vectors_told, output);
            }
            explain::integer(c"Groups", ours.groups as u64, output);
            explain::kilobytes(c"Memory", ours.bytes, output);
            if ours.out_of_order {
                explain::text(
                    c"Rows Sorted",
                    "read again, as they were out of order",
                    output,
                );
            }
        }
    }
}
