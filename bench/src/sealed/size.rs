//! The scenario `size`: the bytes of an hour of samples, beside VictoriaMetrics, and the cost of
//! compressing them.
//!
//! Each system receives the same samples, an hour of them at the scrape interval, as fast as it
//! accepts them. pg_lanes is vacuumed after every few scrapes, as the background worker would do
//! it, so that sealing and merging cost what they do in practice. At the end everything is merged
//! and vacuumed once more; VictoriaMetrics merges everything on request. Then both systems return
//! count and sum of all samples, and their bytes on disk are compared.

use crate::fleet::shape::JOB;
use crate::load::Pace;
use crate::peers::http::now_milliseconds;
use crate::peers::lanes::{Lanes, Settings};
use crate::peers::system::System;
use crate::peers::victoria_metrics::VictoriaMetrics;
use crate::remote_write::comparison::RelativeBar;
use crate::remote_write::history::History;
use crate::remote_write::phase::{ATTEMPTS_TO_KNOW, Way, verify};
use crate::remote_write::sender::Fleet;
use crate::scenario::record::figure;
use crate::scenario::{Bar, Findings, Record, Run};
use crate::usage::Tree;
use lanes_support::error::{Error, Result};
use postgres::Client;
use serde::Deserialize;
use std::time::Duration;

/// The scenario's part of the data file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Definition {
    /// The system, by its level of acknowledgement.
    system: String,
    /// The version of VictoriaMetrics.
    yardstick: String,
    targets: usize,
    /// The number of scrapes of each target: 361 are an hour at 10 s.
    scrapes: usize,
    /// The number of scrapes between two runs of the sealer.
    scrapes_a_round: usize,
    connections: usize,
    fleet: Fleet,
    bars: Bars,
}

/// The bars.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bars {
    /// The bar of bytes per sample, relative to the yardstick.
    size: RelativeBar,
    /// A more ambitious number of bytes per sample, reported in a note.
    stretch_bytes: f64,
    /// The bar of CPU seconds of sealing and merging, per million samples.
    seal_cpu: Bar,
    /// The bar of bytes per series of the label index, including the hashes for gateways.
    label_index: Bar,
    /// The bar of seconds from a gateway's start until a new series is acknowledged.
    gateway_start: Bar,
}

/// The content of a system, and its size.
#[derive(Debug, Default)]
struct Filled {
    describes: String,
    samples: u64,
    series: u64,
    /// The bytes by purpose.
    bytes: Vec<(&'static str, u64)>,
    /// CPU seconds of sealing during ingest, and of the merging at the end.
    seal_cpu: Option<(f64, f64)>,
    /// Bytes of the label index, including the hashes for gateways.
    label_index: Option<u64>,
    /// Seconds until the gateway is ready, and until it has acknowledged a new series.
    gateway_start: Option<(f64, f64)>,
}

impl Filled {
    fn per_sample(&self, bytes: u64) -> f64 {
        bytes as f64 / self.samples.max(1) as f64
    }

