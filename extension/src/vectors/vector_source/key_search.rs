//! Search in windows whose rows lie in the order of an attribute: for the vectors that have the values sought,
//! and for the rows of these values within a vector.
//!
//! Comparisons with constants, lists, and the keys of a join seek values. A sealed segment of a table with
//! `order_by` has its rows in such an order. So a few series of many are found without a look at all vectors.

use std::ops::Range;

use lanes_columnar::join::key_set::place;
use lanes_columnar::lane::{Lane, LaneData};
use lanes_columnar::limits::VECTOR_ROWS;
use lanes_columnar::vector::number::Scalar;

use super::VectorSource;
use crate::vectors::prune::{Filter, KeySearch};

impl VectorSource {
    /// Passes vectors behind the one under way, which was ruled out: those that the order of the rows rules out too.
    ///
    /// A vector whose upper bound is below the value sought has only lesser values, and so have all vectors before
    /// it. Only such vectors, and vectors before them, are passed. So bounds need not be tight.
    pub fn seek(&mut self, filter: &Filter, scalars: &[Option<Scalar>]) {
        let (Some(attribute), false) = (self.search_attribute, self.backward) else {
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
            KeySearch::Here => return,
            KeySearch::Below => end,
            KeySearch::From(key) => {
                let is_lesser = |vector: usize| {
                    let window = self.scan.window();
                    let zone = window.and_then(|window| window.zone(attribute, vector));
                    let greatest = zone.and_then(|zone| place(zone.maximum));
                    greatest.is_some_and(|greatest| greatest < key)
                };
                first_not_lesser(here + 1..end, is_lesser)
            }
        };
        self.leap(next);
    }

    /// Where the rows lie in the order of the values sought, leaves out the rows of the vector under way before the
    /// first of these values and behind the last. False, with the vector as it was, if no visible row is left.
    ///
    /// The vector still begins at a word of its bitmaps. Its zones are no longer exact.
    pub fn narrow_to_keys(&mut self, filter: &Filter, scalars: &[Option<Scalar>]) -> bool {
        let span = self.search_attribute.and_then(|attribute| {
            let zone = self.zone(attribute)?;
            let (least, greatest) = filter.span(attribute, &zone, scalars)?;
            let (minimum, maximum) = (zone.minimum.signed()?, zone.maximum.signed()?);
            (minimum < least || greatest < maximum).then_some((attribute, least, greatest))
        });
        let Some((attribute, least, greatest)) = span else {
            return true;
        };
        self.fill(Some(&[attribute]));
        // Before the first visible row, rows of another run may lie.
        let first = self.visible.first_row();
        let (place, count) = (self.place + first, self.rows - first);
        let Some(lane) = IntegerLane::of(&self.lanes[attribute], place, count) else {
            return true;
        };
        let rows = first + lane.first_from(least)..first + lane.first_above(greatest);
        let visible = self.visible.within(rows.start, rows.end);
        if visible.is_empty() {
            return false;
        }
        let (word, is_narrower) = (
            rows.start / 64,
            rows.end.div_ceil(64) < self.rows.div_ceil(64),
        );
        if word > 0 || is_narrower {
            self.place += word * 64;
            self.rows = rows.end - word * 64;
            self.visible = visible.from_word(word);
            self.visible_rows = self.visible.count();
            self.is_narrowed = true;
            self.zones
                .iter_mut()
                .flatten()
                .for_each(|zone| zone.exact = false);
        }
        true
    }

    /// Goes on behind the vectors before this one of the window.
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
        // The vector under way is the one before it now.
        self.place = (vector - 1) * VECTOR_ROWS;
    }
}

/// Integers of some rows in ascending order, without NULLs.
enum IntegerLane<'a> {
    Narrow(&'a [i32]),
    Wide(&'a [i64]),
}

impl IntegerLane<'_> {
    /// Those of a lane at some places that are filled.
    fn of(lane: &Lane, place: usize, rows: usize) -> Option<IntegerLane<'_>> {
        let LaneData::Fixed { values, stride } = lane.data else {
            return None;
        };
        // SAFETY: the lane has a value of that width at each place, and they stay as they are while the window is open.
        unsafe {
            match stride {
                4 => {
                    let first = values.cast::<i32>().add(place);
                    Some(IntegerLane::Narrow(std::slice::from_raw_parts(first, rows)))
                }
                8 => {
                    let first = values.cast::<i64>().add(place);
                    Some(IntegerLane::Wide(std::slice::from_raw_parts(first, rows)))
                }
                _ => None,
            }
        }
    }

    /// The first row whose integer is not below this one.
    fn first_from(&self, least: i64) -> usize {
        match self {
            IntegerLane::Narrow(all) => all.partition_point(|value| i64::from(*value) < least),
            IntegerLane::Wide(all) => all.partition_point(|value| *value < least),
        }
    }

    /// The first row whose integer is above this one.
    fn first_above(&self, greatest: i64) -> usize {
        match self {
            IntegerLane::Narrow(all) => all.partition_point(|value| i64::from(*value) <= greatest),
            IntegerLane::Wide(all) => all.partition_point(|value| *value <= greatest),
        }
    }
}

/// The first of some vectors that is not known to be lesser, or their end, by looks at ever greater distances.
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
