//! The visible rows of a table as vectors, in row order or from the last vector to the first.
//!
//! ```text
//! segment → visible ranges + window (table::scan) → vectors of the window:
//!     selection = visible rows; none → next vector
//!     zone maps contradict a condition → next vector
//!     each condition that zone maps do not prove: fill what it reads, evaluate it; no row passes → next vector
//!     fill what else the caller reads
//! ```
//! Lanes of sealed rows may be read only after they are *filled*, which may decode them.

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

use super::counters::Counters;
use super::prune::{Filter, Verdict};
use crate::pg::datum::RowOutlet;
use crate::pg::exec::table::QueryTable;
use crate::table::scan::{AnsweredByZones, Range, Scan, SharedSegments};
use crate::table::tid;
use crate::vectorize;

mod key_search;
mod steps;

/// A scan of a table, vector by vector.
pub struct VectorSource {
    scan: Scan<'static>,
    lanes: Vec<Lane>,
    dictionaries: Vec<DictionaryView>,
    zones: Vec<Option<Zone>>,
    /// The attributes whose zones the caller reads.
    zones_wanted: Vec<usize>,
    ranges: Vec<Range>,
    /// The range with which the next vector begins; if the scan is backward, the range after that.
    range: usize,
    backward: bool,
    /// An outlet without lanes, while no window is open.
    no_rows: RowOutlet,
    /// The number of the row at place 0 of the window.
    first_row: u64,
    place: usize,
    rows: usize,
    /// The visible rows of the current vector, and their number. Most vectors are visible as a whole, so the selection
    /// often stays the same.
    visible: Selection,
    visible_rows: usize,
    /// A bit for each of the first 64 conditions: whether zones prove that all rows of the current vector pass it.
    always_true: u64,
    /// An attribute that the rows of the window are sorted by, and that the conditions restrict.
    sorted_by: Option<usize>,
    /// Whether rows of the current vector were removed by [`Self::narrow_to_matches`].
    is_narrowed: bool,
    open: bool,
    zone_maps: bool,
    counters: Counters,
}

impl VectorSource {
    /// A scan of a lanes table. The source is dropped before the table is closed.
    pub fn begin(table: QueryTable, zones_wanted: Vec<usize>) -> VectorSource {
        let zone_maps = vectorize::zone_maps();
        let (table, snapshot) = table.open();
        if let Some(snapshot) = snapshot {
            table.predicate_lock(snapshot);
        }
        table.count_scan();
        VectorSource {
            scan: Scan::begin(table, snapshot),
            lanes: Vec::new(),
            dictionaries: Vec::new(),
            zones: Vec::new(),
            zones_wanted: if zone_maps { zones_wanted } else { Vec::new() },
            ranges: Vec::new(),
            range: 0,
            backward: false,
            no_rows: RowOutlet::new(&[], std::iter::empty()),
            first_row: 0,
            place: 0,
            rows: 0,
            visible: Selection::NONE,
            visible_rows: 0,
            always_true: 0,
            sorted_by: None,
            is_narrowed: false,
            open: false,
            zone_maps,
            counters: Counters::default(),
        }
    }

    /// Shares the segments with the other participants of a parallel scan.
    pub fn share(&mut self, segments: &'static SharedSegments) {
        self.scan.share(segments);
    }

    /// Restricts the segments that are opened from now on to these attributes. Lanes of other attributes may be NULL.
    pub fn want_only(&mut self, attributes: Vec<usize>) {
        self.scan.wanted = Some(attributes);
    }

    /// Starts over, at the first row or at the last vector. The rows stay the same.
    pub fn rewind(&mut self, backward: bool) {
        self.backward = backward;
        self.open = false;
        self.scan.rewind(!backward);
    }

    /// Starts over, to read the same rows once more: in a parallel scan, those that this participant has read.
    pub fn read_again(&mut self) {
        self.open = false;
        self.scan.read_again();
    }

    /// Begins a first pass that reads these attributes.
    pub fn begin_look_ahead(&mut self, attributes: Vec<usize>) {
        self.rewind(false);
        self.want_only(attributes);
    }

    /// Ends the first pass: starts over at the first row, with the attributes that are read from now on.
    pub fn end_look_ahead(&mut self, attributes: Vec<usize>) {
        self.rewind(false);
        self.counters = Counters::default();
        self.want_only(attributes);
    }

    /// Goes on to the next vector that has rows which pass the filter, and returns these. All wanted attributes are
    /// filled.
    ///
    /// # Errors
    /// The error that a condition raises.
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

    /// The rows of the current vector that pass the filter, if there are any. All wanted attributes are then filled.
    ///
    /// # Errors
    /// The error that a condition raises.
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

