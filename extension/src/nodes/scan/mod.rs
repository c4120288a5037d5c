//! `LanesScan`: the rows of a table that pass the pushed conditions.

pub mod offer;
pub mod shared_scan;
pub mod state;
