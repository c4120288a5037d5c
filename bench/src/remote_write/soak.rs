//! The scenario `soak`: a constant load for a long time, with machines replaced and samples that
//! expire.
//!
//! The load is an open loop without an end; while a row's requests are sent, those of the next row
//! are encoded. At the start of each row some targets are replaced by other machines, whose series
//! are all new. The number of targets is determined at the start: their samples are a share of what
//! the first system accepts in a closed loop. pg_lanes drops samples older than its retention, so
//! from then on no figure should grow; the rows from then on show whether one does.

use super::phase::{ATTEMPTS_TO_KNOW, Phase, Way, send, verify};
use super::sender::{Fleet, Sender};
use super::trend::growth;
use crate::fleet::bodies::Body;
use crate::fleet::shape::{JOB, TargetShape};
use crate::load::Pace;
use crate::peers::http::now_milliseconds;
use crate::peers::lanes::{Lanes, Settings};
use crate::peers::start;
use crate::peers::system::{self, System};
use crate::scenario::{Bar, Findings, Record, Run};
use crate::usage::Processors;
use lanes_support::error::{Error, Result};
use serde::Deserialize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The scenario's part of the data file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Definition {
    /// The systems; each has one turn of the whole length.
    systems: Vec<String>,
    /// The number of targets of the closed loop that measures the first system's rate.
    trial_targets: usize,
    /// The number of scrapes of that loop.
    trial_scrapes: usize,
    /// The load, as a share of that rate.
    share: f64,
    /// The greatest number of targets.
    targets_max: usize,
    /// The whole length in seconds, rounded up to whole rows.
    seconds: f64,
    /// The length of a row in seconds, rounded up to whole scrapes.
    every_seconds: f64,
    /// The retention of pg_lanes for samples and for request digests. It is at least two rows,
    /// because a row is verified after it.
    retain_seconds: u64,
    /// The number of targets that are replaced at the start of each row.
    churn_targets: usize,
    connections: usize,
    fleet: Fleet,
    bars: Bars,
}

/// The bars.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bars {
    /// The greatest growth of a figure over the rows after the first samples have expired, as a
    /// share of its mean.
    growth: f64,
    /// With fewer rows, growth is not judged.
    rows_min: usize,
}

/// The wait after the first scrape, so that deferred work of new series does not fall into the
/// first row.
const SETTLE: Duration = Duration::from_secs(6);
/// A part is dropped as a whole, at a run of the sealer after its newest sample has expired. Disk
/// usage therefore reaches its maximum some time after the first sample has expired.
const FULL_TIMES: f64 = 1.5;

/// Runs the scenario.
///
/// # Errors
/// The data cannot be created. A system that fails is a record that says so.
pub fn run(run: &Run) -> Result<Findings> {
    let definition: Definition = run.definition()?;
    let folder = run.options.folder.join("soak");
    let shape = definition.fleet.shape(&folder)?;
    let mut findings = Findings::default();
    let mut targets = None;
    for name in definition
        .systems
        .iter()
        .filter(|name| run.options.wants(name))
    {
        let started = run
            .options
            .servers
            .starting(|| start(&definition, name, &folder));
        let soaked = started.and_then(|mut system| {
            findings.systems.push(system.describe());
            let soak = Soak {
                run,
                definition: &definition,
                shape: &shape,
            };
            let soaked = soak.soak(system.as_mut(), &mut targets, &mut findings);
            system.stop().and(soaked)
        });
        if let Err(error) = soaked {
            findings.add(Record::failed("soak", name, "ms", error.to_string()));
        }
    }
    Ok(findings)
}

/// Starts a system. pg_lanes has the retention of the definition; VictoriaMetrics keeps samples for
/// at least a day.
fn start(definition: &Definition, name: &str, folder: &Path) -> Result<Box<dyn System>> {
    let Some(level) = Lanes::level_of(name) else {
        return start::start(name, folder);
    };
    // The gateway keeps request digests for at least a minute.
    let age = format!("{}s", definition.retain_seconds.max(60));
    let settings = Settings::of(&[], &[("LANES_GATEWAY_REQUESTS_WINDOW", age.as_str())]);
    let lanes = Lanes::start_with(name, level, &settings)?;
    lanes.connect()?.batch_execute(&format!(
        "ALTER TABLE lanes.samples SET (retain = '{} seconds')",
        definition.retain_seconds
    ))?;
    Ok(Box::new(lanes))
}

