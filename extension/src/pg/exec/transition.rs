//! Aggregates that PostgreSQL computes: its own transition function is called for each row of a vector.
//!
//! ```text
//! selected rows ──► arguments, from lanes or by expressions ──► transition function ──► the state of the row's group
//!                   └───────────── up to 64 rows within one error boundary ──────────┘
//! group ──► final function ──► result
//!       └─► serialisation function ──► a worker's state, which PostgreSQL combines with those of others
//! ```
//! Invariants, which are those of PostgreSQL's own node:
//! - Functions see an `AggState` as their context, because many of them look for the memory of the aggregate there.
//! - A state that is passed by reference lies in that memory. A function may change its state in place. If it returns
//!   another value, that is copied into the memory, and the old state is freed.
//! - A strict function is not called for a row with an argument that is NULL. If a group has no state yet, its first
//!   argument becomes the state.
//! - No function is volatile, because rows are added again if PostgreSQL's own plan takes over.
//! - The owner of the aggregate may execute its functions.
//! - The final function leaves the state as it is, because a group may be returned more than once.

use std::cell::RefCell;

use lanes_columnar::aggregate::{Accumulator, Added, Answer, Grouping};
use lanes_columnar::vector::Evaluation;
use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::selection::Selection;
use pgrx::IntoDatum;
use pgrx::pg_sys::Datum;

use super::aggregate_functions::{FunctionsOfCall, Merge, value_of_text};
use super::callable::{ARGUMENTS_MAX, AggregateContext, Callable, StateValues};
use super::expression::{RowContext, RowExpression};
use super::memory::ValueLayout;
use super::row_evaluator::RowReader;
use super::scalar::RunningNode;
use crate::pg::aggregate_catalog::{self, AggregateFunctions};
use crate::pg::tree::{Aggref, Expr};
use crate::pg::{executor, permission, ports};

/// The most rows within one boundary.
const BATCH: usize = 64;
/// Values of one batch take at most this many bytes, but for those of its last row.
const BATCH_BYTES: usize = 1 << 20;

/// The state of a group.
#[derive(Clone, Copy)]
struct State {
    value: Datum,
    is_null: bool,
    /// Whether the first argument becomes the state.
    is_unset: bool,
}

/// An aggregate whose functions are PostgreSQL's.
pub struct TransitionAggregate {
    reader: RowReader,
    arguments: Vec<RowExpression>,
    transition: Callable,
    /// Makes the result of a state: the final function or, of a worker's aggregate, the serialisation function.
    finish: Option<RefCell<Callable>>,
    merge: Option<RefCell<Merge>>,
    /// The state of no rows.
    initial: Option<Datum>,
    /// The values of states that are passed by reference.
    values: StateValues,
    states: Vec<State>,
}

impl TransitionAggregate {
    /// The functions of an aggregate; `None` if it cannot be computed here.
    pub fn functions(call: Aggref<'_>) -> Option<AggregateFunctions> {
        let functions = AggregateFunctions::of(call.aggfnoid())?;
        let arguments = call.aggargtypes().iter().count();
        let is_simple = functions.is_normal && arguments < ARGUMENTS_MAX;
        let is_repeatable = functions.finish_keeps_state && !functions.is_volatile();
        (is_simple && is_repeatable).then_some(functions)
    }

