//! Aggregates with `DISTINCT` that PostgreSQL computes: its transition function is called for each distinct value of a
//! group, in the order of the values.

use std::cell::RefCell;
use std::rc::Rc;

use lanes_columnar::aggregate::distinct_values::{DistinctValues, ValueTaker};
use lanes_columnar::aggregate::{Accumulator, Answer};
use pgrx::pg_sys::Datum;

use super::memory::Memory;
use super::transition::TransitionAggregate;
use super::value_codes::ValueCodes;
use super::value_order::ValueOrder;
use crate::pg::tree::Const;

/// The codes of values, which the aggregate and its argument share.
pub type SharedCodes = Rc<RefCell<ValueCodes>>;

/// An aggregate of distinct values whose functions are PostgreSQL's.
pub struct DistinctAggregate {
    states: TransitionAggregate,
    codes: SharedCodes,
    /// The memory of the values.
    memory: Memory,
    order: ValueOrder,
    /// The other arguments, which are constants.
    others: Vec<(Datum, bool)>,
}

impl DistinctAggregate {
    /// An aggregate with these states. The values, in memory of their own, are its first argument.
    pub fn accumulator(
        states: TransitionAggregate,
        (codes, memory): (SharedCodes, Memory),
        order: ValueOrder,
        others: &[Const<'_>],
    ) -> Box<dyn Accumulator> {
        let others = others.iter();
        Box::new(DistinctValues::new(DistinctAggregate {
            states,
            codes,
            memory,
            order,
            others: others
                .map(|it| (it.constvalue(), it.constisnull()))
                .collect(),
        }))
    }
}

impl ValueTaker for DistinctAggregate {
    fn resize(&mut self, groups: usize) {
        self.states.resize(groups);
    }

    fn ordered_codes(&mut self) -> Vec<u32> {
        self.order.sorted(self.codes.borrow().values())
    }

    fn take(&mut self, group: usize, codes: &[u32]) {
        let known = self.codes.borrow();
        let value = |code: u32| {
            let value = known.values()[code as usize];
            (value.unwrap_or(Datum::null()), value.is_none())
        };
        let (others, count) = (&self.others, 1 + self.others.len());
        self.states
            .add_each(
                group,
                codes.len(),
                count,
                |argument, place| match argument.checked_sub(1) {
                    None => value(codes[place]),
                    Some(other) => others[other],
                },
            );
    }

    fn answer(&self, group: usize) -> Answer {
        self.states.answer(group)
    }

    fn clear(&mut self) {
        self.states.clear();
        self.codes.borrow_mut().clear();
        self.memory.reset();
    }

    fn bytes(&self) -> usize {
        // Each code has a place in the order, and a rank.
        let codes = self.codes.borrow();
        let ranks = codes.values().len() * 2 * size_of::<u32>();
        self.states.bytes() + codes.bytes() + ranks
    }

    fn bytes_taken(&self) -> usize {
        self.codes.borrow().mean_bytes() + size_of::<Datum>()
    }
}
