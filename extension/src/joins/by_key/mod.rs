//! Hash joins: a lanes table joined by equality with smaller relations.
//!
//! ```text
//! planner:  sides (which relation is the lanes table, which conditions are keys) ──► HashJoin ──► HashJoinPlan
//! executor: plans of small sides ── small_side: rows in batches ──► stage: EqualJoin, key sets for zone maps
//!           vectors of the lanes table with one of the keys ── stage.find ──► a small row each, then the next
//!                 ├── nodes/hash_join: a slot for each joined row, or the first joined row of each group
//!                 └── nodes/aggregate: groups and aggregates; no row is formed
//! ```
//! | module | contents |
//! |---|---|
//! | [`sides`] | recognises such a join in the planner |
//! | [`side_order`] | the order in which several small sides are joined |
//! | [`key_types`] | checks of the types that keys may have |
//! | [`equal_columns`] | columns of small sides that equal a column of the lanes table |
//! | [`plan`] | the part of a plan that describes the join |
//! | [`small_side`] | executes a small side's plan and keeps its rows |
//! | [`vector_child`] | a small side's plan that returns vectors, as nodes implement it |
//! | [`small_vectors`], [`vector_rows`] | read these vectors a column at a time |
//! | [`shared_rows`] | rows of the child's own small sides, each of which many of its rows share |
//! | [`small_row`], [`small_column`] | one row, and one column, of a small side |
//! | [`small_expression`] | an expression over the rows of a small side |
//! | [`group_codes`], [`coded`] | grouping expressions, conditions and counted values over a small side: a code for each small row |
//! | [`stage`], [`joined_side`] | the join under execution, and one of its sides |
//! | [`given_key`] | a key over the columns of an earlier side |
//! | [`match_condition`] | conditions between the sides that are no keys |
//! | [`small_columns`] | the columns of small sides that the engine reads, for the rows of a vector |
//! | [`marked_rows`] | which small rows some left row has found |
//! | [`output`] | the sources of the columns of joined rows |
//!
//! PostgreSQL plans and executes the small side, whatever it is: a table, a function, a CTE, a
//! sub-select, a join of dimensions. The lanes table is read after it. The keys of the small side
//! then exclude segments and vectors by their zone maps before anything of them is decoded, so a
//! join that needs few series reads few vectors.
//!
//! # Invariants
//! - A lanes table may be joined with several small sides, each by its own keys: a *star*. One node
//!   executes all of these joins. The largest small side of an INNER join may be read in batches.
//!   Every other small side is read completely, or PostgreSQL's own plan takes over.
//! - A key may be over the columns of one earlier small side instead of the lanes table: a
//!   *snowflake*. The key is evaluated once for each row of that side, and the engine joins by codes
//!   of the values.
//! - The lanes table is the left side, whatever the query calls it, in INNER, SEMI, LEFT, ANTI, RIGHT
//!   and FULL joins. In *right semi* and *right anti* joins it is the table of the sub-select of EXISTS or NOT EXISTS,
//!   and the rows that the query returns are the small side. The keys exclude rows of the lanes table in INNER, SEMI
//!   and RIGHT joins, and in right semi and right anti joins.
//! - RIGHT, FULL and right anti joins return small rows without a match at the end of each batch, in vectors whose
//!   lanes are all NULL. Right semi joins return those with a match there.
//! - The rows of a small side are kept up to a limit (`work_mem` × `hash_mem_multiplier`). If there
//!   are more, an INNER, RIGHT, right semi or right anti join reads the lanes table once for each batch of them, and
//!   each left row meets each small row in exactly one batch. The other kinds have a single batch, because a left row
//!   is known to have no match only after all small rows. SEMI and ANTI joins keep distinct keys instead of rows. LEFT
//!   and FULL joins are offered only if all rows are expected to fit. PostgreSQL's own plan [takes
//!   over](crate::custom_scan::stand_in) if they do not.
//! - Several processes may join, each the rows of the segments that it takes with all rows of the small sides. No other
//!   plan can take over from a worker. So the sides that are not read in batches are tables that fit in memory as a
//!   whole, and the join returns no small rows without a match, which each process would return.
//! - Further conditions between the sides decide about a match, in outer joins too: a left row moves on to its next
//!   small row until one meets them. Conditions on the rows that an outer join returns are evaluated on joined rows.
//!   SEMI and ANTI joins keep rows instead of keys if a condition reads them.
//! - A grouping expression over a small side is evaluated when a small row first finds a left row. So
//!   it fails only where PostgreSQL would evaluate it too.
//! - Conditions on the lanes table are evaluated before its rows are joined, in PostgreSQL's order.
//!
//! # Failures
//! An ERROR in a small side's plan passes through. Everything that the stage owns is dropped with the
//! node.

mod given_key;
mod joined_side;
mod marked_rows;
mod match_condition;
mod side_order;
mod small_column;
mod small_columns;
mod small_row;
mod small_vectors;
mod vector_rows;

pub mod coded;
pub mod equal_columns;
pub mod group_codes;
pub mod key_types;
pub mod output;
pub mod plan;
pub mod shared_rows;
pub mod sides;
pub mod small_expression;
pub mod small_side;
pub mod stage;
pub mod vector_child;
