//! Aggregates over the frame of each position.
//!
//! ```text
//! 1  the frame begins after the rows that were added, or in another partition ──► forget all; begin at the frame
//! 2  the frame begins later than before ──► remove the rows before it, or forget all where that would not be exact
//! 3  add the rows up to the frame's end; the state is the result
//! ```
//! Neither bound of a frame falls within a partition. Where rows can be removed, each is added once
//! and removed once. Sums of floats are added again from the frame's first row on, as PostgreSQL
//! does, because removing a float is not exact.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::Range;

use super::arrange::{Arrangement, SortKey};
use super::frames::{Bound, Frame};
use super::numbers::NumberColumn;
use super::sliding_sums::{self, Float};
use super::{Call, Function, Output, frames};
use crate::interrupt::Steps;
use crate::vector::number::{Number, NumberType, Operation};
use crate::vector::{Evaluation, EvaluationError};
use crate::with_number;

/// The squares of numbers up to this one can be summed for any number of rows.
const SQUARED_MAX: f64 = 1e140;

/// The state of an aggregate over a frame.
trait Sliding {
    /// Forgets all rows.
    fn clear(&mut self);
    /// Adds the row at a position.
    fn add(&mut self, position: usize) -> Evaluation<()>;
    /// Removes the first rows; false if that is not possible.
    fn remove(&mut self, positions: Range<usize>) -> bool;
    /// Appends the result.
    fn push(&mut self);
}

/// Computes a call of an aggregate.
///
/// # Errors
/// A sum is out of range.
pub fn aggregate(
    call: &Call,
    order: &Arrangement,
    keys: &[SortKey],
    argument: Option<(&NumberColumn, NumberType)>,
) -> Evaluation<Output> {
    let rows = order.rows.len();
    let number = argument.map_or(NumberType::I64, |(_, number)| number);
    let column = argument.map(|(column, _)| order.by_position(column));
    let mut results = NumberColumn::with_room(rows);
    let run = Run { call, order, keys };
    let Some(column) = column.as_deref() else {
        run.slide(&mut Counted::new(None, &mut results))?;
        return Ok(Output::Numbers(results));
    };
    match (call.function, number) {
        (Function::Sum, NumberType::I64) | (Function::Average, _) if !number.is_float() => {
            let mut sums = Vec::with_capacity(rows);
            let push = |sum: i128, count: u64| sums.push((sum, count));
            run.slide(&mut Integers::new(column, push))?;
            return Ok(Output::Sums(sums));
        }
        (Function::Sum, NumberType::F32) => run.sum_floats::<f32>(column, &mut results)?,
        (Function::Sum, NumberType::F64) => run.sum_floats::<f64>(column, &mut results)?,
        (Function::Average, NumberType::F32) => run.average_floats::<f32>(column, &mut results)?,
        (Function::Average, _) => run.average_floats::<f64>(column, &mut results)?,
        (Function::Sum, _) => {
            let push = |sum: i128, count: u64| match count {
                0 => results.push_null(),
                _ => results.push_value(sum as i64 as u64),
            };
            run.slide(&mut Integers::new(column, push))?;
        }
        (Function::Minimum | Function::Maximum, _) => {
            let wanted = match call.function {
                Function::Minimum => Ordering::Less,
                _ => Ordering::Greater,
            };
            with_number!(number, T => {
                let is_growing = call.frame.start == frames::Bound::Unbounded;
                let mut extreme = Extreme::<T>::new(column, wanted, is_growing, &mut results);
                run.slide(&mut extreme)?;
            });
        }
        _ => run.slide(&mut Counted::new(Some(column), &mut results))?,
    }
    Ok(Output::Numbers(results))
}

/// A call with the rows it is computed for.
struct Run<'a> {
    call: &'a Call,
    order: &'a Arrangement,
    keys: &'a [SortKey],
}

