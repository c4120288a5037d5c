//! Rows put aside: first in, first out, or sorted. Both use `work_mem` and then temporary files.

use pgrx::pg_sys;

use super::memory::work_memory_limit;
use super::slot::{RowValues, Slot};
use crate::pg::descriptor::Descriptor;
use crate::pg::functions::{Null, executor as functions};
use crate::pg::tree::view::views;

views! {
    /// The state of a store of rows.
    StoreState of Tuplestorestate {} {} {}

    /// The state of a sort of rows.
    SortState of Tuplesortstate {} {} {}
}

/// The columns of rows that are put aside.
#[derive(Clone, Copy)]
pub struct RowDescriptor(Descriptor<'static>);

impl RowDescriptor {
    /// A descriptor of columns of these types and type modifiers, in the current memory context.
    pub fn new(columns: impl ExactSizeIterator<Item = (pg_sys::Oid, i32)>) -> RowDescriptor {
        let descriptor = functions::CreateTemplateTupleDesc(columns.len() as i32);
        for (number, (type_of, modifier)) in (1..).zip(columns) {
            functions::TupleDescInitEntry(descriptor, number, c"", type_of, modifier, 0);
        }
        RowDescriptor(descriptor)
    }

    /// The descriptor of a slot, for a queue that is freed before the slot.
    pub fn of_slot(slot: Slot) -> RowDescriptor {
        RowDescriptor(slot.descriptor())
    }
}

/// Rows that are returned in the order in which they were put aside.
pub struct RowQueue {
    store: StoreState<'static>,
    descriptor: RowDescriptor,
    row: Slot,
}

impl RowQueue {
    /// An empty queue, in the current memory context and resource owner.
    pub fn new(descriptor: RowDescriptor) -> RowQueue {
        let kilobytes = (work_memory_limit() / 1024) as i32;
        RowQueue {
            store: functions::tuplestore_begin_heap(false, false, kilobytes),
            descriptor,
            row: functions::minimal_slot(descriptor.0),
        }
    }

    /// Puts a row aside. The queue copies it.
    pub fn put(&mut self, row: &mut RowValues) {
        let (values, nulls) = (&mut row.values, &mut row.nulls);
        functions::tuplestore_putvalues(self.store, self.descriptor.0, values, nulls);
    }

    /// Puts the row of a slot aside. The queue copies it.
    pub fn put_slot(&mut self, row: Slot) {
        functions::tuplestore_puttupleslot(self.store, row);
    }

    /// The next row, valid until the one after it. `None` if there is no row left; all rows are then dropped.
    pub fn next_row(&mut self) -> Option<Slot> {
        if functions::tuplestore_gettupleslot(self.store, true, false, self.row) {
            self.row.read_all();
            return Some(self.row);
        }
        functions::tuplestore_clear(self.store);
        None
    }

    /// Frees the queue.
    pub fn free(self) {
        self.row.free();
        functions::tuplestore_end(self.store);
    }
}

/// Rows that are returned in the ascending order of bigint columns, NULL last.
pub struct RowSort {
    sort: SortState<'static>,
    put: Slot,
    row: Slot,
}

impl RowSort {
    /// A sort by these columns, counted from 1, in the current memory context and resource owner.
    pub fn new<const KEYS: usize>(descriptor: RowDescriptor, columns: [i16; KEYS]) -> RowSort {
        let kilobytes = (work_memory_limit() / 1024) as i32;
        RowSort {
            sort: functions::sort_by_bigints(descriptor.0, columns, kilobytes),
            put: functions::virtual_slot(descriptor.0),
            row: functions::minimal_slot(descriptor.0),
        }
    }

    /// Adds a row. The sort copies it.
    pub fn put(&mut self, row: &RowValues) {
        let mut slot = self.put.writer();
        slot.copy_from(&row.values, &row.nulls);
        functions::tuplesort_puttupleslot(self.sort, slot.store());
    }

    /// Sorts the rows, all of which were added.
    pub fn sort(&mut self) {
        self.put.clear();
        functions::tuplesort_performsort(self.sort);
    }

    /// Goes on to the next row; false if there is no row left.
    pub fn advance(&mut self) -> bool {
        let found = functions::tuplesort_gettupleslot(self.sort, true, false, self.row, Null);
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
        functions::tuplesort_end(self.sort);
    }
}
