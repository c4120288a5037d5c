//! Aggregates with `ORDER BY` that PostgreSQL computes: its transition function is called for the rows of a group in
//! their order.
//!
//! The state of a group is made when its result is asked for, and is dropped when that of another group is: a state may
//! be as large as its rows, and results are returned one by one.

use std::cell::RefCell;

use lanes_columnar::aggregate::first_row::FirstRow;
use lanes_columnar::aggregate::ordered_rows::OrderedRows;
use lanes_columnar::aggregate::{Accumulator, Added, Answer, Grouping};
use lanes_columnar::over::numbers::NumberColumn;
use lanes_columnar::vector::Evaluation;
use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::number::Scalar;
use lanes_columnar::vector::selection::Selection;
use pgrx::pg_sys::Datum;

use super::distinct_aggregate::SharedCodes;
use super::memory::{Memory, ValueLayout};
use super::transition::TransitionAggregate;
use super::value_order::ValueOrder;

/// How the number of an argument becomes a datum.
pub type ToDatum = fn(Scalar) -> Datum;

/// An argument of the transition function.
pub enum OrderedArgument {
    /// One value in all rows, and whether it is NULL.
    Same((Datum, bool)),
    /// The next argument of the rows.
    Each(ToDatum),
}

/// The rows.
pub enum Rows {
    /// All of them.
    All(OrderedRows),
    /// The first of each group, whose argument, with this layout, is the only one that varies.
    First(FirstRow, ValueLayout),
}

/// The codes of a key's values.
pub struct CodedKey {
    /// The key, by number.
    pub key: usize,
    pub codes: SharedCodes,
    pub order: ValueOrder,
}

/// An aggregate of ordered rows whose functions are PostgreSQL's.
pub struct OrderedAggregate {
    rows: Rows,
    arguments: Vec<OrderedArgument>,
    coded: Vec<CodedKey>,
    /// The state of one group.
    state: RefCell<TransitionAggregate>,
    /// The memory of values that are passed by reference, and of those that have codes.
    memory: Memory,
    /// Memory for the values in use, while the others are freed.
    spare: Memory,
    /// The bytes of memory at which values that are no longer in use are freed.
    freed_from: usize,
}

/// Fewer bytes of values are not worth freeing.
const FREED_FROM: usize = 64 << 10;

/// An argument in the rows of a group.
enum Values<'a> {
    Same((Datum, bool)),
    Each(&'a NumberColumn, ToDatum),
    One(Option<Scalar>, ToDatum),
}

impl Values<'_> {
    /// The value in a row, and whether it is NULL.
    #[inline]
    fn of_row(&self, row: u32) -> (Datum, bool) {
        let (value, to_datum) = match self {
            Values::Same(value) => return *value,
            Values::Each(column, to_datum) => (column.get(row as usize), to_datum),
            Values::One(value, to_datum) => (*value, to_datum),
        };
        value.map_or((Datum::null(), true), |value| (to_datum(value), false))
    }
}

impl OrderedAggregate {
    /// An aggregate of rows, with the state of no row. Both memories are for values alone, and only the first one is in
    /// use.
    pub fn new(
        rows: Rows,
        arguments: Vec<OrderedArgument>,
        coded: Vec<CodedKey>,
        state: TransitionAggregate,
        [memory, spare]: [Memory; 2],
    ) -> OrderedAggregate {
        OrderedAggregate {
            rows,
            arguments,
            coded,
            state: RefCell::new(state),
            memory,
            spare,
            freed_from: FREED_FROM,
        }
    }

    /// Frees the values of rows that are no longer the first of their groups, once they may be most of the memory.
    fn free_replaced(&mut self) {
        let Rows::First(first, layout) = &mut self.rows else {
            return;
        };
        if layout.by_value || self.memory.allocated_bytes() < self.freed_from {
            return;
        }
        let (layout, memory, spare) = (*layout, self.memory, self.spare);
        let copied = |to: Memory| {
            move |value: Scalar| {
                let value = Datum::from(value.0 as usize);
                Scalar(to.copy(value, layout).value() as u64)
            }
        };
        first.replace(copied(spare));
        memory.reset();
        first.replace(copied(memory));
        spare.reset();
        self.freed_from = FREED_FROM.max(2 * memory.allocated_bytes());
    }

    /// The arguments of a group's rows, and the rows in order.
    fn of_group(&self, group: usize) -> (Vec<Values<'_>>, &[u32]) {
        let rows: &[u32] = match &self.rows {
            Rows::All(rows) => rows.of_group(group),
            Rows::First(first, _) if first.of_group(group).is_some() => &[0],
            Rows::First(..) => &[],
        };
        let mut next = 0..;
        let values = self.arguments.iter().map(|argument| match argument {
            OrderedArgument::Same(value) => Values::Same(*value),
            OrderedArgument::Each(to_datum) => match &self.rows {
                Rows::All(rows) => Values::Each(rows.argument(next.next().unwrap_or(0)), *to_datum),
                Rows::First(first, _) => Values::One(first.of_group(group).flatten(), *to_datum),
            },
        });
        (values.collect(), rows)
    }
}

impl Accumulator for OrderedAggregate {
    fn resize(&mut self, groups: usize) {
        match &mut self.rows {
            Rows::All(rows) => rows.resize(groups),
            Rows::First(first, _) => first.resize(groups),
        }
    }

    fn add(&mut self, _grouping: &Grouping<'_>, _added: Added<'_>) -> Evaluation<()> {
        unreachable!("an aggregate of rows")
    }

    fn add_rows(
        &mut self,
        grouping: &Grouping<'_>,
        frame: &Frame<'_>,
        selection: &Selection,
    ) -> Evaluation<()> {
        match &mut self.rows {
            Rows::All(rows) => rows.add(grouping, frame, selection),
            Rows::First(first, _) => {
                first.add(grouping, frame, selection)?;
                self.free_replaced();
                Ok(())
            }
        }
    }

    fn finish(&mut self) {
        let Rows::All(rows) = &mut self.rows else {
            return;
        };
        for coded in &mut self.coded {
            let codes = coded.codes.borrow();
            rows.rank(coded.key, &coded.order.places(codes.values()));
        }
        rows.arrange();
    }

    fn clear(&mut self) {
        match &mut self.rows {
            Rows::All(rows) => rows.clear(),
            Rows::First(first, _) => first.clear(),
        }
        let codes = self.coded.iter();
        codes.for_each(|coded| coded.codes.borrow_mut().clear());
        self.memory.reset();
    }

    fn can_wait(&self) -> bool {
        false
    }

    fn answer(&self, group: usize) -> Answer {
        let (values, rows) = self.of_group(group);
        let mut state = self.state.borrow_mut();
        state.clear();
        state.resize(1);
        state.add_each(0, rows.len(), values.len(), |argument, place| {
            values[argument].of_row(rows[place])
        });
        state.answer(0)
    }

    fn bytes(&self) -> usize {
        let rows = match &self.rows {
            Rows::All(rows) => rows.bytes(),
            Rows::First(first, _) => first.bytes(),
        };
        // The memory counts the values that have codes.
        let codes = self.coded.iter();
        let codes = codes.map(|coded| coded.codes.borrow().table_bytes());
        rows + codes.sum::<usize>() + self.memory.allocated_bytes()
    }
}
