//! `LanesHashJoin`: the rows of a lanes table joined by equality with something smaller, a slot for each joined row.

use std::ffi::CStr;

use lanes_columnar::vector::Evaluation;
use lanes_columnar::vector::selection::Selection;
use pgrx::pg_sys;

use crate::custom_scan::names;
use crate::custom_scan::node::{Node, Planned, Routines};
use crate::custom_scan::{privilege, stand_in};
use crate::expressions::scalar;
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::joins::by_key::output::Output;
use crate::joins::by_key::stage::{Batch, HashStage, JoinCounters};
use crate::nodes::engine::plan::{self, EnginePlan};
use crate::pg::explain::Explain;
use crate::vectors::prune::Filter;
use crate::vectors::vector_source::{Counters, VectorSource};

static ROUTINES: Routines = Routines::of::<HashJoinState>();

/// A join under execution.
#[derive(Default)]
pub struct HashJoinState {
    counters: Counters,
    joined: JoinCounters,
    passed: u64,
    /// Whether PostgreSQL's own plan has taken over.
    handed_over: bool,
}

/// What exists from the first row on.
pub struct Running {
    pub source: VectorSource,
    translator: Translator,
    filter: Filter,
    pub stage: HashStage,
    outputs: Vec<Output>,
    /// Whether there is a batch whose rows have not all been found.
    has_batch: bool,
    /// What gives the rows instead.
    stand_in: Option<*mut pg_sys::PlanState>,
    /// The rows of the vector whose small row was found and not returned yet, from `next` on.
    selection: Selection,
    next: usize,
    /// Whether these are small rows without a match, for which there is no row of the table.
    pub has_no_left: bool,
    /// A row of the table, for the attributes that are asked for.
    values: Vec<pg_sys::Datum>,
    nulls: Vec<bool>,
}

impl Node for HashJoinState {
    const NAME: &'static CStr = names::HASH_JOIN;
    const ROUTINES: &'static Routines = &ROUTINES;
    type Running = Running;

    unsafe fn children(scan: *mut pg_sys::CustomScan) -> usize {
        // SAFETY: the caller's promise.
        unsafe { EnginePlan::of(scan).small_sides() }
    }

    fn stand_in(running: &Running) -> Option<*mut pg_sys::PlanState> {
        running.stand_in
    }

    unsafe fn plan(planned: &Planned) {
        // SAFETY: the planner's live structures.
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
            let Some(join) = &plan.hash_join else {
                return Err("no join".into());
            };
            let state = &raw mut (*node).ss.ps;
            scalar::reads(state, table);
            let mut translator =
                Translator::of_joined(Scalars::Evaluated(state), join.joined_columns(0));
            let mut filter = Filter::of(&mut translator, plan.quals.iter().copied())?;
            let outputs = Output::of(&plan.keys, join, &translator)?;
            let mut stage = HashStage::begin(join, node, &mut translator, &[], &[])?;
            let attributes = (*(*table).rd_att).natts as usize;
            let zones_wanted = filter.zones_wanted.clone();
            let mut source = VectorSource::begin(table, (*estate).es_snapshot, zones_wanted);
            source.want_only(translator.attributes());
            let batch = stage.next_batch();
            // Only joins that have a plan to stand in can be too large.
            self.handed_over = batch == Batch::TooLarge;
            let stand_in = self
                .handed_over
                .then(|| stand_in::begin(node, join.dimensions.len()));
            if batch == Batch::Ready {
                filter.key_sets = stage.key_sets();
            }
            Ok(Running {
                source,
                translator,
                filter,
                stage,
                outputs,
                has_batch: batch == Batch::Ready,
                stand_in,
                selection: Selection::NONE,
                next: 0,
                has_no_left: false,
                values: vec![pg_sys::Datum::null(); attributes],
                nulls: vec![true; attributes],
            })
        }
    }

    unsafe fn next(
        &mut self,
        running: &mut Running,
        _node: *mut pg_sys::CustomScanState,
        slot: *mut pg_sys::TupleTableSlot,
    ) -> Evaluation<bool> {
        // SAFETY: a node in execution, with its slot.
        unsafe {
            let next = running.next_row(&mut self.passed)?;
            if let Some(row) = next {
                running.fill(row, slot);
            }
            Ok(next.is_some())
        }
    }

    fn note(&mut self, running: &mut Running) {
        self.counters = running.source.counters();
        self.joined = running.stage.counters();
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
            self.joined.explain(explain);
            if self.handed_over {
                explain.text(c"Handed Over", stand_in::SMALL_SIDE_TOO_LARGE);
            }
            explain.integer(c"Vector Rows Passed", self.passed);
        }
    }
}

