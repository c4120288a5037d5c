//! The plan nodes of the vectorised executor, a folder for each.
//!
//! | node | SQL | plan | state |
//! |---|---|---|---|
//! | `LanesScan` | a table with `WHERE` | [`scan::plan`] | [`scan::state`] |
//! | `LanesTopN` | `ORDER BY … LIMIT` | [`top_n::row_plan`] | [`top_n::state`] |
//! | `LanesLatest` | `DISTINCT ON (k) … ORDER BY k, ts DESC` | [`top_n::row_plan`] | [`latest::state`] |
//! | `LanesAggregate` | `GROUP BY`, `DISTINCT`, aggregates, also over a join | [`engine::plan`] | [`aggregate::state`] |
//! | `LanesNestedAggregate` | an aggregation of a sub-select that aggregates | [`engine::plan`] | [`nested_aggregate::state`] |
//! | `LanesWindow` | window functions `OVER (…)` | [`window::plan`], [`window::partitioned::plan`] | [`window::state`] |
//! | `LanesTimeJoin` | an ASOF or window join of a lanes table | [`engine::plan`] | [`time_join::state`] |
//! | `LanesAsofJoin` | an ASOF join of any left side | [`asof::plan`] | [`asof::state`] |
//! | `LanesHashJoin` | an equality join with something smaller | [`engine::plan`] | [`hash_join::state`] |
//! | `LanesGapfill` | `GROUP BY lanes.time_bucket_gapfill(…)` of any table | [`gapfill::plan`] | [`gapfill::state`] |
//! | `LanesHashLatest` | `DISTINCT ON` over such a join | [`hash_join::latest_plan`] | [`hash_join::latest_state`] |
//!
//! In each folder, `offer` says what the node covers and why it does not cover the rest. The plan
//! has what the executor needs. The state produces rows, prints EXPLAIN, and handles a rescan,
//! parallel workers and the end. The trait [`Node`](crate::custom_scan::node::Node) is the frame of
//! all states.
//!
//! Data flows from [`vectors`](crate::vectors) through [`joins`](crate::joins) into the nodes. A node uses another
//! node's plan and state only as its child.

pub mod aggregate;
pub mod asof;
pub mod engine;
pub mod gapfill;
pub mod hash_join;
pub mod latest;
pub mod nested_aggregate;
pub mod scan;
pub mod time_join;
pub mod top_n;
pub mod window;

use crate::custom_scan::callbacks::register as register_node;

/// Registers all nodes. Called from `_PG_init`.
pub fn register() {
    register_node::<scan::state::ScanState>();
    register_node::<top_n::state::TopNState>();
    register_node::<latest::state::LatestState>();
    register_node::<aggregate::state::AggregateState>();
    register_node::<nested_aggregate::state::NestedState>();
    register_node::<window::state::WindowState>();
    register_node::<time_join::state::JoinState>();
    register_node::<asof::state::AsofState>();
    register_node::<hash_join::state::HashJoinState>();
    register_node::<gapfill::state::GapfillState>();
    register_node::<hash_join::latest_state::LatestJoinState>();
}
