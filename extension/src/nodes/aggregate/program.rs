//! The whole query as the engine executes it: conditions, join, grouping keys and aggregates.

use lanes_columnar::aggregate::{Aggregate, Aggregation, Key};
use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::number::{NumberType, Scalar};
use lanes_columnar::vector::predicate::Predicate;
use lanes_columnar::vector::selection::Selection;
use lanes_columnar::vector::value::{Operand, Value};
use lanes_columnar::vector::{Evaluation, narrow};
use pgrx::pg_sys;

use super::first_elements;
use super::undecoded::UndecodedKeys;
use super::zone_runs::ZoneRuns;
use crate::expressions::aggregate_call::{self, KeyShape, Shape};
use crate::expressions::joined_columns::CodedExpressions;
use crate::expressions::lanes_aggregate::Arrival;
use crate::expressions::row_function::KeysByCode;
use crate::expressions::shared_state;
use crate::expressions::translate::{Asked, Scalars, Translation, Translator};
use crate::joins::by_key::coded;
use crate::joins::by_key::stage::{Batch, HashStage};
use crate::joins::by_time::stage::JoinStage;
use crate::nodes::engine::early_groups::EarlyGroups;
use crate::nodes::engine::group_order::GroupOrder;
use crate::nodes::engine::plan::EnginePlan;
use crate::nodes::engine::results::Groups;
use crate::nodes::engine::waiting_rows::WaitingRows;
use crate::nodes::hash_join::column_child;
use crate::pg::exec::memory::Memory;
use crate::pg::exec::node::ExecNode;
use crate::pg::ports;
use crate::vectors::prune::{Filter, Prune, predicates};
use crate::vectors::vector_source::VectorSource;

/// The query.
pub struct Program {
    pub translator: Translator,
    pub filter: Filter,
    /// The join by time.
    pub join: Option<JoinStage>,
    pub hash_join: Option<HashStage>,
    /// The conditions on the rows of a join by time.
    quals_above: Vec<Predicate>,
    pub aggregation: Aggregation,
    /// The shapes of the keys and of the aggregates.
    pub keys: Vec<KeyShape>,
    pub shapes: Vec<Shape>,
    /// The attributes whose zones keys and aggregates read.
    zones_wanted: Vec<usize>,
    /// All conditions, if zones alone can prove that rows pass them.
    comparisons: Option<Vec<Prune>>,
    /// The attributes that everything but the conditions on the table reads.
    looked_at: Vec<usize>,
    undecoded: UndecodedKeys,
    /// The keys whose values have codes.
    by_code: KeysByCode,
    /// The memory of these values.
    pub values: Memory,
    /// Takes in rows when their groups exceed the memory limit.
    pub waiting: Option<WaitingRows>,
    /// Takes in groups of transition states when they exceed the memory limit.
    pub early: Option<EarlyGroups>,
}

/// The grouping keys and the aggregates, translated.
struct Grouping {
    keys: Vec<Key>,
    key_shapes: Vec<KeyShape>,
    aggregates: Vec<Aggregate>,
    /// The aggregate that has the state of each call.
    states: Vec<usize>,
    shapes: Vec<Shape>,
    zones_wanted: Vec<usize>,
    /// Keys that may not need their column's values, each with the attribute.
    undecoded: Vec<(usize, usize)>,
    by_code: KeysByCode,
}

