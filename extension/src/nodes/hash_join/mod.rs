//! `LanesHashJoin` and `LanesHashLatest`: a lanes table joined by equality with something smaller.
//!
//! | module | content |
//! |---|---|
//! | [`offer`] | offers joined rows to the planner, with the costs of such joins |
//! | [`row_bound`] | which of the joined rows ORDER BY and LIMIT can return |
//! | [`state`] | `LanesHashJoin`: a slot for each joined row |
//! | [`latest_plan`], [`latest_state`] | `LanesHashLatest`: the first joined row of each group |
//! | [`column_child`] | a small side that is a scan or a hash join of this extension |
//!
//! The join itself is executed by [`joins::by_key`](crate::joins::by_key).

pub mod column_child;
pub mod latest_plan;
pub mod latest_state;
pub mod offer;
pub mod row_bound;
pub mod state;
