//! `LanesAsofJoin`: the rows of any plan, each joined with the latest row of another table.

pub mod history;
pub mod offer;
pub mod plan;
pub mod private_data;
pub mod state;