impl Grouping {
    /// The grouping expressions over a small side have codes, which a frame contains first.
    fn of(
        plan: &EnginePlan,
        translator: &mut Translator,
        arrival: Arrival,
        by_code: KeysByCode,
        first_elements: &[bool],
    ) -> Translation<Grouping> {
        let mut grouping = Grouping {
            keys: Vec::new(),
            key_shapes: Vec::new(),
            aggregates: Vec::new(),
            states: Vec::new(),
            shapes: Vec::new(),
            zones_wanted: Vec::new(),
            undecoded: Vec::new(),
            by_code,
        };
        let mut codes = 0;
        for node in &plan.keys {
            if plan.is_small(*node) {
                let code = Value::Joined(NumberType::I64, codes);
                grouping.keys.push(Key::Number(code));
                grouping.key_shapes.push(KeyShape::Joined(codes));
                codes += 1;
                continue;
            }
            let expression = crate::pg::tree::plan_node((*node).cast());
            let (key, shape) = grouping.by_code.key(translator, expression, None)?;
            grouping.zones_wanted.extend(key.zone_attribute());
            let attribute = key.zone_attribute().or(key.repeats_attribute());
            let place = grouping.keys.len();
            let undecoded = attribute.map(|attribute| (place, attribute));
            grouping.undecoded.extend(undecoded);
            grouping.keys.push(key);
            grouping.key_shapes.push(shape);
        }
        for (place, call) in plan.calls.iter().enumerate() {
            translator.wants_first_element = first_elements[plan.keys.len() + place];
            let (aggregate, shape) = match call.is_partial() {
                true => aggregate_call::partial(translator, *call, &plan.calls)?,
                false => {
                    let by_code = &mut grouping.by_code;
                    aggregate_call::aggregate(translator, *call, arrival, by_code)?
                }
            };
            grouping.shapes.push(shape);
            let mut before = plan.calls[..place].iter();
            if let Some(other) = before.position(|other| shared_state::is_shared(*other, *call)) {
                grouping.states.push(grouping.states[other]);
                continue;
            }
            grouping.zones_wanted.extend(aggregate.zone_attribute());
            grouping.states.push(grouping.aggregates.len());
            grouping.aggregates.push(aggregate);
        }
        Ok(grouping)
    }
}

impl Program {
    /// The program of a plan, before the first vector. `None`: the right side of a join by time
    /// exceeds its memory limit.
    ///
    /// # Errors
    /// The reason why the engine cannot evaluate an expression.
    pub fn of(
        plan: &EnginePlan,
        node: ExecNode<'_>,
        arrival: Arrival,
    ) -> Translation<Option<Program>> {
        let grouped = plan.small_keys();
        let mut translator = translator(plan, Scalars::of(node), grouped.len());
        let values = node.lasting_memory().child(c"LanesAggregate keys");
        let coded = translator.coded().map_or(0, CodedExpressions::len);
        let by_code = KeysByCode::new(grouped.len() + coded, values);
        let filter = Filter::of(&mut translator, plan.quals.iter().copied())?;
        let of_quals = translator.asked();
        let columns = plan.keys.len() + plan.calls.len();
        let first_elements = first_elements::read_alone(node.plan(), columns);
        let grouping = Grouping::of(plan, &mut translator, arrival, by_code, &first_elements)?;
        let quals_above = predicates(&mut translator, plan.quals_above.iter().copied())?;
        let mut join = None;
        if let Some(plan) = &plan.join {
            join = JoinStage::begin(plan, node, &mut translator)?;
            if join.is_none() {
                return Ok(None);
            }
        }
        let mut hash_join = None;
        if let Some(join) = &plan.hash_join {
            let open = column_child::open;
            let stage = HashStage::begin(join, node, open, &mut translator, &grouped)?;
            hash_join = Some(stage);
        }
        let asked = translator.asked_since(&of_quals);
        let has_all_rows = join.is_none() && hash_join.is_none() && quals_above.is_empty();
        let comparisons = filter.comparisons().filter(|_| has_all_rows);
        let joins = (join, hash_join, quals_above);
        let table = (translator, filter, comparisons);
        Ok(Some(Program::assemble(
            table, joins, grouping, asked, values,
        )))
    }

