//! Sequential, parallel and TID-range scans.
//!
//! A scan goes from segment to segment. In each it turns runs, snapshot and tombstones into
//! *ranges*: maximal stretches of rows of one run that the snapshot sees. Under an MVCC snapshot
//! that result cannot change, so reading the ranges needs no further check. Then the scan opens the
//! window of the segment and returns its rows, forwards or backwards. At either end it remembers on
//! which side of the table it is, as cursors expect.

use std::cell::Cell;

use lanes_columnar::arena::RunEntry;
use lanes_columnar::limits::{segment_first_row, segment_of, segment_rows_max};
use lanes_columnar::streamed::StreamMemory;
use pgrx::pg_sys;

use super::reader::{Content, Reader, SegmentView};
use super::row_numbers::{self, Reading};
use super::shape::TableShape;
use super::{entry_numbers, one_row, pending_rows, serializable, tid};
use crate::gucs;
use crate::pg::descriptor::Descriptor;
use crate::pg::slot::{RowHeader, Slot};
use crate::pg::snapshot::{Snapshot, SnapshotKind};
use crate::pg::table::OpenTable;
use crate::remote::recall::Recalled;
use crate::storage::directory::FLAG_SEALED;

mod advance;
mod open_view;
mod ranges;
mod remote_rows;
mod ruled_out;
mod shared;
mod single_rows;
pub mod spare_memory;

use open_view::Wanted;
pub use ranges::{Range, report_unseen};
pub use remote_rows::holds_remote;
use remote_rows::is_resident;
pub use ruled_out::{AnsweredByZones, ByZone, StoredZones};
pub use shared::SharedSegments;
use shared::TakenSegments;
use single_rows::SingleRows;

/// The part of the arena that one scan may take from other rows.
const DISPLACED_SHARE: u64 = 4;

/// The segment that a scan is in.
struct OpenSegment {
    segment: u32,
    ranges: Vec<Range>,
    window: SegmentView,
    range: usize,
    row: u64,
}

impl OpenSegment {
    /// Makes all of its visible rows ready to be read.
    fn fill_visible(&mut self) {
        if let (Some(first), Some(last)) = (self.ranges.first(), self.ranges.last()) {
            let places = self.window.place(first.from)..self.window.place(last.to);
            self.window.fill(places, None);
        }
    }
}

/// Where a scan stands.
enum Place {
    BeforeFirst,
    In(Box<OpenSegment>),
    AfterLast,
}

/// A scan in progress.
pub struct Scan<'a> {
    pub reader: Reader<'a>,
    snapshot: Option<Snapshot<'a>>,
    serializable: bool,
    /// Rows outside are not returned (TID-range scans).
    bounds: (u64, u64),
    place: Place,
    /// The segments that the participants of a parallel scan share.
    shared: Option<TakenSegments<'a>>,
    /// The numberings of the rows that were returned since the scan began. Nodes above may still
    /// have such rows.
    readings: Vec<Reading>,
    /// Sealed segments that were skipped.
    pub segments_skipped: u64,
    /// Sealed segments that were answered by their zones.
    pub segments_taken: u64,
    /// Rows before this one were answered by zones, together with the run that they belong to.
    taken_until: u64,
    /// Counters of segments that came from object storage.
    pub recalled: Recalled,
    /// The attributes that are read in segments opened from now on; `None`: all.
    pub wanted: Option<Vec<usize>>,
    /// The bytes that this scan may still put into a full arena.
    may_displace: Cell<u64>,
    /// The number of segments that were decoded for this scan alone.
    pub segments_streamed: u64,
    /// The number of vectors of single attributes that were decoded for segments that the scan has
    /// left.
    columns_decoded: u64,
    /// Memory of the last of these segments.
    stream_memory: StreamMemory,
    /// The rows around the one that was last asked for by its number.
    near: Option<NearRows>,
    single_rows: SingleRows,
    /// Blocks of the table, once one of its segments was found in memory.
    blocks: Option<u64>,
}

/// Open rows of one segment. After one row of a segment, an index scan often asks for others.
struct NearRows {
    rows: std::ops::Range<u64>,
    view: SegmentView,
}

