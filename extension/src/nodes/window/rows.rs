//! Rows of `LanesWindow` that wait: for their peers, or to be sorted by time. Both take `work_mem` and then temporary
//! files.
//!
//! | column | what a row that is sorted has | what one that waits for peers has |
//! |---|---|---|
//! | 0, 1 | time as it is ordered; number of the row | |
//! | 2 | partition | partition |
//! | 3 and on, two a function | x; time | result, where it is known; |
//! | then | the columns that are returned | the same |

use lanes_columnar::vector::number::Scalar;
use pgrx::pg_sys;

use super::input::Time;
use crate::pg::ports;

const TIME: usize = 0;
const ROW: usize = 1;
const PARTITION: usize = 2;
const FUNCTIONS: usize = 3;

/// A row to be put aside: its columns as above.
pub struct RowBuffer {
    descriptor: pg_sys::TupleDesc,
    functions: usize,
    values: Vec<pg_sys::Datum>,
    nulls: Vec<bool>,
}

impl RowBuffer {
    /// # Safety
    /// The columns that are returned are of these types; the current memory context lives as long as the buffer.
    pub unsafe fn new(functions: usize, columns: &[*mut pg_sys::Node]) -> RowBuffer {
        let first = FUNCTIONS + 2 * functions;
        let width = first + columns.len();
        // SAFETY: the descriptor has these columns before it is used.
        unsafe {
            let descriptor = pg_sys::CreateTemplateTupleDesc(width as i32);
            for place in 0..width {
                let (type_of, modifier) = match place {
                    PARTITION => (pg_sys::INT4OID, -1),
                    _ if place < first => (pg_sys::INT8OID, -1),
                    _ => {
                        let column = columns[place - first];
                        (pg_sys::exprType(column), pg_sys::exprTypmod(column))
                    }
                };
                let (number, name) = (place as i16 + 1, c"".as_ptr());
                pg_sys::TupleDescInitEntry(descriptor, number, name, type_of, modifier, 0);
            }
            RowBuffer {
                descriptor,
                functions,
                values: vec![pg_sys::Datum::null(); width],
                nulls: vec![true; width],
            }
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
        self.nulls[place] = value.is_none();
        self.values[place] = pg_sys::Datum::from(value.map_or(0, |value| value.0) as usize);
    }

    /// Where the columns that are returned go: values, and which are NULL.
    pub fn columns(&mut self) -> (&mut [pg_sys::Datum], &mut [bool]) {
        let first = FUNCTIONS + 2 * self.functions;
        (&mut self.values[first..], &mut self.nulls[first..])
    }
}

/// A row that was put aside, as it comes back.
pub struct WaitingRow {
    slot: *mut pg_sys::TupleTableSlot,
    functions: usize,
}

impl WaitingRow {
    /// # Safety
    /// As for [`RowBuffer::new`].
    unsafe fn new(buffer: &RowBuffer) -> WaitingRow {
        // SAFETY: the caller's promise.
        let slot = unsafe {
            pg_sys::MakeSingleTupleTableSlot(
                buffer.descriptor,
                &raw const pg_sys::TTSOpsMinimalTuple,
            )
        };
        WaitingRow {
            slot,
            functions: buffer.functions,
        }
    }

    fn scalar(&self, place: usize) -> Option<Scalar> {
        let (value, is_null) = self.datum(place);
        (!is_null).then_some(Scalar(value.value() as u64))
    }

    fn datum(&self, place: usize) -> (pg_sys::Datum, bool) {
        // SAFETY: the slot has the buffer's columns, and all of them are read when a row comes.
        unsafe {
            (
                *(*self.slot).tts_values.add(place),
                *(*self.slot).tts_isnull.add(place),
            )
        }
    }

    pub fn time(&self) -> Time {
        match self.scalar(TIME) {
            Some(time) => (false, time.0 as i64),
            None => (true, 0),
        }
    }

    pub fn partition(&self) -> u32 {
        self.scalar(PARTITION).map_or(0, |scalar| scalar.0 as u32)
    }

    pub fn arguments(&self, function: usize) -> (Option<Scalar>, Option<Scalar>) {
        let place = FUNCTIONS + 2 * function;
        (self.scalar(place), self.scalar(place + 1))
    }

    /// A column that is returned, and whether it is NULL.
    pub fn column(&self, column: usize) -> (pg_sys::Datum, bool) {
        self.datum(FUNCTIONS + 2 * self.functions + column)
    }