    fn assemble(
        (translator, filter, comparisons): (Translator, Filter, Option<Vec<Prune>>),
        (join, hash_join, quals_above): (Option<JoinStage>, Option<HashStage>, Vec<Predicate>),
        mut grouping: Grouping,
        asked: Asked,
        values: Memory,
    ) -> Program {
        let has_once = |&(_, attribute): &(usize, usize)| asked.has_once(attribute);
        grouping.undecoded.retain(has_once);
        Program {
            comparisons,
            looked_at: asked.attributes(),
            translator,
            filter,
            join,
            hash_join,
            quals_above,
            aggregation: Aggregation::new(grouping.keys, grouping.aggregates)
                .with_answers_of(grouping.states),
            keys: grouping.key_shapes,
            shapes: grouping.shapes,
            zones_wanted: grouping.zones_wanted,
            undecoded: UndecodedKeys::of(grouping.undecoded.into_iter()),
            by_code: grouping.by_code,
            values,
            waiting: None,
            early: None,
        }
    }

    /// Whether rows may wait until there is memory for their groups: no join finds them, and no order of groups is
    /// wanted.
    pub fn can_wait(&self, plan: &EnginePlan) -> bool {
        let is_joined = self.join.is_some() || self.hash_join.is_some();
        let can_wait = self.by_code.is_empty() && self.aggregation.can_wait();
        !is_joined && plan.order.is_none() && can_wait
    }

    /// Bytes that the groups take, with the values of their keys.
    pub fn bytes(&self) -> usize {
        self.aggregation.bytes() + self.by_code.bytes()
    }

    /// The values of keys that have codes: those of a hash join, and those that PostgreSQL computed, which are taken.
    fn take_values(&mut self) -> Vec<Vec<Option<pg_sys::Datum>>> {
        let joined = self.hash_join.as_ref();
        let mut values = joined.map_or(Vec::new(), HashStage::values);
        values.extend(self.by_code.take_values());
        values
    }

    /// Puts the groups so far aside, if they are many and take more memory than `limit`. The columns after the
    /// aggregates have the values `absent`.
    pub fn put_groups_aside(&mut self, limit: usize, absent: &[Option<i32>], node: ExecNode<'_>) {
        if !EarlyGroups::are_too_large(self.aggregation.groups(), self.bytes(), limit) {
            return;
        }
        self.aggregation.finish();
        let early = self.early.take();
        let mut early = early.unwrap_or_else(|| EarlyGroups::new(node));
        let memory = node.lasting_memory().child(c"LanesAggregate groups");
        let groups = self.groups(memory, None);
        let mut groups = groups.with_absent(absent.to_vec());
        early.put(&mut groups, node);
        self.aggregation = groups.into_aggregation();
        memory.delete();
        self.aggregation.clear();
        self.by_code.clear();
        self.early = Some(early);
    }

    /// Takes the groups so far.
    pub fn groups(&mut self, memory: Memory, order: Option<GroupOrder>) -> Groups {
        let none = Aggregation::new(Vec::new(), Vec::new());
        let aggregation = std::mem::replace(&mut self.aggregation, none);
        let shapes = (self.keys.clone(), self.shapes.clone());
        let values = self.take_values();
        Groups::new(aggregation, shapes, values, memory, order)
    }

    /// The attributes of rows that keys and aggregates read.
    pub fn looked_at(&self) -> &[usize] {
        &self.looked_at
    }

    /// The attributes whose zones the program reads, ascending.
    pub fn take_zones_wanted(&mut self) -> Vec<usize> {
        let mut zones_wanted = std::mem::take(&mut self.zones_wanted);
        zones_wanted.extend_from_slice(&self.filter.zones_wanted);
        zones_wanted.sort_unstable();
        zones_wanted.dedup();
        zones_wanted
    }

    /// Goes on to the next vector; false at the end. Sealed rows are not read if their zones contain all that the query
    /// needs of them. Such rows count as `passed`.
    pub fn advance(
        &mut self,
        source: &mut VectorSource,
        scalars: &[Option<Scalar>],
        passed: &mut u64,
    ) -> bool {
        let Some(comparisons) = &self.comparisons else {
            return source.advance(&mut self.filter, scalars);
        };
        let zone_runs = ZoneRuns::new(comparisons, scalars, &mut self.aggregation, passed);
        source.advance_past(&mut self.filter, scalars, Some(&zone_runs))
    }

