//! `bool_and`, `every`, `bool_or`.

use super::accumulator::{Accumulator, Added, Answer, Grouping, Input, each_row};
use crate::vector::Evaluation;
use crate::zone_map::Zone;

/// Whether all booleans are TRUE, or any.
pub struct Logic {
    all: bool,
    states: Vec<Option<bool>>,
}

impl Logic {
    /// `bool_and` if `all`, else `bool_or`.
    pub fn new(all: bool) -> Self {
        Logic {
            all,
            states: Vec::new(),
        }
    }

    fn offer(&mut self, group: usize, truth: bool) {
        let state = &mut self.states[group];
        *state = Some(match *state {
            None => truth,
            Some(before) if self.all => before & truth,
            Some(before) => before | truth,
        });
    }
}

impl Accumulator for Logic {
    fn resize(&mut self, groups: usize) {
        self.states.resize(groups, None);
    }

    fn add(&mut self, grouping: &Grouping<'_>, added: Added<'_>) -> Evaluation<()> {
        let Input::Truth(yes) = *added.input else {
            return Ok(());
        };
        let selection = added.selection;
        if let Grouping::One(group) = grouping {
            let truth = if self.all {
                selection.and_not(&yes).is_empty()
            } else {
                !yes.and(selection).is_empty()
            };
            self.offer(*group as usize, truth);
            return Ok(());
        }
        each_row(grouping, selection, |row, group| {
            self.offer(group, yes.contains(row));
            Ok(())
        })
    }

    fn can_use_zones(&self) -> bool {
        true
    }

    fn is_answered_by(&self, zone: &Zone) -> bool {
        zone.has_sum
    }

    fn add_zone(&mut self, group: usize, zone: &Zone) -> bool {
        if !self.is_answered_by(zone) {
            return false;
        }
        let truth = match self.all {
            true => zone.sum == i128::from(zone.non_null),
            false => zone.sum > 0,
        };
        self.offer(group, truth);
        true
    }

    fn answer(&self, group: usize) -> Answer {
        self.states[group].map_or(Answer::Null, Answer::Truth)
    }

    fn clear(&mut self) {
        self.states = Vec::new();
    }

    fn bytes(&self) -> usize {
        self.states.capacity()
    }
}
