//! Indexes: the entries of the rows that everybody sees.

use super::Findings;
use crate::pg::checked_index::{CheckedIndex, CheckedIndexes, as_owner};
use crate::pg::ports::CHECK_FOR_INTERRUPTS;
use crate::pg::snapshot::Snapshot;
use crate::pg::table::OpenTable;
use crate::storage::directory;
use crate::table::entry_numbers::EntryNumbers;
use crate::table::number_set::NumberSet;
use crate::table::reader::Content;
use crate::table::scan::Scan;
use crate::table::tid;

/// Checks every index. A row that the snapshot sees got its entries before its transaction committed, and no
/// index removes the entries of a row that some snapshot sees.
pub fn check(table: OpenTable<'_>, findings: &mut Findings) {
    as_owner(table, || {
        for index in CheckedIndexes::open(table).iter() {
            Snapshot::with_active(|active| {
                let snapshot = active.expect("a statement calls the function");
                check_index(table, snapshot, &index, findings);
            });
        }
    });
}

fn check_index<'a>(
    table: OpenTable<'a>,
    snapshot: Snapshot<'a>,
    index: &CheckedIndex<'a>,
    findings: &mut Findings,
) {
    let place = format!("index {}", index.name());
    let mut scan = Scan::begin(table, Some(snapshot));
    let content = scan.reader.content.as_ref();
    let Some(mut numbers) = NumberSet::new(content.map_or(0, Content::end_number)) else {
        findings.add(place, "there is no memory to check its entries");
        return;
    };
    let mut greatest = None;
    index.visit_entries(|id| {
        if let Some(number) = tid::to_row(id) {
            greatest = greatest.max(Some(number));
            numbers.insert(number);
        }
    });
    let end = directory::next_row(table);
    if let Some(number) = greatest.filter(|&number| number >= end) {
        let problem = format!("it has an entry of row {number}; the table has {end} rows");
        findings.add(&place[..], problem);
    }
    let (mut maker, mut known) = (index.maker(), EntryNumbers::default());
    while scan.next(true, maker.slot()) {
        CHECK_FOR_INTERRUPTS();
        let row = tid::to_row(&maker.slot().tid());
        let (Some(row), Some(content)) = (row, &scan.reader.content) else {
            continue;
        };
        let number = known.of_row(table, content, row);
        if !numbers.contains(number) && maker.make().is_some_and(|entry| index.has(&entry)) {
            findings.add(&place[..], format!("it lacks an entry of row {row}"));
        }
    }
    maker.finish();
}
