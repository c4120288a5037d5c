//! Sums of floats over frames of a fixed number of rows.
//!
//! ```text
//! position 7:  v4 + v5 + v6 + v7
//! position 8:       v5 + v6 + v7 + v8          one addition of each at a time, side by side
//! position 9:            v6 + v7 + v8 + v9
//! ```
//! Each sum is added from its frame's first row to its last, as PostgreSQL adds it, so it is PostgreSQL's to the last
//! bit. The sums of positions that follow each other do not depend on one another, so [a kernel](lanes_simd::frames)
//! adds several at once. One after the other, each addition would wait for the one before.

use std::ops::Range;

use super::arrange::{Arrangement, collected};
use super::numbers::NumberColumn;
use crate::interrupt::{self, Steps};
use crate::vector::number::{Number, Scalar};
use lanes_simd::aggregate::magnitude_within;
use lanes_simd::frames::Framed;

/// How many sums are added by one call of the kernel.
const SIDE_BY_SIDE: usize = 1024;

/// After about so many additions a request to cancel is looked for.
const ADDITIONS: usize = 1 << 24;

/// Fewer sums are added one after the other.
const SIDE_BY_SIDE_MIN: usize = 16;

/// A float, with the addition of its sums.
pub trait Float: Number + Framed + lanes_simd::Float {
    /// The greatest finite number.
    const MAX: f64;
    /// `self + other`.
    fn plus(self, other: Self) -> Self;
    /// A finite number of this type near the other one.
    fn bound(of: f64) -> Self;
    /// The floats that scalars are. There is room for those that are not as they are wanted.
    fn floats_of<'a>(scalars: &'a [u64], room: &'a mut Vec<Self>) -> &'a [Self];
}

impl Float for f32 {
    const MAX: f64 = f32::MAX as f64;
    #[inline]
    fn plus(self, other: f32) -> f32 {
        self + other
    }
    fn bound(of: f64) -> f32 {
        of as f32
    }
    fn floats_of<'a>(scalars: &'a [u64], room: &'a mut Vec<f32>) -> &'a [f32] {
        let floats = scalars.iter().map(|value| f32::of_scalar(Scalar(*value)));
        *room = collected(floats);
        room
    }
}

impl Float for f64 {
    const MAX: f64 = f64::MAX;
    #[inline]
    fn plus(self, other: f64) -> f64 {
        self + other
    }
    fn bound(of: f64) -> f64 {
        of
    }
    fn floats_of<'a>(scalars: &'a [u64], _room: &'a mut Vec<f64>) -> &'a [f64] {
        // SAFETY: a scalar of a double is its bits, and any bits are a double of the same alignment.
        unsafe { std::slice::from_raw_parts(scalars.as_ptr().cast(), scalars.len()) }
    }
}

/// Calls `visit` with the sums of the frames of some positions, in turn, and how many numbers each is of. An empty
/// frame comes alone, and without a sum. A frame begins and ends so many positions behind the current one. If
/// `from_zero` the sum begins with +0. False: nothing was done, because a number is NULL or a sum might overflow.
pub fn each<T: Float>(
    column: &NumberColumn,
    order: &Arrangement,
    (start, end): (i64, i64),
    from_zero: bool,
    mut visit: impl FnMut(&[T], usize),
) -> bool {
    let width = end.saturating_sub(start).saturating_add(1).max(0);
    if column.has_nulls() {
        return false;
    }
    let mut room = Vec::new();
    let values = T::floats_of(column.values(), &mut room);
    let limit = T::MAX / 2.0 / width as f64;
    let is_small = |value: &T| value.to_f64().abs() <= limit || !value.to_f64().is_finite();
    let (first_value, count) = (values.as_ptr(), values.len());
    // SAFETY: there are so many values.
    let are_finite = unsafe { magnitude_within::<T>(first_value, count, T::bound(limit)) };
    if !are_finite && !values.iter().all(is_small) {
        return false;
    }
    let mut sums = [T::ZERO; SIDE_BY_SIDE];
    let first = |value: T| match from_zero {
        true => T::ZERO.plus(value),
        false => value,
    };
    let steps = Steps::default();
    for partition in order.partitions() {
        // The sum of the frame before, where it was added alone: rows may only have to be added.
        let mut before = (partition.start..partition.start, None);
        let mut position = partition.start;
        while position < partition.end {
            if let Some((begin, frames)) = whole_frames(&partition, position, (start, end)) {
                let width = width as usize;
                let (read, written) = (&values[begin..][..frames + width - 1], &mut sums[..frames]);
                // SAFETY: so many values are read, and so many sums are written.
                unsafe {
                    let (read, written) = (read.as_ptr(), written.as_mut_ptr());
                    lanes_simd::frames::sums::<T>(read, frames, width, from_zero, written);
                }
                visit(&sums[..frames], width);
                interrupt::check();
                position += frames;
                continue;
            }
            let at = |offset: i64| {
                let place = (position as i64).saturating_add(offset);
                place.clamp(partition.start as i64, partition.end as i64) as usize
            };
            let frame = at(start)..at(end.saturating_add(1)).max(at(start));
            let (mut sum, from) = match before {
                (rows, sum) if rows.start == frame.start => (sum, rows.end),
                _ => (None, frame.start),
            };
            for value in &values[from..frame.end] {
                steps.step();
                sum = Some(sum.map_or_else(|| first(*value), |sum: T| sum.plus(*value)));
            }
            visit(sum.as_slice(), frame.len());
            before = (frame, sum);
            position += 1;
        }
    }
    true
}

