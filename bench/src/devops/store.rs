//! The operations that a store of the scenario offers.

use super::query::{Dialect, Query};
use crate::sql::answer::Answer;
use crate::sql::peer::Timing;

/// A system that answers queries.
pub trait Store {
    /// The store's name in the report.
    fn name(&self) -> &str;
    /// The dialect of its queries.
    fn dialect(&self) -> Dialect;
    /// Prepares the store for a query.
    ///
    /// # Errors
    /// The reason why it cannot answer.
    fn begin(&mut self, query: &Query) -> Result<(), String>;
    /// Executes a text as often as requested. Returns the last answer, and the milliseconds of each
    /// execution that counts.
    ///
    /// # Errors
    /// The reason why there is no answer.
    fn ask(&mut self, text: &str, timing: Timing) -> Result<(Answer, Vec<f64>), String>;
    /// Returns the plan of a text, or `None` if the store does not report plans.
    fn plan(&mut self, _text: &str) -> Option<String> {
        None
    }
}
