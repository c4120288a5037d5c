//! SQL's own window functions: all rows in memory, in the order of partitions and order keys.
//!
//! ```text
//! offer ── calls: is each one covered? ──► plan ──► input: columns of keys, arguments and returned columns
//!                                                     ──► group_ranks: partitions in order ──► results ──► slots
//! ```
//! | module | content |
//! |---|---|
//! | [`calls`] | the functions that are covered, and their frames |
//! | `range` | the offsets of `RANGE` frames |
//! | [`offer`] | offers the node to the planner, with its costs |
//! | [`plan`] | what the plan stores |
//! | [`input`] | reads the table into columns |
//! | [`order_key`] | the keys that the rows of a partition are ordered by |
//! | [`parts`] | partitions that are computed one part after the other |
//! | [`group_ranks`] | the partitions in the order of their keys |
//! | [`conditions`] | conditions on ranks that PostgreSQL leaves to the node |
//! | `wanted` | the columns that somebody reads |
//! | [`results`] | computes the functions, and returns the rows |
//! | [`finished`] | the rows as an aggregation above reads them, without a slot for each |
//!
//! The functions themselves are [`lanes_columnar::over`].
//!
//! Invariants:
//! - Rows are returned in the order of the partition keys, then of the order keys, as PostgreSQL's own node returns
//!   them. The path's pathkeys say so. Rows that tie are in row order.
//! - Columns and results take at most the [memory](crate::custom_scan::stand_in::memory_limit) of other nodes that
//!   cannot wait. Beyond that, the table is read again for each part of the partitions. If one partition does not fit,
//!   PostgreSQL's own plan, which can use the disk, takes over before the first row.

pub mod calls;
pub mod conditions;
pub mod finished;
pub mod group_ranks;
pub mod input;
pub mod offer;
pub mod order_key;
pub mod parts;
pub mod plan;
mod range;
pub mod results;
mod wanted;
