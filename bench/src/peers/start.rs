//! Starts any of the compared systems by its name.

use super::lanes::Lanes;
use super::prometheus::Prometheus;
use super::system::System;
use super::victoria_metrics::VictoriaMetrics;
use crate::pinning::Processors;
use lanes_support::error::{Error, Result};
use std::path::Path;

/// The names of all systems.
pub const SYSTEMS: [&str; 5] = [
    "lanes, ack memory",
    "lanes, ack wal",
    "VictoriaMetrics 1.150.0",
    "VictoriaMetrics 1.102.1",
    "Prometheus",
];

/// Starts pg_lanes by the name of its level of acknowledgement, and a version of VictoriaMetrics
/// with its files below a folder. Both run on these processors.
///
/// # Errors
/// The name is not one of pg_lanes, or a system does not start.
pub fn start_pair(
    servers: &Processors,
    name: &str,
    version: &str,
    folder: &Path,
) -> Result<(Lanes, VictoriaMetrics)> {
    let level = Lanes::level_of(name)
        .ok_or_else(|| Error::Other(format!("`{name}` is not a pg_lanes system")))?;
    let ours = servers.starting(|| Lanes::start(name, level))?;
    let theirs = servers.starting(|| VictoriaMetrics::start(version, folder))?;
    Ok((ours, theirs))
}

/// Starts a system by its name, with its files below a folder.
pub fn start(name: &str, folder: &Path) -> Result<Box<dyn System>> {
    if let Some(level) = Lanes::level_of(name) {
        return Ok(Box::new(Lanes::start(name, level)?));
    }
    if let Some(version) = name.strip_prefix("VictoriaMetrics ") {
        return Ok(Box::new(VictoriaMetrics::start(version, folder)?));
    }
    if name == "Prometheus" {
        return Ok(Box::new(Prometheus::start(folder)?));
    }
    Err(Error::Other(format!(
        "unknown system `{name}`; known systems: {}",
        SYSTEMS.join("; ")
    )))
}
