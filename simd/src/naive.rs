//! The definition of each kernel in a few plain lines. The kernels are tested against these
//! functions, which define the order in which floats are added.

use crate::number::Number;
use crate::select::Comparison;
use std::cmp::Ordering;
use std::ops::{AddAssign, Neg};

/// PostgreSQL's order: NaN equals NaN and is greater than all else, -0 equals +0.
pub fn order<T: Number>(left: T, right: T) -> Ordering {
    let nan = |value: T| value.partial_cmp(&value).is_none();
    left.partial_cmp(&right)
        .unwrap_or_else(|| nan(left).cmp(&nan(right)))
}

/// Whether `left operator right`.
pub fn holds<T: Number>(left: T, operator: Comparison, right: T) -> bool {
    let order = order(left, right);
    match operator {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
    }
}

/// Whether bit `row` is set.
pub fn bit(words: &[u64], row: usize) -> bool {
    words[row / 64] >> (row % 64) & 1 == 1
}

/// Whether the row is selected; no selection selects all.
pub fn is_selected(selection: Option<&[u64]>, row: usize) -> bool {
    selection.is_none_or(|words| bit(words, row))
}

/// The rows that qualify, as a bitmap.
pub fn bitmap(rows: usize, qualifies: impl Fn(usize) -> bool) -> Vec<u64> {
    let mut words = vec![0; rows.div_ceil(64)];
    for row in (0..rows).filter(|&row| qualifies(row)) {
        words[row / 64] |= 1 << (row % 64);
    }
    words
}

/// [`crate::select::compare`]
pub fn compare<T: Number>(values: &[T], operator: Comparison, constant: T) -> Vec<u64> {
    bitmap(values.len(), |row| holds(values[row], operator, constant))
}

/// [`crate::select::between`]
pub fn between<T: Number>(values: &[T], low: T, high: T) -> Vec<u64> {
    bitmap(values.len(), |row| {
        order(low, values[row]).is_le() && order(values[row], high).is_le()
    })
}

/// [`crate::select::compare_pairs`]
pub fn compare_pairs<T: Number>(left: &[T], right: &[T], operator: Comparison) -> Vec<u64> {
    bitmap(left.len(), |row| holds(left[row], operator, right[row]))
}

/// [`crate::select::member`]
pub fn member(codes: &[u32], set: &[u64]) -> Vec<u64> {
    bitmap(codes.len(), |row| bit(set, codes[row] as usize))
}

/// The number of selected rows.
pub fn count(rows: usize, selection: Option<&[u64]>) -> u64 {
    (0..rows).filter(|&row| is_selected(selection, row)).count() as u64
}

/// The sum of integers.
pub fn sum_integers<T: Number + Into<i128>>(values: &[T], selection: Option<&[u64]>) -> i128 {
    (0..values.len())
        .filter(|&row| is_selected(selection, row))
        .map(|row| values[row].into())
        .sum()
}

/// A type of floats that can be summed; -0 is the negated default.
pub trait Addend: Copy + Default + Neg<Output = Self> + AddAssign {}
impl Addend for f32 {}
impl Addend for f64 {}

/// The sum of floats, in the order that all kernels keep: see [`crate::aggregate`].
pub fn sum_floats<T: Addend>(values: &[T], selection: Option<&[u64]>) -> T {
    let mut stripes = [-T::default(); 16];
    for row in (0..values.len()).filter(|&row| is_selected(selection, row)) {
        stripes[row % 16] += values[row];
    }
    for half in [8, 4, 2, 1] {
        for stripe in 0..half {
            let other = stripes[stripe + half];
            stripes[stripe] += other;
        }
    }
    stripes[0]
}

/// [`crate::stretches::sums`]
pub fn stretch_sums<T: Addend>(values: &[T], selection: Option<&[u64]>, starts: &[u32]) -> Vec<T> {
    let of_stretch = |stretch: &[u32]| {
        let in_stretch = |row: usize| stretch[0] as usize <= row && row < stretch[1] as usize;
        let chosen = bitmap(values.len(), |row| {
            in_stretch(row) && is_selected(selection, row)
        });
        sum_floats(values, Some(&chosen))
    };
    starts.windows(2).map(of_stretch).collect()
}

/// [`crate::stretches::cut`]
pub fn cut<T: PartialEq>(values: &[T]) -> Vec<u32> {
    (0..values.len())
        .filter(|&row| row == 0 || values[row] != values[row - 1])
        .map(|row| row as u32)
        .collect()
}

