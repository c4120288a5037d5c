//! Where a column of joined rows comes from.

use pgrx::pg_sys;

use super::plan::HashJoinPlan;
use crate::expressions::translate::{Translation, Translator};

/// A column of joined rows.
pub enum Output {
    /// The lanes table's attribute.
    Attribute(usize),
    /// The small side's output, by its place.
    Small(usize),
}

impl Output {
    /// For each of these columns of a plan, where its values come from.
    ///
    /// # Errors
    /// A column of the table that is none of its attributes.
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