    /// Aggregates the current vector, and returns how many rows passed.
    ///
    /// # Errors
    /// The error that an expression raises, rows out of order, or too much memory.
    pub fn add(
        &mut self,
        source: &mut VectorSource,
        scalars: &[Option<Scalar>],
    ) -> Evaluation<usize> {
        let is_writing = self.waiting.as_ref().is_some_and(WaitingRows::is_writing);
        if !is_writing && self.comparisons.is_some() && source.all_pass(&self.filter) {
            return self.add_all(source, scalars);
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
        let aggregation = &mut self.aggregation;
        match &mut self.waiting {
            Some(waiting) => waiting.add(aggregation, &frame, &selection, passed)?,
            None => aggregation.add_counted(&frame, &selection, passed)?,
        }
        Ok(passed)
    }

    /// Aggregates all visible rows of the current vector.
    fn add_all(
        &mut self,
        source: &mut VectorSource,
        scalars: &[Option<Scalar>],
    ) -> Evaluation<usize> {
        let looked_at = &self.looked_at;
        let undecoded = &mut self.undecoded;
        let filled = undecoded.filled(looked_at, &self.aggregation, source, scalars);
        source.fill(Some(filled));
        let (visible, rows) = source.visible();
        let frame = Frame {
            substitutes: &self.undecoded.columns,
            ..source.frame(scalars)
        };
        let aggregation = &mut self.aggregation;
        match &mut self.waiting {
            Some(waiting) => waiting.add(aggregation, &frame, visible, rows)?,
            None => aggregation.add_counted(&frame, visible, rows)?,
        }
        Ok(rows)
    }

    /// Aggregates rows of the current vector with each small row that they find, and returns the number of joined rows.
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
            stage.gather(&selection);
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

    /// Aggregates the small rows of the batch that the join returns without a row of the table. Returns their number.
    ///
    /// # Errors
    /// The error that an expression raises.
    pub fn add_small_rows(&mut self, scalars: &[Option<Scalar>]) -> Evaluation<usize> {
        let Some(stage) = &mut self.hash_join else {
            return Ok(0);
        };
        let mut passed = 0;
        loop {
            let rows = stage.next_small_rows(scalars)?;
            if rows == 0 {
                return Ok(passed);
            }
            let selection = Selection::first(rows);
            stage.gather(&selection);
            let frame = Frame {
                joined: stage.operands(),
                ..Frame::of_nulls(rows, scalars)
            };
            self.aggregation.add_counted(&frame, &selection, rows)?;
            passed += rows;
            ports::CHECK_FOR_INTERRUPTS();
        }
    }

    /// Goes on to the next batch of a hash join. Without such a join there is one batch.
    pub fn next_batch(&mut self, is_first: bool) -> Batch {
        let Some(stage) = &mut self.hash_join else {
            return if is_first { Batch::Ready } else { Batch::None };
        };
        let batch = stage.next_batch();
        if batch == Batch::Ready {
            self.filter.key_sets = stage.key_sets();
        }
        batch
    }

    /// Stops before the end of the table.
    pub fn stop(&mut self, source: VectorSource) {
        if let Some(join) = &mut self.join {
            join.end();
        }
        source.end();
    }

    /// Bytes of a join by time.
    pub fn join_bytes(&self) -> usize {
        self.join.as_ref().map_or(0, JoinStage::bytes)
    }
}

/// The translator of a plan's expressions. A frame has this many codes of grouping expressions over small sides.
fn translator(plan: &EnginePlan, scalars: Scalars, codes: usize) -> Translator {
    let translator = match (&plan.join, &plan.hash_join) {
        (Some(join), _) => Translator::of_joined(scalars, join.joined_columns(plan.index)),
        (None, Some(join)) => {
            let coded = coded::of_all(join, plan.calls.iter().copied());
            Translator::of_joined(scalars, join.joined_columns(codes)).with_coded(coded)
        }
        (None, None) => Translator::new(scalars),
    };
    translator.with_row_functions()
}
