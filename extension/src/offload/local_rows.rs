//! The rows of a table that are only in this database. A gateway that keeps a log of appended rows
//! keeps it for these rows alone.
//!
//! Rows are named by the table's storage id and their row numbers. Rows that are not named are in
//! object storage or gone: deleted with their run, dropped by retention, or of another file of the
//! table. Rows of transactions in progress count as present.

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::due;
use crate::pg::table::{OpenTable, OpenedTable};
use crate::pg::table_catalog;
use crate::storage::directory::{self, FLAG_DEAD};
use crate::storage::metapage::Meta;
use crate::storage::part::Parts;
use lanes_columnar::arena::Position;

/// A range of rows of a table.
type Range = (u64, u64);

/// All tables, each with its storage id and the ranges of rows that are nowhere else. A table
/// without such rows has one empty range.
#[pg_extern(sql = false)]
fn local_rows() -> TableIterator<
    'static,
    (
        name!(target, pg_sys::Oid),
        name!(storage_id, i64),
        name!(first_row, i64),
        name!(end_row, i64),
    ),
> {
    let mut rows = Vec::new();
    for table in table_catalog::lanes_tables() {
        // A table that is locked exclusively is waited for, because rows that are not listed count
        // as gone.
        let Some(opened) = OpenedTable::try_open(table, pg_sys::AccessShareLock) else {
            continue;
        };
        if !due::is_offloadable(opened.get()) {
            continue;
        }
        let (storage_id, mut ranges) = ranges(opened.get());
        if ranges.is_empty() {
            ranges.push((0, 0));
        }
        let rows_of = |(from, to): Range| (table, storage_id as i64, from as i64, to as i64);
        rows.extend(ranges.into_iter().map(rows_of));
    }
    TableIterator::new(rows)
}

/// The storage id and the ranges. A table that was never written to has the id 0 and no ranges.
fn ranges(table: OpenTable<'_>) -> (u64, Vec<Range>) {
    let Some(meta) = Meta::load(table) else {
        return (0, Vec::new());
    };
    // Runs are read first: rows that are sealed in the meantime are then found twice rather than
    // not at all.
    let mut found: Vec<Range> = Vec::new();
    let all = Position::default();
    directory::walk(table, meta.directory_head, all, |_, entries, _| {
        let live = entries.iter().filter(|run| run.flags & FLAG_DEAD == 0);
        found.extend(live.map(|run| (run.first_row, run.end_row())));
        true
    });
    // The parts as of now, which is after the runs were read.
    let meta = Meta::load(table).unwrap_or(meta);
    let parts = Parts::of(table, &meta);
    found.retain(|run| parts.of_row(run.0).is_none());
    let local = parts.live().iter().map(|part| &part.entry);
    let local = local.filter(|entry| !entry.is_remote() && entry.bytes != 0);
    found.extend(local.map(|entry| (entry.first_row, entry.end_row)));
    (meta.storage_id, joined(found))
}

/// The ranges in order, with those that meet or overlap joined.
fn joined(mut ranges: Vec<Range>) -> Vec<Range> {
    ranges.sort_unstable();
    let mut joined: Vec<Range> = Vec::new();
    for (from, to) in ranges {
        match joined.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => joined.push((from, to)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use crate::offload::local_rows::joined;

    #[test]
    fn ranges_that_meet_or_overlap_are_one() {
        let ranges = vec![(10, 20), (0, 5), (5, 7), (12, 15), (21, 22)];
        assert_eq!(joined(ranges), [(0, 7), (10, 20), (21, 22)]);
        assert!(joined(Vec::new()).is_empty());
    }
}
