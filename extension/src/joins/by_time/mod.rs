//! Joins by time: each row of a lanes table with the row, or the rows, of another table at its time.

pub mod find;
pub mod nested_loop;
pub mod plan;
pub mod right_side;
pub mod stage;
