//! Starts any of the compared systems by its name.

use super::system::System;
use super::{lanes, prometheus, victoria_metrics};
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

/// Starts a system by its name, with its files below a folder.
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
        "unknown system `{name}`; known systems: {}",
        SYSTEMS.join("; ")
    )))
}
