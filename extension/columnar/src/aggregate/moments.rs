//! Averages and variances of floats, by the three numbers that PostgreSQL's `float8_accum` keeps.

use std::marker::PhantomData;

use super::accumulator::{Accumulator, Added, Answer, Grouping, Input, each_number};
use super::stretches::Stretches;
use crate::buffer::reserve_huge;
use crate::vector::number::{Number, NumberType};
use crate::vector::selection::Selection;
use crate::vector::value::Operand;
use crate::vector::{Evaluation, EvaluationError};
use crate::zone_map::{Bound, Zone};

/// Doubles up to this magnitude cannot make PostgreSQL's sums overflow, nor its sums of squares, in
/// any order: for a table of 2^43 rows, (2 · 2^43 · 1e100)² < 1e308.
pub const MAGNITUDE_MAX: f64 = 1e100;

/// The bound for a sum of reals in their own precision: 2^43 · 1e25 < 3.4e38.
pub const MAGNITUDE_MAX_F32: f32 = 1e25;

/// The greatest sum of 2^43 numbers within [`MAGNITUDE_MAX`].
const SUM_MAX: f64 = MAGNITUDE_MAX * (1_u64 << 43) as f64;

/// Whether all numbers of a vector, including those that do not count, are finite and so small that
/// no sum can overflow.
///
/// # Safety
/// There are `rows` values of type `T`.
pub unsafe fn is_moderate<T: Number>(values: *const u8, rows: usize) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        match T::TYPE {
            NumberType::F64 => {
                lanes_simd::aggregate::magnitude_within(values.cast(), rows, MAGNITUDE_MAX)
            }
            NumberType::F32 => {
                lanes_simd::aggregate::magnitude_within(values.cast(), rows, MAGNITUDE_MAX_F32)
            }
            _ => true,
        }
    }
}

/// The sum of the selected floats as doubles, if [`is_moderate`] holds for the part of the vector
/// that contains them.
///
/// # Safety
/// There are `rows` values of type `T`, a float.
unsafe fn moderate_sum<T: Number>(
    values: *const u8,
    rows: usize,
    selection: &Selection,
) -> Option<f64> {
    use lanes_simd::aggregate::{sum_wide_within, sum_within};
    let span = selection.span(rows);
    // SAFETY: the caller's promise; the span lies among the rows and begins with a word.
    unsafe {
        let chosen = selection.as_ptr().add(span.start / 64);
        let values = values.cast::<T>().add(span.start);
        match T::TYPE {
            NumberType::F32 => {
                sum_wide_within(values.cast(), span.len(), chosen, MAGNITUDE_MAX_F32)
            }
            _ => sum_within::<f64>(values.cast(), span.len(), chosen, MAGNITUDE_MAX),
        }
    }
}

/// Whether [`is_moderate`] holds for all numbers of a zone of type `T`.
pub(super) fn is_moderate_zone<T: Number>(zone: &Zone) -> bool {
    let limit = match T::TYPE {
        NumberType::F32 => f64::from(MAGNITUDE_MAX_F32),
        _ => MAGNITUDE_MAX,
    };
    let within = |bound: Bound| bound.float().is_some_and(|value| value.abs() <= limit);
    zone.non_null == 0 || !zone.has_nan && within(zone.minimum) && within(zone.maximum)
}

/// `avg` and the variance family of floats.
pub struct Moments<T> {
    /// Whether squares are needed. If not, they are kept only where they might overflow.
    squares_wanted: bool,
    /// Whether a sum went beyond [`SUM_MAX`]. Then even moderate numbers may be so far from the
    /// mean that the sum of squares overflows. PostgreSQL reports that overflow even for an
    /// average.
    great: bool,
    /// Whether the numbers that follow are known to be moderate.
    moderate: bool,
    states: Vec<FloatState>,
    /// The sums of the current stretches.
    stretch_sums: Vec<f64>,
    number: PhantomData<T>,
}

/// The numbers that `float8_accum` keeps.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct FloatState {
    count: f64,
    sum: f64,
    squares: f64,
}

impl FloatState {
    /// `float8_accum`: the algorithm of Youngs and Cramer, with PostgreSQL's checks.
    #[inline(always)]
    pub(crate) fn accumulate(&mut self, value: f64) -> Evaluation<()> {
        let before = *self;
        self.count += 1.0;
        self.sum += value;
        if before.count > 0.0 {
            let difference = value * self.count - self.sum;
            self.squares += difference * difference / (self.count * before.count);
            if self.sum.is_infinite() || self.squares.is_infinite() {
                if !before.sum.is_infinite() && !value.is_infinite() {
                    return Err(EvaluationError::FloatOverflow);
                }
                self.squares = f64::NAN;
            }
        } else if value.is_nan() || value.is_infinite() {
            self.squares = f64::NAN;
        }
        Ok(())
    }

    /// `float8_avg`; NULL without numbers.
    pub(crate) fn average(&self) -> Option<f64> {
        (self.count > 0.0).then(|| self.sum / self.count)
    }
}

impl<T> Moments<T> {
    /// Without squares, the sum of squares in [`Answer::Moments`] has no meaning.
    pub fn new(squares_wanted: bool) -> Self {
        Moments {
            squares_wanted,
            great: false,
            moderate: false,
            states: Vec::new(),
            stretch_sums: Vec::new(),
            number: PhantomData,
        }
    }
}

