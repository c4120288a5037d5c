//! The order in which `LanesWindow` processes rows, and the results that its functions return for each row.
//!
//! Rows of one time are *peers*. If the frame reaches to a row's last peer, all peers of a
//! partition have the average of the last one. So rows of the latest time wait until a later row
//! comes:
//!
//! ```text
//! vector:  rows of the time that others wait with ── later rows before the last time ── rows of the vector's last time
//!          process; return the waiting rows, then     process and return                process, and let them wait
//!          these
//! ```
//! While these rows are returned no other row is processed, so the states still contain their averages.

use lanes_columnar::vector::number::Scalar;
use lanes_columnar::vector::selection::Selection;
use lanes_columnar::vector::{Evaluation, EvaluationError};

use super::input::{Time, WindowInput};
use super::plan::WindowPlan;
use super::rows::{HeldRows, RowBuffer, SortedRows, WaitingRow};
use super::values::Values;
use crate::error;
use crate::expressions::translate::Translation;
use crate::functions::delta;
use crate::pg::exec::node::ExecNode;
use crate::pg::exec::slot::SlotWriter;
use crate::pg::ports;
use crate::vectors::row_cursor::RowCursor;

/// The rows in their order, from the first row on.
pub struct RowOrder {
    pub input: WindowInput,
    pub values: Values,
    /// The attributes that are returned.
    columns: Vec<usize>,
    /// Rows of the vector that are still to be processed.
    rest: Selection,
    /// Processed rows of the vector that are to be returned.
    ready: RowCursor,
    /// The error of the row after those that are returned.
    failed: Option<EvaluationError>,
    /// Rows that wait for their peers, and their time.
    held: HeldRows,
    open: Option<Time>,
    /// Whether the waiting rows are being returned.
    is_draining: bool,
    buffer: RowBuffer,
    /// All rows, if they were not in order.
    pub sorted: Option<SortedRows>,
    /// Whether the current sorted row is still to be processed.
    is_pending: bool,
    is_done: bool,
}

/// The result of a step.
enum Step {
    /// A row was written.
    Row,
    /// Another step is needed.
    Again,
    /// There are no more rows.
    End,
}

impl RowOrder {
    /// Finds out whether the rows are in order, and sorts them if they are not. The current memory context is the
    /// query's.
    ///
    /// # Errors
    /// The reason why the plan cannot be executed.
    pub fn begin(node: ExecNode<'_>) -> Translation<RowOrder> {
        let plan = WindowPlan::of(node.plan());
        let table = node.open_table(plan.index);
        let columns = plan.attributes();
        let (mut input, windows) = WindowInput::begin(&plan, node, table, &columns)?;
        let buffer = RowBuffer::new(windows.len(), &plan.column_types());
        let is_in_order = input
            .is_in_order()
            .unwrap_or_else(|failure| error::evaluation(failure));
        let mut order = RowOrder {
            input,
            values: Values::new(windows, plan.has_peers),
            columns,
            rest: Selection::NONE,
            ready: RowCursor::EMPTY,
            failed: None,
            held: HeldRows::new(&buffer),
            open: None,
            is_draining: false,
            buffer,
            sorted: None,
            is_pending: false,
            is_done: false,
        };
        if !is_in_order {
            let sorted = order.sort();
            order.sorted = Some(sorted.unwrap_or_else(|failure| error::evaluation(failure)));
        }
        Ok(order)
    }

    /// Writes the next row; false at the end.
    ///
    /// # Errors
    /// The error that a condition raises. Errors of functions are raised here.
    pub fn write_next(&mut self, row: &mut SlotWriter<'_>) -> Evaluation<bool> {
        loop {
            if self.is_draining {
                if let Some(held) = self.held.next_row() {
                    self.write_held(held, row);
                    return Ok(true);
                }
                (self.is_draining, self.open) = (false, None);
            }
            if let Some(ready) = self.ready.next_row() {
                self.write_ready(ready, row);
                return Ok(true);
            }
            if let Some(failure) = self.failed.take() {
                refuse(failure);
            }
            if self.sorted.is_some() {
                match self.step_sorted(row) {
                    Step::Row => return Ok(true),
                    Step::Again => continue,
                    Step::End => return Ok(false),
                }
            }
            if self.rest.is_empty() {
                self.is_done = self.is_done || !self.input.next(&mut self.values.windows)?;
                if !self.is_done {
                    self.rest = self.input.vector.rows;
                } else if self.held.is_empty {
                    return Ok(false);
                } else {
                    self.is_draining = true;
                    continue;
                }
            }
            self.process_vector();
        }
    }

    /// Processes rows of the vector.
    fn process_vector(&mut self) {
        let rest = std::mem::replace(&mut self.rest, Selection::NONE);
        if !self.values.has_peers {
            self.process_ready(rest);
        } else if let Some(open) = self.open {
            self.process_peers(rest, open);
        } else {
            self.process_up_to_last_time(rest);
        }
    }

    /// Processes the rows of the time that others wait with. If a later row follows, all of them can be returned.
    fn process_peers(&mut self, rest: Selection, open: Time) {
        let vector = &self.input.vector;
        let mut end = rest.next(0);
        while let Some(row) = end.filter(|row| vector.time(*row) == open) {
            end = rest.next(row + 1);
        }
        let peers = end.map_or(rest, |end| rest.within(0, end));
        if let Err((_, failure)) = self.values.take(vector, &peers) {
            refuse(failure);
        }
        match end {
            None => self.hold(&peers),
            Some(_) => {
                self.ready = RowCursor::new(peers);
                self.rest = rest.and_not(&peers);
                self.is_draining = true;
            }
        }
    }

