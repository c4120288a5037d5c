//! Aggregations against a twin that does what PostgreSQL does, a row at a time.
//!
//! - [`wanted`]: an aggregate or a key, from which both the engine's and the twin's answer come.
//! - [`queries`]: random keys and aggregates over random windows.
//! - [`keys`]: text from segment to segment, buckets of sorted times.
//! - [`extremes`]: ties between floats that differ in their bits.
//! - [`averages`]: moving averages of rows that come in order of their times, or not.
//! - [`float_order`]: in which order floats are added.
//! - [`overflow`]: sums at the limits of their types.
//! - [`zones`]: whole vectors, and whole runs, whose zones may tell all.

mod averages;
mod extremes;
mod float_order;
mod keys;
mod overflow;
mod queries;
mod wanted;
mod zones;