/// The figures of a row, and those among them that should not grow.
const P50: &str = "p50";
const P99: &str = "p99";
const MEMORY: &str = "memory of all processes";
const DISK: &str = "on disk";
const FLAT: [&str; 4] = [P50, P99, MEMORY, DISK];

/// A row: the time of its end in seconds, and its figures.
type Row = (f64, Vec<(&'static str, f64)>);

struct Soak<'a> {
    run: &'a Run,
    definition: &'a Definition,
    shape: &'a TargetShape,
}

impl Soak<'_> {
    fn way(&self, pace: Pace) -> Way {
        Way {
            pace,
            connections: self.definition.connections,
            attempts_again: 0,
            settle: Duration::ZERO,
            client: self.run.options.client.clone(),
        }
    }

    /// Returns a phase at full speed with retries.
    fn unhurried(&self) -> Way {
        Way {
            attempts_again: ATTEMPTS_TO_KNOW,
            settle: SETTLE,
            ..self.way(Pace::Closed)
        }
    }

    /// Returns the number of targets whose samples are the requested share of the system's rate.
    fn find_targets(&self, system: &mut dyn System) -> Result<usize> {
        let definition = self.definition;
        let (targets, fleet) = (definition.trial_targets, &definition.fleet);
        // These samples precede those of the rows and expire before them.
        let span = (definition.trial_scrapes + 1) as f64 * fleet.interval_seconds * 1000.0;
        let start = now_milliseconds() - span as i64;
        let mut sender = Sender::new(self.shape, fleet, targets, start);
        let first = Arc::new(sender.scrape(targets)?);
        send(system, &first, &self.unhurried())?;
        let trial = Arc::new(sender.scrapes(targets, definition.trial_scrapes)?);
        let rate = send(system, &trial, &self.unhurried())?.rate();
        let samples_a_second = rate * definition.share;
        let of_target = self.shape.series.len() as f64 / fleet.interval_seconds;
        let found = (samples_a_second / of_target) as usize;
        println!(
            "    {} accepts {rate:.0} samples/s: {found} targets are {:.0}% of that",
            system.name(),
            definition.share * 100.0
        );
        Ok(found.clamp(1, definition.targets_max))
    }

    fn soak(
        &self,
        system: &mut dyn System,
        targets: &mut Option<usize>,
        findings: &mut Findings,
    ) -> Result<()> {
        let (definition, fleet) = (self.definition, &self.definition.fleet);
        let targets = match targets {
            Some(targets) => *targets,
            None => *targets.insert(self.find_targets(system)?),
        };
        let scrapes = (definition.every_seconds / fleet.interval_seconds)
            .ceil()
            .max(1.0) as usize;
        let every = scrapes as f64 * fleet.interval_seconds;
        let rows = (definition.seconds / every).ceil().max(1.0) as usize;
        let way = self.way(Pace::Open(fleet.requests_per_second(targets)));
        let mut sender = Sender::new(self.shape, fleet, targets, now_milliseconds());
        // A row's samples have the time at which it is sent, even if encoding and queries take
        // longer than a row. Otherwise their times would fall behind until they were too old to be
        // kept.
        let next = |sender: &mut Sender, begins: i64| -> Result<(i64, Arc<Vec<Body>>)> {
            sender.churn(definition.churn_targets);
            sender.skip_to(begins);
            let since = sender.time();
            Ok((since, Arc::new(sender.scrapes(targets, scrapes)?)))
        };
        // The series of all targets are first made known at full speed.
        let first = Arc::new(sender.scrape(targets)?);
        send(system, &first, &self.unhurried())?;
        let (mut since, mut bodies) = next(&mut sender, now_milliseconds())?;
        let (mut all, mut dropped) = (Vec::new(), 0);
        for row in 1..=rows {
            let begins = now_milliseconds() + (every * 1000.0) as i64;
            let before = Processors::now();
            let (phase, stolen, following) = std::thread::scope(|scope| -> Result<_> {
                let encoder = (row < rows).then(|| scope.spawn(|| next(&mut sender, begins)));
                let phase = send(system, &bodies, &way)?;
                let stolen = Processors::now().stolen_since(&before);
                let following = match encoder {
                    None => None,
                    Some(encoder) => Some(encoder.join().map_err(|_| {
                        Error::Other("the encoder of the next row panicked".to_owned())
                    })??),
                };
                Ok((phase, stolen, following))
            })?;
            // Verify this row alone: queries over all of a long run would disturb it.
            verify(system, (JOB, since), phase.sent, phase.samples)?;
            dropped += phase.dropped;
            let seconds = row as f64 * every;
            all.push((seconds, record(system, &phase, stolen, seconds, findings)?));
            match following {
                Some(following) => (since, bodies) = following,
                None => break,
            }
        }
        let load = format!(
            "{targets} targets, {:.0} samples/s",
            (targets * self.shape.series.len()) as f64 / fleet.interval_seconds
        );
        self.judge(system.name(), &all, (dropped, load), findings);
        Ok(())
    }

    /// Judges whether anything was dropped, and whether a figure grew.
    fn judge(
        &self,
        system: &str,
        rows: &[Row],
        (dropped, load): (u64, String),
        findings: &mut Findings,
    ) {
        let is_ours = system::is_ours(system);
        findings.add(
            Record::new(
                "all rows: samples dropped",
                system,
                dropped as f64,
                "samples",
            )
            .bar(is_ours.then_some(Bar::Most(0.0)))
            .notes([load]),
        );
        let full = self.definition.retain_seconds as f64 * FULL_TIMES;
        let late: Vec<&Row> = rows.iter().filter(|(seconds, _)| *seconds > full).collect();
        for what in [P50, P99] {
            let figures = rows.iter().flat_map(|(_, figures)| figures);
            let figures = figures.filter(|(name, _)| *name == what);
            if let Some(slowest) = figures.map(|(_, figure)| *figure).max_by(f64::total_cmp) {
                let row = format!("all rows: {what}, of the slowest row");
                findings.add(Record::new(row, system, slowest, "ms"));
            }
        }
        let bars = &self.definition.bars;
        let is_judged = is_ours && late.len() >= bars.rows_min;
        for what in FLAT {
            let points: Vec<(f64, f64)> = late
                .iter()
                .filter_map(|(seconds, figures)| {
                    let figure = figures.iter().find(|(name, _)| *name == what)?.1;
                    Some((*seconds, figure))
                })
                .collect();
            let Some(growth) = growth(&points) else {
                continue;
            };
            let note = match is_judged {
                true => format!("{} rows after {full:.0} s", late.len()),
                false => format!(
                    "{} rows after {full:.0} s, too few to be judged",
                    late.len()
                ),
            };
            let row = format!("all rows: {what}, growth until the end");
            findings.add(
                Record::new(row, system, growth * 100.0, "%")
                    .bar(is_judged.then_some(Bar::Most(bars.growth * 100.0)))
                    .notes([note]),
            );
        }
    }
}

