//! `sum`, `avg`, `min` and `max` of `numeric`, with integers where the values fit.
//!
//! ```text
//! vector ── decimals ── fit ───────► sums and extremes as integers ─┐
//!                    └─ do not fit ► PostgreSQL's transition states ─┴► both of a group together ► result
//! ```
//! Most groups have integers alone. Where a group has a state of PostgreSQL's too, its sum in integers becomes a state
//! in the form that workers hand over, and PostgreSQL combines the two.

use lanes_columnar::aggregate::decimal::{DecimalExtremes, DecimalSum, DecimalSums};
use lanes_columnar::aggregate::extreme::End;
use lanes_columnar::aggregate::{Accumulator, Added, Answer, Grouping};
use lanes_columnar::vector::Evaluation;
use lanes_columnar::vector::decimal::{DecimalValue, Decimals};
use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::selection::Selection;
use pgrx::IntoDatum;
use pgrx::pg_sys::Datum;

use super::transition::TransitionAggregate;
use crate::pg::numeric::Numeric;
use crate::pg::numeric_digits::NumericDigits;

/// The states in integers.
pub enum DecimalStates {
    /// Of `sum`.
    Sum(DecimalSums),
    /// Of `avg`.
    Average(DecimalSums),
    /// Of `min` or `max`.
    Extreme(End, DecimalExtremes),
}

impl DecimalStates {
    /// Adds decimals; false if they do not fit.
    fn add(&mut self, grouping: &Grouping<'_>, decimals: &Decimals, rows: usize) -> bool {
        match self {
            DecimalStates::Sum(sums) | DecimalStates::Average(sums) => {
                sums.add(grouping, decimals, rows)
            }
            DecimalStates::Extreme(_, extremes) => extremes.add(grouping, decimals, rows),
        }
    }
}

/// An aggregate of decimals, and the same aggregate of any numerics.
pub struct DecimalAggregate {
    argument: DecimalValue,
    states: DecimalStates,
    general: TransitionAggregate,
    /// Whether the results are states of a worker.
    is_partial: bool,
}

impl DecimalAggregate {
    /// An aggregate of an argument. `general` is the same aggregate, and can [merge](TransitionAggregate::new) states
    /// of sums. There is no group yet.
    pub fn new(
        argument: DecimalValue,
        states: DecimalStates,
        general: TransitionAggregate,
        is_partial: bool,
    ) -> DecimalAggregate {
        DecimalAggregate {
            argument,
            states,
            general,
            is_partial,
        }
    }

    /// The result of a sum and the general state of a group.
    fn answer_of_sum(&self, group: usize, sum: DecimalSum, is_average: bool) -> Answer {
        if self.general.has_state(group) {
            return self.general.answer_with(group, &serialised(sum));
        }
        let result = match (self.is_partial, is_average) {
            (true, _) => serialised(sum).into_datum().unwrap_or(Datum::null()),
            (false, false) => Numeric::from_scaled(sum.sum, sum.scale).datum(),
            (false, true) => {
                let count = Numeric::from_integer(sum.count.into());
                let sum = Numeric::from_scaled(sum.sum, sum.scale);
                sum.divided_by(count).datum()
            }
        };
        Answer::Bits(result.value() as u64)
    }
}

impl Accumulator for DecimalAggregate {
    fn resize(&mut self, groups: usize) {
        match &mut self.states {
            DecimalStates::Sum(sums) | DecimalStates::Average(sums) => sums.resize(groups),
            DecimalStates::Extreme(_, extremes) => extremes.resize(groups),
        }
        self.general.resize(groups);
    }

    fn add(&mut self, _grouping: &Grouping<'_>, _added: Added<'_>) -> Evaluation<()> {
        unreachable!("an aggregate of rows")
    }

    fn begin_vector(&mut self) {
        self.argument.forget();
    }

    fn add_rows(
        &mut self,
        grouping: &Grouping<'_>,
        frame: &Frame<'_>,
        selection: &Selection,
    ) -> Evaluation<()> {
        if let Some(decimals) = self.argument.evaluate(frame, selection)?
            && self.states.add(grouping, &decimals, frame.rows)
        {
            return Ok(());
        }
        self.general.add_rows(grouping, frame, selection)
    }

    fn clear(&mut self) {
        match &mut self.states {
            DecimalStates::Sum(sums) | DecimalStates::Average(sums) => sums.clear(),
            DecimalStates::Extreme(_, extremes) => extremes.clear(),
        }
        self.general.clear();
    }

    fn can_wait(&self) -> bool {
        self.general.can_wait()
    }

    fn answer(&self, group: usize) -> Answer {
        let general = self.general.answer(group);
        match &self.states {
            DecimalStates::Sum(sums) | DecimalStates::Average(sums) => match sums.sum(group) {
                None => general,
                Some(sum) => {
                    let is_average = matches!(self.states, DecimalStates::Average(_));
                    self.answer_of_sum(group, sum, is_average)
                }
            },
            DecimalStates::Extreme(end, extremes) => match (extremes.extreme(group), general) {
                (None, general) => general,
                (Some(extreme), general) => {
                    let extreme = Numeric::from_scaled(extreme.value.into(), extreme.scale);
                    Answer::Bits(further(*end, extreme, general).datum().value() as u64)
                }
            },
        }
    }

    fn bytes(&self) -> usize {
        let states = match &self.states {
            DecimalStates::Sum(sums) | DecimalStates::Average(sums) => sums.bytes(),
            DecimalStates::Extreme(_, extremes) => extremes.bytes(),
        };
        states + self.general.bytes()
    }
}

/// The further of an extreme and the general extreme of a group, if it has one.
fn further(end: End, extreme: Numeric, general: Answer) -> Numeric {
    let Answer::Bits(general) = general else {
        return extreme;
    };
    let general = Numeric::new(Datum::from(general));
    let is_further = match end {
        End::Minimum => extreme.is_greater(general),
        End::Maximum => general.is_greater(extreme),
    };
    if is_further { general } else { extreme }
}

/// A sum in the form that `numeric_avg_serialize` writes. All numbers are finite, and counts of numbers with the
/// greatest scale are for moving windows only.
fn serialised(sum: DecimalSum) -> Vec<u8> {
    let mut bytes = sum.count.to_be_bytes().to_vec();
    NumericDigits::of(sum.sum, sum.scale).push_state(&mut bytes);
    bytes.extend(u32::from(sum.scale).to_be_bytes());
    let (with_scale, nan, infinity, minus_infinity) = (sum.count, 0_u64, 0_u64, 0_u64);
    for count in [with_scale, nan, infinity, minus_infinity] {
        bytes.extend(count.to_be_bytes());
    }
    bytes
}
