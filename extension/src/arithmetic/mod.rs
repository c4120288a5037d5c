//! Arithmetic of times and floats. It uses PostgreSQL only to raise errors.
//!
//! | module | contents |
//! |---|---|
//! | [`bucket`] | buckets of times, dates and integers |
//! | [`bucket_zone`] | buckets on the wall clock of a time zone |
//! | [`zone_clock`] | a time zone's clock that caches offsets |
//! | [`float8`] | sums, products and quotients with PostgreSQL's errors |
//!
//! SQL functions ([`crate::functions`]) and the vectorised executor ([`crate::expressions`]) both compute with these
//! modules, so their results are equal.

pub mod bucket;
pub mod bucket_zone;
pub mod float8;
pub mod zone_clock;
