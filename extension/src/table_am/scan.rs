//! Scans as PostgreSQL calls them: of all rows, of ranges of tuple ids, of bitmaps, for ANALYZE and for TABLESAMPLE.

use pgrx::pg_sys;

use super::bitmap::BitmapRows;
use super::sample::{AnalyzeBlock, SampleBlock};
use crate::pg::access::{ScanAccess, ScanStart};
use crate::pg::slot::Slot;
use crate::pg::table::OpenTable;
use crate::table::scan::{Scan, SharedSegments};
use crate::table::tid;

/// A scan that PostgreSQL has begun.
pub struct LanesScan {
    /// Gone once the scan has ended.
    scan: Option<Scan<'static>>,
    bitmap: BitmapRows,
    analyze: AnalyzeBlock,
    sample: SampleBlock,
    rows_returned: i64,
}

impl LanesScan {
    /// The scan, which has not ended.
    pub fn scan(&mut self) -> &mut Scan<'static> {
        underway(&mut self.scan)
    }
}

fn underway<'s>(scan: &'s mut Option<Scan<'static>>) -> &'s mut Scan<'static> {
    scan.as_mut().expect("the scan has not ended")
}

impl ScanAccess for LanesScan {
    type Shared = SharedSegments;

    fn begin(start: ScanStart<SharedSegments>) -> LanesScan {
        let ScanStart {
            table,
            snapshot,
            shared,
            purpose,
        } = start;
        if let Some(seen) = snapshot.filter(|_| purpose.reads_all()) {
            table.predicate_lock(seen);
        }
        if purpose.is_sequential() {
            table.count_scan();
        }
        let mut scan = Scan::begin(table, snapshot);
        if let Some(segments) = shared {
            scan.share(segments);
        }
        if purpose.names_rows() {
            scan.name_rows();
        }
        LanesScan {
            scan: Some(scan),
            bitmap: BitmapRows::default(),
            analyze: AnalyzeBlock::default(),
            sample: SampleBlock::default(),
            rows_returned: 0,
        }
    }

    fn end(&mut self, table: OpenTable<'_>) {
        table.count_rows_returned(self.rows_returned);
        self.analyze = AnalyzeBlock::default();
        self.scan = None;
    }

    fn restart(&mut self) {
        self.bitmap = BitmapRows::default();
        self.scan().restart();
    }

    fn restart_shared(segments: &SharedSegments) {
        segments.restart();
    }

    fn set_bounds(&mut self, from: &pg_sys::ItemPointerData, to: &pg_sys::ItemPointerData) {
        self.scan().set_bounds(from, to);
    }

    fn next(&mut self, forward: bool, slot: Slot<'static>) -> bool {
        let found = self.scan().next(forward, slot);
        self.rows_returned += i64::from(found);
        found
    }

    fn has_id(&mut self, id: &pg_sys::ItemPointerData) -> bool {
        let end = self.scan().reader.end_row();
        tid::to_row(id).is_some_and(|row| row < end)
    }

    fn start_bitmap_block(&mut self, block: u32, offsets: Option<&[u16]>) {
        self.bitmap.start(underway(&mut self.scan), block, offsets);
    }

    fn next_of_bitmap(&mut self, slot: Slot<'static>) -> bool {
        self.bitmap.next(underway(&mut self.scan), slot)
    }

    fn start_analyzed_block(&mut self, block: u32) {
        if let Some(scan) = &self.scan {
            self.analyze.start(scan, block);
        }
    }

    fn next_analyzed(&mut self, live: &mut f64, dead: &mut f64, slot: Slot<'static>) -> bool {
        self.scan().describe(slot);
        match &self.scan {
            Some(scan) => self.analyze.next(scan, live, dead, slot),
            None => false,
        }
    }

    fn next_sampled_block(&mut self, pick: Option<impl Fn(u32) -> u32>) -> bool {
        match &mut self.scan {
            Some(scan) => self.sample.next_block(scan, pick),
            None => false,
        }
    }

    fn next_sampled(&mut self, pick: impl Fn(u32, u16) -> u16, slot: Slot<'static>) -> bool {
        match &mut self.scan {
            Some(scan) => self.sample.next_row(scan, pick, slot),
            None => false,
        }
    }
}
