//! `LanesAggregate`: a table aggregated in one pass, then a slot a group.

use std::cell::RefCell;
use std::ffi::CStr;

use lanes_columnar::aggregate::{Aggregation, Key};
use lanes_columnar::vector::frame::{Frame, Substitute, SubstituteColumn};
use lanes_columnar::vector::number::{NumberType, Scalar};
use lanes_columnar::vector::predicate::Predicate;
use lanes_columnar::vector::selection::Selection;
use lanes_columnar::vector::value::{Operand, Value};
use lanes_columnar::vector::{Evaluation, EvaluationError, narrow};
use pgrx::pg_sys;

use super::results::Results;
use crate::custom_scan::node::{self, Node, Planned, Routines};
use crate::custom_scan::{privilege, stand_in};
use crate::error;
use crate::expressions::aggregate_call::{self, KeyShape, Shape};
use crate::expressions::lanes_aggregate::Arrival;
use crate::expressions::scalar;
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::joins::by_key::conditions;
use crate::joins::by_key::stage::{Batch, HashStage, JoinCounters};
use crate::joins::by_time::stage::JoinStage;
use crate::nodes::engine::plan::{self, EnginePlan};
use crate::pg::explain::Explain;
use crate::pg::ports;
use crate::table::scan::{AnsweredByZones, StoredZones};
use crate::table_am::insert_buffer;
use crate::vectors::prune::{Filter, Prune, predicates};
use crate::vectors::vector_source::{Counters, VectorSource};

static ROUTINES: Routines = Routines::of::<AggregateState>();

/// An aggregation under execution.
#[derive(Default)]
pub struct AggregateState {
    counters: Counters,
    /// Of a join: what reading its right side took, and how its rows were found.
    join: Option<(Counters, &'static str)>,
    /// Of a hash join: what it did.
    hash_join: Option<JoinCounters>,
    passed: u64,
    /// Sealed segments, and vectors, whose zones told all.
    segments_told: u64,
    vectors_answered_by_zones: u64,
    groups: usize,
    bytes: usize,
    /// Whether rows did not come in the order that an aggregate asks for.
    out_of_order: bool,
    /// Whether PostgreSQL's own plan has taken over.
    handed_over: bool,
}

/// How reading the table ended.
enum Read {
    /// All of it was aggregated.
    All(Box<Results>),
    /// Rows came out of order.
    Disordered,
    /// The groups, or a side of a join, took more memory than they may.
    TooLarge,
}

impl Node for AggregateState {
    const NAME: &'static CStr = c"LanesAggregate";
    const ROUTINES: &'static Routines = &ROUTINES;
    type Running = Results;

    unsafe fn children(scan: *mut pg_sys::CustomScan) -> usize {
        // SAFETY: the caller's promise.
        unsafe { EnginePlan::of(scan).small_sides() }
    }

    fn stand_in(results: &Results) -> Option<*mut pg_sys::PlanState> {
        results.stand_in()
    }

    unsafe fn plan(planned: &Planned) {
        // SAFETY: the planner's live structures.
        unsafe {
            plan::plan_engine(planned);
            (*planned.scan).scan.plan.qual = (*(*planned.root).parse).havingQual.cast();
        }
    }

    unsafe fn begin(&mut self, node: *mut pg_sys::CustomScanState) {
        // SAFETY: a node freshly initialised by PostgreSQL.
        unsafe {
            let plan = EnginePlan::of((*node).ss.ps.plan.cast());
            privilege::check_execute(plan.expressions().into_iter());
            let tables = (*(*node).ss.ps.state).es_range_table;
            let entry: *mut pg_sys::RangeTblEntry = ports::list_nth(tables, plan.index as i32 - 1);
            // If this runs in a worker, that cannot see what is still gathered in this process.
            insert_buffer::flush_table((*entry).relid);
        }
    }

    /// Reads the table; a second time if rows do not come in the order that an aggregate asks for.
    unsafe fn start(&mut self, node: *mut pg_sys::CustomScanState) -> Translation<Results> {
        // SAFETY: a node in execution.
        unsafe {
            self.out_of_order = false;
            let mut read = match self.handed_over {
                true => Read::TooLarge,
                false => self.read(node, Arrival::InOrder)?,
            };
            if let Read::Disordered = read {
                self.out_of_order = true;
                node::rescan_children(node);
                read = self.read(node, Arrival::Any)?;
            }
            match read {
                Read::All(results) => Ok(*results),
                Read::Disordered => Err("sorted rows are out of order".into()),
                Read::TooLarge => {
                    let scan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
                    self.handed_over = true;
                    let stand_in = stand_in::begin(node, Self::children(scan));
                    Ok(Results::of_stand_in(stand_in))
                }
            }
        }
    }

