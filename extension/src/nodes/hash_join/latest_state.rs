//! `LanesHashLatest` under execution: one pass that finds the first joined row of each group, then a slot a row.
//!
//! A joined row is a row of the lanes table with the small row that it has found. Of each group both are remembered by
//! their numbers; the values are fetched when the pass is over. So the small side has to fit in one batch: where it
//! does not, or where the groups take too much memory, PostgreSQL's own plan takes over.

use std::ffi::CStr;

use lanes_columnar::aggregate::{Aggregation, Key};
use lanes_columnar::order::BestOfGroup;
use lanes_columnar::vector::Evaluation;
use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::number::{NumberType, Scalar};
use lanes_columnar::vector::selection::Selection;
use lanes_columnar::vector::value::Value;
use pgrx::pg_sys;

use super::latest_plan::{self, LatestJoinPlan};
use crate::custom_scan::node::{Node, Planned, Routines};
use crate::custom_scan::{privilege, stand_in};
use crate::error;
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::expressions::{aggregate_call, scalar, sort_key};
use crate::joins::by_key::output::Output;
use crate::joins::by_key::stage::{Batch, HashStage, JoinCounters};
use crate::pg::explain::Explain;
use crate::vectors::kept_rows::{KeptRows, ROWS_FETCHED};
use crate::vectors::prune::Filter;
use crate::vectors::vector_source::{Counters, VectorSource};

static ROUTINES: Routines = Routines::of::<LatestJoinState>();

/// A node under execution.
#[derive(Default)]
pub struct LatestJoinState {
    counters: Counters,
    joined: JoinCounters,
    passed: u64,
    bytes: usize,
    /// Whether PostgreSQL's own plan has taken over.
    handed_over: bool,
}

/// The groups' rows.
pub struct Found {
    source: VectorSource,
    stage: HashStage,
    outputs: Vec<Output>,
    /// The rows of the lanes table, ascending, each with its small row, and how many of them were fetched and returned.
    rows: Vec<(u64, u32)>,
    fetched: usize,
    returned: usize,
    kept: KeptRows,
    /// The row that is returned, by attribute; attributes that are not asked for stay NULL.
    values: Vec<Option<pg_sys::Datum>>,
    /// PostgreSQL's own plan, where it gives the rows instead.
    stand_in: Option<*mut pg_sys::PlanState>,
}

/// The pass over the lanes table.
struct Pass {
    translator: Translator,
    filter: Filter,
    stage: HashStage,
    groups: Aggregation,
    best: BestOfGroup,
    /// The attributes that groups and the order look at.
    looked_at: Vec<usize>,
    memory_limit: usize,
}

impl Node for LatestJoinState {
    const NAME: &'static CStr = c"LanesHashLatest";
    const ROUTINES: &'static Routines = &ROUTINES;
    type Running = Found;

    unsafe fn children(_scan: *mut pg_sys::CustomScan) -> usize {
        1
    }

    fn stand_in(found: &Found) -> Option<*mut pg_sys::PlanState> {
        found.stand_in
    }

    unsafe fn plan(planned: &Planned) {
        // SAFETY: the planner's live structures.
        unsafe { latest_plan::plan(planned) }
    }

    unsafe fn begin(&mut self, node: *mut pg_sys::CustomScanState) {
        // SAFETY: a node freshly initialised by PostgreSQL.
        unsafe {
            let plan = LatestJoinPlan::of((*node).ss.ps.plan.cast());
            privilege::check_execute(plan.expressions());
        }
    }

