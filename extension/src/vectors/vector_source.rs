//! The visible rows of a table as vectors, in row order or from the last vector to the first.
//!
//! ```text
//! segment → visible ranges + window (table_am::scan) → vectors of the window:
//!     selection = visible rows; none → next
//!     zone maps contradict a pushed qual → next
//!     each qual that zones do not prove: what it looks at is made ready; no row passes → next
//!     what else is wanted is made ready
//! ```
//! Lanes of sealed rows may not be read before they are made ready, or *filled*, which may mean that they are decoded.

use lanes_columnar::join::key_set::KeySet;
use lanes_columnar::lane::{DictionaryView, Lane, LaneData};
use lanes_columnar::limits::VECTOR_ROWS;
use lanes_columnar::repeats::ValueRepeats;
use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::number::Scalar;
use lanes_columnar::vector::selection::Selection;
use lanes_columnar::vector::{Evaluation, narrow};
use lanes_columnar::zone_map::Zone;
use pgrx::pg_sys;

use super::prune::{Filter, Verdict};
use crate::pg::datum::RowOutlet;
use crate::pg::explain::Explain;
use crate::pg::ports;
use crate::table::scan::{AnsweredByZones, ByZone, Range, Scan, SharedSegments};
use crate::table::tid;
use crate::vectorize;

mod key_search;

/// What a source did, for EXPLAIN.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counters {
    pub segments: u64,
    /// Sealed segments that were not read: their zones ruled them out.
    pub segments_skipped: u64,
    /// Those that were decoded for this scan alone.
    pub segments_streamed: u64,
    /// Vectors of single columns that were decoded of them.
    pub columns_decoded: u64,
    /// What came from object storage.
    pub segments_recalled: u64,
    pub bytes_recalled: u64,
    /// Segments of those that the cold cache had.
    pub cold_cache_hits: u64,
    pub vectors: u64,
    pub vectors_skipped: u64,
    /// Skipped vectors that hold none of a join's keys.
    pub vectors_without_keys: u64,
    pub rows: u64,
}

impl Counters {
    /// Shows what the source of a node did.
    pub fn explain(&self, explain: &Explain) {
        explain.integer(c"Segments", self.segments);
        if self.segments_skipped > 0 {
            explain.integer(c"Segments Skipped", self.segments_skipped);
        }
        if self.segments_streamed > 0 {
            explain.integer(c"Segments Streamed", self.segments_streamed);
            explain.integer(c"Column Vectors Decoded", self.columns_decoded);
        }
        if self.segments_recalled > 0 {
            explain.integer(c"Segments Recalled", self.segments_recalled);
            explain.integer(c"Bytes Recalled", self.bytes_recalled);
            explain.integer(c"Cold Cache Hits", self.cold_cache_hits);
        }
        explain.integer(c"Vectors", self.vectors);
        explain.integer(c"Vectors Skipped", self.vectors_skipped);
        if self.vectors_without_keys > 0 {
            explain.integer(c"Vectors Skipped By Join Keys", self.vectors_without_keys);
        }
        explain.integer(c"Rows Scanned", self.rows);
    }

    /// Shows how the right side of a join was read, and by which algorithm its rows were found.
    pub fn explain_joined(&self, algorithm: &str, explain: &Explain) {
        explain.text(c"Join Algorithm", algorithm);
        if self.segments_streamed > 0 {
            explain.integer(c"Joined Segments Streamed", self.segments_streamed);
            explain.integer(c"Joined Column Vectors Decoded", self.columns_decoded);
        }
        if self.segments_recalled > 0 {
            explain.integer(c"Joined Segments Recalled", self.segments_recalled);
            explain.integer(c"Joined Bytes Recalled", self.bytes_recalled);
            explain.integer(c"Joined Cold Cache Hits", self.cold_cache_hits);
        }
        explain.integer(c"Joined Vectors", self.vectors);
        explain.integer(c"Joined Vectors Skipped", self.vectors_skipped);
        explain.integer(c"Joined Rows", self.rows);
    }

    /// Of both.
    pub fn plus(&self, other: &Counters) -> Counters {
        Counters {
            segments: self.segments + other.segments,
            segments_skipped: self.segments_skipped + other.segments_skipped,
            segments_streamed: self.segments_streamed + other.segments_streamed,
            columns_decoded: self.columns_decoded + other.columns_decoded,
            segments_recalled: self.segments_recalled + other.segments_recalled,
            bytes_recalled: self.bytes_recalled + other.bytes_recalled,
            cold_cache_hits: self.cold_cache_hits + other.cold_cache_hits,
            vectors: self.vectors + other.vectors,
            vectors_skipped: self.vectors_skipped + other.vectors_skipped,
            vectors_without_keys: self.vectors_without_keys + other.vectors_without_keys,
            rows: self.rows + other.rows,
        }
    }
}

