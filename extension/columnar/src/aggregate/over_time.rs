//! Aggregates of numbers in the order of their times: `lanes.counter_increase`, `lanes.counter_rate`,
//! `lanes.time_weight`.
//!
//! [`Counter`] and [`TimeWeight`] are the states of one group. The row-by-row functions use them too, so both forms
//! compute the same bits. [`OverTime`] has a state for each group. Its rows come in one of two ways:
//!
//! - *checked*: rows are expected in the order of their times. A row that comes too late is
//!   [`EvaluationError::Disordered`], as in [`super::ema`]; the caller then starts again with
//! - *sorted*: rows go to a [`TimeSort`], which gives them back in order at the end.
//!
//! A row counts if neither its number nor its time is NULL, and its time is finite. Of rows with equal times, the one
//! that came first is first.

use super::accumulator::{Accumulator, Added, Answer, Grouping, Input, each_row};
use super::ema::{TimeSort, Waiting};
use crate::vector::number::Number;
use crate::vector::{Evaluation, EvaluationError};

/// Microseconds of a second.
const SECOND_MICROS: f64 = 1e6;

/// The state of one group.
pub trait Series: Copy {
    /// A series of this kind that has no row yet.
    fn emptied(&self) -> Self;

    /// Adds the row that follows, at a finite time in microseconds.
    fn push(&mut self, time: i64, x: f64);

    /// The time of the last row; `None` before the first.
    fn last_time(&self) -> Option<i64>;
}

/// Whether a row of this time counts.
#[inline]
pub fn is_counted(time: i64) -> bool {
    !matches!(time, i64::MIN | i64::MAX)
}

/// The readings of a counter. A reading below the one before it is the first after a restart from zero. NaN is no
/// reading.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Counter {
    span: Span,
    first: f64,
    last: f64,
    /// The sum of the last readings before each restart.
    restarts: f64,
    has_infinity: bool,
}

impl Counter {
    /// The sum of all increases.
    pub fn increase(&self) -> Answer {
        if !self.span.has_begun {
            return Answer::Null;
        }
        let increase = self.last + self.restarts - self.first;
        if self.is_out_of_range(increase) {
            return Answer::OutOfRange;
        }
        Answer::Number(increase.to_scalar())
    }

    /// The sum of all increases per second from the first reading to the last; NULL if no time passed.
    pub fn rate(&self) -> Answer {
        let increase = self.last + self.restarts - self.first;
        match self.span.micros() {
            Some(_) if self.is_out_of_range(increase) => Answer::OutOfRange,
            Some(micros) => Answer::Quotient(increase, micros / SECOND_MICROS),
            None => Answer::Null,
        }
    }

    fn is_out_of_range(&self, increase: f64) -> bool {
        !increase.is_finite() && !self.has_infinity
    }
}

impl Series for Counter {
    fn emptied(&self) -> Counter {
        Counter::default()
    }

    #[inline]
    fn push(&mut self, time: i64, x: f64) {
        if x.is_nan() {
            return;
        }
        if !self.span.has_begun {
            self.first = x;
        } else if x < self.last {
            self.restarts += self.last;
        }
        self.last = x;
        self.has_infinity |= x.is_infinite();
        self.span.extend(time);
    }

    #[inline]
    fn last_time(&self) -> Option<i64> {
        self.span.has_begun.then_some(self.span.to)
    }
}

/// The number between two rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub enum Between {
    /// It is the number of the earlier row: last observation carried forward.
    #[default]
    Locf,
    /// It lies on the line from one to the other.
    Linear,
}

impl Between {
    /// The method of this name.
    pub fn of(name: &[u8]) -> Option<Between> {
        match name {
            b"locf" => Some(Between::Locf),
            b"linear" => Some(Between::Linear),
            _ => None,
        }
    }
}

/// The area below a curve.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct TimeWeight {
    /// How the curve runs between two rows.
    pub between: Between,
    span: Span,
    last: f64,
    /// Microseconds times the number; twice that if the curve is linear, which keeps halves exact.
    area: f64,
    has_special: bool,
}