    /// Reads the table.
    unsafe fn start(&mut self, node: *mut pg_sys::CustomScanState) -> Translation<Found> {
        // SAFETY: a node in execution; the table was locked when the plan was made ready.
        unsafe {
            let estate = (*node).ss.ps.state;
            let plan = LatestJoinPlan::of((*node).ss.ps.plan.cast());
            let table = pg_sys::ExecGetRangeTableRelation(estate, plan.join.table);
            scalar::reads(&raw mut (*node).ss.ps, table);
            let (mut pass, outputs) = Pass::of(&plan, node)?;
            let zones_wanted = pass.filter.zones_wanted.clone();
            let mut source = VectorSource::begin(table, (*estate).es_snapshot, zones_wanted);
            source.want_only(pass.translator.attributes());
            source.rewind(pass.best.is_backward());
            let mut attributes: Vec<usize> = outputs
                .iter()
                .filter_map(|output| match output {
                    Output::Attribute(attribute) => Some(*attribute),
                    Output::Small(_) => None,
                })
                .collect();
            attributes.sort_unstable();
            attributes.dedup();
            self.passed = 0;
            let is_done = !self.handed_over
                && pass
                    .run(&mut source, &mut self.passed)
                    .unwrap_or_else(|failure| error::evaluation(failure));
            self.handed_over = !is_done;
            let rows = match is_done {
                true => pass.best.rows(),
                false => Vec::new(),
            };
            self.bytes = pass.bytes() + rows.capacity() * size_of::<(u64, u32)>();
            Ok(Found {
                source,
                stage: pass.stage,
                outputs,
                rows,
                fetched: 0,
                returned: 0,
                kept: KeptRows::new(table, &attributes, (*estate).es_query_cxt),
                values: vec![None; (*(*table).rd_att).natts as usize],
                stand_in: self.handed_over.then(|| stand_in::begin(node, 1)),
            })
        }
    }

    unsafe fn next(
        &mut self,
        found: &mut Found,
        _node: *mut pg_sys::CustomScanState,
        slot: *mut pg_sys::TupleTableSlot,
    ) -> Evaluation<bool> {
        // SAFETY: a node in execution, with its slot, which is empty.
        unsafe { Ok(found.write_next(slot)) }
    }

    fn rewind(found: &mut Found) -> bool {
        // The same parameters, the same snapshot: the same rows, which are fetched once more.
        (found.fetched, found.returned) = (0, 0);
        found.kept.forget();
        found.stand_in.is_none()
    }

    fn note(&mut self, found: &mut Found) {
        self.counters = found.source.counters();
        self.joined = found.stage.counters();
    }

    unsafe fn end(found: Found) {
        found.source.end();
        // SAFETY: no slot holds a row.
        unsafe { found.kept.free() }
    }

    unsafe fn explain(&self, explain: &Explain) {
        // SAFETY: the node's plan.
        unsafe { LatestJoinPlan::of(explain.plan()).explain(explain) }
        if explain.is_analyze() {
            self.counters.explain(explain);
            self.joined.explain(explain);
            explain.integer(c"Vector Rows Passed", self.passed);
            explain.kilobytes(c"Memory", self.bytes);
            if self.handed_over {
                explain.text(c"Handed Over", stand_in::GROUPS_TOO_LARGE);
            }
        }
    }
}

impl Found {
    /// Writes the next row; what the node never returns is NULL. False at the end.
    ///
    /// # Safety
    /// An empty virtual slot with an attribute for each entry of the plan's list.
    unsafe fn write_next(&mut self, slot: *mut pg_sys::TupleTableSlot) -> bool {
        let Some(&(number, small_row)) = self.rows.get(self.returned) else {
            return false;
        };
        if self.returned == self.fetched {
            let to = (self.fetched + ROWS_FETCHED).min(self.rows.len());
            let rows = &self.rows[self.fetched..to];
            let numbers = rows.iter().map(|(number, _)| *number).collect();
            self.kept.fetch(&mut self.source, numbers);
            self.fetched = to;
        }
        self.returned += 1;
        if let Some((row, values)) = self.kept.next_row() {
            debug_assert_eq!(row, number);
            for (attribute, value, is_null) in values {
                self.values[attribute] = (!is_null).then_some(value);
            }
        }
        // SAFETY: the caller's promise.
        unsafe {
            let count = (*(*slot).tts_tupleDescriptor).natts as usize;
            for index in 0..count {
                let value = match self.outputs.get(index) {
                    Some(Output::Attribute(attribute)) => self.values[*attribute],
                    Some(Output::Small(output)) => self.stage.small_value(*output, small_row),
                    None => None,
                };
                *(*slot).tts_isnull.add(index) = value.is_none();
                *(*slot).tts_values.add(index) = value.unwrap_or(pg_sys::Datum::null());
            }
        }
        true
    }
}

