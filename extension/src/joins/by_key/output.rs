//! The sources of the columns of joined rows.

use pgrx::pg_sys;

use super::plan::HashJoinPlan;
use crate::expressions::translate::{Translation, Translator};
use crate::pg::columns;

/// The source of a column of joined rows.
pub enum Output {
    /// An attribute of the lanes table.
    Attribute(usize),
    /// An output of a small side, by its index in the plan.
    Small(usize),
}

impl Output {
    /// The source of each of these columns of a plan.
    ///
    /// # Errors
    /// If a column of the lanes table is not one of its attributes.
    pub fn of(
        columns: &[*mut pg_sys::Node],
        plan: &HashJoinPlan,
        translator: &Translator,
    ) -> Translation<Vec<Output>> {
        let output = |column: &*mut pg_sys::Node| {
            let place = columns::column(*column).and_then(|column| plan.place_of(column));
            Ok(match place {
                Some(place) => Output::Small(place),
                None => Output::Attribute(
                    translator.attribute(crate::pg::tree::plan_node((*column).cast()))?,
                ),
            })
        };
        columns.iter().map(output).collect()
    }

    /// The attributes of the lanes table among these columns, ascending.
    pub fn attributes(outputs: &[Output]) -> Vec<usize> {
        let attribute = |output: &Output| match output {
            Output::Attribute(attribute) => Some(*attribute),
            Output::Small(_) => None,
        };
        let mut attributes: Vec<usize> = outputs.iter().filter_map(attribute).collect();
        attributes.sort_unstable();
        attributes.dedup();
        attributes
    }
}
