//! Sorts rows by group and time with PostgreSQL's own sort, which uses `work_mem` and then temporary files.

use lanes_columnar::aggregate::ema::{TimeSort, Waiting};
use pgrx::pg_sys;

use crate::pg::exec::row_store::{RowDescriptor, RowSort};
use crate::pg::exec::slot::RowValues;
use crate::pg::{call, ports};

/// A sort in progress, of rows of four columns.
pub struct TupleSort {
    /// The sort, until it was drained.
    sort: Option<RowSort>,
    row: RowValues,
    /// The number of rows put so far, which orders rows of equal times.
    rows: i64,
}

/// The types of the columns: group, time, row and x. All but the last are sort keys, ascending with NULL last.
const COLUMNS: [pg_sys::Oid; 4] = [
    pg_sys::INT8OID,
    pg_sys::INT8OID,
    pg_sys::INT8OID,
    pg_sys::FLOAT8OID,
];

impl TupleSort {
    /// Begins a sort in the current memory context, under the current resource owner. Both live until the query ends.
    pub fn begin() -> TupleSort {
        let columns = COLUMNS.into_iter().map(|type_of| (type_of, -1));
        TupleSort {
            sort: Some(RowSort::new(RowDescriptor::new(columns), [1, 2, 3])),
            row: RowValues::new(COLUMNS.len()),
            rows: 0,
        }
    }
}

impl TimeSort for TupleSort {
    fn put(&mut self, row: Waiting) {
        let Some(sort) = &mut self.sort else {
            return;
        };
        self.row.values.copy_from_slice(&[
            pg_sys::Datum::from(i64::from(row.group)),
            pg_sys::Datum::from(row.time.unwrap_or_default()),
            pg_sys::Datum::from(self.rows),
            call::float8_datum(row.x),
        ]);
        let nulls = [false, row.time.is_none(), false, false];
        self.row.nulls.copy_from_slice(&nulls);
        sort.put(&self.row);
        self.rows += 1;
    }

    fn drain(&mut self, take: &mut dyn FnMut(Waiting)) {
        let Some(mut sort) = self.sort.take() else {
            return;
        };
        sort.sort();
        while sort.advance() {
            ports::CHECK_FOR_INTERRUPTS();
            let row = sort.row();
            let value = |column| row.value(column).unwrap_or(pg_sys::Datum::null());
            take(Waiting {
                group: call::int8(value(0)) as u32,
                time: row.value(1).map(call::int8),
                x: call::float8(value(3)),
            });
        }
        sort.free();
    }
}
