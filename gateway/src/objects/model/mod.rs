//! What the parts of object storage share. It depends on no other part of object storage.
//!
//! | module | contents |
//! |---|---|
//! | [`record`] | the documents in the store, and their names |
//! | [`timeline`] | the timelines of a database, and the log entries that they contain |
//! | [`state`], [`status`] | what the gateway does about object storage, and how it is published |
//! | [`pauses`] | the times between attempts |
//! | [`metrics`], [`offload_metrics`], [`log_metrics`] | what is counted |

pub mod log_metrics;
pub mod metrics;
pub mod offload_metrics;
pub mod pauses;
pub mod record;
pub mod state;
pub mod status;
pub mod timeline;

pub use metrics::ObjectMetrics;
pub use pauses::Pauses;
pub use state::ObjectState;
pub use status::ObjectStatus;
pub use timeline::History;
