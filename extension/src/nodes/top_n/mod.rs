//! `LanesTopN`: the first rows of a table in some order, for `ORDER BY … LIMIT`: by numbers and
//! times, texts, bytes and numerics.
//!
//! ```text
//! offer ── path with sort order ──► row_plan: conditions and sort keys ──► state: passes over the table ──► slots
//! ```
//! | module | content |
//! |---|---|
//! | [`offer`] | offers the node to the planner, with its costs |
//! | [`row_plan`] | what the plan stores, also that of [`latest`](super::latest) |
//! | [`state`] | the node under execution |

pub mod offer;
pub mod row_plan;
pub mod state;
