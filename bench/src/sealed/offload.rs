//! The scenario `offload`: the effect of sealing and offloading on the latency of ingest.
//!
//! The rate is a share of what a closed loop reaches at the start, and equal in all turns. Each
//! turn begins with an empty table, and turns differ only in what happens beside ingest. Figures
//! are medians over the turns. Samples are of the past, so that sealed rows are at once old enough
//! to be offloaded.

use super::object_store::{Kind, ObjectStore};
use crate::fleet::bodies::Body;
use crate::fleet::shape::JOB;
use crate::load::Pace;
use crate::peers::http::now_milliseconds;
use crate::peers::lanes::{Lanes, Settings};
use crate::peers::system::System;
use crate::remote_write::comparison::{Figures, turns};
use crate::remote_write::phase::{ATTEMPTS_TO_KNOW, Phase, Way, send, verify};
use crate::remote_write::sender::{Fleet, Sender};
use crate::scenario::{Bar, Findings, Record, Run};
use lanes_support::error::{Error, Result};
use postgres::Client;
use serde::Deserialize;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The scenario's part of the data file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Definition {
    /// The system, by its level of acknowledgement.
    system: String,
    /// The activities beside ingest, in turns forwards and backwards.
    beside: Vec<Beside>,
    rounds: usize,
    targets: usize,
    /// The number of scrapes of the closed loop that measures the sustainable rate.
    trial_scrapes: usize,
    /// The rate, as a share of the sustainable one.
    share: f64,
    /// The duration of each turn.
    seconds: f64,
    connections: usize,
    /// The time after a turn until all sealed rows are offloaded.
    rest_seconds: f64,
    fleet: Fleet,
    store: Kind,
    /// The bar of p99, as a multiple of that without the activities.
    bar: Bar,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Beside {
    Nothing,
    Sealing,
    SealingAndOffloading,
}

impl Beside {
    fn name(self) -> &'static str {
        match self {
            Beside::Nothing => "nothing",
            Beside::Sealing => "sealing",
            Beside::SealingAndOffloading => "sealing and offloading",
        }
    }
}

/// The age of the first sample: more than the data of all turns.
const PAST_MILLISECONDS: i64 = 24 * 3_600_000;
/// The pause between a change of settings and the turn, in which the background worker reads the
/// settings and finishes the work of the last turn.
const PAUSE: Duration = Duration::from_secs(2);

/// The figures of each kind of turn, and the sealed rows.
#[derive(Default)]
struct Rows {
    p99: Figures,
    p50: Figures,
    rate: Figures,
    cpu: Figures,
    sealed: Figures,
    away: Figures,
}

/// Runs the scenario.
///
/// # Errors
/// The system does not start, or acknowledges nothing. A turn that fails is a record that says so.
pub fn run(run: &Run) -> Result<Findings> {
    let definition: Definition = run.definition()?;
    let folder = run.options.folder.join("offload");
    let shape = definition.fleet.shape(&folder)?;
    let store = ObjectStore::start(definition.store, &folder)?;
    let mut settings = Settings::of(
        &[("lanes.seal_naptime", "0"), ("autovacuum", "off")],
        &[("LANES_GATEWAY_OBJECTS_INTERVAL", "500ms")],
    );
    settings.gateway.extend(store.environment().iter().cloned());
    let level = Lanes::level_of(&definition.system)
        .ok_or_else(|| Error::Other(format!("`{}` is not a pg_lanes system", definition.system)))?;
    let servers = &run.options.servers;
    let mut system =
        servers.starting(|| Lanes::start_with(&definition.system, level, &settings))?;
    let mut findings = Findings::default();
    findings.systems.push(system.describe());
    let mut client = system.connect()?;
    let start = now_milliseconds() - PAST_MILLISECONDS;
    let mut sender = Sender::new(&shape, &definition.fleet, definition.targets, start);
    let rate = sustainable(run, &definition, &mut system, &mut sender)?;
    println!("    sustainable: {rate:.0} samples/s");
    let names: Vec<String> = definition
        .beside
        .iter()
        .map(|beside| beside.name().to_owned())
        .collect();
    let mut rows = Rows::default();
    for name in turns(&names, definition.rounds) {
        let Some(beside) = definition
            .beside
            .iter()
            .find(|beside| beside.name() == name)
        else {
            continue;
        };
        let turn = Turn {
            run,
            definition: &definition,
            beside: *beside,
            rate: rate * definition.share,
        };
        match turn.run(&mut system, &mut client, &mut sender) {
            Ok((phase, done)) => rows.add(name, &phase, &done),
            Err(error) => {
                let row = format!("ingest beside {name}");
                findings.add(Record::failed(
                    row,
                    &definition.system,
                    "ms",
                    error.to_string(),
                ));
            }
        }
    }
    rows.report(&definition, rate, &mut findings);
    drop(client);
    system.stop()?;
    Ok(findings)
}

