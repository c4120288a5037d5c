//! The first rows of an order, without sorting the rest.
//!
//! ```text
//! vector + selection ── zone: can a row come before the last one kept? ──► candidates ──► the best rows so far
//! ```
//!
//! The cast, in the direction of the data:
//! - [`rank`]: the place of a number in an order as an integer, with NULL before or after all
//!   numbers.
//! - [`item_order`]: the order of texts, bytes and numerics, whose ranks may be equal although they
//!   differ; `numeric_order`: that of numerics.
//! - [`entry`]: a row in an order: its ranks and items, then its number. No two rows are equal.
//! - `item_candidates`: the rows of a vector whose items may put them among the first ones.
//! - [`best_rows`]: the first rows of all that were offered, up to a limit.
//! - [`best_of_group`]: the first row of each group.
//! - [`best_groups`]: the groups of an aggregation that can be among the first ones.
//!
//! *Ties.* Rows with equal keys are ordered by row number: descending if the first key is
//! descending, ascending otherwise. A scan that goes backwards for a descending key, and forwards
//! for an ascending one, therefore meets tied rows in their order, and a row that only ties with
//! the last kept row can be rejected.
//!
//! *More rows than fit.* [`BestRows`] can begin after a given row. All rows are thus returned in
//! order by several passes, in bounded memory.

pub mod best_groups;
pub mod best_of_group;
pub mod best_rows;
pub mod entry;
mod item_candidates;
pub mod item_order;
mod numeric_order;
pub mod rank;

#[cfg(test)]
mod item_tests;
#[cfg(test)]
mod tests;

pub use best_of_group::BestOfGroup;
pub use best_rows::BestRows;
pub use entry::{KEYS_MAX, SortBy, SortKey};
pub use item_order::{Collate, ItemOrder, ItemSort};
pub use rank::Order;
