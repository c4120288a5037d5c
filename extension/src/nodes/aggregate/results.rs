//! The groups of an aggregation as rows: a slot after the other.

use std::ops::Range;

use lanes_columnar::aggregate::{Aggregation, KeyValue, Numbers};
use lanes_columnar::vector::number::Scalar;
use pgrx::pg_sys;

use crate::expressions;
use crate::expressions::aggregate_call::{KeyShape, Shape};
use crate::nodes::engine::group_order::GroupOrder;

/// The finished groups.
pub struct Results {
    aggregation: Aggregation,
    keys: Vec<KeyShape>,
    shapes: Vec<Shape>,
    /// The values of joined expressions that are grouped by, by code.
    joined: Vec<Vec<Option<pg_sys::Datum>>>,
    /// Datums that were made, for each key whose datums are made once a value: by the number of the value.
    made: Vec<Option<Vec<Option<pg_sys::Datum>>>>,
    /// The memory of the datums in `made`: it lives until the node starts again.
    memory: pg_sys::MemoryContext,
    next: usize,
    /// The groups in the order in which they are returned; none if that is the order of their numbers.
    order: Option<Vec<u32>>,
    /// PostgreSQL's own plan, where it gives the groups instead.
    stand_in: Option<*mut pg_sys::PlanState>,
}

impl Results {
    /// The groups of an aggregation, with the shapes of its keys and of its aggregates.
    pub fn new(
        aggregation: Aggregation,
        (keys, shapes): (Vec<KeyShape>, Vec<Shape>),
        joined: Vec<Vec<Option<pg_sys::Datum>>>,
        memory: pg_sys::MemoryContext,
    ) -> Results {
        let made = keys.iter().enumerate().map(|(key, shape)| {
            // A numeric takes longer to make than to look up; one that stands for a single group is made for it.
            let values = aggregation.key_values(key);
            let is_shared = values <= aggregation.groups() / 2;
            (matches!(shape, KeyShape::Epoch(_)) && is_shared).then(|| vec![None; values])
        });
        Results {
            made: made.collect(),
            aggregation,
            keys,
            shapes,
            joined,
            memory,
            next: 0,
            order: None,
            stand_in: None,
        }
    }

    /// These results, with their groups in an order.
    pub fn ordered(mut self, order: Option<GroupOrder>) -> Results {
        self.order = order.map(|order| order.sorted(&self.aggregation));
        self
    }

    /// Results that PostgreSQL's own plan gives instead of an aggregation.
    pub fn of_stand_in(stand_in: *mut pg_sys::PlanState) -> Results {
        Results {
            aggregation: Aggregation::new(Vec::new(), Vec::new()),
            keys: Vec::new(),
            shapes: Vec::new(),
            joined: Vec::new(),
            made: Vec::new(),
            memory: std::ptr::null_mut(),
            next: 0,
            order: None,
            stand_in: Some(stand_in),
        }
    }

    /// The plan that gives the groups instead.
    pub fn stand_in(&self) -> Option<*mut pg_sys::PlanState> {
        self.stand_in
    }

    /// Begins with the first group again; false if another plan gives the groups.
    pub fn rewind(&mut self) -> bool {
        self.next = 0;
        self.stand_in.is_none()
    }

