//! The scenario `ramp`: more and more targets at their scrape interval.
//!
//! Each system runs all steps in one turn. A step begins with one scrape at full speed, because the
//! series of its new targets have to be known first. Then the targets are scraped at their interval
//! in an open loop, which is measured. A system that does not keep up with a step (it drops
//! samples, or responds more slowly than requests are sent) does not run the next one.

use super::comparison::{Figures, RelativeBar, turns};
use super::phase::{ATTEMPTS_TO_KNOW, Phase, Way, send, verify};
use super::sender::{Fleet, Sender};
use crate::fleet::bodies::SampleTotals;
use crate::fleet::shape::{JOB, TargetShape};
use crate::load::Pace;
use crate::peers::http::now_milliseconds;
use crate::peers::start;
use crate::peers::system::System;
use crate::scenario::{Findings, Record, Run};
use lanes_support::error::Result;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The scenario's part of the data file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Definition {
    systems: Vec<String>,
    /// The system that bars are relative to.
    yardstick: String,
    rounds: usize,
    /// The numbers of targets, in ascending order.
    targets: Vec<usize>,
    /// The number of measured scrapes of each step.
    scrapes: usize,
    connections: usize,
    settle_seconds: f64,
    fleet: Fleet,
    /// The bars of p50 and p99.
    latency_bars: Vec<RelativeBar>,
}

/// The figures of each step: `(name, unit, whether the latency bars apply)`.
const ROWS: [(&str, &str, bool); 8] = [
    ("samples acknowledged", "samples/s", false),
    ("p50", "ms", true),
    ("p99", "ms", true),
    ("samples dropped", "samples", false),
    ("CPU of all processes", "CPU-s/1M", false),
    ("unique series", "series", false),
    ("memory of all processes per series", "bytes", false),
    ("on disk per sample", "bytes", false),
];

/// A step of one turn.
struct Step {
    phase: Phase,
    series: u64,
    disk_bytes: u64,
    /// The number of all samples in the store.
    samples: u64,
}

impl Step {
    /// Returns the figures in the order of [`ROWS`].
    fn figures(&self) -> [f64; 8] {
        let latency = self.phase.outcome.latency;
        [
            self.phase.rate(),
            latency.p50,
            latency.p99,
            self.phase.dropped as f64,
            self.phase.cpu_per_million(),
            self.series as f64,
            self.phase.usage.memory_bytes as f64 / self.series.max(1) as f64,
            self.disk_bytes as f64 / self.samples.max(1) as f64,
        ]
    }

    fn keeps_up(&self) -> bool {
        self.phase.dropped == 0 && !self.phase.outcome.is_overloaded()
    }
}

