//! What the planner is offered.

pub mod offer;
pub mod require;
pub mod selectivity;
pub mod time_match;
pub mod window_match;
