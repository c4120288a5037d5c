//! Batches of events through `POST /api/v1/events/{table}`: formats, batch sizes, levels of
//! acknowledgement, logged and unlogged tables.
//!
//! Each row of the data file is a closed loop at several numbers of connections, of which the
//! report shows the lowest that reaches 95 % of the peak, and an open loop at a share of that rate
//! for latencies without omission. Each load has a new table, whose content is compared with what
//! was acknowledged before a figure is reported.

use super::definition::Run;
use super::event_batch::{EventRequests, Format};
use super::event_table::EventTable;
use super::findings::Findings;
use super::record::{Bar, Record};
use super::system::{NAME, Setup, System};
use crate::load::{self, Outcome, Pace, Plan, goes_on, lowest_at_peak};
use lanes_support::error::Result;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

/// The scenario's part of the data file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Definition {
    /// The numbers of connections in ascending order, with one load each until the rate falls.
    connections: Vec<usize>,
    /// The number of the client's threads.
    threads: usize,
    warm_up_seconds: f64,
    seconds: f64,
    /// The share of the peak rate for the open loop, or 0 for no open loop.
    open_share: f64,
    /// Whether only rows with `short = true` run.
    rows_of_short_only: bool,
    rows: Vec<Row>,
    #[serde(default)]
    setup: Setup,
}

/// A row of the table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    format: Format,
    /// The number of events in a request.
    batch: usize,
    /// The level of acknowledgement, `memory` or `wal`.
    ack: String,
    /// Whether the table's pages are WAL-logged.
    logged: bool,
    /// The number of requests that wait on a connection. More than 1 is HTTP pipelining.
    #[serde(default = "one")]
    depth: usize,
    /// Whether the row is part of the short form.
    #[serde(default)]
    short: bool,
    /// The bar of the rate, in events per second.
    bar: Option<Bar>,
    /// The bar of the 99th percentile at that rate, in milliseconds.
    p99: Option<Bar>,
    /// The bar of the number of failed requests.
    failed: Option<Bar>,
}

fn one() -> usize {
    1
}

impl Row {
    /// Returns the events per second of an outcome.
    fn events(&self, outcome: &Outcome) -> f64 {
        outcome.rate() * self.batch as f64
    }

    fn name(&self) -> String {
        let table = if self.logged { "logged" } else { "UNLOGGED" };
        let mut name = format!(
            "{}, {} a request, {}, {table}",
            self.format.name(),
            self.batch,
            self.ack
        );
        if self.depth > 1 {
            name.push_str(&format!(", {} pipelined", self.depth));
        }
        name
    }
}

const UNIT: &str = "events/s";
const CPU_UNIT: &str = "CPU-s/1M events";

/// Runs the scenario.
///
/// # Errors
/// The system does not start.
pub fn run(run: &Run) -> Result<Findings> {
    let definition: Definition = run.definition()?;
    let mut findings = Findings::default();
    let mut system = System::start("events", &definition.setup, &run.options.servers)?;
    findings.systems = system.versions()?;
    for row in &definition.rows {
        let wanted = row.short || !definition.rows_of_short_only;
        if wanted && run.options.wants(&row.name()) {
            measure(run, &definition, row, &mut system, &mut findings);
        }
    }
    Ok(findings)
}

/// Measures one row. A failure is a record that says so.
fn measure(
    run: &Run,
    definition: &Definition,
    row: &Row,
    system: &mut System,
    findings: &mut Findings,
) {
    let name = row.name();
    if let Err(error) = try_measure(run, definition, row, system, findings) {
        findings.add(Record::failed(&name, NAME, UNIT, error.to_string()).bar(row.bar));
        for (what, unit, bar) in [
            ("p99", "ms", row.p99),
            ("failed requests", "requests", row.failed),
        ] {
            if bar.is_some() {
                let record = Record::failed(
                    format!("{name}: {what}"),
                    NAME,
                    unit,
                    "no load was verified",
                );
                findings.add(record.bar(bar));
            }
        }
    }
}

