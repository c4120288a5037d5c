//! One row by its number: whether a snapshot sees it, and its values.

use std::rc::Rc;

use lanes_columnar::arena::RunEntry;
use pgrx::pg_sys;

use super::kept::Extent;
use super::reader::{Access, Content, Reader, SegmentView, ViewRequest};
use super::{pending_rows, row_numbers, serializable, speculation, tid};
use crate::pg::slot::{RowHeader, Slot};
use crate::pg::snapshot::{Snapshot, SnapshotKind};
use crate::pg::table::OpenTable;

/// The run of a row, if the row exists under a snapshot.
pub fn visible_row(content: &mut Content, snapshot: Snapshot<'_>, row: u64) -> Option<RunEntry> {
    let (index, run) = content.run_of(row)?;
    snapshot.forget_writers();
    let mut learned = 0;
    let seen = snapshot.sees_run(&run, |flags| learned = flags);
    if learned != 0 {
        content.runs.learn(index, learned);
    }
    if seen && let Some(inserter) = snapshot.reported_inserter() {
        let token = speculation::token_of(inserter, content.meta.storage_id, row);
        snapshot.report_token(token);
    }
    let tombstones = content.tombstones.borrow();
    let mut of_row = tombstones.of_row(row).iter();
    (seen && !of_row.any(|tombstone| snapshot.sees_deletion(tombstone))).then_some(run)
}

/// A view of one row. Rows that are asked for one after the other mostly lie in one segment.
pub fn view(reader: &Reader<'_>, content: &Content, row: u64) -> Rc<SegmentView> {
    let known = content.near_rows.borrow().clone();
    if let Some(view) = known.filter(|view| view.lasting_rows().contains(&row)) {
        return view;
    }
    let request = ViewRequest {
        reader,
        content,
        rows: row..row + 1,
        access: Access::OneRow,
    };
    let view = Rc::new(request.open());
    if view.lasting_rows().contains(&row) {
        content.near_rows.replace(Some(view.clone()));
    }
    view
}

/// Stores a row of a run into a slot, in the slot's own memory.
pub fn store_row(reader: &Reader<'_>, content: &Content, run: &RunEntry, row: u64, slot: Slot<'_>) {
    let view = view(reader, content, row);
    if !view.is_private() {
        reader.table.count_blocks_found(1);
    }
    slot.store(
        view.outlet(),
        view.place(row),
        tid::from_row(row),
        reader.table.oid(),
        RowHeader::new(run.xmin, run.cmin),
    );
    slot.detach();
}

/// Fetches one row by tuple id into a slot of the table; false: the row does not exist under the
/// snapshot.
pub fn fetch(
    table: OpenTable<'_>,
    id: &pg_sys::ItemPointerData,
    snapshot: Snapshot<'_>,
    slot: Slot<'_>,
) -> bool {
    let Some(row) = tid::to_row(id) else {
        return false;
    };
    row_numbers::keep_if_changing(table);
    pending_rows::flush_table(table.oid());
    let is_serializable = table.reports_conflicts(snapshot);
    if is_serializable {
        // Whoever changes the row from now on finds this lock.
        let content = Reader::open(table).content.take();
        if let Some(content) = &content {
            serializable::lock_row(table, content, snapshot, row, None);
        }
    }
    let mut reader = Reader::open_to(table, slot.descriptor(), Extent::Row(row));
    let Some(mut content) = reader.content.take() else {
        return false;
    };
    // Tables that the statement only reads are checked too, because a join that changes another
    // table fetches their rows by number.
    row_numbers::check_row(table, &content, row);
    if is_serializable {
        serializable::report_conflicts(table, &content, snapshot, row);
    }
    let Some(run) = visible_row(&mut content, snapshot, row) else {
        return false;
    };
    store_row(&reader, &content, &run, row, slot);
    if snapshot.kind() == SnapshotKind::Any {
        // RETURNING of DELETE.
        let deletion = newest_deletion(&content, row);
        let header = RowHeader {
            xmax: deletion.unwrap_or_default(),
            ..RowHeader::new(run.xmin, run.cmin)
        };
        slot.set_written(*id, table.oid(), header);
    }
    true
}

/// The transaction that has deleted or updated a row.
fn newest_deletion(content: &Content, row: u64) -> Option<u32> {
    let tombstones = content.tombstones.borrow();
    let mut of_row = tombstones.of_row(row).iter().rev();
    of_row.find(|tombstone| tombstone.deletes()).map(|t| t.xmax)
}

/// Stores a row in a slot of the table, whether or not any snapshot sees it; false: there is no
/// such row.
pub fn read(table: OpenTable<'_>, row: u64, slot: Slot<'_>) -> bool {
    pending_rows::flush_table(table.oid());
    let mut reader = Reader::open_to(table, slot.descriptor(), Extent::Run(row));
    let Some(content) = reader.content.take() else {
        return false;
    };
    let run = content.run_of(row).map(|(_, run)| run);
    if let Some(run) = &run {
        store_row(&reader, &content, run, row, slot);
    }
    run.is_some()
}

/// Whether a row, named by its tuple id, exists under a snapshot.
pub fn exists(table: OpenTable<'_>, id: &pg_sys::ItemPointerData, snapshot: Snapshot<'_>) -> bool {
    let Some(row) = tid::to_row(id) else {
        return false;
    };
    pending_rows::flush_table(table.oid());
    let content = Reader::open(table).content.take();
    content.is_some_and(|mut content| visible_row(&mut content, snapshot, row).is_some())
}
