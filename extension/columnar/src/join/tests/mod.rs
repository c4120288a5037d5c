//! Joins by time against a quadratic oracle.
//!
//! - [`rows`]: random rows of a side, with their lanes.
//! - [`keys`]: which rows of both sides have equal keys.
//! - [`series`]: rows by key, time and arrival.
//! - [`nearest`]: the nearest row within bounds, by search.
//! - [`side_by_side`]: the latest row, and aggregates, while both sides come in the order of their
//!   times.
//! - [`reading`]: the checks of reading both sides without unsafe code.
//! - [`equal`]: the rows of a small side with equal keys, without a time.
//! - [`found`]: what was found, by runs and by rows.
//! - [`by_key`]: the latest row, while both sides come by key and time.
//! - [`window`]: aggregates of the rows within bounds, by search.

mod by_key;
mod equal;
mod found;
mod keys;
mod nearest;
mod reading;
mod rows;
mod series;
mod side_by_side;
mod window;