impl Run<'_> {
    /// Computes an aggregate for each position.
    fn slide(&self, state: &mut impl Sliding) -> Evaluation<()> {
        let steps = Steps::default();
        let (mut from, mut to, mut failed) = (0, 0, None);
        frames::each(self.order, self.keys, self.call.frame, |frame| {
            if failed.is_some() {
                return;
            }
            if frame.start >= to {
                state.clear();
                (from, to) = (frame.start, frame.start);
            } else if frame.start > from {
                if !state.remove(from..frame.start) {
                    state.clear();
                    to = frame.start;
                }
                from = frame.start;
            }
            while to < frame.end {
                steps.step();
                if let Err(failure) = state.add(to) {
                    failed = Some(failure);
                    return;
                }
                to += 1;
            }
            state.push();
        })?;
        failed.map_or(Ok(()), Err)
    }

    /// The offsets of the frame's first and last row, if it has a fixed number of rows.
    fn offsets(&self) -> Option<(i64, i64)> {
        match self.call.frame {
            Frame {
                start: Bound::Row(start),
                end: Bound::Row(end),
            } => Some((start, end)),
            _ => None,
        }
    }

    fn sum_floats<T: Float>(
        &self,
        column: &NumberColumn,
        results: &mut NumberColumn,
    ) -> Evaluation<()> {
        if let Some(offsets) = self.offsets() {
            let push = |sums: &[T], _| match sums {
                [] => results.push_null(),
                _ => results.push_values(sums.iter().map(|sum| sum.to_scalar().0)),
            };
            if sliding_sums::each(column, self.order, offsets, false, push) {
                return Ok(());
            }
        }
        self.slide(&mut Floats::<T>::new(column, results))
    }

    fn average_floats<T: Float>(
        &self,
        column: &NumberColumn,
        results: &mut NumberColumn,
    ) -> Evaluation<()> {
        let mut means = Means::<T>::new(column, results);
        // PostgreSQL averages reals as doubles.
        if let Some(offsets) = self.offsets().filter(|_| T::TYPE == NumberType::F64)
            && !means.has_squares
        {
            let push = |sums: &[f64], rows: usize| match sums {
                [] => means.results.push_null(),
                _ => {
                    let mean = |sum: &f64| (sum / rows as f64).to_bits();
                    means.results.push_values(sums.iter().map(mean));
                }
            };
            if sliding_sums::each(column, self.order, offsets, true, push) {
                return Ok(());
            }
        }
        self.slide(&mut means)
    }
}

/// `count`: of all rows, or of those that are not NULL.
struct Counted<'a> {
    column: Option<&'a NumberColumn>,
    count: u64,
    results: &'a mut NumberColumn,
}

impl<'a> Counted<'a> {
    fn new(column: Option<&'a NumberColumn>, results: &'a mut NumberColumn) -> Counted<'a> {
        Counted {
            column,
            count: 0,
            results,
        }
    }

    fn counts(&self, position: usize) -> bool {
        self.column.is_none_or(|column| !column.is_null(position))
    }
}

impl Sliding for Counted<'_> {
    fn clear(&mut self) {
        self.count = 0;
    }

    fn add(&mut self, position: usize) -> Evaluation<()> {
        self.count += u64::from(self.counts(position));
        Ok(())
    }

    fn remove(&mut self, positions: Range<usize>) -> bool {
        let removed = positions.filter(|position| self.counts(*position)).count();
        self.count -= removed as u64;
        true
    }

    fn push(&mut self) {
        self.results.push_value(self.count);
    }
}

/// Exact sums of integers, each with how many there are.
struct Integers<'a, P> {
    column: &'a NumberColumn,
    sum: i128,
    count: u64,
    push: P,
}

impl<'a, P: FnMut(i128, u64)> Integers<'a, P> {
    fn new(column: &'a NumberColumn, push: P) -> Self {
        Integers {
            column,
            sum: 0,
            count: 0,
            push,
        }
    }

    /// The integer at a position. Scalars of integers are sign-extended.
    fn value(&self, position: usize) -> Option<i128> {
        let value = self.column.get(position)?;
        Some(i128::from(value.0 as i64))
    }
}

impl<P: FnMut(i128, u64)> Sliding for Integers<'_, P> {
    fn clear(&mut self) {
        (self.sum, self.count) = (0, 0);
    }

    fn add(&mut self, position: usize) -> Evaluation<()> {
        if let Some(value) = self.value(position) {
            self.sum += value;
            self.count += 1;
        }
        Ok(())
    }

    fn remove(&mut self, positions: Range<usize>) -> bool {
        for position in positions {
            if let Some(value) = self.value(position) {
                self.sum -= value;
                self.count -= 1;
            }
        }
        true
    }

    fn push(&mut self) {
        (self.push)(self.sum, self.count);
    }
}

/// Sums of floats.
struct Floats<'a, T> {
    column: &'a NumberColumn,
    sum: Option<T>,
    results: &'a mut NumberColumn,
}

impl<'a, T: Number> Floats<'a, T> {
    fn new(column: &'a NumberColumn, results: &'a mut NumberColumn) -> Self {
        Floats {
            column,
            sum: None,
            results,
        }
    }
}

