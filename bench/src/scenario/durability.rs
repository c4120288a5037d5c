//! Small durable commits by level of acknowledgement, and point reads of the latest value.
//!
//! Commits are one event per request: over one connection, which is a single unloaded commit at a
//! time, and over many. A row with the same insert by SQL, into a lanes and into a heap table,
//! shows PostgreSQL's own share of a commit. Point reads return the latest value of one of many
//! keys by a prepared statement over the Unix socket, from a lanes table and from a heap table with
//! the best index. Each answer is compared with the loaded value.

use super::definition::Run;
use super::event_batch::{EventRequests, Format};
use super::event_table::EventTable;
use super::findings::Findings;
use super::record::{Bar, Record};
use super::sql_loop::{self, SqlLoop};
use super::system::{NAME, Setup, System};
use crate::load::{self, Latency, Plan};
use lanes_support::error::{Error, Result};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

/// The scenario's part of the data file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Definition {
    /// The levels of acknowledgement.
    acks: Vec<String>,
    /// The numbers of connections. One connection is the unloaded commit.
    connections: Vec<usize>,
    warm_up_seconds: f64,
    seconds: f64,
    /// The number of keys in the table of point reads; the next field is the number of values of
    /// each.
    keys: usize,
    values_a_key: usize,
    /// The numbers of connections of the point reads.
    readers: Vec<usize>,
    #[serde(default)]
    setup: Setup,
}

/// The level that needs a standby.
const REPLICA: &str = "replica";

/// Runs the scenario.
///
/// # Errors
/// The system does not start.
pub fn run(run: &Run) -> Result<Findings> {
    let definition: Definition = run.definition()?;
    let mut findings = Findings::default();
    let mut system = System::start("durability", &definition.setup, &run.options.servers)?;
    findings.systems = system.versions()?;
    for ack in definition.acks.iter().filter(|ack| *ack != REPLICA) {
        commits(run, &definition, &mut system, ack, &mut findings);
    }
    for access_method in ["lanes", "heap"] {
        for synchronous in [true, false] {
            let level = if synchronous { "on" } else { "off" };
            let row = format!(
                "INSERT of one row by SQL, synchronous_commit {level}, {}",
                counted(1)
            );
            if run.options.wants(&row) {
                let settings = sql_loop(&definition, access_method, 1, synchronous);
                report(
                    &mut findings,
                    &row,
                    access_method,
                    "commits/s",
                    sql_loop::commits(&system, &settings),
                );
            }
        }
    }
    for readers in &definition.readers {
        for (access_method, label) in [("lanes", "lanes"), ("heap", "heap, index (key, ts)")] {
            let row = format!("point read of the latest value, {}", counted(*readers));
            if run.options.wants(&row) {
                let settings = sql_loop(&definition, access_method, *readers, true);
                report(
                    &mut findings,
                    &row,
                    label,
                    "reads/s",
                    sql_loop::latest_reads(&system, &settings),
                );
            }
        }
    }
    // These rows are last: the standby would affect every later one.
    let mut replica_rows = definition
        .connections
        .iter()
        .map(|count| row(REPLICA, *count));
    if definition.acks.iter().any(|ack| ack == REPLICA)
        && replica_rows.any(|row| run.options.wants(&row))
    {
        match system.add_standby(&run.options.servers) {
            Ok(()) => commits(run, &definition, &mut system, REPLICA, &mut findings),
            Err(error) => findings.add(Record::failed(
                "commits of one event, replica",
                NAME,
                "commits/s",
                error.to_string(),
            )),
        }
    }
    Ok(findings)
}

fn row(ack: &str, connections: usize) -> String {
    format!("commits of one event, {ack}, {}", counted(connections))
}

/// Measures commits at a level, over each number of connections.
fn commits(
    run: &Run,
    definition: &Definition,
    system: &mut System,
    ack: &str,
    findings: &mut Findings,
) {
    for connections in &definition.connections {
        let row = row(ack, *connections);
        if !run.options.wants(&row) {
            continue;
        }
        match gateway_commits(run, definition, system, ack, *connections) {
            Ok((rate, latency, notes)) => add(
                findings,
                &row,
                NAME,
                "commits/s",
                (rate, latency),
                notes,
                *connections == 1,
            ),
            Err(error) => findings.add(Record::failed(row, NAME, "commits/s", error.to_string())),
        }
    }
}

fn counted(connections: usize) -> String {
    match connections {
        1 => "1 connection".to_owned(),
        many => format!("{many} connections"),
    }
}

fn sql_loop<'a>(
    definition: &Definition,
    access_method: &'a str,
    connections: usize,
    synchronous: bool,
) -> SqlLoop<'a> {
    SqlLoop {
        access_method,
        connections,
        synchronous,
        keys: definition.keys,
        values_a_key: definition.values_a_key,
        warm_up: Duration::from_secs_f64(definition.warm_up_seconds),
        window: Duration::from_secs_f64(definition.seconds),
    }
}

fn report(
    findings: &mut Findings,
    row: &str,
    system: &str,
    unit: &str,
    measured: Result<(f64, Latency)>,
) {
    match measured {
        Ok(measured) => add(
            findings,
            row,
            system,
            unit,
            measured,
            Vec::new(),
            row.ends_with(&counted(1)),
        ),
        Err(error) => findings.add(Record::failed(row, system, unit, error.to_string())),
    }
}

/// Adds a rate and its latencies; for unloaded commits also the shortest, the mean and the longest
/// latency.
fn add(
    findings: &mut Findings,
    row: &str,
    system: &str,
    unit: &str,
    measured: (f64, Latency),
    notes: Vec<String>,
    is_unloaded: bool,
) {
    let (rate, latency) = measured;
    findings.add(Record::new(row, system, rate, unit).notes(notes));
    let mut figures = vec![
        ("p50", latency.p50),
        ("p99", latency.p99),
        ("p99.9", latency.p999),
    ];
    if is_unloaded {
        figures.extend([
            ("min", latency.min),
            ("avg", latency.mean),
            ("max", latency.max),
        ]);
    }
    for (name, value) in figures {
        findings.add(Record::new(format!("{row}: {name}"), system, value, "ms").bar(None::<Bar>));
    }
}

type Measured = (f64, Latency, Vec<String>);

/// Measures commits through the gateway, and verifies them.
fn gateway_commits(
    run: &Run,
    definition: &Definition,
    system: &mut System,
    ack: &str,
    connections: usize,
) -> Result<Measured> {
    let table = EventTable::create(system, true)?;
    let host = system.address().to_string();
    let requests = Arc::new(EventRequests::new(
        Format::FlatBuffer,
        1,
        &host,
        table.name(),
        ack,
    )?);
    let outcome = load::run(&Plan {
        connections,
        warm_up: Duration::from_secs_f64(definition.warm_up_seconds),
        window: Duration::from_secs_f64(definition.seconds),
        processors: run.options.client.clone(),
        watched: vec![system.tree()?],
        ..Plan::new(system.address(), requests.clone())
    })?;
    table.verify(&requests, &outcome)?;
    if outcome.acknowledged() == 0 {
        return Err(Error::Other("nothing was acknowledged".to_owned()));
    }
    Ok((outcome.rate(), outcome.latency, outcome.labels()))
}
