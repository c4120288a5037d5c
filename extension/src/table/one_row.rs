//! One row by its number: whether a snapshot sees it, and its values.

use lanes_columnar::arena::RunEntry;
use pgrx::pg_sys;

use super::reader::{Access, Content, Reader, ViewRequest};
use super::visibility::Snapshot;
use super::{row_numbers, tid};
use crate::pg::ports;
use crate::pg::slot::{self, RowHeader};

/// Whether a row exists under a snapshot; with its run.
pub fn visible_row(content: &mut Content, snapshot: &Snapshot, row: u64) -> Option<RunEntry> {
    let (index, run) = content.run_of(row)?;
    snapshot.reset_dirty();
    let mut learned = 0;
    let seen = snapshot.sees_run(&run, |flags| learned = flags);
    if learned != 0 {
        content.runs.learn(index, learned);
    }
    let tombstones = content.tombstones.borrow();
    (seen
        && !tombstones
            .of_row(row)
            .iter()
            .any(|t| snapshot.sees_deletion(t)))
    .then_some(run)
}

/// Stores one row into a slot, in the slot's own memory.
///
/// # Safety
/// `target` is a slot of the reader's table; the row lies in `run`, a run of the reader's content.
pub unsafe fn store_row(
    reader: &Reader,
    content: &Content,
    run: &RunEntry,
    row: u64,
    target: *mut pg_sys::TupleTableSlot,
) {
    // SAFETY: the caller's promise; the slot is detached before the view is dropped.
    unsafe {
        let request = ViewRequest {
            reader,
            content,
            rows: row..row + 1,
            access: Access::OneRow,
        };
        let view = request.open();
        slot::store(
            target,
            view.outlet(),
            view.place(row),
            tid::from_row(row),
            (*reader.relation).rd_id,
            RowHeader {
                xmin: run.xmin,
                cmin: run.cmin,
            },
        );
        slot::detach(target);
    }
}

/// Fetches one row by TID under a snapshot; false when it does not exist under it.
///
/// # Safety
/// `relation` is an open lanes table, `target` a slot of it, `raw` a live snapshot.
pub unsafe fn fetch(
    relation: pg_sys::Relation,
    id: &pg_sys::ItemPointerData,
    raw: pg_sys::Snapshot,
    target: *mut pg_sys::TupleTableSlot,
) -> bool {
    let Some(row) = tid::to_row(id) else {
        return false;
    };
    // SAFETY: the caller's promise.
    unsafe {
        if (*raw).snapshot_type == pg_sys::SnapshotType::SNAPSHOT_MVCC {
            ports::PredicateLockRelation(relation, raw);
        }
        row_numbers::keep_if_changing(relation);
        let mut reader = Reader::open_as(relation, (*target).tts_tupleDescriptor);
        let Some(mut content) = reader.content.take() else {
            return false;
        };
        // Of a table that is only read, too: a join that changes another table fetches its rows again by number.
        row_numbers::check_row(relation, &content, row);
        let snapshot = Snapshot::new(raw);
        let Some(run) = visible_row(&mut content, &snapshot, row) else {
            return false;
        };
        store_row(&reader, &content, &run, row, target);
        true
    }
}

/// Whether a row, named by TID, exists under a snapshot.
///
/// # Safety
/// `relation` is an open lanes table, `raw` a live snapshot.
pub unsafe fn exists(
    relation: pg_sys::Relation,
    id: &pg_sys::ItemPointerData,
    raw: pg_sys::Snapshot,
) -> bool {
    let Some(row) = tid::to_row(id) else {
        return false;
    };
    // SAFETY: the caller's promise.
    unsafe {
        let Some(mut content) = Reader::open(relation).content.take() else {
            return false;
        };
        visible_row(&mut content, &Snapshot::new(raw), row).is_some()
    }
}
