//! `LanesNestedAggregate`: the groups of an aggregation aggregated again, then a slot a group.

use std::ffi::CStr;
use std::ops::Range;

use lanes_columnar::aggregate::{Aggregation, Key};
use lanes_columnar::limits::VECTOR_ROWS;
use lanes_columnar::vector::number::{NumberType, Scalar};
use lanes_columnar::vector::predicate::Predicate;
use lanes_columnar::vector::selection::Selection;
use lanes_columnar::vector::value::Value;
use lanes_columnar::vector::{Evaluation, narrow};
use pgrx::pg_sys;

use super::group_lanes::GroupLanes;
use super::outputs::{Outputs, over_entries};
use crate::custom_scan::node::{self, Node, Planned, Routines};
use crate::custom_scan::{privilege, stand_in};
use crate::error;
use crate::expressions::aggregate_call::{self, KeyShape, Shape};
use crate::expressions::lanes_aggregate::Arrival;
use crate::expressions::scalar;
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::nodes::aggregate::results::Results;
use crate::nodes::aggregate::state::AggregateState;
use crate::nodes::engine::plan::{self, EnginePlan};
use crate::pg::explain::Explain;
use crate::pg::{nodes, ports};
use crate::vectors::prune::predicates;

static ROUTINES: Routines = Routines::of::<NestedState>();

/// A nested aggregation under execution.
#[derive(Default)]
pub struct NestedState {
    groups: usize,
    bytes: usize,
    /// Whether PostgreSQL's own plan has taken over.
    handed_over: bool,
}

impl Node for NestedState {
    const NAME: &'static CStr = c"LanesNestedAggregate";
    const ROUTINES: &'static Routines = &ROUTINES;
    type Running = Results;

    unsafe fn children(_scan: *mut pg_sys::CustomScan) -> usize {
        1
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
        }
    }

    unsafe fn start(&mut self, node: *mut pg_sys::CustomScanState) -> Translation<Results> {
        // SAFETY: a node in execution.
        unsafe {
            if !self.handed_over
                && let Some(results) = self.aggregate(node)?
            {
                return Ok(results);
            }
            self.handed_over = true;
            Ok(Results::of_stand_in(stand_in::begin(node, 1)))
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
        // Equal parameters and an equal snapshot give equal groups.
        results.rewind()
    }

    unsafe fn end(_results: Results) {}

    unsafe fn explain(&self, explain: &Explain) {
        // SAFETY: the node's plan.
        unsafe {
            let plan = EnginePlan::of(explain.plan());
            explain.expressions(c"Group Key", &plan.keys);
        }
        if explain.is_analyze() {
            explain.integer(c"Groups", self.groups as u64);
            explain.kilobytes(c"Memory", self.bytes);
            if self.handed_over {
                explain.text(c"Handed Over", stand_in::GROUPS_TOO_LARGE);
            }
        }
    }
}

/// A node below whose groups are taken, and the nodes that PostgreSQL has put between.
struct Below {
    /// The child of the node above: the aggregation, or a scan of the sub-select that is one.
    child: *mut pg_sys::PlanState,
    aggregation: *mut pg_sys::CustomScanState,
}

impl Below {
    /// # Safety
    /// A node of this kind, in execution.
    unsafe fn of(node: *mut pg_sys::CustomScanState) -> Below {
        // SAFETY: the caller's promise; the cast follows the tag.
        unsafe {
            let child: *mut pg_sys::PlanState = ports::list_nth((*node).custom_ps, 0);
            let aggregation = match (*child).type_ {
                pg_sys::NodeTag::T_SubqueryScanState => {
                    (*child.cast::<pg_sys::SubqueryScanState>()).subplan
                }
                _ => child,
            };
            Below {
                child,
                aggregation: aggregation.cast(),
            }
        }
    }

    /// Its plan.
    unsafe fn plan(&self) -> *mut pg_sys::CustomScan {
        // SAFETY: a live node.
        unsafe { (*self.aggregation).ss.ps.plan.cast() }
    }

    /// Executes the aggregation, and gives its groups.
    ///
    /// # Safety
    /// The node above is in execution.
    unsafe fn results<'a>(&self) -> &'a mut Results {
        // SAFETY: the caller's promise. Nobody else executes these nodes, so what PostgreSQL does before it asks a node
        // for a row is done here.
        unsafe {
            for state in [self.child, self.aggregation.cast()] {
                if !(*state).chgParam.is_null() {
                    pg_sys::ExecReScan(state);
                }
                if !(*state).instrument.is_null() {
                    pg_sys::InstrStartNode((*state).instrument);
                }
            }
            let results = match node::is::<NestedState>(self.aggregation.cast()) {
                true => node::running::<NestedState>(self.aggregation).1,
                false => node::running::<AggregateState>(self.aggregation).1,
            };
            self.each_instrument(|instrument| pg_sys::InstrStopNode(instrument, 0.0));
            results
        }
    }

    /// Counts groups that were taken as rows that were returned, for EXPLAIN.
    ///
    /// # Safety
    /// The node above is in execution.
    unsafe fn count(&self, taken: usize, removed: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            self.each_instrument(|instrument| (*instrument).tuplecount += taken as f64);
            let instrument = (*self.aggregation).ss.ps.instrument;
            if !instrument.is_null() {
                (*instrument).nfiltered1 += removed as f64;
            }
        }
    }

    unsafe fn each_instrument(&self, act: impl Fn(*mut pg_sys::Instrumentation)) {
        let both = [self.child, self.aggregation.cast()];
        let count = 1 + usize::from(!std::ptr::eq(both[0], both[1]));
        // SAFETY: live nodes.
        unsafe {
            let instruments = both[..count].iter().map(|state| (**state).instrument);
            instruments.filter(|one| !one.is_null()).for_each(act);
        }
    }
}

