//! The interface of every system that receives remote write.

use crate::fleet::bodies::SampleTotals;
use crate::usage::Tree;
use lanes_support::error::Result;

/// A running system; its processes end with the value.
pub trait System {
    /// The system's name in tables and records.
    fn name(&self) -> &str;
    /// The version, and the settings that differ from defaults, for the report.
    fn describe(&self) -> String;
    /// The port on 127.0.0.1. Remote write goes to `/api/v1/write`.
    fn port(&self) -> u16;
    /// The headers of write requests besides those that remote write prescribes.
    fn headers(&self) -> Vec<(String, String)> {
        Vec::new()
    }
    /// All processes of the system.
    fn tree(&self) -> Tree;
    /// The stored samples of the job from a time on (milliseconds since 1970), by a query. Markers
    /// of series that ended, which are NaN, do not count.
    fn stored_samples(&self, job: &str, since: i64) -> Result<SampleTotals>;
    /// The number of stored series.
    fn series(&self) -> Result<u64>;
    /// The bytes on disk that hold the data, without a write-ahead log of bounded size.
    fn disk_bytes(&self) -> Result<u64>;
    /// Fails with the end of the log if a process of the system has died.
    fn check(&mut self) -> Result<()>;
    /// Stops the system in order, and removes its data.
    fn stop(&mut self) -> Result<()>;
}

/// Whether a system is pg_lanes.
pub fn is_ours(name: &str) -> bool {
    name.starts_with("lanes")
}