impl HashJoinState {
    /// The next joined rows, all of one vector; none at the end.
    ///
    /// # Errors
    /// Those of keys and quals.
    ///
    /// # Safety
    /// What runs is that of a node in execution.
    pub unsafe fn next_rows(&mut self, running: &mut Running) -> Evaluation<Option<Selection>> {
        // SAFETY: the caller's promise.
        let has_rows = unsafe { running.next_rows(&mut self.passed)? };
        Ok(has_rows.then_some(running.selection))
    }
}

impl Running {
    /// The next joined row: a row of the source's vector, with the small row that the stage has found for it.
    ///
    /// # Safety
    /// The node is in execution.
    unsafe fn next_row(&mut self, passed: &mut u64) -> Evaluation<Option<usize>> {
        loop {
            if let Some(row) = self.selection.next(self.next) {
                self.next = row + 1;
                return Ok(Some(row));
            }
            self.next = 0;
            // SAFETY: the caller's promise.
            if unsafe { !self.next_rows(passed)? } {
                return Ok(None);
            }
        }
    }

    /// Goes on to the next joined rows, all of one vector; false at the end.
    ///
    /// # Safety
    /// The node is in execution.
    unsafe fn next_rows(&mut self, passed: &mut u64) -> Evaluation<bool> {
        while self.has_batch {
            if self.has_no_left {
                self.selection = Selection::NONE;
            } else if !self.selection.is_empty() {
                let frame = self.source.frame(&self.translator.scalars);
                self.stage.find_next(&frame, &mut self.selection)?;
                *passed += self.selection.count() as u64;
                if !self.selection.is_empty() {
                    return Ok(true);
                }
            }
            let scalars = &self.translator.scalars;
            if !self.has_no_left && self.source.advance(&mut self.filter, scalars) {
                let Some(mut selection) = self.source.pass(&mut self.filter, scalars)? else {
                    continue;
                };
                self.source.fill(Some(self.stage.looked_at()));
                self.stage
                    .find(&self.source.frame(scalars), &mut selection)?;
                if !selection.is_empty() {
                    self.source.fill(None);
                    *passed += selection.count() as u64;
                    self.selection = selection;
                    return Ok(true);
                }
                continue;
            }
            let unmatched = self.stage.next_unmatched();
            self.has_no_left = unmatched > 0;
            if self.has_no_left {
                self.selection = Selection::first(unmatched);
                return Ok(true);
            }
            // SAFETY: the caller's promise.
            self.has_batch = unsafe { self.stage.next_batch() } == Batch::Ready;
            if self.has_batch {
                self.filter.key_sets = self.stage.key_sets();
                self.source.rewind(false);
            }
        }
        Ok(false)
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
                let value = match output {
                    Output::Attribute(_) if self.has_no_left => None,
                    Output::Attribute(attribute) => {
                        let (own, own_nulls) = (self.values.as_mut_ptr(), self.nulls.as_mut_ptr());
                        (*outlet).read(place, *attribute, attribute + 1, own, own_nulls);
                        (!self.nulls[*attribute]).then(|| self.values[*attribute])
                    }
                    Output::Small(output) => self.stage.value(*output, row),
                };
                if let Some(value) = value {
                    *nulls.add(index) = false;
                    *values.add(index) = value;
                }
            }
        }
    }
}
