//! Rows that index scans ask for, by entry number.

use pgrx::pg_sys;

use super::scan::Scan;
use super::{fate, tid};
use crate::pg::slot::Slot;
use crate::pg::snapshot::{Snapshot, SnapshotKind};
use crate::pg::table::OpenTable;

/// A fetch under way: of an index scan, or of the check of a constraint.
pub struct IndexFetch<'a> {
    table: OpenTable<'a>,
    /// The scan by which rows are read. Under an MVCC snapshot one scan serves all rows: everything that the snapshot
    /// sees was in the table when the scan began.
    scan: Option<Scan<'a>>,
    /// The oldest transaction that some snapshot may not see, as of when it was first asked for.
    horizon: Option<u32>,
}

/// The result of a fetch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    Row,
    /// The snapshot does not see the row.
    Nothing,
    /// Nobody will see the row again.
    Gone,
}

impl<'a> IndexFetch<'a> {
    /// Begins to fetch rows of a table.
    pub fn begin(table: OpenTable<'a>) -> IndexFetch<'a> {
        IndexFetch {
            table,
            scan: None,
            horizon: None,
        }
    }

    /// Stores the row with an entry number into a slot, if the snapshot sees the row.
    pub fn fetch(
        &mut self,
        id: &pg_sys::ItemPointerData,
        snapshot: Snapshot<'a>,
        slot: Slot<'a>,
    ) -> Found {
        let Some(number) = tid::to_row(id) else {
            return Found::Nothing;
        };
        let table = self.table;
        let is_mvcc = snapshot.kind() == SnapshotKind::Mvcc;
        let begin = || {
            if is_mvcc {
                table.predicate_lock(snapshot);
            }
            Scan::begin(table, Some(snapshot))
        };
        let scan = self.scan.take().filter(|_| is_mvcc);
        let scan = self.scan.insert(scan.unwrap_or_else(begin));
        if let Some(row) = scan.row_of_entry(number)
            && scan.store_row(row, slot)
        {
            return Found::Row;
        }
        let Some(content) = &scan.reader.content else {
            return Found::Nothing;
        };
        let horizon = *self
            .horizon
            .get_or_insert_with(|| table.oldest_non_removable_xid());
        match fate::is_gone(table, content, &mut None, number, horizon) {
            true => Found::Gone,
            false => Found::Nothing,
        }
    }
}
