//! Which row `LanesWindow` gives next, and what its functions say of it.
//!
//! Rows of one time are *peers*, and those of one partition have one average: that of the last of them. So rows of the
//! latest time wait until a later one comes:
//!
//! ```text
//! vector:  rows of the time that others wait with ── later ones, but for the last time ── rows of the vector's last time
//!          take them, then give those that waited, and them     take and give them          take them, and let them wait
//! ```
//! While they are given no other row is taken, so the states hold their averages.

use lanes_columnar::vector::selection::Selection;
use lanes_columnar::vector::{Evaluation, EvaluationError};
use pgrx::pg_sys;

use super::input::{Time, WindowInput};
use super::plan::WindowPlan;
use super::rows::{HeldRows, RowBuffer, SortedRows};
use super::values::Values;
use crate::error;
use crate::expressions::scalar;
use crate::expressions::translate::Translation;
use crate::functions::delta;
use crate::pg::ports;

/// What exists from the first row on.
pub struct Running {
    pub input: WindowInput,
    pub values: Values,
    /// The attributes that are returned.
    columns: Vec<usize>,
    /// A row of the table, for the attributes that are asked for.
    attributes: (Vec<pg_sys::Datum>, Vec<bool>),
    /// Rows of the vector that are to be taken, and those that were and are given.
    rest: Selection,
    ready: Selection,
    next: usize,
    /// What is wrong with the row after those that are given.
    failed: Option<EvaluationError>,
    /// Rows that wait for their peers, and their time.
    held: HeldRows,
    open: Option<Time>,
    /// Whether those that waited are given now.
    draining: bool,
    buffer: RowBuffer,
    /// All rows, if they did not come in order; whether one of them was read and not taken.
    pub sorted: Option<SortedRows>,
    pending: bool,
    done: bool,
}

/// What a step led to.
enum Step {
    /// A row is in the slot.
    Row,
    /// Something else has to be done first.
    Again,
    /// There are no more rows.
    End,
}

impl Running {
    /// Parameters have their values now.
    ///
    /// # Safety
    /// A node of ours, in execution; the current memory context is the query's.
    pub unsafe fn begin(node: *mut pg_sys::CustomScanState) -> Translation<Running> {
        // SAFETY: a node of ours, in execution; the table was locked when the plan was made ready.
        unsafe {
            let plan = WindowPlan::of((*node).ss.ps.plan.cast());
            let table = pg_sys::ExecGetRangeTableRelation((*node).ss.ps.state, plan.index);
            let attribute =
                |column: &*mut pg_sys::Node| (*column.cast::<pg_sys::Var>()).varattno as usize - 1;
            let columns: Vec<usize> = plan.columns.iter().map(attribute).collect();
            let state = &raw mut (*node).ss.ps;
            scalar::reads(state, table);
            let (mut input, windows) = WindowInput::begin(&plan, state, table, &columns)?;
            let buffer = RowBuffer::new(windows.len(), &plan.columns);
            let natts = (*(*table).rd_att).natts as usize;
            let in_order = input.is_in_order();
            let in_order = in_order.unwrap_or_else(|failure| error::evaluation(failure));
            let mut running = Running {
                input,
                values: Values::new(windows, plan.peers),
                columns,
                attributes: (vec![pg_sys::Datum::null(); natts], vec![true; natts]),
                rest: Selection::NONE,
                ready: Selection::NONE,
                next: 0,
                failed: None,
                held: HeldRows::new(&buffer),
                open: None,
                draining: false,
                buffer,
                sorted: None,
                pending: false,
                done: false,
            };
            if !in_order {
                let sorted = running.sort();
                running.sorted = Some(sorted.unwrap_or_else(|failure| error::evaluation(failure)));
            }
            Ok(running)
        }
    }

    /// Writes the next row; false at the end.
    ///
    /// # Safety
    /// An empty slot of the node's.
    pub unsafe fn next_row(&mut self, slot: *mut pg_sys::TupleTableSlot) -> Evaluation<bool> {
        // SAFETY: the caller's promise; lanes and rows put aside are alive until the next call.
        unsafe {
            loop {
                if self.draining {
                    if self.held.next() {
                        self.fill_of_held(slot);
                        return Ok(true);
                    }
                    (self.draining, self.open) = (false, None);
                }
                if let Some(row) = self.ready.next(self.next) {
                    self.next = row + 1;
                    self.fill(row, slot);
                    return Ok(true);
                }
                if let Some(failure) = self.failed.take() {
                    refuse(failure);
                }
                if self.sorted.is_some() {
                    match self.step_sorted(slot) {
                        Step::Row => return Ok(true),
                        Step::Again => continue,
                        Step::End => return Ok(false),
                    }
                }
                if self.rest.is_empty() {
                    self.done = self.done || !self.input.next(&mut self.values.windows)?;
                    if !self.done {
                        self.rest = self.input.vector.rows;
                    } else if self.held.is_empty {
                        return Ok(false);
                    } else {
                        self.draining = true;
                        continue;
                    }
                }
                self.stage();
            }
        }
    }

