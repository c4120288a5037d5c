//! `lanes.ema`: the exponential moving average.
//!
//! ```text
//! ema = first x that is not NULL;  then ema = alpha * x + (1 - alpha) * ema        alpha = 2 / (span + 1)
//! ```
//! Each step needs the one before, so rows are added one by one. If all rows of a vector belong to
//! one group, its average stays in a register. The order of rows is one of three ([`Order`]):
//!
//! - *as they come*, if no order is requested;
//! - *by time, checked*: rows are expected in the order of time, which is the order of a table that
//!   grows. A row that comes too late is [`EvaluationError::Disordered`], because its average would
//!   need rows that are gone. The caller then starts again with
//! - *by time, sorted*: rows go to a [`TimeSort`], and are averaged in its order at the end.
//!
//! Of rows with equal times, the earlier row is first. NULL is later than all times. Rows whose x
//! is NULL change nothing and need no order.

use super::accumulator::{Accumulator, Added, Answer, Grouping, Input, each_row};
use crate::vector::number::{Number, NumberType, Scalar};
use crate::vector::selection::Selection;
use crate::vector::value::Operand;
use crate::vector::{Evaluation, EvaluationError, Weight, WeightFault};
use crate::with_number;

/// A row that is to be sorted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waiting {
    /// Its group.
    pub group: u32,
    /// Its time, as [`order_key`] gives it; `None` is NULL.
    pub time: Option<i64>,
    /// The number that is averaged.
    pub x: f64,
}

/// Sorts rows that may not fit into memory.
pub trait TimeSort {
    /// Adds a row.
    fn put(&mut self, row: Waiting);

    /// Returns all rows: those of a group in the order of their times, NULL last, and rows with
    /// equal times in the order in which they were added. Called once.
    fn drain(&mut self, take: &mut dyn FnMut(Waiting));
}

/// The order in which rows are averaged.
pub enum Order {
    /// As they come.
    Rows,
    /// By a time of this type. Rows are expected in its order.
    Checked(NumberType),
    /// By a time of this type. Rows may come in any order.
    Sorted(NumberType, Box<dyn TimeSort>),
}

/// The averages.
pub struct Ema {
    weight: Weight,
    order: Order,
    states: Vec<State>,
}

/// The average of a group.
#[derive(Clone, Copy)]
struct State {
    begun: bool,
    /// The given weight, once there was a row. It may not change.
    parameter: f64,
    alpha: f64,
    average: Option<f64>,
    times: Times,
}

/// The latest time that counted.
#[derive(Clone, Copy)]
struct Times {
    latest: i64,
    /// Whether this time was NULL.
    is_null: bool,
}

impl Weight {
    /// The alpha that a parameter stands for; `None`: the parameter is not valid.
    pub fn alpha(self, parameter: f64) -> Option<f64> {
        match self {
            Weight::Alpha => (parameter > 0.0 && parameter <= 1.0).then_some(parameter),
            Weight::Span => (parameter >= 1.0).then(|| 2.0 / (parameter + 1.0)),
        }
    }
}

/// The average after one more number. With an alpha of 1 it is that number. The formula would give
/// NaN after an infinity, because zero times infinity is NaN.
#[inline(always)]
pub fn step(alpha: f64, before: f64, x: f64) -> f64 {
    if alpha < 1.0 {
        alpha * x + (1.0 - alpha) * before
    } else {
        x
    }
}

