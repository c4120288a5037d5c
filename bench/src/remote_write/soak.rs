//! Scenario `soak`: the same load for a long time, with machines replaced.
//!
//! The load is an open loop without end; while a row's requests are sent, those of the next row are encoded. At the beginning of each row
//! some targets are replaced by other machines, whose series are all new.

use super::phase::{ATTEMPTS_TO_KNOW, Phase, Way, send, verify};
use super::sender::{Fleet, Sender};
use crate::fleet::bodies::Body;
use crate::fleet::shape::{JOB, Shape};
use crate::load::Pace;
use crate::peers::http::now_milliseconds;
use crate::peers::system::{self, System};
use crate::scenario::{Findings, Record, Run};
use lanes_tests::error::{Error, Result};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

/// The data file's own part.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Definition {
    /// Each has its own turn of the whole length.
    systems: Vec<String>,
    targets: usize,
    /// The whole length, rounded up to whole rows.
    seconds: f64,
    /// The length of a row, rounded up to whole scrapes.
    every_seconds: f64,
    /// Targets that are replaced at the beginning of each row.
    churn_targets: usize,
    connections: usize,
    fleet: Fleet,
}

/// After the first scrape: what new series leave to be done is not the first row's.
const SETTLE: Duration = Duration::from_secs(6);

/// Measures it.
///
/// # Errors
/// The data cannot be made; a system that fails is a record that says so.
pub fn run(run: &Run) -> Result<Findings> {
    let definition: Definition = run.definition()?;
    let folder = run.options.folder.join("soak");
    let shape = definition.fleet.shape(&folder)?;
    let mut findings = Findings::default();
    for name in definition
        .systems
        .iter()
        .filter(|name| run.options.wants(name))
    {
        let started = run
            .options
            .servers
            .starting(|| system::start(name, &folder));
        let soaked = started.and_then(|mut system| {
            findings.systems.push(system.describe());
            let soaked = soak(run, &definition, &shape, system.as_mut(), &mut findings);
            system.stop().and(soaked)
        });
        if let Err(error) = soaked {
            findings.add(Record::failed("soak", name, "ms", error.to_string()));
        }
    }
    Ok(findings)
}

fn soak(
    run: &Run,
    definition: &Definition,
    shape: &Shape,
    system: &mut dyn System,
    findings: &mut Findings,
) -> Result<()> {
    let fleet = &definition.fleet;
    let scrapes = (definition.every_seconds / fleet.interval_seconds)
        .ceil()
        .max(1.0) as usize;
    let every = scrapes as f64 * fleet.interval_seconds;
    let rows = (definition.seconds / every).ceil().max(1.0) as usize;
    let way = Way {
        pace: Pace::Open(fleet.requests_per_second(definition.targets)),
        connections: definition.connections,
        attempts_again: 0,
        settle: Duration::ZERO,
        client: run.options.client.clone(),
    };
    let mut sender = Sender::new(shape, fleet, definition.targets, now_milliseconds());
    let next = |sender: &mut Sender| -> Result<Arc<Vec<Body>>> {
        sender.churn(definition.churn_targets);
        sender.scrapes(definition.targets, scrapes).map(Arc::new)
    };
    // The series of all targets are made known first, as fast as the system takes them.
    let first = Arc::new(sender.scrape(definition.targets)?);
    let unhurried = Way {
        pace: Pace::Closed,
        attempts_again: ATTEMPTS_TO_KNOW,
        settle: SETTLE,
        ..way.clone()
    };
    let first = send(system, &first, &unhurried)?;
    let mut acknowledged = first.samples;
    sender.skip_to(now_milliseconds());
    let mut since = sender.time();
    let mut bodies = next(&mut sender)?;
    for row in 1..=rows {
        let (phase, following) = std::thread::scope(|scope| -> Result<_> {
            let encoder = (row < rows).then(|| scope.spawn(|| next(&mut sender)));
            let phase = send(system, &bodies, &way)?;
            let following = match encoder {
                None => None,
                Some(encoder) => Some(encoder.join().map_err(|_| {
                    Error::Other("the encoder of the next row panicked".to_owned())
                })??),
            };
            Ok((phase, following))
        })?;
        // Of this row alone: questions about all of a long run would disturb it.
        verify(system, (JOB, since), phase.sent, phase.samples)?;
        since += (every * 1000.0) as i64;
        acknowledged += phase.samples;
        let seconds = row as f64 * every;
        record(system, &phase, seconds, acknowledged, findings)?;
        match following {
            Some(following) => bodies = following,
            None => break,
        }
    }
    Ok(())
}

fn record(
    system: &dyn System,
    phase: &Phase,
    seconds: f64,
    samples: u64,
    findings: &mut Findings,
) -> Result<()> {
    let latency = phase.outcome.latency;
    let series = system.series()? as f64;
    let on_disk = system.disk_bytes()? as f64 / samples.max(1) as f64;
    let figures = [
        ("samples acknowledged", phase.rate(), "samples/s"),
        ("p50", latency.p50, "ms"),
        ("p99", latency.p99, "ms"),
        ("samples dropped", phase.dropped as f64, "samples"),
        ("CPU of all processes", phase.cpu_per_million(), "CPU-s/1M"),
        ("unique series", series, "series"),
        (
            "memory of all processes",
            phase.usage.memory_bytes as f64 / f64::from(1 << 20),
            "MiB",
        ),
        ("on disk a sample", on_disk, "bytes"),
    ];
    for (place, (what, value, unit)) in figures.into_iter().enumerate() {
        let labels = match place {
            0 => phase.outcome.labels(),
            _ => Vec::new(),
        };
        let row = format!("until {seconds:.0} s: {what}");
        let chart = format!("{what} over time");
        findings.add(
            Record::new(row, system.name(), value, unit)
                .notes(labels)
                .point(&chart, system.name(), seconds / 60.0, "minutes"),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote_write::data_files::both_forms;

    #[test]
    fn the_data_file_fits_and_names_systems_that_there_are() {
        for definition in both_forms::<Definition>("soak", |definition| &definition.systems) {
            assert!(definition.every_seconds <= definition.seconds);
        }
    }
}
