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

/// The places of the samples of each step's window in one column of times.
///
/// The series of a target are scraped together, so their columns of times are equal as a rule.
/// The places that were found for one series then serve the next one.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    /// The column of times whose places these are. `None` if equal columns are rare, because then
    /// a copy of each would be wasted.
    timestamps: Option<Vec<i64>>,
    /// For each step the place of the first sample, and that after the last one.
    places: Vec<(usize, usize)>,
    /// Changes whenever the places change.
    generation: u64,
    /// How many columns were equal to the one before, less how many were not.
    balance: i32,
}

impl Windows {
    /// Columns that differ from the one before, less those that do not, up to which copies are
    /// made.
    const WASTED_MAX: i32 = 16;

    /// Finds the places for a column of times, unless they are those of the column before.
    #[inline(always)]
    fn find(&mut self, shape: &WindowShape, timestamps: &[i64]) {
        let is_equal = |known: &Vec<i64>| {
            // As a rule, columns that differ do so in their first time.
            known.first() == timestamps.first() && known == timestamps
        };
        if self.timestamps.as_ref().is_some_and(is_equal) {
            self.balance = self.balance.saturating_add(1);
        } else {
            self.find_anew(shape, timestamps);
        }
    }

    #[inline(never)]
    fn find_anew(&mut self, shape: &WindowShape, timestamps: &[i64]) {
        self.generation += 1;
        self.balance -= 1;
        let mut copy = self.timestamps.take().unwrap_or_default();
        if self.balance > -Self::WASTED_MAX {
            copy.clear();
            copy.extend_from_slice(timestamps);
            self.timestamps = Some(copy);
        }
        self.places.clear();
        let (mut low, mut high) = (Cursor::default(), Cursor::default());
        self.places.extend((0..shape.grid.count).map(|step| {
            let (start, end) = shape.range_of(step);
            let first = low.pass(timestamps, start - shape.before);
            (first, high.pass(timestamps, end + shape.after))
        }));
    }

    /// For each step the place of the first sample, and that after the last one.
    pub(crate) fn places(&self) -> &[(usize, usize)] {
        &self.places
    }

    /// A number that changes whenever the places change.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }
}

impl WindowShape {
    /// The start of the range of a step, which does not belong to it, and the end, which does.
    #[inline(always)]
    pub(crate) fn range_of(&self, step: usize) -> (i64, i64) {
        let end = self.time.of(self.grid.time(step));
        (end - self.range, end)
    }

    /// Finds the windows of a column of times.
    pub(crate) fn find(
        &self,
        evaluator: &Evaluator<'_>,
        timestamps: &[i64],
        windows: &mut Windows,
    ) -> Result<(), Error> {
        evaluator.work(8 * self.grid.count)?;
        windows.find(self, timestamps);
        Ok(())
    }

    /// Calls a function for the window of each step that has a sample, and writes its values.
    #[inline(always)]
    pub(crate) fn map(
        &self,
        evaluator: &Evaluator<'_>,
        (timestamps, values): (&[i64], &[f64]),
        row: &mut [f64],
        windows: &mut Windows,
        mut function: impl FnMut(Window<'_>) -> f64,
    ) -> Result<(), Error> {
        self.find(evaluator, timestamps, windows)?;
        let mut work = 0;
        for (step, (out, (first, last))) in row.iter_mut().zip(&windows.places).enumerate() {
            let (first, last) = (*first, *last);
            work += last - first;
            if work > WORK_MAX {
                evaluator.work(std::mem::take(&mut work))?;
            }
            let (start, end) = self.range_of(step);
            *out = match first < last {
                false => ABSENT,
                true => function(Window {
                    timestamps: &timestamps[first..last],
                    values: &values[first..last],
                    start,
                    end,
                    time: self.grid.time(step),
                    step,
                }),
            };
        }
        evaluator.work(work)
    }
}

#[cfg(test)]
mod tests {
    use super::{Cursor, WindowShape, Windows};
    use crate::grid::Grid;
    use crate::plan::TimeReference;
    use proptest::prelude::*;

    /// The windows of five minutes at ten steps of a minute, from minute 10 on.
    const SHAPE: WindowShape = WindowShape {
        grid: Grid {
            start: 600_000,
            step: 60_000,
            count: 10,
            is_range: true,
        },
        time: TimeReference {
            offset: 0,
            at: None,
        },
        range: 300_000,
        before: 0,
        after: 0,
    };

    /// Times every so many milliseconds.
    fn every(millis: i64) -> Vec<i64> {
        (0..2_000_000 / millis)
            .map(|place| place * millis)
            .collect()
    }

    #[test]
    fn equal_columns_share_their_windows() {
        let (slow, fast) = (every(60_000), every(10_000));
        let mut windows = Windows::default();
        let mut generations = Vec::new();
        for column in [&slow, &slow, &fast, &fast, &slow] {
            windows.find(&SHAPE, column);
            generations.push(windows.generation());
            let mut found = Windows::default();
            found.find(&SHAPE, column);
            assert_eq!(windows.places(), found.places());
        }
        assert_eq!(generations, [1, 1, 2, 2, 3]);
        // A column that begins and ends as another one is another one.
        let mut bent = slow.clone();
        bent[9] += 59_999;
        windows.find(&SHAPE, &bent);
        assert_eq!(windows.generation(), 4);
    }

    #[test]
    fn columns_are_not_copied_if_equal_ones_are_rare() {
        let mut windows = Windows::default();
        for millis in 0..100 {
            windows.find(&SHAPE, &every(10_000 + millis));
        }
        assert!(windows.timestamps.is_none());
        windows.find(&SHAPE, &[]);
        assert!(windows.places().iter().all(|(first, last)| first == last));
    }

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
