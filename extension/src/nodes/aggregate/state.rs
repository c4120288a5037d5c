//! `LanesAggregate` under execution: one pass over the table, then a slot for each group.

use std::ffi::CStr;

use lanes_columnar::vector::number::Scalar;
use lanes_columnar::vector::{Evaluation, EvaluationError};

use super::program::Program;
use super::shared::{OfWorkers, SharedAggregation};
use crate::custom_scan::callbacks::Callbacks;
use crate::custom_scan::node::{NextRow, Node, ParallelNode, Planned};
use crate::custom_scan::{privilege, stand_in};
use crate::error;
use crate::expressions::lanes_aggregate::Arrival;
use crate::expressions::translate::Translation;
use crate::joins::by_key::stage::{Batch, HashStage, JoinCounters};
use crate::nodes::engine::plan::{self, EnginePlan};
use crate::nodes::engine::results::{Groups, Results};
use crate::nodes::engine::waiting_rows::{self, WaitingRows};
use crate::pg::exec::child::Child;
use crate::pg::exec::memory::hash_memory_limit;
use crate::pg::exec::node::{CustomPlan, ExecNode};
use crate::pg::exec::parallel::{self, SharedState};
use crate::pg::exec::slot::SlotWriter;
use crate::pg::explain::Explain;
use crate::table::pending_rows;
use crate::vectors::counters::Counters;
use crate::vectors::vector_source::VectorSource;

static CALLBACKS: Callbacks = Callbacks::of_parallel::<AggregateState>();

/// The node's state.
#[derive(Default)]
pub struct AggregateState {
    counters: Counters,
    /// The counters of a join's right side, and the algorithm that found its rows.
    join: Option<(Counters, &'static str)>,
    hash_join: Option<JoinCounters>,
    passed: u64,
    /// Sealed segments, and vectors, that were aggregated by their zones alone.
    segments_by_zones: u64,
    vectors_by_zones: u64,
    groups: usize,
    bytes: usize,
    /// Whether the rows did not come in the order that an aggregate needs.
    is_out_of_order: bool,
    /// Whether PostgreSQL's own plan has taken over.
    has_handed_over: bool,
    /// How another node reads the groups, if it does not take them row by row.
    pub reader: Option<GroupReader>,
    /// The parts in which groups were aggregated, and the bytes that rows took in temporary files meanwhile.
    batches: u64,
    written_bytes: u64,
    /// Groups of transition states that were put aside.
    early_groups: u64,
    /// What the processes of a parallel aggregation share.
    shared: Option<SharedState<SharedAggregation>>,
    of_workers: OfWorkers,
}

/// How another node reads groups.
#[derive(Default)]
pub struct GroupReader {
    /// The keys whose values it knows by their numbers.
    pub numbered: Vec<usize>,
    /// Whether it reads groups that are in memory one part after the other. Otherwise all have to be there at once.
    pub takes_parts: bool,
}

/// The outcome of reading the table.
enum Outcome {
    /// The groups of all rows.
    Groups(Box<Groups>),
    /// Rows came out of order.
    OutOfOrder,
    /// The groups, or a side of a join, exceeded their memory limit.
    TooLarge,
}

impl Node for AggregateState {
    const NAME: &'static CStr = c"LanesAggregate";
    const CALLBACKS: &'static Callbacks = &CALLBACKS;
    type Running = Results;

    fn children(plan: CustomPlan<'_>) -> usize {
        EnginePlan::of(plan).small_sides()
    }

    fn stand_in(results: &Results) -> Option<Child> {
        results.stand_in()
    }

    fn plan(planned: &Planned) {
        plan::plan_aggregation(planned);
    }

    fn begin(&mut self, node: ExecNode<'_>) {
        let plan = EnginePlan::of(node.plan());
        privilege::check_execute(plan.expressions().into_iter());
        // A worker does not see the rows that this process still buffers.
        pending_rows::flush_table(node.range_table_oid(plan.index));
    }

    /// Reads the table; a second time if the rows do not come in the order that an aggregate needs.
    fn start(&mut self, node: ExecNode<'_>) -> Translation<Results> {
        self.is_out_of_order = false;
        let mut outcome = match self.has_handed_over {
            true => Outcome::TooLarge,
            false => self.read(node, Arrival::InOrder)?,
        };
        if let Outcome::OutOfOrder = outcome {
            self.is_out_of_order = true;
            node.rescan(node.children());
            outcome = self.read(node, Arrival::Any)?;
        }
        match outcome {
            Outcome::Groups(groups) => Ok(Results::Groups(groups)),
            Outcome::OutOfOrder => Err("sorted rows are out of order".into()),
            Outcome::TooLarge => {
                self.has_handed_over = true;
                let others = Self::children(node.plan());
                Ok(Results::StandIn(stand_in::begin(node, others)))
            }
        }
    }

