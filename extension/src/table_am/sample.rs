//! ANALYZE and TABLESAMPLE.
//!
//! ANALYZE samples the blocks that it counts. Block `b` of `n` stands for the rows from `b/n` to
//! `(b+1)/n` of all rows in the table's runs. A page holds thousands of sealed rows, and ANALYZE
//! would read each row of each block that it picks, to keep few. So all rows of a block are
//! counted, run by run, but only some are returned ([`SURPLUS`]). TABLESAMPLE samples virtual
//! blocks of 2,048 rows, which are those of tuple ids.

use std::ops::Range;

use lanes_columnar::arena::RunEntry;
use pgrx::pg_sys;

use crate::pg::ports;
use crate::pg::slot::{RowHeader, Slot};
use crate::storage::directory::{FLAG_DEAD, FLAG_FADING, FLAG_FROZEN};
use crate::storage::tombstone::Tombstone;
use crate::table::reader::{Access, Content, SegmentView, ViewRequest};
use crate::table::scan::{self, Scan};
use crate::table::tid::{self, BLOCK_ROWS};
use crate::table::visibility::{XidStatus, xid_status};
use lanes_columnar::limits::{segment_first_row, segment_of, segment_rows_max};
use lanes_columnar::streamed::StreamMemory;

/// The rows that are returned for each row that the table's columns want. Some turn out to be dead,
/// or in object storage. Extended statistics may want more rows than the columns do, and so may a
/// partitioned table that has this table as a partition.
const SURPLUS: u64 = 10;

/// The block that ANALYZE is at.
#[derive(Default)]
pub struct AnalyzeBlock {
    /// The table's rows without its holes, once they are needed.
    places: Option<Places>,
    /// The places that the block covers, until they are counted.
    uncounted: Option<Range<u64>>,
    /// The places that are returned, the last first.
    picked: Vec<u64>,
    view: Option<SegmentView>,
    view_end: u64,
    memory: StreamMemory,
}

/// The rows of all runs, numbered without holes.
struct Places {
    /// The place of each run's first row, and at last the number of places.
    starts: Vec<u64>,
    blocks: u64,
    /// The number of places of a block that are returned.
    per_block: u64,
}

impl Places {
    fn of(scan: &Scan<'_>) -> Places {
        let mut starts = vec![0];
        if let Some(content) = &scan.reader.content {
            let mut end = 0;
            starts.extend((0..content.runs.len()).map(|index| {
                end += u64::from(content.runs.get(index).rows);
                end
            }));
        }
        let table = scan.reader.table;
        let blocks = u64::from(table.counted_blocks()).max(1);
        let wanted = table.statistics_rows();
        Places {
            starts,
            blocks,
            // At most so many blocks are picked.
            per_block: (wanted * SURPLUS).div_ceil(blocks.min(wanted)),
        }
    }

    fn of_block(&self, block: u32) -> Range<u64> {
        let count = u128::from(self.starts.last().copied().unwrap_or_default());
        let start = |block: u64| (u128::from(block) * count / u128::from(self.blocks)) as u64;
        // The file may have been shortened since ANALYZE looked.
        let block = u64::from(block).min(self.blocks);
        start(block)..start((block + 1).min(self.blocks))
    }

    /// The places of a block that are returned, the last first: one of each stretch of equal
    /// length. They are always the same, but do not follow a pattern that the rows are likely to
    /// follow too.
    fn pick(&self, places: Range<u64>, picked: &mut Vec<u64>) {
        let count = places.end - places.start;
        picked.clear();
        if count <= self.per_block {
            return picked.extend(places.rev());
        }
        let start = |index: u64| {
            let past = u128::from(index) * u128::from(count) / u128::from(self.per_block);
            places.start + past as u64
        };
        picked.extend((0..self.per_block).rev().map(|index| {
            let (from, to) = (start(index), start(index + 1));
            from + mix(from) % (to - from)
        }));
    }

    /// The number of the run that has a place, and the index of the row within that run.
    fn find(&self, place: u64) -> (usize, u64) {
        let index = self.starts.partition_point(|start| *start <= place) - 1;
        (index, place - self.starts[index])
    }
}

/// A hash of a number, each bit of which depends on each bit of the number: the finaliser of
/// SplitMix64.
fn mix(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ bits >> 31
}

/// How ANALYZE counts a row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Live,
    Dead,
    /// Inserted by a transaction that may still commit.
    Pending,
}

/// The state of those rows of a run that nobody deleted.
fn state_of_run(run: &RunEntry) -> State {
    if run.flags & (FLAG_DEAD | FLAG_FADING) != 0 {
        return State::Dead;
    }
    if run.flags & FLAG_FROZEN != 0 {
        return State::Live;
    }
    match xid_status(run.xmin) {
        XidStatus::Running => State::Pending,
        XidStatus::Aborted => State::Dead,
        XidStatus::Current | XidStatus::Committed => State::Live,
    }
}

fn is_deleted(tombstones: &[Tombstone]) -> bool {
    tombstones.iter().any(|tombstone| {
        let is_over = || {
            let status = xid_status(tombstone.xmax);
            matches!(status, XidStatus::Committed | XidStatus::Current)
        };
        tombstone.deletes() && (tombstone.is_frozen() || is_over())
    })
}

impl AnalyzeBlock {
    /// Moves to a block.
    pub fn start(&mut self, scan: &Scan<'_>, block: u32) {
        let places = self.places.get_or_insert_with(|| Places::of(scan));
        let of_block = places.of_block(block);
        places.pick(of_block.clone(), &mut self.picked);
        self.uncounted = Some(of_block);
    }