    /// The states of an aggregate with these functions, whose arguments read the reader's columns of the node's table.
    /// There is no group yet. `can_merge` is for [`answer_with`](Self::answer_with).
    pub fn new(
        call: Aggref<'_>,
        functions: AggregateFunctions,
        arguments: &[Expr<'_>],
        reader: RowReader,
        can_merge: bool,
        node: RunningNode,
    ) -> TransitionAggregate {
        if let Some(owner) = aggregate_catalog::owner(call.aggfnoid()) {
            let finish = match call.is_partial() {
                true => functions.serialise,
                false => functions.finish,
            };
            let functions = finish.into_iter().chain([functions.transition]);
            functions.for_each(|function| permission::check_execute_by(function, owner));
        }
        let memory = node.memory().child(c"lanes transition states");
        let state = call.aggtranstype();
        let context = AggregateContext::new(call, reader.context(), memory, node);
        let of_call = FunctionsOfCall {
            call,
            types: call.aggargtypes().iter().collect(),
            context,
            node,
        };
        let finish = of_call.finish(&functions);
        let merge = match can_merge {
            true => of_call.merge(&functions),
            false => None,
        };
        let initial = functions.initial.as_ref();
        let initial = initial.map(|text| node.memory().enter(|| value_of_text(text, state)));
        TransitionAggregate {
            reader,
            arguments: arguments
                .iter()
                .map(|argument| node.initialised(*argument))
                .collect(),
            transition: of_call.transition(functions.transition),
            finish: finish.map(RefCell::new),
            merge: merge.map(RefCell::new),
            initial,
            values: StateValues {
                memory,
                layout: ValueLayout::of_type(state),
            },
            states: Vec::new(),
        }
    }

    /// Whether a group has a state that is not NULL.
    pub fn has_state(&self, group: usize) -> bool {
        !self.states[group].is_null
    }

    /// The result for a group, to whose state one in serialised form is added. The group's state stays as it is.
    ///
    /// # Panics
    /// If the aggregate's states have no such form, or [`new`](Self::new) was not told to prepare it.
    pub fn answer_with(&self, group: usize, serialised: &[u8]) -> Answer {
        let State { value, is_null, .. } = self.states[group];
        let Some(merge) = &self.merge else {
            panic!("states without a serialised form");
        };
        let serialised = serialised.into_datum().unwrap_or(Datum::null());
        let mut merge = merge.borrow_mut();
        let Merge {
            deserialise,
            combine,
        } = &mut *merge;
        let mut finish = self.finish.as_ref().map(RefCell::borrow_mut);
        // The first state is a new one, which the second function changes.
        let (value, is_null) = executor::guarded(|| {
            // The second argument is of type internal, and never used.
            let unused = (Datum::null(), false);
            let first = deserialise.apply(&[(serialised, false), unused]);
            let state = combine.apply(&[first, (value, is_null)]);
            self.finished(state, finish.as_deref_mut())
        });
        answer_of(value, is_null)
    }

    /// The result of a state, by the function that makes it, within a boundary.
    fn finished(
        &self,
        (value, is_null): (Datum, bool),
        finish: Option<&mut Callable>,
    ) -> (Datum, bool) {
        let value = match is_null {
            true => value,
            false => self.values.read_only(value),
        };
        match finish {
            None => (value, is_null),
            Some(finish) => finish.apply(&[(value, is_null)]),
        }
    }

    /// Adds some rows from `first` on, at least one, and returns the row after the last. They are rows of the vector at
    /// a place of the lanes that were entered.
    fn batch(
        &mut self,
        place: usize,
        rows: &Selection,
        first: usize,
        group: impl Fn(usize) -> usize,
    ) -> Option<usize> {
        let context = self.reader.context();
        let memory = context.memory();
        executor::in_batch(context, || {
            let mut next = Some(first);
            for _ in 0..BATCH {
                let Some(row) = next else {
                    break;
                };
                self.reader.read(place + row);
                self.add_row(context, group(row));
                next = rows.next(row + 1);
                if executor::is_interrupted() || executor::used_bytes(memory) > BATCH_BYTES {
                    break;
                }
            }
            next
        })
    }

    /// Adds the row in the node's slot to a group, within a boundary.
    #[inline]
    fn add_row(&mut self, context: RowContext, group: usize) {
        let mut has_null = false;
        for (index, argument) in self.arguments.iter().enumerate() {
            let (value, is_null) = executor::evaluate_here(*argument, context);
            self.transition.set(index + 1, (value, is_null));
            has_null |= is_null;
        }
        self.step(group, has_null);
    }

    /// Adds rows with so many arguments each to a group. `value` returns an argument, by its number, of the row at a
    /// place, and whether it is NULL. It owns nothing that needs dropping, and does not panic.
    pub fn add_each(
        &mut self,
        group: usize,
        rows: usize,
        arguments: usize,
        value: impl Fn(usize, usize) -> (Datum, bool),
    ) {
        let context = self.reader.context();
        let memory = context.memory();
        let mut next = 0;
        while next < rows {
            ports::CHECK_FOR_INTERRUPTS();
            next = executor::in_batch(context, || {
                let (mut place, end) = (next, rows.min(next + BATCH));
                while place < end {
                    let mut has_null = false;
                    for argument in 0..arguments {
                        let value = value(argument, place);
                        self.transition.set(argument + 1, value);
                        has_null |= value.1;
                    }
                    self.step(group, has_null);
                    place += 1;
                    if executor::used_bytes(memory) > BATCH_BYTES {
                        break;
                    }
                }
                place
            });
        }
    }

    /// Adds the arguments that were set to the state of a group, within a boundary.
    #[inline]
    fn step(&mut self, group: usize, has_null: bool) {
        let state = &mut self.states[group];
        let old = *state;
        if self.transition.is_strict() {
            if has_null || old.is_null && !old.is_unset {
                return;
            }
            if old.is_unset {
                let (first, _) = self.transition.argument(1);
                *state = State {
                    value: self.values.kept(first),
                    is_null: false,
                    is_unset: false,
                };
                return;
            }
        }
        self.transition.set(0, (old.value, old.is_null));
        let (value, is_null) = self.transition.invoke();
        let is_other = value.value() != old.value.value() || is_null != old.is_null;
        let kept = match is_null || !is_other {
            true => value,
            false => self.values.kept(value),
        };
        *state = State {
            value: kept,
            is_null,
            is_unset: false,
        };
        if is_other && !old.is_null {
            self.values.free(old.value);
        }
    }
}

impl Accumulator for TransitionAggregate {
    fn resize(&mut self, groups: usize) {
        while self.states.len() < groups {
            let value = self
                .initial
                .map(|value| self.values.memory.copy(value, self.values.layout));
            self.states.push(State {
                value: value.unwrap_or(Datum::null()),
                is_null: value.is_none(),
                is_unset: value.is_none(),
            });
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
        self.reader.enter(frame);
        self.reader.count(selection.count());
        let mut next = selection.next(0);
        while let Some(first) = next {
            ports::CHECK_FOR_INTERRUPTS();
            let place = frame.place;
            let group = |row: usize| match grouping {
                Grouping::One(group) => *group as usize,
                Grouping::Each(ids) => ids[row] as usize,
                Grouping::Stretches(_) => 0,
            };
            next = self.batch(place, selection, first, group);
        }
        Ok(())
    }

    fn clear(&mut self) {
        self.states = Vec::new();
        self.values.memory.reset();
    }

    fn can_wait(&self) -> bool {
        false
    }

    fn answer(&self, group: usize) -> Answer {
        let State { value, is_null, .. } = self.states[group];
        let mut finish = self.finish.as_ref().map(RefCell::borrow_mut);
        let (value, is_null) =
            executor::guarded(|| self.finished((value, is_null), finish.as_deref_mut()));
        answer_of(value, is_null)
    }

    fn bytes(&self) -> usize {
        self.states.capacity() * size_of::<State>() + self.values.memory.allocated_bytes()
    }
}

/// A datum as an answer.
fn answer_of(value: Datum, is_null: bool) -> Answer {
    match is_null {
        true => Answer::Null,
        false => Answer::Bits(value.value() as u64),
    }
}
