//! Trivial GETs over few and many connections: the rate of the HTTP server alone, which is the
//! upper limit of everything that passes through it.

use super::cross_check::{self, CrossCheck};
use super::definition::Run;
use super::findings::Findings;
use super::record::Record;
use super::system::{NAME, Setup, System};
use crate::load::{self, Outcome, Pace, Plan, Repeated, encode, lowest_at_peak};
use lanes_support::error::Result;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

/// The scenario's part of the data file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Definition {
    /// The requested path.
    path: String,
    /// The number of the client's threads.
    threads: usize,
    warm_up_seconds: f64,
    seconds: f64,
    /// The additional seconds per connection of a load over many connections, so that every
    /// connection has many turns.
    seconds_a_connection: f64,
    sweeps: Vec<Sweep>,
    /// The shares of the first sweep's peak at which latency is measured in an open loop.
    open_shares: Vec<f64>,
    /// The comparison with other generators.
    cross_check: CrossCheck,
    #[serde(default)]
    setup: Setup,
}

/// Loads with different numbers of connections.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sweep {
    /// The number of requests that wait on a connection. More than 1 is HTTP pipelining.
    depth: usize,
    connections: Vec<usize>,
}

const UNIT: &str = "requests/s";

/// Runs the scenario.
///
/// # Errors
/// The system does not start, or a load cannot run.
pub fn run(run: &Run) -> Result<Findings> {
    let definition: Definition = run.definition()?;
    let mut findings = Findings::default();
    let mut system = System::start("ceiling", &definition.setup, &run.options.servers)?;
    findings.systems = system.versions()?;
    let host = system.address().to_string();
    let request = encode("GET", &host, &definition.path, &[], b"");
    let base = Plan {
        threads: definition.threads,
        processors: run.options.client.clone(),
        watched: vec![system.tree()?],
        ..Plan::new(system.address(), Arc::new(Repeated(request)))
    };
    if run.options.wants("GET, closed loop, cross-check") {
        let url = format!("http://{host}{}", definition.path);
        cross_check::measure(definition.cross_check, &base, &url, &system, &mut findings);
    }
    let first_sweep = closed_loops(run, &definition, &base, &mut findings)?;
    let Some(best) = lowest_at_peak(&first_sweep) else {
        return Ok(findings);
    };
    let (connections, rate) = first_sweep[best];
    let text = format!(
        "lowest number of connections at {:.0} % of the peak",
        100.0 * load::PEAK_SHARE
    );
    findings.add(Record::new(text, NAME, connections, "connections"));
    let base = Plan {
        connections: connections as usize,
        ..base
    };
    open_loops(run, &definition, &base, rate, &mut findings)?;
    Ok(findings)
}

/// Runs the closed loops of all sweeps. Returns connections and rate of each loop of the first one.
fn closed_loops(
    run: &Run,
    definition: &Definition,
    base: &Plan,
    findings: &mut Findings,
) -> Result<Vec<(f64, f64)>> {
    let mut first_sweep = Vec::new();
    for (place, sweep) in definition.sweeps.iter().enumerate() {
        let (way, series) = match sweep.depth {
            1 => (String::new(), "one at a time".to_owned()),
            depth => (format!(", {depth} pipelined"), format!("{depth} pipelined")),
        };
        for connections in &sweep.connections {
            let row = format!("GET, closed loop, {connections} connections{way}");
            if !run.options.wants(&row) {
                continue;
            }
            let more = definition.seconds_a_connection * *connections as f64;
            let outcome = load::run(&Plan {
                connections: *connections,
                depth: sweep.depth,
                warm_up: Duration::from_secs_f64(definition.warm_up_seconds + more),
                window: Duration::from_secs_f64(definition.seconds + more),
                ..base.clone()
            })?;
            if place == 0 {
                first_sweep.push((*connections as f64, outcome.rate()));
            }
            let record = Record::new(&row, NAME, outcome.rate(), UNIT).point(
                "GET: throughput against connections",
                &series,
                *connections as f64,
                "connections",
            );
            add(findings, record, &outcome, None);
        }
    }
    Ok(first_sweep)
}

/// Runs open loops at shares of a rate.
fn open_loops(
    run: &Run,
    definition: &Definition,
    base: &Plan,
    rate: f64,
    findings: &mut Findings,
) -> Result<()> {
    for share in &definition.open_shares {
        let row = format!("GET, open loop at {:.0} % of that", 100.0 * share);
        if !run.options.wants(&row) {
            continue;
        }
        let outcome = load::run(&Plan {
            pace: Pace::Open(rate * share),
            warm_up: Duration::from_secs_f64(definition.warm_up_seconds),
            window: Duration::from_secs_f64(definition.seconds),
            ..base.clone()
        })?;
        let record = Record::new(&row, NAME, outcome.rate(), UNIT);
        add(
            findings,
            record,
            &outcome,
            Some("GET: latency against load"),
        );
    }
    Ok(())
}

/// Adds a rate with its CPU time and its latencies, and their position in a chart.
fn add(findings: &mut Findings, record: Record, outcome: &Outcome, chart: Option<&str>) {
    let row = record.row.clone();
    let microseconds = |seconds: f64| 1e6 * seconds / outcome.tally.completed.max(1) as f64;
    let servers = microseconds(
        outcome
            .watched
            .iter()
            .map(|watched| watched.cpu_seconds)
            .sum(),
    );
    let client = microseconds(outcome.client_cpu.iter().sum());
    let cpu = format!("CPU a request: servers {servers:.1} us, client {client:.1} us");
    findings.add(record.notes(outcome.labels()).notes([cpu]));
    let latency = outcome.latency;
    for (name, value) in [
        ("p50", latency.p50),
        ("p99", latency.p99),
        ("p99.9", latency.p999),
    ] {
        let mut record = Record::new(format!("{row}, {name}"), NAME, value, "ms");
        if let Some(chart) = chart {
            record = record.point(chart, name, outcome.rate(), UNIT);
        }
        findings.add(record);
    }
}
