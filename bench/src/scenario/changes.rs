//! Rows that are changed and added one by one, in a lanes table and in a heap table with the same key: seconds of a
//! statement, and their ratio.

use super::definition::Run;
use super::findings::Findings;
use super::record::{Bar, Record, figure};
use super::system::Setup;
use crate::usage::Tree;
use lanes_support::cluster::Cluster;
use lanes_support::error::{Error, Result};
use postgres::Client;
use serde::Deserialize;
use std::time::Instant;

/// The scenario's part of the data file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Definition {
    /// The number of rows of a loaded table.
    rows: u32,
    /// The number of turns of each system.
    rounds: usize,
    works: Vec<Work>,
    #[serde(default)]
    setup: Setup,
}

/// The table that a statement begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Begins {
    Loaded,
    Empty,
}

/// One statement.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Work {
    row: String,
    begins: Begins,
    /// `{n}` stands for a tenth of the rows.
    statement: String,
    /// The bar of the seconds in lanes, as a multiple of those in heap.
    most: f64,
}

/// The figures of a turn, and what the table holds after it.
#[derive(Debug, Clone, PartialEq)]
struct Turn {
    seconds: f64,
    /// CPU seconds of all of PostgreSQL.
    cpu_seconds: f64,
    content: (i64, i64, i64),
}

const SYSTEMS: [&str; 2] = ["heap", "lanes"];
const UNIT: &str = "ms";

/// Runs the scenario.
///
/// # Errors
/// The cluster does not start.
pub fn run(run: &Run) -> Result<Findings> {
    let definition: Definition = run.definition()?;
    let (cluster, mut client, mut findings) = definition.setup.database("changes", run)?;
    client.batch_execute("SET synchronous_commit = off")?;
    for work in &definition.works {
        if run.options.wants(&work.row) {
            match turns(&cluster, &mut client, work, &definition) {
                Ok(turns) => report(&mut findings, work, &turns),
                Err(error) => {
                    findings.add(Record::failed(&work.row, "lanes", UNIT, error.to_string()));
                }
            }
        }
    }
    Ok(findings)
}

/// Runs a statement on both systems in turns. Returns the turns of each.
fn turns(
    cluster: &Cluster,
    client: &mut Client,
    work: &Work,
    definition: &Definition,
) -> Result<[Vec<Turn>; 2]> {
    let mut turns = [Vec::new(), Vec::new()];
    for round in 0..definition.rounds {
        for place in [round % 2, 1 - round % 2] {
            turns[place].push(turn(
                cluster,
                client,
                work,
                definition.rows,
                SYSTEMS[place],
            )?);
        }
    }
    let [heap, lanes] = &turns;
    match heap
        .iter()
        .chain(lanes)
        .all(|turn| turn.content == heap[0].content)
    {
        true => Ok(turns),
        false => Err(Error::Other(format!(
            "the tables differ: {heap:?} in heap, {lanes:?} in lanes"
        ))),
    }
}

fn turn(
    cluster: &Cluster,
    client: &mut Client,
    work: &Work,
    rows: u32,
    access_method: &str,
) -> Result<Turn> {
    client.batch_execute(&format!(
        "DROP TABLE IF EXISTS t;
         CREATE TABLE t (id int4 PRIMARY KEY, k int4, v float8, s text) USING {access_method}"
    ))?;
    if work.begins == Begins::Loaded {
        client.batch_execute(&format!(
            "INSERT INTO t SELECT g, g % 1000, g * 0.5, 'name' || g % 5000 FROM generate_series(1, {rows}) g"
        ))?;
        if access_method == "lanes" {
            client.batch_execute("SELECT lanes.seal('t')")?;
        }
        client.batch_execute("VACUUM ANALYZE t")?;
    }
    client.batch_execute("CHECKPOINT")?;
    let statement = work.statement.replace("{n}", &(rows / 10).to_string());
    let postgres = Tree::new("PostgreSQL", cluster.postmaster());
    let before = postgres.clock();
    let started = Instant::now();
    client.batch_execute(&statement)?;
    let seconds = started.elapsed().as_secs_f64();
    let cpu_seconds = postgres.clock().seconds_since(&before);
    let row = client.query_one(
        "SELECT count(*), coalesce(sum(id::int8), 0)::int8, coalesce(sum(v), 0)::int8 FROM t",
        &[],
    )?;
    Ok(Turn {
        seconds,
        cpu_seconds,
        content: (row.get(0), row.get(1), row.get(2)),
    })
}

fn report(findings: &mut Findings, work: &Work, turns: &[Vec<Turn>; 2]) {
    let mut medians = [0.0; 2];
    for (place, (system, turns)) in SYSTEMS.iter().zip(turns).enumerate() {
        medians[place] = median(turns.iter().map(|turn| turn.seconds * 1e3));
        let cpu = median(turns.iter().map(|turn| turn.cpu_seconds * 1e3));
        let note = format!("CPU of PostgreSQL: {} ms", figure(cpu));
        findings.add(Record::new(work.row.clone(), system, medians[place], UNIT).notes([note]));
    }
    let [heap, lanes] = medians;
    let row = format!("{}: against heap", work.row);
    let bar = Some(Bar::Most(work.most));
    findings.add(Record::new(row, "lanes", lanes / heap, "times").bar(bar));
}

/// Returns the middle value, or 0 if there are none.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Options;

    #[test]
    fn the_data_file_is_valid_and_names_each_work_once() {
        let run = Run::read("changes", &Options::default()).unwrap();
        let definition = run.definition::<Definition>().unwrap();
        let rows: std::collections::BTreeSet<&str> = definition
            .works
            .iter()
            .map(|work| work.row.as_str())
            .collect();
        assert_eq!(rows.len(), definition.works.len());
    }
}
