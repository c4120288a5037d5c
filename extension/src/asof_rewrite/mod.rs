//! Rewrites ASOF joins, which join each row of the left side with the row of the right side that is
//! the latest at its time, and sub-selects of the select list that find such a row.
//!
//! ```text
//! Query ─ planner hook ─► rewrite (which joins) ─► condition (the marker's call; tolerance)
//!                            │                        ▼
//!                            ├─ join_tree ────────► lateral (the sub-select; descend) ─► Query without markers
//!                            ▼
//!                         planner
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`marker`] | the SQL functions that mark a join, and their OIDs |
//! | [`rewrite`] | finds marked joins and refuses illegal ones |
//! | [`condition`] | reads a marker's call: times, direction, conditions, order |
//! | [`tolerance`] | types and checks of tolerances; distances for the nearest row |
//! | [`join_tree`] | makes a right side that is a join one sub-select |
//! | [`lateral`] | builds the sub-select that finds the match |
//! | [`descend`] | adapts a tree that moves one query level down |
//! | [`added_joins`] | left joins that are added to FROM |
//! | [`scalar`] | makes sub-selects of the select list joins |
//!
//! The rewrite turns `t LEFT JOIN q ON conditions AND lanes.asof(q.ts <= t.ts)` into `t LEFT JOIN
//! LATERAL (SELECT q's columns FROM q WHERE conditions AND q.ts <= t.ts ORDER BY q.ts DESC, arrival
//! DESC LIMIT 1) q ON true`. It works on the tree that the planner receives: views, sub-selects and
//! row-level security are expanded, and nothing is folded, moved or simplified yet.
//! [`crate::planner::time_match`] later recognises such sub-selects, however they were written.
//!
//! Invariants:
//! - The sub-select takes the index of the right side's range-table entry and has the entry's columns in their places,
//!   dropped columns included. So references to the right side need no change.
//! - The right side's entry moves as a whole, with its permissions, row-level security and barriers, samples and
//!   inheritance.
//! - A rewritten query contains no marker; a marker that is left over is an error. The markers' bodies raise an error.
//!
//! Costs: in a database without the extension a read of a variable; with it, one walk of each query.
//!
//! Known gap: while it plans, PostgreSQL may replace a set-returning SQL function by its query,
//! which does not pass the hook. The marker's body then raises an error. Functions that are
//! VOLATILE, the default, or written in PL/pgSQL are planned by themselves and have no such gap.

pub mod added_joins;
mod condition;
mod descend;
mod join_tree;
pub mod lateral;
pub mod marker;
pub mod rewrite;
pub mod scalar;
pub mod tolerance;
