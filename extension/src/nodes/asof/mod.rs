//! `LanesAsofJoin`: each row of any left side with its match in a table, found by key and time.
//!
//! ```text
//! planner:   offer ── a nested loop over a lateral sub-select ──► path ── translate ──► plan
//! executor:  reader ── the right table ──► history ◄── join ── left rows
//! ```
//! | module | content |
//! |---|---|
//! | [`offer`] | offers the node to the planner |
//! | [`translate`] | makes the plan from the nested loop |
//! | [`plan`] | what the plan stores |
//! | [`state`] | the node under execution |
//! | [`reader`] | reads the right side into the history |
//! | [`history`], [`values`] | the right side in memory: rows by key and time, values that are passed by reference |
//! | [`join`] | searches the history for each left row |
//!
//! Unlike [`time_join`](super::time_join), the left side may be any plan, and keys may be of any type.

pub mod history;
pub mod join;
pub mod offer;
pub mod plan;
pub mod reader;
pub mod state;
pub mod translate;
mod values;
