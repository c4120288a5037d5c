//! Sums of integers (exact), and of floats (see the parent module for their order).

use std::marker::PhantomData;
use std::ops::Range;

use super::accumulator::{
    Accumulator, Added, Answer, Grouping, Input, Numbers, add_counts, each_number, each_row,
};
use super::moments::{MAGNITUDE_MAX, MAGNITUDE_MAX_F32, is_moderate, is_moderate_zone};
use super::stretches::Stretches;
use crate::buffer::reserve_huge;
use crate::vector::number::{Number, NumberType, Operation};
use crate::vector::value::Operand;
use crate::vector::{Evaluation, EvaluationError};
use crate::zone_map::Zone;

/// `sum`, `avg` and variances of integers: count, sum and, if needed, the sum of squares.
pub struct IntegerSums<T> {
    result: IntegerResult,
    counts: Vec<u64>,
    sums: Vec<i128>,
    squares: Vec<i128>,
    number: PhantomData<T>,
}

/// The aggregate of integers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IntegerResult {
    /// `sum`.
    Sum,
    /// `avg`.
    Average,
    /// The variance family.
    Moments,
}

impl<T: Number> IntegerSums<T> {
    /// No group yet.
    pub fn new(result: IntegerResult) -> Self {
        IntegerSums {
            result,
            counts: Vec::new(),
            sums: Vec::new(),
            squares: Vec::new(),
            number: PhantomData,
        }
    }
}

impl<T: Number> Accumulator for IntegerSums<T>
where
    T::Sum: Into<i128>,
{
    fn resize(&mut self, groups: usize) {
        self.counts.resize(groups, 0);
        self.sums.resize(groups, 0);
        if self.result == IntegerResult::Moments {
            self.squares.resize(groups, 0);
        }
    }

    fn add(&mut self, grouping: &Grouping<'_>, added: Added<'_>) -> Evaluation<()> {
        let Input::Number(operand) = *added.input else {
            return Ok(());
        };
        let (selection, rows) = (added.selection, added.rows);
        let squares = self.result == IntegerResult::Moments;
        match (grouping, operand) {
            (Grouping::One(group), Operand::Each { values, .. }) if !squares => {
                let group = *group as usize;
                self.counts[group] += selection.count() as u64;
                let span = selection.span(rows);
                // SAFETY: the operand has a `T` for each row of the vector; the span begins with a word.
                let sum = unsafe {
                    let chosen = selection.as_ptr().add(span.start / 64);
                    let values = values.cast::<T>().add(span.start);
                    lanes_simd::aggregate::sum::<T>(values, span.len(), chosen)
                };
                self.sums[group] += sum.into();
                Ok(())
            }
            (Grouping::Each(ids), Operand::Each { values, .. }) if !squares => {
                let (counts, sums) = (self.counts.as_mut_ptr(), self.sums.as_mut_ptr());
                let (ids, values) = (ids.as_ptr(), values.cast::<T>());
                // The copies own their pointers. Otherwise the pointers would be read again after
                // each store.
                selection.for_each_of(rows, move |row| {
                    // SAFETY: as above; ids of selected rows are below the number of groups.
                    unsafe {
                        let group = *ids.add(row) as usize;
                        *counts.add(group) += 1;
                        *sums.add(group) += i128::from((*values.add(row)).to_scalar().0 as i64);
                    }
                });
                Ok(())
            }
            _ => {
                add_counts(&mut self.counts, grouping, selection, rows);
                let (sums, all_squares) = (&mut self.sums[..], &mut self.squares[..]);
                let add = |number: T, group: usize| {
                    let value = number.to_scalar().0 as i64;
                    sums[group] += i128::from(value);
                    if squares {
                        let square = i128::from(value) * i128::from(value);
                        all_squares[group] = match T::TYPE {
                            // Two squares of the least `i64` are too much already: no answer is
                            // better than a wrong one.
                            NumberType::I64 => all_squares[group].checked_add(square).ok_or(
                                EvaluationError::IntegerOutOfRange(size_of::<i128>() as u8),
                            )?,
                            _ => all_squares[group] + square,
                        };
                    }
                    Ok(())
                };
                // SAFETY: as above.
                unsafe { each_number::<T>(grouping, operand, selection, add) }
            }
        }
    }

    fn add_stretches(&mut self, stretches: Stretches<'_>, added: Added<'_>) -> Evaluation<bool> {
        let Some(values) = added.whole_vector() else {
            return Ok(false);
        };
        if self.result == IntegerResult::Moments {
            return Ok(false);
        }
        for (group, rows) in stretches.iter() {
            let group = group as usize;
            self.counts[group] += rows.len() as u64;
            // SAFETY: the operand has a `T` for each row of the vector.
            unsafe {
                let first = values.cast::<T>().add(rows.start);
                if stretches.are_short {
                    let values = std::slice::from_raw_parts(first, rows.len());
                    let wide = values
                        .iter()
                        .map(|value| i128::from(value.to_scalar().0 as i64));
                    self.sums[group] += wide.sum::<i128>();
                } else {
                    let sum = lanes_simd::aggregate::sum::<T>(first, rows.len(), std::ptr::null());
                    self.sums[group] += sum.into();
                }
            }
        }
        Ok(true)
    }

    fn can_use_zones(&self) -> bool {
        self.result != IntegerResult::Moments
    }

    fn is_answered_by(&self, zone: &Zone) -> bool {
        zone.has_sum && zone.minimum.signed().is_some() && self.can_use_zones()
    }

    fn add_zone(&mut self, group: usize, zone: &Zone) -> bool {
        if !self.is_answered_by(zone) {
            return false;
        }
        self.counts[group] += u64::from(zone.non_null);
        self.sums[group] += zone.sum;
        true
    }

    fn answer(&self, group: usize) -> Answer {
        let (count, sum) = (self.counts[group], self.sums[group]);
        match self.result {
            _ if count == 0 => Answer::Null,
            IntegerResult::Sum => Answer::Integer(sum),
            IntegerResult::Average => Answer::Average { count, sum },
            IntegerResult::Moments => Answer::IntegerMoments {
                count,
                sum,
                squares: self.squares[group],
            },
        }
    }

    fn clear(&mut self) {
        (self.counts, self.sums, self.squares) = (Vec::new(), Vec::new(), Vec::new());
    }

    fn bytes(&self) -> usize {
        self.counts.capacity() * 8 + (self.sums.capacity() + self.squares.capacity()) * 16
    }
}