fn record(
    system: &dyn System,
    phase: &Phase,
    stolen: f64,
    seconds: f64,
    findings: &mut Findings,
) -> Result<Vec<(&'static str, f64)>> {
    let latency = phase.outcome.latency;
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let figures = [
        ("samples acknowledged", phase.rate(), "samples/s"),
        (P50, latency.p50, "ms"),
        (P99, latency.p99, "ms"),
        ("samples dropped", phase.dropped as f64, "samples"),
        ("CPU of all processes", phase.cpu_per_million(), "CPU-s/1M"),
        ("unique series", system.series()? as f64, "series"),
        (MEMORY, mib(phase.usage.memory_bytes), "MiB"),
        (DISK, mib(system.disk_bytes()?), "MiB"),
        ("processor time stolen by the host", stolen * 100.0, "%"),
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
    Ok(figures.map(|(what, value, _)| (what, value)).to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote_write::data_files::both_forms;

    #[test]
    fn the_data_file_is_valid_and_names_existing_systems() {
        for definition in both_forms::<Definition>("soak", |definition| &definition.systems) {
            assert!(definition.every_seconds <= definition.seconds);
            let retain = definition.retain_seconds as f64;
            assert!(retain >= 2.0 * definition.every_seconds && retain < definition.seconds);
        }
    }
}
