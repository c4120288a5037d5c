//! Facts that the planner's hooks need: the lanes tables of a query, the quals that are
//! vectorised, the costs of reading, and the sub-selects that find rows by time.
//!
//! ```text
//! hooks/paths ──► lanes_table ──► quals (which are vectorised; in what order) ──► nodes' offers
//!                                   │ reasons why not                │ costs: selectivity, bucket_groups
//!                                   ▼                                ▼
//!                                 reasons ──► EXPLAIN, lanes.vectorize = require
//! lateral sub-selects ──► time_match, window_match (by time_condition) ──► joins by time
//! ```
//!
//! Invariants: nothing here changes the planner's structures, and all results are about structures that live as long as
//! the planning.

pub mod bucket_groups;
pub mod first_rows;
pub mod lanes_table;
pub mod quals;
pub mod reasons;
pub mod selectivity;
pub mod time_condition;
pub mod time_match;
pub mod window_match;