    fn next(
        &mut self,
        results: &mut Results,
        node: ExecNode<'_>,
        row: &mut SlotWriter<'_>,
    ) -> Evaluation<NextRow> {
        Ok(results.write_next(node, row))
    }

    fn rewind(results: &mut Results, node: ExecNode<'_>) -> bool {
        results.rewind(node)
    }

    fn note(&mut self, results: &mut Results) {
        if let Some(waiting) = results.waiting() {
            (self.batches, self.written_bytes) = (waiting.batches, waiting.written_bytes);
            (self.groups, self.bytes) = (waiting.groups, waiting.bytes);
        }
    }

    fn end(results: Results) {
        results.free();
    }

    fn explain(&self, explain: &Explain) {
        let plan = EnginePlan::of(explain.plan());
        explain.table(plan.index);
        explain.expressions(c"Group Key", &plan.keys);
        if let Some(order) = plan.order {
            explain.text(c"Group Order", &order.describe());
        }
        if let Some(limit) = &plan.limit {
            explain.text(c"Group Limit", &limit.describe(plan.keys.len()));
        }
        plan.explain(explain);
        if explain.is_analyze() {
            self.explain_execution(explain);
        }
    }
}

impl ParallelNode for AggregateState {
    type Shared = SharedAggregation;

    fn attach(&mut self, shared: SharedState<SharedAggregation>) {
        self.shared = Some(shared);
    }

    fn restart(shared: &SharedAggregation) {
        shared.restart();
    }

    /// A worker reports what it did; the leader collects the reports.
    fn detach(&mut self) {
        let Some(shared) = self.shared.take() else {
            return;
        };
        if parallel::is_worker() {
            shared.report(&OfWorkers {
                counters: self.counters,
                passed: self.passed,
                groups: self.groups as u64,
                segments_by_zones: self.segments_by_zones,
                vectors_by_zones: self.vectors_by_zones,
                early_groups: self.early_groups,
                join: self.hash_join.unwrap_or_default(),
            });
        } else {
            self.of_workers.add(&shared.collect());
        }
    }
}

impl AggregateState {
    fn explain_execution(&self, explain: &Explain) {
        let of_workers = &self.of_workers;
        self.counters.plus(&of_workers.counters).explain(explain);
        if let Some((counters, algorithm)) = &self.join {
            counters.explain_joined(algorithm, explain);
        }
        if self.hash_join.is_some() || of_workers.join.batches > 0 {
            let own = self.hash_join.unwrap_or_default();
            own.max(of_workers.join).explain(explain);
        }
        explain.integer(c"Vector Rows Passed", self.passed + of_workers.passed);
        let segments = self.segments_by_zones + of_workers.segments_by_zones;
        if segments > 0 {
            explain.integer(c"Segments Answered By Zone Maps", segments);
        }
        let vectors = self.vectors_by_zones + of_workers.vectors_by_zones;
        if vectors > 0 {
            explain.integer(c"Vectors Answered By Zone Maps", vectors);
        }
        explain.integer(c"Groups", self.groups as u64 + of_workers.groups);
        let early_groups = self.early_groups + of_workers.early_groups;
        if early_groups > 0 {
            explain.integer(c"Groups Put Aside", early_groups);
        }
        explain.kilobytes(c"Memory", self.bytes);
        if self.batches > 1 {
            explain.integer(c"Batches", self.batches);
            explain.kilobytes(c"Disk Usage", self.written_bytes as usize);
        }
        if self.has_handed_over {
            explain.text(c"Handed Over", stand_in::GROUPS_TOO_LARGE);
        }
        if self.is_out_of_order {
            explain.text(c"Rows Sorted", "read again, as they were out of order");
        }
    }

