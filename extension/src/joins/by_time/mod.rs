//! Joins by time: each row of a lanes table is joined with the nearest row of another table, or with
//! aggregates of the rows around its time.
//!
//! ```text
//! find (recognises such a join in the planner) ──► plan (the join in a plan)
//!    ──► start (chooses the algorithm) ──► stage (the join under execution) ◄── right_side (reads the other table)
//! ```
//! [`nested_loop`] is PostgreSQL's own way to join, which stays in the plan for its locks and
//! permissions, and takes over when the memory limit is reached.

pub mod find;
pub mod nested_loop;
pub mod plan;
pub mod right_side;
pub mod stage;
mod start;