impl<T: Number> Sliding for Floats<'_, T> {
    fn clear(&mut self) {
        self.sum = None;
    }

    #[inline]
    fn add(&mut self, position: usize) -> Evaluation<()> {
        let Some(value) = self.column.get(position).map(T::of_scalar) else {
            return Ok(());
        };
        self.sum = Some(match self.sum {
            None => value,
            Some(sum) => match sum.apply_fast(Operation::Add, value) {
                (sum, false) => sum,
                (_, true) => sum.apply(Operation::Add, value)?,
            },
        });
        Ok(())
    }

    fn remove(&mut self, _positions: Range<usize>) -> bool {
        false
    }

    fn push(&mut self) {
        self.results.push(self.sum.map(Number::to_scalar));
    }
}

/// Means of floats. PostgreSQL keeps the sum of squares of differences, too: it does not return it,
/// but raises an error if it overflows.
struct Means<'a, T> {
    column: &'a NumberColumn,
    count: f64,
    sum: f64,
    squares: f64,
    /// Whether the squares may overflow.
    has_squares: bool,
    results: &'a mut NumberColumn,
    number: std::marker::PhantomData<T>,
}

impl<'a, T: Number> Means<'a, T> {
    fn new(column: &'a NumberColumn, results: &'a mut NumberColumn) -> Self {
        let mut values = (0..column.len()).filter_map(|row| column.get(row).map(T::of_scalar));
        let is_large = |value: f64| value.is_finite() && value.abs() > SQUARED_MAX;
        Means {
            column,
            count: 0.0,
            sum: 0.0,
            squares: 0.0,
            has_squares: values.any(|value| is_large(value.to_f64())),
            results,
            number: std::marker::PhantomData,
        }
    }

    /// Adds the square of a value's difference, after the value was added, as `float8_accum` does.
    fn add_square(&mut self, value: f64, sum_before: f64) -> Evaluation<()> {
        if self.count > 1.0 {
            let difference = value * self.count - self.sum;
            self.squares += difference * difference / (self.count * (self.count - 1.0));
            if self.sum.is_infinite() || self.squares.is_infinite() {
                if !sum_before.is_infinite() && !value.is_infinite() {
                    return Err(EvaluationError::FloatOverflow);
                }
                self.squares = f64::NAN;
            }
        } else if !value.is_finite() {
            self.squares = f64::NAN;
        }
        Ok(())
    }
}

impl<T: Number> Sliding for Means<'_, T> {
    fn clear(&mut self) {
        (self.count, self.sum, self.squares) = (0.0, 0.0, 0.0);
    }

    #[inline]
    fn add(&mut self, position: usize) -> Evaluation<()> {
        let Some(value) = self.column.get(position) else {
            return Ok(());
        };
        let (value, before) = (T::of_scalar(value).to_f64(), self.sum);
        self.count += 1.0;
        self.sum += value;
        match self.has_squares {
            true => self.add_square(value, before),
            false => Ok(()),
        }
    }

    fn remove(&mut self, _positions: Range<usize>) -> bool {
        false
    }

    fn push(&mut self) {
        match self.count == 0.0 {
            true => self.results.push_null(),
            false => {
                let mean = self.sum / self.count;
                self.results.push_value(mean.to_bits());
            }
        }
    }
}

/// The least or the greatest value.
///
/// The queue has the positions of the frame that no later position of the frame outdoes. Of values
/// that are equal the last counts, as in PostgreSQL: -0 and 0 are equal.
struct Extreme<'a, T> {
    column: &'a NumberColumn,
    wanted: Ordering,
    /// Whether no row leaves the frame before its partition ends.
    is_growing: bool,
    queue: VecDeque<(usize, T)>,
    results: &'a mut NumberColumn,
}

impl<'a, T: Number> Extreme<'a, T> {
    fn new(
        column: &'a NumberColumn,
        wanted: Ordering,
        is_growing: bool,
        results: &'a mut NumberColumn,
    ) -> Self {
        Extreme {
            column,
            wanted,
            is_growing,
            queue: VecDeque::new(),
            results,
        }
    }
}

impl<T: Number> Sliding for Extreme<'_, T> {
    fn clear(&mut self) {
        self.queue.clear();
    }

    #[inline]
    fn add(&mut self, position: usize) -> Evaluation<()> {
        let Some(value) = self.column.get(position).map(T::of_scalar) else {
            return Ok(());
        };
        while let Some((_, last)) = self.queue.back()
            && last.order(value) != self.wanted
        {
            self.queue.pop_back();
        }
        // Where no row leaves, a worse one never becomes the first.
        if !self.is_growing || self.queue.is_empty() {
            self.queue.push_back((position, value));
        }
        Ok(())
    }

    fn remove(&mut self, positions: Range<usize>) -> bool {
        while let Some((first, _)) = self.queue.front()
            && *first < positions.end
        {
            self.queue.pop_front();
        }
        true
    }

    fn push(&mut self) {
        let first = self.queue.front();
        self.results.push(first.map(|(_, value)| value.to_scalar()));
    }
}
