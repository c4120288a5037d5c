//! Serializable isolation: single rows that are read, and conflicts with those who change them.
//!
//! A scan of a table locks it as a whole. A reader of single rows, by an index or by their tuple ids,
//! locks each of them. Such a lock names the row by its entry number, which sealing does not change.

use pgrx::pg_sys;

use super::entry_numbers::{self, EntryNumbers};
use super::kept::Extent;
use super::reader::{Content, Reader};
use super::{row_numbers, scan, tid};
use crate::pg::server;
use crate::pg::snapshot::Snapshot;
use crate::pg::table::OpenTable;

/// The id by which readers lock a row that this transaction is about to change; `None`: the
/// transaction is not serializable.
pub fn row_id(table: OpenTable<'_>, row: u64) -> Option<pg_sys::ItemPointerData> {
    if !server::is_serializable() {
        return None;
    }
    row_numbers::keep(table);
    let mut reader = Reader::open_to(table, table.descriptor(), Extent::Run(row));
    let content = reader.content.take()?;
    Some(entry_id(table, &content, row))
}

fn entry_id(table: OpenTable<'_>, content: &Content, row: u64) -> pg_sys::ItemPointerData {
    tid::from_row(EntryNumbers::default().of_row(table, content, row))
}

/// Reports who wrote or deleted a row that is read, where the snapshot does not see that.
pub fn report_conflicts(table: OpenTable<'_>, content: &Content, snapshot: Snapshot<'_>, row: u64) {
    let Some((_, run)) = content.run_of(row) else {
        return;
    };
    if !snapshot.sees_run(&run, |_| ()) {
        return scan::report_unseen(table, snapshot, &run);
    }
    let tombstones = content.tombstones.borrow();
    let unseen = tombstones
        .of_row(row)
        .iter()
        .filter(|t| t.deletes() && !t.is_frozen() && !snapshot.sees_deletion(t));
    for tombstone in unseen {
        table.check_conflict_out(tombstone.xmax, snapshot);
    }
}

/// Locks a row before it is read, with its entry number if the caller knows it.
pub fn lock_row(
    table: OpenTable<'_>,
    content: &Content,
    snapshot: Snapshot<'_>,
    row: u64,
    number: Option<u64>,
) {
    if let Some((_, run)) = content.run_of(row) {
        let id = match number {
            Some(number) => tid::from_row(number),
            None => entry_id(table, content, row),
        };
        table.predicate_lock_row(id, snapshot, run.xmin);
    }
}

/// Locks the row with an entry number, and then reports who wrote or deleted it without being
/// visible. The table is opened anew, because the row may have been added since the scan began.
pub fn read_entry(table: OpenTable<'_>, snapshot: Snapshot<'_>, number: u64) {
    let open = || Reader::open(table).content.take();
    let Some(content) = open() else {
        return;
    };
    if let Some(row) = entry_numbers::row_of(table, &content.parts, number) {
        lock_row(table, &content, snapshot, row, Some(number));
    }
    // Whoever changes the row from now on finds the lock.
    if let Some(content) = open()
        && let Some(row) = entry_numbers::row_of(table, &content.parts, number)
    {
        report_conflicts(table, &content, snapshot, row);
    }
}