    /// Processes rows that can be returned, and then those of the last time, which wait.
    fn process_up_to_last_time(&mut self, rest: Selection) {
        let Some(last) = rest.last() else { return };
        let vector = &self.input.vector;
        let (time, mut from) = (vector.time(last), last);
        while let Some(row) = rest.previous(from)
            && vector.time(row) == time
        {
            from = row;
        }
        let before = rest.within(0, from);
        self.process_ready(before);
        if self.failed.is_some() {
            return;
        }
        let tail = rest.and_not(&before);
        match self.values.take(&self.input.vector, &tail) {
            Err((_, failure)) => self.failed = Some(failure),
            Ok(()) => {
                self.open = Some(time);
                self.hold(&tail);
            }
        }
    }

    /// Processes rows that can be returned, up to the first that fails.
    fn process_ready(&mut self, rows: Selection) {
        let mut ready = rows;
        if let Err((row, failure)) = self.values.take(&self.input.vector, &rows) {
            ready = rows.within(0, row);
            self.failed = Some(failure);
        }
        self.ready = RowCursor::new(ready);
    }

    /// Lets processed rows wait for their peers.
    fn hold(&mut self, rows: &Selection) {
        rows.for_each(|row| {
            for function in 0..self.values.windows.len() {
                let result = self.values.result(function, row);
                self.buffer.set_arguments(function, result, None);
            }
            self.read_columns(row);
            self.held.put(&mut self.buffer);
        });
    }

    /// Reads a row of the vector into the buffer.
    fn read_columns(&mut self, row: usize) {
        self.buffer.set_partition(self.input.vector.partitions[row]);
        let (outlet, place) = (self.input.source.outlet(), self.input.source.place(row));
        for (index, &attribute) in self.columns.iter().enumerate() {
            self.buffer
                .set_column(index, outlet.value(place, attribute));
        }
    }

    /// Reads all rows, and sorts them.
    fn sort(&mut self) -> Evaluation<SortedRows> {
        let mut sorted = SortedRows::new(&self.buffer);
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
                self.read_columns(row);
                sorted.put(&self.buffer);
            });
        }
        sorted.sort();
        Ok(sorted)
    }

    /// Processes the next sorted row.
    fn step_sorted(&mut self, target: &mut SlotWriter<'_>) -> Step {
        let Some(sorted) = &mut self.sorted else {
            return Step::End;
        };
        if !self.is_pending && (self.is_done || !sorted.advance()) {
            self.is_done = true;
            self.is_draining = !self.held.is_empty;
            return if self.is_draining {
                Step::Again
            } else {
                Step::End
            };
        }
        ports::CHECK_FOR_INTERRUPTS();
        self.is_pending = false;
        let row = sorted.row();
        let time = row.time();
        if self.open.is_some_and(|open| open != time) {
            (self.is_pending, self.is_draining) = (true, true);
            return Step::Again;
        }
        let has_peers = self.values.has_peers;
        for function in 0..self.values.windows.len() {
            let arguments = row.arguments(function);
            let result = self.values.step(function, row.partition(), arguments);
            let result = result.unwrap_or_else(|failure| refuse(failure));
            match has_peers {
                true => self.buffer.set_arguments(function, result, None),
                false => {
                    let place = self.columns.len() + function;
                    target.set(place, self.values.datum(function, result));
                }
            }
        }
        if !has_peers {
            for column in 0..self.columns.len() {
                target.set_pair(column, row.column(column));
            }
            target.clear_from(self.columns.len() + self.values.windows.len());
            return Step::Row;
        }
        self.buffer.set_partition(row.partition());
        for column in 0..self.columns.len() {
            self.buffer.set_column(column, row.column(column));
        }
        self.held.put(&mut self.buffer);
        self.open = Some(time);
        Step::Again
    }

    /// Writes a row of the vector. Columns that the node never returns are NULL.
    fn write_ready(&self, row: usize, target: &mut SlotWriter<'_>) {
        let (outlet, place) = (self.input.source.outlet(), self.input.source.place(row));
        for (index, &attribute) in self.columns.iter().enumerate() {
            target.set_pair(index, outlet.value(place, attribute));
        }
        self.write_results(target, |function| self.values.result(function, row));
    }

    /// Writes a row that has waited.
    fn write_held(&self, row: WaitingRow, target: &mut SlotWriter<'_>) {
        for column in 0..self.columns.len() {
            target.set_pair(column, row.column(column));
        }
        self.write_results(target, |function| {
            let (result, _) = row.arguments(function);
            self.values.of_peers(function, row.partition(), result)
        });
    }

    fn write_results(&self, target: &mut SlotWriter<'_>, result: impl Fn(usize) -> Option<Scalar>) {
        let (width, functions) = (self.columns.len(), self.values.windows.len());
        for function in 0..functions {
            let value = self.values.datum(function, result(function));
            target.set(width + function, value);
        }
        target.clear_from(width + functions);
    }

    /// Ends the scan and frees the rows.
    pub fn free(self) {
        self.input.source.end();
        self.held.free();
        if let Some(sorted) = self.sorted {
            sorted.free();
        }
    }
}

/// Raises the error of a function.
fn refuse(failure: EvaluationError) -> ! {
    match failure {
        EvaluationError::IntegerOutOfRange(4) => delta::out_of_range("integer"),
        EvaluationError::IntegerOutOfRange(_) => delta::out_of_range("bigint"),
        other => error::evaluation(other),
    }
}