impl Pass {
    /// A pass that is about to begin, and where the columns of its result come from.
    ///
    /// # Safety
    /// A node in execution.
    unsafe fn of(
        plan: &LatestJoinPlan,
        node: *mut pg_sys::CustomScanState,
    ) -> Translation<(Pass, Vec<Output>)> {
        // SAFETY: the plan's live expressions.
        unsafe {
            let is_joined = |group: &*mut pg_sys::Node| plan.join.is_small(*group);
            let grouped: Vec<_> = plan.groups.iter().copied().filter(is_joined).collect();
            let scalars = Scalars::Evaluated(&raw mut (*node).ss.ps);
            let mut translator =
                Translator::of_joined(scalars, plan.join.joined_columns(grouped.len()));
            let filter = Filter::of(&mut translator, plan.quals.iter().copied())?;
            let of_quals = translator.asked();
            let (mut groups, mut codes) = (Vec::new(), 0);
            for group in &plan.groups {
                if is_joined(group) {
                    groups.push(Key::Number(Value::Joined(NumberType::I64, codes)));
                    codes += 1;
                    continue;
                }
                groups.push(aggregate_call::key(&mut translator, *group)?.0);
            }
            let keys = sort_key::keys(&mut translator, &plan.keys)?;
            let looked_at = translator.asked_since(&of_quals).attributes();
            let stage = HashStage::begin(&plan.join, node, &mut translator, &grouped, &[])?;
            // Only fetched for the rows that are found, so not what the pass looks at.
            let columns = Translator::of_joined(Scalars::Unknown, plan.join.joined_columns(0));
            let outputs = Output::of(&plan.columns, &plan.join, &columns)?;
            let pass = Pass {
                translator,
                filter,
                stage,
                groups: Aggregation::new(groups, Vec::new()),
                best: BestOfGroup::new(keys),
                looked_at,
                memory_limit: stand_in::memory_limit(),
            };
            Ok((pass, outputs))
        }
    }

    /// Reads the table; false if the small side or the groups take too much memory.
    ///
    /// # Safety
    /// The node is in execution.
    unsafe fn run(&mut self, source: &mut VectorSource, passed: &mut u64) -> Evaluation<bool> {
        // SAFETY: the caller's promise.
        match unsafe { self.stage.next_batch() } {
            Batch::None => return Ok(true),
            Batch::TooLarge => return Ok(false),
            Batch::Ready if self.stage.has_more() => return Ok(false),
            Batch::Ready => self.filter.key_sets = self.stage.key_sets(),
        }
        let scalars = std::mem::take(&mut self.translator.scalars);
        while source.advance(&mut self.filter, &scalars) {
            let Some(selection) = source.pass(&mut self.filter, &scalars)? else {
                continue;
            };
            // SAFETY: the caller's promise.
            *passed += unsafe { self.add(source, &scalars, selection)? };
            if self.bytes() > self.memory_limit {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes in these rows of the vector under way with each small row that they find; gives how many joined rows there
    /// are.
    ///
    /// # Safety
    /// The node is in execution.
    unsafe fn add(
        &mut self,
        source: &mut VectorSource,
        scalars: &[Option<Scalar>],
        mut selection: Selection,
    ) -> Evaluation<u64> {
        source.fill(Some(self.stage.looked_at()));
        self.stage.find(&source.frame(scalars), &mut selection)?;
        if selection.is_empty() {
            return Ok(0);
        }
        source.fill(Some(&self.looked_at));
        let first_row = source.row_number(source.place(0));
        let mut passed = 0;
        while !selection.is_empty() {
            // SAFETY: the caller's promise.
            unsafe { self.stage.gather(&selection) }
            let frame = Frame {
                joined: self.stage.operands(),
                ..source.frame(scalars)
            };
            let (grouping, count) = self.groups.grouping(&frame, &selection)?;
            let accept = |row| Some(self.stage.found(row));
            self.best
                .offer(&frame, first_row, &selection, &grouping, count, accept)?;
            passed += selection.count() as u64;
            self.stage
                .find_next(&source.frame(scalars), &mut selection)?;
        }
        Ok(passed)
    }

    fn bytes(&self) -> usize {
        self.groups.bytes() + self.best.bytes()
    }
}
