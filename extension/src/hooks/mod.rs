//! The hooks of PostgreSQL that this library is chained into.

pub mod executor;
mod paths;
mod planner;
mod require;
mod utility;

use crate::pg::hooks;

/// Installs all hooks. Called from `_PG_init`.
pub fn register() {
    utility::register();
    executor::register();
    hooks::chain_paths::<paths::Paths>();
    planner::register();
}
