//! The hooks of PostgreSQL that this library is chained into.

pub mod executor;
pub mod planner;
pub mod utility;