    /// Stores the next live row of the block's sample in the slot; false at its end. The first call
    /// for a block adds its live and dead rows to the counts.
    pub fn next(
        &mut self,
        scan: &Scan<'_>,
        live: &mut f64,
        dead: &mut f64,
        slot: Slot<'_>,
    ) -> bool {
        let (Some(content), Some(places)) = (scan.reader.content.as_ref(), &self.places) else {
            return false;
        };
        if let Some(uncounted) = self.uncounted.take() {
            let counted = count(content, places, uncounted);
            *live += counted.0 as f64;
            *dead += counted.1 as f64;
        }
        while let Some(place) = self.picked.pop() {
            ports::CHECK_FOR_INTERRUPTS();
            let (index, row) = places.find(place);
            let run = content.runs.get(index);
            let row = run.first_row + row;
            let is_live = state_of_run(&run) == State::Live
                && !is_deleted(content.tombstones.borrow().of_row(row));
            let segment = segment_of(row);
            let segment_end = segment_first_row(segment) + segment_rows_max(segment) as u64;
            // Statistics are not worth waiting for object storage: in a segment with remote rows,
            // rows are only counted.
            if !is_live || scan::holds_remote(content, segment_first_row(segment), segment_end) {
                continue;
            }
            let is_open = self
                .view
                .as_ref()
                .is_some_and(|view| (view.first_row..self.view_end).contains(&row));
            if !is_open {
                self.open_view(scan, content, row, segment_end);
            }
            let Some(view) = &mut self.view else {
                return false;
            };
            let place = view.place(row);
            view.fill(place..place + 1, None);
            // ANALYZE copies the row out of the slot before the next call, which may close the window.
            slot.store(
                view.outlet(),
                place,
                tid::from_row(row),
                scan.reader.table.oid(),
                RowHeader::new(run.xmin, run.cmin),
            );
            return true;
        }
        false
    }

    /// Opens the window on the rows from `row` to the end of its segment.
    fn open_view(&mut self, scan: &Scan<'_>, content: &Content, row: u64, segment_end: u64) {
        if let Some(memory) = self.view.take().and_then(SegmentView::into_memory) {
            self.memory = memory;
        }
        let end = segment_end.min(scan.reader.end_row());
        self.view_end = end;
        let memory = &mut self.memory;
        let request = ViewRequest {
            reader: &scan.reader,
            content,
            rows: row..end,
            access: Access::Once(memory),
        };
        self.view = Some(request.open());
    }
}

/// The number of live and of dead rows at some places.
fn count(content: &Content, places: &Places, mut counted: Range<u64>) -> (u64, u64) {
    let (mut live, mut dead) = (0, 0);
    while counted.start < counted.end {
        ports::CHECK_FOR_INTERRUPTS();
        let (index, row) = places.find(counted.start);
        let run = content.runs.get(index);
        let end = places.starts[index + 1].min(counted.end);
        let rows = end - counted.start;
        counted.start = end;
        match state_of_run(&run) {
            State::Pending => {}
            State::Dead => dead += rows,
            State::Live => {
                let first = run.first_row + row;
                let tombstones = content.tombstones.borrow();
                let of_rows = tombstones.range(first, first + rows);
                let deleted = of_rows.filter(|(_, list)| is_deleted(list)).count() as u64;
                live += rows - deleted;
                dead += deleted;
            }
        }
    }
    (live, dead)
}

/// The position of TABLESAMPLE.
#[derive(Default)]
pub struct SampleBlock {
    next_block: u32,
    block: u32,
}

impl SampleBlock {
    /// Moves to the next block that the sampling method picks by the number of blocks; false: there
    /// is none. Without a method, the blocks follow each other.
    pub fn next_block(&mut self, scan: &mut Scan<'_>, pick: Option<impl Fn(u32) -> u32>) -> bool {
        let blocks = scan.reader.end_row().div_ceil(BLOCK_ROWS) as u32;
        loop {
            let block = match &pick {
                Some(pick) => pick(blocks),
                None if self.next_block < blocks => self.next_block,
                None => pg_sys::InvalidBlockNumber,
            };
            if block == pg_sys::InvalidBlockNumber {
                self.next_block = 0;
                return false;
            }
            self.next_block = block + 1;
            self.block = block;
            let from = block as u64 * BLOCK_ROWS;
            if scan.open_rows(from, (from + BLOCK_ROWS).min(scan.reader.end_row())) {
                scan.fill_visible();
                return true;
            }
            ports::CHECK_FOR_INTERRUPTS();
        }
    }

    /// Stores the block's next row that the sampling method picks and the snapshot sees; false at
    /// the block's end. The method picks an offset by block and number of rows.
    pub fn next_row(
        &mut self,
        scan: &mut Scan<'_>,
        pick: impl Fn(u32, u16) -> u16,
        slot: Slot<'_>,
    ) -> bool {
        let from = self.block as u64 * BLOCK_ROWS;
        let rows = (scan.reader.end_row() - from).min(BLOCK_ROWS) as u16;
        loop {
            let offset = pick(self.block, rows);
            if offset == pg_sys::InvalidOffsetNumber {
                slot.clear();
                return false;
            }
            if scan.store_if_open(from + offset as u64 - 1, slot) {
                return true;
            }
        }
    }
}
