//! `LanesWindow`: the rows of a table with window functions. `lanes.ema`, `lanes.delta` and `lanes.rate` are computed
//! in the order of time; SQL's own functions are computed partition by partition, in [`partitioned`].
//!
//! ```text
//! offer ── path ──► plan ──► input: vectors, partitions, arguments ──► values: a state for each function and partition
//!                                       └── row_order: which row is next ◄── rows: rows that wait or are sorted
//! ```
//! | module | content |
//! |---|---|
//! | [`offer`] | offers the node to the planner, with its costs |
//! | [`plan`] | what the plan stores |
//! | [`finished`] | the calls of finished plans, as EXPLAIN of every version can print them |
//! | [`state`] | the node under execution |
//! | [`input`] | the rows that pass the conditions, with the arguments of the functions |
//! | [`values`] | the functions with their states and results |
//! | [`row_order`] | the order in which rows are processed and returned |
//! | [`rows`] | rows that are put aside |
//!
//! Invariant: in the order of time, the functions process the rows of a partition in the order of time, and rows of
//! equal times in row order.

pub mod finished;
pub mod input;
pub mod offer;
pub mod partitioned;
pub mod plan;
pub mod row_order;
pub mod rows;
pub mod state;
pub mod values;