    unsafe fn free(&self) {
        // SAFETY: the slot is ours, and nobody uses it any more.
        unsafe { pg_sys::ExecDropSingleTupleTableSlot(self.slot) }
    }
}

/// Rows that wait for their peers, first in, first out.
pub struct HeldRows {
    store: *mut pg_sys::Tuplestorestate,
    descriptor: pg_sys::TupleDesc,
    pub row: WaitingRow,
    pub is_empty: bool,
}

impl HeldRows {
    /// # Safety
    /// The current memory context and resource owner live until the rows are freed or the query fails.
    pub unsafe fn new(buffer: &RowBuffer) -> HeldRows {
        // SAFETY: the caller's promise.
        unsafe {
            HeldRows {
                store: pg_sys::tuplestore_begin_heap(false, false, pg_sys::work_mem),
                descriptor: buffer.descriptor,
                row: WaitingRow::new(buffer),
                is_empty: true,
            }
        }
    }

    /// Takes a row.
    pub fn put(&mut self, buffer: &mut RowBuffer) {
        self.is_empty = false;
        let (values, nulls) = (buffer.values.as_mut_ptr(), buffer.nulls.as_mut_ptr());
        // SAFETY: a live store; a value for each column, which the store copies.
        unsafe { pg_sys::tuplestore_putvalues(self.store, self.descriptor, values, nulls) }
    }

    /// Goes on to the next row; false if there is none, and then they are all forgotten.
    pub fn next(&mut self) -> bool {
        // SAFETY: a live store and slot.
        unsafe {
            if pg_sys::tuplestore_gettupleslot(self.store, true, false, self.row.slot) {
                ports::slot_getallattrs(self.row.slot);
                return true;
            }
            pg_sys::tuplestore_clear(self.store);
        }
        self.is_empty = true;
        false
    }

    /// # Safety
    /// Nobody uses a row any more.
    pub unsafe fn free(self) {
        // SAFETY: the caller's promise.
        unsafe {
            self.row.free();
            pg_sys::tuplestore_end(self.store);
        }
    }
}

/// Rows in the order of time, NULL last; of equal times in row order.
pub struct SortedRows {
    sort: *mut pg_sys::Tuplesortstate,
    put: *mut pg_sys::TupleTableSlot,
    pub row: WaitingRow,
}

impl SortedRows {
    /// # Safety
    /// As for [`HeldRows::new`].
    pub unsafe fn new(buffer: &RowBuffer) -> SortedRows {
        let mut attributes = [TIME as i16 + 1, ROW as i16 + 1];
        let mut operators: [pg_sys::Oid; 2] = [pg_sys::Int8LessOperator.into(); 2];
        let mut collations = [pg_sys::InvalidOid; 2];
        let mut nulls_first = [false; 2];
        // SAFETY: the caller's promise; the sort copies what it is given of the keys.
        unsafe {
            SortedRows {
                sort: pg_sys::tuplesort_begin_heap(
                    buffer.descriptor,
                    2,
                    attributes.as_mut_ptr(),
                    operators.as_mut_ptr(),
                    collations.as_mut_ptr(),
                    nulls_first.as_mut_ptr(),
                    pg_sys::work_mem,
                    std::ptr::null_mut(),
                    pg_sys::TUPLESORT_NONE as i32,
                ),
                put: pg_sys::MakeSingleTupleTableSlot(
                    buffer.descriptor,
                    &raw const pg_sys::TTSOpsVirtual,
                ),
                row: WaitingRow::new(buffer),
            }
        }
    }

    /// Takes a row.
    pub fn put(&mut self, buffer: &RowBuffer) {
        // SAFETY: the slot has the buffer's columns; the sort copies the row.
        unsafe {
            ports::ExecClearTuple(self.put);
            let width = buffer.values.len();
            let (values, nulls) = ((*self.put).tts_values, (*self.put).tts_isnull);
            std::slice::from_raw_parts_mut(values, width).copy_from_slice(&buffer.values);
            std::slice::from_raw_parts_mut(nulls, width).copy_from_slice(&buffer.nulls);
            ports::ExecStoreVirtualTuple(self.put);
            pg_sys::tuplesort_puttupleslot(self.sort, self.put);
        }
    }

    /// All rows were put.
    pub fn sort(&mut self) {
        // SAFETY: a live sort.
        unsafe {
            ports::ExecClearTuple(self.put);
            pg_sys::tuplesort_performsort(self.sort);
        }
    }

    /// Goes on to the next row; false if there is none.
    pub fn next(&mut self) -> bool {
        let (sort, slot) = (self.sort, self.row.slot);
        // SAFETY: a live sort and slot.
        unsafe {
            let found =
                pg_sys::tuplesort_gettupleslot(sort, true, false, slot, std::ptr::null_mut());
            if found {
                ports::slot_getallattrs(slot);
            }
            found
        }
    }

    /// # Safety
    /// Nobody uses a row any more.
    pub unsafe fn free(self) {
        // SAFETY: the caller's promise.
        unsafe {
            self.row.free();
            pg_sys::ExecDropSingleTupleTableSlot(self.put);
            pg_sys::tuplesort_end(self.sort);
        }
    }
}
