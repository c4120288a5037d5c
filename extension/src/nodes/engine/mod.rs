//! What plans remember that the engine carries out alone: aggregations and joins.

pub mod group_order;
pub mod plan;
