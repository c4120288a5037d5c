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

use lanes_columnar::aggregate::{Accumulator, Answer, Grouping, Input};
use lanes_columnar::vector::Evaluation;
use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::selection::Selection;
use pgrx::IntoDatum;
use pgrx::pg_sys::{self, Datum};

use super::aggregate_functions::{FunctionsOfCall, Merge, aggregate_state, initial_state};
use super::callable::{ARGUMENTS_MAX, Callable};
use super::condition_test::reset;
use super::memory::{Memory, ValueLayout};
use super::row_evaluator::RowReader;
use super::scalar::{self, RunningNode};
use crate::pg::aggregate_catalog::{self, AggregateFunctions};
use crate::pg::call_ports::datum_copy;
use crate::pg::tree::{Aggref, Expr, View};
use crate::pg::{permission, ports};

/// The most rows within one boundary.
const BATCH: usize = 64;

unsafe extern "C-unwind" {
    #[link_name = "DatumGetEOHP"]
    fn expanded_header(value: Datum) -> *mut pg_sys::ExpandedObjectHeader;
    #[link_name = "DeleteExpandedObject"]
    fn delete_expanded(value: Datum);
    #[link_name = "MakeExpandedObjectReadOnlyInternal"]
    fn read_only(value: Datum) -> Datum;
    #[link_name = "pfree"]
    fn free(pointer: *mut std::ffi::c_void);
}

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
    arguments: Vec<*mut pg_sys::ExprState>,
    transition: Callable,
    /// Makes the result of a state: the final function or, of a worker's aggregate, the serialisation function.
    finish: Option<RefCell<Callable>>,
    merge: Option<RefCell<Merge>>,
    layout: ValueLayout,
    /// The state of no rows.
    initial: Option<Datum>,
    /// The memory of states.
    memory: Memory,
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
        // SAFETY: the node has started; the arguments are part of its plan; what is allocated lives until the node
        // starts again. The aggregate's functions take a state, and these arguments.
        unsafe {
            let context = aggregate_state(call, &reader, memory, node);
            let of_call = FunctionsOfCall {
                call,
                types: call.aggargtypes().iter().collect(),
                context,
                node,
            };
            let finish = of_call.finish(&functions);
            let merge = if can_merge {
                of_call.merge(&functions)
            } else {
                None
            };
            let initial = functions
                .initial
                .as_ref()
                .map(|text| node.memory().enter(|| initial_state(text, state)));
            let states = arguments.iter();
            let states =
                states.map(|argument| scalar::initialised(argument.as_ptr().cast(), node.as_ptr()));
            TransitionAggregate {
                reader,
                arguments: states.collect(),
                transition: of_call.transition(functions.transition),
                finish: finish.map(RefCell::new),
                merge: merge.map(RefCell::new),
                layout: ValueLayout::of_type(state),
                initial,
                memory,
                states: Vec::new(),
            }
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
        // SAFETY: as for `answer`. The first state is a new one, which the second function changes.
        let (value, is_null) = unsafe {
            pg_sys::ffi::pg_guard_ffi_boundary(|| {
                let merge = &mut *merge.as_ptr();
                // The second argument is of type internal, and never used.
                let unused = (Datum::null(), false);
                let first = merge.deserialise.apply(&[(serialised, false), unused]);
                let (value, is_null) = merge.combine.apply(&[first, (value, is_null)]);
                self.finished(value, is_null)
            })
        };
        answer_of(value, is_null)
    }

    /// The result of a state.
    ///
    /// # Safety
    /// The state's functions take it. An error boundary surrounds the call.
    unsafe fn finished(&self, value: Datum, is_null: bool) -> (Datum, bool) {
        // SAFETY: this function's contract; nobody else uses the final function's call meanwhile.
        unsafe {
            let is_changeable = !is_null && self.is_expanded(value);
            let value = if is_changeable {
                read_only(value)
            } else {
                value
            };
            match &self.finish {
                None => (value, is_null),
                Some(finish) => (*finish.as_ptr()).apply(&[(value, is_null)]),
            }
        }
    }

    /// Adds some rows from `first` on, at least one, and returns the row after the last.
    ///
    /// # Safety
    /// `first` is one of the rows, which are rows of the vector at a place of the lanes that were entered. The group of
    /// each has a state. An error boundary surrounds the call, and no frame between them has anything to drop.
    unsafe fn batch(
        &mut self,
        place: usize,
        rows: &Selection,
        first: usize,
        group: impl Fn(usize) -> usize,
    ) -> Option<usize> {
        let mut next = Some(first);
        // SAFETY: slot and context live as long as the query; the boundary restores the context when an ERROR passes.
        unsafe {
            let memory = (*self.reader.context()).ecxt_per_tuple_memory;
            if !(*memory).isReset || !(*memory).firstchild.is_null() {
                reset(memory);
            }
            let before = pg_sys::CurrentMemoryContext;
            pg_sys::CurrentMemoryContext = memory;
            for _ in 0..BATCH {
                let Some(row) = next else {
                    break;
                };
                self.reader.read(place + row);
                self.add_row(group(row));
                next = rows.next(row + 1);
                let is_interrupted = std::ptr::read_volatile(&raw const pg_sys::InterruptPending);
                if is_interrupted != 0 || (*memory).mem_allocated > 1 << 20 {
                    break;
                }
            }
            pg_sys::CurrentMemoryContext = before;
        }
        next
    }

    /// Adds the row in the node's slot to a group.
    ///
    /// # Safety
    /// As for [`Self::batch`].
    #[inline]
    unsafe fn add_row(&mut self, group: usize) {
        // SAFETY: this function's contract.
        unsafe {
            let context = self.reader.context();
            let mut has_null = false;
            for (index, argument) in self.arguments.iter().enumerate() {
                // The first evaluation replaces the function by a faster one.
                if let Some(evaluate) = (**argument).evalfunc {
                    let mut is_null = false;
                    let value = evaluate(*argument, context, &raw mut is_null);
                    self.transition.call.arguments[index + 1] = pg_sys::NullableDatum {
                        value,
                        isnull: is_null,
                    };
                    has_null |= is_null;
                }
            }
            let state = &raw mut self.states[group];
            if self.transition.function.fn_strict {
                if has_null {
                    return;
                }
                if (*state).is_unset {
                    let first = self.transition.call.arguments[1].value;
                    *state = State {
                        value: self.kept(first),
                        is_null: false,
                        is_unset: false,
                    };
                    return;
                }
                if (*state).is_null {
                    return;
                }
            }
            self.transition.call.arguments[0] = pg_sys::NullableDatum {
                value: (*state).value,
                isnull: (*state).is_null,
            };
            let (value, is_null) = self.transition.invoke();
            let old = *state;
            let is_other = value.value() != old.value.value() || is_null != old.is_null;
            let kept = match is_null || !is_other {
                true => value,
                false => self.kept(value),
            };
            *state = State {
                value: kept,
                is_null,
                is_unset: false,
            };
            if is_other && !self.layout.by_value && !old.is_null {
                match self.is_expanded(old.value) {
                    true => delete_expanded(old.value),
                    false => free(old.value.cast_mut_ptr()),
                }
            }
        }
    }

    /// A value in the memory of states.
    ///
    /// # Safety
    /// A value of the state's type; as for [`Self::batch`].
    unsafe fn kept(&self, value: Datum) -> Datum {
        if self.layout.by_value {
            return value;
        }
        // SAFETY: this function's contract; a value that can be written is an expanded one with a header.
        unsafe {
            let memory = self.memory.as_raw();
            if self.is_expanded(value) && (*(*expanded_header(value)).eoh_context).parent == memory
            {
                return value;
            }
            let before = pg_sys::CurrentMemoryContext;
            pg_sys::CurrentMemoryContext = memory;
            let copy = datum_copy(value, false, self.layout.length.into());
            pg_sys::CurrentMemoryContext = before;
            copy
        }
    }

    /// Whether a value is an expanded one that may be changed: `VARATT_IS_EXTERNAL_EXPANDED_RW`.
    ///
    /// # Safety
    /// A value of the state's type that is not NULL.
    unsafe fn is_expanded(&self, value: Datum) -> bool {
        /// The first byte of a pointer in place of a value.
        const POINTER: u8 = 1;
        /// The second byte of a pointer to an expanded value that may be changed.
        const EXPANDED: u8 = 3;
        // SAFETY: this function's contract: such values begin with a header.
        self.layout.length == -1
            && unsafe {
                let header: *const u8 = value.cast_mut_ptr();
                *header == POINTER && *header.add(1) == EXPANDED
            }
    }
}

