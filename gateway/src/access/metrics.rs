//! Metrics of credentials and of TLS.

use prometheus::{IntCounter, IntCounterVec, IntGauge};

use crate::metrics::Families;

/// Counters and gauges of access.
pub struct AccessMetrics {
    /// Requests answered with 401, by reason.
    pub unauthorized: IntCounterVec,
    /// Requests answered with 403 because the role of their user may not write there.
    pub forbidden: IntCounter,
    /// Passwords that were hashed, which takes long.
    pub passwords_hashed: IntCounter,
    /// TLS handshakes that failed.
    pub handshakes_failed: IntCounter,
    /// 1 if the file, as it is now, is used.
    pub config_good: IntGauge,
    /// Attempts to read the file again, by result.
    pub config_reloads: IntCounterVec,
}

impl AccessMetrics {
    /// Registers the metrics.
    pub fn new(families: &Families) -> Self {
        Self {
            unauthorized: families.counters(
                "http_unauthorized_total",
                "Requests answered with 401, by what is wrong with their credentials.",
                &["reason"],
            ),
            forbidden: families.counter(
                "http_writes_forbidden_total",
                "Write requests answered with 403 because the role of their user lacks INSERT.",
            ),
            passwords_hashed: families.counter(
                "passwords_hashed_total",
                "Passwords checked by bcrypt. A password that was checked before is not hashed again.",
            ),
            handshakes_failed: families.counter(
                "tls_handshakes_failed_total",
                "TLS handshakes that failed or took too long.",
            ),
            config_good: families.gauge(
                "web_config_last_reload_successful",
                "1 if listen.web_config could be used when it was last read, or is not set.",
            ),
            config_reloads: families.counters(
                "web_config_reloads_total",
                "How often listen.web_config was read again, by result: used, or refused.",
                &["result"],
            ),
        }
    }
}
