//! The only source of time. `clippy.toml` bans all others.

use std::time::{SystemTime, UNIX_EPOCH};

pub use tokio::time::Instant;

/// The monotonic time, for deadlines and latencies.
#[allow(clippy::disallowed_methods)]
pub fn now() -> Instant {
    Instant::now()
}

/// The milliseconds since the Unix epoch, for samples that the gateway produces itself.
#[allow(clippy::disallowed_methods)]
pub fn unix_ms() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Err(_) => 0,
    }
}

/// Formats a time from [`unix_ms`] for people, in whole seconds.
pub fn utc(unix_ms: i64) -> String {
    let time = chrono::DateTime::from_timestamp(unix_ms.div_euclid(1000), 0);
    time.map_or_else(|| format!("{unix_ms} ms"), |time| time.to_string())
}
