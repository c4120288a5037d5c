//! Parts: which ranges of rows are sealed, and where. A chain of pages of fixed entries, in the order in which they were added.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 24 | 4 | magic `LPRT` |
//! | 28 | 4 | next page of the chain, 0 on the last |
//! | 32 | 64 each | entries, up to `pd_lower` |
//!
//! Entry: first row (8), row after the last (8), rows kept (8), number of the next tombstone when it was sealed (8), origin (8),
//! number (8), block and bytes of its stream (4, 4), xid (4), flags (4). The stream holds its index ([`super::part_image`]).
//!
//! The *number* is the table's generation at which the entry was added: no two parts of a table ever have the same. The
//! *origin* is the number of the part in which the rows got the numbers and the images that they have.
//!
//! A part takes the place of all runs within its range, and of all parts within it that were added before. Its rows are
//! seen by everybody. A part without an index holds no rows: its range was dropped.
//!
//! A *remote* part is added for the same range as the part that it takes the place of, with the same rows, tombstones and
//! origin: only the images have moved, to object storage, under keys made of the origin ([`crate::remote`]). Its index
//! stays here, so its zones rule its segments out as before.
//!
//! A *fading* part holds the rows that `dedup` took out of a range. It lies before the part of those that stay, and both are
//! added by one record. Only snapshots to which `xid` is still under way see its rows: those that were taken before, which
//! saw them already. Once none of them is left, sealing drops the range of the fading part.
//!
//! A *mapped* part belongs to a table with indexes. Index entries name its rows by the numbers that the rows had when
//! they were inserted, and its place map says where these rows lie now. The range of a part does not change what its
//! entry numbers are: sealing takes whole runs and parts, so their entry numbers fill the range of the new part.
//!
//! `xid` is the next transaction id at the moment of sealing. Every scan that began before, and so reads what the part
//! took the place of, has a snapshot that is no younger. Once none of that age is left, VACUUM *settles* the part: the runs
//! and parts that it covers are flagged dead, tombstones that it outlives are voided, and xid becomes 0.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use lanes_columnar::arena::{RelationKey, RunEntry};
use lanes_columnar::limits::segment_of;
use lanes_columnar::part::{PartIndex, SealedSegment};
use lanes_columnar::place_map::PlaceIndex;
use lanes_columnar::zone_map::{Bound, Zone};

use super::directory::{self, FLAG_FROZEN, FLAG_SEALED};
use super::metapage::Meta;
use super::part_image;
use crate::error;
use crate::pg::page::{self, LockedPage, get_u32, get_u64, put_u32, put_u64};
use crate::pg::ports::{BLCKSZ, CHECK_FOR_INTERRUPTS};
use crate::pg::table::OpenTable;

const MAGIC: u32 = u32::from_le_bytes(*b"LPRT");
const AT_MAGIC: usize = 24;
const AT_NEXT: usize = 28;
const AT_ENTRIES: usize = 32;
const ENTRY_BYTES: usize = 64;
const FROZEN_XID: u32 = 2;
/// Tables whose parts a backend remembers; past that it starts over.
const CACHED_RELATIONS_MAX: usize = 64;

/// Covered by a later part that is settled, or settled without rows: it says nothing any more.
pub const FLAG_DEAD: u32 = 1;
/// The images of its segments are in object storage.
pub const FLAG_REMOTE: u32 = 2;
/// The ends of its images lie with its index ([`super::part_image`]).
pub const FLAG_PACKED: u32 = 4;
/// Only snapshots to which its xid is under way see its rows.
pub const FLAG_FADING: u32 = 8;
/// Its stream ends with a place map ([`lanes_columnar::place_map`]). Without one, each row lies at its entry number.
pub const FLAG_MAPPED: u32 = 16;

/// One entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartEntry {
    pub first_row: u64,
    pub end_row: u64,
    pub rows: u64,
    pub next_tombstone: u64,
    pub origin: u64,
    pub number: u64,
    pub block: u32,
    pub bytes: u32,
    pub xid: u32,
    pub flags: u32,
}

impl PartEntry {
    fn covers(&self, row: u64) -> bool {
        self.first_row <= row && row < self.end_row
    }

    /// Whether the images of its segments are in object storage.
    pub fn is_remote(&self) -> bool {
        self.flags & FLAG_REMOTE != 0
    }

    /// Whether the ends of its images lie with its index.
    pub fn is_packed(&self) -> bool {
        self.flags & FLAG_PACKED != 0
    }

    /// Whether its stream ends with a place map.
    pub fn is_mapped(&self) -> bool {
        self.flags & FLAG_MAPPED != 0
    }

