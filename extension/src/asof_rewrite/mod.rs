//! ASOF joins: each row of the left side with the row of the right side that is the latest at its time.
//!
//! ```text
//! Query ─ planner_hook ─► rewrite (which joins) ─► condition (what the marker says; tolerance)
//!                            │                        ▼
//!                            ├─ join_tree ────────► lateral (the sub-select; descend, permission) ─► Query without markers
//!                            ▼
//!                         planner
//! ```
//!
//! | module | one thing |
//! |---|---|
//! | [`planner_hook`] | the way in |
//! | [`marker`] | the SQL functions that mark a join, and their oids |
//! | [`rewrite`] | finding marked joins; what is not legal is refused here |
//! | [`condition`] | a marker's call understood: times, direction, conditions, order |
//! | [`tolerance`] | types and checks of tolerances; distances for the nearest |
//! | [`join_tree`] | a right side that is a join becomes one sub-select |
//! | [`lateral`] | the sub-select that finds the match |
//! | [`descend`] | what a tree needs when it moves one query level down |
//! | [`permission`] | permissions go where tables go |
//! | [`match_shape`] | recognising a lateral sub-select that finds one row by time, ours or hand-written |
//! | [`match_window`] | recognising one that aggregates the rows within a stretch of time |
//! | [`offer`] | offering an accelerated join to the planner, with its costs |
//! | [`plan`], [`node`] | the plan node, and what it remembers |
//! | [`exec`] | executing it: [`history`] is the right side in memory, [`kind`](crate::pg::kind) the images it compares, [`executor`] core's inline pieces |
//!
//! The rewrite is `t LEFT JOIN q ON conditions AND lanes.asof(q.ts <= t.ts)` ≡ `t LEFT JOIN LATERAL (SELECT q's columns FROM q
//! WHERE conditions AND q.ts <= t.ts ORDER BY q.ts DESC, arrival DESC LIMIT 1) q ON true`, on the tree that the planner gets:
//! views, sub-selects and row-level security are in place, nothing has been folded, moved or simplified.
//!
//! Invariants:
//! - The sub-select takes the number of the right side's range-table entry and has its columns in their places, dropped ones
//!   included. So whatever refers to the right side stays as it is.
//! - The right side's entry moves whole: permissions, row-level security and its barriers, samples and inheritance go along.
//! - A rewritten query holds no marker; one that is left over is an ERROR. The markers' bodies raise.
//!
//! Costs: in a database without the extension a load; with it, one walk of each query.
//!
//! Known gap: a query that Postgres itself puts in the place of a set-returning SQL function, while it plans, does not pass the
//! hook. The marker's body raises then; functions that are VOLATILE, the default, or in PL/pgSQL are planned by themselves.

mod condition;
mod descend;
mod join_tree;
mod lateral;
pub mod marker;
mod permission;
pub mod rewrite;
pub mod tolerance;

/// What Postgres asks about a C function: that it is called by version 1 of the convention.
macro_rules! version_1 {
    ($name:ident) => {
        #[doc(hidden)]
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $name() -> &'static ::pgrx::pg_sys::Pg_finfo_record {
            static VERSION_1: ::pgrx::pg_sys::Pg_finfo_record =
                ::pgrx::pg_sys::Pg_finfo_record { api_version: 1 };
            &VERSION_1
        }
    };
}
use version_1;