    unsafe fn next(
        &mut self,
        results: &mut Results,
        node: *mut pg_sys::CustomScanState,
        slot: *mut pg_sys::TupleTableSlot,
    ) -> Evaluation<bool> {
        // SAFETY: the node's slot and context.
        Ok(unsafe { results.write_group(node, slot) })
    }

    fn rewind(results: &mut Results) -> bool {
        // The same parameters, the same snapshot: the same groups.
        results.rewind()
    }

    unsafe fn end(_results: Results) {}

    unsafe fn explain(&self, explain: &Explain) {
        // SAFETY: the node's plan.
        unsafe {
            let plan = EnginePlan::of(explain.plan());
            explain.table(plan.index);
            explain.expressions(c"Group Key", &plan.keys);
            if let Some(order) = plan.order {
                explain.text(c"Group Order", &order.describe());
            }
            plan.explain(explain);
        }
        if explain.is_analyze() {
            self.counters.explain(explain);
            if let Some((counters, algorithm)) = &self.join {
                counters.explain_joined(algorithm, explain);
            }
            if let Some(join) = &self.hash_join {
                join.explain(explain);
            }
            explain.integer(c"Vector Rows Passed", self.passed);
            if self.segments_told > 0 {
                explain.integer(c"Segments Answered By Zone Maps", self.segments_told);
            }
            if self.vectors_answered_by_zones > 0 {
                explain.integer(
                    c"Vectors Answered By Zone Maps",
                    self.vectors_answered_by_zones,
                );
            }
            explain.integer(c"Groups", self.groups as u64);
            explain.kilobytes(c"Memory", self.bytes);
            if self.handed_over {
                explain.text(c"Handed Over", stand_in::GROUPS_TOO_LARGE);
            }
            if self.out_of_order {
                let how = "read again, as they were out of order";
                explain.text(c"Rows Sorted", how);
            }
        }
    }
}

/// All of a query as the engine's.
struct Program {
    translator: Translator,
    filter: Filter,
    /// The join by time, if there is one, and the quals above it.
    join: Option<JoinStage>,
    hash_join: Option<HashStage>,
    quals_above: Vec<Predicate>,
    aggregation: Aggregation,
    keys: Vec<KeyShape>,
    shapes: Vec<Shape>,
    zones_wanted: Vec<usize>,
    /// All of the quals, if rows can pass them by zones alone.
    comparisons: Option<Vec<Prune>>,
    /// The attributes that keys, aggregates and what is between them and the quals look at.
    looked_at: Vec<usize>,
    substitutes: Substitutes,
}

/// Takes in sealed runs by their zones, where these tell that all of their rows pass.
struct WholeRuns<'a> {
    comparisons: &'a [Prune],
    scalars: &'a [Option<Scalar>],
    taken: RefCell<Taken<'a>>,
}

/// What they are taken into, and how many rows have passed.
struct Taken<'a> {
    aggregation: &'a mut Aggregation,
    passed: &'a mut u64,
}

impl WholeRuns<'_> {
    fn pass(&self, rows: u32, zones: StoredZones<'_>) -> bool {
        Prune::always_true(self.comparisons, rows, zones, self.scalars)
    }
}

impl AnsweredByZones for WholeRuns<'_> {
    fn are_answered(&self, rows: u32, zones: StoredZones<'_>) -> bool {
        self.pass(rows, zones)
            && self
                .taken
                .borrow()
                .aggregation
                .answered_by_zones(rows, zones)
                .is_some()
    }

    fn take(&self, rows: u32, zones: StoredZones<'_>) -> bool {
        let taken = &mut *self.taken.borrow_mut();
        let is_answered = self.pass(rows, zones) && taken.aggregation.add_stored_zones(rows, zones);
        *taken.passed += u64::from(is_answered) * u64::from(rows);
        is_answered
    }
}

/// Columns that nothing but quals and one key each looks at. Where zones tell that all rows pass, what the key does with less than the
/// values is not decoded: a bucket by the zone, other keys by runs of equal values.
struct Substitutes {
    columns: Vec<SubstituteColumn>,
    /// The key of each.
    keys: Vec<usize>,
    /// What is to be filled of the vector under way.
    filled: Vec<usize>,
}

