//! What the planner is offered: which tables and quals are ours, what reading them costs, and why not.

pub mod lanes_table;
pub mod quals;
pub mod reasons;
pub mod selectivity;
pub mod time_condition;
pub mod time_match;
pub mod window_match;