    /// The rows of the current vector that pass the filter, if there are any. Only the attributes that conditions read
    /// are filled. Rows that a [search](Self::narrow_to_matches) rules out are removed from the vector first.
    ///
    /// # Errors
    /// The error that a condition raises.
    pub fn pass(
        &mut self,
        filter: &mut Filter,
        scalars: &[Option<Scalar>],
    ) -> Evaluation<Option<Selection>> {
        if !self.narrow_to_matches(filter, scalars) {
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

    /// Whether zones prove that all rows of the current vector pass this condition.
    fn is_always_true(&self, qual: usize) -> bool {
        qual < u64::BITS as usize && self.always_true >> qual & 1 == 1
    }

    /// Whether zones prove that all visible rows pass the filter.
    pub fn all_pass(&self, filter: &Filter) -> bool {
        (0..filter.quals.len()).all(|qual| self.is_always_true(qual))
    }

    /// The visible rows of the current vector, and their number.
    pub fn visible(&self) -> (&Selection, usize) {
        (&self.visible, self.visible_rows)
    }

    /// Goes on to the next vector that has visible rows and is not ruled out; false at the end. Nothing is filled yet.
    pub fn advance(&mut self, filter: &mut Filter, scalars: &[Option<Scalar>]) -> bool {
        self.advance_past(filter, scalars, None)
    }

    /// As [`Self::advance`], but skips sealed rows that `answered_by` can process by their zones alone.
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

    /// Fills these attributes of the current vector. `None`: all wanted attributes.
    pub fn fill(&mut self, attributes: Option<&[usize]>) {
        let places = self.place..self.place + self.rows;
        self.scan.fill(places, attributes);
    }

    /// Fills these attributes at these places of the open window. `None`: all wanted attributes.
    ///
    /// Other places stay as they are. A sealed run need not begin with a vector of the window, so one vector of the
    /// window may overlap two vectors of the run's image.
    pub fn fill_places(&mut self, places: std::ops::Range<usize>, attributes: Option<&[usize]>) {
        self.scan.fill(places, attributes);
    }

    /// Reads an attribute at a place of the open window without filling its vector: the datum, and whether it is NULL.
    /// `None`: the vector has to be filled, or is filled already.
    pub fn point(&self, attribute: usize, place: usize) -> Option<(pg_sys::Datum, bool)> {
        self.scan.window()?.point(attribute, place)
    }

    /// The counters so far. They include what a first pass has read, but not its rows.
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

    /// How many segments were processed by their zones alone.
    pub fn segments_taken(&self) -> u64 {
        self.scan.segments_taken
    }

    /// Whether zones prove that no row of the current vector passes the filter. If not, `always_true` is set. Zones of
    /// dictionary codes are checked last, because they need the dictionary.
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
        let has_none = |attribute: usize, keys: &KeySet| {
            self.zone(attribute)
                .is_some_and(|zone| keys.is_ruled_out(&zone))
        };
        let mut lists = filter.lists.iter();
        if lists.any(|list| has_none(list.attribute, &list.keys)) {
            return true;
        }
        let mut key_sets = filter.key_sets.iter();
        if key_sets.any(|(attribute, keys)| has_none(*attribute, keys)) {
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

    /// Whether an attribute may be NULL in a row of the window.
    fn may_have_nulls(&self, attribute: usize) -> bool {
        let lane = &self.lanes[attribute];
        !lane.validity.is_null() || matches!(lane.data, LaneData::Null)
    }

    /// Whether [`VectorSource::next`] will leave the open window, so that its lanes are gone. It
    /// may leave the window in other cases too, where vectors are ruled out.
    pub fn is_window_done(&self) -> bool {
        self.open && self.range == self.ranges.len()
    }

    /// Counts the current vector as skipped.
    pub fn skip(&mut self) {
        self.counters.vectors_skipped += 1;
        self.counters.rows -= self.visible_rows as u64;
    }

    /// The zone map of an attribute in the current vector, if there is one.
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

    /// Reads an attribute of the current vector as repeats of equal values. False if its sealed bytes are not encoded
    /// so, or if it is filled already.
    pub fn repeats(&self, attribute: usize, repeats: &mut ValueRepeats) -> bool {
        let places = self.place..self.place + self.rows;
        let window = self.scan.window();
        window.is_some_and(|window| window.repeats(attribute, places, repeats))
    }

    /// The current vector.
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

    /// The lanes of the open window, as datums.
    #[inline]
    pub fn outlet(&self) -> &RowOutlet {
        let window = self.scan.window();
        window.map_or(&self.no_rows, |window| window.outlet())
    }

    /// The place of a row of the vector in the window's lanes.
    pub fn place(&self, row: usize) -> usize {
        self.place + row
    }

    /// The number of the row at a place of the window's lanes.
    pub fn row_number(&self, place: usize) -> u64 {
        self.first_row + place as u64
    }

    /// Opens a window on rows `from..to` of one segment, of which the first and the last are visible, and returns the
    /// number of the row at place 0. Rows must be [filled](Self::fill_places) before they are read, and the source must
    /// be rewound before it goes on.
    pub fn open_rows(&mut self, from: u64, to: u64) -> Option<u64> {
        self.open = false;
        if !self.scan.open_rows(from, to) {
            return None;
        }
        let window = self.scan.window()?;
        Some(window.first_row)
    }

    /// The tuple id of a row of the vector.
    pub fn tid(&self, row: usize) -> pg_sys::ItemPointerData {
        tid::from_row(self.first_row + (self.place + row) as u64)
    }

    /// Ends the scan and reports its rows to the statistics.
    pub fn end(self) {
        let rows = self.counters.rows as i64;
        self.scan.reader.table.count_rows_returned(rows);
    }
}