impl Substitutes {
    /// Keys, each with the attribute that it looks at.
    fn of(keys: impl Iterator<Item = (usize, usize)>) -> Substitutes {
        let column = |attribute| SubstituteColumn {
            attribute,
            ..SubstituteColumn::default()
        };
        let (keys, columns) = keys.map(|(key, of)| (key, column(of))).unzip();
        Substitutes {
            columns,
            keys,
            filled: Vec::new(),
        }
    }

    /// Looks how much of the vector under way is needed of these attributes.
    fn look(
        &mut self,
        looked_at: &[usize],
        aggregation: &Aggregation,
        source: &VectorSource,
        scalars: &[Option<Scalar>],
    ) {
        self.filled.clear();
        self.filled.extend_from_slice(looked_at);
        for (column, key) in self.columns.iter_mut().zip(&self.keys) {
            let attribute = column.attribute;
            column.substitute = if aggregation.is_key_answered_by_zone(*key, &source.frame(scalars))
            {
                Substitute::Zone
            } else if aggregation.accepts_repeats(*key)
                && source.repeats(attribute, &mut column.repeats)
            {
                Substitute::Repeats
            } else {
                Substitute::None
            };
            if column.substitute != Substitute::None {
                self.filled.retain(|filled| *filled != attribute);
            }
        }
    }
}

impl Program {
    unsafe fn of(
        plan: &EnginePlan,
        node: *mut pg_sys::CustomScanState,
        arrival: Arrival,
    ) -> Translation<Option<Program>> {
        // SAFETY: the caller has a node under execution.
        let plan_state = unsafe { &raw mut (*node).ss.ps };
        let scalars = Scalars::Evaluated(plan_state);
        // SAFETY: the plan's live expressions.
        let is_joined = |key: &*mut pg_sys::Node| unsafe {
            let join = plan.hash_join.as_ref();
            join.is_some_and(|join| join.is_small(*key))
        };
        let grouped: Vec<_> = plan.keys.iter().copied().filter(is_joined).collect();
        let conditions = plan.hash_join.as_ref().map_or(Vec::new(), |join| {
            // SAFETY: the plan's live calls.
            unsafe { conditions::of_filters(join, plan.calls.iter().copied()) }
        });
        let mut translator = match (&plan.join, &plan.hash_join) {
            (Some(join), _) => Translator::of_joined(scalars, join.joined_columns(plan.index)),
            (None, Some(join)) => {
                Translator::of_joined(scalars, join.joined_columns(grouped.len()))
                    .with_conditions(&conditions)
            }
            (None, None) => Translator::new(scalars),
        };
        let mut join = None;
        let (mut keys, mut key_shapes) = (Vec::new(), Vec::new());
        let (mut aggregates, mut shapes) = (Vec::new(), Vec::new());
        let mut zones_wanted = Vec::new();
        let mut undecoded = Vec::new();
        // SAFETY: the plan's live expressions.
        unsafe {
            let filter = Filter::of(&mut translator, plan.quals.iter().copied())?;
            let of_quals = translator.asked();
            let mut codes = 0;
            for node in &plan.keys {
                if is_joined(node) {
                    keys.push(Key::Number(Value::Joined(NumberType::I64, codes)));
                    key_shapes.push(KeyShape::Joined(codes));
                    codes += 1;
                    continue;
                }
                let (key, shape) = aggregate_call::key(&mut translator, *node)?;
                zones_wanted.extend(key.zone_attribute());
                let attribute = key.zone_attribute().or(key.repeats_attribute());
                undecoded.extend(attribute.map(|attribute| (keys.len(), attribute)));
                keys.push(key);
                key_shapes.push(shape);
            }
            for call in &plan.calls {
                let (aggregate, shape) =
                    aggregate_call::aggregate(&mut translator, *call, arrival)?;
                zones_wanted.extend(aggregate.zone_attribute());
                aggregates.push(aggregate);
                shapes.push(shape);
            }
            let quals_above = predicates(&mut translator, plan.quals_above.iter().copied())?;
            if let Some(plan) = &plan.join {
                join = JoinStage::begin(plan, plan_state, &mut translator)?;
                if join.is_none() {
                    return Ok(None);
                }
            }
            let mut hash_join = None;
            if let Some(join) = &plan.hash_join {
                let stage = HashStage::begin(join, node, &mut translator, &grouped, &conditions)?;
                hash_join = Some(stage);
            }
            let asked = translator.asked_since(&of_quals);
            let looked_at = asked.attributes();
            undecoded.retain(|&(_, attribute)| asked.has_once(attribute));
            let all_count = join.is_none() && hash_join.is_none() && quals_above.is_empty();
            Ok(Some(Program {
                comparisons: filter.comparisons().filter(|_| all_count),
                looked_at,
                translator,
                filter,
                join,
                hash_join,
                quals_above,
                aggregation: Aggregation::new(keys, aggregates),
                keys: key_shapes,
                shapes,
                zones_wanted,
                substitutes: Substitutes::of(undecoded.into_iter()),
            }))
        }
    }
}

