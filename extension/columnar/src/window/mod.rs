//! The window functions `lanes.ema`, `lanes.delta` and `lanes.rate`: functions of the row before
//! and of all rows so far.
//!
//! ```text
//! rows in the order of time ── partition's id ──► state of the partition ──► the row's value
//! ```
//! The rows of all partitions come interleaved in one order, and each partition has a state of a
//! few words. Peers, which are rows of equal time, share the average of the last of them: the
//! caller reads it from the state after adding the last peer.
//!
//! | function | state | a row that has NULL |
//! |---|---|---|
//! | ema | the average | keeps the average |
//! | delta | the last x | is NULL, and does not change the state |
//! | rate | the last x and its time | is NULL, and does not change the state; so is a row whose time is infinite |

use crate::aggregate::ema::step;
use crate::vector::number::{Number, NumberType, Operation, Scalar};
use crate::vector::{Evaluation, EvaluationError};
use crate::with_number;

/// A window function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Function {
    /// The exponential moving average with this alpha. The error of an invalid weight is raised by
    /// the first row.
    Ema(Evaluation<f64>),
    /// A number of this type minus the one before.
    Delta(NumberType),
    /// A double's increase a second, of times in microseconds.
    Rate,
}

/// A function with its states, one a partition.
pub struct Window {
    function: Function,
    states: Vec<State>,
}

/// The state of a partition.
#[derive(Clone, Copy)]
struct State {
    is_there: bool,
    x: Scalar,
    time: i64,
}

impl Window {
    /// No partition yet.
    pub fn new(function: Function) -> Window {
        Window {
            function,
            states: Vec::new(),
        }
    }

    /// Sets the number of partitions.
    pub fn resize(&mut self, partitions: usize) {
        let nothing = State {
            is_there: false,
            x: Scalar(0),
            time: 0,
        };
        self.states.resize(partitions, nothing);
    }

    /// The type of its values.
    pub fn number(&self) -> NumberType {
        match self.function {
            Function::Delta(number) => number,
            Function::Ema(_) | Function::Rate => NumberType::F64,
        }
    }

    /// Whether a row's value is that of all rows so far, which peers have in common.
    pub fn is_of_frame(&self) -> bool {
        matches!(self.function, Function::Ema(_))
    }

    /// Adds a row: its x and, for a rate, its time. Returns the row's value, if the row has no
    /// peers.
    ///
    /// # Errors
    /// A result out of range, or an invalid weight.
    #[inline]
    pub fn step(
        &mut self,
        partition: usize,
        x: Option<Scalar>,
        time: Option<i64>,
    ) -> Evaluation<Option<Scalar>> {
        let state = &mut self.states[partition];
        match self.function {
            Function::Ema(alpha) => {
                let alpha = alpha?;
                if let Some(x) = x {
                    state.x = match state.is_there {
                        true => step(alpha, f64::of_scalar(state.x), f64::of_scalar(x)).to_scalar(),
                        false => x,
                    };
                    state.is_there = true;
                }
                Ok(state.is_there.then_some(state.x))
            }
            Function::Delta(number) => {
                let Some(x) = x else { return Ok(None) };
                let Some(before) = state.replace(x, 0) else {
                    return Ok(None);
                };
                with_number!(number, T => {
                    let (x, before) = (T::of_scalar(x), T::of_scalar(before.x));
                    Ok(Some(x.apply(Operation::Subtract, before)?.to_scalar()))
                })
            }
            Function::Rate => {
                let (Some(x), Some(time)) = (x, time) else {
                    return Ok(None);
                };
                if matches!(time, i64::MIN | i64::MAX) {
                    return Ok(None);
                }
                let Some(before) = state.replace(x, time) else {
                    return Ok(None);
                };
                let found = rate(
                    f64::of_scalar(before.x),
                    before.time,
                    f64::of_scalar(x),
                    time,
                )?;
                Ok(found.map(Number::to_scalar))
            }
        }
    }

    /// The average of a partition's rows so far.
    #[inline]
    pub fn average(&self, partition: usize) -> Option<Scalar> {
        let state = &self.states[partition];
        state.is_there.then_some(state.x)
    }

    /// Bytes that the states take.
    pub fn bytes(&self) -> usize {
        self.states.capacity() * size_of::<State>()
    }
}

impl State {
    /// Replaces the state by this row, and returns the state before if there was a row.
    #[inline]
    fn replace(&mut self, x: Scalar, time: i64) -> Option<State> {
        let row = State {
            is_there: true,
            x,
            time,
        };
        let before = std::mem::replace(self, row);
        before.is_there.then_some(before)
    }
}

/// A counter's increase a second between two rows, times in microseconds. A counter that has gone
/// down began again at zero. `None` if time did not pass.
///
/// # Errors
/// [`EvaluationError::FloatOverflow`] and [`EvaluationError::FloatUnderflow`].
pub fn rate(x_before: f64, ts_before: i64, x: f64, ts: i64) -> Evaluation<Option<f64>> {
    if ts <= ts_before {
        return Ok(None);
    }
    let increase = match x < x_before {
        true => x,
        false => x.apply(Operation::Subtract, x_before)?,
    };
    let micros = (i128::from(ts) - i128::from(ts_before)) as f64;
    let rate: Result<f64, EvaluationError> = increase.apply(Operation::Divide, micros / 1e6);
    rate.map(Some)
}

#[cfg(test)]
mod tests;
