//! Nested aggregation: the groups of one aggregation, aggregated again.
//!
//! ```text
//! SELECT minute, mode, sum(increase)                                        ◄── LanesNestedAggregate
//!   FROM (SELECT minute, series, mode, max(value) - min(value) AS increase
//!           FROM … GROUP BY minute, series, mode) AS s                      ◄── LanesAggregate
//!  GROUP BY minute, mode
//!
//! planner:   offer ── outputs: the sub-select's columns as expressions over the entries below ──► a plan
//! executor:  the groups below, 2,048 at a time ──► group_lanes: a lane an entry ──► HAVING below ──► groups above
//! ```
//! | module | one thing |
//! |---|---|
//! | [`offer`] | offering it to the planner, with its costs |
//! | [`outputs`] | what the sub-select returns, in terms of the keys and aggregates below |
//! | [`group_lanes`] | finished groups as lanes |
//! | [`state`] | `LanesNestedAggregate`, the node |
//!
//! An *entry* is a key or an aggregate of the aggregation below, in the order of its `custom_scan_tlist`: keys, then
//! aggregates. The groups below are the rows of a table whose columns are the entries. So the engine's expressions,
//! keys and aggregates are the ones that a table has, and no row is handed from node to node.
//!
//! Invariants:
//! - The aggregation below is executed as a child of the node, but never asked for rows: the node takes its finished
//!   groups. If it hands over to PostgreSQL's own plan, so does the node above it.
//! - A column that is grouped by, and is a key below, is grouped by the numbers of the key's values. That holds for
//!   each type, because the key's values below are distinct by the operator by which they are grouped above.
//! - The conditions of HAVING below are evaluated by the engine before anything above them, as PostgreSQL does.
//! - Expressions of the sub-select's list are evaluated where they are used. They are not volatile, and a group below
//!   that HAVING leaves out is never evaluated.
//!
//! Failures: errors of expressions are PostgreSQL's. A key or aggregate of a type that no lane holds is refused by the
//! planner, which then has PostgreSQL's own plan.

pub mod group_lanes;
pub mod offer;
pub mod outputs;
pub mod state;
