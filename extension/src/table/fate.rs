//! The fate of a row: whether any snapshot may still find it through an index.

use lanes_columnar::arena::RunEntry;
use pgrx::pg_sys;

use super::reader::{Content, Reader};
use super::visibility::{XidStatus, xid_precedes, xid_status};
use super::{entry_numbers, tid};
use crate::pg::table::OpenTable;
use crate::storage::directory::{FLAG_DEAD, FLAG_FADING, FLAG_FROZEN};

/// Whether an index needs an entry for a row, and whether the row counts in a check of uniqueness.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    Alive,
    /// Deleted, but some snapshot may see it.
    RecentlyDead,
    Gone,
}

/// Tests of index entries, by tuple id, whether nobody will ever see the row again. `horizon` is
/// the oldest transaction that may be invisible to some snapshot.
pub fn gone_entries(
    table: OpenTable<'_>,
    horizon: u32,
) -> impl FnMut(&pg_sys::ItemPointerData) -> bool {
    let content = Reader::open(table).content.take();
    let mut run = None;
    move |id| match (tid::to_row(id), &content) {
        (Some(number), Some(content)) => is_gone(table, content, &mut run, number, || horizon),
        _ => false,
    }
}

/// Whether nobody will ever see the row with an entry number again. `horizon` returns the oldest
/// transaction that may be invisible to some snapshot. The caller keeps the run from row to row.
pub fn is_gone(
    table: OpenTable<'_>,
    content: &Content,
    run: &mut Option<RunEntry>,
    number: u64,
    horizon: impl FnMut() -> u32,
) -> bool {
    // Rows that were inserted after the table was opened have higher numbers.
    number < content.end_number()
        && entry_numbers::row_of(table, &content.parts, number)
            .is_none_or(|row| fate(content, run, row, horizon) == Fate::Gone)
}

/// The fate of a row. The caller keeps its run from row to row. The horizon is computed only where
/// it is needed.
pub fn fate(
    content: &Content,
    run: &mut Option<RunEntry>,
    row: u64,
    mut horizon: impl FnMut() -> u32,
) -> Fate {
    let is_of = |run: &RunEntry| (run.first_row..run.end_row()).contains(&row);
    if !run.as_ref().is_some_and(is_of) {
        *run = content.run_of(row).map(|(_, run)| run);
    }
    let Some(run) = run else {
        return Fate::Gone;
    };
    if run.flags & FLAG_DEAD != 0 {
        return Fate::Gone;
    }
    if run.flags & FLAG_FADING != 0 {
        return Fate::RecentlyDead;
    }
    if run.flags & FLAG_FROZEN == 0 && xid_status(run.xmin) == XidStatus::Aborted {
        return Fate::Gone;
    }
    let tombstones = content.tombstones.borrow();
    let deletions = tombstones.of_row(row).iter().filter(|t| t.deletes());
    let fates = deletions.map(|deletion| match xid_status(deletion.xmax) {
        _ if deletion.is_frozen() => Fate::Gone,
        XidStatus::Committed if xid_precedes(deletion.xmax, horizon()) => Fate::Gone,
        XidStatus::Committed | XidStatus::Current => Fate::RecentlyDead,
        // The deletion may still be rolled back.
        XidStatus::Running | XidStatus::Aborted => Fate::Alive,
    });
    fates.max_by_key(|&fate| fate as u8).unwrap_or(Fate::Alive)
}