    /// Whether only snapshots see its rows to which its xid is under way.
    pub fn is_fading(&self) -> bool {
        self.flags & FLAG_FADING != 0
    }

    /// Whether a tombstone with this number is from before the rows had their numbers.
    pub fn outlives(&self, tombstone: u64) -> bool {
        tombstone < self.next_tombstone
    }
}

/// Makes a page an empty page of parts.
pub fn initialise_page(bytes: &mut [u8]) {
    put_u32(bytes, AT_MAGIC, MAGIC);
    put_u32(bytes, AT_NEXT, 0);
    page::set_lower(bytes, AT_ENTRIES);
}

/// Entries on a page of parts; `None`: it is another page by now.
fn try_count(bytes: &[u8]) -> Option<usize> {
    let is_sound =
        get_u32(bytes, AT_MAGIC) == MAGIC && (AT_ENTRIES..=BLCKSZ).contains(&page::lower(bytes));
    is_sound.then(|| entries_within(bytes))
}

/// Entries on what is known to be a page of parts.
fn entries_within(bytes: &[u8]) -> usize {
    (page::lower(bytes) - AT_ENTRIES) / ENTRY_BYTES
}

/// Entries on a page of parts.
pub fn count(bytes: &[u8]) -> usize {
    try_count(bytes).unwrap_or_else(|| error::corrupt("a page of parts was expected"))
}

/// One entry of a page of parts.
pub fn entry(bytes: &[u8], index: usize) -> PartEntry {
    let entry = &bytes[AT_ENTRIES + index * ENTRY_BYTES..][..ENTRY_BYTES];
    PartEntry {
        first_row: get_u64(entry, 0),
        end_row: get_u64(entry, 8),
        rows: get_u64(entry, 16),
        next_tombstone: get_u64(entry, 24),
        origin: get_u64(entry, 32),
        number: get_u64(entry, 40),
        block: get_u32(entry, 48),
        bytes: get_u32(entry, 52),
        xid: get_u32(entry, 56),
        flags: get_u32(entry, 60),
    }
}

/// Overwrites an entry.
pub fn set_entry(bytes: &mut [u8], index: usize, part: &PartEntry) {
    let entry = &mut bytes[AT_ENTRIES + index * ENTRY_BYTES..][..ENTRY_BYTES];
    put_u64(entry, 0, part.first_row);
    put_u64(entry, 8, part.end_row);
    put_u64(entry, 16, part.rows);
    put_u64(entry, 24, part.next_tombstone);
    put_u64(entry, 32, part.origin);
    put_u64(entry, 40, part.number);
    put_u32(entry, 48, part.block);
    put_u32(entry, 52, part.bytes);
    put_u32(entry, 56, part.xid);
    put_u32(entry, 60, part.flags);
}

/// Whether a page of parts has room for so many more.
pub fn has_room(bytes: &[u8], more: usize) -> bool {
    AT_ENTRIES + (entries_within(bytes) + more) * ENTRY_BYTES <= BLCKSZ
}

/// Appends an entry to a page of parts that has room.
pub fn push(bytes: &mut [u8], part: &PartEntry) {
    let index = entries_within(bytes);
    page::set_lower(bytes, AT_ENTRIES + (index + 1) * ENTRY_BYTES);
    set_entry(bytes, index, part);
}

/// The next page of the chain.
pub fn next(bytes: &[u8]) -> Option<u32> {
    Some(get_u32(bytes, AT_NEXT)).filter(|&next| next != 0)
}

/// Links the next page of the chain.
pub fn set_next(bytes: &mut [u8], block: u32) {
    put_u32(bytes, AT_NEXT, block);
}

/// Calls `visit` with each page of the chain: its block, and its entries.
pub fn walk(table: OpenTable<'_>, meta: &Meta, mut visit: impl FnMut(u32, &[PartEntry])) {
    let mut at = Some(meta.part_head).filter(|&head| head != 0);
    while let Some(block) = at {
        let page = LockedPage::share(table, block);
        let bytes = page.bytes();
        let entries: Vec<PartEntry> = (0..count(bytes)).map(|i| entry(bytes, i)).collect();
        at = next(bytes);
        drop(page);
        visit(block, &entries);
        CHECK_FOR_INTERRUPTS();
    }
}

/// Whether a sealed segment belongs to a part that is dead by now, whatever the copy of its entry says.
pub fn is_dead_by_now(table: OpenTable<'_>, run: &RunEntry) -> bool {
    match page_of_run(table, run) {
        // A page that is no page of parts any more held dead ones only.
        None => true,
        Some(entries) => entries
            .iter()
            .any(|part| part.number as u32 == run.place && part.flags & FLAG_DEAD != 0),
    }
}

