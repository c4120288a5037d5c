//! The live parts of a table, and what a scan can pass of them without reading it.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use lanes_columnar::arena::{RelationKey, RunEntry};
use lanes_columnar::limits::segment_of;
use lanes_columnar::part::{PartIndex, SealedSegment};
use lanes_columnar::place_map::PlaceIndex;
use lanes_columnar::zone_map::{Bound, Zone};

use super::{FLAG_DEAD, PartEntry, walk};
use crate::pg::table::OpenTable;
use crate::storage::directory::{self, FLAG_FROZEN, FLAG_SEALED};
use crate::storage::metapage::Meta;
use crate::storage::part_image;

mod back;

const FROZEN_XID: u32 = 2;
/// The number of tables whose parts a backend remembers. When there are more, it forgets all of
/// them.
const CACHED_RELATIONS_MAX: usize = 64;

/// A part that no later part covers.
pub struct LivePart {
    pub entry: PartEntry,
    /// The page that its entry is on.
    page: u32,
    index: OnceCell<Rc<PartIndex>>,
    places: OnceCell<Rc<PlaceIndex>>,
}

impl LivePart {
    /// The descriptions of its segments.
    pub fn index(&self, table: OpenTable<'_>) -> &Rc<PartIndex> {
        self.index
            .get_or_init(|| Rc::new(part_image::read_index(table, &self.entry)))
    }

    /// Where its place map has the place of each row; `None`: each row lies at its entry number.
    pub fn places(&self, table: OpenTable<'_>) -> Option<&PlaceIndex> {
        let read = || Rc::new(part_image::read_place_index(table, &self.entry));
        let is_mapped = self.entry.is_mapped();
        is_mapped.then(|| self.places.get_or_init(read).as_ref())
    }

    /// The newest time of the part, by the zones of a time column; `None`: a segment has no zone,
    /// or there are no segments.
    pub fn newest_time(&self, table: OpenTable<'_>, column: usize) -> Option<i64> {
        let newest_of = |segment: &SealedSegment| match segment.zones.get(column)?.maximum {
            Bound::Signed(newest) => Some(newest),
            _ => None,
        };
        let newest = self.index(table).segments.iter().map(newest_of);
        newest.collect::<Option<Vec<i64>>>()?.into_iter().max()
    }

    /// A segment in the form of a run, as scans need it.
    fn run(&self, segment: &SealedSegment) -> RunEntry {
        let (flags, block) = if self.entry.is_remote() {
            (directory::FLAG_REMOTE, self.entry.origin as u32)
        } else if self.entry.is_packed() {
            (directory::FLAG_PACKED, segment.block)
        } else {
            (0, segment.block)
        };
        let (xmin, fading) = match self.entry.xid {
            _ if !self.entry.is_fading() => (FROZEN_XID, 0),
            // No snapshot that sees its rows is left.
            0 => (FROZEN_XID, directory::FLAG_DEAD),
            xid => (xid, directory::FLAG_FADING),
        };
        RunEntry {
            first_row: segment.first_row,
            rows: segment.rows,
            xmin,
            cmin: 0,
            flags: FLAG_FROZEN | FLAG_SEALED | flags | fading,
            block,
            bytes: segment.bytes,
            place: self.entry.number as u32,
            extra: self.page,
        }
    }
}

/// The live parts of a table, as of one generation.
#[derive(Default)]
pub struct Parts {
    generation: u64,
    /// Ascending by row, without overlap.
    live: Vec<LivePart>,
}

thread_local! {
    static CACHE: RefCell<HashMap<RelationKey, Rc<Parts>>> = RefCell::new(HashMap::new());
}

/// The index of the part that a sealed segment belongs to, if this session has read it.
pub fn known_index(table: OpenTable<'_>, run: &RunEntry) -> Option<Rc<PartIndex>> {
    let key = Meta::load(table)?.key(table);
    let parts = CACHE.with_borrow(|cache| cache.get(&key).cloned())?;
    let part = parts.live.get(parts.place(run.first_row))?;
    let is_of_it = part.entry.number as u32 == run.place;
    part.index.get().filter(|_| is_of_it).cloned()
}

