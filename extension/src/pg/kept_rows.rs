//! Rows of a time and a number that an aggregate's state keeps, to go through them in the order of time.
//!
//! Rows are in the aggregate's memory until they take `work_mem`. From then on they go to PostgreSQL's sort, which
//! uses temporary files. The sort is freed with the rows, or when the aggregation ends or starts again without
//! asking for them.

use pgrx::pg_sys;

use super::call::{Call, float8, float8_datum, int8};
use super::exec::memory::work_memory_limit;
use super::exec::row_store::{RowDescriptor, RowSort};
use super::exec::slot::RowValues;
use super::{executor, ports};

/// A row.
#[derive(Clone, Copy)]
#[repr(C)]
struct Row {
    time: i64,
    x: f64,
}

/// The rows of a group.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct KeptRows {
    /// `capacity` rows in the aggregate's memory, of which `count` are written; null if the capacity is 0.
    rows: *mut Row,
    count: usize,
    capacity: usize,
    /// The sort of rows that came earlier, if there were too many for memory; null otherwise.
    sort: *mut Option<RowSort>,
    /// How many rows the sort has.
    sorted: i64,
}

/// The first number of rows for which there is room.
const ROWS_MIN: usize = 8;

impl KeptRows {
    /// No rows.
    pub fn new() -> KeptRows {
        KeptRows {
            rows: std::ptr::null_mut(),
            count: 0,
            capacity: 0,
            sort: std::ptr::null_mut(),
            sorted: 0,
        }
    }

    /// Whether the rows in memory take as much as they may.
    pub fn is_full(&self) -> bool {
        self.count >= ROWS_MIN && self.count * size_of::<Row>() >= work_memory_limit()
    }

    /// Forgets the rows in memory. The room stays.
    pub fn clear(&mut self) {
        self.count = 0;
    }

    /// Adds a row. `memory` is the aggregate's, always the same.
    #[inline]
    pub fn push(&mut self, memory: pg_sys::MemoryContext, time: i64, x: f64) {
        if self.count == self.capacity {
            self.grow(memory);
        }
        // SAFETY: there is room for the row.
        unsafe { self.rows.add(self.count).write(Row { time, x }) };
        self.count += 1;
    }

    fn grow(&mut self, memory: pg_sys::MemoryContext) {
        let capacity = (self.capacity * 2).max(ROWS_MIN);
        let bytes = capacity * size_of::<Row>();
        // SAFETY: the room was allocated here, in a live context.
        unsafe {
            self.rows = match self.rows.is_null() {
                true => pg_sys::MemoryContextAllocHuge(memory, bytes),
                false => pg_sys::repalloc_huge(self.rows.cast(), bytes),
            }
            .cast();
        }
        self.capacity = capacity;
    }

    /// Moves the rows from memory to the sort. `memory` is that of the aggregate that calls.
    pub fn spill(&mut self, call: &Call, memory: pg_sys::MemoryContext) {
        if self.sort.is_null() {
            self.begin_sort(call, memory);
        }
        // SAFETY: the place was written, and nobody else has a reference to it.
        let Some(sort) = (unsafe { (*self.sort).as_mut() }) else {
            return;
        };
        let mut values = RowValues::new(3);
        values.nulls.fill(false);
        let mut number = self.sorted;
        for row in self.in_memory() {
            values.values.copy_from_slice(&[
                pg_sys::Datum::from(row.time),
                pg_sys::Datum::from(number),
                float8_datum(row.x),
            ]);
            sort.put(&values);
            number += 1;
        }
        (self.sorted, self.count) = (number, 0);
    }

    /// Makes a sort in the aggregate's memory. It has nothing to drop but what its own end frees.
    fn begin_sort(&mut self, call: &Call, memory: pg_sys::MemoryContext) {
        let columns = [pg_sys::INT8OID, pg_sys::INT8OID, pg_sys::FLOAT8OID];
        let columns = columns.into_iter().map(|type_of| (type_of, -1));
        // SAFETY: a live context, in which the place of the sort lives as long as the state. The callback is run before
        // the context is reset.
        unsafe {
            let sort =
                executor::in_context(memory, || RowSort::new(RowDescriptor::new(columns), [1, 2]));
            self.sort = pg_sys::MemoryContextAlloc(memory, size_of::<Option<RowSort>>()).cast();
            self.sort.write(Some(sort));
            call.at_end_of_aggregate(end_sort, pg_sys::Datum::from(self.sort));
        }
    }

    /// Frees the rows, which nobody will ask for any more. Their room in memory stays.
    pub fn free(&mut self) {
        self.count = 0;
        if !self.sort.is_null() {
            // SAFETY: the place was written, and nobody else has a reference to it.
            if let Some(sort) = unsafe { (*self.sort).take() } {
                sort.free();
            }
        }
    }

    /// The rows in memory.
    fn in_memory(&mut self) -> &mut [Row] {
        if self.rows.is_null() {
            return &mut [];
        }
        // SAFETY: so many rows are written, and the state that has this value lives in the same memory.
        unsafe { std::slice::from_raw_parts_mut(self.rows, self.count) }
    }

    /// Hands out all rows in the order of time, and those of equal times in the order in which they came. Rows of a
    /// sort are gone afterwards.
    pub fn in_order(
        &mut self,
        call: &Call,
        memory: pg_sys::MemoryContext,
        mut take: impl FnMut(i64, f64),
    ) {
        if self.sort.is_null() {
            let rows = self.in_memory();
            rows.sort_by_key(|row| row.time);
            rows.iter().for_each(|row| take(row.time, row.x));
            return;
        }
        self.spill(call, memory);
        // SAFETY: the place was written, and nobody else has a reference to it.
        let Some(sort) = (unsafe { (*self.sort).as_mut() }) else {
            return;
        };
        sort.sort();
        while sort.advance() {
            ports::CHECK_FOR_INTERRUPTS();
            let row = sort.row();
            let value = |column| row.value(column).unwrap_or(pg_sys::Datum::null());
            take(int8(value(0)), float8(value(2)));
        }
        self.free();
    }
}

/// Frees a sort whose rows nobody asked for.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn end_sort(place: pg_sys::Datum) {
    // SAFETY: `begin_sort` wrote the place, which is still there.
    if let Some(sort) = unsafe { (*place.cast_mut_ptr::<Option<RowSort>>()).take() } {
        sort.free();
    }
}

/// Counts in an aggregate's memory.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct KeptCounts {
    counts: *mut u32,
    length: usize,
}

impl KeptCounts {
    /// So many counts of zero, in the memory of an aggregate.
    pub fn zeros(memory: pg_sys::MemoryContext, length: usize) -> KeptCounts {
        // SAFETY: a live context; zeros are counts.
        let counts = unsafe { pg_sys::MemoryContextAllocZero(memory, length * size_of::<u32>()) };
        KeptCounts {
            counts: counts.cast(),
            length,
        }
    }

    /// The counts.
    pub fn counts(&mut self) -> &mut [u32] {
        // SAFETY: so many counts were allocated, and the state that has this value lives in the same memory.
        unsafe { std::slice::from_raw_parts_mut(self.counts, self.length) }
    }
}
