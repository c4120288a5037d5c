//! `LanesNestedAggregate`: the groups of one aggregation, aggregated again.
//!
//! ```text
//! SELECT minute, mode, sum(increase)                                        ◄── LanesNestedAggregate
//!   FROM (SELECT minute, series, mode, max(value) - min(value) AS increase
//!           FROM … GROUP BY minute, series, mode) AS s                      ◄── LanesAggregate
//!  GROUP BY minute, mode
//!
//! planner:   offer ── outputs: the sub-select's columns as expressions over the entries below ──► a plan
//! executor:  below: the finished groups, 2,048 at a time ──► group_lanes: a lane for each entry
//!                ──► program: HAVING below, keys, aggregates ──► groups
//! ```
//! | module | content |
//! |---|---|
//! | [`offer`] | offers the node to the planner, with its costs |
//! | [`outputs`] | the sub-select's columns in terms of the keys and aggregates below |
//! | [`state`] | the node under execution |
//! | [`below`] | the aggregation or the window functions below, under execution |
//! | [`finished`] | what they return to this node: groups or rows |
//! | [`group_lanes`] | finished groups as lanes |
//! | [`program`] | the aggregation as the engine executes it |
//!
//! The rows of `LanesWindow` with SQL's own window functions are aggregated in the same way: their texts are keys,
//! which need not be distinct together, and each other column and each function is an entry. Where the comments speak
//! of groups below, these rows are meant as well.
//!
//! An *entry* is a key or an aggregate of the aggregation below, in the order of its `custom_scan_tlist`: keys, then
//! aggregates. The groups below are the rows of a table whose columns are the entries. So the engine uses the same
//! expressions, keys and aggregates as for a table, and no row passes from node to node.
//!
//! Invariants:
//! - The aggregation below is a child of the node that never returns a row: the node reads its
//!   finished groups. If it hands over to PostgreSQL's own plan, so does the node above it.
//! - A grouping column that is a key below is represented by the numbers of the key's values. This is correct for all
//!   types, because the values below are distinct by the same operator that groups them above.
//! - The conditions of HAVING below are evaluated by the engine before anything above them, as PostgreSQL does.
//! - Expressions of the sub-select's list are evaluated where they are used. They are not volatile, and they are never
//!   evaluated for a group that HAVING removes.
//!
//! Failures: errors of expressions are PostgreSQL's. Where a key or aggregate has a type that no lane has, the node
//! is not offered.

pub mod below;
pub mod finished;
pub mod group_lanes;
pub mod offer;
pub mod outputs;
pub mod program;
pub mod state;
