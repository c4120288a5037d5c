//! Sums of floats over frames of a fixed number of rows.
//!
//! ```text
//! position 7:  v4 + v5 + v6 + v7
//! position 8:       v5 + v6 + v7 + v8          one addition of each at a time, side by side
//! position 9:            v6 + v7 + v8 + v9
//! ```
//! Each sum is added from its frame's first row to its last, as PostgreSQL adds it, so it is PostgreSQL's to the last
//! bit. The sums of positions that follow each other do not depend on one another, so the processor adds several at once.
//! One after the other, each addition would wait for the one before.

use std::ops::Range;

use super::arrange::{Arrangement, collected};
use super::numbers::NumberColumn;
use crate::interrupt::Steps;
use crate::vector::number::{Number, Scalar};

/// How many sums are added side by side. They fit into the registers of any processor.
const SIDE_BY_SIDE: usize = 16;

/// A float, with the addition that the compiler puts side by side.
pub trait Float: Number {
    /// The greatest finite number.
    const MAX: f64;
    /// `self + other`.
    fn plus(self, other: Self) -> Self;
}

impl Float for f32 {
    const MAX: f64 = f32::MAX as f64;
    #[inline]
    fn plus(self, other: f32) -> f32 {
        self + other
    }
}

impl Float for f64 {
    const MAX: f64 = f64::MAX;
    #[inline]
    fn plus(self, other: f64) -> f64 {
        self + other
    }
}

/// Calls `visit` with the sum of the frame of each position, and how many numbers it is of: `None` for an empty frame. A
/// frame begins and ends so many positions behind the current one. If `from_zero` the sum begins with +0. False: nothing
/// was done, because a number is NULL or a sum might overflow.
pub fn each<T: Float>(
    column: &NumberColumn,
    order: &Arrangement,
    (start, end): (i64, i64),
    from_zero: bool,
    mut visit: impl FnMut(Option<T>, usize),
) -> bool {
    let width = end.saturating_sub(start).saturating_add(1).max(0);
    if column.has_nulls() {
        return false;
    }
    let values = column.values().iter();
    let values = collected(values.map(|value| T::of_scalar(Scalar(*value))));
    let sizes = values.iter().map(|value| value.to_f64().abs());
    let greatest = sizes.filter(|size| size.is_finite()).fold(0.0, f64::max);
    if greatest * width as f64 > T::MAX / 2.0 {
        return false;
    }
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
            if let Some(begin) = whole_frames(&partition, position, (start, end)) {
                let sums = side_by_side(&values[begin..], width as usize, first, &steps);
                sums.iter()
                    .for_each(|sum| visit(Some(*sum), width as usize));
                position += SIDE_BY_SIDE;
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
            visit(sum, frame.len());
            before = (frame, sum);
            position += 1;
        }
    }
    true
}

/// The first row of the frame of a position, if the frames of this and the next positions that are summed side by side
/// lie in the partition and have a row.
fn whole_frames(
    partition: &Range<usize>,
    position: usize,
    (start, end): (i64, i64),
) -> Option<usize> {
    let last = (position + SIDE_BY_SIDE - 1) as i64;
    let begin = (position as i64).saturating_add(start);
    let is_whole = start <= end
        && begin >= partition.start as i64
        && last.saturating_add(end) < partition.end as i64
        && last < partition.end as i64;
    is_whole.then_some(begin as usize)
}

/// The sums of frames of so many rows, each of which begins a row after the one before.
#[inline]
fn side_by_side<T: Float>(
    values: &[T],
    width: usize,
    first: impl Fn(T) -> T,
    steps: &Steps,
) -> [T; SIDE_BY_SIDE] {
    let mut sums: [T; SIDE_BY_SIDE] = std::array::from_fn(|place| first(values[place]));
    for step in 1..width {
        steps.step();
        let added = &values[step..step + SIDE_BY_SIDE];
        for (sum, value) in sums.iter_mut().zip(added) {
            *sum = sum.plus(*value);
        }
    }
    sums
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
            let is_done = each::<f64>(&column, &order, frame, false, |sum, rows| {
                assert_eq!(sum.is_some(), rows > 0);
                found.push(sum.map(f64::to_bits));
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
            let is_done = each::<f64>(&column, &order, (-1, 0), true, |sum, _| found.push(sum));
            is_done.then_some(found)
        };
        assert_eq!(of([Some(1.0), None, Some(2.0)]), None);
        assert_eq!(of([Some(1e308), Some(1e308), Some(2.0)]), None);
        let infinite = of([Some(f64::INFINITY), Some(1.0), Some(-0.0)]).unwrap();
        assert_eq!(infinite[..2], [Some(f64::INFINITY); 2]);
        assert_eq!(of([Some(-0.0); 3]).unwrap()[0].map(f64::to_bits), Some(0));
    }
}
