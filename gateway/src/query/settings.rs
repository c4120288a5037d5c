//! The settings of section `query`.

use std::time::Duration;

use crate::connect::Connector;

/// How queries are answered.
#[derive(Debug, Clone)]
pub struct QuerySettings {
    /// The address, the role and the password of the sessions; `None` if queries are not served.
    pub connection: Option<Connector>,
    /// The timeout for opening a session.
    pub connect_timeout: Duration,
    /// The maximum number of sessions, and so of statements that run.
    pub sessions: usize,
    /// The maximum number of requests that wait for a session.
    pub queue: usize,
    /// How long a request waits for a session.
    pub queue_wait: Duration,
    /// The maximum time of a query, with its wait for a session.
    pub timeout: Duration,
    /// The age up to which a sample counts, unless the request says otherwise.
    pub lookback_delta: Duration,
    /// The maximum number of samples of an answer to a remote read of type `SAMPLES`.
    pub read_samples_max: usize,
    /// The maximum memory of all such answers.
    pub read_bytes_max: usize,
    /// Whether the routes of `admin/tsdb` are served.
    pub admin_api: bool,
}

impl Default for QuerySettings {
    /// No queries are served.
    fn default() -> Self {
        Self {
            connection: None,
            connect_timeout: Duration::from_secs(5),
            sessions: 8,
            queue: 32,
            queue_wait: Duration::from_secs(10),
            timeout: Duration::from_secs(120),
            lookback_delta: Duration::from_secs(300),
            read_samples_max: 50_000_000,
            read_bytes_max: 256 << 20,
            admin_api: false,
        }
    }
}