/// A scan under way, a vector at a time.
pub struct VectorSource {
    scan: Scan,
    lanes: Vec<Lane>,
    dictionaries: Vec<DictionaryView>,
    zones: Vec<Option<Zone>>,
    /// Attributes whose zones somebody wants.
    zones_wanted: Vec<usize>,
    ranges: Vec<Range>,
    /// The range that the next vector begins with; backwards, the one after that.
    range: usize,
    backward: bool,
    outlet: *const RowOutlet,
    /// The row at place 0 of the window.
    first_row: u64,
    place: usize,
    rows: usize,
    /// The visible rows of the vector under way, and how many they are. Most vectors are visible as a whole, so often it is
    /// left as it is.
    visible: Selection,
    visible_rows: usize,
    /// The quals, a bit each of the first 64, that all rows of the vector under way pass as its zones tell.
    always_true: u64,
    /// An attribute in whose order the rows of the window lie, by values of which rows are sought.
    search_attribute: Option<usize>,
    /// Whether rows of the vector under way were left out: see [`Self::narrow_to_keys`].
    is_narrowed: bool,
    open: bool,
    zone_maps: bool,
    counters: Counters,
}

impl VectorSource {
    /// # Safety
    /// As for [`Scan::begin`].
    pub unsafe fn begin(
        relation: pg_sys::Relation,
        snapshot: pg_sys::Snapshot,
        zones_wanted: Vec<usize>,
    ) -> VectorSource {
        let zone_maps = vectorize::zone_maps();
        // SAFETY: the caller's promise.
        unsafe {
            ports::PredicateLockRelation(relation, snapshot);
            ports::pgstat_count_heap_scan(relation);
            VectorSource {
                scan: Scan::begin(relation, snapshot, std::ptr::null()),
                lanes: Vec::new(),
                dictionaries: Vec::new(),
                zones: Vec::new(),
                zones_wanted: if zone_maps { zones_wanted } else { Vec::new() },
                ranges: Vec::new(),
                range: 0,
                backward: false,
                outlet: std::ptr::null(),
                first_row: 0,
                place: 0,
                rows: 0,
                visible: Selection::NONE,
                visible_rows: 0,
                always_true: 0,
                search_attribute: None,
                is_narrowed: false,
                open: false,
                zone_maps,
                counters: Counters::default(),
            }
        }
    }

    /// Shares the segments with the other participants of a parallel scan.
    ///
    /// # Safety
    /// `segments` outlives the source.
    pub unsafe fn share(&mut self, segments: *const SharedSegments) {
        // SAFETY: the caller's promise.
        unsafe { self.scan.share(segments) }
    }

    /// Says that no attributes but these are looked at in segments opened from now on: the lanes of others may be NULLs.
    pub fn want_only(&mut self, attributes: Vec<usize>) {
        self.scan.wanted = Some(attributes);
    }

    /// Starts over: from the first row, or from the last vector to the first. The rows are those that there were.
    pub fn rewind(&mut self, backward: bool) {
        self.backward = backward;
        self.open = false;
        self.scan.rewind(!backward);
    }

    /// Begins with a look ahead, at these attributes.
    pub fn begin_look_ahead(&mut self, attributes: Vec<usize>) {
        self.rewind(false);
        self.want_only(attributes);
    }

    /// Ends a look ahead: starts over from the first row, with the attributes that are wanted from now on.
    pub fn end_look_ahead(&mut self, attributes: Vec<usize>) {
        self.rewind(false);
        self.counters = Counters::default();
        self.want_only(attributes);
    }

    /// Goes on to the next vector of which rows pass the filter, and gives those. All that is wanted of it is filled.
    ///
    /// # Errors
    /// Those of the quals.
    pub fn next(
        &mut self,
        filter: &mut Filter,
        scalars: &[Option<Scalar>],
    ) -> Evaluation<Option<Selection>> {
        while self.advance(filter, scalars) {
            if let Some(rows) = self.narrow(filter, scalars)? {
                return Ok(Some(rows));
            }
        }
        Ok(None)
    }