    /// Writes the next group to a node's slot, in memory that lives as long as the row. False if there is no group left.
    ///
    /// # Safety
    /// A node in execution, and its slot.
    pub unsafe fn write_group(
        &mut self,
        node: *mut pg_sys::CustomScanState,
        slot: *mut pg_sys::TupleTableSlot,
    ) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            let memory = (*(*node).ss.ps.ps_ExprContext).ecxt_per_tuple_memory;
            let before = pg_sys::MemoryContextSwitchTo(memory);
            let is_group = self.write_next(slot);
            pg_sys::MemoryContextSwitchTo(before);
            is_group
        }
    }

    /// Writes the keys and answers of the next group; what the node never returns is NULL. False if there is no group
    /// left.
    ///
    /// # Safety
    /// The slot has an attribute for each entry of the plan's list. Memory of the current context lives as long as the
    /// row.
    unsafe fn write_next(&mut self, slot: *mut pg_sys::TupleTableSlot) -> bool {
        if self.next == self.aggregation.groups() {
            return false;
        }
        let group = match &self.order {
            Some(order) => order[self.next] as usize,
            None => self.next,
        };
        self.next += 1;
        // SAFETY: the caller's promise.
        unsafe {
            let count = (*(*slot).tts_tupleDescriptor).natts as usize;
            for index in 0..count {
                let value = match index.checked_sub(self.keys.len()) {
                    None => self.key(group, index),
                    Some(aggregate) => self.shapes.get(aggregate).and_then(|shape| {
                        expressions::result_datum::datum(
                            self.aggregation.answer(group, aggregate),
                            *shape,
                        )
                    }),
                };
                *(*slot).tts_isnull.add(index) = value.is_none();
                *(*slot).tts_values.add(index) = value.unwrap_or(pg_sys::Datum::null());
            }
        }
        true
    }

    /// A key of a group.
    ///
    /// # Safety
    /// As for [`write_next`](Self::write_next).
    unsafe fn key(&mut self, group: usize, key: usize) -> Option<pg_sys::Datum> {
        let number = self.aggregation.key_number(group, key);
        // SAFETY: the caller's promise.
        unsafe { self.key_datum(number, key) }
    }

    /// The value of a key that has this number.
    ///
    /// # Safety
    /// Memory of the current context lives as long as the datum.
    unsafe fn key_datum(&mut self, number: u32, key: usize) -> Option<pg_sys::Datum> {
        let shape = self.keys[key];
        let value = self.aggregation.key_value(number, key);
        if let (KeyValue::Number(code), KeyShape::Joined(joined)) = (value, shape) {
            return self.joined[joined][code.0 as usize];
        }
        let Some(made) = &mut self.made[key] else {
            return expressions::result_datum::key_datum(value, shape);
        };
        let made = &mut made[number as usize];
        if made.is_none() {
            // SAFETY: a live context.
            unsafe {
                let before = pg_sys::MemoryContextSwitchTo(self.memory);
                *made = expressions::result_datum::key_datum(value, shape);
                pg_sys::MemoryContextSwitchTo(before);
            }
        }
        *made
    }

    /// How many groups there are.
    pub fn groups(&self) -> usize {
        self.aggregation.groups()
    }

    /// The numbers of some groups' values of a key, one after the other.
    pub fn key_numbers(&self, key: usize, groups: Range<usize>, out: &mut [u32]) {
        self.aggregation.key_numbers(key, groups, out);
    }

    /// The answers of an aggregate for some groups one after the other, if it gives them so; false if it does not.
    pub fn numbers(&self, aggregate: usize, groups: Range<usize>, out: &mut Numbers<'_>) -> bool {
        self.aggregation.numbers(aggregate, groups, out)
    }

    /// All values of a key, by their numbers. They live until the node starts again.
    ///
    /// # Safety
    /// Runs inside of a query.
    pub unsafe fn key_datums(&mut self, key: usize) -> Vec<Option<pg_sys::Datum>> {
        // SAFETY: the node's own memory; it is switched back also when an ERROR passes.
        unsafe {
            let before = pg_sys::MemoryContextSwitchTo(self.memory);
            let values = 0..self.aggregation.key_values(key) as u32;
            let datums = values.map(|number| self.key_datum(number, key)).collect();
            pg_sys::MemoryContextSwitchTo(before);
            datums
        }
    }

    /// The answer of an aggregate for a group, where that is a number or a truth.
    pub fn answer(&self, group: usize, aggregate: usize) -> Option<Scalar> {
        let (answer, shape) = (
            self.aggregation.answer(group, aggregate),
            self.shapes[aggregate],
        );
        expressions::result_datum::scalar(answer, shape)
    }
}
