//! `lanes.first` and `lanes.last`: the value at the smallest or greatest time.

use std::cmp::Ordering;

use super::accumulator::{Accumulator, Added, Answer, Grouping, Input, each_row};
use super::extreme::End;
use crate::vector::Evaluation;
use crate::vector::number::Number;

/// The value, which may be NULL, of the row with the smallest or greatest time. Rows without a time
/// do not count. Of rows with equal times, `first` keeps the earliest row and `last` keeps the
/// latest.
pub struct Edge<V, T> {
    end: End,
    best: Vec<Option<(T, Option<V>)>>,
}

impl<V: Number, T: Number> Edge<V, T> {
    /// No group yet.
    pub fn new(end: End) -> Self {
        Edge {
            end,
            best: Vec::new(),
        }
    }
}

impl<V: Number, T: Number> Accumulator for Edge<V, T> {
    fn resize(&mut self, groups: usize) {
        self.best.resize(groups, None);
    }

    fn add(&mut self, grouping: &Grouping<'_>, added: Added<'_>) -> Evaluation<()> {
        let Input::Pair(value, time) = *added.input else {
            return Ok(());
        };
        let selection = added.selection;
        let (timed, valued) = (time.valid(selection), value.valid(selection));
        each_row(grouping, &timed, |row, group| {
            // SAFETY: the operands have a number for each row of the vector.
            let at = unsafe { time.get::<T>(row) };
            let takes = match &self.best[group] {
                None => true,
                Some((best, _)) => match self.end {
                    End::Minimum => at.order(*best) == Ordering::Less,
                    End::Maximum => at.order(*best) != Ordering::Less,
                },
            };
            if takes {
                // SAFETY: as above.
                let value = valued.contains(row).then(|| unsafe { value.get::<V>(row) });
                self.best[group] = Some((at, value));
            }
            Ok(())
        })
    }

    fn answer(&self, group: usize) -> Answer {
        match self.best[group] {
            Some((_, Some(value))) => Answer::Number(value.to_scalar()),
            _ => Answer::Null,
        }
    }

    fn clear(&mut self) {
        self.best = Vec::new();
    }

    fn bytes(&self) -> usize {
        self.best.capacity() * size_of::<Option<(T, Option<V>)>>()
    }
}