impl Program {
    /// Goes on to the next vector. Sealed rows are not read if their zones tell all that is asked of them; they passed then.
    fn advance(
        &mut self,
        source: &mut VectorSource,
        scalars: &[Option<Scalar>],
        passed: &mut u64,
    ) -> bool {
        let Some(comparisons) = &self.comparisons else {
            return source.advance(&mut self.filter, scalars);
        };
        let whole_runs = WholeRuns {
            comparisons,
            scalars,
            taken: RefCell::new(Taken {
                aggregation: &mut self.aggregation,
                passed,
            }),
        };
        source.advance_past(&mut self.filter, scalars, Some(&whole_runs))
    }

    /// Takes in the vector under way; gives how many of its rows counted.
    fn add(&mut self, source: &mut VectorSource, scalars: &[Option<Scalar>]) -> Evaluation<usize> {
        if self.comparisons.is_some() && source.all_pass(&self.filter) {
            self.substitutes
                .look(&self.looked_at, &self.aggregation, source, scalars);
            source.fill(Some(&self.substitutes.filled));
            let (visible, rows) = source.visible();
            let frame = Frame {
                substitutes: &self.substitutes.columns,
                ..source.frame(scalars)
            };
            self.aggregation.add_counted(&frame, visible, rows)?;
            return Ok(rows);
        }
        let Some(mut selection) = source.pass(&mut self.filter, scalars)? else {
            return Ok(0);
        };
        if self.hash_join.is_some() {
            return self.add_joined(source, scalars, selection);
        }
        source.fill(Some(&self.looked_at));
        let frame = source.frame(scalars);
        let mut joined: &[Operand] = &[];
        if let Some(join) = &mut self.join {
            join.find(&frame, &mut selection)?;
            joined = join.operands();
        }
        let frame = Frame { joined, ..frame };
        narrow(&mut self.quals_above, &frame, &mut selection)?;
        let passed = selection.count();
        self.aggregation.add_counted(&frame, &selection, passed)?;
        Ok(passed)
    }

    /// Takes in these rows of the vector under way with each small row that they find; gives how many joined rows there are.
    fn add_joined(
        &mut self,
        source: &mut VectorSource,
        scalars: &[Option<Scalar>],
        mut selection: Selection,
    ) -> Evaluation<usize> {
        let Some(stage) = &mut self.hash_join else {
            return Ok(0);
        };
        source.fill(Some(stage.looked_at()));
        stage.find(&source.frame(scalars), &mut selection)?;
        if selection.is_empty() {
            return Ok(0);
        }
        source.fill(Some(&self.looked_at));
        let mut passed = 0;
        while !selection.is_empty() {
            // SAFETY: the node is in execution.
            unsafe { stage.gather(&selection) }
            let frame = Frame {
                joined: stage.operands(),
                ..source.frame(scalars)
            };
            let count = selection.count();
            self.aggregation.add_counted(&frame, &selection, count)?;
            passed += count;
            stage.find_next(&source.frame(scalars), &mut selection)?;
        }
        Ok(passed)
    }

    /// Takes in the small rows of the batch that no row of the table has found, where the join returns these; gives
    /// how many.
    fn add_unmatched(&mut self, scalars: &[Option<Scalar>]) -> Evaluation<usize> {
        let Some(stage) = &mut self.hash_join else {
            return Ok(0);
        };
        let mut passed = 0;
        loop {
            let rows = stage.next_unmatched();
            if rows == 0 {
                return Ok(passed);
            }
            let selection = Selection::first(rows);
            // SAFETY: the node is in execution.
            unsafe { stage.gather(&selection) }
            let frame = Frame {
                joined: stage.operands(),
                ..Frame::of_nulls(rows, scalars)
            };
            self.aggregation.add_counted(&frame, &selection, rows)?;
            passed += rows;
            ports::CHECK_FOR_INTERRUPTS();
        }
    }

