//! Sequential, parallel and TID-range scans.
//!
//! A scan goes segment by segment. On entering one it turns runs, snapshot and tombstones into *ranges*: maximal
//! stretches of rows of one run that the snapshot sees. Under an MVCC snapshot that answer cannot change, so reading
//! the ranges needs no further check. Then the segment's window is opened and rows are handed out, forwards or
//! backwards; at either end the scan remembers on which side of the table it stands, as cursors expect.

use std::cell::Cell;

use lanes_columnar::limits::{segment_first_row, segment_of, segment_rows_max};
use lanes_columnar::streamed::StreamMemory;
use pgrx::pg_sys;

use super::reader::{Reader, SegmentView};
use super::row_numbers::{self, Reading};
use super::runs::Shape;
use super::tid;
use super::visibility::Snapshot;
use crate::gucs;
use crate::pg::ports;
use crate::pg::slot::{self, RowHeader};
use crate::remote::recall::Recalled;

mod open_view;
mod ranges;
mod remote_rows;
mod ruled_out;
mod shared;
pub mod spare_memory;

use open_view::Wanted;
pub use ranges::Range;
use ranges::visible_ranges;
pub use remote_rows::holds_remote;
pub use ruled_out::{AnsweredByZones, ByZone, StoredZones};
pub use shared::{ParallelState, SharedSegments};

/// What one scan displaces in the arena is at most this part of it.
const DISPLACED_SHARE: u64 = 4;

/// A segment that a scan is in.
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

/// A scan under way.
pub struct Scan {
    pub reader: Reader,
    snapshot: Option<Snapshot>,
    serializable: bool,
    /// Rows outside are not returned (TID-range scans).
    bounds: (u64, u64),
    place: Place,
    /// Of a parallel scan.
    shared: *const SharedSegments,
    /// Of the numberings that rows were handed out by since the scan began: nodes above may still have them.
    readings: Vec<Reading>,
    /// Sealed segments that were left unread.
    pub segments_skipped: u64,
    /// Those that were taken in by their zones.
    pub segments_taken: u64,
    /// Rows before this one need not be looked at: the run that they are of was taken.
    taken_until: u64,
    /// What came from object storage.
    pub recalled: Recalled,
    /// The attributes that are looked at in segments opened from now on; `None`: any.
    pub wanted: Option<Vec<usize>>,
    /// Bytes that this scan may still bring into a full arena.
    may_displace: Cell<u64>,
    /// Segments that were decoded for this scan alone.
    pub segments_streamed: u64,
    /// Vectors of single attributes that were decoded of those that were left since.
    columns_decoded: u64,
    /// Of the last of them.
    stream_memory: StreamMemory,
}

impl Scan {
    /// # Safety
    /// `relation` is an open lanes table, `snapshot` null or live, `parallel` null or shared state; all outlive the
    /// scan.
    pub unsafe fn begin(
        relation: pg_sys::Relation,
        snapshot: pg_sys::Snapshot,
        parallel: *const ParallelState,
    ) -> Scan {
        // SAFETY: the caller's promise.
        unsafe {
            row_numbers::keep_if_changing(relation);
            let reader = Reader::open(relation);
            Scan {
                readings: vec![Reading::begin(relation, reader.meta())],
                reader,
                snapshot: (!snapshot.is_null()).then(|| Snapshot::new(snapshot)),
                serializable: !snapshot.is_null()
                    && ports::serializable_check_needed(relation, snapshot),
                segments_skipped: 0,
                segments_taken: 0,
                taken_until: 0,
                recalled: Recalled::default(),
                wanted: None,
                may_displace: Cell::new(gucs::arena_bytes() as u64 / DISPLACED_SHARE),
                segments_streamed: 0,
                columns_decoded: 0,
                stream_memory: spare_memory::take(),
                bounds: (0, u64::MAX),
                place: Place::BeforeFirst,
                shared: if parallel.is_null() {
                    std::ptr::null()
                } else {
                    &raw const (*parallel).segments
                },
            }
        }
    }

    /// Says that rows are named by their numbers: see [`row_numbers::check`].
    ///
    /// # Safety
    /// As for [`Scan::begin`].
    pub unsafe fn name_rows(&self) {
        // SAFETY: the caller's promise.
        unsafe {
            if let Some(meta) = self.reader.meta() {
                row_numbers::check(self.reader.relation, meta);
            }
        }
    }