/// Runs the scenario.
///
/// # Errors
/// The data cannot be created. A system that cannot be measured is a record that says so.
pub fn run(run: &Run) -> Result<Findings> {
    let definition: Definition = run.definition()?;
    let folder = run.options.folder.join("ramp");
    let shape = definition.fleet.shape(&folder)?;
    let mut findings = Findings::default();
    let wanted = run.options.wanted(&definition.systems);
    let mut figures: BTreeMap<(usize, usize), Figures> = BTreeMap::new();
    // The steps that a system did not keep up with. Its figures of these are shown and not judged.
    let mut too_much: Vec<(usize, String)> = Vec::new();
    for name in turns(&wanted, definition.rounds) {
        let mut system = match run.options.servers.starting(|| start::start(name, &folder)) {
            Ok(system) => system,
            Err(error) => {
                findings.add(Record::failed("ramp", name, "ms", error.to_string()));
                continue;
            }
        };
        if !findings.systems.contains(&system.describe()) {
            findings.systems.push(system.describe());
        }
        let mut climb = Climb::new(run, &definition, &shape);
        for (place, targets) in definition.targets.iter().enumerate() {
            match climb.step(system.as_mut(), *targets) {
                Ok(step) => {
                    println!(
                        "    {name}, {targets} targets: p50 {:.2} ms, p99 {:.2} ms, {:.2} CPU-s/1M",
                        step.phase.outcome.latency.p50,
                        step.phase.outcome.latency.p99,
                        step.phase.cpu_per_million()
                    );
                    for (row, figure) in step.figures().into_iter().enumerate() {
                        let labels = step.phase.outcome.labels();
                        let row = figures.entry((place, row)).or_default();
                        row.add(name, figure, labels);
                    }
                    if !step.keeps_up() {
                        too_much.push((place, name.to_owned()));
                        break;
                    }
                }
                Err(error) => {
                    let row = format!("{targets} targets");
                    findings.add(Record::failed(row, name, "ms", error.to_string()));
                    break;
                }
            }
        }
        if let Err(error) = system.stop() {
            findings.failures.push(error.to_string());
        }
    }
    for ((place, row), figures) in &figures {
        let (targets, (what, unit, has_bars)) = (definition.targets[*place], ROWS[*row]);
        let fits = !too_much.iter().any(|(step, _)| step == place);
        let bars: &[RelativeBar] = match has_bars && fits {
            true => &definition.latency_bars,
            false => &[],
        };
        let chart = format!("{what} against targets");
        figures.record(
            &mut findings,
            &format!("{targets} targets: {what}"),
            unit,
            &wanted,
            (&definition.yardstick, bars),
            Some((&chart, targets as f64, "targets")),
        );
    }
    Ok(findings)
}

/// One turn.
struct Climb<'a> {
    definition: &'a Definition,
    /// The time of the first sample.
    start: i64,
    sender: Sender<'a>,
    way: Way,
    sent: SampleTotals,
    acknowledged: u64,
}

impl<'a> Climb<'a> {
    fn new(run: &Run, definition: &'a Definition, shape: &'a TargetShape) -> Climb<'a> {
        let most = definition.targets.iter().copied().max().unwrap_or(1);
        let start = now_milliseconds();
        Climb {
            start,
            definition,
            sender: Sender::new(shape, &definition.fleet, most, start),
            way: Way {
                pace: Pace::Closed,
                connections: definition.connections,
                attempts_again: ATTEMPTS_TO_KNOW,
                settle: Duration::from_secs_f64(definition.settle_seconds),
                client: run.options.client.clone(),
            },
            sent: SampleTotals::default(),
            acknowledged: 0,
        }
    }

    fn step(&mut self, system: &mut dyn System, targets: usize) -> Result<Step> {
        let first = Arc::new(self.sender.scrape(targets)?);
        let way = self.way.clone();
        let first = self.send(system, first, &way)?;
        drop(first);
        // Samples have the time at which they will be sent, as a scraper's do.
        self.sender.skip_to(now_milliseconds());
        let scrapes = self.sender.scrapes(targets, self.definition.scrapes)?;
        let rate = self.definition.fleet.requests_per_second(targets);
        let way = Way {
            pace: Pace::Open(rate),
            attempts_again: 0,
            ..self.way.clone()
        };
        let phase = self.send(system, Arc::new(scrapes), &way)?;
        verify(system, (JOB, self.start), self.sent, self.acknowledged)?;
        Ok(Step {
            series: system.series()?,
            disk_bytes: system.disk_bytes()?,
            samples: self.acknowledged,
            phase,
        })
    }

    fn send(
        &mut self,
        system: &mut dyn System,
        bodies: Arc<Vec<crate::fleet::bodies::Body>>,
        way: &Way,
    ) -> Result<Phase> {
        let phase = send(system, &bodies, way)?;
        self.sent.add(phase.sent);
        self.acknowledged += phase.samples;
        Ok(phase)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote_write::data_files::both_forms;

    #[test]
    fn the_data_file_is_valid_and_names_existing_systems() {
        for definition in both_forms::<Definition>("ramp", |definition| &definition.systems) {
            assert!(definition.targets.is_sorted());
        }
    }
}
