//! `lanes.append` beside COPY into heap: rows per second of one session, and PostgreSQL's CPU time.
//!
//! An append is compared with COPY of equally many rows per transaction: all in one, or a commit for each batch. COPY
//! into lanes, which PostgreSQL reads row by row, separates the effect of the batch format from that of the table. Both
//! are also compared where the table has a btree, whose entries either make row by row (COPY) or run by run
//! (`lanes.append`). Background sealing is part of the measurement, as far as it proceeds in that time.

use super::append_rows::{Rows, Sent};
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
    /// The number of rows of each load.
    rows: usize,
    /// The number of rows of a batch, and of a transaction if each batch is one.
    batch_rows: usize,
    /// The number of rounds; in each, all loads have two turns.
    rounds: usize,
    bars: Bars,
    #[serde(default)]
    setup: Setup,
}

/// The bars.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bars {
    /// The bar of rows per second of `lanes.append`, as a multiple of those of COPY into heap.
    times_copy: f64,
    /// The same where the table has a btree.
    times_copy_indexed: f64,
}

/// The way in which rows are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Copy,
    Append,
}

/// One load.
#[derive(Debug, Clone, Copy)]
struct Load {
    way: Way,
    access_method: &'static str,
    /// Whether each batch is a transaction. Otherwise all rows are in one.
    commits_each: bool,
    /// The columns of the table's btree, if it has one.
    index: Option<&'static str>,
}

/// COPY into heap with equally many rows per transaction, and the same index, precedes each load that
/// is compared with it.
const LOADS: [Load; 10] = [
    Load::of(Way::Copy, "heap", false),
    Load::of(Way::Copy, "lanes", false),
    Load::of(Way::Append, "lanes", false),
    Load::of(Way::Copy, "heap", true),
    Load::of(Way::Copy, "lanes", true),
    Load::of(Way::Append, "lanes", true),
    Load::of(Way::Copy, "heap", true).with("ts"),
    Load::of(Way::Append, "lanes", true).with("ts"),
    Load::of(Way::Copy, "heap", true).with("series, ts"),
    Load::of(Way::Append, "lanes", true).with("series, ts"),
];

impl Load {
    const fn of(way: Way, access_method: &'static str, commits_each: bool) -> Load {
        Load {
            way,
            access_method,
            commits_each,
            index: None,
        }
    }

    const fn with(self, index: &'static str) -> Load {
        Load {
            index: Some(index),
            ..self
        }
    }

    /// What a load has in common with the one that it is compared with.
    fn table(&self) -> (bool, Option<&'static str>) {
        (self.commits_each, self.index)
    }

    fn row(&self) -> String {
        let way = match self.way {
            Way::Copy => "COPY binary",
            Way::Append => "lanes.append",
        };
        let commits = match self.commits_each {
            false => "one transaction",
            true => "a commit per batch",
        };
        match self.index {
            None => format!("{way}, {commits}"),
            Some(columns) => format!("{way}, {commits}, btree ({columns})"),
        }
    }
}

/// The figures of a turn.
#[derive(Debug, Clone, Copy)]
struct Turn {
    /// Rows per second.
    rate: f64,
    /// CPU seconds of all of PostgreSQL, per million rows.
    cpu_seconds: f64,
}

const UNIT: &str = "rows/s";

