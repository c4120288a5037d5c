//! Rows put aside: first in, first out, or sorted. Both use `work_mem` and then temporary files.

use pgrx::pg_sys;

use super::memory::work_memory_limit;
use super::slot::{RowValues, Slot};

/// The columns of rows that are put aside.
#[derive(Clone, Copy)]
pub struct RowDescriptor(pg_sys::TupleDesc);

impl RowDescriptor {
    /// A descriptor of columns of these types and type modifiers, in the current memory context.
    pub fn new(columns: impl ExactSizeIterator<Item = (pg_sys::Oid, i32)>) -> RowDescriptor {
        // SAFETY: the new descriptor has an entry for each column.
        unsafe {
            let descriptor = pg_sys::CreateTemplateTupleDesc(columns.len() as i32);
            for (place, (type_of, modifier)) in columns.enumerate() {
                let (number, name) = (place as i16 + 1, c"".as_ptr());
                pg_sys::TupleDescInitEntry(descriptor, number, name, type_of, modifier, 0);
            }
            RowDescriptor(descriptor)
        }
    }

    /// The descriptor of a slot, for a queue that is freed before the slot.
    pub fn of_slot(slot: Slot) -> RowDescriptor {
        // SAFETY: a live slot has a descriptor, which lives as long.
        RowDescriptor(unsafe { (*slot.as_raw()).tts_tupleDescriptor })
    }

    fn minimal_slot(self) -> Slot {
        // SAFETY: the descriptor lives in the same memory context as the slot.
        unsafe {
            let operations = &raw const pg_sys::TTSOpsMinimalTuple;
            Slot::of(pg_sys::MakeSingleTupleTableSlot(self.0, operations))
        }
    }
}

/// Rows that are returned in the order in which they were put aside.
pub struct RowQueue {
    store: *mut pg_sys::Tuplestorestate,
    descriptor: RowDescriptor,
    row: Slot,
}

impl RowQueue {
    /// An empty queue, in the current memory context and resource owner.
    pub fn new(descriptor: RowDescriptor) -> RowQueue {
        let kilobytes = (work_memory_limit() / 1024) as i32;
        // SAFETY: the store is allocated in the current memory context.
        let store = unsafe { pg_sys::tuplestore_begin_heap(false, false, kilobytes) };
        RowQueue {
            store,
            descriptor,
            row: descriptor.minimal_slot(),
        }
    }

    /// Puts a row aside. The queue copies it.
    pub fn put(&mut self, row: &mut RowValues) {
        let (values, nulls) = (row.values.as_mut_ptr(), row.nulls.as_mut_ptr());
        // SAFETY: the store is live, and the row has a value for each column.
        unsafe { pg_sys::tuplestore_putvalues(self.store, self.descriptor.0, values, nulls) }
    }

    /// Puts the row of a slot aside. The queue copies it.
    pub fn put_slot(&mut self, row: Slot) {
        // SAFETY: the store is live, and the slot has a row.
        unsafe { pg_sys::tuplestore_puttupleslot(self.store, row.as_raw()) }
    }

    /// The next row, valid until the one after it. `None` if there is no row left; all rows are then dropped.
    pub fn next_row(&mut self) -> Option<Slot> {
        // SAFETY: store and slot are live.
        unsafe {
            if pg_sys::tuplestore_gettupleslot(self.store, true, false, self.row.as_raw()) {
                self.row.read_all();
                return Some(self.row);
            }
            pg_sys::tuplestore_clear(self.store);
        }
        None
    }

    /// Frees the queue.
    pub fn free(self) {
        self.row.free();
        // SAFETY: the store is live, and nobody uses its rows any more.
        unsafe { pg_sys::tuplestore_end(self.store) }
    }
}

/// Rows that are returned in the ascending order of bigint columns, NULL last.
pub struct RowSort {
    sort: *mut pg_sys::Tuplesortstate,
    put: Slot,
    row: Slot,
}

impl RowSort {
    /// A sort by these columns, counted from 1, in the current memory context and resource owner.
    pub fn new<const KEYS: usize>(descriptor: RowDescriptor, mut columns: [i16; KEYS]) -> RowSort {
        let mut operators: [pg_sys::Oid; KEYS] = [pg_sys::Int8LessOperator.into(); KEYS];
        let mut collations = [pg_sys::InvalidOid; KEYS];
        let mut nulls_first = [false; KEYS];
        let kilobytes = (work_memory_limit() / 1024) as i32;
        // SAFETY: the sort copies the keys; the descriptor lives in the same memory context as the slots.
        unsafe {
            RowSort {
                sort: pg_sys::tuplesort_begin_heap(
                    descriptor.0,
                    KEYS as i32,
                    columns.as_mut_ptr(),
                    operators.as_mut_ptr(),
                    collations.as_mut_ptr(),
                    nulls_first.as_mut_ptr(),
                    kilobytes,
                    std::ptr::null_mut(),
                    pg_sys::TUPLESORT_NONE as i32,
                ),
                put: Slot::of_virtual(descriptor.0),
                row: descriptor.minimal_slot(),
            }
        }
    }

    /// Adds a row. The sort copies it.
    pub fn put(&mut self, row: &RowValues) {
        let mut slot = self.put.writer();
        slot.copy_from(&row.values, &row.nulls);
        let slot = slot.store();
        // SAFETY: the sort is live, and the slot has its columns.
        unsafe { pg_sys::tuplesort_puttupleslot(self.sort, slot.as_raw()) }
    }

    /// Sorts the rows, all of which were added.
    pub fn sort(&mut self) {
        self.put.clear();
        // SAFETY: the sort is live.
        unsafe { pg_sys::tuplesort_performsort(self.sort) }
    }

    /// Goes on to the next row; false if there is no row left.
    pub fn advance(&mut self) -> bool {
        let (sort, slot) = (self.sort, self.row.as_raw());
        // SAFETY: sort and slot are live.
        let found = unsafe {
            pg_sys::tuplesort_gettupleslot(sort, true, false, slot, std::ptr::null_mut())
        };
        if found {
            self.row.read_all();
        }
        found
    }

    /// The current row, valid until [`Self::advance`].
    pub fn row(&self) -> Slot {
        self.row
    }

    /// Frees the sort.
    pub fn free(self) {
        self.row.free();
        self.put.free();
        // SAFETY: the sort is live, and nobody uses its rows any more.
        unsafe { pg_sys::tuplesort_end(self.sort) }
    }
}
