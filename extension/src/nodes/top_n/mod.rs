//! `LanesTopN`: the first rows of a table in some order.

pub mod plan;
pub mod row_plan;
pub mod state;
