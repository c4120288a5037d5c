//! The settings of the application.

use std::time::Duration;

use crate::access::AccessSettings;
use crate::batch::accumulate::BatchLimits;
use crate::events::EventSettings;
use crate::http::Hosts;
use crate::http::server::ServerLimits;
use crate::model::AckLevel;
use crate::query::QuerySettings;
use crate::quota::Limits;
use crate::receive::ReceiveLimits;

/// The settings of all parts that serve requests.
#[derive(Clone)]
pub struct AppSettings {
    /// Limits of connections.
    pub server: ServerLimits,
    /// The host names that are served.
    pub hosts: Hosts,
    /// Users and certificates.
    pub access: AccessSettings,
    /// Limits of requests.
    pub receive: ReceiveLimits,
    /// The limits of users that the file gives none.
    pub user_limits: Limits,
    /// Settings of events.
    pub events: EventSettings,
    /// Settings of queries.
    pub query: QuerySettings,
    /// The memory that all requests may hold together, in bytes.
    pub pending_bytes_max: usize,
    /// How long a request waits for memory.
    pub pending_wait: Duration,
    /// Limits of batches.
    pub batch: BatchLimits,
    /// The level of acknowledgement of requests that do not choose one.
    pub default_level: AckLevel,
    /// Whether object storage is configured, so that [`AckLevel::Object`] can be kept.
    pub has_objects: bool,
    /// How long digests are kept.
    pub request_window: Duration,
    /// How the gateway stores its own metrics; `None` if it does not.
    pub self_scrape: Option<SelfScrape>,
}

/// Settings of the gateway's storing of its own metrics.
#[derive(Debug, Clone)]
pub struct SelfScrape {
    /// The time between two scrapes.
    pub interval: Duration,
    /// The value of the label `instance`.
    pub instance: String,
}