/// Runs the scenario.
///
/// # Errors
/// The cluster does not start.
pub fn run(run: &Run) -> Result<Findings> {
    let definition: Definition = run.definition()?;
    let rows = Rows::new(definition.rows, definition.batch_rows)?;
    let (cluster, mut client, mut findings) = definition.setup.database("append", run)?;
    let wanted: Vec<Load> = LOADS
        .into_iter()
        .filter(|load| run.options.wants(&load.row()))
        .collect();
    let mut turns: Vec<Result<Vec<Turn>>> = wanted.iter().map(|_| Ok(Vec::new())).collect();
    // The first pass creates files of the log that later ones recycle. A failure here also occurs
    // below, where it is reported.
    for load in &wanted {
        let _ = turn(&cluster, &mut client, load, &rows);
    }
    let forth_and_back = (0..wanted.len()).chain((0..wanted.len()).rev());
    for place in std::iter::repeat_n(forth_and_back, definition.rounds).flatten() {
        if let Ok(of_load) = &mut turns[place] {
            match turn(&cluster, &mut client, &wanted[place], &rows) {
                Ok(turn) => of_load.push(turn),
                Err(error) => turns[place] = Err(error),
            }
        }
    }
    let mut heap_rate = None;
    for (load, turns) in wanted.iter().zip(turns) {
        let (row, system) = (load.row(), load.access_method);
        let turns = match turns {
            Ok(turns) => turns,
            Err(error) => {
                findings.add(Record::failed(row, system, UNIT, error.to_string()));
                continue;
            }
        };
        let (rate, cpu_seconds) = (
            median(turns.iter().map(|turn| turn.rate)),
            median(turns.iter().map(|turn| turn.cpu_seconds)),
        );
        let rates: Vec<String> = turns.iter().map(|turn| figure(turn.rate / 1e6)).collect();
        let note = format!("turns: {} million", rates.join(" "));
        findings.add(Record::new(row.clone(), system, rate, UNIT).notes([note]));
        findings.add(Record::new(
            format!("{row}: CPU of PostgreSQL"),
            system,
            cpu_seconds,
            "CPU-s/1M",
        ));
        match (load.way, heap_rate) {
            (Way::Copy, _) if system == "heap" => heap_rate = Some((load.table(), rate)),
            (Way::Append, Some((table, heap))) if table == load.table() => {
                let row = format!("{row}: against COPY binary into heap");
                let bars = &definition.bars;
                let least = load
                    .index
                    .map_or(bars.times_copy, |_| bars.times_copy_indexed);
                let bar = Some(Bar::Least(least));
                findings.add(Record::new(row, system, rate / heap, "times").bar(bar));
            }
            _ => {}
        }
    }
    Ok(findings)
}

/// Runs one load into a new table, and verifies it.
fn turn(cluster: &Cluster, client: &mut Client, load: &Load, rows: &Rows) -> Result<Turn> {
    client.batch_execute(&format!(
        "DROP TABLE IF EXISTS appended;
         CREATE TABLE appended (ts timestamptz NOT NULL, series int4 NOT NULL, value float8 NOT NULL) USING {}",
        load.access_method
    ))?;
    if let Some(columns) = load.index {
        client.batch_execute(&format!("CREATE INDEX ON appended ({columns})"))?;
    }
    client.batch_execute("CHECKPOINT")?;
    let postgres = Tree::new("PostgreSQL", cluster.postmaster());
    let sent = match (load.way, load.commits_each) {
        (Way::Copy, false) => Sent::Copy(rows.copied_at_once()),
        (Way::Copy, true) => Sent::Copy(rows.copied_by_batch()),
        (Way::Append, is_each) => Sent::Append(rows.batches(), is_each),
    };
    let before = postgres.clock();
    let started = Instant::now();
    sent.send(client, "appended")?;
    let seconds = started.elapsed().as_secs_f64();
    let cpu_seconds = postgres.clock().seconds_since(&before);
    let row = client.query_one("SELECT count(*), sum(series)::int8 FROM appended", &[])?;
    let stored: (i64, i64) = (row.get(0), row.get(1));
    if stored != rows.count_and_sum() {
        return Err(Error::Other(format!(
            "rows and sum: {stored:?} stored, {:?} sent",
            rows.count_and_sum()
        )));
    }
    let millions = rows.count_and_sum().0 as f64 / 1e6;
    Ok(Turn {
        rate: millions * 1e6 / seconds,
        cpu_seconds: cpu_seconds / millions,
    })
}

/// Returns the median, or 0 if there are no values.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        count if count.is_multiple_of(2) => (values[middle - 1] + values[middle]) / 2.0,
        _ => values[middle],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Options;

    #[test]
    fn the_data_file_is_valid_and_each_append_has_its_copy() {
        let run = Run::read("append", &Options::default()).unwrap();
        run.definition::<Definition>().unwrap();
        let of = |table| {
            LOADS
                .iter()
                .filter(move |load| load.table() == table)
                .map(|load| (load.way, load.access_method))
                .collect::<Vec<_>>()
        };
        assert_eq!(of((false, None)), of((true, None)));
        for table in LOADS.map(|load| load.table()) {
            assert_eq!(of(table)[0], (Way::Copy, "heap"));
            assert_eq!(of(table).last(), Some(&(Way::Append, "lanes")));
        }
    }

    #[test]
    fn the_median_is_the_middle_or_the_mean_of_two() {
        for (values, middle) in [(&[3.0, 1.0, 2.0][..], 2.0), (&[4.0, 1.0], 2.5), (&[], 0.0)] {
            assert_eq!(median(values.iter().copied()), middle);
        }
    }
}
