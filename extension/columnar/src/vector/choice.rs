//! `CASE` and `COALESCE`: the number of the first branch that a row takes.
//!
//! A branch is evaluated only for rows that no branch before it took, and its value only for rows that take it. So an
//! error is raised only for a row for which PostgreSQL raises it too.

use super::Evaluation;
use super::frame::Frame;
use super::number::NumberType;
use super::predicate::Predicate;
use super::row_numbers::RowNumbers;
use super::selection::Selection;
use super::value::{Operand, Value};

/// Which rows take a branch.
pub enum Condition {
    /// Rows for which a predicate holds.
    Holds(Predicate),
    /// Rows whose value in this branch is not NULL.
    IsPresent,
    /// All rows.
    Always,
}

/// Branches of one type. A row that takes none is NULL.
pub struct Choice {
    number: NumberType,
    branches: Vec<(Condition, Value)>,
    chosen: RowNumbers,
}

impl Choice {
    /// A choice between values of a type.
    ///
    /// # Panics
    /// If a value is of another type.
    pub fn new(number: NumberType, branches: Vec<(Condition, Value)>) -> Choice {
        let mut values = branches.iter().map(|(_, value)| value);
        assert!(
            values.all(|value| value.number() == number),
            "branches of one type"
        );
        Choice {
            number,
            branches,
            chosen: RowNumbers::new(),
        }
    }

    /// The type of the result.
    pub(super) fn number(&self) -> NumberType {
        self.number
    }

    /// The numbers of the selected rows.
    pub(super) fn evaluate(
        &mut self,
        frame: &Frame<'_>,
        selection: &Selection,
    ) -> Evaluation<Operand> {
        self.chosen.clear();
        let mut open = *selection;
        for (condition, value) in &mut self.branches {
            if open.is_empty() {
                break;
            }
            let (taken, operand) = match condition {
                Condition::Holds(predicate) => {
                    let taken = predicate.evaluate(frame, &open)?.yes;
                    if taken.is_empty() {
                        continue;
                    }
                    (taken, value.evaluate(frame, &taken)?)
                }
                Condition::IsPresent => {
                    let operand = value.evaluate(frame, &open)?;
                    (operand.valid(&open), operand)
                }
                Condition::Always => (open, value.evaluate(frame, &open)?),
            };
            // SAFETY: the value has this type, and the rows are rows of the frame's vector.
            unsafe { self.chosen.copy(self.number, operand, frame.rows, &taken) };
            open = open.and_not(&taken);
        }
        Ok(self.chosen.operand(selection))
    }
}
