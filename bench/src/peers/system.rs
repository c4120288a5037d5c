//! What a scenario asks of any system that takes remote write, and how one is started by its name.

use super::{lanes, prometheus, victoria_metrics};
use crate::fleet::bodies::Held;
use crate::usage::Tree;
use lanes_tests::error::{Error, Result};
use std::path::Path;

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

/// The names of all systems.
pub const SYSTEMS: [&str; 5] = [
    "lanes, ack memory",
    "lanes, ack wal",
    "VictoriaMetrics 1.150.0",
    "VictoriaMetrics 1.102.1",
    "Prometheus",
];

/// Whether a system is pg_lanes.
pub fn is_ours(name: &str) -> bool {
    name.starts_with("lanes")
}

/// Starts a system by its name, its files below a folder.
pub fn start(name: &str, folder: &Path) -> Result<Box<dyn System>> {
    if let Some(level) = lanes::Lanes::level_of(name) {
        return Ok(Box::new(lanes::Lanes::start(name, level)?));
    }
    if let Some(version) = name.strip_prefix("VictoriaMetrics ") {
        return Ok(Box::new(victoria_metrics::VictoriaMetrics::start(
            version, folder,
        )?));
    }
    if name == "Prometheus" {
        return Ok(Box::new(prometheus::Prometheus::start(folder)?));
    }
    Err(Error::Other(format!(
        "there is no system `{name}`; there are: {}",
        SYSTEMS.join("; ")
    )))
}
