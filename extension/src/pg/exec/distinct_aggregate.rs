//! Aggregates with `DISTINCT` that PostgreSQL computes: its transition function is called for each distinct value of a
//! group, in the order of the values.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::rc::Rc;

use lanes_columnar::aggregate::distinct_values::{DistinctValues, ValueTaker};
use lanes_columnar::aggregate::{Accumulator, Answer};
use pgrx::pg_sys::{Datum, Oid};

use super::callable::SqlFunction;
use super::memory::Memory;
use super::scalar::RunningNode;
use super::transition::TransitionAggregate;
use super::value_codes::ValueCodes;
use crate::pg::tree::{Const, SortGroupClause};
use crate::pg::{catalog, ports};

/// The codes of values, which the aggregate and its argument share.
pub type SharedCodes = Rc<RefCell<ValueCodes>>;

/// The order of values.
pub struct ValueOrder {
    less: SqlFunction,
    nulls_first: bool,
}

impl ValueOrder {
    /// The order of a clause of DISTINCT.
    pub fn new(clause: SortGroupClause<'_>, collation: Oid, node: RunningNode) -> ValueOrder {
        let less = catalog::operator_function(clause.sortop());
        ValueOrder {
            less: node.memory().enter(|| SqlFunction::new(less, collation, 2)),
            nulls_first: clause.nulls_first(),
        }
    }

    /// Whether a value comes before another one, which differs from it.
    fn is_before(&mut self, a: Option<Datum>, b: Option<Datum>) -> bool {
        match (a, b) {
            (Some(a), Some(b)) => self.less.call(&[a, b]).value() & 0xff != 0,
            (a, _) => a.is_none() == self.nulls_first,
        }
    }
}

/// An aggregate of distinct values whose functions are PostgreSQL's.
pub struct DistinctAggregate {
    states: TransitionAggregate,
    codes: SharedCodes,
    /// The memory of the values.
    memory: Memory,
    order: ValueOrder,
    /// The other arguments, which are constants.
    others: Vec<(Datum, bool)>,
    /// The values of a group.
    values: Vec<(Datum, bool)>,
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
            values: Vec::new(),
        }))
    }
}

impl ValueTaker for DistinctAggregate {
    fn resize(&mut self, groups: usize) {
        self.states.resize(groups);
    }

    fn ordered_codes(&mut self) -> Vec<u32> {
        let codes = self.codes.borrow();
        let values = codes.values();
        let order = &mut self.order;
        let mut ordered: Vec<u32> = (0..values.len() as u32).collect();
        ordered.sort_by(|a, b| {
            ports::CHECK_FOR_INTERRUPTS();
            let (a, b) = (values[*a as usize], values[*b as usize]);
            match (order.is_before(a, b), a.is_none() || b.is_none()) {
                (true, _) => Ordering::Less,
                (false, true) => Ordering::Greater,
                (false, false) if order.is_before(b, a) => Ordering::Greater,
                (false, false) => Ordering::Equal,
            }
        });
        ordered
    }

    fn take(&mut self, group: usize, codes: &[u32]) {
        let known = self.codes.borrow();
        let value = |code: &u32| {
            let value = known.values()[*code as usize];
            (value.unwrap_or(Datum::null()), value.is_none())
        };
        self.values.clear();
        self.values.extend(codes.iter().map(value));
        self.states.add_values(group, &self.values, &self.others);
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