/// An integer that orders like the number. For floats, -0 equals +0, and NaN is the greatest and
/// equals itself.
#[inline]
pub fn order_key<T: Number>(value: T) -> i64 {
    if !T::TYPE.is_float() {
        return value.to_scalar().0 as i64;
    }
    let value = value.to_f64();
    if value.is_nan() {
        return i64::MAX;
    }
    let bits = (value + 0.0).to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

impl Times {
    /// Checks the time of one more row.
    fn follow(&mut self, time: Option<i64>) -> Evaluation<()> {
        match time {
            None => self.is_null = true,
            Some(time) if !self.is_null && time >= self.latest => self.latest = time,
            Some(_) => return Err(EvaluationError::Disordered),
        }
        Ok(())
    }

    /// Checks the times of rows of one group.
    fn follow_all<T: Number>(
        &mut self,
        time: Operand,
        counted: &Selection,
        rows: usize,
    ) -> Evaluation<()> {
        let timed = time.valid(counted);
        if timed != *counted {
            // SAFETY: the operand has a `T` for each row of the vector.
            let at = |row| unsafe { key_of::<T>(time, &timed, row) };
            return counted.try_for_each(|row| self.follow(at(row)));
        }
        let (mut latest, mut falls) = (self.latest, self.is_null);
        counted.for_each_of(rows, |row| {
            // SAFETY: as above.
            let key = order_key(unsafe { time.get::<T>(row) });
            falls |= key < latest;
            latest = key;
        });
        if falls {
            return Err(EvaluationError::Disordered);
        }
        self.latest = latest;
        Ok(())
    }
}

/// The time of a row.
///
/// # Safety
/// The operand is of type `T`, the row is one of its vector, and `timed` holds those that are not NULL.
unsafe fn key_of<T: Number>(time: Operand, timed: &Selection, row: usize) -> Option<i64> {
    // SAFETY: the caller's promise.
    timed
        .contains(row)
        .then(|| order_key(unsafe { time.get::<T>(row) }))
}

impl State {
    /// Checks the weight of a row.
    #[inline]
    fn begin(&mut self, weight: Weight, parameter: Option<Scalar>) -> Evaluation<()> {
        let fault = |fault| Err(EvaluationError::Weight(weight, fault));
        let Some(scalar) = parameter else {
            return fault(WeightFault::Null);
        };
        let parameter = f64::of_scalar(scalar);
        if !self.begun {
            let Some(alpha) = weight.alpha(parameter) else {
                return fault(WeightFault::Illegal(scalar));
            };
            (self.begun, self.parameter, self.alpha) = (true, parameter, alpha);
        } else if self.parameter != parameter {
            return fault(WeightFault::Changed);
        }
        Ok(())
    }

    #[inline]
    fn push(&mut self, x: f64) {
        self.average = Some(match self.average {
            Some(before) => step(self.alpha, before, x),
            None => x,
        });
    }

    /// Adds rows of this group alone.
    fn push_all(&mut self, x: Operand, counted: &Selection, rows: usize) {
        let Some(first) = counted.next(0) else { return };
        // The first number becomes the average without a computation, which would not return it to
        // the bit.
        let (mut average, mut rest) = (self.average.unwrap_or_default(), *counted);
        if self.average.is_none() {
            // SAFETY: a double for each row of the vector.
            average = unsafe { x.get::<f64>(first) };
            rest = counted.within(first + 1, rows);
        }
        let alpha = self.alpha;
        rest.for_each_of(rows, |row| {
            // SAFETY: as above.
            average = step(alpha, average, unsafe { x.get::<f64>(row) });
        });
        self.average = Some(average);
    }
}

impl Ema {
    /// States without groups. The input is [`Input::Timed`] of a double, the weight as a double,
    /// and a time if `order` has one.
    pub fn new(weight: Weight, order: Order) -> Ema {
        Ema {
            weight,
            order,
            states: Vec::new(),
        }
    }

    /// Checks the weights of the selected rows.
    fn begin(
        &mut self,
        grouping: &Grouping<'_>,
        parameter: Operand,
        selection: &Selection,
    ) -> Evaluation<()> {
        let weight = self.weight;
        if let (Grouping::One(group), Operand::Same(scalar)) = (grouping, parameter) {
            return self.states[*group as usize].begin(weight, Some(scalar));
        }
        let given = parameter.valid(selection);
        each_row(grouping, selection, |row, group| {
            // SAFETY: the operand has a double for each row of the vector.
            let value = || unsafe { parameter.get::<f64>(row) }.to_scalar();
            self.states[group].begin(weight, given.contains(row).then(value))
        })
    }
}

impl Accumulator for Ema {
    fn resize(&mut self, groups: usize) {
        let empty = State {
            begun: false,
            parameter: 0.0,
            alpha: 0.0,
            average: None,
            times: Times {
                latest: i64::MIN,
                is_null: false,
            },
        };
        self.states.resize(groups, empty);
    }

    fn add(&mut self, grouping: &Grouping<'_>, added: Added<'_>) -> Evaluation<()> {
        let Input::Timed(x, parameter, time) = *added.input else {
            return Ok(());
        };
        let (selection, rows) = (added.selection, added.rows);
        self.begin(grouping, parameter, selection)?;
        let counted = x.valid(selection);
        let states = &mut self.states;
        match &mut self.order {
            Order::Rows => {}
            Order::Checked(number) => with_number!(*number, T => match grouping {
                Grouping::One(group) => {
                    states[*group as usize].times.follow_all::<T>(time, &counted, rows)?;
                }
                _ => {
                    let timed = time.valid(&counted);
                    each_row(grouping, &counted, |row, group| {
                        // SAFETY: the operand has a `T` for each row of the vector.
                        states[group].times.follow(unsafe { key_of::<T>(time, &timed, row) })
                    })?;
                }
            }),
            Order::Sorted(number, sort) => {
                return with_number!(*number, T => {
                    let timed = time.valid(&counted);
                    each_row(grouping, &counted, |row, group| {
                        // SAFETY: as above, and a double.
                        let (time, x) = unsafe { (key_of::<T>(time, &timed, row), x.get(row)) };
                        sort.put(Waiting { group: group as u32, time, x });
                        Ok(())
                    })
                });
            }
        }
        if let Grouping::One(group) = grouping {
            states[*group as usize].push_all(x, &counted, rows);
            return Ok(());
        }
        each_row(grouping, &counted, |row, group| {
            // SAFETY: as above.
            states[group].push(unsafe { x.get(row) });
            Ok(())
        })
    }

    fn finish(&mut self) {
        if let Order::Sorted(_, sort) = &mut self.order {
            let states = &mut self.states;
            sort.drain(&mut |row| states[row.group as usize].push(row.x));
        }
    }

    fn answer(&self, group: usize) -> Answer {
        let average = self.states[group].average;
        average.map_or(Answer::Null, |average| Answer::Number(average.to_scalar()))
    }

    fn clear(&mut self) {
        self.states = Vec::new();
    }

    /// Rows that are out of order are read again from the first on, and a sort is drained once.
    fn can_wait(&self) -> bool {
        matches!(self.order, Order::Rows)
    }

    fn bytes(&self) -> usize {
        self.states.capacity() * size_of::<State>()
    }
}