impl TimeWeight {
    /// No row yet.
    pub fn new(between: Between) -> TimeWeight {
        TimeWeight {
            between,
            ..TimeWeight::default()
        }
    }

    /// The area divided by the time from the first row to the last; NULL if no time passed.
    pub fn average(&self) -> Answer {
        let Some(micros) = self.span.micros() else {
            return Answer::Null;
        };
        if !self.area.is_finite() && !self.has_special {
            return Answer::OutOfRange;
        }
        match self.between {
            Between::Locf => Answer::Quotient(self.area, micros),
            Between::Linear => Answer::Quotient(self.area, 2.0 * micros),
        }
    }
}

impl Series for TimeWeight {
    fn emptied(&self) -> TimeWeight {
        TimeWeight::new(self.between)
    }

    #[inline]
    fn push(&mut self, time: i64, x: f64) {
        let micros = match self.last_time() {
            Some(before) => micros_between(before, time),
            None => 0.0,
        };
        // Zero times an infinity would be NaN.
        if micros > 0.0 {
            self.area += micros
                * match self.between {
                    Between::Locf => self.last,
                    Between::Linear => self.last + x,
                };
        }
        self.last = x;
        self.has_special |= !x.is_finite();
        self.span.extend(time);
    }

    #[inline]
    fn last_time(&self) -> Option<i64> {
        self.span.has_begun.then_some(self.span.to)
    }
}

/// The time from the first row to the last.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
struct Span {
    has_begun: bool,
    from: i64,
    to: i64,
}

impl Span {
    #[inline]
    fn extend(&mut self, time: i64) {
        if !self.has_begun {
            (self.has_begun, self.from) = (true, time);
        }
        self.to = time;
    }

    /// The microseconds, if there are any.
    fn micros(&self) -> Option<f64> {
        Some(micros_between(self.from, self.to)).filter(|micros| *micros > 0.0)
    }
}

/// The microseconds from one time to another. A difference of two times may exceed 64 bits.
#[inline]
fn micros_between(from: i64, to: i64) -> f64 {
    match to.checked_sub(from) {
        Some(micros) => micros as f64,
        None => (i128::from(to) - i128::from(from)) as f64,
    }
}

/// A series for each group.
pub struct OverTime<S> {
    empty: S,
    answer: fn(&S) -> Answer,
    /// The sort of the rows, if they may come in any order.
    sort: Option<Box<dyn TimeSort>>,
    states: Vec<S>,
}

impl<S: Series> OverTime<S> {
    /// No group yet. The input is [`Input::Pair`] of a double and a time in microseconds.
    pub fn new(empty: S, answer: fn(&S) -> Answer, sort: Option<Box<dyn TimeSort>>) -> OverTime<S> {
        OverTime {
            empty,
            answer,
            sort,
            states: Vec::new(),
        }
    }
}

/// Adds a row, unless its time is infinite.
#[inline]
fn follow<S: Series>(series: &mut S, time: i64, x: f64) -> Evaluation<()> {
    if !is_counted(time) {
        return Ok(());
    }
    if series.last_time().is_some_and(|last| time < last) {
        return Err(EvaluationError::Disordered);
    }
    series.push(time, x);
    Ok(())
}

impl<S: Series> Accumulator for OverTime<S> {
    fn resize(&mut self, groups: usize) {
        self.states.resize(groups, self.empty);
    }

    fn add(&mut self, grouping: &Grouping<'_>, added: Added<'_>) -> Evaluation<()> {
        let Input::Pair(x, time) = *added.input else {
            return Ok(());
        };
        let (mut valued, mut timed) = (None, None);
        let counted = time.valid_in(x.valid_in(added.selection, &mut valued), &mut timed);
        // SAFETY: the operands have a double and a time for each row of the vector.
        let at = |row| unsafe { (time.get::<i64>(row), x.get::<f64>(row)) };
        let states = &mut self.states;
        if let Some(sort) = &mut self.sort {
            return each_row(grouping, counted, |row, group| {
                let (time, x) = at(row);
                if is_counted(time) {
                    let (group, time) = (group as u32, Some(time));
                    sort.put(Waiting { group, time, x });
                }
                Ok(())
            });
        }
        if let Grouping::One(group) = grouping {
            let mut series = states[*group as usize];
            counted.try_for_each(|row| {
                let (time, x) = at(row);
                follow(&mut series, time, x)
            })?;
            states[*group as usize] = series;
            return Ok(());
        }
        each_row(grouping, counted, |row, group| {
            let (time, x) = at(row);
            follow(&mut states[group], time, x)
        })
    }

