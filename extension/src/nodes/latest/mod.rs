//! `LanesLatest`: the first row of each group of a table.

pub mod plan;
pub mod state;
