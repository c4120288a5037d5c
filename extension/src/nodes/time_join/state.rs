//! `LanesTimeJoin`: the rows of a lanes table with what a join by time gives them, a slot a row.
//!
//! Where the right side takes too much memory, PostgreSQL's own plan takes over ([`stand_in`]): for all rows, or where
//! rows have been returned, for those of the vector under way and after it. That plan reads the left side by a
//! `LanesScan`, which is told to begin there, so no row is returned twice.

use std::ffi::CStr;

use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::number::{Number, NumberType};
use lanes_columnar::vector::predicate::Predicate;
use lanes_columnar::vector::selection::Selection;
use lanes_columnar::vector::value::{Operand, Value};
use lanes_columnar::vector::{Evaluation, EvaluationError, narrow};
use lanes_columnar::with_number;
use pgrx::pg_sys;

use crate::custom_scan::names;
use crate::custom_scan::node::{Node, Planned, Routines};
use crate::custom_scan::{privilege, stand_in};
use crate::expressions::scalar;
use crate::expressions::translate::{Scalars, Translation, Translator, to_datum};
use crate::joins::by_time::stage::JoinStage;
use crate::nodes::engine::plan::{self, EnginePlan};
use crate::nodes::scan;
use crate::pg::explain::Explain;
use crate::vectors::prune::{Filter, predicates};
use crate::vectors::vector_source::{Counters, VectorSource};

static ROUTINES: Routines = Routines::of::<JoinState>();

/// A join under execution.
#[derive(Default)]
pub struct JoinState {
    counters: Counters,
    joined: Option<(Counters, &'static str)>,
    passed: u64,
    bytes: usize,
    /// Whether PostgreSQL's own plan has taken over.
    handed_over: bool,
}

/// A column of the result.
enum Output {
    /// The table's attribute.
    Attribute(usize),
    /// What the join gives, by its place.
    Joined(NumberType, usize),
    /// What is computed of that, and its values for the vector under way.
    Computed(Value, Operand),
}

/// What exists from the first row on.
pub struct Running {
    source: VectorSource,
    translator: Translator,
    filter: Filter,
    /// `None`: it takes too much memory.
    join: Option<JoinStage>,
    /// What gives the rows instead.
    stand_in: Option<*mut pg_sys::PlanState>,
    quals_above: Vec<Predicate>,
    outputs: Vec<Output>,
    selection: Selection,
    next: usize,
    /// A row of the table, for the attributes that are asked for.
    values: Vec<pg_sys::Datum>,
    nulls: Vec<bool>,
}

impl Node for JoinState {
    const NAME: &'static CStr = names::TIME_JOIN;
    const ROUTINES: &'static Routines = &ROUTINES;
    type Running = Running;

    fn stand_in(running: &Running) -> Option<*mut pg_sys::PlanState> {
        running.stand_in
    }

    unsafe fn plan(planned: &Planned) {
        // SAFETY: the planner's live structures. The clauses are among the path's own.
        unsafe { plan::plan_engine(planned) }
    }

    unsafe fn begin(&mut self, node: *mut pg_sys::CustomScanState) {
        // SAFETY: a node freshly initialised by PostgreSQL.
        unsafe {
            let plan = EnginePlan::of((*node).ss.ps.plan.cast());
            privilege::check_execute(plan.expressions().into_iter());
        }
    }

    unsafe fn start(&mut self, node: *mut pg_sys::CustomScanState) -> Translation<Running> {
        // SAFETY: a node in execution; the table was locked when the plan was made ready.
        unsafe {
            let estate = (*node).ss.ps.state;
            let plan = EnginePlan::of((*node).ss.ps.plan.cast());
            let table = pg_sys::ExecGetRangeTableRelation(estate, plan.index);
            let Some(join) = &plan.join else {
                return Err("no join".into());
            };
            let state = &raw mut (*node).ss.ps;
            scalar::reads(state, table);
            let mut translator =
                Translator::of_joined(Scalars::Evaluated(state), join.joined_columns(plan.index));
            let filter = Filter::of(&mut translator, plan.quals.iter().copied())?;
            let mut outputs = Vec::new();
            for column in &plan.keys {
                outputs.push(if translator.is_given(*column) {
                    match translator.value(*column)? {
                        Value::Joined(number, place) => Output::Joined(number, place),
                        value => Output::Computed(value, Operand::Null),
                    }
                } else {
                    Output::Attribute(translator.attribute(*column)?)
                });
            }
            let quals_above = predicates(&mut translator, plan.quals_above.iter().copied())?;
            let join = JoinStage::begin(join, state, &mut translator)?;
            let attributes = (*(*table).rd_att).natts as usize;
            let zones_wanted = filter.zones_wanted.clone();
            let mut source = VectorSource::begin(table, (*estate).es_snapshot, zones_wanted);
            source.want_only(translator.attributes());
            self.handed_over = join.is_none();
            let stand_in = self.handed_over.then(|| hand_over(node, 0));
            Ok(Running {
                source,
                translator,
                filter,
                join,
                stand_in,
                quals_above,
                outputs,
                selection: Selection::NONE,
                next: 0,
                values: vec![pg_sys::Datum::null(); attributes],
                nulls: vec![true; attributes],
            })
        }
    }