    /// Takes rows of the vector.
    unsafe fn stage(&mut self) {
        let rest = std::mem::replace(&mut self.rest, Selection::NONE);
        let vector = &self.input.vector;
        if !self.values.peers {
            self.give(rest);
            return;
        }
        if let Some(open) = self.open {
            let mut end = rest.next(0);
            while let Some(row) = end.filter(|row| vector.time(*row) == open) {
                end = rest.next(row + 1);
            }
            let same = end.map_or(rest, |end| rest.within(0, end));
            if let Err((_, failure)) = self.values.take(vector, &same) {
                refuse(failure);
            }
            match end {
                // SAFETY: as for `hold`.
                None => unsafe { self.hold(&same) },
                Some(_) => {
                    (self.ready, self.next) = (same, 0);
                    self.rest = rest.and_not(&same);
                    self.draining = true;
                }
            }
            return;
        }
        let Some(last) = rest.last() else { return };
        let (time, mut from) = (vector.time(last), last);
        while let Some(row) = rest.previous(from)
            && vector.time(row) == time
        {
            from = row;
        }
        self.give(rest.within(0, from));
        if self.failed.is_none() {
            let tail = rest.and_not(&self.ready);
            match self.values.take(&self.input.vector, &tail) {
                Err((_, failure)) => self.failed = Some(failure),
                Ok(()) => {
                    self.open = Some(time);
                    // SAFETY: as for `hold`.
                    unsafe { self.hold(&tail) }
                }
            }
        }
    }

    /// Takes rows that are given then, up to the first that fails.
    fn give(&mut self, rows: Selection) {
        (self.ready, self.next) = (rows, 0);
        if let Err((row, failure)) = self.values.take(&self.input.vector, &rows) {
            self.ready = rows.within(0, row);
            self.failed = Some(failure);
        }
    }

    /// Lets rows that were taken wait for their peers.
    ///
    /// # Safety
    /// The lanes of the vector are alive.
    unsafe fn hold(&mut self, rows: &Selection) {
        rows.for_each(|row| {
            for function in 0..self.values.windows.len() {
                let result = self.values.result(function, row);
                self.buffer.set_arguments(function, result, None);
            }
            // SAFETY: the caller's promise.
            unsafe { self.buffer_columns(row) };
            self.held.put(&mut self.buffer);
        });
    }

    /// Reads a row of the vector into the buffer.
    unsafe fn buffer_columns(&mut self, row: usize) {
        self.buffer.set_partition(self.input.vector.partitions[row]);
        let (outlet, place) = (self.input.source.outlet(), self.input.source.place(row));
        let (values, nulls) = self.buffer.columns();
        let (own, own_nulls) = &mut self.attributes;
        for (index, &attribute) in self.columns.iter().enumerate() {
            let (to, to_nulls) = (own.as_mut_ptr(), own_nulls.as_mut_ptr());
            // SAFETY: the lanes are alive, and there is room for all attributes.
            unsafe { (*outlet).read(place, attribute, attribute + 1, to, to_nulls) };
            (values[index], nulls[index]) = (own[attribute], own_nulls[attribute]);
        }
    }

    /// Reads all rows, and sorts them.
    unsafe fn sort(&mut self) -> Evaluation<SortedRows> {
        // SAFETY: `begin` made the query's memory context the current one.
        let mut sorted = unsafe { SortedRows::new(&self.buffer) };
        while self.input.next(&mut self.values.windows)? {
            let rows = self.input.vector.rows;
            let first = self.input.source.row_number(self.input.source.place(0));
            rows.for_each(|row| {
                let vector = &self.input.vector;
                self.buffer.set_time(vector.time(row), first + row as u64);
                for function in 0..self.values.windows.len() {
                    let (x, time) = vector.arguments(function, row);
                    self.buffer.set_arguments(function, x, time);
                }
                // SAFETY: the lanes of the vector are alive.
                unsafe { self.buffer_columns(row) };
                sorted.put(&self.buffer);
            });
        }
        sorted.sort();
        Ok(sorted)
    }

