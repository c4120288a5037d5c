//! What the gateway reports about itself, on top of all other parts.
//!
//! | module | contents |
//! |---|---|
//! | [`supervise`] | a look at PostgreSQL every second, gauges, and the removal of old digests |
//! | [`status`] | readiness and rates, for people |
//! | [`self_scrape`] | the gateway's own metrics as a remote write request |

pub mod self_scrape;
pub mod status;
pub mod supervise;

pub use status::Status;