/// The lesser (`wanted` = `Less`) or the greater of two numbers; `value` if they are equal.
pub fn better<T: Number>(best: T, value: T, wanted: Ordering) -> T {
    if order(best, value) == wanted {
        best
    } else {
        value
    }
}

/// [`crate::aggregate::minimum`] (`wanted` = `Less`) and [`crate::aggregate::maximum`] (`Greater`).
pub fn extreme<T: Number>(values: &[T], selection: Option<&[u64]>, wanted: Ordering) -> Option<T> {
    (0..values.len())
        .filter(|&row| is_selected(selection, row))
        .map(|row| values[row])
        .reduce(|best, value| better(best, value, wanted))
}

/// The rows of a call in the steps in which grouped kernels take them: blocks of 64 rows, all
/// selected and all of one group, and single rows.
pub fn group_steps(groups: &[u32], selection: Option<&[u64]>) -> Vec<(usize, usize)> {
    let mut steps = Vec::new();
    for first in (0..groups.len()).step_by(64) {
        let rows = (groups.len() - first).min(64);
        let one_group = groups[first..first + rows]
            .iter()
            .all(|&group| group == groups[first]);
        let all_selected = (first..first + rows).all(|row| is_selected(selection, row));
        if rows == 64 && one_group && all_selected {
            steps.push((first, 64));
        } else {
            steps.extend(
                (first..first + rows)
                    .filter(|&row| is_selected(selection, row))
                    .map(|row| (row, 1)),
            );
        }
    }
    steps
}

/// [`crate::search::merge_positions_i64`]
pub fn merge_positions(left: &[i64], right: &[i64], inclusive: bool) -> Vec<u32> {
    let before = |value: i64, key: i64| value < key || inclusive && value == key;
    left.iter()
        .map(|&key| right.iter().filter(|&&value| before(value, key)).count() as u32)
        .collect()
}

/// [`crate::decode::unpack_bits_u64`], bit by bit.
pub fn unpack_bits(packed: &[u8], width: u32, rows: usize, base: u64) -> Vec<u64> {
    let width = width as usize;
    let bit = |bit: usize| u64::from(packed[bit / 8] >> (bit % 8) & 1);
    (0..rows)
        .map(|row| {
            let value =
                (0..width).fold(0, |value, place| value | bit(row * width + place) << place);
            base.wrapping_add(value)
        })
        .collect()
}

/// [`crate::decode::scale_u64`]
pub fn scale(values: &[u64], factor: u64, base: u64) -> Vec<u64> {
    let scaled = values
        .iter()
        .map(|value| value.wrapping_mul(factor).wrapping_add(base));
    scaled.collect()
}

/// [`crate::decode::sum_deltas_u64`]
pub fn sum_deltas(deltas: &[u64], before: u64) -> Vec<u64> {
    let sums = deltas.iter().scan(before, |sum, delta| {
        *sum = sum.wrapping_add(*delta);
        Some(*sum)
    });
    sums.collect()
}

/// [`crate::decode::sum_deltas_of_deltas_u64`]
pub fn sum_deltas_of_deltas(changes: &[u64], before: u64, step: u64) -> Vec<u64> {
    sum_deltas(&sum_deltas(changes, step), before)
}

/// [`crate::decode::decimals_to_f64`]
pub fn decimals_to_f64(numbers: &[u64], divisor: f64) -> Vec<u64> {
    let double = |&number: &u64| (number as i64 as f64 / divisor).to_bits();
    numbers.iter().map(double).collect()
}

/// [`crate::frames::sums`]
pub fn frame_sums<T>(values: &[T], frames: usize, width: usize, start: Option<T>) -> Vec<T>
where
    T: Copy + std::ops::Add<Output = T>,
{
    let of_frame = |frame: &[T]| {
        let first = start.map_or(frame[0], |start| start + frame[0]);
        frame[1..].iter().fold(first, |sum, value| sum + *value)
    };
    let frames = (0..frames).map(|first| &values[first..first + width]);
    frames.map(of_frame).collect()
}

/// [`crate::copy::selected`] and [`crate::copy::fill`]: the rows as they were, with a value for each
/// selected one.
pub fn copied<T: Copy>(
    before: &[T],
    selection: Option<&[u64]>,
    value: impl Fn(usize) -> T,
) -> Vec<T> {
    let rows = before.iter().enumerate();
    rows.map(|(row, before)| match is_selected(selection, row) {
        true => value(row),
        false => *before,
    })
    .collect()
}
