//! The plan nodes of the vectorised executor, a folder each.

pub mod aggregate;
pub mod asof;
pub mod engine;
pub mod hash_join;
pub mod latest;
pub mod nested_aggregate;
pub mod scan;
pub mod time_join;
pub mod top_n;
pub mod window;

use crate::custom_scan::node;

/// Registers the nodes that scan lanes tables. Called from `_PG_init`.
pub fn register() {
    node::register::<scan::state::ScanState>();
    node::register::<top_n::state::TopNState>();
    node::register::<latest::state::LatestState>();
    node::register::<aggregate::state::AggregateState>();
    node::register::<nested_aggregate::state::NestedState>();
    node::register::<time_join::state::JoinState>();
    node::register::<hash_join::state::HashJoinState>();
    node::register::<hash_join::latest_state::LatestJoinState>();
    node::register::<window::state::WindowState>();
}
