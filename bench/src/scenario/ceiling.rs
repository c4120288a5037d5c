//! Trivial GETs over few and many connections: what the HTTP server alone does, the ceiling of everything that goes through it.

use super::definition::Run;
use super::findings::Findings;
use super::record::Record;
use super::system::{NAME, Setup, System};
use crate::load::{self, Pace, Plan, Repeated, encode, lowest_at_peak};
use lanes_tests::error::Result;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

/// The data file's own part.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Definition {
    /// What is fetched.
    path: String,
    /// Numbers of connections, one load each.
    connections: Vec<usize>,
    /// Threads of the client.
    threads: usize,
    warm_up_seconds: f64,
    seconds: f64,
    /// Requests that wait on a connection; a second sweep when more than 1.
    depth: usize,
    /// Shares of the peak at which latency is measured in an open loop.
    open_shares: Vec<f64>,
    #[serde(default)]
    setup: Setup,
}

const UNIT: &str = "requests/s";

/// Measures it.
///
/// # Errors
/// The system does not start.
pub fn run(run: &Run) -> Result<Findings> {
    let definition: Definition = run.definition()?;
    let mut findings = Findings::default();
    let mut system = System::start("ceiling", &definition.setup, &run.options.servers)?;
    findings.systems = system.versions()?;
    let host = system.address().to_string();
    let request = encode("GET", &host, &definition.path, &[], b"");
    let base = Plan {
        threads: definition.threads,
        warm_up: Duration::from_secs_f64(definition.warm_up_seconds),
        window: Duration::from_secs_f64(definition.seconds),
        processors: run.options.client.clone(),
        watched: vec![system.tree()?],
        ..Plan::new(system.address(), Arc::new(Repeated(request)))
    };
    let mut steps = Vec::new();
    for depth in [1, definition.depth] {
        if depth > 1 && definition.depth == 1 {
            break;
        }
        for connections in &definition.connections {
            let way = if depth == 1 {
                String::new()
            } else {
                format!(", {depth} pipelined")
            };
            let row = format!("GET, closed loop, {connections} connections{way}");
            if !run.options.wants(&row) {
                continue;
            }
            let plan = Plan {
                connections: *connections,
                depth,
                ..base.clone()
            };
            let outcome = load::run(&plan)?;
            if depth == 1 {
                steps.push((*connections as f64, outcome.rate()));
            }
            let (rate, latency, labels) = (outcome.rate(), outcome.latency, outcome.labels());
            let series = if depth == 1 {
                "one at a time".to_owned()
            } else {
                format!("{depth} pipelined")
            };
            let x = *connections as f64;
            let cpu = outcome
                .watched
                .iter()
                .map(|watched| watched.cpu_seconds)
                .sum::<f64>();
            let notes = [format!(
                "{:.1} us of the servers' CPU a request",
                1e6 * cpu / outcome.tally.completed.max(1) as f64
            )];
            findings.add(
                Record::new(&row, NAME, rate, UNIT)
                    .notes(labels.into_iter().chain(notes))
                    .point(
                        "GET: throughput against connections",
                        &series,
                        x,
                        "connections",
                    ),
            );
            for (name, value) in [
                ("p50", latency.p50),
                ("p99", latency.p99),
                ("p99.9", latency.p999),
            ] {
                findings.add(Record::new(format!("{row}, {name}"), NAME, value, "ms"));
            }
        }
    }
    let Some(best) = lowest_at_peak(&steps) else {
        return Ok(findings);
    };
    let (connections, rate) = steps[best];
    let text = format!(
        "lowest number of connections at {:.0} % of the peak",
        100.0 * load::PEAK_SHARE
    );
    findings.add(Record::new(text, NAME, connections, "connections"));
    for share in &definition.open_shares {
        let offered = rate * share;
        let row = format!("GET, open loop at {:.0} % of that", 100.0 * share);
        if !run.options.wants(&row) {
            continue;
        }
        let plan = Plan {
            connections: connections as usize,
            pace: Pace::Open(offered),
            ..base.clone()
        };
        let outcome = load::run(&plan)?;
        findings.add(Record::new(&row, NAME, outcome.rate(), UNIT).notes(outcome.labels()));
        let latency = outcome.latency;
        for (name, value) in [
            ("p50", latency.p50),
            ("p99", latency.p99),
            ("p99.9", latency.p999),
        ] {
            findings.add(
                Record::new(format!("{row}, {name}"), NAME, value, "ms").point(
                    "GET: latency against load",
                    name,
                    outcome.rate(),
                    UNIT,
                ),
            );
        }
    }
    Ok(findings)
}
