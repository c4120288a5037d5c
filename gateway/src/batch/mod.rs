//! From the rows of one request to a batch of many requests.
//!
//! ```text
//! rows with unknown series ─► register ─► rows ─► accumulate ─► deliver
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`register`] | new series, registered in bulk by one call at a time |
//! | [`accumulate`] | requests of one level of acknowledgement, joined by rows and age |

pub mod accumulate;
pub mod register;

pub use accumulate::QUEUE_REQUESTS_MAX;
pub use register::UnknownSeries;
