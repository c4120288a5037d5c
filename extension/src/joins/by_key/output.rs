//! The sources of the columns of joined rows.

use pgrx::pg_sys;

use super::plan::HashJoinPlan;
use crate::expressions::translate::{Translation, Translator};

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
    ///
    /// # Safety
    /// Live columns of the plan's.
    pub unsafe fn of(
        columns: &[*mut pg_sys::Node],
        plan: &HashJoinPlan,
        translator: &Translator,
    ) -> Translation<Vec<Output>> {
        let output = |column: &*mut pg_sys::Node| {
            // SAFETY: the caller's promise.
            unsafe {
                Ok(match plan.place_of((*column).cast()) {
                    Some(place) => Output::Small(place),
                    None => Output::Attribute(translator.attribute(*column)?),
                })
            }
        };
        columns.iter().map(output).collect()
    }
}
