//! `LanesNestedAggregate` under execution: the groups of the aggregation below are aggregated again, then each group is
//! a slot.

use std::ffi::CStr;

use lanes_columnar::limits::VECTOR_ROWS;
use lanes_columnar::vector::Evaluation;

use super::below::Below;
use super::finished::Finished;
use super::group_lanes::GroupLanes;
use super::outputs::Outputs;
use super::program::{KeysBelow, Program};
use crate::custom_scan::callbacks::Callbacks;
use crate::custom_scan::node::{NextRow, Node, Planned};
use crate::custom_scan::{privilege, stand_in};
use crate::error;
use crate::expressions::translate::Translation;
use crate::nodes::engine::plan::{self, EnginePlan};
use crate::nodes::engine::results::{Groups, Results};
use crate::pg::exec::child::Child;
use crate::pg::exec::node::{CustomPlan, ExecNode};
use crate::pg::exec::slot::SlotWriter;
use crate::pg::explain::Explain;
use crate::pg::ports;

static CALLBACKS: Callbacks = Callbacks::of::<NestedState>();

/// The node's state.
#[derive(Default)]
pub struct NestedState {
    groups: usize,
    bytes: usize,
    /// Whether PostgreSQL's own plan has taken over.
    has_handed_over: bool,
}

impl Node for NestedState {
    const NAME: &'static CStr = c"LanesNestedAggregate";
    const CALLBACKS: &'static Callbacks = &CALLBACKS;
    type Running = Results;

    fn children(_plan: CustomPlan<'_>) -> usize {
        1
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
    }

    fn start(&mut self, node: ExecNode<'_>) -> Translation<Results> {
        if !self.has_handed_over
            && let Some(groups) = self.aggregate(node)?
        {
            return Ok(Results::Groups(Box::new(groups)));
        }
        self.has_handed_over = true;
        Ok(Results::StandIn(stand_in::begin(node, 1)))
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

    fn end(_results: Results) {}

    fn explain(&self, explain: &Explain) {
        let plan = EnginePlan::of(explain.plan());
        explain.expressions(c"Group Key", &plan.keys);
        if explain.is_analyze() {
            explain.integer(c"Groups", self.groups as u64);
            explain.kilobytes(c"Memory", self.bytes);
            if self.has_handed_over {
                explain.text(c"Handed Over", stand_in::GROUPS_TOO_LARGE);
            }
        }
    }
}

impl NestedState {
    /// Aggregates the groups below. `None`: the groups there or here exceed their memory limit.
    fn aggregate(&mut self, node: ExecNode<'_>) -> Translation<Option<Groups>> {
        let Some(below) = Below::of(node) else {
            return Err("no aggregation and no window function below".into());
        };
        let plan = EnginePlan::of(node.plan());
        let outputs = Outputs::of_plan(plan.index, below.plan(), below.keys());
        let program = |keys| Program::of(&plan, &outputs, node, (below.plan(), keys));
        let (mut by_number, by_value) = (program(KeysBelow::Numbers)?, program(KeysBelow::Values));
        let Some(groups) = below.finished(&by_number, by_value.is_ok()) else {
            return Ok(None);
        };
        if groups.has_more() {
            by_number = by_value?;
        }
        let mut program = by_number;
        let grouped = program.grouped.iter();
        // The values have their numbers before these are read.
        let values = grouped.map(|key| groups.key_datums(*key)).collect();
        let limit = plan.has_stand_in.then(stand_in::memory_limit);
        loop {
            if !self.add(&mut program, (&outputs, &below), groups, limit) {
                return Ok(None);
            }
            if !groups.replace() {
                break;
            }
        }
        program.aggregation.finish();
        self.groups = program.aggregation.groups();
        let shapes = (program.keys, program.shapes);
        let memory = node.lasting_memory();
        let groups = Groups::new(program.aggregation, shapes, values, memory, None);
        Ok(Some(groups))
    }

    /// Aggregates the groups that are in memory below. False: this takes more memory than the limit.
    fn add(
        &mut self,
        program: &mut Program,
        (outputs, below): (&Outputs<'_>, &Below<'_>),
        groups: &mut dyn Finished,
        limit: Option<usize>,
    ) -> bool {
        let mut lanes = GroupLanes::new(outputs, &program.wanted, groups);
        let (count, mut passed) = (groups.count(), 0);
        for first in (0..count).step_by(VECTOR_ROWS) {
            ports::CHECK_FOR_INTERRUPTS();
            let vector = first..count.min(first + VECTOR_ROWS);
            let added = program.add(vector, &mut lanes, groups);
            passed += added.unwrap_or_else(|failure| error::evaluation(failure));
            self.bytes = program.aggregation.bytes();
            if limit.is_some_and(|limit| self.bytes > limit) {
                return false;
            }
        }
        below.count(passed, count - passed);
        true
    }
}
