//! `LanesLatest`: the first row of each group of a table, for `SELECT DISTINCT ON (k) … ORDER BY k, ts DESC`.
//!
//! [`offer`] offers the node to the planner, and [`state`] executes it. The plan stores a
//! [`RowPlan`](super::top_n::row_plan::RowPlan). [`hash_part`] divides groups that do not fit into memory.

pub mod hash_part;
pub mod offer;
pub mod state;
