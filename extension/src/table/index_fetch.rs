//! Rows that index scans ask for, by entry number.

use pgrx::pg_sys;

use super::reader::Reader;
use super::row_numbers::{self, Reading};
use super::{entry_numbers, fate, one_row, pending_rows, tid};
use crate::pg::slot::Slot;
use crate::pg::snapshot::{Snapshot, SnapshotKind};
use crate::pg::table::OpenTable;

/// A fetch under way: of an index scan, or of the check of a constraint.
pub struct IndexFetch<'a> {
    table: OpenTable<'a>,
    open: Option<OpenReader<'a>>,
    /// The oldest transaction that some snapshot may not see, as of when it was first asked for.
    horizon: Option<u32>,
}

/// What a fetch has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    Row,
    /// The snapshot does not see the row.
    Nothing,
    /// Nobody will see the row again.
    Gone,
}

/// The table as an MVCC snapshot may go on reading it: everything that the snapshot sees was there when it was opened.
struct OpenReader<'a> {
    reader: Reader<'a>,
    /// Rows are handed out by the numbering of this moment.
    _reading: Reading,
}

impl<'a> IndexFetch<'a> {
    /// Begins to fetch rows of a table.
    pub fn begin(table: OpenTable<'a>) -> IndexFetch<'a> {
        // What is fetched may be changed or locked by its row number, which therefore has to stay.
        row_numbers::keep_if_changing(table);
        IndexFetch {
            table,
            open: None,
            horizon: None,
        }
    }

    /// Releases what is held of the table.
    pub fn reset(&mut self) {
        self.open = None;
    }

    /// Stores the row with an entry number into a slot, if the snapshot sees the row.
    pub fn fetch(
        &mut self,
        id: &pg_sys::ItemPointerData,
        snapshot: Snapshot<'_>,
        slot: Slot<'a>,
    ) -> Found {
        let Some(number) = tid::to_row(id) else {
            return Found::Nothing;
        };
        let table = self.table;
        let is_mvcc = snapshot.kind() == SnapshotKind::Mvcc;
        let open = match self.open.take().filter(|_| is_mvcc) {
            Some(open) => open,
            None => OpenReader::new(table, snapshot, slot),
        };
        let open = self.open.insert(open);
        let reader = &mut open.reader;
        let Some(content) = &mut reader.content else {
            return Found::Nothing;
        };
        if let Some(row) = entry_numbers::row_of(table, content, number)
            && let Some(run) = one_row::visible_row(content, snapshot, row)
        {
            if let Some(content) = &reader.content {
                one_row::store_row(reader, content, &run, row, slot);
            }
            return Found::Row;
        }
        let horizon = *self
            .horizon
            .get_or_insert_with(|| table.oldest_non_removable_xid());
        match fate::is_gone(table, content, &mut None, number, horizon) {
            true => Found::Gone,
            false => Found::Nothing,
        }
    }
}

impl<'a> OpenReader<'a> {
    fn new(table: OpenTable<'a>, snapshot: Snapshot<'_>, slot: Slot<'a>) -> OpenReader<'a> {
        if snapshot.kind() == SnapshotKind::Mvcc {
            table.predicate_lock(snapshot);
        }
        pending_rows::flush_table(table.oid());
        let reader = Reader::open_as(table, slot.descriptor());
        let _reading = Reading::begin(table, reader.meta());
        OpenReader { reader, _reading }
    }
}