    /// The rows of the vector under way that pass the filter, if there are any: then all that is wanted of it is filled.
    ///
    /// # Errors
    /// Those of the quals.
    pub fn narrow(
        &mut self,
        filter: &mut Filter,
        scalars: &[Option<Scalar>],
    ) -> Evaluation<Option<Selection>> {
        let rows = self.pass(filter, scalars)?;
        if rows.is_some() {
            self.fill(None);
        }
        Ok(rows)
    }

    /// The rows of the vector under way that pass the filter, if there are any. Perhaps only what the quals look at is
    /// filled. Rows that a search shows not to pass are left out of the vector first.
    ///
    /// # Errors
    /// Those of the quals.
    pub fn pass(
        &mut self,
        filter: &mut Filter,
        scalars: &[Option<Scalar>],
    ) -> Evaluation<Option<Selection>> {
        if !self.narrow_to_keys(filter, scalars) {
            return Ok(None);
        }
        let mut rows = self.visible;
        for (index, qual) in filter.quals.iter_mut().enumerate() {
            if self.is_always_true(index) {
                continue;
            }
            self.fill(Some(&filter.looked_at[index]));
            narrow(std::slice::from_mut(qual), &self.frame(scalars), &mut rows)?;
            if rows.is_empty() {
                return Ok(None);
            }
        }
        Ok(Some(rows))
    }

    /// Whether zones tell that all rows of the vector under way pass this qual.
    fn is_always_true(&self, qual: usize) -> bool {
        qual < u64::BITS as usize && self.always_true >> qual & 1 == 1
    }

    /// Whether they tell that all visible rows pass the filter.
    pub fn all_pass(&self, filter: &Filter) -> bool {
        (0..filter.quals.len()).all(|qual| self.is_always_true(qual))
    }

    /// The visible rows of the vector under way, and how many they are.
    pub fn visible(&self) -> (&Selection, usize) {
        (&self.visible, self.visible_rows)
    }

    /// Goes on to the next vector that has visible rows and is not ruled out; false at the end. Nothing of it is filled.
    pub fn advance(&mut self, filter: &mut Filter, scalars: &[Option<Scalar>]) -> bool {
        self.advance_past(filter, scalars, None)
    }

    /// The same past sealed rows that `takes` takes in by their zones alone.
    pub fn advance_past(
        &mut self,
        filter: &mut Filter,
        scalars: &[Option<Scalar>],
        answered_by: Option<&dyn AnsweredByZones>,
    ) -> bool {
        loop {
            if !self.open && !self.open_window(filter, scalars, answered_by) {
                return false;
            }
            let found = if self.backward {
                self.previous_vector()
            } else {
                self.next_vector()
            };
            if !found {
                self.open = false;
                continue;
            }
            self.counters.vectors += 1;
            if self.is_ruled_out(filter, scalars) {
                self.counters.vectors_skipped += 1;
                self.seek(filter, scalars);
                continue;
            }
            self.counters.rows += self.visible_rows as u64;
            return true;
        }
    }

    /// Fills these attributes of the vector under way. `None`: all that are wanted.
    pub fn fill(&mut self, attributes: Option<&[usize]>) {
        let places = self.place..self.place + self.rows;
        self.scan.fill(places, attributes);
    }

    /// Fills these attributes at these places of the window that is open. `None`: all that are wanted.
    ///
    /// No other place is filled. A sealed run need not begin with a vector of the window, so two vectors of
    /// its image may meet in one vector of the window.
    pub fn fill_places(&mut self, places: std::ops::Range<usize>, attributes: Option<&[usize]>) {
        self.scan.fill(places, attributes);
    }

    /// Reads an attribute at a place of the window that is open, NULL or not, without its vector being filled. `None`: it
    /// has to be, or was.
    pub fn point(&self, attribute: usize, place: usize) -> Option<(pg_sys::Datum, bool)> {
        self.scan.window()?.point(attribute, place)
    }

    /// What was done so far. What was read for a look ahead counts too, but not its rows.
    pub fn counters(&self) -> Counters {
        Counters {
            segments_skipped: self.scan.segments_skipped,
            segments_streamed: self.scan.segments_streamed,
            columns_decoded: self.scan.columns_decoded(),
            segments_recalled: self.scan.recalled.segments,
            bytes_recalled: self.scan.recalled.bytes,
            cold_cache_hits: self.scan.recalled.cached,
            ..self.counters
        }
    }

    /// How many segments were taken in by their zones so far.
    pub fn segments_taken(&self) -> u64 {
        self.scan.segments_taken
    }