/// `sum(real)` and `sum(double precision)`, in the argument's own precision.
pub struct FloatSum<T> {
    counts: Vec<u64>,
    sums: Vec<T>,
    /// The sums of the current stretches.
    stretch_sums: Vec<T>,
    /// Whether the numbers that follow are known to be moderate.
    moderate: bool,
}

/// A type of float whose sums are checked for overflow, see [`MAGNITUDE_MAX`].
pub trait Moderate:
    Number + lanes_simd::Float + std::ops::Add<Output = Self> + std::ops::Neg<Output = Self>
{
    /// Numbers up to this magnitude cannot make a sum overflow.
    const MODERATE: Self;
}

impl Moderate for f32 {
    const MODERATE: f32 = MAGNITUDE_MAX_F32;
}

impl Moderate for f64 {
    const MODERATE: f64 = MAGNITUDE_MAX;
}

impl<T> Default for FloatSum<T> {
    fn default() -> Self {
        FloatSum {
            counts: Vec::new(),
            sums: Vec::new(),
            stretch_sums: Vec::new(),
            moderate: false,
        }
    }
}

/// Adds rows of one group to its sum in the order of [`lanes_simd::group::group_sum`]: each whole
/// word of the vector as a sum of its own, other rows one by one.
///
/// # Safety
/// There are values for these rows; they are moderate.
#[inline]
unsafe fn add_rows<T: Moderate>(mut sum: T, values: *const T, rows: Range<usize>) -> T {
    const WORD: usize = 64;
    let mut row = rows.start;
    while row < rows.end {
        let end = (row / WORD + 1) * WORD;
        // SAFETY: the caller's promise.
        unsafe {
            let first = values.add(row);
            if row.is_multiple_of(WORD) && end <= rows.end {
                let (starts, mut of_word) = ([0, WORD as u32], T::ZERO);
                let all = std::ptr::null();
                lanes_simd::stretches::sums::<T>(first, all, starts.as_ptr(), 1, &raw mut of_word);
                sum = sum + of_word;
            } else {
                let alone = std::slice::from_raw_parts(first, end.min(rows.end) - row);
                sum = alone.iter().fold(sum, |sum, value| sum + *value);
            }
        }
        row = end;
    }
    sum
}

impl<T: Moderate> Accumulator for FloatSum<T> {
    fn resize(&mut self, groups: usize) {
        reserve_huge(&mut self.counts, groups);
        reserve_huge(&mut self.sums, groups);
        self.counts.resize(groups, 0);
        // -0 changes no float to which it is added.
        self.sums.resize(groups, -T::ZERO);
    }

