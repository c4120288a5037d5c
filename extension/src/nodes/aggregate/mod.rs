//! `LanesAggregate`: the groups of a table, or of a join, and their aggregates.

pub mod offer;
pub mod results;
pub mod state;
