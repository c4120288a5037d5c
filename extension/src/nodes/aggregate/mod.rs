//! `LanesAggregate`: the groups of a table, or of a join, with their aggregates.
//!
//! ```text
//! offer ── path ──► engine::plan ──► program: conditions, join, keys and aggregates as the engine's
//!   sealed runs whose zones prove all ── zone_runs ──┐
//!   vectors ── undecoded: what need not be decoded ──┴──► groups ── engine::results ──► a slot for each group
//! ```
//! | module | content |
//! |---|---|
//! | [`offer`] | offers the node to the planner |
//! | [`terms`] | the grouping expressions, aggregates and conditions that it offers to compute |
//! | [`cost`] | its estimated rows and costs |
//! | [`grouping_sets`] | offers a node for each set of GROUPING SETS |
//! | [`grouping_sets_of_join`] | does so for a hash join, with transition states |
//! | [`states`] | a path of transition states, which PostgreSQL combines |
//! | [`workers`] | offers the node to several processes, whose states are combined |
//! | [`shared`] | what these processes share |
//! | [`parts`] | offers a node for each part of a partitioned table or a UNION ALL, whose states are combined |
//! | [`state`] | the node under execution |
//! | [`program`] | the whole query as the engine executes it |
//! | [`first_elements`] | arrays of which only the first element is wanted |
//! | [`zone_runs`] | sealed runs that are aggregated by their zone maps alone |
//! | [`undecoded`] | columns that are aggregated without being decoded |

pub mod cost;
pub mod first_elements;
pub mod grouping_sets;
pub mod grouping_sets_of_join;
pub mod offer;
pub mod parts;
pub mod program;
pub mod shared;
pub mod state;
pub mod states;
pub mod terms;
pub mod undecoded;
pub mod workers;
pub mod zone_runs;
