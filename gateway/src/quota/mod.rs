//! Limits of what a user may write: samples a second, series, new series a minute, names of metrics.
//!
//! ```text
//! web_config, settings ─► limits ─► quotas ─► quota of a request ─┬─► receive, events: samples
//!                                     bucket, holdings ──┘        └─► batch: new series
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`limits`] | the limits of a user, and the defaults of all |
//! | [`bucket`] | a token bucket |
//! | [`holdings`] | the series and names of metrics that a user has |
//! | [`quotas`] | the limits and the use of all users |
//! | [`metrics`] | what is counted |
//!
//! # Invariants
//! - A series that is registered is always stored: limits of series stop growth only.
//! - Without a user, or without limits, nothing is counted and no lock is taken.
//! - A user's memory is bounded by its limits: 12 bytes for each series and 20 for each name.

pub mod bucket;
pub mod holdings;
pub mod limits;
pub mod metrics;
pub mod quotas;

pub use limits::Limits;
pub use metrics::QuotaMetrics;
pub use quotas::{Quota, Quotas};
