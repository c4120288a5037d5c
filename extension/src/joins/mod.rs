//! Joins under execution: each vector of a lanes table is given what it finds on other sides.
//!
//! [`by_key`]: hash joins with something smaller. [`by_time`]: ASOF and window joins. Several nodes execute them.

pub mod by_key;
pub mod by_time;
