//! Sequential, parallel and TID-range scans.
//!
//! A scan goes segment by segment. On entering one it turns runs, snapshot and tombstones into *ranges*: maximal
//! stretches of rows of one run that the snapshot sees. Under an MVCC snapshot that answer cannot change, so reading
//! the ranges needs no further check. Then the segment's window is opened and rows are handed out, forwards or
//! backwards; at either end the scan remembers on which side of the table it stands, as cursors expect.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use lanes_columnar::arena::RunEntry;
use lanes_columnar::limits::{segment_first_row, segment_of, segment_rows_max};
use lanes_columnar::part::SealedSegment;
use lanes_columnar::streamed::StreamMemory;
use lanes_columnar::zone_map::Zone;
use pgrx::pg_sys;

use super::reader::{Content, Reader, Window};
use super::row_numbers::{self, Reading};
use super::tid;
use crate::gucs;
use crate::pg::ports;
use crate::pg::shmem;
use crate::pg::slot::{self, RowHeader};
use crate::pg::snapshot::Snapshot;
use crate::remote::recall::Recalled;
use crate::storage::directory::FLAG_SEALED;
use crate::storage::load::Shape;
use crate::storage::stream::SealedRows;

mod ranges;
mod remote_rows;

pub use ranges::Range;
use ranges::visible_ranges;
pub use remote_rows::holds_remote;
use remote_rows::is_resident;

/// What one scan displaces in the arena is at most this part of it.
const DISPLACED_SHARE: u64 = 4;

/// Memory of a scan that is kept for the next one. Whoever reads a few rows would spend a good part of the time on making some.
const SPARE_BYTES_MAX: usize = 2 << 20;

thread_local! {
    static SPARE_MEMORY: Cell<Option<StreamMemory>> = const { Cell::new(None) };
}

/// Whether no row with these zones, by attribute, is wanted.
pub type RulesOut<'a> = &'a dyn Fn(&dyn Fn(usize) -> Option<Zone>) -> bool;

/// A segment that a scan is in.
struct OpenSegment {
    segment: u32,
    ranges: Vec<Range>,
    window: Window,
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

/// What all participants of a parallel scan share, behind Postgres's own part of the descriptor.
#[repr(C)]
pub struct ParallelState {
    pub base: pg_sys::ParallelTableScanDescData,
    pub segments: SharedSegments,
}

/// Which segments the participants of a parallel scan have taken.
#[repr(C)]
#[derive(Default)]
pub struct SharedSegments {
    /// The next one that nobody has taken.
    next: AtomicU64,
    /// One more than the sealings of the table as the first participant found it; 0: nobody has taken a segment yet.
    /// Whoever opened the table before or after a sealing in between has other rows in its segments, and leaves all of
    /// them to the others.
    numbering: AtomicU64,
}

impl SharedSegments {
    /// Starts over. No participant is scanning now.
    pub fn restart(&self) {
        self.next.store(0, Ordering::Relaxed);
        self.numbering.store(0, Ordering::Relaxed);
    }

    /// Takes a segment; `None`: the table was sealed between the others' looking at it and this one's.
    /// `first` is the first that has rows; an older list of runs may say that there are some before, of dead ones.
    fn take(&self, sealings: u64, first: u64) -> Option<u64> {
        let own = sealings + 1;
        let others = self
            .numbering
            .compare_exchange(0, own, Ordering::Relaxed, Ordering::Relaxed);
        if others.is_err_and(|others| others != own) {
            return None;
        }
        self.next.fetch_max(first, Ordering::Relaxed);
        Some(self.next.fetch_add(1, Ordering::Relaxed))
    }
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
                recalled: Recalled::default(),
                wanted: None,
                may_displace: Cell::new(gucs::arena_bytes() as u64 / DISPLACED_SHARE),
                segments_streamed: 0,
                columns_decoded: 0,
                stream_memory: SPARE_MEMORY.take().unwrap_or_default(),
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
        self.place = if forward {
            Place::BeforeFirst
        } else {
            Place::AfterLast
        };
    }