impl Parts {
    pub fn of(table: OpenTable<'_>, meta: &Meta) -> Rc<Parts> {
        if meta.part_head == 0 {
            return Rc::default();
        }
        let key = meta.key(table);
        let known = CACHE.with_borrow(|cache| cache.get(&key).cloned());
        if let Some(parts) = &known
            && parts.generation == meta.generation
        {
            return parts.clone();
        }
        let mut parts = Parts {
            generation: meta.generation,
            live: Vec::new(),
        };
        walk(table, meta, |page, entries| {
            for entry in entries.iter().filter(|e| e.flags & FLAG_DEAD == 0) {
                parts.add(*entry, page);
            }
        });
        if let Some(known) = known {
            parts.keep_indexes(&known);
        }
        let parts = Rc::new(parts);
        CACHE.with_borrow_mut(|cache| {
            if cache.len() >= CACHED_RELATIONS_MAX && !cache.contains_key(&key) {
                cache.clear();
            }
            cache.insert(key, parts.clone());
        });
        parts
    }

    /// Adds a part that was added after all others. The parts that it overlaps lie within it.
    fn add(&mut self, entry: PartEntry, page: u32) {
        let from = self.place(entry.first_row);
        let to = self
            .live
            .partition_point(|other| other.entry.first_row < entry.end_row);
        let part = LivePart {
            entry,
            page,
            index: OnceCell::new(),
            places: OnceCell::new(),
        };
        self.live.splice(from..to.max(from), [part]);
    }

    /// Takes over the indexes that were read of the same parts before.
    fn keep_indexes(&mut self, before: &Parts) {
        for part in &self.live {
            let same = before
                .part_of_row(part.entry.first_row)
                .filter(|known| known.entry.number == part.entry.number);
            if let Some(index) = same.and_then(|same| same.index.get()) {
                let _ = part.index.set(index.clone());
            }
            if let Some(places) = same.and_then(|same| same.places.get()) {
                let _ = part.places.set(places.clone());
            }
        }
    }

    fn place(&self, row: u64) -> usize {
        self.live.partition_point(|part| part.entry.end_row <= row)
    }

    /// The part whose range a row lies in.
    pub fn part_of_row(&self, row: u64) -> Option<&LivePart> {
        let part = self.live.get(self.place(row))?;
        part.entry.covers(row).then_some(part)
    }

    /// The entry of the part whose range a row lies in.
    pub fn of_row(&self, row: u64) -> Option<&PartEntry> {
        self.part_of_row(row).map(|part| &part.entry)
    }

    /// Whether some of the rows `[from, to)` lie in a part's range.
    pub fn has_any(&self, from: u64, to: u64) -> bool {
        let part = self.live.get(self.place(from));
        part.is_some_and(|part| part.entry.first_row < to)
    }

    /// All parts, ascending by row.
    pub fn live(&self) -> &[LivePart] {
        &self.live
    }

    /// The state that an entry should get once all scans have ended that began before the parts for
    /// which `is_past` holds were added.
    pub fn settle(&self, old: &PartEntry, is_past: impl Fn(u32) -> bool) -> PartEntry {
        let mut new = *old;
        if old.flags & FLAG_DEAD != 0 {
            return new;
        }
        let live = self.of_row(old.first_row).unwrap_or(old);
        if live.xid != 0 && !is_past(live.xid) {
            return new;
        }
        new.xid = 0;
        // A later part covers it. A covered part without rows goes one VACUUM later than the parts
        // that it covers, because a reader of the chain may have found those alive on an earlier
        // page.
        if live.number != old.number || (old.bytes == 0 && old.xid == 0) {
            new.flags |= FLAG_DEAD;
        }
        new
    }

    /// Whether some parts are in object storage.
    pub fn has_remote(&self) -> bool {
        self.live.iter().any(|part| part.entry.is_remote())
    }

    /// Appends the segments whose first rows are in `[from, to)`, in the form of runs.
    pub fn push_runs(&self, table: OpenTable<'_>, from: u64, to: u64, runs: &mut Vec<RunEntry>) {
        for part in &self.live[self.place(from)..] {
            if part.entry.first_row >= to {
                break;
            }
            let index = part.index(table);
            let first = index.segments.partition_point(|s| s.first_row < from);
            let within = index.segments[first..].iter();
            runs.extend(within.take_while(|s| s.first_row < to).map(|s| part.run(s)));
        }
    }

