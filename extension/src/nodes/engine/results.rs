//! The groups of an aggregation as rows.

use std::ops::Range;

use lanes_columnar::aggregate::{Aggregation, Answer, KeyValue, Numbers};
use lanes_columnar::vector::number::Scalar;
use pgrx::pg_sys;

use super::early_groups::EarlyGroups;
use super::group_limit::GroupLimit;
use super::group_order::GroupOrder;
use super::waiting_rows::WaitingRows;
use crate::custom_scan::node::NextRow;
use crate::error;
use crate::expressions::aggregate_call::{KeyShape, Shape};
use crate::expressions::result_datum;
use crate::pg::exec::child::Child;
use crate::pg::exec::memory::Memory;
use crate::pg::exec::node::ExecNode;
use crate::pg::exec::slot::{Slot, SlotWriter};

/// The groups, or the plan that returns them instead.
pub enum Results {
    Groups(Box<Groups>),
    /// PostgreSQL's own plan.
    StandIn(Child),
}

impl Results {
    /// The plan that returns the groups instead.
    pub fn stand_in(&self) -> Option<Child> {
        match self {
            Results::Groups(_) => None,
            Results::StandIn(child) => Some(*child),
        }
    }

    /// The groups, if all of them are in memory, and stay there.
    fn kept(&mut self) -> Option<&mut Groups> {
        self.groups().filter(|groups| groups.waiting.is_none())
    }

    /// The groups, unless they are of a part of the rows.
    pub fn groups(&mut self) -> Option<&mut Groups> {
        match self {
            Results::Groups(groups) if groups.partial.is_none() => Some(groups),
            Results::Groups(_) | Results::StandIn(_) => None,
        }
    }

    /// The rows whose groups do not fit into memory together.
    pub fn waiting(&self) -> Option<&WaitingRows> {
        match self {
            Results::Groups(groups) => groups.waiting.as_ref(),
            Results::StandIn(_) => None,
        }
    }

    /// Deletes temporary files.
    pub fn free(self) {
        if let Results::Groups(groups) = self {
            groups.waiting.into_iter().for_each(WaitingRows::free);
            let early = groups.partial.and_then(|partial| partial.early);
            early.into_iter().for_each(EarlyGroups::free);
        }
    }

    /// Returns to the first group. False if parameters have changed, groups are not in memory any more, another
    /// plan returns them, or they are groups of a part of the rows. Otherwise equal parameters and an
    /// equal snapshot give equal groups.
    pub fn rewind(&mut self, node: ExecNode<'_>) -> bool {
        let is_equal = node.changed_parameters().is_null();
        let groups = self.kept().filter(|_| is_equal);
        let is_rewound = groups.is_some();
        groups.into_iter().for_each(|groups| groups.next = 0);
        is_rewound
    }

    /// Writes the next group to a node's row, with values that live as long as the row.
    pub fn write_next(&mut self, node: ExecNode<'_>, row: &mut SlotWriter<'_>) -> NextRow {
        let is_written = match self {
            Results::Groups(groups) => {
                if let Some(early) = groups.next_early() {
                    return NextRow::Other(early);
                }
                let memory = node.context().memory();
                memory.enter(|| groups.write_next(row))
            }
            Results::StandIn(_) => false,
        };
        NextRow::written(is_written)
    }
}

/// The finished groups.
pub struct Groups {
    aggregation: Aggregation,
    keys: Vec<KeyShape>,
    shapes: Vec<Shape>,
    /// The values of grouping expressions over small sides, by code.
    joined: Vec<Vec<Option<pg_sys::Datum>>>,
    /// For each key whose datums are shared by groups, the datums by the number of the value.
    shared: Vec<Option<Vec<Option<pg_sys::Datum>>>>,
    /// The memory of shared datums. It lives until the node starts again, or the groups are replaced.
    memory: Memory,
    /// A part of the memory above it, for groups that will be replaced.
    part: Option<Memory>,
    next: usize,
    /// The groups in the order in which they are returned; `None` for the order of their numbers.
    order: Option<Vec<u32>>,
    /// The rows of further groups.
    waiting: Option<WaitingRows>,
    /// The transition states of a part of the rows: they are freed once they were returned.
    partial: Option<Partial>,
    /// The groups that the query can return, if not all. `order` has them.
    limit: Option<GroupLimit>,
    /// The values of columns after the aggregates.
    absent: Vec<Option<i32>>,
}

