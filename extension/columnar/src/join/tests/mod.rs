//! Joins by time against a quadratic oracle.
//!
//! - [`rows`]: random rows of a side, with their lanes.
//! - [`keys`]: which rows of both sides have equal keys.
//! - [`series`]: rows by key, time and arrival.
//! - [`nearest`]: the nearest row within bounds, by search.
//! - [`merge`]: the latest row, while both sides come in the order of their times.
//! - [`window`]: aggregates of the rows within bounds.

mod keys;
mod merge;
mod nearest;
mod rows;
mod series;
mod window;