    fn finish(&mut self) {
        if let Some(sort) = &mut self.sort {
            let states = &mut self.states;
            sort.drain(&mut |row| {
                if let Some(time) = row.time {
                    states[row.group as usize].push(time, row.x);
                }
            });
        }
    }

    fn answer(&self, group: usize) -> Answer {
        (self.answer)(&self.states[group])
    }

    fn clear(&mut self) {
        self.states = Vec::new();
    }

    /// Rows that are out of order are read again from the first on, and a sort is drained once.
    fn can_wait(&self) -> bool {
        false
    }

    fn bytes(&self) -> usize {
        self.states.capacity() * size_of::<S>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter(rows: &[(i64, f64)]) -> Counter {
        let mut counter = Counter::default();
        rows.iter().for_each(|(time, x)| counter.push(*time, *x));
        counter
    }

    fn number(answer: Answer) -> f64 {
        match answer {
            Answer::Number(scalar) => f64::of_scalar(scalar),
            Answer::Quotient(above, below) => above / below,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_restart_counts_from_zero() {
        let rows = [(0, 5.0), (1, 9.0), (2, 2.0), (3, 3.0), (2_000_000, 1.0)];
        // 4 to the restart, 3 after it, and 1 after the second one.
        assert_eq!(number(counter(&rows).increase()), 8.0);
        assert_eq!(number(counter(&rows).rate()), 4.0);
    }

    #[test]
    fn one_reading_has_an_increase_and_no_rate() {
        assert_eq!(counter(&[]).increase(), Answer::Null);
        assert_eq!(counter(&[]).rate(), Answer::Null);
        assert_eq!(number(counter(&[(7, 5.0)]).increase()), 0.0);
        assert_eq!(counter(&[(7, 5.0)]).rate(), Answer::Null);
        assert_eq!(counter(&[(7, 5.0), (7, 6.0)]).rate(), Answer::Null);
    }

    #[test]
    fn nan_is_no_reading_and_hides_no_restart() {
        let rows = [(0, f64::NAN), (1, 5.0), (2, f64::NAN), (3, 3.0)];
        assert_eq!(number(counter(&rows).increase()), 3.0);
    }

    #[test]
    fn overflow_is_no_infinity() {
        let rows = [(0, 1e308), (1, 1.0), (2, 1e308), (3, 1.0)];
        assert_eq!(counter(&rows).increase(), Answer::OutOfRange);
        let rows = [(0, 1.0), (1, f64::INFINITY)];
        assert_eq!(number(counter(&rows).increase()), f64::INFINITY);
        let mut weight = TimeWeight::new(Between::Linear);
        [0, 1, 2]
            .into_iter()
            .for_each(|time| weight.push(time, f64::MAX));
        assert_eq!(weight.average(), Answer::OutOfRange);
    }

    #[test]
    fn areas_by_both_methods() {
        let rows = [(0, 10.0), (10, 20.0), (10, 40.0), (40, 0.0)];
        let average = |between| {
            let mut weight = TimeWeight::new(between);
            rows.into_iter().for_each(|(time, x)| weight.push(time, x));
            number(weight.average())
        };
        assert_eq!(average(Between::Locf), (10.0 * 10.0 + 40.0 * 30.0) / 40.0);
        assert_eq!(average(Between::Linear), (15.0 * 10.0 + 20.0 * 30.0) / 40.0);
    }

    #[test]
    fn the_longest_span_is_positive() {
        assert!(micros_between(i64::MIN + 1, i64::MAX - 1) > 1.8e19);
    }
}
