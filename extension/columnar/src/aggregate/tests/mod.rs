//! Aggregations against a twin that computes as PostgreSQL does, a row at a time.
//!
//! - [`wanted`]: an aggregate or a key, with the engine's and the twin's answer.
//! - [`queries`]: random keys and aggregates over random lanes.
//! - [`keys`]: text from segment to segment, buckets of sorted times.
//! - [`extremes`]: ties between floats that differ in their bits.
//! - [`items`]: extremes of texts.
//! - [`averages`]: moving averages of rows in the order of their times, or out of order.
//! - [`float_order`]: the order of addition of floats.
//! - [`overflow`]: sums at the limits of their types.
//! - [`zones`]: whole vectors, and whole runs, whose zones may answer all aggregates.

mod averages;
mod extremes;
mod float_order;
mod items;
mod keys;
mod overflow;
mod queries;
mod wanted;
mod zones;
