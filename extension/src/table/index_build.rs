//! CREATE INDEX, REINDEX and CREATE INDEX CONCURRENTLY: index entries for rows that exist.
//!
//! Without CONCURRENTLY nobody else writes to the table in the meantime. The index gets entries for
//! all rows that some snapshot may see, including deleted rows, because older queries may use the
//! index. CONCURRENTLY makes its entries in the second and third of PostgreSQL's phases: in the
//! second for the rows that one snapshot sees, in the third for the rows that a later snapshot sees
//! and that have no entry yet.
//!
//! A BRIN index summarises ranges of entry numbers. It takes its entries in the order of these
//! numbers, or those of one range in any order. Sealing does not change the index, because the rows
//! of a range stay the same.

use std::ops::Range;

use lanes_columnar::arena::RunEntry;
use lanes_columnar::limits::segment_of;

use super::entry_numbers::EntryNumbers;
use super::fate::{Fate, fate};
use super::number_set::NumberSet;
use super::reader::Content;
use super::scan::Scan;
use super::tid;
use crate::error;
use crate::pg::entry_sort::EntrySort;
use crate::pg::index::{EntryMaker, EntrySink, FoundEntries};
use crate::pg::ports::CHECK_FOR_INTERRUPTS;
use crate::pg::progress::BuildProgress;
use crate::pg::snapshot::Snapshot;
use crate::pg::table::OpenTable;
use crate::storage::part::LivePart;

/// The number of rows between two checks for interrupts.
const INTERRUPT_ROWS: u64 = 4096;

/// The rows of one pass over a table that become index entries.
struct Pass<'p, 'a> {
    table: OpenTable<'a>,
    maker: &'p mut EntryMaker<'a>,
    sink: &'p EntrySink,
    /// The sorted rows, for an index that takes its entries in the order of entry numbers.
    sort: Option<EntrySort>,
    /// Whether rows of every fate pass. Otherwise all rows that pass are alive.
    sees_all: bool,
    horizon: u32,
    numbers: EntryNumbers,
    run: Option<RunEntry>,
    alive: u64,
    seen: u64,
}

impl<'p, 'a> Pass<'p, 'a> {
    fn begin(
        table: OpenTable<'a>,
        sees_all: bool,
        maker: &'p mut EntryMaker<'a>,
        sink: &'p EntrySink,
    ) -> Self {
        Pass {
            table,
            maker,
            sink,
            sort: None,
            sees_all,
            horizon: table.oldest_non_removable_xid(),
            numbers: EntryNumbers::default(),
            run: None,
            alive: 0,
            seen: 0,
        }
    }

    /// Passes on the index entry of the row in the maker's slot.
    fn take(&mut self, content: &Content, progress: Option<&BuildProgress>) {
        let Some(row) = tid::to_row(&self.maker.slot().tid()) else {
            return;
        };
        self.seen += 1;
        if self.seen.is_multiple_of(INTERRUPT_ROWS) {
            CHECK_FOR_INTERRUPTS();
            if let Some(progress) = progress {
                progress.at(row);
            }
        }
        let fate = match self.sees_all {
            true => fate(content, &mut self.run, row, || self.horizon),
            false => Fate::Alive,
        };
        if fate == Fate::Gone {
            return;
        }
        let is_alive = fate == Fate::Alive;
        self.alive += u64::from(is_alive);
        if let Some(mut entry) = self.maker.make() {
            let number = self.numbers.of_row(self.table, content, row);
            match &mut self.sort {
                Some(sort) => sort.put(number, is_alive, &entry),
                None => self.sink.take(&mut entry, tid::from_row(number), is_alive),
            }
        }
    }

    /// Passes on the entries that are still to be sorted. Returns how many rows are alive.
    fn finish(self) -> f64 {
        if let Some(mut sort) = self.sort {
            sort.sort();
            while let Some((number, is_alive, mut entry)) = sort.next() {
                CHECK_FOR_INTERRUPTS();
                self.sink.take(&mut entry, tid::from_row(number), is_alive);
            }
            sort.free();
        }
        self.alive as f64
    }
}

/// The order in which an index takes its entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EntryOrder {
    Any,
    /// By entry numbers, for an index that summarises ranges of them.
    Numbers,
}

/// Passes the index entries of the rows of a scan to an index. Returns how many rows are alive.
/// `sees_all`: the scan returns rows of every fate; otherwise it returns only live rows.
/// `is_reported`: `pg_stat_progress_create_index` shows the progress of the scan.
pub fn build<'a>(
    scan: &mut Scan<'a>,
    sees_all: bool,
    order: EntryOrder,
    maker: &mut EntryMaker<'a>,
    sink: &EntrySink,
    is_reported: bool,
) -> f64 {
    let table = scan.reader.table;
    let content = scan.reader.content.as_ref();
    let end_row = content.map_or(0, |content| content.runs.end_row());
    // Without mapped parts, rows lie in the order of their entry numbers.
    let is_mapped = |part: &LivePart| part.entry.is_mapped();
    let is_out_of_order = content.is_some_and(|content| content.parts.live().iter().any(is_mapped));
    let progress = is_reported.then(|| BuildProgress::begin(table.blocks(), end_row));
    let mut pass = Pass::begin(table, sees_all, maker, sink);
    if order == EntryOrder::Numbers && is_out_of_order {
        pass.sort = Some(EntrySort::begin(sink));
    }
    while scan.next(true, pass.maker.slot()) {
        if let Some(content) = &scan.reader.content {
            pass.take(content, progress.as_ref());
        }
    }
    if let Some(progress) = progress {
        progress.end();
    }
    pass.finish()
}

/// The number of entry numbers that are looked up at a time. It bounds memory.
const SOUGHT_NUMBERS: u64 = 1 << 20;

/// Passes the index entries of the rows with some entry numbers to an index that summarises them
/// together, in any order. Returns how many rows are alive. The scan returns rows of every fate.
pub fn build_range<'a>(
    scan: &mut Scan<'a>,
    numbers: Range<u64>,
    maker: &mut EntryMaker<'a>,
    sink: &EntrySink,
) -> f64 {
    let mut pass = Pass::begin(scan.reader.table, true, maker, sink);
    let content = scan.reader.content.as_ref();
    let end = numbers.end.min(content.map_or(0, Content::end_number));
    let mut from = numbers.start;
    while from < end {
        let to = end.min(from + SOUGHT_NUMBERS);
        let mut rows: Vec<u64> = (from..to).filter_map(|n| scan.row_of_entry(n)).collect();
        rows.sort_unstable();
        for of_segment in rows.chunk_by(|a, b| segment_of(*a) == segment_of(*b)) {
            let (first, last) = (of_segment[0], of_segment[of_segment.len() - 1]);
            if !scan.open_rows(first, last + 1) {
                continue;
            }
            scan.fill_visible();
            for &row in of_segment {
                if scan.store_if_open(row, pass.maker.slot())
                    && let Some(content) = &scan.reader.content
                {
                    pass.take(content, None);
                }
            }
        }
        from = to;
    }
    pass.finish()
}

/// Makes the index entries that are missing for rows that the snapshot sees.
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
