//! The interface of every system that receives remote write.

use crate::fleet::bodies::Held;
use crate::usage::Tree;
use lanes_support::error::Result;

/// A running system; its processes end with the value.
pub trait System {
    /// Its name in tables and records.
    fn name(&self) -> &str;
    /// Version and the settings that differ from its defaults, for the report.
    fn describe(&self) -> String;
    /// Its port on 127.0.0.1; remote write goes to `/api/v1/write`.
    fn port(&self) -> u16;
    /// Headers of its write requests beyond those that remote write prescribes.
    fn headers(&self) -> Vec<(String, String)> {
        Vec::new()
    }
    /// All of its processes.
    fn tree(&self) -> Tree;
    /// What it holds of the job from a time on (milliseconds since 1970), as a query says; markers of series that ended, which are NaN, do
    /// not count.
    fn held(&self, job: &str, since: i64) -> Result<Held>;
    /// How many series it holds.
    fn series(&self) -> Result<u64>;
    /// Bytes on disk that hold the data; a write-ahead log, which comes to an end, is not among them.
    fn disk_bytes(&self) -> Result<u64>;
    /// Fails with the end of the log when one of its processes has ended on its own.
    fn check(&mut self) -> Result<()>;
    /// Stops it in order, and removes its data.
    fn stop(&mut self) -> Result<()>;
}

/// Whether a system is pg_lanes.
pub fn is_ours(name: &str) -> bool {
    name.starts_with("lanes")
}