impl<T: Number> Moments<T> {
    /// Adds short stretches of numbers, all rows of which are selected.
    ///
    /// # Safety
    /// There is a value of type `T` for each row of the stretches.
    #[inline]
    unsafe fn add_short(&mut self, stretches: Stretches<'_>, values: *const u8) {
        for (group, rows) in stretches.iter() {
            let state = &mut self.states[group as usize];
            state.count += rows.len() as f64;
            // SAFETY: this function's contract.
            let values = unsafe {
                let first = values.cast::<T>().add(rows.start);
                std::slice::from_raw_parts(first, rows.len())
            };
            let add = |sum, value: &T| sum + value.to_f64();
            state.sum = values.iter().fold(state.sum, add);
        }
    }

    /// Adds the selected rows of long stretches.
    ///
    /// # Safety
    /// There is a value of type `T`, a float, for each row of the stretches.
    #[inline]
    unsafe fn add_long(
        &mut self,
        stretches: Stretches<'_>,
        values: *const u8,
        selection: &Selection,
    ) {
        self.stretch_sums.resize(stretches.len(), 0.0);
        let (chosen, starts) = (stretches.chosen(selection), stretches.starts.as_ptr());
        let sums = self.stretch_sums.as_mut_ptr();
        // SAFETY: this function's contract; there is a start more than there are stretches, and a
        // sum for each.
        unsafe {
            if T::TYPE == NumberType::F32 {
                lanes_simd::stretches::sums_wide(
                    values.cast(),
                    chosen,
                    starts,
                    stretches.len(),
                    sums,
                );
            } else {
                lanes_simd::stretches::sums::<f64>(
                    values.cast(),
                    chosen,
                    starts,
                    stretches.len(),
                    sums,
                );
            }
        }
        for ((group, count), sum) in stretches.counts(selection).zip(&self.stretch_sums) {
            let state = &mut self.states[group];
            state.count += count as f64;
            state.sum += sum;
        }
    }
}

impl<T: Number> Accumulator for Moments<T> {
    fn resize(&mut self, groups: usize) {
        reserve_huge(&mut self.states, groups);
        self.states.resize(groups, FloatState::default());
    }

    fn add(&mut self, grouping: &Grouping<'_>, added: Added<'_>) -> Evaluation<()> {
        let Input::Number(operand) = *added.input else {
            return Ok(());
        };
        let (selection, rows) = (added.selection, added.rows);
        if let Operand::Each { values, .. } = operand
            && !self.squares_wanted
            && !self.great
        {
            match grouping {
                Grouping::One(group) => {
                    // SAFETY: the operand has a `T` for each row of the vector.
                    if let Some(sum) = unsafe { moderate_sum::<T>(values, rows, selection) } {
                        let state = &mut self.states[*group as usize];
                        // PostgreSQL begins with +0, so the sum of -0 is +0.
                        state.count += selection.count() as f64;
                        state.sum += sum;
                        return Ok(());
                    }
                }
                Grouping::Each(ids)
                    if self.moderate
                        // SAFETY: as above.
                        || unsafe { is_moderate::<T>(values, rows) } =>
                {
                    let (ids, values) = (ids.as_ptr(), values.cast::<T>());
                    let states = self.states.as_mut_ptr();
                    // The copies own their pointers. Otherwise the pointers would be read again
                    // after each store.
                    selection.for_each_of(rows, move |row| {
                        // SAFETY: as above; ids of selected rows are below the number of groups.
                        unsafe {
                            let state = states.add(*ids.add(row) as usize).cast::<[f64; 2]>();
                            let [count, sum] = *state;
                            *state = [count + 1.0, sum + (*values.add(row)).to_f64()];
                        }
                    });
                    return Ok(());
                }
                _ => {}
            }
        }
        let (states, mut great) = (&mut self.states[..], self.great);
        // SAFETY: as above.
        let added = unsafe {
            each_number::<T>(grouping, operand, selection, |value, group| {
                let state = &mut states[group];
                state.accumulate(value.to_f64())?;
                great |= state.sum.is_finite() && state.sum.abs() > SUM_MAX;
                Ok(())
            })
        };
        self.great = great;
        added
    }

    fn add_stretches(&mut self, stretches: Stretches<'_>, added: Added<'_>) -> Evaluation<bool> {
        let Input::Number(Operand::Each { values, .. }) = *added.input else {
            return Ok(false);
        };
        let selection = added.selection;
        // SAFETY: the operand has a `T` for each row of the vector.
        let is_simple = !self.squares_wanted
            && !self.great
            && T::TYPE.is_float()
            && (self.moderate || unsafe { is_moderate::<T>(values, stretches.rows()) });
        if !is_simple || stretches.are_short && !selection.is_full(stretches.rows()) {
            return Ok(false);
        }
        // SAFETY: as above, and `T` is a float.
        unsafe {
            if stretches.are_short {
                self.add_short(stretches, values);
            } else {
                self.add_long(stretches, values, selection);
            }
        }
        Ok(true)
    }

    fn uses_zone_hints(&self) -> bool {
        !self.squares_wanted
    }

    fn set_zone_hint(&mut self, zone: Option<Zone>) {
        self.moderate = zone.is_some_and(|zone| is_moderate_zone::<T>(&zone));
    }

    fn answer(&self, group: usize) -> Answer {
        let FloatState {
            count,
            sum,
            squares,
        } = self.states[group];
        if count == 0.0 {
            return Answer::Null;
        }
        Answer::Moments {
            count,
            sum,
            squares,
        }
    }

    fn clear(&mut self) {
        (self.states, self.great) = (Vec::new(), false);
    }

    fn bytes(&self) -> usize {
        self.states.capacity() * size_of::<FloatState>()
    }
}