impl Groups {
    /// The groups of an aggregation, with the shapes of its keys and of its aggregates.
    pub fn new(
        aggregation: Aggregation,
        (keys, shapes): (Vec<KeyShape>, Vec<Shape>),
        joined: Vec<Vec<Option<pg_sys::Datum>>>,
        memory: Memory,
        order: Option<GroupOrder>,
    ) -> Groups {
        Groups {
            shared: shared(&aggregation, &keys),
            order: order.map(|order| order.sorted(&aggregation)),
            aggregation,
            keys,
            shapes,
            joined,
            memory,
            part: None,
            next: 0,
            waiting: None,
            partial: None,
            limit: None,
            absent: Vec::new(),
        }
    }

    /// Groups of which only those are returned that a query with this limit can return.
    pub fn limited(self, limit: Option<GroupLimit>) -> Groups {
        let mut groups = Groups { limit, ..self };
        groups.choose();
        groups
    }

    /// Chooses the groups that the limit allows.
    fn choose(&mut self) {
        if let Some(limit) = &self.limit {
            self.order = limit.groups(&self.aggregation, &self.keys, &self.shapes);
        }
    }

    /// Groups with columns after the aggregates that have one value each.
    pub fn with_absent(self, absent: Vec<Option<i32>>) -> Groups {
        Groups { absent, ..self }
    }

    /// Groups that are followed by those of rows in temporary files.
    pub fn followed_by(self, waiting: WaitingRows) -> Groups {
        Groups {
            waiting: Some(waiting),
            ..self
        }
    }

    /// Groups of a part of the rows. They are returned after those that were put aside, and then freed with the memory
    /// of their keys' values: there may be a node for each partition.
    pub fn of_part(self, early: Option<EarlyGroups>, values: Memory) -> Groups {
        let partial = Some(Partial {
            early,
            values: Some(values),
        });
        Groups { partial, ..self }
    }

    /// The aggregation, all of whose groups were returned.
    pub fn into_aggregation(self) -> Aggregation {
        self.aggregation
    }

    /// The next row that was put aside before.
    fn next_early(&mut self) -> Option<Slot> {
        let early = &mut self.partial.as_mut()?.early;
        let row = early.as_mut()?.next_row();
        if row.is_none() {
            early.take().into_iter().for_each(EarlyGroups::free);
        }
        row
    }

    /// Frees the groups of a part, all of which were returned.
    fn free_part(&mut self) {
        let Some(partial) = &mut self.partial else {
            return;
        };
        if let Some(values) = partial.values.take() {
            self.aggregation.clear();
            self.aggregation = Aggregation::new(Vec::new(), Vec::new());
            (self.joined, self.shared, self.order) = (Vec::new(), Vec::new(), Some(Vec::new()));
            self.next = 0;
            values.delete();
        }
    }

    /// Whether there are rows whose groups are not in memory yet.
    pub fn has_more(&self) -> bool {
        self.waiting.is_some()
    }

    /// Replaces the groups, all of which were returned, by the next ones; false if there is none.
    pub fn replace(&mut self) -> bool {
        let Some(waiting) = &mut self.waiting else {
            return false;
        };
        match self.part {
            Some(part) => part.reset(),
            None => self.part = Some(self.memory.child(c"LanesAggregate part")),
        }
        let aggregation = &mut self.aggregation;
        let is_replaced = waiting
            .next_pass(aggregation)
            .unwrap_or_else(|failure| error::evaluation(failure));
        self.shared = shared(aggregation, &self.keys);
        self.next = 0;
        self.choose();
        is_replaced
    }