/// Measures one row: closed loops over more and more connections, then an open loop.
fn try_measure(
    run: &Run,
    definition: &Definition,
    row: &Row,
    system: &mut System,
    findings: &mut Findings,
) -> Result<()> {
    let mut steps: Vec<(usize, Outcome)> = Vec::new();
    let mut curve = Vec::new();
    for connections in &definition.connections {
        let outcome = load_once(run, definition, row, system, *connections, Pace::Closed)?;
        curve.push((*connections as f64, row.events(&outcome)));
        steps.push((*connections, outcome));
        if !goes_on(&curve) {
            break;
        }
    }
    if steps.len() > 1 {
        add_curve(row, &steps, findings);
    }
    let Some(best) = lowest_at_peak(&curve) else {
        return Ok(());
    };
    let (connections, outcome) = &steps[best];
    add_best(row, *connections, outcome, findings);
    if definition.open_share > 0.0 {
        let pace = Pace::Open(outcome.rate() * definition.open_share);
        let open = load_once(run, definition, row, system, *connections, pace)?;
        add_open_loop(row, definition.open_share, &open, findings);
    }
    Ok(())
}

/// Adds the rate of each closed loop.
fn add_curve(row: &Row, steps: &[(usize, Outcome)], findings: &mut Findings) {
    let name = row.name();
    let chart = format!(
        "events: throughput against connections, {} events per request",
        row.batch
    );
    for (connections, outcome) in steps {
        let step = format!("{name}: {connections} connections");
        let record = Record::new(step, NAME, row.events(outcome), UNIT);
        findings.add(record.notes(outcome.labels()).point(
            &chart,
            &name,
            *connections as f64,
            "connections",
        ));
    }
}

/// Adds the figures of the closed loop with the best number of connections.
fn add_best(row: &Row, connections: usize, outcome: &Outcome, findings: &mut Findings) {
    let name = row.name();
    let latency = outcome.latency;
    let notes = [format!(
        "{connections} connections, p50 {:.2} ms, p99.9 {:.2} ms, max {:.1} ms",
        latency.p50, latency.p999, latency.max
    )];
    findings.add(
        Record::new(&name, NAME, row.events(outcome), UNIT)
            .bar(row.bar)
            .notes(outcome.labels())
            .notes(notes),
    );
    findings.add(Record::new(format!("{name}: p99"), NAME, latency.p99, "ms").bar(row.p99));
    let failed = outcome.failed() as f64;
    findings.add(
        Record::new(format!("{name}: failed requests"), NAME, failed, "requests").bar(row.failed),
    );
    let per_million =
        |seconds: f64| seconds / (outcome.tally.completed.max(1) as f64 * row.batch as f64) * 1e6;
    for watched in &outcome.watched {
        let row = format!("{name}: CPU of {}", watched.name);
        let notes = [format!("{:.0} MB", watched.usage.memory_bytes as f64 / 1e6)];
        let cpu = per_million(watched.cpu_seconds);
        findings.add(Record::new(row, NAME, cpu, CPU_UNIT).notes(notes));
    }
    let client = per_million(outcome.client_cpu.iter().sum());
    let row = format!("{name}: CPU of the client");
    findings.add(Record::new(row, "client", client, CPU_UNIT));
}

/// Adds the figures of the open loop.
fn add_open_loop(row: &Row, share: f64, open: &Outcome, findings: &mut Findings) {
    let row_name = format!("{}: open loop at {:.0} %", row.name(), 100.0 * share);
    let events = row.events(open);
    findings.add(Record::new(&row_name, NAME, events, UNIT).notes(open.labels()));
    let latency = open.latency;
    for (what, value) in [
        ("p50", latency.p50),
        ("p99", latency.p99),
        ("p99.9", latency.p999),
    ] {
        findings.add(
            Record::new(format!("{row_name}, {what}"), NAME, value, "ms").point(
                "events: latency in open loops",
                &format!("{} {}: {what}", row.format.name(), row.batch),
                events,
                UNIT,
            ),
        );
    }
}

/// Runs a load into a new table, and verifies it.
fn load_once(
    run: &Run,
    definition: &Definition,
    row: &Row,
    system: &mut System,
    connections: usize,
    pace: Pace,
) -> Result<Outcome> {
    let table = EventTable::create(system, row.logged)?;
    let host = system.address().to_string();
    let requests = Arc::new(EventRequests::new(
        row.format,
        row.batch,
        &host,
        table.name(),
        &row.ack,
    )?);
    let plan = Plan {
        pace,
        connections,
        depth: row.depth,
        threads: definition.threads,
        warm_up: Duration::from_secs_f64(definition.warm_up_seconds),
        window: Duration::from_secs_f64(definition.seconds),
        processors: run.options.client.clone(),
        watched: system.parts()?.to_vec(),
        ..Plan::new(system.address(), requests.clone())
    };
    let outcome = load::run(&plan)?;
    table.verify(&requests, &outcome)?;
    Ok(outcome)
}
