//! `LanesHashJoin` and `LanesHashLatest`: rows of a lanes table joined by equality with something smaller.

pub mod latest_plan;
pub mod latest_state;
pub mod offer;
pub mod state;