    /// Writes the keys and results of the next group; false if there is none. Columns that the node never returns are
    /// NULL. Values are allocated in the current memory context.
    pub(super) fn write_next(&mut self, row: &mut SlotWriter<'_>) -> bool {
        let partial = self.partial.as_ref();
        if partial.is_some_and(|partial| partial.values.is_none()) {
            return false;
        }
        while self.next == self.returned() {
            if !self.replace() {
                self.free_part();
                return false;
            }
        }
        let group = match &self.order {
            Some(order) => order[self.next] as usize,
            None => self.next,
        };
        self.next += 1;
        for index in 0..row.width() {
            let value = match index.checked_sub(self.keys.len()) {
                None => self.key_datum(self.aggregation.key_number(group, index), index),
                Some(aggregate) => self.answer_datum(group, aggregate),
            };
            row.set(index, value);
        }
        true
    }

    /// How many of the groups in memory are returned.
    fn returned(&self) -> usize {
        let order = self.order.as_ref();
        order.map_or(self.aggregation.groups(), Vec::len)
    }

    /// The result of an aggregate for a group; `None` also if there is no such aggregate.
    fn answer_datum(&self, group: usize, aggregate: usize) -> Option<pg_sys::Datum> {
        let Some(shape) = self.shapes.get(aggregate) else {
            let absent = self.absent.get(aggregate - self.shapes.len());
            return absent.copied().flatten().map(pg_sys::Datum::from);
        };
        match self.aggregation.answer(group, aggregate) {
            Answer::List => result_datum::integers(self.aggregation.list(group, aggregate)),
            Answer::Several => {
                result_datum::numbers(self.aggregation.several(group, aggregate), *shape)
            }
            answer => result_datum::datum(answer, *shape),
        }
    }

    /// The value of a key that has this number.
    fn key_datum(&mut self, number: u32, key: usize) -> Option<pg_sys::Datum> {
        let shape = self.keys[key];
        let value = self.aggregation.key_value(number, key);
        if let (KeyValue::Number(code), KeyShape::Joined(joined)) = (value, shape) {
            return self.joined[joined][code.0 as usize];
        }
        let Some(shared) = &mut self.shared[key] else {
            return result_datum::key_datum(value, shape);
        };
        let shared = &mut shared[number as usize];
        if shared.is_none() {
            let memory = self.part.unwrap_or(self.memory);
            *shared = memory.enter(|| result_datum::key_datum(value, shape));
        }
        *shared
    }

    /// How many groups there are.
    pub fn count(&self) -> usize {
        self.aggregation.groups()
    }

    /// Writes the numbers of the groups' values of a key.
    pub fn key_numbers(&self, key: usize, groups: Range<usize>, out: &mut [u32]) {
        self.aggregation.key_numbers(key, groups, out);
    }

    /// Writes the results of an aggregate for these groups; false if it does not store them as numbers.
    pub fn numbers(&self, aggregate: usize, groups: Range<usize>, out: &mut Numbers<'_>) -> bool {
        self.aggregation.numbers(aggregate, groups, out)
    }

    /// All values of a key, by their numbers. They live until the node starts again, or the groups are replaced.
    pub fn key_datums(&mut self, key: usize) -> Vec<Option<pg_sys::Datum>> {
        let values = 0..self.aggregation.key_values(key) as u32;
        let memory = self.part.unwrap_or(self.memory);
        memory.enter(|| values.map(|number| self.key_datum(number, key)).collect())
    }

    /// The result of an aggregate for a group, if it is a number or a bool.
    pub fn result(&self, group: usize, aggregate: usize) -> Option<Scalar> {
        let result = self.aggregation.answer(group, aggregate);
        result_datum::scalar(result, self.shapes[aggregate])
    }
}

/// What groups of a part of the rows have besides.
struct Partial {
    /// The rows of groups that are returned before these.
    early: Option<EarlyGroups>,
    /// The memory of the keys' values, until all groups were returned.
    values: Option<Memory>,
}

/// Room for the datums of keys that groups share.
fn shared(aggregation: &Aggregation, keys: &[KeyShape]) -> Vec<Option<Vec<Option<pg_sys::Datum>>>> {
    let keys = keys.iter().enumerate();
    keys.map(|(key, shape)| {
        // A numeric costs more to make than to look up, unless it belongs to a single group.
        let values = aggregation.key_values(key);
        let is_shared = values <= aggregation.groups() / 2;
        (matches!(shape, KeyShape::Epoch(_)) && is_shared).then(|| vec![None; values])
    })
    .collect()
}