    /// Whether zones tell that the filter passes no row of the vector under way, those of codes asked last: they need the dictionary.
    /// If they do not, it is known which quals are always true.
    fn is_ruled_out(&mut self, filter: &mut Filter, scalars: &[Option<Scalar>]) -> bool {
        self.always_true = 0;
        for prune in &filter.prunes {
            let Some(zone) = self.zone(prune.attribute) else {
                continue;
            };
            match prune.verdict(&zone, scalars) {
                Verdict::NoRow => return true,
                Verdict::EachRow if !self.may_have_nulls(prune.attribute) => {
                    let qual = prune.qual.and_then(|qual| 1_u64.checked_shl(qual as u32));
                    self.always_true |= qual.unwrap_or_default();
                }
                Verdict::EachRow | Verdict::Unknown => {}
            }
        }
        if filter.contradicts(&|attribute| self.zone(attribute)) {
            return true;
        }
        let has_none = |(attribute, keys): &(usize, KeySet)| {
            self.zone(*attribute)
                .is_some_and(|zone| keys.is_ruled_out(&zone))
        };
        if filter.lists.iter().any(has_none) {
            return true;
        }
        if filter.key_sets.iter().any(has_none) {
            self.counters.vectors_without_keys += 1;
            return true;
        }
        for index in 0..self.zones_wanted.len() {
            let attribute = self.zones_wanted[index];
            self.zones[attribute] = self.zone(attribute);
        }
        let frame = self.frame(scalars);
        let mut quals = filter.quals.iter_mut();
        quals.any(|qual| qual.is_ruled_out(&frame))
    }

    /// Whether a row of the window may be NULL in an attribute.
    fn may_have_nulls(&self, attribute: usize) -> bool {
        let lane = &self.lanes[attribute];
        !lane.validity.is_null() || matches!(lane.data, LaneData::Null)
    }

    /// Whether [`VectorSource::next`] is going to leave the window under way, whose lanes are then gone. It may leave it
    /// otherwise too if vectors are ruled out.
    pub fn is_window_done(&self) -> bool {
        self.open && self.range == self.ranges.len()
    }

    fn open_window(
        &mut self,
        filter: &Filter,
        scalars: &[Option<Scalar>],
        answered_by: Option<&dyn AnsweredByZones>,
    ) -> bool {
        let zone_maps = self.zone_maps;
        let rules_out =
            |zone: &dyn Fn(usize) -> Option<Zone>| zone_maps && filter.rules_out(zone, scalars);
        let by_zone = ByZone {
            rules_out: &rules_out,
            answered_by: answered_by.filter(|_| zone_maps),
        };
        let opened = self.scan.next_window(!self.backward, by_zone).is_some();
        let Some((ranges, window)) = self.scan.current().filter(|_| opened) else {
            return false;
        };
        self.lanes.clear();
        self.lanes.extend(window.lanes());
        self.dictionaries.clear();
        self.dictionaries.extend_from_slice(window.dictionaries());
        let attributes = self.lanes.len();
        self.zones.clear();
        self.zones.resize(attributes, None);
        self.ranges.clear();
        self.ranges.extend_from_slice(ranges);
        self.outlet = window.outlet();
        self.first_row = window.first_row;
        let mut attributes = filter.search_attributes();
        self.search_attribute =
            attributes.find(|&attribute| zone_maps && self.scan.is_sorted_by(attribute));
        self.range = if self.backward { self.ranges.len() } else { 0 };
        self.rows = 0;
        self.is_narrowed = false;
        // The vector before the first.
        let first = (self.ranges[0].from - self.first_row) as usize;
        self.place = first / VECTOR_ROWS * VECTOR_ROWS;
        self.open = true;
        self.counters.segments += 1;
        true
    }

    /// Goes on to the next vector of the window that has visible rows.
    fn next_vector(&mut self) -> bool {
        self.widen();
        if self.rows > 0 {
            self.place += VECTOR_ROWS;
        }
        let Some(range) = self.ranges.get(self.range) else {
            return false;
        };
        let first = (range.from.max(self.first_row + self.place as u64) - self.first_row) as usize;
        self.place = first / VECTOR_ROWS * VECTOR_ROWS;
        let start = self.first_row + self.place as u64;
        let end = start + VECTOR_ROWS as u64;
        if range.from <= start && range.to >= end {
            self.range += usize::from(range.to == end);
            self.rows = VECTOR_ROWS;
            self.see_all();
            return true;
        }
        self.visible = Selection::NONE;
        while let Some(range) = self.ranges.get(self.range) {
            if range.from >= end {
                break;
            }
            let to = range.to.min(end);
            let (from, to) = (range.from.max(start) - start, to - start);
            self.visible.insert(from as usize, to as usize);
            self.rows = to as usize;
            if range.to > end {
                break;
            }
            self.range += 1;
        }
        self.visible_rows = self.visible.count();
        true
    }