impl Accumulator for TransitionAggregate {
    fn resize(&mut self, groups: usize) {
        while self.states.len() < groups {
            let value = self
                .initial
                .map(|value| self.memory.copy(value, self.layout));
            self.states.push(State {
                value: value.unwrap_or(Datum::null()),
                is_null: value.is_none(),
                is_unset: value.is_none(),
            });
        }
    }

    fn add(
        &mut self,
        _grouping: &Grouping<'_>,
        _input: &Input,
        _selection: &Selection,
        _rows: usize,
    ) -> Evaluation<()> {
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
            // SAFETY: the frames within the boundary have nothing to drop; a group of a row has a state.
            next = unsafe {
                pg_sys::ffi::pg_guard_ffi_boundary(|| self.batch(place, selection, first, group))
            };
        }
        Ok(())
    }

    fn clear(&mut self) {
        self.states = Vec::new();
        self.memory.reset();
    }

    fn can_wait(&self) -> bool {
        false
    }

    fn answer(&self, group: usize) -> Answer {
        let State { value, is_null, .. } = self.states[group];
        // SAFETY: the state's functions take it; the frames within the boundary have nothing to drop.
        let (value, is_null) =
            unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| self.finished(value, is_null)) };
        answer_of(value, is_null)
    }

    fn bytes(&self) -> usize {
        self.states.capacity() * size_of::<State>() + self.memory.allocated_bytes()
    }
}

/// A datum as an answer.
fn answer_of(value: Datum, is_null: bool) -> Answer {
    match is_null {
        true => Answer::Null,
        false => Answer::Bits(value.value() as u64),
    }
}