/// A nested aggregation as the engine's.
struct Program {
    /// The conditions of HAVING below.
    having: Vec<Predicate>,
    aggregation: Aggregation,
    keys: Vec<KeyShape>,
    shapes: Vec<Shape>,
    /// The keys below that are grouped by, by the codes of their shapes.
    grouped: Vec<usize>,
    scalars: Vec<Option<Scalar>>,
    /// The attributes that are looked at: entries, and the number lanes of keys behind them.
    wanted: Vec<usize>,
}

impl Program {
    /// # Safety
    /// A node in execution, and the plan below it.
    unsafe fn of(
        plan: &EnginePlan,
        outputs: &Outputs,
        node: *mut pg_sys::CustomScanState,
        below: *mut pg_sys::CustomScan,
    ) -> Translation<Program> {
        // SAFETY: the caller's promise.
        unsafe {
            let scalars = Scalars::Evaluated(&raw mut (*node).ss.ps);
            let mut translator = Translator::of_other_table(scalars);
            let conditions = nodes::list::<pg_sys::Node>((*below).scan.plan.qual);
            let conditions = conditions.map(|condition| over_entries(plan.index, condition));
            let having = predicates(&mut translator, conditions)?;
            let (mut keys, mut key_shapes, mut grouped) = (Vec::new(), Vec::new(), Vec::new());
            for expression in &plan.keys {
                if let Some(key) = outputs.key_of(*expression) {
                    let lane = outputs.entry_types.len() + key;
                    keys.push(Key::Number(Value::Column(NumberType::I64, lane)));
                    key_shapes.push(KeyShape::Joined(grouped.len()));
                    grouped.push(key);
                    continue;
                }
                let expression = outputs.over_entries(*expression)?;
                let (key, shape) = aggregate_call::key(&mut translator, expression)?;
                keys.push(key);
                key_shapes.push(shape);
            }
            let (mut aggregates, mut shapes) = (Vec::new(), Vec::new());
            for call in &plan.calls {
                let call = outputs.over_entries(call.cast())?;
                let (aggregate, shape) =
                    aggregate_call::aggregate(&mut translator, call.cast(), Arrival::Any)?;
                aggregates.push(aggregate);
                shapes.push(shape);
            }
            let mut wanted = translator.attributes();
            wanted.extend(grouped.iter().map(|key| outputs.entry_types.len() + key));
            Ok(Program {
                having,
                aggregation: Aggregation::new(keys, aggregates),
                keys: key_shapes,
                shapes,
                grouped,
                scalars: translator.scalars,
                wanted,
            })
        }
    }

    /// Takes in groups, of which there is at most a vector; gives how many passed HAVING below.
    fn add(
        &mut self,
        groups: Range<usize>,
        lanes: &mut GroupLanes,
        below: &Results,
    ) -> Evaluation<usize> {
        let rows = groups.len();
        lanes.fill(groups, below);
        let frame = lanes.frame(rows, &self.scalars);
        let mut selection = Selection::first(rows);
        narrow(&mut self.having, &frame, &mut selection)?;
        let passed = selection.count();
        self.aggregation.add_counted(&frame, &selection, passed)?;
        Ok(passed)
    }
}

impl NestedState {
    /// Aggregates the groups below; none if there or here they take too much memory.
    unsafe fn aggregate(
        &mut self,
        node: *mut pg_sys::CustomScanState,
    ) -> Translation<Option<Results>> {
        // SAFETY: a node of ours, in execution.
        unsafe {
            let below = Below::of(node);
            let plan = EnginePlan::of((*node).ss.ps.plan.cast());
            let keys = EnginePlan::of(below.plan()).keys.len();
            let outputs = Outputs::of_plan(plan.index, below.plan(), keys);
            let results = below.results();
            if results.stand_in().is_some() {
                return Ok(None);
            }
            let mut program = Program::of(&plan, &outputs, node, below.plan())?;
            let mut lanes = GroupLanes::new(&outputs, &program.wanted, results);
            let limit = plan.has_stand_in.then(stand_in::memory_limit);
            let (groups, mut passed) = (results.groups(), 0);
            for first in (0..groups).step_by(VECTOR_ROWS) {
                ports::CHECK_FOR_INTERRUPTS();
                let vector = first..groups.min(first + VECTOR_ROWS);
                match program.add(vector, &mut lanes, results) {
                    Ok(count) => passed += count,
                    Err(failure) => error::evaluation(failure),
                }
                self.bytes = program.aggregation.bytes();
                if limit.is_some_and(|limit| self.bytes > limit) {
                    return Ok(None);
                }
            }
            below.count(passed, groups - passed);
            program.aggregation.finish();
            self.groups = program.aggregation.groups();
            let grouped = program.grouped.iter();
            let values = grouped.map(|key| results.key_datums(*key)).collect();
            let shapes = (program.keys, program.shapes);
            let memory = scalar::memory(&raw mut (*node).ss.ps);
            Ok(Some(Results::new(
                program.aggregation,
                shapes,
                values,
                memory,
            )))
        }
    }
}
