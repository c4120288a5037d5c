//! The one source of time; `clippy.toml` bans the others.

use std::time::{SystemTime, UNIX_EPOCH};

pub use tokio::time::Instant;

/// Monotonic time, for deadlines and latencies.
#[allow(clippy::disallowed_methods)]
pub fn now() -> Instant {
    Instant::now()
}

/// Milliseconds since the Unix epoch, for samples that the gateway makes itself.
#[allow(clippy::disallowed_methods)]
pub fn unix_ms() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Err(_) => 0,
    }
}

/// A time of [`unix_ms`] for people, in whole seconds.
pub fn utc(unix_ms: i64) -> String {
    let time = chrono::DateTime::from_timestamp(unix_ms.div_euclid(1000), 0);
    time.map_or_else(|| format!("{unix_ms} ms"), |time| time.to_string())
}
