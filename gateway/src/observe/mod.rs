//! What the gateway says of itself: [`metrics`] and [`object_metrics`] for Prometheus, [`status`] for people, [`supervise`] for readiness and upkeep, and
//! [`self_scrape`], which stores the metrics by the gateway's own receive path.

pub mod metrics;
pub mod object_metrics;
mod process_metrics;
pub mod self_scrape;
pub mod status;
pub mod supervise;

pub use metrics::Metrics;
pub use status::Status;