    /// Shares the segments with the other participants of a parallel scan.
    ///
    /// # Safety
    /// `segments` outlives the scan.
    pub unsafe fn share(&mut self, segments: *const SharedSegments) {
        self.shared = segments;
    }

    /// Starts over, with what the table holds now.
    pub fn restart(&mut self) {
        self.place = Place::BeforeFirst;
        // SAFETY: `begin`'s caller promised that the relation stays open.
        unsafe { self.open(self.reader.descriptor) };
    }

    /// Reads the table anew, as it is now.
    ///
    /// # Safety
    /// `descriptor` is live and of this table, which is open.
    unsafe fn open(&mut self, descriptor: pg_sys::TupleDesc) {
        // SAFETY: the caller's promise.
        unsafe {
            self.reader = Reader::open_as(self.reader.relation, descriptor);
            let reading = Reading::begin(self.reader.relation, self.reader.meta());
            if !self.readings.contains(&reading) {
                self.readings.push(reading);
            }
        }
    }

    /// Restricts the scan to the rows between two tuple ids, both included.
    pub fn set_bounds(&mut self, from: &pg_sys::ItemPointerData, to: &pg_sys::ItemPointerData) {
        self.place = Place::BeforeFirst;
        self.bounds = (tid::lower_bound(from), tid::upper_bound(to));
    }