    /// Reads the table.
    fn read(&mut self, node: ExecNode<'_>, arrival: Arrival) -> Translation<Outcome> {
        let plan = EnginePlan::of(node.plan());
        let table = node.open_table(plan.index);
        let Some(mut program) = Program::of(&plan, node, arrival)? else {
            return Ok(Outcome::TooLarge);
        };
        let mut source = VectorSource::begin(table, program.take_zones_wanted());
        source.want_only(program.translator.attributes());
        if let Some(shared) = &self.shared {
            source.share(shared.lasting().segments());
        }
        let scalars = std::mem::take(&mut program.translator.scalars);
        let mut can_wait = program.can_wait(&plan);
        if let Some(reader) = &self.reader {
            let numbered = reader.numbered.iter().copied();
            program.aggregation.share_key_numbers(numbered);
            can_wait &= reader.takes_parts;
        }
        let limit = match plan.is_partial {
            // Groups are put aside at little cost, and there may be a node for each partition.
            true => Some(hash_memory_limit()),
            false => plan.has_stand_in.then(stand_in::memory_limit),
        };
        let limit = limit.filter(|_| !can_wait);
        if can_wait {
            let attributes = waiting_rows::aside(program.looked_at(), &table.kinds());
            let (scalars, memory) = (scalars.clone(), node.lasting_memory());
            let waiting = WaitingRows::new(attributes, scalars, memory, hash_memory_limit());
            program.waiting = Some(waiting);
        }
        (self.passed, self.batches, self.written_bytes) = (0, 0, 0);
        let mut batch = program.next_batch(true);
        if batch == Batch::TooLarge {
            // Only joins whose plan has a stand-in can be too large.
            program.stop(source);
            return Ok(Outcome::TooLarge);
        }
        while batch == Batch::Ready {
            let outcome =
                self.read_batch(&mut program, &mut source, (&scalars, limit), &plan, node);
            if let Some(outcome) = outcome {
                program.stop(source);
                return Ok(outcome);
            }
            batch = program.next_batch(false);
            if batch == Batch::Ready {
                source.read_again();
            }
        }
        Ok(self.finish(program, source, &plan, node))
    }

    /// Reads the table for one batch of a hash join. Returns an outcome if that ends the pass.
    fn read_batch(
        &mut self,
        program: &mut Program,
        source: &mut VectorSource,
        (scalars, limit): (&[Option<Scalar>], Option<usize>),
        plan: &EnginePlan,
        node: ExecNode<'_>,
    ) -> Option<Outcome> {
        let mut has_vector = true;
        while has_vector {
            has_vector = program.advance(source, scalars, &mut self.passed);
            let added = match has_vector {
                true => program.add(source, scalars),
                false => program.add_small_rows(scalars),
            };
            match added {
                Ok(passed) => self.passed += passed as u64,
                Err(EvaluationError::Disordered) => return Some(Outcome::OutOfOrder),
                Err(EvaluationError::TooMuchMemory) => {
                    self.bytes = program.join_bytes();
                    self.counters = source.counters();
                    return Some(Outcome::TooLarge);
                }
                Err(failure) => error::evaluation(failure),
            }
            let Some(limit) = limit.filter(|limit| program.bytes() > *limit) else {
                continue;
            };
            if plan.is_partial {
                program.put_groups_aside(limit, &plan.absent, node);
            } else {
                self.bytes = program.bytes();
                self.groups = program.aggregation.groups();
                self.counters = source.counters();
                return Some(Outcome::TooLarge);
            }
        }
        None
    }

    /// Ends the pass, and returns its groups.
    fn finish(
        &mut self,
        mut program: Program,
        source: VectorSource,
        plan: &EnginePlan,
        node: ExecNode<'_>,
    ) -> Outcome {
        match &mut program.waiting {
            Some(waiting) => waiting.finish_pass(&mut program.aggregation),
            None => program.aggregation.finish(),
        }
        if let Some(join) = &mut program.join {
            self.join = Some((join.end(), join.algorithm()));
        }
        self.counters = source.counters();
        self.segments_by_zones = source.segments_taken();
        source.end();
        self.vectors_by_zones = program.aggregation.vectors_answered_by_zones();
        self.groups = program.aggregation.groups();
        self.hash_join = program.hash_join.as_ref().map(HashStage::counters);
        let hash_join_bytes = self.hash_join.map_or(0, |join| join.bytes);
        self.bytes = program.bytes() + program.join_bytes() + hash_join_bytes;
        let early = program.early.as_ref();
        self.early_groups = early.map_or(0, |early| early.groups as u64);
        let groups = program
            .groups(node.lasting_memory(), plan.order)
            .limited(plan.limit.clone())
            .with_absent(plan.absent.clone());
        let groups = match plan.is_partial {
            true => groups.of_part(program.early.take(), program.values),
            false => groups,
        };
        let waiting = program.waiting.filter(WaitingRows::has_written);
        let groups = match waiting {
            Some(waiting) => groups.followed_by(waiting),
            None => groups,
        };
        Outcome::Groups(Box::new(groups))
    }
}
