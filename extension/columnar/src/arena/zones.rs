//! The zones of a segment: a zone for each vector of each column, updated as rows are appended.
//!
//! They follow the heads of the columns; the zones of one column are adjacent. The one writer
//! widens the zone of a vector before it publishes the rows that require it. A reader that has read
//! a number of rows therefore finds zones that cover at least these rows, in whole words though not
//! of one moment. The zone of a full vector is exact and does not change any more.
//!
//! Rows of a gap between runs have no values: they count as NULL.

use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::extend::Batch;
use super::memory::Shared;
use super::segment::SegmentPin;
use super::segment_head::SegmentHead;
use crate::column::Column;
use crate::kind::LaneKind;
use crate::limits::{SEGMENT_ROWS, VECTOR_ROWS};
use crate::zone_map::{self, Bound, CodeZone, Zone};

const _: () = assert!((SEGMENT_ROWS as usize).is_multiple_of(VECTOR_ROWS));

/// Bits of [`ZoneHead::tally`] above the number of rows that are not NULL. Zero is the state of a
/// vector without rows, in which nothing is unsorted.
const UNSORTED: u64 = 1 << 32;
const HAS_NAN: u64 = 1 << 33;
const HAS_INFINITE: u64 = 1 << 34;
/// Whether the other words contain the codes of the column's dictionary that the rows use.
const HAS_CODES: u64 = 1 << 35;
/// The zone was worked out from an image; see [`image_zones`](super::image_zones).
pub(super) const KNOWN: u64 = 1 << 36;
/// Whether the image has no zone for the vector.
pub(super) const NOTHING: u64 = 1 << 37;

/// A zone in shared memory. While no row counts, `minimum` and `maximum` mean nothing.
#[repr(C)]
pub(super) struct ZoneHead {
    minimum: AtomicU64,
    maximum: AtomicU64,
    sum_low: AtomicU64,
    sum_high: AtomicU64,
    pub(super) tally: AtomicU64,
}

// SAFETY: atomics only.
unsafe impl Shared for ZoneHead {}

pub(super) const ZONE_BYTES: u64 = size_of::<ZoneHead>() as u64;
const _: () = assert!(ZONE_BYTES <= 64, "a zone is small beside its vector");

/// The number of vectors of a segment of so many rows.
fn vectors(rows_max: u32) -> usize {
    rows_max as usize / VECTOR_ROWS
}

/// Bytes of all zones of a segment.
pub(super) fn bytes(columns: usize, rows_max: u32) -> u64 {
    (columns * vectors(rows_max)) as u64 * ZONE_BYTES
}

impl ZoneHead {
    /// The zone as it is, marked as `exact` or not.
    #[inline]
    pub(super) fn load(&self, kind: LaneKind, exact: bool) -> Zone {
        let tally = self.tally.load(Relaxed);
        let empty = Zone::empty(kind);
        let sum = u128::from(self.sum_high.load(Relaxed)) << 64;
        let sum = (sum | u128::from(self.sum_low.load(Relaxed))) as i128;
        let has_codes = tally & HAS_CODES != 0;
        let has_sum = tally as u32 == 0 || zone_map::has_sums(kind);
        let mut zone = Zone {
            non_null: tally as u32,
            sum: if has_sum { sum } else { 0 },
            has_sum,
            codes: has_codes.then(|| {
                let words = [&self.minimum, &self.maximum, &self.sum_low, &self.sum_high];
                CodeZone::of_words(words.map(|word| word.load(Relaxed)))
            }),
            sorted: empty.sorted && tally & UNSORTED == 0,
            has_nan: tally & HAS_NAN != 0,
            has_infinite: tally & HAS_INFINITE != 0,
            exact,
            ..empty
        };
        if zone.non_null > 0 {
            zone.minimum = Bound::of_word(kind, self.minimum.load(Relaxed));
            zone.maximum = Bound::of_word(kind, self.maximum.load(Relaxed));
        }
        zone
    }

    fn store(&self, zone: Zone) {
        let tally = self.store_words(zone);
        self.tally.store(tally, Relaxed);
    }

