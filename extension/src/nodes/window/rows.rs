//! Rows of `LanesWindow` that are put aside: until their peers are known, or to be sorted by time.
//!
//! | column | in a row to be sorted | in a row that waits for its peers |
//! |---|---|---|
//! | 0, 1 | the time in its order; the row's number | |
//! | 2 | partition | partition |
//! | 3 and on, two for each function | x; time | the result, if it is known; |
//! | then | the columns that are returned | the columns that are returned |

use lanes_columnar::vector::number::Scalar;
use pgrx::pg_sys;

use super::input::Time;
use crate::pg::exec::row_store::{RowDescriptor, RowQueue, RowSort};
use crate::pg::exec::slot::{RowValues, Slot};

const TIME: usize = 0;
const ROW: usize = 1;
const PARTITION: usize = 2;
const FUNCTIONS: usize = 3;

/// A row that is about to be put aside.
pub struct RowBuffer {
    descriptor: RowDescriptor,
    functions: usize,
    row: RowValues,
}

impl RowBuffer {
    /// A buffer for returned columns of these types, in the current memory context.
    pub fn new(functions: usize, columns: &[(pg_sys::Oid, i32)]) -> RowBuffer {
        let first = FUNCTIONS + 2 * functions;
        let width = first + columns.len();
        let column = |place: usize| match place {
            PARTITION => (pg_sys::INT4OID, -1),
            _ if place < first => (pg_sys::INT8OID, -1),
            _ => columns[place - first],
        };
        RowBuffer {
            descriptor: RowDescriptor::new((0..width).map(column)),
            functions,
            row: RowValues::new(width),
        }
    }

    pub fn set_time(&mut self, time: Time, row: u64) {
        self.set(TIME, (!time.0).then_some(Scalar(time.1 as u64)));
        self.set(ROW, Some(Scalar(row)));
    }

    pub fn set_partition(&mut self, partition: u32) {
        self.set(PARTITION, Some(Scalar(u64::from(partition))));
    }

    pub fn set_arguments(&mut self, function: usize, x: Option<Scalar>, time: Option<Scalar>) {
        self.set(FUNCTIONS + 2 * function, x);
        self.set(FUNCTIONS + 2 * function + 1, time);
    }

    fn set(&mut self, place: usize, value: Option<Scalar>) {
        self.row.nulls[place] = value.is_none();
        self.row.values[place] = pg_sys::Datum::from(value.map_or(0, |value| value.0) as usize);
    }

    /// Sets a column that is returned.
    #[inline]
    pub fn set_column(&mut self, column: usize, (value, is_null): (pg_sys::Datum, bool)) {
        let place = FUNCTIONS + 2 * self.functions + column;
        self.row.values[place] = value;
        self.row.nulls[place] = is_null;
    }
}

/// A row that was put aside.
#[derive(Clone, Copy)]
pub struct WaitingRow {
    slot: Slot,
    functions: usize,
}

impl WaitingRow {
    fn scalar(&self, place: usize) -> Option<Scalar> {
        self.slot
            .value(place)
            .map(|value| Scalar(value.value() as u64))
    }

    /// The row's time.
    pub fn time(&self) -> Time {
        match self.scalar(TIME) {
            Some(time) => (false, time.0 as i64),
            None => (true, 0),
        }
    }

    /// The row's partition.
    pub fn partition(&self) -> u32 {
        self.scalar(PARTITION).map_or(0, |scalar| scalar.0 as u32)
    }

    /// The two columns of a function.
    pub fn arguments(&self, function: usize) -> (Option<Scalar>, Option<Scalar>) {
        let place = FUNCTIONS + 2 * function;
        (self.scalar(place), self.scalar(place + 1))
    }

    /// A column that is returned: its value, and whether it is NULL.
    pub fn column(&self, column: usize) -> (pg_sys::Datum, bool) {
        let value = self.slot.value(FUNCTIONS + 2 * self.functions + column);
        (value.unwrap_or(pg_sys::Datum::null()), value.is_none())
    }
}

/// Rows that wait for their peers, first in, first out.
pub struct HeldRows {
    queue: RowQueue,
    functions: usize,
    pub is_empty: bool,
}

impl HeldRows {
    /// No rows yet, in the current memory context and resource owner.
    pub fn new(buffer: &RowBuffer) -> HeldRows {
        HeldRows {
            queue: RowQueue::new(buffer.descriptor),
            functions: buffer.functions,
            is_empty: true,
        }
    }

    /// Adds a row.
    pub fn put(&mut self, buffer: &mut RowBuffer) {
        self.is_empty = false;
        self.queue.put(&mut buffer.row);
    }

    /// The next row; `None` if there is none, and then all rows are dropped.
    pub fn next_row(&mut self) -> Option<WaitingRow> {
        let slot = self.queue.next_row();
        self.is_empty = slot.is_none();
        let functions = self.functions;
        slot.map(|slot| WaitingRow { slot, functions })
    }

    /// Frees the rows.
    pub fn free(self) {
        self.queue.free();
    }
}

/// Rows in the order of time, NULL last. Rows of equal times are in row order.
pub struct SortedRows {
    sort: RowSort,
    functions: usize,
}

impl SortedRows {
    /// No rows yet, in the current memory context and resource owner.
    pub fn new(buffer: &RowBuffer) -> SortedRows {
        SortedRows {
            sort: RowSort::new(buffer.descriptor, [TIME as i16 + 1, ROW as i16 + 1]),
            functions: buffer.functions,
        }
    }

    /// Adds a row.
    pub fn put(&mut self, buffer: &RowBuffer) {
        self.sort.put(&buffer.row);
    }

    /// Sorts the rows, all of which were added.
    pub fn sort(&mut self) {
        self.sort.sort();
    }

    /// Goes on to the next row; false if there is none.
    pub fn advance(&mut self) -> bool {
        self.sort.advance()
    }

    /// The current row.
    pub fn row(&self) -> WaitingRow {
        WaitingRow {
            slot: self.sort.row(),
            functions: self.functions,
        }
    }

    /// Frees the rows.
    pub fn free(self) {
        self.sort.free();
    }
}