/// Returns the samples per second that a closed loop gets acknowledged once all series are known.
fn sustainable(
    run: &Run,
    definition: &Definition,
    system: &mut Lanes,
    sender: &mut Sender,
) -> Result<f64> {
    let way = Way {
        pace: Pace::Closed,
        connections: definition.connections,
        attempts_again: ATTEMPTS_TO_KNOW,
        settle: PAUSE,
        client: run.options.client.clone(),
    };
    let first = Arc::new(sender.scrape(definition.targets)?);
    send(system, &first, &way)?;
    let trial = Arc::new(sender.scrapes(definition.targets, definition.trial_scrapes)?);
    Ok(send(system, &trial, &way)?.rate())
}

/// The shares of the rows that were sealed and offloaded during ingest.
struct Done {
    sealed: f64,
    away: f64,
}

struct Turn<'a> {
    run: &'a Run,
    definition: &'a Definition,
    beside: Beside,
    /// Samples per second.
    rate: f64,
}

impl Turn<'_> {
    fn run(
        &self,
        system: &mut Lanes,
        client: &mut Client,
        sender: &mut Sender,
    ) -> Result<(Phase, Done)> {
        let since = sender.time();
        let bodies = self.bodies(sender)?;
        let samples: u64 = bodies.iter().map(|body| body.holds.samples).sum();
        let requests_per_second = self.rate * bodies.len() as f64 / samples.max(1) as f64;
        self.prepare(client)?;
        let way = Way {
            pace: Pace::Open(requests_per_second),
            connections: self.definition.connections,
            attempts_again: 0,
            settle: Duration::ZERO,
            client: self.run.options.client.clone(),
        };
        let phase = send(system, &bodies, &way)?;
        let done = done(client, phase.samples)?;
        if self.beside == Beside::SealingAndOffloading {
            self.wait_until_away(client)?;
        }
        verify(system, (JOB, since), phase.sent, phase.samples)?;
        let expected = match self.beside {
            Beside::Nothing => done.sealed == 0.0,
            Beside::Sealing => done.sealed > 0.0 && done.away == 0.0,
            Beside::SealingAndOffloading => done.away > 0.0,
        };
        match expected {
            true => Ok((phase, done)),
            false => Err(Error::Other(format!(
                "at the last response, {:.0}% of the rows were sealed and {:.0}% offloaded",
                done.sealed * 100.0,
                done.away * 100.0
            ))),
        }
    }

    fn bodies(&self, sender: &mut Sender) -> Result<Arc<Vec<Body>>> {
        let Definition {
            targets, seconds, ..
        } = *self.definition;
        let of_scrape = (targets * self.definition.fleet.series_per_target) as f64;
        let scrapes = (self.rate * seconds / of_scrape).ceil().max(1.0) as usize;
        Ok(Arc::new(sender.scrapes(targets, scrapes)?))
    }

    /// Empties the table and applies the settings of a turn.
    fn prepare(&self, client: &mut Client) -> Result<()> {
        let (naptime, hot) = match self.beside {
            Beside::Nothing => (0, "RESET (hot)"),
            Beside::Sealing => (1, "RESET (hot)"),
            Beside::SealingAndOffloading => (1, "SET (hot = '1 second')"),
        };
        // Each statement runs alone: ALTER SYSTEM cannot run in a transaction.
        for statement in [
            "ALTER SYSTEM SET lanes.seal_naptime = 0",
            "SELECT pg_reload_conf()",
            "TRUNCATE lanes.samples",
            "CHECKPOINT",
            &format!("ALTER TABLE lanes.samples {hot}"),
            &format!("ALTER SYSTEM SET lanes.seal_naptime = {naptime}"),
            "SELECT pg_reload_conf()",
        ] {
            client.batch_execute(statement)?;
        }
        std::thread::sleep(PAUSE);
        Ok(())
    }

    /// Waits until all due segments are in the object store, so that no turn leaves work to the
    /// next.
    fn wait_until_away(&self, client: &mut Client) -> Result<()> {
        let start = Instant::now();
        let due = "SELECT count(*) FROM lanes.offload_list(1)";
        while client.query_one(due, &[])?.get::<_, i64>(0) > 0 {
            if start.elapsed().as_secs_f64() > self.definition.rest_seconds {
                return Err(Error::Other(format!(
                    "some segments are not in the store after {} s",
                    self.definition.rest_seconds
                )));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }
}

fn done(client: &mut Client, samples: u64) -> Result<Done> {
    let row = client.query_one(
        "SELECT coalesce(sum(rows - rows_dead) FILTER (WHERE state ~ 'sealed|remote'), 0)::float8,
                coalesce(sum(rows - rows_dead) FILTER (WHERE state ~ 'remote'), 0)::float8
           FROM lanes.arena_segments('lanes.samples')",
        &[],
    )?;
    let share = |rows: f64| rows / samples.max(1) as f64;
    Ok(Done {
        sealed: share(row.get(0)),
        away: share(row.get(1)),
    })
}

impl Rows {
    fn add(&mut self, name: &str, phase: &Phase, done: &Done) {
        let latency = phase.outcome.latency;
        println!(
            "    beside {name}: p50 {:.2} ms, p99 {:.2} ms, {:.0}% sealed, {:.0}% offloaded",
            latency.p50,
            latency.p99,
            done.sealed * 100.0,
            done.away * 100.0
        );
        let mut notes = phase.outcome.labels();
        if phase.dropped > 0 {
            notes.push(format!("{} samples dropped", phase.dropped));
        }
        self.p99.add(name, latency.p99, notes);
        self.p50.add(name, latency.p50, Vec::new());
        self.rate.add(name, phase.rate(), Vec::new());
        self.cpu.add(name, phase.cpu_per_million(), Vec::new());
        self.sealed.add(name, done.sealed * 100.0, Vec::new());
        self.away.add(name, done.away * 100.0, Vec::new());
    }

    fn report(&self, definition: &Definition, rate: f64, findings: &mut Findings) {
        let system = definition.system.as_str();
        let mut add = |row: String, figures: &Figures, name: &str, unit: &str| {
            if let Some(median) = figures.median(name) {
                findings.add(Record::new(row, system, median, unit).notes(figures.notes(name)));
            }
        };
        for beside in &definition.beside {
            let name = beside.name();
            for (what, figures, unit) in [
                ("p50", &self.p50, "ms"),
                ("p99", &self.p99, "ms"),
                ("samples acknowledged", &self.rate, "samples/s"),
                ("CPU of all processes", &self.cpu, "CPU-s/1M"),
                ("sealed at the end of the load", &self.sealed, "%"),
                ("offloaded at the end of the load", &self.away, "%"),
            ] {
                add(format!("ingest beside {name}: {what}"), figures, name, unit);
            }
        }
        let without = self.p99.median(Beside::Nothing.name());
        for beside in &definition.beside {
            if *beside == Beside::Nothing {
                continue;
            }
            let row = format!("ingest p99 beside {}, relative", beside.name());
            let record = match (self.p99.median(beside.name()), without) {
                (Some(with), Some(without)) if without > 0.0 => {
                    Record::new(row, system, with / without, "x").notes([format!(
                        "at {:.0}% of {rate:.0} samples/s",
                        definition.share * 100.0
                    )])
                }
                _ => Record::failed(row, system, "x", "one of the two was not measured"),
            };
            findings.add(record.bar(Some(definition.bar)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_file_is_valid_and_has_a_turn_without_activities() {
        for run in Run::both_forms("offload") {
            let definition: Definition = run.definition().unwrap();
            assert!(definition.beside.contains(&Beside::Nothing));
            assert!(definition.beside.contains(&Beside::SealingAndOffloading));
            assert!(Lanes::level_of(&definition.system).is_some());
        }
    }
}
