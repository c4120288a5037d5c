//! The first rows of an order, without sorting the rest.
//!
//! ```text
//! vector + selection ── zone: can a row come before the last one kept? ──► candidates ──► the best rows so far
//! ```
//!
//! The cast, in the order in which data flow:
//! - [`rank`]: a number's place in an order as an integer, with NULL before or after all numbers.
//! - [`entry`]: a row in an order: its ranks, then its number. No two rows are equal.
//! - [`best_rows`]: at most so many rows, the first of all that were offered.
//! - [`best_of_group`]: the first row of each group.
//!
//! *Ties.* Rows with equal keys follow by row number: descending if the first key does, ascending otherwise. So a scan
//! that goes backwards for a descending key, and forwards for an ascending one, meets tied rows in their order, and a
//! row that only ties with the last one kept can be turned away.
//!
//! *More rows than fit.* [`BestRows`] can be told to begin after a row. So all rows come out in order by as many
//! passes as it takes, in bounded memory.

pub mod best_of_group;
pub mod best_rows;
pub mod entry;
pub mod rank;

#[cfg(test)]
mod tests;

pub use best_of_group::BestOfGroup;
pub use best_rows::BestRows;
pub use entry::{KEYS_MAX, SortKey};
pub use rank::Order;
