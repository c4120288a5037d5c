//! `LanesTimeJoin`: the rows of a lanes table with what a join by time gives them, a slot a row.

use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::number::{Number, NumberType};
use lanes_columnar::vector::predicate::Predicate;
use lanes_columnar::vector::selection::Selection;
use lanes_columnar::vector::value::{Operand, Value};
use lanes_columnar::vector::{Evaluation, narrow};
use lanes_columnar::with_number;
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::join_stage::JoinStage;
use super::plan::EnginePlan;
use super::prune::Prune;
use super::state::Static;
use super::translate::{Scalars, Translation, Translator, to_datum};
use super::vector_source::{Counters, VectorSource};
use super::{explain, plan, privilege, state};
use crate::error;
use crate::pg::{nodes, ports};

static METHODS: Static<pg_sys::CustomExecMethods> = Static(pg_sys::CustomExecMethods {
    CustomName: plan::TIME_JOIN_NAME.as_ptr(),
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
    ExplainCustomScan: Some(explain_join),
});

/// A join under execution.
#[derive(Default)]
struct JoinState {
    running: Option<Running>,
    counters: Counters,
    joined: Option<(Counters, &'static str)>,
    passed: u64,
    bytes: usize,
}

/// A column of the result.
enum Output {
    /// The table's attribute.
    Attribute(usize),
    /// What the join gives, by its place.
    Given(NumberType, usize),
    /// What is computed of that, and its values for the vector under way.
    Computed(Value, Operand),
}

/// What exists from the first row on.
struct Running {
    source: VectorSource,
    translator: Translator,
    quals: Vec<Predicate>,
    prunes: Vec<Prune>,
    join: JoinStage,
    quals_above: Vec<Predicate>,
    outputs: Vec<Output>,
    selection: Selection,
    next: usize,
    /// A row of the table, for the attributes that are asked for.
    values: Vec<pg_sys::Datum>,
    nulls: Vec<bool>,
}

#[pg_guard]
pub unsafe extern "C-unwind" fn create(_scan: *mut pg_sys::CustomScan) -> *mut pg_sys::Node {
    // SAFETY: static methods.
    unsafe { state::make::<JoinState>(&raw const METHODS.0) }
}

#[pg_guard]
unsafe extern "C-unwind" fn begin(
    node: *mut pg_sys::CustomScanState,
    _estate: *mut pg_sys::EState,
    _flags: i32,
) {
    // SAFETY: a node of ours, freshly initialised by PostgreSQL.
    unsafe {
        let plan = EnginePlan::of((*node).ss.ps.plan.cast());
        privilege::check_execute(plan.expressions().into_iter());
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn execute(
    node: *mut pg_sys::CustomScanState,
) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: a node of ours, in execution.
    unsafe {
        let ours = state::of::<JoinState>(node);
        let slot = (*node).ss.ss_ScanTupleSlot;
        ports::ExecClearTuple(slot);
        if ours.running.is_none() {
            let running = Running::begin(node);
            ours.running = Some(running.unwrap_or_else(|reason| error::unplanned(&reason)));
        }
        let Some(running) = &mut ours.running else {
            return std::ptr::null_mut();
        };
        let next = running.next_row(&mut ours.passed);
        match next {
            Err(failure) => error::evaluation(failure),
            Ok(None) => {
                ours.finish();
                let result = (*node).ss.ps.ps_ResultTupleSlot;
                if !result.is_null() {
                    ports::ExecClearTuple(result);
                }
                std::ptr::null_mut()
            }
            Ok(Some(row)) => {
                running.fill(row, slot);
                pg_sys::ExecStoreVirtualTuple(slot);
                let context = (*node).ss.ps.ps_ExprContext;
                pg_sys::MemoryContextReset((*context).ecxt_per_tuple_memory);
                (*context).ecxt_scantuple = slot;
                nodes::exec_project((*node).ss.ps.ps_ProjInfo, slot)
            }
        }
    }
}

impl JoinState {
    /// Notes what was done, for EXPLAIN.
    fn finish(&mut self) {
        if let Some(running) = &mut self.running {
            self.counters = running.source.counters;
            self.bytes = running.join.bytes();
            self.joined = Some((running.join.end(), running.join.algorithm()));
        }
    }
}

impl Running {
    /// Parameters have their values now.
    unsafe fn begin(node: *mut pg_sys::CustomScanState) -> Translation<Running> {
        // SAFETY: a node of ours, in execution; the table was locked when the plan was made ready.
        unsafe {
            let estate = (*node).ss.ps.state;
            let plan = EnginePlan::of((*node).ss.ps.plan.cast());
            let table = pg_sys::ExecGetRangeTableRelation(estate, plan.index);
            let Some(join) = &plan.join else {
                return Err("no join".into());
            };
            // What translation leaves behind has to live as long as the scan.
            let before = pg_sys::MemoryContextSwitchTo((*estate).es_query_cxt);
            let state = &raw mut (*node).ss.ps;
            let mut translator = Translator::of_join(Scalars::Evaluated(state), plan.index, join);
            let (mut quals, mut prunes) = (Vec::new(), Vec::new());
            for qual in &plan.quals {
                let predicate = translator.predicate(*qual)?;
                Prune::of(&predicate, &mut prunes);
                quals.push(predicate);
            }
            let mut outputs = Vec::new();
            for column in &plan.keys {
                outputs.push(if translator.is_given(*column) {
                    match translator.value(*column)? {
                        Value::Given(number, place) => Output::Given(number, place),
                        value => Output::Computed(value, Operand::Null),
                    }
                } else {
                    Output::Attribute(translator.attribute(*column)?)
                });
            }
            let mut quals_above = Vec::new();
            for qual in &plan.quals_above {
                quals_above.push(translator.predicate(*qual)?);
            }
            let join = JoinStage::begin(join, state, &mut translator)?;
            pg_sys::MemoryContextSwitchTo(before);
            let attributes = (*(*table).rd_att).natts as usize;
            Ok(Running {
                source: VectorSource::begin(table, (*estate).es_snapshot, Vec::new()),
                translator,
                quals,
                prunes,
                join,
                quals_above,
                outputs,
                selection: Selection::NONE,
                next: 0,
                values: vec![pg_sys::Datum::null(); attributes],
                nulls: vec![true; attributes],
            })
        }
    }

    /// The next row of the join, relative to the source's vector.
    fn next_row(&mut self, passed: &mut u64) -> Evaluation<Option<usize>> {
        loop {
            if let Some(row) = self.selection.next(self.next) {
                self.next = row + 1;
                return Ok(Some(row));
            }
            let scalars = &self.translator.scalars;
            let Some(mut selection) = self.source.next(&self.prunes, scalars) else {
                return Ok(None);
            };
            let frame = self.source.frame(scalars);
            narrow(&mut self.quals, &frame, &mut selection)?;
            if !selection.is_empty() {
                self.join.find(&frame, &mut selection)?;
                let given = self.join.operands();
                let frame = Frame { given, ..frame };
                // The sub-select computes its columns before anybody asks about them.
                for output in &mut self.outputs {
                    if let Output::Computed(value, operand) = output {
                        *operand = value.evaluate(&frame, &selection)?;
                    }
                }
                narrow(&mut self.quals_above, &frame, &mut selection)?;
            }
            *passed += selection.count() as u64;
            (self.selection, self.next) = (selection, 0);
        }
    }

    /// Writes a row; what the node never returns is NULL.
    ///
    /// # Safety
    /// The slot has an attribute for each output; the row is one of the vector under way.
    unsafe fn fill(&mut self, row: usize, slot: *mut pg_sys::TupleTableSlot) {
        // SAFETY: the caller's promise; the lanes are alive until the next vector is asked for.
        unsafe {
            let count = (*(*slot).tts_tupleDescriptor).natts as usize;
            let (outlet, place) = (self.source.outlet(), self.source.place(row));
            let (values, nulls) = ((*slot).tts_values, (*slot).tts_isnull);
            std::slice::from_raw_parts_mut(nulls, count).fill(true);
            for (index, output) in self.outputs.iter().enumerate() {
                let (number, operand) = match output {
                    Output::Attribute(attribute) => {
                        let (own, own_nulls) = (self.values.as_mut_ptr(), self.nulls.as_mut_ptr());
                        (*outlet).read(place, *attribute, attribute + 1, own, own_nulls);
                        *values.add(index) = self.values[*attribute];
                        *nulls.add(index) = self.nulls[*attribute];
                        continue;
                    }
                    Output::Given(number, given) => (*number, self.join.operands()[*given]),
                    Output::Computed(value, operand) => (value.number(), *operand),
                };
                if operand.is_valid(row) {
                    *nulls.add(index) = false;
                    *values.add(index) = with_number!(number, T => {
                        to_datum(number, operand.get::<T>(row).to_scalar())
                    });
                }
            }
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
    // SAFETY: a node of ours; the slots let go of the lanes before they go.
    unsafe {
        let result = (*node).ss.ps.ps_ResultTupleSlot;
        if !result.is_null() {
            ports::ExecClearTuple(result);
        }
        ports::ExecClearTuple((*node).ss.ss_ScanTupleSlot);
        let ours = state::of::<JoinState>(node);
        ours.finish();
        if let Some(running) = ours.running.take() {
            running.source.end();
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn explain_join(
    node: *mut pg_sys::CustomScanState,
    ancestors: *mut pg_sys::List,
    output: *mut pg_sys::ExplainState,
) {
    // SAFETY: a node of ours, and EXPLAIN's live structures.
    unsafe {
        let plan = EnginePlan::of((*node).ss.ps.plan.cast());
        explain::table(plan.index, output);
        if let Some(join) = &plan.join {
            explain::text(c"Time Join", &join.describe(), output);
        }
        explain::expressions(c"Vector Quals", node, &plan.quals, ancestors, output);
        explain::expressions(c"Join Filter", node, &plan.quals_above, ancestors, output);
        explain::reasons(plan.reasons, output);
        let ours = state::of::<JoinState>(node);
        if (*output).analyze {
            ours.finish();
            explain::counters(&ours.counters, output);
            explain::joined(&ours.joined, output);
            explain::integer(c"Vector Rows Passed", ours.passed, output);
            explain::kilobytes(c"Memory", ours.bytes, output);
        }
    }
}