    /// Goes on to the next segment in the direction that has visible rows, and opens it; `None` at the end. Sealed ones
    /// that are ruled out by what their parts' indexes say are left without being read. What is to be read of the window has to
    /// be [filled](Scan::fill) first.
    pub fn next_window(
        &mut self,
        forward: bool,
        rules_out: RulesOut<'_>,
    ) -> Option<(&[Range], &Window)> {
        if !self.enter_next_segment(forward, Some(rules_out)) {
            return None;
        }
        self.current()
    }

    /// The visible rows of the segment that is open, and the window on it.
    pub fn current(&self) -> Option<(&[Range], &Window)> {
        match &self.place {
            Place::In(open) => Some((&open.ranges, &open.window)),
            Place::BeforeFirst | Place::AfterLast => None,
        }
    }

    /// The window that is open.
    pub fn window(&self) -> Option<&Window> {
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
        self.columns_decoded + self.window().map_or(0, Window::columns_decoded)
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
        let open = self.open_segment(segment_of(from), None);
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

    fn enter_next_segment(&mut self, forward: bool, rules_out: Option<RulesOut<'_>>) -> bool {
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
                && let Some(rules_out) = rules_out
                && let Some(next) = self.pass_ruled_out(candidate as u32, rules_out)
            {
                candidate = i64::from(next) - 1;
                continue;
            }
            if let Some(mut open) = self.open_segment(candidate as u32, rules_out) {
                if rules_out.is_none() {
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

    /// Passes segments from one on that hold none but sealed rows and are ruled out: the one after them, if there are any. One look at
    /// each zone, where [`Scan::open_segment`] first finds out what is to be seen. Of a parallel scan, that segment alone is passed:
    /// others may have taken those behind it.
    fn pass_ruled_out(&mut self, segment: u32, rules_out: RulesOut<'_>) -> Option<u32> {
        // There, conflicts with those who deleted rows are told even if nobody wants the rows.
        if self.serializable {
            return None;
        }
        let from = segment_first_row(segment).max(self.bounds.0);
        let end = match self.shared.is_null() {
            true => u64::MAX,
            false => segment_first_row(segment + 1),
        };
        let end = end.min(self.bounds.1).min(self.reader.end_row());
        let content = self.reader.content.as_ref()?;
        let is_passed = |sealed: &SealedSegment| rules_out(&|at| sealed.zones.get(at).copied());
        // SAFETY: the relation is open (`begin`'s promise), and the parts are its own.
        let (row, passed) = unsafe {
            let relation = self.reader.relation;
            content.parts.pass(relation, from, end, is_passed)
        };
        let next = match row {
            // What is behind the end is nobody's.
            _ if row == end => segment_of(end - 1) + 1,
            _ => segment_of(row),
        };
        self.segments_skipped += passed;
        (next > segment).then_some(next)
    }

    fn open_segment(
        &mut self,
        segment: u32,
        rules_out: Option<RulesOut<'_>>,
    ) -> Option<OpenSegment> {
        let start = segment_first_row(segment).max(self.bounds.0);
        let end = (segment_first_row(segment) + segment_rows_max(segment) as u64)
            .min(self.bounds.1)
            .min(self.reader.end_row());
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
        let (from, to) = (ranges.first()?.from, ranges.last()?.to);
        if let Some(rules_out) = rules_out
            && self.is_ruled_out(&ranges, rules_out)
        {
            self.segments_skipped += 1;
            return None;
        }
        let content = self.reader.content.as_ref()?;
        let before = Recalled::so_far();
        let mut memory = std::mem::take(&mut self.stream_memory);
        // SAFETY: the reader is open (`begin`'s promise) and holds these rows.
        let window = unsafe {
            if holds_remote(content, segment_first_row(segment), to) {
                self.open_partly_remote(content, segment, &mut ranges, rules_out, &mut memory)?
            } else {
                self.open_within_share(content, from, to, &mut memory)
            }
        };
        self.stream_memory = memory;
        if window.is_private() {
            self.segments_streamed += 1;
        }
        self.recalled.add_since(before);
        Some(OpenSegment {
            segment,
            ranges,
            window,
            range: 0,
            row: 0,
        })
    }
}

impl Scan {
    /// Opens the window on rows of one segment.
    ///
    /// | the rows are | they are read |
    /// |---|---|
    /// | in the arena, decoded | there |
    /// | all sealed | from their images, which the arena keeps if it can; decoded to the arena once most of them were looked at `lanes.decode_after` times |
    /// | others | from the arena, to which they are decoded |
    ///
    /// Once the arena is full and this scan has displaced its share of it, the scan brings nothing more there: what others read
    /// again and again stays.
    ///
    /// # Safety
    /// `content` is the reader's and holds these rows.
    unsafe fn open_within_share(
        &self,
        content: &Content,
        from: u64,
        to: u64,
        memory: &mut StreamMemory,
    ) -> Window {
        let segment = segment_of(from);
        let decoded_bytes = || (to - segment_first_row(segment)) * self.reader.shape.bytes_a_row();
        if is_resident(content, segment, to) {
            // SAFETY: the caller's promise.
            return unsafe { Window::open(&self.reader, content, from, to) };
        }
        let sealed = SealedRows::find(&content.runs, from, to);
        // Whether it is streamed, and whether its images are to be kept then.
        let (streams, keep) = match &sealed {
            Some(sealed) if gucs::decode_after() > 0 => match sealed.looks() {
                Some(looks) if looks < gucs::decode_after() => (true, false),
                Some(_) => (!self.may_load(content, decoded_bytes()), false),
                None => (true, self.may_load(content, sealed.bytes)),
            },
            _ => (!self.may_load(content, decoded_bytes()), false),
        };
        // SAFETY: the caller's promise.
        unsafe {
            if streams {
                let (rows, wanted) = ((from, to), self.wanted.as_deref());
                return Window::stream(&self.reader, content, rows, wanted, (sealed, keep), memory);
            }
            // Images make way for lanes only once nobody has them pinned.
            drop(sealed);
            Window::open(&self.reader, content, from, to)
        }
    }

    /// Whether the arena has room for so many bytes of a table, or what this scan may displace makes some.
    fn may_load(&self, content: &Content, bytes: u64) -> bool {
        let budget = content.runs.cached().map_or(0, |c| c.stats().bytes_max);
        if budget != 0 && bytes > budget {
            return false;
        }
        if has_room(bytes) {
            return true;
        }
        let left = self.may_displace.get().checked_sub(bytes);
        self.may_displace
            .set(left.unwrap_or(self.may_displace.get()));
        left.is_some()
    }

    /// Whether the zones of a sealed run rule it out.
    fn rules_out_run(&self, content: &Content, run: &RunEntry, rules_out: RulesOut<'_>) -> bool {
        let relation = self.reader.relation;
        let zone = |attribute: usize| {
            // SAFETY: the relation is open (`begin`'s promise), and the parts are its own.
            unsafe { content.parts.zone(relation, run.first_row, attribute) }
        };
        run.flags & FLAG_SEALED != 0 && rules_out(&zone)
    }

    /// Whether all of these rows are sealed, and their zones rule them out.
    fn is_ruled_out(&self, ranges: &[Range], rules_out: RulesOut<'_>) -> bool {
        let Some(content) = &self.reader.content else {
            return false;
        };
        let mut judged = 0;
        ranges.iter().all(|range| {
            // Rows that were deleted part the ranges of one run.
            if range.to <= judged {
                return true;
            }
            let Some((_, run)) = content.run_of(range.from) else {
                return false;
            };
            judged = run.end_row();
            self.rules_out_run(content, &run, rules_out)
        })
    }
}

impl Drop for Scan {
    fn drop(&mut self) {
        self.leave();
        let memory = std::mem::take(&mut self.stream_memory);
        if memory.bytes() <= SPARE_BYTES_MAX {
            SPARE_MEMORY.set(Some(memory));
        }
    }
}

/// Whether the arena takes so many bytes of lanes, and what goes with them, without anything having to go.
fn has_room(bytes: u64) -> bool {
    shmem::arena().is_some_and(|arena| {
        let stats = arena.stats();
        stats.bytes_usable.saturating_sub(stats.bytes_used) >= 2 * bytes
    })
}
