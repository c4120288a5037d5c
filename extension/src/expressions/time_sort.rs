//! Sorts rows by group and time with PostgreSQL's own sort, which uses `work_mem` and then temporary files.

use std::ffi::CStr;

use lanes_columnar::aggregate::ema::{TimeSort, Waiting};
use pgrx::pg_sys;

use crate::pg::ports;

/// A sort in progress, of rows of four columns.
pub struct TupleSort {
    state: *mut pg_sys::Tuplesortstate,
    descriptor: pg_sys::TupleDesc,
    slot: *mut pg_sys::TupleTableSlot,
    /// The number of rows put so far, which orders rows of equal times.
    rows: i64,
}

/// The names and types of the columns. All but the last are sort keys, ascending with NULL last.
const COLUMNS: [(&CStr, pg_sys::Oid); 4] = [
    (c"group", pg_sys::INT4OID),
    (c"time", pg_sys::INT8OID),
    (c"row", pg_sys::INT8OID),
    (c"x", pg_sys::FLOAT8OID),
];
const KEYS: usize = 3;

impl TupleSort {
    /// Begins a sort in the current memory context, under the current resource owner. Both live until the query ends.
    pub fn begin() -> TupleSort {
        let less = |type_of| match type_of {
            pg_sys::INT4OID => pg_sys::Int4LessOperator,
            _ => pg_sys::Int8LessOperator,
        };
        let mut attributes = [1, 2, 3];
        let mut operators: [pg_sys::Oid; KEYS] =
            std::array::from_fn(|key| less(COLUMNS[key].1).into());
        let mut collations = [pg_sys::InvalidOid; KEYS];
        let mut nulls_first = [false; KEYS];
        // SAFETY: the descriptor has all its columns before it is used; the sort copies the arrays of keys.
        unsafe {
            let descriptor = pg_sys::CreateTemplateTupleDesc(COLUMNS.len() as i32);
            for (number, (name, type_of)) in (1..).zip(COLUMNS) {
                pg_sys::TupleDescInitEntry(descriptor, number, name.as_ptr(), type_of, -1, 0);
            }
            let state = pg_sys::tuplesort_begin_heap(
                descriptor,
                KEYS as i32,
                attributes.as_mut_ptr(),
                operators.as_mut_ptr(),
                collations.as_mut_ptr(),
                nulls_first.as_mut_ptr(),
                pg_sys::work_mem,
                std::ptr::null_mut(),
                pg_sys::TUPLESORT_NONE as i32,
            );
            let slot =
                pg_sys::MakeSingleTupleTableSlot(descriptor, &raw const pg_sys::TTSOpsVirtual);
            TupleSort {
                state,
                descriptor,
                slot,
                rows: 0,
            }
        }
    }
}

impl TimeSort for TupleSort {
    fn put(&mut self, row: Waiting) {
        // SAFETY: the slot has the sort's columns; the sort copies the row.
        unsafe {
            ports::ExecClearTuple(self.slot);
            let values = [
                pg_sys::Datum::from(row.group as i32),
                pg_sys::Datum::from(row.time.unwrap_or_default()),
                pg_sys::Datum::from(self.rows),
                pg_sys::Datum::from(row.x.to_bits() as usize),
            ];
            let nulls = [false, row.time.is_none(), false, false];
            for (column, (value, is_null)) in values.into_iter().zip(nulls).enumerate() {
                *(*self.slot).tts_values.add(column) = value;
                *(*self.slot).tts_isnull.add(column) = is_null;
            }
            ports::ExecStoreVirtualTuple(self.slot);
            pg_sys::tuplesort_puttupleslot(self.state, self.slot);
        }
        self.rows += 1;
    }

    fn drain(&mut self, take: &mut dyn FnMut(Waiting)) {
        // SAFETY: the sort is live, and its rows have the columns that `put` set.
        unsafe {
            pg_sys::ExecDropSingleTupleTableSlot(self.slot);
            let slot = pg_sys::MakeSingleTupleTableSlot(
                self.descriptor,
                &raw const pg_sys::TTSOpsMinimalTuple,
            );
            pg_sys::tuplesort_performsort(self.state);
            while pg_sys::tuplesort_gettupleslot(
                self.state,
                true,
                false,
                slot,
                std::ptr::null_mut(),
            ) {
                ports::CHECK_FOR_INTERRUPTS();
                ports::slot_getallattrs(slot);
                let value = |column| (*(*slot).tts_values.add(column)).value() as u64;
                take(Waiting {
                    group: value(0) as u32,
                    time: (!*(*slot).tts_isnull.add(1)).then(|| value(1) as i64),
                    x: f64::from_bits(value(3)),
                });
            }
            pg_sys::ExecDropSingleTupleTableSlot(slot);
            pg_sys::tuplesort_end(self.state);
        }
    }
}