    /// Passes sealed segments for which `is_passed` holds, and ranges without rows, from a row on
    /// up to a row `to`. Returns the row at which it stops, and how many segments of row numbers
    /// that have rows lie behind it.
    pub fn pass(
        &self,
        table: OpenTable<'_>,
        from: u64,
        to: u64,
        is_passed: impl Fn(&SealedSegment) -> bool,
    ) -> (u64, u64) {
        self.pass_with(from, to, is_passed, |part| part.index(table))
    }

    fn pass_with(
        &self,
        from: u64,
        to: u64,
        is_passed: impl Fn(&SealedSegment) -> bool,
        index_of: impl Fn(&LivePart) -> &Rc<PartIndex>,
    ) -> (u64, u64) {
        let (mut row, mut passed, mut last) = (from, 0, None);
        'parts: for part in &self.live[self.place(from)..] {
            if row >= to || !part.entry.covers(row) {
                break;
            }
            let segments = &index_of(part).segments;
            let first = segments.partition_point(|segment| segment.end_row() <= row);
            for segment in &segments[first..] {
                if segment.first_row >= to || !is_passed(segment) {
                    row = row.max(segment.first_row);
                    break 'parts;
                }
                // The first segments of a table are smaller, so a sealed one may cover several of
                // them.
                let first = segment.first_row.max(row);
                row = segment.end_row();
                let numbers = segment_of(first)..=segment_of(row.min(to) - 1);
                let is_same = last == Some(*numbers.start());
                passed += u64::from(numbers.end() - numbers.start()) + u64::from(!is_same);
                last = Some(*numbers.end());
            }
            row = part.entry.end_row;
        }
        if row >= to {
            return (to, passed);
        }
        // The last segment may have more rows.
        (row, passed - u64::from(last == Some(segment_of(row))))
    }

    /// The sealed segment that begins at a row, and the part that it belongs to.
    pub fn segment(
        &self,
        table: OpenTable<'_>,
        first_row: u64,
    ) -> Option<(&PartEntry, &SealedSegment)> {
        let part = self.live.get(self.place(first_row))?;
        let segments = &part.index(table).segments;
        let place = segments.binary_search_by_key(&first_row, |segment| segment.first_row);
        Some((&part.entry, &segments[place.ok()?]))
    }

    /// The zone of a column of the sealed segment that begins at a row.
    pub fn zone(&self, table: OpenTable<'_>, first_row: u64, column: usize) -> Option<Zone> {
        let (_, segment) = self.segment(table, first_row)?;
        segment.zones.get(column).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::part;
    use super::*;

    fn ranges(parts: &Parts) -> Vec<(u64, u64, u64)> {
        let range = |p: &LivePart| (p.entry.first_row, p.entry.end_row, p.entry.number);
        parts.live.iter().map(range).collect()
    }

    #[test]
    fn a_later_part_takes_the_place_of_those_within_it() {
        let mut parts = Parts::default();
        for (first, end, number) in [(100, 200, 1), (0, 100, 2), (300, 400, 3), (0, 200, 4)] {
            parts.add(part(first, end, number), 7);
        }
        assert_eq!(ranges(&parts), [(0, 200, 4), (300, 400, 3)]);
        assert_eq!(parts.of_row(199).map(|p| p.number), Some(4));
        assert_eq!(parts.of_row(200), None);
        assert_eq!(parts.of_row(300).map(|p| p.number), Some(3));
        assert_eq!(parts.of_row(400), None);
        assert!(parts.has_any(0, 1) && parts.has_any(199, 300) && parts.has_any(200, 301));
        assert!(!parts.has_any(200, 300) && !parts.has_any(400, u64::MAX));
    }

    /// A part with sealed segments at these rows.
    pub fn part_of(first_row: u64, end_row: u64, segments: &[(u64, u32)]) -> LivePart {
        let index = PartIndex {
            segments: segments
                .iter()
                .map(|&(first_row, rows)| SealedSegment {
                    first_row,
                    rows,
                    block: 0,
                    bytes: 0,
                    zones: Vec::new(),
                    columns: Vec::new(),
                    digest: None,
                })
                .collect(),
        };
        LivePart {
            entry: part(first_row, end_row, first_row),
            page: 7,
            index: OnceCell::from(Rc::new(index)),
            places: OnceCell::new(),
        }
    }

    #[test]
    fn passes_segments_and_ranges_without_rows() {
        let parts = Parts {
            generation: 1,
            live: vec![
                part_of(
                    0,
                    8192,
                    &[(0, 1000), (1000, 1000), (2048, 2048), (6144, 10)],
                ),
                part_of(8192, 12_288, &[]),
                part_of(12_288, 14_336, &[(12_288, 2048)]),
                part_of(20_480, 22_528, &[(20_480, 2048)]),
            ],
        };
        let pass = |from, to, wanted: &[u64]| {
            let is_passed = |segment: &SealedSegment| !wanted.contains(&segment.first_row);
            parts.pass_with(from, to, is_passed, |part| part.index.get().unwrap())
        };
        assert_eq!(pass(0, 14_336, &[]), (14_336, 4));
        assert_eq!(pass(0, 14_336, &[0]), (0, 0));
        // The first half of a segment is not one.
        assert_eq!(pass(0, 14_336, &[1000]), (1000, 0));
        assert_eq!(pass(0, 14_336, &[2048]), (2048, 1));
        assert_eq!(pass(0, 14_336, &[6144]), (6144, 2));
        assert_eq!(pass(0, 14_336, &[12_288]), (12_288, 3));
        // Rows that belong to no part are not known here.
        assert_eq!(pass(0, 30_000, &[]), (14_336, 4));
        assert_eq!(pass(15_000, 30_000, &[]), (15_000, 0));
        // Bounds within segments, and from a row on that one of them has.
        assert_eq!(pass(0, 13_000, &[]), (13_000, 4));
        assert_eq!(pass(3000, 4096, &[]), (4096, 1));
        assert_eq!(pass(3000, 4096, &[2048]), (3000, 0));
        let parts = Parts {
            generation: 1,
            live: vec![part_of(0, 70_000, &[(0, 65_536), (65_536, 4464)])],
        };
        let passed = parts.pass_with(0, 70_000, |_| true, |part| part.index.get().unwrap());
        assert_eq!(passed, (70_000, 33));
        // As the participants of a parallel scan ask, one segment each.
        let one = |from, to| parts.pass_with(from, to, |_| true, |part| part.index.get().unwrap());
        assert_eq!(one(2048, 4096), (4096, 1));
        assert_eq!(one(63_488, 65_536), (65_536, 1));
    }

    #[test]
    fn what_is_covered_is_dead_once_the_later_part_is_settled() {
        let mut parts = Parts::default();
        let (mut early, mut late) = (part(0, 100, 1), part(0, 200, 2));
        (early.xid, late.xid) = (10, 20);
        early.bytes = 1;
        late.bytes = 1;
        parts.add(early, 7);
        parts.add(late, 7);
        assert_eq!(parts.settle(&early, |xid| xid < 20), early);
        assert_eq!(parts.settle(&late, |xid| xid < 20), late);
        let settled = parts.settle(&early, |xid| xid < 21);
        assert_eq!((settled.xid, settled.flags), (0, FLAG_DEAD));
        let settled = parts.settle(&late, |xid| xid < 21);
        assert_eq!((settled.xid, settled.flags), (0, 0));
    }

    #[test]
    fn a_part_without_rows_is_dead_once_what_it_covers_was() {
        let mut parts = Parts::default();
        let mut dropped = part(0, 100, 1);
        dropped.xid = 10;
        parts.add(dropped, 7);
        assert_eq!(parts.settle(&dropped, |_| false), dropped);
        let settled = parts.settle(&dropped, |_| true);
        assert_eq!((settled.xid, settled.flags), (0, 0));
        let mut parts = Parts::default();
        parts.add(settled, 7);
        let gone = parts.settle(&settled, |_| false);
        assert_eq!((gone.xid, gone.flags), (0, FLAG_DEAD));
    }
}