impl<'a> Scan<'a> {
    /// Begins a scan of the rows that a snapshot sees, or of all rows without one.
    pub fn begin(table: OpenTable<'a>, snapshot: Option<Snapshot<'a>>) -> Scan<'a> {
        row_numbers::keep_if_changing(table);
        pending_rows::flush_table(table.oid());
        Self::of_written(table, snapshot)
    }

    /// Begins a scan that leaves out the rows that this backend has [gathered](pending_rows), for
    /// what index entries lead to: these rows have none yet.
    pub fn of_written(table: OpenTable<'a>, snapshot: Option<Snapshot<'a>>) -> Scan<'a> {
        let reader = Reader::open(table);
        Scan {
            readings: vec![Reading::begin(table, reader.meta())],
            reader,
            snapshot,
            serializable: snapshot.is_some_and(|snapshot| table.reports_conflicts(snapshot)),
            segments_skipped: 0,
            segments_taken: 0,
            taken_until: 0,
            recalled: Recalled::default(),
            wanted: None,
            may_displace: Cell::new(gucs::arena_bytes() as u64 / DISPLACED_SHARE),
            segments_streamed: 0,
            columns_decoded: 0,
            stream_memory: spare_memory::take(),
            near: None,
            single_rows: SingleRows::default(),
            blocks: None,
            bounds: (0, u64::MAX),
            place: Place::BeforeFirst,
            shared: None,
        }
    }

    /// Checks that rows may be named by their numbers: see [`row_numbers::check`].
    pub fn name_rows(&self) {
        if let Some(meta) = self.reader.meta() {
            row_numbers::check(self.reader.table, meta);
        }
    }

    /// Makes this scan share the segments with the other participants of a parallel scan.
    pub fn share(&mut self, segments: &'a SharedSegments) {
        self.shared = Some(TakenSegments::new(segments));
    }

    /// Starts over, with the present rows of the table.
    pub fn restart(&mut self) {
        self.place = Place::BeforeFirst;
        self.open(self.reader.descriptor);
    }

    /// Reads the table anew, for rows of a descriptor of it.
    fn open(&mut self, descriptor: Descriptor<'a>) {
        let table = self.reader.table;
        self.near = None;
        pending_rows::flush_table(table.oid());
        self.reader = Reader::open_as(table, descriptor);
        let reading = Reading::begin(table, self.reader.meta());
        if !self.readings.contains(&reading) {
            self.readings.push(reading);
        }
    }

    /// Restricts the scan to the rows between two tuple ids, both included.
    pub fn set_bounds(&mut self, from: &pg_sys::ItemPointerData, to: &pg_sys::ItemPointerData) {
        self.place = Place::BeforeFirst;
        self.bounds = (tid::lower_bound(from), tid::upper_bound(to));
    }

    /// Stores the next row in the direction in the slot; false at the end.
    pub fn next(&mut self, forward: bool, slot: Slot<'a>) -> bool {
        self.describe(slot);
        loop {
            if !self.step(forward) {
                slot.clear();
                return false;
            }
            let stored = self.store_current(slot);
            if self.reports_writers(slot) {
                return stored;
            }
        }
    }

    /// Makes a dirty snapshot report who is changing the row in the slot; false: the snapshot no
    /// longer sees the row. When a segment was entered, all of its rows were checked at once, and
    /// only the report of the last one was left.
    fn reports_writers(&mut self, slot: Slot<'_>) -> bool {
        let dirty = self
            .snapshot
            .filter(|snapshot| snapshot.kind() == SnapshotKind::Dirty);
        let (Some(snapshot), Some(content)) = (dirty, &mut self.reader.content) else {
            return true;
        };
        let row = tid::to_row(&slot.tid());
        row.is_some_and(|row| one_row::visible_row(content, snapshot, row).is_some())
    }

    /// Reads rows in the form of the slot's descriptor, which may differ from the table's (see
    /// [`Reader::open_as`]).
    #[inline]
    pub fn describe(&mut self, slot: Slot<'a>) {
        if slot.is_described_by(self.reader.descriptor) {
            return;
        }
        let descriptor = slot.descriptor();
        let shape = TableShape::of(descriptor);
        if shape.fingerprint == self.reader.shape.fingerprint {
            (self.reader.descriptor, self.reader.shape) = (descriptor, shape.into());
        } else {
            self.place = Place::BeforeFirst;
            self.open(descriptor);
        }
    }

    /// Goes back to before the first row, or to after the last one if the scan goes backwards from
    /// there.
    pub fn rewind(&mut self, forward: bool) {
        self.leave();
        self.taken_until = 0;
        self.place = if forward {
            Place::BeforeFirst
        } else {
            Place::AfterLast
        };
    }

    /// Goes back to before the first row, to read the same rows once more: in a parallel scan, those of the segments
    /// that this participant has taken.
    pub fn read_again(&mut self) {
        self.rewind(true);
        if let Some(taken) = &mut self.shared {
            taken.read_again();
        }
    }

    /// Goes on to the next segment in the direction that has visible rows, and opens it; `None` at
    /// the end. Sealed segments that their zones rule out or answer are passed without being read.
    /// Rows of the window have to be [filled](Scan::fill) before they are read.
    pub fn next_window(
        &mut self,
        forward: bool,
        by_zone: ByZone<'_>,
    ) -> Option<(&[Range], &SegmentView)> {
        if !self.enter_next_segment(forward, Some(by_zone)) {
            return None;
        }
        self.current()
    }

    /// The visible rows of the open segment, and its window.
    pub fn current(&self) -> Option<(&[Range], &SegmentView)> {
        match &self.place {
            Place::In(open) => Some((&open.ranges, &open.window)),
            Place::BeforeFirst | Place::AfterLast => None,
        }
    }

    /// The open window.
    pub fn window(&self) -> Option<&SegmentView> {
        match &self.place {
            Place::In(open) => Some(&open.window),
            Place::BeforeFirst | Place::AfterLast => None,
        }
    }

    /// Makes the rows at some places of the open window ready to be read in some attributes. `None`
    /// stands for all attributes that the scan reads.
    pub fn fill(&mut self, places: std::ops::Range<usize>, attributes: Option<&[usize]>) {
        if let Place::In(open) = &mut self.place {
            open.window.fill(places, attributes);
        }
    }

    /// Makes all visible rows of the open segment ready to be read.
    pub fn fill_visible(&mut self) {
        if let Place::In(open) = &mut self.place {
            open.fill_visible();
        }
    }

    /// How many vectors of single attributes were decoded for this scan alone.
    pub fn columns_decoded(&self) -> u64 {
        self.columns_decoded + self.window().map_or(0, SegmentView::columns_decoded)
    }

    /// Leaves the open segment. Its memory is used for the next one.
    fn leave(&mut self) {
        if let Place::In(open) = std::mem::replace(&mut self.place, Place::BeforeFirst) {
            self.columns_decoded += open.window.columns_decoded();
            if let Some(memory) = open.window.into_memory() {
                self.stream_memory = memory;
            }
        }
    }

    /// Opens some rows of one segment for [`Scan::store_if_open`]; false: none of them is visible.
    /// Rows have to be [filled](Scan::fill) before they are read.
    pub fn open_rows(&mut self, from: u64, to: u64) -> bool {
        let bounds = std::mem::replace(&mut self.bounds, (from, to));
        let open = self.open_segment(segment_of(from), None, Wanted::Few);
        self.bounds = bounds;
        let found = open.is_some();
        self.place = open.map_or(Place::BeforeFirst, |open| Place::In(Box::new(open)));
        found
    }

    /// Stores a row in the slot if it is one of the open, visible rows.
    pub fn store_if_open(&mut self, row: u64, slot: Slot<'_>) -> bool {
        let Place::In(open) = &mut self.place else {
            return false;
        };
        let after = open.ranges.partition_point(|range| range.to <= row);
        if open.ranges.get(after).is_none_or(|range| row < range.from) {
            return false;
        }
        (open.range, open.row) = (after, row);
        self.store_current(slot)
    }

    /// For serializable isolation, notes that the row with an entry number is about to be read by
    /// its number.
    pub fn read_entry(&self, number: u64) {
        if self.serializable
            && let Some(snapshot) = self.snapshot
        {
            serializable::read_entry(self.reader.table, snapshot, number);
        }
    }

    /// The row number of the row with an entry number; `None`: the row is gone. See
    /// [`super::entry_numbers`].
    pub fn row_of_entry(&self, number: u64) -> Option<u64> {
        let content = self.reader.content.as_ref()?;
        entry_numbers::row_of(self.reader.table, &content.parts, number)
    }

    /// Stores a row in the slot, in the slot's own memory; false: the scan's snapshot does not see
    /// the row. The scan does not move.
    pub fn store_row(&mut self, row: u64, slot: Slot<'a>) -> bool {
        self.describe(slot);
        let (Some(snapshot), Some(mut content)) = (self.snapshot, self.reader.content.take())
        else {
            return false;
        };
        if self.serializable {
            serializable::report_conflicts(self.reader.table, &content, snapshot, row);
        }
        let run = one_row::visible_row(&mut content, snapshot, row);
        if let Some(run) = &run {
            if slot.leaves_out_values() {
                let header = RowHeader::new(run.xmin, run.cmin);
                slot.store_without_values(tid::from_row(row), self.reader.table.oid(), header);
                self.reader.content = Some(content);
                return true;
            }
            let is_near = self
                .near
                .as_ref()
                .is_some_and(|near| near.rows.contains(&row));
            let is_sealed = run.flags & FLAG_SEALED != 0;
            if is_near || is_resident(&content, segment_of(row), row + 1) {
                self.store_near(&content, run, row, slot);
            } else if !is_sealed {
                one_row::store_row(&self.reader, &content, run, row, slot);
            } else if !self.store_single(&content, run, row, slot) {
                self.store_near(&content, run, row, slot);
            }
        }
        self.reader.content = Some(content);
        run.is_some()
    }

    /// Stores a row of a run. If the row is sealed and not decoded in the arena, one vector of each
    /// column is decoded.
    fn store_near(&mut self, content: &Content, run: &RunEntry, row: u64, slot: Slot<'_>) {
        let mut near = match self.near.take() {
            Some(near) if near.rows.contains(&row) => near,
            left => {
                let memory = left.and_then(|left| left.view.into_memory());
                self.stream_memory = memory.unwrap_or(std::mem::take(&mut self.stream_memory));
                self.open_near(content, run, row)
            }
        };
        let (view, table) = (&mut near.view, self.reader.table.oid());
        if !view.is_private() {
            self.reader.table.count_blocks_found(1);
        }
        let place = view.place(row);
        view.fill(place..place + 1, None);
        let header = RowHeader::new(run.xmin, run.cmin);
        slot.store(view.outlet(), place, tid::from_row(row), table, header);
        // The slot may be read after the scan has moved on.
        slot.detach();
        self.near = Some(near);
    }

    /// Opens the rows of a run that are in one segment with a row. If the segment is decoded in the
    /// arena, these are all its rows.
    fn open_near(&mut self, content: &Content, run: &RunEntry, row: u64) -> NearRows {
        let segment = segment_of(row);
        let start = segment_first_row(segment);
        let end = start + u64::from(segment_rows_max(segment));
        let whole = start..end.min(content.runs.end_row());
        let rows = match is_resident(content, segment, whole.end) {
            true => whole,
            false => start.max(run.first_row)..end.min(run.end_row()),
        };
        let mut memory = std::mem::take(&mut self.stream_memory);
        let bounds = (rows.start, rows.end);
        let view = self.open_within_share(content, bounds, Wanted::Few, &mut memory);
        self.stream_memory = memory;
        NearRows { rows, view }
    }

    /// Stores the row that the scan is at. Its lanes stay until the scan moves on, and moving on
    /// overwrites the slot first.
    fn store_current(&self, slot: Slot<'_>) -> bool {
        let Place::In(open) = &self.place else {
            return false;
        };
        let range = &open.ranges[open.range];
        slot.store(
            open.window.outlet(),
            open.window.place(open.row),
            tid::from_row(open.row),
            self.reader.table.oid(),
            RowHeader::new(range.xmin, range.cmin),
        );
        true
    }
}

/// Whether a snapshot sees a row of a table.
pub fn has_row(table: OpenTable<'_>, snapshot: Option<Snapshot<'_>>) -> bool {
    let mut scan = Scan::begin(table, snapshot);
    scan.wanted = Some(Vec::new());
    let any = ByZone {
        rules_out: &|_| false,
        answered_by: None,
    };
    scan.next_window(true, any).is_some()
}

impl Drop for Scan<'_> {
    fn drop(&mut self) {
        self.leave();
        spare_memory::keep(std::mem::take(&mut self.stream_memory));
    }
}