    /// Stores the next row in the direction into the slot; false at the end.
    ///
    /// # Safety
    /// `slot` is a slot of the scanned table.
    pub unsafe fn next(&mut self, forward: bool, target: *mut pg_sys::TupleTableSlot) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            self.describe(target);
            if !self.step(forward) {
                ports::ExecClearTuple(target);
                return false;
            }
            self.store_current(target)
        }
    }

    /// Reads rows as the slot's descriptor describes them, which need not be the relation's (see [`Reader::open_as`]).
    ///
    /// # Safety
    /// `target` is a slot of the scanned table.
    pub unsafe fn describe(&mut self, target: *mut pg_sys::TupleTableSlot) {
        // SAFETY: the caller's promise.
        unsafe {
            let descriptor = (*target).tts_tupleDescriptor;
            if descriptor != self.reader.descriptor {
                let shape = Shape::of(descriptor);
                if shape.fingerprint == self.reader.shape.fingerprint {
                    (self.reader.descriptor, self.reader.shape) = (descriptor, shape);
                } else {
                    self.place = Place::BeforeFirst;
                    self.open(descriptor);
                }
            }
        }
    }

    /// Goes back to before the first row, or to after the last if the scan goes backwards from there.
    pub fn rewind(&mut self, forward: bool) {
        self.leave();
        self.taken_until = 0;
        self.place = if forward {
            Place::BeforeFirst
        } else {
            Place::AfterLast
        };
    }

    /// Goes on to the next segment in the direction that has visible rows, and opens it; `None` at the end. Sealed ones
    /// that are ruled out, or taken in, by what their parts' indexes say are left without being read. What is to be read of the
    /// window has to be [filled](Scan::fill) first.
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

    /// The visible rows of the segment that is open, and the window on it.
    pub fn current(&self) -> Option<(&[Range], &SegmentView)> {
        match &self.place {
            Place::In(open) => Some((&open.ranges, &open.window)),
            Place::BeforeFirst | Place::AfterLast => None,
        }
    }

    /// The window that is open.
    pub fn window(&self) -> Option<&SegmentView> {
        match &self.place {
            Place::In(open) => Some(&open.window),
            Place::BeforeFirst | Place::AfterLast => None,
        }
    }

    /// Makes the rows at some places of the window that is open ready to be read in some attributes. `None`: in all that are
    /// looked at.
    pub fn fill(&mut self, places: std::ops::Range<usize>, attributes: Option<&[usize]>) {
        if let Place::In(open) = &mut self.place {
            open.window.fill(places, attributes);
        }
    }

    /// Makes all visible rows of the segment that is open ready to be read.
    pub fn fill_visible(&mut self) {
        if let Place::In(open) = &mut self.place {
            open.fill_visible();
        }
    }

    /// How many vectors of single attributes were decoded for this scan alone.
    pub fn columns_decoded(&self) -> u64 {
        self.columns_decoded + self.window().map_or(0, SegmentView::columns_decoded)
    }

    /// Leaves the segment that is open; what it took of memory is used for the next one.
    fn leave(&mut self) {
        if let Place::In(open) = std::mem::replace(&mut self.place, Place::BeforeFirst) {
            self.columns_decoded += open.window.columns_decoded();
            if let Some(memory) = open.window.into_memory() {
                self.stream_memory = memory;
            }
        }
    }

    /// Opens some rows of one segment for [`Scan::store_if_open`]; false when none of them is visible. What is to be read of
    /// them has to be [filled](Scan::fill) first.
    pub fn open_rows(&mut self, from: u64, to: u64) -> bool {
        let bounds = std::mem::replace(&mut self.bounds, (from, to));
        let open = self.open_segment(segment_of(from), None, Wanted::Few);
        self.bounds = bounds;
        let found = open.is_some();
        self.place = open.map_or(Place::BeforeFirst, |open| Place::In(Box::new(open)));
        found
    }

    /// Stores a row into the slot if it is one of the visible rows that are open.
    ///
    /// # Safety
    /// `slot` is a slot of the scanned table.
    pub unsafe fn store_if_open(&mut self, row: u64, target: *mut pg_sys::TupleTableSlot) -> bool {
        let Place::In(open) = &mut self.place else {
            return false;
        };
        let after = open.ranges.partition_point(|range| range.to <= row);
        if open.ranges.get(after).is_none_or(|range| row < range.from) {
            return false;
        }
        (open.range, open.row) = (after, row);
        // SAFETY: the caller's promise.
        unsafe { self.store_current(target) }
    }

    /// Stores the row that the scan stands on.
    unsafe fn store_current(&self, target: *mut pg_sys::TupleTableSlot) -> bool {
        let Place::In(open) = &self.place else {
            return false;
        };
        let range = &open.ranges[open.range];
        // SAFETY: the window lives until this scan moves on, which overwrites the slot first.
        unsafe {
            slot::store(
                target,
                open.window.outlet(),
                open.window.place(open.row),
                tid::from_row(open.row),
                (*self.reader.relation).rd_id,
                RowHeader {
                    xmin: range.xmin,
                    cmin: range.cmin,
                },
            );
        }
        true
    }

    /// Moves to the next row; false at the end.
    fn step(&mut self, forward: bool) -> bool {
        if let Place::In(open) = &mut self.place {
            let range = open.ranges[open.range];
            if forward {
                if open.row + 1 < range.to {
                    open.row += 1;
                    return true;
                }
                if open.range + 1 < open.ranges.len() {
                    open.range += 1;
                    open.row = open.ranges[open.range].from;
                    return true;
                }
            } else {
                if open.row > range.from {
                    open.row -= 1;
                    return true;
                }
                if open.range > 0 {
                    open.range -= 1;
                    open.row = open.ranges[open.range].to - 1;
                    return true;
                }
            }
        }
        self.enter_next_segment(forward, None)
    }

    fn enter_next_segment(&mut self, forward: bool, by_zone: Option<ByZone<'_>>) -> bool {
        let end = self.reader.end_row().min(self.bounds.1);
        if end <= self.bounds.0 {
            self.place = if forward {
                Place::AfterLast
            } else {
                Place::BeforeFirst
            };
            return false;
        }
        // What lay before the first run was dropped, perhaps very much of it.
        let content = self.reader.content.as_ref();
        let first_run = content.map_or(0, |content| content.runs.first_row());
        let (first, last) = (
            segment_of(self.bounds.0.max(first_run)) as i64,
            segment_of(end - 1) as i64,
        );
        let mut candidate = match (&self.place, forward) {
            (Place::BeforeFirst, true) => first - 1,
            (Place::AfterLast, false) => last + 1,
            (Place::In(open), _) => open.segment as i64,
            (Place::AfterLast, true) | (Place::BeforeFirst, false) => return false,
        };
        loop {
            candidate = self.claim(candidate, forward, first);
            if candidate < first || candidate > last {
                self.leave();
                self.place = if forward {
                    Place::AfterLast
                } else {
                    Place::BeforeFirst
                };
                return false;
            }
            ports::CHECK_FOR_INTERRUPTS();
            if forward
                && let Some(by_zone) = by_zone
                && let Some(next) = self.pass_ruled_out(candidate as u32, by_zone.rules_out)
            {
                candidate = i64::from(next) - 1;
                continue;
            }
            if !forward
                && let Some(by_zone) = by_zone
                && let Some(before) = self.pass_ruled_out_back(candidate as u32, by_zone.rules_out)
            {
                candidate = before + 1;
                continue;
            }
            if let Some(mut open) = self.open_segment(candidate as u32, by_zone, Wanted::Many) {
                if by_zone.is_none() {
                    // Read row by row.
                    open.fill_visible();
                }
                if forward {
                    open.row = open.ranges[0].from;
                } else {
                    open.range = open.ranges.len() - 1;
                    open.row = open.ranges[open.range].to - 1;
                }
                self.place = Place::In(Box::new(open));
                return true;
            }
        }
    }

    /// The segment after `from` in the direction; of a parallel scan, the next that no participant has taken.
    fn claim(&self, from: i64, forward: bool, first: i64) -> i64 {
        if !self.shared.is_null() {
            let sealings = self.reader.meta().map_or(0, |meta| meta.sealings);
            // SAFETY: shared state outlives the scan (`begin`'s promise).
            let taken = unsafe { (*self.shared).take(sealings, first as u64) };
            return taken.map_or(i64::MAX, |segment| segment as i64);
        }
        if forward { from + 1 } else { from - 1 }
    }

    fn open_segment(
        &mut self,
        segment: u32,
        by_zone: Option<ByZone<'_>>,
        wanted: Wanted,
    ) -> Option<OpenSegment> {
        let start = segment_first_row(segment)
            .max(self.bounds.0)
            .max(self.taken_until);
        let end = (segment_first_row(segment) + segment_rows_max(segment) as u64)
            .min(self.bounds.1)
            .min(self.reader.end_row());
        if start >= end {
            self.segments_taken += u64::from(self.taken_until >= end);
            return None;
        }
        // The old window goes first: it may be what has to be evicted.
        self.leave();
        let (relation, serializable) = (self.reader.relation, self.serializable);
        let content = self.reader.content.as_mut()?;
        let mut ranges = visible_ranges(
            relation,
            content,
            self.snapshot.as_ref(),
            serializable,
            start,
            end,
        );
        let rules_out = by_zone.map(|by_zone| by_zone.rules_out);
        if ranges.is_empty() {
            return None;
        }
        if let Some(rules_out) = rules_out
            && self.is_ruled_out(&ranges, rules_out)
        {
            self.segments_skipped += 1;
            return None;
        }
        if let Some(answers) = by_zone.and_then(|by_zone| by_zone.answered_by)
            && self.answer_whole_runs(&mut ranges, answers)
        {
            return None;
        }
        let (from, to) = (ranges.first()?.from, ranges.last()?.to);
        let content = self.reader.content.as_ref()?;
        let before = Recalled::so_far();
        let mut memory = std::mem::take(&mut self.stream_memory);
        // SAFETY: the reader is open (`begin`'s promise) and holds these rows.
        let window = unsafe {
            if holds_remote(content, segment_first_row(segment), to) {
                self.open_partly_remote(content, segment, &mut ranges, by_zone, &mut memory)
            } else {
                Some(self.open_within_share(content, (from, to), wanted, &mut memory))
            }
        };
        self.stream_memory = memory;
        self.recalled.add_since(before);
        let window = window?;
        if window.is_private() {
            self.segments_streamed += 1;
        }
        Some(OpenSegment {
            segment,
            ranges,
            window,
            range: 0,
            row: 0,
        })
    }
}

/// Whether a snapshot sees a row of a table.
///
/// # Safety
/// As for [`Scan::begin`].
pub unsafe fn has_row(relation: pg_sys::Relation, snapshot: pg_sys::Snapshot) -> bool {
    // SAFETY: the caller's promise.
    let mut scan = unsafe { Scan::begin(relation, snapshot, std::ptr::null()) };
    scan.wanted = Some(Vec::new());
    let any = ByZone {
        rules_out: &|_| false,
        answered_by: None,
    };
    scan.next_window(true, any).is_some()
}

impl Drop for Scan {
    fn drop(&mut self) {
        self.leave();
        spare_memory::keep(std::mem::take(&mut self.stream_memory));
    }
}
