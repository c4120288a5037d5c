//! Binary search in windows whose rows are sorted by an attribute: first for the vectors that
//! contain the wanted values, then for the rows within a vector.
//!
//! The wanted values are constants of comparisons, lists, and the keys of a join. The rows of a
//! sealed segment are sorted if the table has `order_by`. So a query for a few of many series reads
//! only their vectors.

use std::ops::Range;

use lanes_columnar::join::key_set::place;
use lanes_columnar::limits::VECTOR_ROWS;
use lanes_columnar::vector::number::Scalar;

use super::VectorSource;
use crate::vectors::prune::{Filter, MatchPlace};

impl VectorSource {
    /// Skips the vectors after the current one, which was ruled out, that the order of the rows rules out too.
    ///
    /// A vector whose upper bound is below the wanted value contains lesser values alone, and so do
    /// all vectors before it. Only such vectors are skipped, so bounds need not be tight.
    pub fn seek(&mut self, filter: &Filter, scalars: &[Option<Scalar>]) {
        let (Some(attribute), false) = (self.sorted_by, self.backward) else {
            return;
        };
        let Some(last) = self.ranges.last() else {
            return;
        };
        let end = ((last.to - self.first_row) as usize).div_ceil(VECTOR_ROWS);
        let here = self.place / VECTOR_ROWS;
        let Some(zone) = self.zone(attribute) else {
            return;
        };
        let next = match filter.seek(attribute, &zone, scalars) {
            MatchPlace::Here => return,
            MatchPlace::Below => end,
            MatchPlace::From(wanted) => {
                let is_lesser = |vector: usize| {
                    let window = self.scan.window();
                    let zone = window.and_then(|window| window.zone(attribute, vector));
                    let greatest = zone.and_then(|zone| place(zone.maximum));
                    greatest.is_some_and(|greatest| greatest < wanted)
                };
                // Mostly all rows are lesser: the wanted value is in another segment.
                match here + 1 < end && is_lesser(end - 1) {
                    true => end,
                    false => first_not_lesser(here + 1..end, is_lesser),
                }
            }
        };
        self.leap(next);
    }

    /// Where rows are sorted by the attribute that is searched, removes the rows of the current vector before the first
    /// wanted value and after the last. False, with the vector unchanged, if no visible row is left.
    ///
    /// The vector still begins at a word of its bitmaps. Its zones are no longer exact.
    pub fn narrow_to_matches(&mut self, filter: &Filter, scalars: &[Option<Scalar>]) -> bool {
        let span = self.sorted_by.and_then(|attribute| {
            let zone = self.zone(attribute)?;
            let (least, greatest) = filter.span(attribute, &zone, scalars)?;
            let (minimum, maximum) = (zone.minimum.signed()?, zone.maximum.signed()?);
            (minimum < least || greatest < maximum).then_some((attribute, least, greatest))
        });
        let Some((attribute, least, greatest)) = span else {
            return true;
        };
        self.fill(Some(&[attribute]));
        // Rows of another run may lie before the first visible row.
        let first = self.visible.first_row();
        let frame = self.frame(scalars);
        let (narrow, wide) = (
            frame.values::<i32>(attribute),
            frame.values::<i64>(attribute),
        );
        let (from, to) = match (narrow, wide) {
            (Some(all), _) => span_of(&all[first..], least, greatest),
            (None, Some(all)) => span_of(&all[first..], least, greatest),
            (None, None) => return true,
        };
        let rows = first + from..first + to;
        let visible = self.visible.within(rows.start, rows.end);
        if visible.is_empty() {
            return false;
        }
        self.always_true |= filter.passed_by(attribute, (least, greatest), scalars);
        let (word, is_narrower) = (
            rows.start / 64,
            rows.end.div_ceil(64) < self.rows.div_ceil(64),
        );
        if word > 0 || is_narrower {
            self.place += word * 64;
            self.rows = rows.end - word * 64;
        }
        self.visible = visible.from_word(word);
        self.visible_rows = self.visible.count();
        self.is_narrowed = true;
        self.zones
            .iter_mut()
            .flatten()
            .for_each(|zone| zone.exact = false);
        true
    }

    /// Skips the vectors of the window before this one.
    fn leap(&mut self, vector: usize) {
        let passed = vector.saturating_sub(self.place / VECTOR_ROWS + 1);
        if passed == 0 {
            return;
        }
        self.counters.vectors += passed as u64;
        self.counters.vectors_skipped += passed as u64;
        let row = self.first_row + (vector * VECTOR_ROWS) as u64;
        let behind = self.ranges[self.range..].partition_point(|range| range.to <= row);
        self.range += behind;
        // The current vector is now the one before it.
        self.place = (vector - 1) * VECTOR_ROWS;
    }
}

/// The first of these values, which ascend, that is at least `least`, and the first above `greatest`.
fn span_of<T: Copy + Into<i64>>(all: &[T], least: i64, greatest: i64) -> (usize, usize) {
    (
        all.partition_point(|value| (*value).into() < least),
        all.partition_point(|value| (*value).into() <= greatest),
    )
}

/// The first vector that is not known to be lesser, or the end of the range, by exponential search.
fn first_not_lesser(vectors: Range<usize>, is_lesser: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut step) = (vectors.start, 1);
    let mut high = vectors.end;
    while low < high {
        let probe = (low + step - 1).min(high - 1);
        match is_lesser(probe) {
            true => (low, step) = (probe + 1, 2 * step),
            false => {
                high = probe;
                break;
            }
        }
    }
    while low < high {
        let middle = low + (high - low) / 2;
        match is_lesser(middle) {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low
}
