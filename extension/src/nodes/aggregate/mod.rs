//! `LanesAggregate`: the groups of a table, or of a join, and their aggregates.

pub mod group_order;
pub mod offer;
pub mod plan;
pub mod results;
pub mod state;
