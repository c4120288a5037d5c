//! The scaling of the gateway with its workers, and with the sessions through which it appends, one
//! to many of each.
//!
//! The same closed loop of event batches runs with each number of workers and, separately, with
//! each number of sessions. Once PostgreSQL and the gateway together use all processors, more of
//! either has no effect, as the CPU columns show.

use super::definition::Run;
use super::event_batch::{EventRequests, Format};
use super::event_table::EventTable;
use super::findings::Findings;
use super::record::Record;
use super::system::{NAME, Setup, System};
use crate::load::{self, Outcome, Plan, lowest_at_peak};
use lanes_support::error::Result;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

/// The scenario's part of the data file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Definition {
    /// The gateway's setting for the number of workers, and its values.
    workers: Sweep,
    /// The gateway's setting for the number of sessions, and its values.
    sessions: Sweep,
    connections: usize,
    threads: usize,
    warm_up_seconds: f64,
    seconds: f64,
    /// The number of events in a request.
    batch: usize,
    /// The levels of acknowledgement, each with both sweeps.
    acks: Vec<String>,
    logged: bool,
    #[serde(default)]
    setup: Setup,
}

/// A setting of the gateway that varies.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sweep {
    setting: String,
    values: Vec<usize>,
    /// The value while the other setting varies.
    otherwise: usize,
}

const UNIT: &str = "events/s";

/// Runs the scenario.
///
/// # Errors
/// The system does not start.
pub fn run(run: &Run) -> Result<Findings> {
    let definition: Definition = run.definition()?;
    let mut findings = Findings::default();
    let mut system = System::start("shards", &definition.setup, &run.options.servers)?;
    findings.systems = system.versions()?;
    let (workers, sessions) = (&definition.workers, &definition.sessions);
    for ack in &definition.acks {
        for (varied, fixed, what) in [
            (workers, sessions, "workers"),
            (sessions, workers, "sessions"),
        ] {
            let mut steps = Vec::new();
            for value in &varied.values {
                let row = format!("{value} {what}, {ack}");
                if !run.options.wants(&row) {
                    continue;
                }
                let settings = [(varied, *value), (fixed, fixed.otherwise)];
                match measure(run, &definition, &mut system, settings, ack) {
                    Ok(outcome) => {
                        let rate = outcome.rate() * definition.batch as f64;
                        steps.push((*value as f64, rate));
                        let chart = format!("events: throughput against {what}");
                        let record = Record::new(row, NAME, rate, UNIT).point(
                            &chart,
                            ack,
                            *value as f64,
                            what,
                        );
                        findings.add(record.notes(outcome.labels()).notes(notes(&outcome)));
                    }
                    Err(error) => findings.add(Record::failed(row, NAME, UNIT, error.to_string())),
                }
            }
            if let Some(best) = lowest_at_peak(&steps) {
                let row = format!(
                    "fewest {what} at {:.0} % of the peak, {ack}",
                    100.0 * load::PEAK_SHARE
                );
                findings.add(Record::new(row, NAME, steps[best].0, what));
            }
        }
    }
    Ok(findings)
}

/// Runs one load on a gateway with these settings, and verifies it.
fn measure(
    run: &Run,
    definition: &Definition,
    system: &mut System,
    settings: [(&Sweep, usize); 2],
    ack: &str,
) -> Result<Outcome> {
    let mut setup = definition.setup.clone();
    for (sweep, value) in settings {
        setup
            .gateway
            .insert(sweep.setting.clone(), value.to_string());
    }
    system.restart_gateway(&setup, &run.options.servers)?;
    let table = EventTable::create(system, definition.logged)?;
    let host = system.address().to_string();
    let requests = EventRequests::new(
        Format::FlatBuffer,
        definition.batch,
        &host,
        table.name(),
        ack,
    )?;
    let requests = Arc::new(requests);
    let outcome = load::run(&Plan {
        connections: definition.connections,
        threads: definition.threads,
        warm_up: Duration::from_secs_f64(definition.warm_up_seconds),
        window: Duration::from_secs_f64(definition.seconds),
        processors: run.options.client.clone(),
        watched: system.parts()?.to_vec(),
        ..Plan::new(system.address(), requests.clone())
    })?;
    table.verify(&requests, &outcome)?;
    Ok(outcome)
}

fn notes(outcome: &Outcome) -> Vec<String> {
    let share = |seconds: f64| 100.0 * seconds / outcome.seconds;
    let servers = outcome
        .watched
        .iter()
        .map(|watched| format!("{} {:.0} %", watched.name, share(watched.cpu_seconds)));
    let client = format!("client {:.0} %", share(outcome.client_cpu.iter().sum()));
    let cpu: Vec<String> = servers.chain([client]).collect();
    vec![
        format!("p99 {:.2} ms", outcome.latency.p99),
        format!("of a processor: {}", cpu.join(", ")),
    ]
}
