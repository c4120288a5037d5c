//! From the rows of one request to a batch of many requests.
//!
//! ```text
//! rows with unknown series ─► register ─► rows ─► accumulate ─► deliver
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`register`] | new series, registered in bulk by one call at a time |
//! | `limited` | registration for a user with limits: new series that exceed them are left out |
//! | [`accumulate`] | requests of one level of acknowledgement, joined by rows and age |

pub mod accumulate;
mod limited;
pub mod register;

pub use accumulate::QUEUE_REQUESTS_MAX;
pub use register::UnknownSeries;
