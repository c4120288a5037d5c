//! Index entries sorted by the numbers of their rows, for indexes that are built in the order of the table.

use pgrx::pg_sys;

use super::exec::row_store::{RowDescriptor, RowSort};
use super::exec::slot::RowValues;
use super::index::{Entry, EntrySink};

/// Entries that are being sorted. The sort uses `work_mem`, and then temporary files.
pub struct EntrySort {
    sort: RowSort,
    /// The number of the row, and then the columns of the entry.
    row: RowValues,
}

/// The column that rows are sorted by: the number of the row, and whether the row is alive in the lowest bit.
const KEY: i16 = 1;

impl EntrySort {
    /// Begins to sort the entries that an index is built from.
    pub fn begin(sink: &EntrySink) -> EntrySort {
        let key = (pg_sys::INT8OID, -1);
        let columns: Vec<_> = std::iter::once(key).chain(sink.column_types()).collect();
        let row = RowValues::new(columns.len());
        let sort = RowSort::new(RowDescriptor::new(columns.into_iter()), [KEY]);
        EntrySort { sort, row }
    }

    /// Adds the entry of a row. The sort copies it.
    pub fn put(&mut self, number: u64, is_alive: bool, entry: &Entry) {
        let key = number << 1 | u64::from(is_alive);
        (self.row.values[0], self.row.nulls[0]) = ((key as i64).into(), false);
        entry.copy_to(&mut self.row.values[1..], &mut self.row.nulls[1..]);
        self.sort.put(&self.row);
    }

    /// Sorts the entries, all of which were added.
    pub fn sort(&mut self) {
        self.sort.sort();
    }

    /// The next entry, the number of its row, and whether the row is alive. The entry is valid until the next call.
    pub fn next(&mut self) -> Option<(u64, bool, Entry)> {
        if !self.sort.advance() {
            return None;
        }
        let row = self.sort.row();
        let key = row.value(0)?.value() as u64;
        let columns = (1..row.width()).map(|column| row.value(column));
        Some((key >> 1, key & 1 == 1, Entry::of_columns(columns)))
    }

    /// Frees the sort.
    pub fn free(self) {
        self.sort.free();
    }
}
