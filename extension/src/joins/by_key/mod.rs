//! Hash joins: a lanes table joined by equality with something smaller.
//!
//! ```text
//! planner:  offer ── sides (which relation is the lanes table, which conditions are keys) ──► HashJoin ──► HashJoinPlan
//! executor: the small side's plan ── small_side: rows, in batches ──► stage: EqualJoin, key sets for the zone maps
//!           vectors of the lanes table that have one of the keys ── stage.find ──► a small row each, then the next
//!                 ├── state: a slot for each joined row (LanesHashJoin)
//!                 ├── latest_state: the first joined row of each group (LanesHashLatest)
//!                 └── LanesAggregate: groups and aggregates, no row is formed
//! ```
//! | module | one thing |
//! |---|---|
//! | [`sides`] | recognising such a join |
//! | [`side_order`] | in which order several small sides are joined |
//! | [`key_types`] | keys that are uuids or floats, and keys over sides joined before |
//! | [`plan`] | what the plan remembers of it |
//! | [`offer`] | offering it to the planner, with its costs |
//! | [`small_side`] | executing the small side's plan, and keeping its rows |
//! | [`column_child`] | a small side that is a scan or a join of ours: its rows come by vectors |
//! | [`small_vectors`], [`vector_rows`] | taking such rows a column at a time |
//! | [`shared_rows`] | rows of that join's own small sides, which many of its rows share |
//! | [`stage`] | the join under execution, a vector at a time |
//! | [`joined_side`] | one small side under execution, and what a vector's rows have found there |
//! | [`given_key`] | a key over the columns of a side joined before |
//! | [`small_row`] | a row that a small side's plan returns, in a slot or in a vector |
//! | [`small_column`] | values of a small side, as they are kept and compared |
//! | [`small_expression`] | an expression over the rows of a small side |
//! | [`unmatched`] | small rows that no left row has found |
//! | [`output`] | where a column of joined rows comes from |
//! | [`equal_columns`] | columns of small sides that equal one of the lanes table |
//! | [`conditions`] | conditions on one small side in the FILTER of an aggregate |
//! | [`group_codes`] | grouping by expressions over the small side: each small row has a code |
//! | [`state`](crate::nodes::hash_join::state) | `LanesHashJoin`, the node that returns joined rows |
//! | [`latest_plan`], [`latest_state`] | `LanesHashLatest`, the node that returns the first joined row of each group |
//!
//! PostgreSQL plans and executes the small side, whatever it is: a table, a function, a CTE, a sub-select, a join of
//! dimensions. The lanes table is read after it. The keys of the small side then rule out segments and vectors by their
//! zone maps before anything of them is decoded, so a join that needs few series reads few vectors.
//!
//! Invariants:
//! - A lanes table may be joined with several small sides, each by keys of its own: a *star*. One node does all of it.
//!   The largest small side of an INNER join may then be read in batches. Each other one is read as a whole, or
//!   PostgreSQL's own plan takes over.
//! - A key may look at the columns of one small side joined before instead of the lanes table: a *snowflake*. Each row
//!   of that side is asked for the key's value once, and the engine joins by codes of the values.
//! - The lanes table is the left side, whatever the query calls it: INNER, SEMI, LEFT, ANTI, RIGHT and FULL joins. The
//!   keys rule out rows in INNER, SEMI and RIGHT joins.
//! - RIGHT and FULL joins return small rows without a match at the end of each batch, as vectors all of whose lanes
//!   are NULL.
//! - The small side's rows are kept up to a limit (`work_mem` × `hash_mem_multiplier`). When they are more, the lanes
//!   table is read once for each batch of them. Each left row meets each small row in exactly one batch. That holds for
//!   INNER and RIGHT joins. The others have one batch, as a left row without a match is known only after all rows:
//!   SEMI and ANTI joins keep different keys instead of rows, LEFT and FULL joins are offered only where all rows are
//!   expected to fit, and PostgreSQL's own plan [takes over](crate::custom_scan::stand_in) where they do not.
//! - An expression over the small side that is grouped by is evaluated when a row of it first finds a left row. So it fails
//!   only where PostgreSQL would evaluate it too.
//! - Conditions on the lanes table are evaluated before its rows are joined, in PostgreSQL's order.
//!
//! Failures: an ERROR of the small side's plan passes through; what the stage owns is dropped with the node.

mod column_child;
mod given_key;
mod joined_side;
mod shared_rows;
mod side_order;
mod small_column;
mod small_expression;
mod small_row;
mod small_vectors;
mod unmatched;
mod vector_rows;

pub mod conditions;
pub mod equal_columns;
pub mod group_codes;
pub mod key_types;
pub mod output;
pub mod plan;
pub mod sides;
pub mod small_side;
pub mod stage;
