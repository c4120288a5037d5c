//! Samples in a range of time before each step.

use super::Evaluator;
use crate::error::Error;
use crate::grid::Grid;
use crate::plan::TimeReference;
use crate::sample::ABSENT;

/// Units of work that are counted together.
const WORK_MAX: usize = 100_000;

/// A place in a column of times that only moves on.
///
/// Samples come at regular intervals as a rule, so the place is guessed to move by as many
/// samples as it did the step before; only if the guess is wrong the column is searched.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cursor {
    at: usize,
    stride: usize,
}

impl Cursor {
    /// Moves to the first sample that is later than a time, and returns its place.
    #[inline(always)]
    pub(crate) fn pass(&mut self, timestamps: &[i64], time: i64) -> usize {
        let guess = self.at + self.stride;
        if guess <= timestamps.len()
            && (guess == timestamps.len() || timestamps[guess] > time)
            && (guess == 0 || timestamps[guess - 1] <= time)
        {
            self.at = guess;
            return guess;
        }
        self.search(timestamps, time)
    }

    #[inline(never)]
    fn search(&mut self, timestamps: &[i64], time: i64) -> usize {
        let from = self.at;
        let rest = &timestamps[from..];
        let mut jump = 1;
        while jump < rest.len() && rest[jump] <= time {
            jump *= 2;
        }
        let known = if jump == 1 { 0 } else { jump / 2 };
        let end = (jump + 1).min(rest.len());
        let passed = known + rest[known..end].partition_point(|at| *at <= time);
        self.at = from + passed;
        self.stride = passed;
        self.at
    }
}

/// Samples of one series in the range of one step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window<'w> {
    pub(crate) timestamps: &'w [i64],
    pub(crate) values: &'w [f64],
    /// The place of the first sample among all of the series.
    pub(crate) first: usize,
    /// The start of the range, which does not belong to it.
    pub(crate) start: i64,
    /// The end of the range, which belongs to it.
    pub(crate) end: i64,
    /// The time of the step.
    pub(crate) time: i64,
    /// The number of the step.
    pub(crate) step: usize,
}

/// Which samples the windows have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WindowShape {
    pub(crate) grid: Grid,
    pub(crate) time: TimeReference,
    /// Milliseconds of the range.
    pub(crate) range: i64,
    /// Milliseconds before and after the range whose samples belong to the window too.
    pub(crate) before: i64,
    pub(crate) after: i64,
}

impl WindowShape {
    /// Calls a function for the window of each step that has a sample, and writes its values.
    #[inline(always)]
    pub(crate) fn map(
        &self,
        evaluator: &Evaluator<'_>,
        (timestamps, values): (&[i64], &[f64]),
        row: &mut [f64],
        mut function: impl FnMut(Window<'_>) -> f64,
    ) -> Result<(), Error> {
        let (mut low, mut high) = (Cursor::default(), Cursor::default());
        let mut work = 0;
        for (step, out) in row.iter_mut().enumerate() {
            let time = self.grid.time(step);
            let end = self.time.of(time);
            let start = end - self.range;
            let first = low.pass(timestamps, start - self.before);
            let last = high.pass(timestamps, end + self.after);
            work += last - first + 8;
            if work > WORK_MAX {
                evaluator.work(std::mem::take(&mut work))?;
            }
            *out = match first < last {
                false => ABSENT,
                true => function(Window {
                    timestamps: &timestamps[first..last],
                    values: &values[first..last],
                    first,
                    start,
                    end,
                    time,
                    step,
                }),
            };
        }
        evaluator.work(work)
    }
}

#[cfg(test)]
mod tests {
    use super::Cursor;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn cursors_pass_the_same_samples_as_a_search(
            gaps in prop::collection::vec(1_i64..40, 0..60),
            steps in prop::collection::vec(0_i64..90, 1..40),
        ) {
            let mut at = 0;
            let times: Vec<i64> = gaps.iter().map(|gap| { at += gap; at }).collect();
            let (mut cursor, mut time) = (Cursor::default(), -10);
            for step in steps {
                time += step;
                let expected = times.partition_point(|at| *at <= time);
                prop_assert_eq!(cursor.pass(&times, time), expected);
            }
        }
    }
}
