//! The scenario `remote-write`: the cost of a million samples of new and of known series.
//!
//! Each turn is one system with an empty store: first one scrape of all targets, whose series are
//! all new, then some more scrapes, whose series are all known. Both are sent over a few
//! connections as fast as the system accepts them.

use super::comparison::{Figures, RelativeBar, turns};
use super::phase::{Phase, Way, send, verify};
use super::sender::{Fleet, Sender};
use crate::fleet::bodies::{Body, SampleTotals};
use crate::fleet::shape::JOB;
use crate::load::Pace;
use crate::peers::http::now_milliseconds;
use crate::peers::start;
use crate::peers::system::System;
use crate::scenario::{Findings, Record, Run};
use lanes_support::error::Result;
use serde::Deserialize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The scenario's part of the data file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Definition {
    systems: Vec<String>,
    /// The system that bars are relative to.
    yardstick: String,
    /// The number of rounds; in each, all systems have two turns.
    rounds: usize,
    targets: usize,
    /// The number of scrapes of known series.
    scrapes: usize,
    connections: usize,
    settle_seconds: f64,
    fleet: Fleet,
    /// The bars of CPU for new series.
    new_bars: Vec<RelativeBar>,
    /// The bars of CPU for known series.
    known_bars: Vec<RelativeBar>,
}

const UNIT: &str = "CPU-s/1M";

/// The figures of one kind of series.
#[derive(Default)]
struct Rows {
    cpu: Figures,
    rate: Figures,
    p99: Figures,
}

impl Rows {
    fn add(&mut self, name: &str, phase: &Phase) {
        let labels = phase.outcome.labels();
        let client: f64 = phase.outcome.client_cpu.iter().sum();
        let mut notes = labels.clone();
        notes.push(format!(
            "client {:.2} CPU-s/1M",
            client * 1e6 / phase.samples.max(1) as f64
        ));
        notes.extend(phase.shares());
        self.cpu.add(name, phase.cpu_per_million(), notes);
        self.rate.add(name, phase.rate(), labels);
        self.p99.add(name, phase.outcome.latency.p99, Vec::new());
    }
}

/// Runs the scenario.
///
/// # Errors
/// The data cannot be created. A system that cannot be measured is a record that says so.
pub fn run(run: &Run) -> Result<Findings> {
    let definition: Definition = run.definition()?;
    let folder = run.options.folder.join("remote-write");
    let shape = definition.fleet.shape(&folder)?;
    // All samples are in the past, the last one shortly before now, so that no store refuses them.
    let span = (definition.scrapes as f64 + 1.0) * definition.fleet.interval_seconds * 1000.0;
    let start = now_milliseconds() - span as i64;
    let mut sender = Sender::new(&shape, &definition.fleet, definition.targets, start);
    let new = Arc::new(sender.scrape(definition.targets)?);
    let known = Arc::new(sender.scrapes(definition.targets, definition.scrapes)?);
    let (mut of_new, mut of_known, mut memory) =
        (Rows::default(), Rows::default(), Figures::default());
    let mut findings = Findings::default();
    let wanted = run.options.wanted(&definition.systems);
    for name in turns(&wanted, definition.rounds) {
        match turn(run, &definition, name, &folder, (&new, &known), start) {
            Ok(turn) => {
                println!(
                    "    {name}: new {:.2}, known {:.2} {UNIT} ({})",
                    turn.new.cpu_per_million(),
                    turn.known.cpu_per_million(),
                    turn.known.shares().unwrap_or_default()
                );
                of_new.add(name, &turn.new);
                of_known.add(name, &turn.known);
                let series = turn.series.max(1) as f64;
                memory.add(
                    name,
                    turn.known.usage.memory_bytes as f64 / series,
                    vec![format!("{} series", turn.series)],
                );
                if !findings.systems.contains(&turn.describes) {
                    findings.systems.push(turn.describes);
                }
            }
            Err(error) => findings.add(Record::failed(
                "remote write",
                name,
                UNIT,
                error.to_string(),
            )),
        }
    }
    let rows = (&of_new, &of_known, &memory);
    add_records(&definition, &wanted, rows, &mut findings);
    Ok(findings)
}

/// Adds the records of new series, of known series, and of memory.
fn add_records(
    definition: &Definition,
    wanted: &[String],
    (of_new, of_known, memory): (&Rows, &Rows, &Figures),
    findings: &mut Findings,
) {
    let yardstick = definition.yardstick.as_str();
    for (kind, rows, bars) in [
        ("new series", of_new, &definition.new_bars),
        ("known series", of_known, &definition.known_bars),
    ] {
        let add = |figures: &Figures, findings: &mut Findings, row: &str, unit: &str, bars| {
            let row = format!("{kind}: {row}");
            figures.record(findings, &row, unit, wanted, (yardstick, bars), None);
        };
        add(&rows.cpu, findings, "CPU of all processes", UNIT, bars);
        add(
            &rows.rate,
            findings,
            "samples acknowledged",
            "samples/s",
            &[],
        );
        add(
            &rows.p99,
            findings,
            "p99 of a request, closed loop",
            "ms",
            &[],
        );
    }
    let row = "memory of all processes per series";
    memory.record(findings, row, "bytes", wanted, (yardstick, &[]), None);
}

/// The figures of one turn.
struct Turn {
    new: Phase,
    known: Phase,
    series: u64,
    describes: String,
}

fn turn(
    run: &Run,
    definition: &Definition,
    name: &str,
    folder: &Path,
    (new, known): (&Arc<Vec<Body>>, &Arc<Vec<Body>>),
    since: i64,
) -> Result<Turn> {
    let mut system = run
        .options
        .servers
        .starting(|| start::start(name, folder))?;
    let way = Way {
        pace: Pace::Closed,
        connections: definition.connections,
        attempts_again: 0,
        settle: Duration::from_secs_f64(definition.settle_seconds),
        client: run.options.client.clone(),
    };
    let measured = both(system.as_mut(), &way, (new, known), since);
    let stopped = system.stop();
    let turn = measured?;
    stopped?;
    Ok(turn)
}

fn both(
    system: &mut dyn System,
    way: &Way,
    (new, known): (&Arc<Vec<Body>>, &Arc<Vec<Body>>),
    since: i64,
) -> Result<Turn> {
    let first = send(system, new, way)?;
    verify(system, (JOB, since), first.sent, first.samples)?;
    let second = send(system, known, way)?;
    let mut sent: SampleTotals = first.sent;
    sent.add(second.sent);
    verify(system, (JOB, since), sent, first.samples + second.samples)?;
    Ok(Turn {
        series: system.series()?,
        describes: system.describe(),
        new: first,
        known: second,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote_write::data_files::both_forms;

    #[test]
    fn the_data_file_is_valid_and_names_existing_systems() {
        for definition in both_forms::<Definition>("remote-write", |definition| &definition.systems)
        {
            assert!(definition.systems.contains(&definition.yardstick));
        }
    }
}
