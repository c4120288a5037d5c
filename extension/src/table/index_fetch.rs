//! Rows that index scans ask for, by entry number.

use pgrx::pg_sys;

use super::kept::{self, Extent};
use super::reader::{Content, Reader};
use super::scan::Scan;
use super::{entry_numbers, fate, one_row, row_numbers, serializable, tid};
use crate::pg::access::Found;
use crate::pg::slot::Slot;
use crate::pg::snapshot::{Snapshot, SnapshotKind};
use crate::pg::table::OpenTable;
use crate::storage::directory::FLAG_SEALED;

/// The fetches of one index scan under an MVCC snapshot.
pub struct IndexFetch<'a> {
    table: OpenTable<'a>,
    /// The scan that fetches all rows under an MVCC snapshot: everything that the snapshot sees was
    /// in the table when the scan began.
    scan: Option<Scan<'a>>,
    /// The oldest transaction that may be invisible to some snapshot, as of its first use.
    horizon: Option<u32>,
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

    /// Stores the row with an entry number in a slot, if the MVCC snapshot sees it.
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
        let scan = self
            .scan
            .get_or_insert_with(|| Scan::begin(table, Some(snapshot)));
        if table.reports_conflicts(snapshot) {
            serializable::read_entry(table, snapshot, number);
        }
        if let Some(row) = scan.row_of_entry(number)
            && scan.store_row(row, slot)
        {
            return Found::Row;
        }
        match &scan.reader.content {
            Some(content) => {
                let known = &mut self.horizon;
                let oldest = || *known.get_or_insert_with(|| table.oldest_non_removable_xid());
                unseen(table, content, number, oldest)
            }
            None => Found::Nothing,
        }
    }
}

/// Stores the row with an entry number in a slot, if a snapshot that is not MVCC sees it now. Rows
/// that this backend has [gathered](super::pending_rows) have no entries, so they stay gathered. Most
/// rows turn out to be gone or invisible, and finding this out takes no scan. `horizon` returns the
/// oldest transaction that may be invisible to some snapshot.
pub fn fetch_current<'a>(
    table: OpenTable<'a>,
    id: &pg_sys::ItemPointerData,
    snapshot: Snapshot<'a>,
    slot: Slot<'a>,
    horizon: impl FnMut() -> u32,
) -> Found {
    let Some(number) = tid::to_row(id) else {
        return Found::Nothing;
    };
    row_numbers::keep_if_changing(table);
    // An UPDATE that keeps the key finds the index entry of the version that it has just replaced.
    let sees_own = [SnapshotKind::Dirty, SnapshotKind::Current];
    if sees_own.contains(&snapshot.kind()) && kept::has_own_deletion(table, number) {
        snapshot.forget_writers();
        return Found::Nothing;
    }
    let mut reader = Reader::open_to(table, table.descriptor(), Extent::Row(number));
    let Some(mut content) = reader.content.take() else {
        return Found::Nothing;
    };
    let row = entry_numbers::row_of(table, &content.parts, number);
    let run = row.and_then(|row| one_row::visible_row(&mut content, snapshot, row));
    let (Some(row), Some(run)) = (row, run) else {
        return unseen(table, &content, number, horizon);
    };
    if run.flags & FLAG_SEALED == 0 {
        one_row::store_row(&reader, &content, &run, row, slot);
        return Found::Row;
    }
    // A scan decodes one vector of a sealed segment instead of all of it.
    let mut scan = Scan::of_written(table, Some(snapshot));
    match scan.row_of_entry(number) {
        Some(row) if scan.store_row(row, slot) => Found::Row,
        _ => Found::Nothing,
    }
}

/// The result for a row that the snapshot does not see.
fn unseen(
    table: OpenTable<'_>,
    content: &Content,
    number: u64,
    horizon: impl FnMut() -> u32,
) -> Found {
    match fate::is_gone(table, content, &mut None, number, horizon) {
        true => Found::Gone,
        false => Found::Nothing,
    }
}
