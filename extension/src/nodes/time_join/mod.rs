//! `LanesTimeJoin`: each row of a lanes table with the row, or with aggregates of the rows, of
//! another table at its time.
//!
//! [`offer`] offers the node to the planner, and [`state`] executes it. The join itself is executed by
//! [`joins::by_time`](crate::joins::by_time).

pub mod offer;
pub mod state;
