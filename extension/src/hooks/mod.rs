//! The hooks of PostgreSQL that this library is chained into.
//!
//! | module | hook | does |
//! |---|---|---|
//! | `planner` | `planner_hook` | rewrites ASOF joins and filled gaps, collects reasons |
//! | `paths` | those of relations, joins and upper paths | offers vectorised paths |
//! | [`SeriesIds`] | `get_relation_stats_hook` | tells that the ids of series are unique |
//! | `require` | none: `planner` calls it | refuses plans that are not vectorised, under `lanes.vectorize = require` |
//! | `set_difference` | none: `set_operands` calls it | makes joins of EXCEPT, INTERSECT and UNION |
//! | `set_operands` | none: `planner` calls it | makes operands of UNION, INTERSECT and EXCEPT distinct |
//! | `correlated` | none: `planner` calls it | makes aggregates that depend on the row around them joins with groups |
//! | `executor` | `ExecutorRun_hook` | begins and ends an execution, for gathered rows and spare memory |
//! | `utility` | `ProcessUtility_hook` | hides parameters of tables from PostgreSQL, refuses indexes |
//!
//! A query passes `planner`, within it `paths`, and then `executor`. A statement that needs no plan
//! passes `utility`. Each hook calls the one that was installed before it.

mod correlated;
pub mod executor;
mod paths;
mod planner;
mod require;
mod set_difference;
mod set_operands;
mod utility;

use crate::labels::metric_estimate::SeriesIds;
use crate::pg::hooks;

/// Installs all hooks. Called from `_PG_init`.
pub fn register() {
    utility::register();
    executor::register();
    hooks::chain_paths::<paths::Paths>();
    hooks::chain_columns::<SeriesIds>();
    planner::register();
}
