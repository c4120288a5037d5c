//! `LanesTimeJoin`: the rows of a table, each joined with rows of another table by time.

pub mod find;
pub mod offer;
pub mod plan;
pub mod right_side;
pub mod stage;
pub mod state;
