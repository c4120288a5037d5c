//! The operations that a store of the scenario offers.

use super::query::{Dialect, Query};
use crate::sql::answer::Answer;
use crate::sql::peer::Timing;

/// Something that answers queries.
pub trait Store {
    /// As the report calls it.
    fn name(&self) -> &str;
    /// How it wants a text.
    fn dialect(&self) -> Dialect;
    /// Makes it ready for a query.
    ///
    /// # Errors
    /// Why it cannot answer.
    fn begin(&mut self, query: &Query) -> Result<(), String>;
    /// Executes a text as often as it is wanted; the last answer, and the milliseconds of each execution that counts.
    ///
    /// # Errors
    /// Why there is no answer.
    fn ask(&mut self, text: &str, timing: Timing) -> Result<(Answer, Vec<f64>), String>;
    /// How it executes a text, in its own words; none if it does not tell.
    fn plan(&mut self, _text: &str) -> Option<String> {
        None
    }
}