    unsafe fn next(
        &mut self,
        running: &mut Running,
        node: *mut pg_sys::CustomScanState,
        slot: *mut pg_sys::TupleTableSlot,
    ) -> Evaluation<bool> {
        let next = match running.next_row(&mut self.passed) {
            Err(EvaluationError::TooMuchMemory) => {
                self.note(running);
                running.join = None;
                self.handed_over = true;
                let row = running.source.row_number(running.source.place(0));
                // SAFETY: the node is in execution.
                running.stand_in = Some(unsafe { hand_over(node, row) });
                None
            }
            next => next?,
        };
        if let Some(row) = next {
            // SAFETY: the node's slot, and a row of the vector under way.
            unsafe { running.fill(row, slot) }
        }
        Ok(next.is_some())
    }

    fn note(&mut self, running: &mut Running) {
        self.counters = running.source.counters();
        if let Some(join) = &mut running.join {
            self.bytes = join.bytes();
            self.joined = Some((join.end(), join.algorithm()));
        }
    }

    unsafe fn end(running: Running) {
        running.source.end();
    }

    unsafe fn explain(&self, explain: &Explain) {
        // SAFETY: the node's plan.
        unsafe {
            let plan = EnginePlan::of(explain.plan());
            explain.table(plan.index);
            plan.explain(explain);
        }
        if explain.is_analyze() {
            self.counters.explain(explain);
            if let Some((counters, algorithm)) = &self.joined {
                counters.explain_joined(algorithm, explain);
            }
            explain.integer(c"Vector Rows Passed", self.passed);
            explain.kilobytes(c"Memory", self.bytes);
            if self.handed_over {
                explain.text(c"Handed Over", stand_in::RIGHT_SIDE_TOO_LARGE);
            }
        }
    }
}

/// PostgreSQL's own plan, which gives what rows of the left side from this one on find.
///
/// # Safety
/// A node in execution.
unsafe fn hand_over(node: *mut pg_sys::CustomScanState, row: u64) -> *mut pg_sys::PlanState {
    // SAFETY: the caller's promise; the child is a join, perhaps with a projection above it, of a scan of the left
    // side.
    unsafe {
        let join = stand_in::begin(node, 0);
        let mut left = join;
        while !(*left).lefttree.is_null() {
            left = (*left).lefttree;
        }
        scan::state::begin_at(left, row);
        join
    }
}

impl Running {
    /// The next row of the join, relative to the source's vector.
    fn next_row(&mut self, passed: &mut u64) -> Evaluation<Option<usize>> {
        loop {
            if let Some(row) = self.selection.next(self.next) {
                self.next = row + 1;
                return Ok(Some(row));
            }
            let Some(join) = &mut self.join else {
                return Ok(None);
            };
            let scalars = &self.translator.scalars;
            let Some(mut selection) = self.source.next(&mut self.filter, scalars)? else {
                return Ok(None);
            };
            let frame = self.source.frame(scalars);
            join.find(&frame, &mut selection)?;
            let given = join.operands();
            let frame = Frame {
                joined: given,
                ..frame
            };
            // The sub-select computes its columns before anybody asks about them.
            for output in &mut self.outputs {
                if let Output::Computed(value, operand) = output {
                    *operand = value.evaluate(&frame, &selection)?;
                }
            }
            narrow(&mut self.quals_above, &frame, &mut selection)?;
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
            let given = self.join.as_ref().map_or(&[][..], JoinStage::operands);
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
                    Output::Joined(number, place) => (*number, given[*place]),
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
