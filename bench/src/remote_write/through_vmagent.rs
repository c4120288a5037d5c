//! The scenario `vmagent`: a real vmagent scrapes and writes.
//!
//! vmagent scrapes one cached page of node_exporter under many names, and writes to one system at a
//! time. Every few seconds some targets get other names: their series end and as many new ones
//! begin. The figures are what vmagent reports of its sending, as a user would see it: retries,
//! dropped packets, pending bytes, durations of requests.

use super::comparison::{Figures, turns};
use crate::fleet::bodies::SampleTotals;
use crate::peers::cached_exporter::CachedExporter;
use crate::peers::http::now_milliseconds;
use crate::peers::start;
use crate::peers::system::System;
use crate::peers::vmagent::{JOB, Settings, Vmagent};
use crate::pinning::Processors;
use crate::scenario::{Findings, Record, Run};
use lanes_support::error::{Error, Result};
use serde::Deserialize;
use std::path::Path;
use std::time::{Duration, Instant};

/// The scenario's part of the data file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Definition {
    systems: Vec<String>,
    /// The version of vmagent.
    version: String,
    rounds: usize,
    targets: usize,
    interval_seconds: u32,
    /// The time before the measurement, in which the first series become known.
    warm_up_seconds: f64,
    seconds: f64,
    /// The interval at which targets are replaced; the next field is their number.
    churn_every_seconds: f64,
    churn_targets: usize,
}

/// The figures: `(name, unit)`.
const ROWS: [(&str, &str); 10] = [
    ("samples written", "samples/s"),
    ("CPU of all processes", "CPU-s/1M"),
    ("memory of all processes", "MiB"),
    ("p50 of a request", "ms"),
    ("p99 of a request", "ms"),
    ("retries, including the warm-up", "requests"),
    ("packets dropped, including the warm-up", "packets"),
    ("most bytes pending", "bytes"),
    ("scrapes failed, including the warm-up", "scrapes"),
    ("changes of the list of targets", "changes"),
];
/// The interval at which vmagent's metrics are read for pending bytes.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// Runs the scenario.
///
/// # Errors
/// node_exporter or nginx does not start. A system that cannot be measured is a record that says
/// so.
pub fn run(run: &Run) -> Result<Findings> {
    let definition: Definition = run.definition()?;
    let folder = run.options.folder.join("vmagent");
    let mut findings = Findings::default();
    let wanted = run.options.wanted(&definition.systems);
    let mut exporter = CachedExporter::start(&folder)?;
    findings.systems.push(format!(
        "vmagent {}, defaults; node_exporter's page of {} series behind nginx, cached for 1 s",
        definition.version,
        exporter.series()?
    ));
    let mut rows: [Figures; ROWS.len()] = Default::default();
    for name in turns(&wanted, definition.rounds) {
        let started = run.options.servers.starting(|| start::start(name, &folder));
        let measured = started.and_then(|mut system| {
            let describes = system.describe();
            if !findings.systems.contains(&describes) {
                findings.systems.push(describes);
            }
            let measured = measure(
                &definition,
                system.as_mut(),
                &exporter,
                &folder,
                &run.options.client,
            );
            system.stop().and(measured)
        });
        match measured {
            Ok((figures, notes)) => {
                println!(
                    "    {name}: {:.0} samples/s, {:.2} CPU-s/1M",
                    figures[0], figures[1]
                );
                for ((row, figure), place) in rows.iter_mut().zip(figures).zip(0..) {
                    let notes = if place == 0 {
                        notes.clone()
                    } else {
                        Vec::new()
                    };
                    row.add(name, figure, notes);
                }
            }
            Err(error) => findings.add(Record::failed("vmagent", name, "ms", error.to_string())),
        }
    }
    exporter.stop()?;
    for (figures, (row, unit)) in rows.iter().zip(ROWS) {
        figures.record(&mut findings, row, unit, &wanted, ("", &[]), None);
    }
    Ok(findings)
}

/// The figures in the order of [`ROWS`], and the notes.
type Measured = ([f64; ROWS.len()], Vec<String>);

fn measure(
    definition: &Definition,
    system: &mut dyn System,
    exporter: &CachedExporter,
    folder: &Path,
    client: &Processors,
) -> Result<Measured> {
    let settings = Settings {
        version: definition.version.clone(),
        write_port: system.port(),
        page_port: exporter.port(),
        targets: definition.targets,
        interval_seconds: definition.interval_seconds,
    };
    let since = now_milliseconds();
    let mut vmagent = client.starting(|| Vmagent::start(settings, folder))?;
    std::thread::sleep(Duration::from_secs_f64(definition.warm_up_seconds));
    let (its_tree, tree) = (vmagent.tree(), system.tree());
    let (its_cpu, cpu, before) = (
        its_tree.cpu_seconds(),
        tree.cpu_seconds(),
        vmagent.metrics()?,
    );
    let start = Instant::now();
    let mut churned = Instant::now();
    let mut pending = 0.0f64;
    while start.elapsed().as_secs_f64() < definition.seconds {
        std::thread::sleep(LOOK_INTERVAL);
        vmagent.check()?;
        system.check()?;
        pending = pending.max(vmagent.metrics()?.pending_bytes());
        if churned.elapsed().as_secs_f64() >= definition.churn_every_seconds {
            vmagent.churn(definition.churn_targets)?;
            churned = Instant::now();
        }
    }
    let after = vmagent.metrics()?;
    let seconds = start.elapsed().as_secs_f64();
    let (its_cpu, usage) = (its_tree.cpu_seconds() - its_cpu, tree.usage());
    let samples = after.samples_pushed() - before.samples_pushed();
    let end = vmagent.drain()?;
    // All pushed samples are stored, except for the markers of series that ended, which no sum
    // contains.
    let pushed = (end.samples_pushed() - end.stale_markers()) as u64;
    let held = system.stored_samples(JOB, since)?;
    vmagent.stop()?;
    check_held(system.name(), held, pushed)?;
    let duration = |quantile| {
        let seconds = after.request_duration(&before, quantile);
        seconds.map_or(f64::NAN, |seconds| seconds * 1e3)
    };
    let figures = [
        samples / seconds,
        (usage.cpu_seconds - cpu) * 1e6 / samples.max(1.0),
        usage.memory_bytes as f64 / f64::from(1 << 20),
        duration(0.5),
        duration(0.99),
        end.retries(),
        end.packets_dropped(),
        pending,
        end.scrapes_failed(),
        after.reloads() - before.reloads(),
    ];
    let notes = vec![
        format!("vmagent {:.2} CPU-s/1M", its_cpu * 1e6 / samples.max(1.0)),
        format!("{} series", system.series()?),
        format!("responses, including the warm-up: {}", end.answers()),
    ];
    Ok((figures, notes))
}

fn check_held(system: &str, held: SampleTotals, pushed: u64) -> Result<()> {
    if held.samples == pushed {
        return Ok(());
    }
    Err(Error::Other(format!(
        "{system} contains {} samples; vmagent pushed {pushed}",
        held.samples
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote_write::data_files::both_forms;

    #[test]
    fn the_data_file_is_valid_and_names_existing_systems() {
        for definition in both_forms::<Definition>("vmagent", |definition| &definition.systems) {
            assert!(definition.churn_targets <= definition.targets);
        }
    }
}