/// The first row of the frame of a position, and how many frames from there on are summed side by side: they lie in the
/// partition and have a row. `None` if they are few.
fn whole_frames(
    partition: &Range<usize>,
    position: usize,
    (start, end): (i64, i64),
) -> Option<(usize, usize)> {
    let begin = (position as i64).saturating_add(start);
    if start > end || begin < partition.start as i64 {
        return None;
    }
    // The first position whose frame reaches beyond the partition.
    let reaching = (partition.end as i64).saturating_sub(end.max(0));
    let frames = reaching.saturating_sub(position as i64);
    let most = ADDITIONS / (end - start + 1) as usize;
    let most = most.clamp(SIDE_BY_SIDE_MIN, SIDE_BY_SIDE);
    let frames = usize::try_from(frames).ok()?.min(most);
    (frames >= SIDE_BY_SIDE_MIN).then_some((begin as usize, frames))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sums by the definition, in the order of each frame.
    fn naive(values: &[f64], partitions: &[Range<usize>], frame: (i64, i64)) -> Vec<Option<u64>> {
        let mut sums = Vec::new();
        for partition in partitions {
            for position in partition.clone() {
                let (start, end) = (position as i64 + frame.0, position as i64 + frame.1);
                let rows = partition
                    .clone()
                    .filter(|row| (start..=end).contains(&(*row as i64)));
                let sum = rows.map(|row| values[row]).reduce(|a, b| a + b);
                sums.push(sum.map(f64::to_bits));
            }
        }
        sums
    }

    #[test]
    fn sums_are_those_of_the_definition_to_the_last_bit() {
        let values: Vec<f64> = (0..500_i32)
            .map(|i| f64::from(i * 7919 % 1000) * 0.1 + 1e9 / f64::from(i % 7 + 1))
            .collect();
        let mut column = NumberColumn::default();
        values
            .iter()
            .for_each(|value| column.push(Some(Scalar(value.to_bits()))));
        let of_row: Vec<u32> = (0..500).map(|row| u32::from(row >= 311)).collect();
        let order = Arrangement::new(&of_row, &[0, 1], &[]);
        let partitions = [0..311, 311..500];
        for frame in [
            (-9, 0),
            (-3, 3),
            (0, 40),
            (-700, 2),
            (5, 20),
            (-40, -17),
            (3, 1),
            (0, 0),
        ] {
            let mut found = Vec::new();
            let is_done = each::<f64>(&column, &order, frame, false, |sums, rows| {
                assert_eq!(sums.is_empty(), rows == 0);
                let sums = sums.iter().map(|sum| Some(sum.to_bits()));
                let empty = (rows == 0).then_some(None);
                found.extend(sums.chain(empty));
            });
            assert!(is_done);
            assert_eq!(found, naive(&values, &partitions, frame), "{frame:?}");
        }
    }

    #[test]
    fn nulls_and_sums_that_may_overflow_are_left_to_others() {
        let order = Arrangement::new(&[0, 0, 0], &[0], &[]);
        let of = |values: [Option<f64>; 3]| {
            let mut column = NumberColumn::default();
            values
                .iter()
                .for_each(|value| column.push(value.map(Number::to_scalar)));
            let mut found = Vec::new();
            let is_done = each::<f64>(&column, &order, (-1, 0), true, |sums, _| {
                found.push(sums.first().copied());
            });
            is_done.then_some(found)
        };
        assert_eq!(of([Some(1.0), None, Some(2.0)]), None);
        assert_eq!(of([Some(1e308), Some(1e308), Some(2.0)]), None);
        let infinite = of([Some(f64::INFINITY), Some(1.0), Some(-0.0)]).unwrap();
        assert_eq!(infinite[..2], [Some(f64::INFINITY); 2]);
        assert_eq!(of([Some(-0.0); 3]).unwrap()[0].map(f64::to_bits), Some(0));
    }
}