    /// Goes back to the vector before, if the window has one.
    fn previous_vector(&mut self) -> bool {
        self.widen();
        let under_way = self.first_row + self.place as u64;
        let before = if self.rows > 0 { under_way } else { u64::MAX };
        let Some(range) = self.ranges[..self.range].last() else {
            return false;
        };
        let last = (range.to.min(before) - 1 - self.first_row) as usize;
        self.place = last / VECTOR_ROWS * VECTOR_ROWS;
        self.rows = last + 1 - self.place;
        let start = self.first_row + self.place as u64;
        let end = start + self.rows as u64;
        self.visible = Selection::NONE;
        while let Some(range) = self.ranges[..self.range].last() {
            if range.to <= start {
                break;
            }
            let (from, to) = (range.from.max(start) - start, range.to.min(end) - start);
            self.visible.insert(from as usize, to as usize);
            if range.from < start {
                break;
            }
            self.range -= 1;
        }
        self.visible_rows = self.visible.count();
        true
    }

    /// The place is that of the whole vector again.
    fn widen(&mut self) {
        self.place -= self.place % VECTOR_ROWS;
        self.is_narrowed = false;
    }

    /// All rows of a whole vector are visible.
    fn see_all(&mut self) {
        if self.visible_rows != VECTOR_ROWS {
            self.visible = Selection::first(VECTOR_ROWS);
            self.visible_rows = VECTOR_ROWS;
        }
    }

    /// Leaves out the vector under way.
    pub fn skip(&mut self) {
        self.counters.vectors_skipped += 1;
        self.counters.rows -= self.visible_rows as u64;
    }

    /// The zone map of an attribute in the vector under way, where there is one.
    pub fn zone(&self, attribute: usize) -> Option<Zone> {
        if !self.zone_maps {
            return None;
        }
        let zone = self
            .scan
            .window()?
            .zone(attribute, self.place / VECTOR_ROWS)?;
        Some(Zone {
            exact: zone.exact && !self.is_narrowed,
            ..zone
        })
    }

    /// What an attribute has in the vector under way as runs of equal values, if sealed bytes tell so and it was not filled; false if not.
    pub fn repeats(&self, attribute: usize, repeats: &mut ValueRepeats) -> bool {
        let places = self.place..self.place + self.rows;
        let window = self.scan.window();
        window.is_some_and(|window| window.repeats(attribute, places, repeats))
    }

    /// The vector under way.
    pub fn frame<'a>(&'a self, scalars: &'a [Option<Scalar>]) -> Frame<'a> {
        Frame {
            lanes: &self.lanes,
            dictionaries: &self.dictionaries,
            place: self.place,
            rows: self.rows,
            scalars,
            zones: &self.zones,
            joined: &[],
            substitutes: &[],
        }
    }

    /// The lanes as they hand out datums; valid until the next vector is asked for.
    pub fn outlet(&self) -> *const RowOutlet {
        self.outlet
    }

    /// A row of the vector as a place in the lanes.
    pub fn place(&self, row: usize) -> usize {
        self.place + row
    }

    /// The number of the row at a place of the vector's lanes.
    pub fn row_number(&self, place: usize) -> u64 {
        self.first_row + place as u64
    }

    /// Opens a window on rows `from..to`, all of one segment, of which the first and the last are visible: its lanes,
    /// and the number of the row at their place 0. Rows have to be [filled](Self::fill_places) before they are read from
    /// these, and the scan rewound before it goes on.
    pub fn open_rows(&mut self, from: u64, to: u64) -> Option<(*const RowOutlet, u64)> {
        self.open = false;
        if !self.scan.open_rows(from, to) {
            return None;
        }
        let window = self.scan.window()?;
        Some((window.outlet(), window.first_row))
    }

    /// The tuple id of a row of the vector.
    pub fn tid(&self, row: usize) -> pg_sys::ItemPointerData {
        tid::from_row(self.first_row + (self.place + row) as u64)
    }

    /// Ends the scan and reports its rows to the statistics.
    pub fn end(self) {
        // SAFETY: `begin`'s caller promised that the relation stays open.
        unsafe {
            ports::pgstat_count_heap_rows(self.scan.reader.relation, self.counters.rows as i64);
        }
    }
}