    fn of(&self, what: &str) -> Option<f64> {
        let found = self.bytes.iter().find(|(name, _)| *name == what);
        found.map(|(_, bytes)| self.per_sample(*bytes))
    }
}

const UNIT: &str = "bytes/sample";
/// The row that the bar is for.
const ON_DISK: &str = "on disk: samples and series";
const IN_MEMORY: &str = "in memory, all samples read once: arena and buffers";
const DECODED: &str = "in memory, all samples read until they are decoded: arena and buffers";

/// Runs the scenario.
///
/// # Errors
/// The data cannot be created. A system that cannot be measured is a record that says so.
pub fn run(run: &Run) -> Result<Findings> {
    let definition: Definition = run.definition()?;
    let folder = run.options.folder.join("size");
    let shape = definition.fleet.shape(&folder)?;
    // The last sample is shortly before now, so that no store refuses any.
    let span = definition.scrapes as f64 * definition.fleet.interval_seconds * 1000.0;
    let history = History {
        shape: &shape,
        fleet: &definition.fleet,
        targets: definition.targets,
        scrapes: definition.scrapes,
        scrapes_a_round: definition.scrapes_a_round,
        start: now_milliseconds() - span as i64,
        way: Way {
            pace: Pace::Closed,
            connections: definition.connections,
            attempts_again: ATTEMPTS_TO_KNOW,
            settle: Duration::ZERO,
            client: run.options.client.clone(),
        },
    };
    let mut findings = Findings::default();
    let yardstick = format!("VictoriaMetrics {}", definition.yardstick);
    let servers = &run.options.servers;
    let theirs = servers
        .starting(|| VictoriaMetrics::start(&definition.yardstick, &folder))
        .and_then(|system| fill_theirs(&history, system));
    let ours = servers
        .starting(|| start_ours(&definition))
        .and_then(|system| fill_ours(&history, system));
    let bar = theirs.as_ref().ok().and_then(|theirs| theirs.of(ON_DISK));
    for (name, filled) in [(&definition.system, ours), (&yardstick, theirs)] {
        match filled {
            Ok(filled) => report(&definition, name, &filled, bar, &mut findings),
            Err(error) => {
                findings.add(Record::failed(ON_DISK, name, UNIT, error.to_string()));
            }
        }
    }
    Ok(findings)
}

fn report(
    definition: &Definition,
    name: &str,
    filled: &Filled,
    theirs: Option<f64>,
    findings: &mut Findings,
) {
    findings.systems.push(filled.describes.clone());
    for (what, bytes) in &filled.bytes {
        let value = filled.per_sample(*bytes);
        let mut record = Record::new(*what, name, value, UNIT);
        let is_judged = [ON_DISK, IN_MEMORY].contains(what);
        if is_judged && name == definition.bars.size.system {
            let most = theirs.map(|theirs| Bar::Most(definition.bars.size.times * theirs));
            record = record.bar(most);
            let stretch = definition.bars.stretch_bytes;
            let verdict = if value <= stretch { "met" } else { "missed" };
            record = record.notes([format!("stretch {} bytes: {verdict}", figure(stretch))]);
        }
        if *what == ON_DISK {
            let (samples, series) = (filled.samples as f64, filled.series as f64);
            record = record.notes([format!(
                "{} samples of {} series",
                figure(samples),
                figure(series)
            )]);
        }
        findings.add(record);
    }
    if let Some((sealing, merging)) = filled.seal_cpu {
        let per_million = |seconds: f64| seconds * 1e6 / filled.samples.max(1) as f64;
        let all = per_million(sealing + merging);
        let parts = format!(
            "{} during ingest, {} for the merge at the end",
            figure(per_million(sealing)),
            figure(per_million(merging))
        );
        findings.add(
            Record::new("seal and merge, CPU of PostgreSQL", name, all, "CPU-s/1M")
                .bar(Some(definition.bars.seal_cpu))
                .notes([parts]),
        );
    }
    let series = filled.series.max(1) as f64;
    if let Some(bytes) = filled.label_index {
        let value = bytes as f64 / series;
        findings.add(
            Record::new(
                "label index and hashes for gateways",
                name,
                value,
                "bytes/series",
            )
            .bar(Some(definition.bars.label_index)),
        );
    }
    if let Some((ready, known)) = filled.gateway_start {
        let note = format!(
            "ready after {} s; {} series are registered",
            figure(ready),
            figure(series)
        );
        findings.add(
            Record::new("gateway start to the first new series", name, known, "s")
                .bar(Some(definition.bars.gateway_start))
                .notes([note]),
        );
    }
}

fn fill_theirs(history: &History, mut system: VictoriaMetrics) -> Result<Filled> {
    let (sent, _) = history.send_all(&mut system, || Ok(()))?;
    system.merge()?;
    // Measure the size before the queries, which create files.
    let on_disk = system.disk_bytes()?;
    verify(&system, (JOB, history.start), sent, sent.samples)?;
    let filled = Filled {
        describes: system.describe(),
        samples: sent.samples,
        series: system.series()?,
        bytes: vec![(ON_DISK, on_disk)],
        seal_cpu: None,
        label_index: None,
        gateway_start: None,
    };
    system.stop()?;
    Ok(filled)
}

/// Starts pg_lanes without background work, so that the cost of sealing is measured alone.
fn start_ours(definition: &Definition) -> Result<Lanes> {
    let name = definition.system.as_str();
    let level = Lanes::level_of(name)
        .ok_or_else(|| Error::Other(format!("`{name}` is not a pg_lanes system")))?;
    let settings = Settings::of(&[("lanes.seal_naptime", "0"), ("autovacuum", "off")], &[]);
    Lanes::start_with(name, level, &settings)
}

fn fill_ours(history: &History, mut system: Lanes) -> Result<Filled> {
    let mut client = system.connect()?;
    let tree = system.postgres_tree();
    let mut sealing = 0.0;
    let (sent, _) = history.send_all(&mut system, || {
        sealing += cpu_of(&tree, &mut client, &["VACUUM lanes.samples"])?;
        Ok(())
    })?;
    // One VACUUM installs the sealed parts, frees the space that they replace and moves the end of
    // the file; the next one truncates the file. A third one is for a snapshot of the gateway that
    // delayed the first one.
    let all = [
        "SELECT lanes.seal('lanes.samples')",
        "VACUUM lanes.samples",
        "VACUUM lanes.samples",
        "VACUUM lanes.samples",
    ];
    let merging = cpu_of(&tree, &mut client, &all)?;
    // The arena keeps rows from before sealing until it needs room.
    drop(client);
    system.restart_postgres()?;
    let mut client = system.connect()?;
    verify(&system, (JOB, history.start), sent, sent.samples)?;
    let verified = || verify(&system, (JOB, history.start), sent, sent.samples);
    let in_memory = measure_memory(&mut client, verified)?;
    let on_disk = measure_disk(&mut client)?;
    let label_index = measure_label_index(&mut client)?;
    let registered = system.series()?;
    let gateway_start = system.restart_gateway()?;
    let filled = Filled {
        describes: system.describe(),
        samples: sent.samples,
        series: registered,
        bytes: [on_disk, in_memory].concat(),
        seal_cpu: Some((sealing, merging)),
        label_index: Some(label_index),
        gateway_start: Some(gateway_start),
    };
    drop(client);
    system.stop()?;
    Ok(filled)
}

/// Returns the bytes in memory after one read of all samples, and after so many that they are
/// decoded. `read` reads all samples, and has already read them once.
fn measure_memory(
    client: &mut Client,
    read: impl Fn() -> Result<()>,
) -> Result<Vec<(&'static str, u64)>> {
    // Buffers count if they belong to the samples, and hold the sealed parts. Rows that are read
    // again are decoded into the arena as long as it has room.
    let in_memory = "SELECT (SELECT bytes_used FROM lanes.arena())
           + (SELECT count(*) * current_setting('block_size')::int8 FROM pg_buffercache
              WHERE relfilenode = pg_relation_filenode('lanes.samples')
                AND reldatabase = (SELECT oid FROM pg_database WHERE datname = current_database()))";
    client.batch_execute("CREATE EXTENSION IF NOT EXISTS pg_buffercache")?;
    let read_once = number(client, in_memory)?;
    // The read that reaches the count is the one that decodes.
    let looks = number(client, "SELECT current_setting('lanes.decode_after')::int8")?;
    for _ in 0..=looks {
        read()?;
    }
    Ok(vec![
        (IN_MEMORY, read_once),
        (DECODED, number(client, in_memory)?),
    ])
}

/// Returns the bytes on disk of samples, series and request digests.
fn measure_disk(client: &mut Client) -> Result<Vec<(&'static str, u64)>> {
    let samples = number(client, "SELECT pg_total_relation_size('lanes.samples')")?;
    let series = number(
        client,
        "SELECT sum(pg_total_relation_size(name))::int8
           FROM unnest(ARRAY['lanes.series_runs', 'lanes.metrics', 'lanes.registry']::regclass[]) AS name",
    )?;
    let live = number(
        client,
        "SELECT sum(bytes_stored)::int8 FROM lanes.arena_segments('lanes.samples')",
    )?;
    let requests = number(client, "SELECT pg_total_relation_size('lanes.requests')")?;
    Ok(vec![
        (ON_DISK, samples + series),
        ("of these, sealed segments", live),
        (
            "of these, free space of samples",
            samples.saturating_sub(live),
        ),
        ("of these, series", series),
        ("on disk: request digests of a day", requests),
    ])
}

/// Builds the label index and returns its bytes on disk.
fn measure_label_index(client: &mut Client) -> Result<u64> {
    client.batch_execute("SELECT lanes.index_labels()")?;
    client.batch_execute("VACUUM lanes.label_runs, lanes.label_blocks, lanes.series_hashes")?;
    number(
        client,
        "SELECT sum(pg_total_relation_size(name))::int8
           FROM unnest(ARRAY['lanes.label_runs', 'lanes.label_blocks', 'lanes.series_hashes']::regclass[]) AS name",
    )
}

/// Returns the number that a query selects.
fn number(client: &mut Client, sql: &str) -> Result<u64> {
    let number: i64 = client.query_one(sql, &[])?.get(0);
    Ok(number as u64)
}

/// Returns CPU seconds of PostgreSQL while these statements run.
fn cpu_of(tree: &Tree, client: &mut Client, statements: &[&str]) -> Result<f64> {
    let before = tree.clock();
    for statement in statements {
        client.batch_execute(statement)?;
    }
    Ok(tree.clock().seconds_since(&before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_file_is_valid_and_covers_an_hour() {
        for run in Run::both_forms("size") {
            let definition: Definition = run.definition().unwrap();
            assert!(Lanes::level_of(&definition.system).is_some());
            assert_eq!(definition.bars.size.system, definition.system);
            let seconds = (definition.scrapes - 1) as f64 * definition.fleet.interval_seconds;
            assert!(seconds >= 3600.0);
        }
    }

    #[test]
    fn figures_are_per_sample() {
        let filled = Filled {
            samples: 1000,
            bytes: vec![(ON_DISK, 1500), (IN_MEMORY, 20_000)],
            ..Filled::default()
        };
        assert_eq!(
            (filled.of(ON_DISK), filled.of(IN_MEMORY), filled.of("x")),
            (Some(1.5), Some(20.0), None)
        );
    }
}