/// The entry of the part that a sealed segment belongs to; `None`: it is gone, so the part was dead.
pub fn of_run(table: OpenTable<'_>, run: &RunEntry) -> Option<PartEntry> {
    let entries = page_of_run(table, run)?;
    entries
        .into_iter()
        .find(|part| part.number as u32 == run.place)
}

/// The entries on the page of a sealed segment's part; `None`: it is no page of parts any more.
fn page_of_run(table: OpenTable<'_>, run: &RunEntry) -> Option<Vec<PartEntry>> {
    let page = {
        if run.extra >= table.blocks() {
            return None;
        }
        LockedPage::share(table, run.extra)
    };
    let count = try_count(page.bytes())?;
    Some((0..count).map(|i| entry(page.bytes(), i)).collect())
}

/// A part that no later one covers.
pub struct LivePart {
    pub entry: PartEntry,
    /// The page that its entry is on.
    page: u32,
    index: OnceCell<Rc<PartIndex>>,
    places: OnceCell<Rc<PlaceIndex>>,
}

impl LivePart {
    /// What its segments are.
    pub fn index(&self, table: OpenTable<'_>) -> &Rc<PartIndex> {
        self.index
            .get_or_init(|| Rc::new(part_image::read_index(table, &self.entry)))
    }

    /// Where its place map has the place of each row; `None`: rows lie at their entry numbers.
    pub fn places(&self, table: OpenTable<'_>) -> Option<&PlaceIndex> {
        let read = || Rc::new(part_image::read_place_index(table, &self.entry));
        let is_mapped = self.entry.is_mapped();
        is_mapped.then(|| self.places.get_or_init(read).as_ref())
    }

    /// The newest time of the part, by the zones of a time column; `None` if a segment has no zone, or there are none.
    pub fn newest_time(&self, table: OpenTable<'_>, column: usize) -> Option<i64> {
        let newest_of = |segment: &SealedSegment| match segment.zones.get(column)?.maximum {
            Bound::Signed(newest) => Some(newest),
            _ => None,
        };
        let newest = self.index(table).segments.iter().map(newest_of);
        newest.collect::<Option<Vec<i64>>>()?.into_iter().max()
    }

    /// A segment as the run that it is to a scan.
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
            // No snapshot is left that sees its rows.
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

/// The parts of a table that count, as of one generation.
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

    /// Adds a part that was added after all others. Those that it overlaps lie within it.
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

    /// Takes over what was read of the same parts before.
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

    /// What an entry should be once all scans are over that began before those parts of which `is_past` holds.
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
        // Covered by a later one. One without rows goes a VACUUM later than what it covers: a reader of the chain under way
        // may have found that alive on an earlier page.
        if live.number != old.number || (old.bytes == 0 && old.xid == 0) {
            new.flags |= FLAG_DEAD;
        }
        new
    }

    /// Whether some of them are in object storage.
    pub fn has_remote(&self) -> bool {
        self.live.iter().any(|part| part.entry.is_remote())
    }

    /// Appends the segments whose first rows are in `[from, to)`, as runs.
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

    /// Goes from a row on past sealed segments that `is_passed` holds of, and ranges without rows, up to a row `to`: the row it stands
    /// at then, and how many segments of row numbers lie behind it that had some rows.
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
                // The first of a table are smaller, so one that is sealed may be several of them.
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
        // The last of them may have more rows.
        (row, passed - u64::from(last == Some(segment_of(row))))
    }

    /// The sealed segment that begins at a row, and the part that it is of.
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

mod back;

#[cfg(test)]
mod tests {
    use super::*;

    fn part(first_row: u64, end_row: u64, number: u64) -> PartEntry {
        PartEntry {
            first_row,
            end_row,
            rows: end_row - first_row,
            next_tombstone: number,
            origin: number,
            number,
            block: 0,
            bytes: 0,
            xid: 0,
            flags: 0,
        }
    }

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
        // What is no part's is not known here.
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

    #[test]
    fn tombstones_from_before_the_sealing_are_outlived() {
        let sealed = part(0, 10, 5);
        assert!(sealed.outlives(4) && !sealed.outlives(5));
    }

    #[test]
    fn entries_are_read_as_they_were_written() {
        let mut bytes = vec![0; BLCKSZ];
        initialise_page(&mut bytes);
        let mut written = 0;
        while has_room(&bytes, 1) {
            push(&mut bytes, &part(written, written + 1, written));
            written += 1;
        }
        assert_eq!((try_count(&bytes), next(&bytes)), (Some(127), None));
        assert_eq!(entry(&bytes, 126), part(126, 127, 126));
        set_next(&mut bytes, 9);
        assert_eq!(next(&bytes), Some(9));
    }
}
