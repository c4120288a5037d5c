//! The answers of an aggregation.

use std::ops::Range;

use super::{Accumulator, Aggregation, Answer, Numbers};

impl Aggregation {
    /// From now on, answers are named by their places in a list, which has the aggregate that each
    /// is of.
    pub fn with_answers_of(self, aggregates: Vec<usize>) -> Aggregation {
        Aggregation {
            answers: Some(aggregates),
            ..self
        }
    }

    /// The states that an answer is of.
    fn states(&self, answer: usize) -> &dyn Accumulator {
        let place = self.answers.as_ref().map_or(answer, |all| all[answer]);
        &*self.aggregates[place].accumulator
    }

    /// The answer of an aggregate for a group.
    pub fn answer(&self, group: usize, aggregate: usize) -> Answer {
        self.states(aggregate).answer(group)
    }

    /// The answer of an aggregate for a group, if it is [`Answer::List`].
    pub fn list(&self, group: usize, aggregate: usize) -> &[u32] {
        self.states(aggregate).list(group)
    }

    /// The answers of an aggregate for a group, if its answer is [`Answer::Several`].
    pub fn several(&self, group: usize, aggregate: usize) -> &[Answer] {
        self.states(aggregate).several(group)
    }

    /// Writes the answers of an aggregate for some groups, as [`Accumulator::numbers`] does; false
    /// if it does not.
    pub fn numbers(&self, aggregate: usize, groups: Range<usize>, out: &mut Numbers<'_>) -> bool {
        self.states(aggregate).numbers(groups, out)
    }
}
