//! The arguments of aggregates, evaluated for the rows of a vector.

use super::accumulator::Input;
use super::distinct::Distinct;
use crate::vector::Evaluation;
use crate::vector::frame::Frame;
use crate::vector::predicate::Predicate;
use crate::vector::selection::Selection;
use crate::vector::value::{Operand, Value};

/// The argument of an aggregate.
pub enum Argument {
    /// Nothing: `count(*)`.
    Nothing,
    /// A number.
    Number(Value),
    /// A boolean.
    Truth(Predicate),
    /// A column of any type, of which only NULLs matter.
    Presence(usize),
    /// Two numbers.
    Pair(Value, Value),
    /// A number, a parameter, and a time if the aggregate depends on the order of rows.
    Timed(Value, Value, Option<Value>),
    /// Whole rows, which the accumulator reads itself.
    Rows,
    /// One of the above. Each value counts once in a group.
    Distinct(Box<Distinct>),
}

impl Argument {
    /// The input of the accumulator, and those of the chosen rows that it gets. `valid` holds them if they are not all.
    #[inline]
    pub(super) fn evaluate<'a>(
        &mut self,
        frame: &Frame<'_>,
        chosen: &'a Selection,
        valid: &'a mut Option<Selection>,
    ) -> Evaluation<(Input, &'a Selection)> {
        Ok(match self {
            Argument::Nothing | Argument::Rows | Argument::Distinct(_) => (Input::Nothing, chosen),
            Argument::Presence(attribute) => {
                let present = valid.insert(frame.present(*attribute, chosen));
                (Input::Nothing, present)
            }
            Argument::Number(value) => {
                let operand = value.evaluate(frame, chosen)?;
                (Input::Number(operand), operand.valid_in(chosen, valid))
            }
            Argument::Truth(predicate) => {
                let truth = predicate.evaluate(frame, chosen)?;
                let valid = valid.insert(truth.yes.or(&truth.no));
                (Input::Truth(truth.yes), valid)
            }
            Argument::Pair(a, b) => {
                let a = a.evaluate(frame, chosen)?;
                let b = b.evaluate(frame, chosen)?;
                (Input::Pair(a, b), chosen)
            }
            Argument::Timed(x, parameter, time) => {
                let x = x.evaluate(frame, chosen)?;
                let parameter = parameter.evaluate(frame, chosen)?;
                let time = match time {
                    Some(time) => time.evaluate(frame, chosen)?,
                    None => Operand::Null,
                };
                (Input::Timed(x, parameter, time), chosen)
            }
        })
    }
}