    /// Stores a zone's words but for the tally, and returns the tally.
    pub(super) fn store_words(&self, zone: Zone) -> u64 {
        let flag = |holds, flag| if holds { flag } else { 0 };
        let words = match zone.codes {
            Some(codes) => codes.words(),
            None => [
                zone.minimum.word(),
                zone.maximum.word(),
                zone.sum as u64,
                (zone.sum >> 64) as u64,
            ],
        };
        let places = [&self.minimum, &self.maximum, &self.sum_low, &self.sum_high];
        for (place, word) in places.into_iter().zip(words) {
            place.store(word, Relaxed);
        }
        u64::from(zone.non_null)
            | flag(!zone.sorted, UNSORTED)
            | flag(zone.has_nan, HAS_NAN)
            | flag(zone.has_infinite, HAS_INFINITE)
            | flag(zone.codes.is_some(), HAS_CODES)
    }
}

impl SegmentPin {
    /// The zone of a column and a vector that the segment has.
    fn zone_head(&self, column: usize, vector: usize) -> &ZoneHead {
        let rows_max = self.head().rows_max.load(Relaxed);
        let index = (column * vectors(rows_max) + vector) as u64;
        let offset = SegmentHead::bytes(self.columns()) + index * ZONE_BYTES;
        // SAFETY: a pinned segment is not freed; such a zone exists after the heads of the columns.
        unsafe { self.core().head(self.segment() + offset) }
    }

    /// See [`Segment::zone`](super::segment::Segment::zone).
    pub(super) fn zone(&self, column: usize, vector: usize) -> Option<Zone> {
        let rows = self.rows() as usize;
        if column >= self.columns() || vector * VECTOR_ROWS >= rows {
            return None;
        }
        let is_full = rows >= (vector + 1) * VECTOR_ROWS;
        let kind = self.layout(column).kind;
        Some(self.zone_head(column, vector).load(kind, is_full))
    }

    /// Widens a column's zones by a batch that has been checked and written, after a gap if
    /// `batch.from` is above `resident`.
    pub(super) fn widen_zones(
        &self,
        column_index: usize,
        column: &Column,
        batch: &Batch<'_>,
        resident: u32,
    ) {
        let gap = resident as usize..batch.from as usize;
        for (vector, rows) in by_vector(gap) {
            self.widen(column_index, vector, |zone| zone.and_nulls(rows.len()));
        }
        let lane = column.lane();
        let from = batch.from as usize;
        for (vector, rows) in by_vector(from..from + batch.rows) {
            let start = batch.first + (rows.start - from);
            // SAFETY: the column is borrowed and has the batch's rows.
            let mut added =
                unsafe { zone_map::compute(&lane, column.kind(), start..start + rows.len()) };
            if self.layout(column_index).coded && added.non_null > 0 {
                added.codes = Some(self.codes(column_index, rows));
            }
            self.widen(column_index, vector, |zone| zone.union(added));
        }
    }

    /// The codes that have been written for some rows of a coded column.
    fn codes(&self, column: usize, rows: Range<usize>) -> CodeZone {
        let lane = self.column(column).lane.load(Relaxed);
        // SAFETY: a coded lane has a code for each row that was written, and only the writer
        // changes it.
        let codes = unsafe {
            let first = self.core().memory.bytes(lane).cast::<u32>().add(rows.start);
            std::slice::from_raw_parts(first, rows.len())
        };
        CodeZone::of(codes)
    }

    fn widen(&self, column: usize, vector: usize, wider: impl FnOnce(Zone) -> Zone) {
        let head = self.zone_head(column, vector);
        let kind = self.layout(column).kind;
        head.store(wider(head.load(kind, true)));
    }
}

/// Cuts rows of a segment at the ends of vectors.
fn by_vector(rows: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> {
    let mut next = rows.start;
    std::iter::from_fn(move || {
        let (start, vector) = (next, next / VECTOR_ROWS);
        next = rows.end.min((vector + 1) * VECTOR_ROWS);
        (start < rows.end).then_some((vector, start..next))
    })
}