    /// Ends reading before its end.
    fn stop(&mut self, source: VectorSource) {
        if let Some(join) = &mut self.join {
            join.end();
        }
        source.end();
    }

    /// Goes on to the next batch of a hash join. Without such a join there is one batch.
    ///
    /// # Safety
    /// The node is in execution.
    unsafe fn next_batch(&mut self, is_first: bool) -> Batch {
        let Some(stage) = &mut self.hash_join else {
            return if is_first { Batch::Ready } else { Batch::None };
        };
        // SAFETY: the caller's promise.
        let batch = unsafe { stage.next_batch() };
        if batch == Batch::Ready {
            self.filter.key_sets = stage.key_sets();
        }
        batch
    }
}

impl AggregateState {
    /// Reads the table.
    unsafe fn read(
        &mut self,
        node: *mut pg_sys::CustomScanState,
        arrival: Arrival,
    ) -> Translation<Read> {
        // SAFETY: a node of ours, in execution; the table was locked when the plan was made ready.
        unsafe {
            let estate = (*node).ss.ps.state;
            let scan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
            let plan = EnginePlan::of(scan);
            let table = pg_sys::ExecGetRangeTableRelation(estate, plan.index);
            scalar::reads(&raw mut (*node).ss.ps, table);
            let Some(mut program) = Program::of(&plan, node, arrival)? else {
                return Ok(Read::TooLarge);
            };
            let mut zones_wanted = std::mem::take(&mut program.zones_wanted);
            zones_wanted.extend_from_slice(&program.filter.zones_wanted);
            zones_wanted.sort_unstable();
            zones_wanted.dedup();
            let mut source = VectorSource::begin(table, (*estate).es_snapshot, zones_wanted);
            source.want_only(program.translator.attributes());
            let scalars = std::mem::take(&mut program.translator.scalars);
            let limit = plan.has_stand_in.then(stand_in::memory_limit);
            self.passed = 0;
            let mut batch = program.next_batch(true);
            if batch == Batch::TooLarge {
                // Only joins that have a plan to stand in can be too large.
                program.stop(source);
                return Ok(Read::TooLarge);
            }
            while batch == Batch::Ready {
                let mut has_vector = true;
                while has_vector {
                    has_vector = program.advance(&mut source, &scalars, &mut self.passed);
                    let added = match has_vector {
                        true => program.add(&mut source, &scalars),
                        false => program.add_unmatched(&scalars),
                    };
                    match added {
                        Ok(passed) => self.passed += passed as u64,
                        Err(EvaluationError::Disordered) => {
                            program.stop(source);
                            return Ok(Read::Disordered);
                        }
                        Err(EvaluationError::TooMuchMemory) => {
                            self.bytes = program.join.as_ref().map_or(0, JoinStage::bytes);
                            self.counters = source.counters();
                            program.stop(source);
                            return Ok(Read::TooLarge);
                        }
                        Err(failure) => error::evaluation(failure),
                    }
                    if limit.is_some_and(|limit| program.aggregation.bytes() > limit) {
                        self.bytes = program.aggregation.bytes();
                        self.groups = program.aggregation.groups();
                        self.counters = source.counters();
                        program.stop(source);
                        return Ok(Read::TooLarge);
                    }
                }
                batch = program.next_batch(false);
                if batch == Batch::Ready {
                    source.rewind(false);
                }
            }
            program.aggregation.finish();
            if let Some(join) = &mut program.join {
                self.join = Some((join.end(), join.algorithm()));
            }
            self.counters = source.counters();
            let segments_told = source.segments_taken();
            source.end();
            self.segments_told = segments_told;
            self.vectors_answered_by_zones = program.aggregation.vectors_answered_by_zones();
            self.groups = program.aggregation.groups();
            self.bytes = program.aggregation.bytes();
            self.bytes += program.join.as_ref().map_or(0, JoinStage::bytes);
            self.hash_join = program.hash_join.as_ref().map(HashStage::counters);
            self.bytes += self.hash_join.map_or(0, |join| join.bytes);
            let joined = program.hash_join.map_or(Vec::new(), HashStage::into_values);
            let shapes = (program.keys, program.shapes);
            let memory = scalar::memory(&raw mut (*node).ss.ps);
            let results = Results::new(program.aggregation, shapes, joined, memory);
            let results = results.ordered(plan.order);
            Ok(Read::All(Box::new(results)))
        }
    }
}