    /// Takes the next of the sorted rows.
    unsafe fn step_sorted(&mut self, slot: *mut pg_sys::TupleTableSlot) -> Step {
        let Some(sorted) = &mut self.sorted else {
            return Step::End;
        };
        if !self.pending && (self.done || !sorted.next()) {
            self.done = true;
            self.draining = !self.held.is_empty;
            return if self.draining {
                Step::Again
            } else {
                Step::End
            };
        }
        ports::CHECK_FOR_INTERRUPTS();
        self.pending = false;
        let (row, time) = (&sorted.row, sorted.row.time());
        if self.open.is_some_and(|open| open != time) {
            (self.pending, self.draining) = (true, true);
            return Step::Again;
        }
        let peers = self.values.peers;
        for function in 0..self.values.windows.len() {
            let arguments = row.arguments(function);
            let said = self.values.step(function, row.partition(), arguments);
            let said = said.unwrap_or_else(|failure| refuse(failure));
            if peers {
                self.buffer.set_arguments(function, said, None);
            } else {
                let place = self.columns.len() + function;
                // SAFETY: the slot has the functions behind the columns.
                unsafe { write(slot, place, self.values.datum(function, said)) };
            }
        }
        if !peers {
            // SAFETY: the slot has the columns first.
            unsafe {
                clear(slot, self.columns.len() + self.values.windows.len());
                for column in 0..self.columns.len() {
                    write(slot, column, row.column(column));
                }
            }
            return Step::Row;
        }
        self.buffer.set_partition(row.partition());
        let (values, nulls) = self.buffer.columns();
        for column in 0..values.len() {
            (values[column], nulls[column]) = row.column(column);
        }
        self.held.put(&mut self.buffer);
        self.open = Some(time);
        Step::Again
    }

    /// Writes a row of the vector; what the node never returns is NULL.
    ///
    /// # Safety
    /// An empty slot of the node's; the lanes of the vector are alive.
    unsafe fn fill(&mut self, row: usize, slot: *mut pg_sys::TupleTableSlot) {
        let (outlet, place) = (self.input.source.outlet(), self.input.source.place(row));
        let (own, own_nulls) = &mut self.attributes;
        let width = self.columns.len();
        // SAFETY: the caller's promise; the slot has columns, then functions.
        unsafe {
            for (index, &attribute) in self.columns.iter().enumerate() {
                let (to, to_nulls) = (own.as_mut_ptr(), own_nulls.as_mut_ptr());
                (*outlet).read(place, attribute, attribute + 1, to, to_nulls);
                write(slot, index, (own[attribute], own_nulls[attribute]));
            }
            let functions = self.values.windows.len();
            for function in 0..functions {
                let result = self.values.result(function, row);
                write(slot, width + function, self.values.datum(function, result));
            }
            clear(slot, width + functions);
        }
    }

    /// Writes a row that waited.
    ///
    /// # Safety
    /// As for `fill`.
    unsafe fn fill_of_held(&mut self, slot: *mut pg_sys::TupleTableSlot) {
        let (row, width) = (&self.held.row, self.columns.len());
        let functions = self.values.windows.len();
        // SAFETY: the caller's promise.
        unsafe {
            for column in 0..width {
                write(slot, column, row.column(column));
            }
            for function in 0..functions {
                let (said, _) = row.arguments(function);
                let result = self.values.of_peers(function, row.partition(), said);
                write(slot, width + function, self.values.datum(function, result));
            }
            clear(slot, width + functions);
        }
    }

    /// # Safety
    /// No slot holds a row.
    pub unsafe fn free(self) {
        // SAFETY: the caller's promise.
        unsafe {
            self.input.source.end();
            self.held.free();
            if let Some(sorted) = self.sorted {
                sorted.free();
            }
        }
    }
}

/// Writes a value into a slot.
#[inline]
unsafe fn write(slot: *mut pg_sys::TupleTableSlot, place: usize, value: (pg_sys::Datum, bool)) {
    // SAFETY: the caller has a slot of the node's with such a place.
    unsafe {
        *(*slot).tts_values.add(place) = value.0;
        *(*slot).tts_isnull.add(place) = value.1;
    }
}

/// Makes NULL what is never returned: all from a place on.
unsafe fn clear(slot: *mut pg_sys::TupleTableSlot, from: usize) {
    // SAFETY: the caller has a slot of the node's.
    unsafe {
        let width = (*(*slot).tts_tupleDescriptor).natts as usize;
        (from..width).for_each(|place| write(slot, place, (pg_sys::Datum::null(), true)));
    }
}

/// The ERROR for what a function cannot say.
fn refuse(failure: EvaluationError) -> ! {
    match failure {
        EvaluationError::IntegerOutOfRange(4) => delta::out_of_range("integer"),
        EvaluationError::IntegerOutOfRange(_) => delta::out_of_range("bigint"),
        other => error::evaluation(other),
    }
}
