//! CREATE INDEX, REINDEX and CREATE INDEX CONCURRENTLY: the entries of the rows that are there.
//!
//! Without CONCURRENTLY nobody else writes to the table meanwhile. The index gets entries for all rows that some
//! snapshot may see, deleted ones included: queries that began before may use the index. With CONCURRENTLY it gets
//! those that one snapshot sees, in the second of its passes, and those that another one sees and that have no entry
//! yet, in the third.

use super::entry_numbers::EntryNumbers;
use super::fate::{Fate, fate};
use super::scan::Scan;
use super::tid;
use crate::error;
use crate::pg::index::{EntryMaker, EntrySink, FoundEntries};
use crate::pg::ports::CHECK_FOR_INTERRUPTS;
use crate::pg::snapshot::Snapshot;
use crate::pg::table::OpenTable;

/// Rows between two looks for interrupts.
const INTERRUPT_ROWS: u64 = 4096;

/// Passes the entries of the rows of a scan to an index; how many rows are alive. `sees_all` says that the scan
/// returns rows of every fate; otherwise all that it returns are alive.
pub fn build<'a>(
    scan: &mut Scan<'a>,
    sees_all: bool,
    maker: &mut EntryMaker<'a>,
    sink: &EntrySink,
) -> f64 {
    let table = scan.reader.table;
    let horizon = table.oldest_non_removable_xid();
    let (mut numbers, mut run) = (EntryNumbers::default(), None);
    let (mut alive, mut seen) = (0u64, 0u64);
    while scan.next(true, maker.slot()) {
        seen += 1;
        if seen % INTERRUPT_ROWS == 0 {
            CHECK_FOR_INTERRUPTS();
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
    let known = KnownNumbers::read(scan.reader.end_row(), found);
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

/// Which entry numbers an index has: a bit each.
struct KnownNumbers {
    words: Vec<u64>,
}

impl KnownNumbers {
    fn read(end_row: u64, found: &mut FoundEntries<'_>) -> KnownNumbers {
        let count = end_row.div_ceil(u64::from(u64::BITS)) as usize;
        let mut words = Vec::new();
        if words.try_reserve_exact(count).is_err() {
            error::too_large(
                "there is no memory for the list of entries that the index has",
                "Build the index without CONCURRENTLY.",
            );
        }
        words.resize(count, 0);
        let mut known = KnownNumbers { words };
        while let Some((block, offset)) = found.next() {
            // Rows that were inserted after the scan began have entries already.
            if let Some(word) = known.words.get_mut(Self::word(tid::number(block, offset))) {
                *word |= Self::bit(tid::number(block, offset));
            }
        }
        known
    }

    fn word(number: u64) -> usize {
        (number / u64::from(u64::BITS)) as usize
    }

    fn bit(number: u64) -> u64 {
        1 << (number % u64::from(u64::BITS))
    }

    fn contains(&self, number: u64) -> bool {
        let word = self.words.get(Self::word(number));
        word.is_some_and(|word| word & Self::bit(number) != 0)
    }
}
