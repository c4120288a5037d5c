//! `LanesScan`: the rows of a table that pass the pushed conditions, a slot for each row.
//!
//! ```text
//! plan: pushed conditions; all others stay with PostgreSQL ──► state: vectors ── conditions ──► selection ──► slots
//! ```
//! | module | content |
//! |---|---|
//! | [`offer`] | the paths of the node |
//! | [`plan`] | what the plan stores, and the attributes that it needs |
//! | [`row_filter`] | conditions that PostgreSQL evaluates, for the nodes that choose rows themselves |
//! | [`state`] | the node under execution |
//! | [`shared_scan`] | what the participants of a parallel scan share |

pub mod offer;
pub mod plan;
pub mod row_filter;
pub mod shared_scan;
pub mod state;
