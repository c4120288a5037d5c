//! CREATE INDEX, REINDEX and CREATE INDEX CONCURRENTLY: the entries of the rows that are there.
//!
//! Without CONCURRENTLY nobody else writes to the table meanwhile. The index gets entries for all rows that some
//! snapshot may see, deleted ones included: queries that began before may use the index. With CONCURRENTLY it gets
//! those that one snapshot sees, in the second of its passes, and those that another one sees and that have no entry
//! yet, in the third.

use super::entry_numbers::EntryNumbers;
use super::fate::{Fate, fate};
use super::number_set::NumberSet;
use super::reader::Content;
use super::scan::Scan;
use super::tid;
use crate::error;
use crate::pg::index::{EntryMaker, EntrySink, FoundEntries};
use crate::pg::ports::CHECK_FOR_INTERRUPTS;
use crate::pg::progress::BuildProgress;
use crate::pg::snapshot::Snapshot;
use crate::pg::table::OpenTable;

/// Rows between two looks for interrupts.
const INTERRUPT_ROWS: u64 = 4096;

/// Passes the entries of the rows of a scan to an index; how many rows are alive. `sees_all` says that the scan
/// returns rows of every fate; otherwise all that it returns are alive. `is_reported` says that
/// `pg_stat_progress_create_index` shows how far the scan has come.
pub fn build<'a>(
    scan: &mut Scan<'a>,
    sees_all: bool,
    maker: &mut EntryMaker<'a>,
    sink: &EntrySink,
    is_reported: bool,
) -> f64 {
    let table = scan.reader.table;
    let end_row = scan
        .reader
        .content
        .as_ref()
        .map_or(0, |content| content.runs.end_row());
    let progress = is_reported.then(|| BuildProgress::begin(table.blocks(), end_row));
    let horizon = table.oldest_non_removable_xid();
    let (mut numbers, mut run) = (EntryNumbers::default(), None);
    let (mut alive, mut seen) = (0u64, 0u64);
    while scan.next(true, maker.slot()) {
        seen += 1;
        if seen % INTERRUPT_ROWS == 0 {
            CHECK_FOR_INTERRUPTS();
            if let (Some(progress), Some(row)) = (&progress, tid::to_row(&maker.slot().tid())) {
                progress.at(row);
            }
        }
        let (Some(row), Some(content)) = (tid::to_row(&maker.slot().tid()), &scan.reader.content)
        else {
            continue;
        };
        let fate = match sees_all {
            true => fate(content, &mut run, row, || horizon),
            false => Fate::Alive,
        };
        if fate == Fate::Gone {
            continue;
        }
        alive += u64::from(fate == Fate::Alive);
        if let Some(mut entry) = maker.make() {
            let id = tid::from_row(numbers.of_row(table, content, row));
            sink.take(&mut entry, id, fate == Fate::Alive);
        }
    }
    if let Some(progress) = progress {
        progress.end();
    }
    alive as f64
}

/// Makes the entries that an index lacks of the rows that a snapshot sees.
pub fn complete<'a>(
    table: OpenTable<'a>,
    snapshot: Snapshot<'a>,
    maker: &mut EntryMaker<'a>,
    found: &mut FoundEntries<'_>,
) {
    let mut scan = Scan::begin(table, Some(snapshot));
    let content = scan.reader.content.as_ref();
    let Some(mut known) = NumberSet::new(content.map_or(0, Content::end_number)) else {
        error::too_large(
            "there is no memory for the list of entries that the index has",
            "Build the index without CONCURRENTLY.",
        );
    };
    while let Some((block, offset)) = found.next() {
        known.insert(tid::number(block, offset));
    }
    let mut numbers = EntryNumbers::default();
    while scan.next(true, maker.slot()) {
        let (Some(row), Some(content)) = (tid::to_row(&maker.slot().tid()), &scan.reader.content)
        else {
            continue;
        };
        let number = numbers.of_row(table, content, row);
        let is_known = known.contains(number);
        found.count(!is_known);
        if !is_known && let Some(mut entry) = maker.make() {
            maker.insert(&mut entry, tid::from_row(number));
        }
        CHECK_FOR_INTERRUPTS();
    }
}