    fn add(&mut self, grouping: &Grouping<'_>, added: Added<'_>) -> Evaluation<()> {
        let Input::Number(operand) = *added.input else {
            return Ok(());
        };
        let (selection, rows) = (added.selection, added.rows);
        if let Operand::Each { values, .. } = operand {
            match grouping {
                Grouping::One(group) => {
                    let span = selection.span(rows);
                    // SAFETY: the operand has a `T` for each row of the vector; the span begins with a word.
                    let sum = unsafe {
                        let chosen = selection.as_ptr().add(span.start / 64);
                        let values = values.cast::<T>().add(span.start);
                        let bound = T::MODERATE;
                        lanes_simd::aggregate::sum_within(values, span.len(), chosen, bound)
                    };
                    if let Some(sum) = sum {
                        let group = *group as usize;
                        self.counts[group] += selection.count() as u64;
                        self.sums[group] = self.sums[group] + sum;
                        return Ok(());
                    }
                }
                // SAFETY: as above; ids of selected rows are below the number of groups.
                Grouping::Each(ids) if T::TYPE == NumberType::F64 => unsafe {
                    if self.moderate || is_moderate::<T>(values, rows) {
                        lanes_simd::group::group_sum::<f64>(
                            ids.as_ptr(),
                            values.cast(),
                            rows,
                            selection.as_ptr(),
                            self.sums.as_mut_ptr().cast(),
                            self.counts.as_mut_ptr(),
                        );
                        return Ok(());
                    }
                },
                _ => {}
            }
        }
        each_row(grouping, selection, |row, group| {
            // SAFETY: as above.
            let value = unsafe { operand.get::<T>(row) };
            let first = self.counts[group] == 0;
            self.counts[group] += 1;
            self.sums[group] = if first {
                value
            } else {
                self.sums[group].apply(Operation::Add, value)?
            };
            Ok(())
        })
    }

    fn add_stretches(&mut self, stretches: Stretches<'_>, added: Added<'_>) -> Evaluation<bool> {
        let Input::Number(Operand::Each { values, .. }) = *added.input else {
            return Ok(false);
        };
        let selection = added.selection;
        // SAFETY: the operand has a `T` for each row of the vector.
        if !self.moderate && !unsafe { is_moderate::<T>(values, stretches.rows()) } {
            return Ok(false);
        }
        if stretches.are_short {
            if T::TYPE != NumberType::F64 || !selection.is_full(stretches.rows()) {
                return Ok(false);
            }
            for (group, rows) in stretches.iter() {
                let (group, count) = (group as usize, rows.len());
                self.counts[group] += count as u64;
                // SAFETY: as above.
                self.sums[group] = unsafe { add_rows::<T>(self.sums[group], values.cast(), rows) };
            }
            return Ok(true);
        }
        self.stretch_sums.resize(stretches.len(), T::ZERO);
        // SAFETY: as above; there is a start more than there are stretches, and a sum for each.
        unsafe {
            lanes_simd::stretches::sums::<T>(
                values.cast(),
                stretches.chosen(selection),
                stretches.starts.as_ptr(),
                stretches.len(),
                self.stretch_sums.as_mut_ptr(),
            );
        }
        for ((group, count), sum) in stretches.counts(selection).zip(&self.stretch_sums) {
            self.counts[group] += count as u64;
            self.sums[group] = self.sums[group] + *sum;
        }
        Ok(true)
    }

    fn uses_zone_hints(&self) -> bool {
        true
    }

    fn set_zone_hint(&mut self, zone: Option<Zone>) {
        self.moderate = zone.is_some_and(|zone| is_moderate_zone::<T>(&zone));
    }

    fn answer(&self, group: usize) -> Answer {
        if self.counts[group] == 0 {
            return Answer::Null;
        }
        Answer::Number(self.sums[group].to_scalar())
    }

    fn numbers(&self, groups: Range<usize>, out: &mut Numbers<'_>) -> bool {
        let counts = self.counts[groups.clone()].iter();
        let sums = self.sums[groups].iter();
        out.write(
            sums.map(|sum| sum.to_scalar()),
            counts.map(|count| *count > 0),
        );
        true
    }

    fn clear(&mut self) {
        (self.counts, self.sums) = (Vec::new(), Vec::new());
    }

    fn bytes(&self) -> usize {
        self.counts.capacity() * 8 + self.sums.capacity() * size_of::<T>()
    }
}
