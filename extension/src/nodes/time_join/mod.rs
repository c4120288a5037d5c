//! `LanesTimeJoin`: the rows of a table, each joined with rows of another table by time.

pub mod offer;
pub mod state;
