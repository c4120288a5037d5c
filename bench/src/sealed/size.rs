//! Scenario `size`: what an hour of samples takes, beside VictoriaMetrics, and what it costs to make it so small.
//!
//! Each system is sent the same samples, an hour of them at the scrape interval, as fast as it takes them. Ours is vacuumed after every
//! few scrapes, as the background worker would do it, so that sealing and the merging of what was sealed before cost what they do in
//! practice; at the end everything is merged and vacuumed once more. Theirs is asked to merge everything. Then count and sum of all samples
//! are asked of both, and what both have on disk is compared.

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

/// The data file's own part.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Definition {
    /// Ours, by its level of acknowledgement.
    system: String,
    /// The version of VictoriaMetrics.
    yardstick: String,
    targets: usize,
    /// Of each target: 361 are an hour at 10 s.
    scrapes: usize,
    /// How many scrapes come in between two rounds of the sealer.
    scrapes_a_round: usize,
    connections: usize,
    fleet: Fleet,
    bars: Bars,
}

/// What is asked of the figures.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bars {
    /// Of bytes a sample, relative to the yardstick.
    size: RelativeBar,
    /// Bytes a sample that would be better still; told in a note.
    stretch_bytes: f64,
    /// CPU seconds of sealing and merging, for a million samples.
    seal_cpu: Bar,
    /// Bytes of the label index, with the hashes for gateways, for a series.
    label_index: Bar,
    /// Seconds from a gateway's start until a series that is new is acknowledged.
    gateway_start: Bar,
}

/// What a system holds and how large that is.
#[derive(Debug, Default)]
struct Filled {
    describes: String,
    samples: u64,
    series: u64,
    /// Bytes by what they are for.
    bytes: Vec<(&'static str, u64)>,
    /// CPU seconds of sealing as samples come in, and of the merging of everything at the end.
    seal_cpu: Option<(f64, f64)>,
    /// Bytes of the label index, with the hashes for gateways.
    label_index: Option<u64>,
    /// How long the gateway takes until it is ready, and until it has acknowledged a new series.
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
/// What the bar is for.
const ON_DISK: &str = "on disk: samples and series";
const IN_MEMORY: &str = "in memory, all samples read once: arena and buffers";
const DECODED: &str =
    "in memory, all samples read so often that they are decoded: arena and buffers";

/// Measures it.
///
/// # Errors
/// The data cannot be made; a system that cannot be measured is a record that says so.
pub fn run(run: &Run) -> Result<Findings> {
    let definition: Definition = run.definition()?;
    let folder = run.options.folder.join("size");
    let shape = definition.fleet.shape(&folder)?;
    // The last sample is shortly before now: no store refuses any.
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
            "{} as they came, {} when all was merged at the end",
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
            Record::new(
                "a gateway's start, to its first new series",
                name,
                known,
                "s",
            )
            .bar(Some(definition.bars.gateway_start))
            .notes([note]),
        );
    }
}

fn fill_theirs(history: &History, mut system: VictoriaMetrics) -> Result<Filled> {
    let (sent, _) = history.send_all(&mut system, || Ok(()))?;
    system.merge()?;
    // Before it is asked: answers make files of their own.
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

/// Nothing works in the background, so that the cost of sealing can be told from all else.
fn start_ours(definition: &Definition) -> Result<Lanes> {
    let name = definition.system.as_str();
    let level = Lanes::level_of(name)
        .ok_or_else(|| Error::Other(format!("`{name}` is not a system of ours")))?;
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
    // One VACUUM settles what was sealed, frees what it took the place of and moves what lies at the file's end; the next one
    // shortens the file. A third one, for a snapshot of the gateway's that held the first one up.
    let all = [
        "SELECT lanes.seal('lanes.samples')",
        "VACUUM lanes.samples",
        "VACUUM lanes.samples",
        "VACUUM lanes.samples",
    ];
    let merging = cpu_of(&tree, &mut client, &all)?;
    // What the arena still has of rows before they were sealed goes only when room is needed.
    drop(client);
    system.restart_postgres()?;
    let mut client = system.connect()?;
    verify(&system, (JOB, history.start), sent, sent.samples)?;
    let number = |client: &mut Client, sql: &str| -> Result<u64> {
        let number: i64 = client.query_one(sql, &[])?.get(0);
        Ok(number as u64)
    };
    // Of the buffers those of the samples, which hold what is sealed. What is read again is decoded to the arena, as long as it has room.
    let in_memory = "SELECT (SELECT bytes_used FROM lanes.arena())
           + (SELECT count(*) * current_setting('block_size')::int8 FROM pg_buffercache
              WHERE relfilenode = pg_relation_filenode('lanes.samples')
                AND reldatabase = (SELECT oid FROM pg_database WHERE datname = current_database()))";
    client.batch_execute("CREATE EXTENSION IF NOT EXISTS pg_buffercache")?;
    let read_once = number(&mut client, in_memory)?;
    // The look that was counted last is the one that decodes.
    let looks = number(
        &mut client,
        "SELECT current_setting('lanes.decode_after')::int8",
    )?;
    for _ in 0..=looks {
        verify(&system, (JOB, history.start), sent, sent.samples)?;
    }
    let decoded = number(&mut client, in_memory)?;
    let samples = number(
        &mut client,
        "SELECT pg_total_relation_size('lanes.samples')",
    )?;
    let series = number(
        &mut client,
        "SELECT sum(pg_total_relation_size(name))::int8
           FROM unnest(ARRAY['lanes.series_runs', 'lanes.metrics', 'lanes.registry']::regclass[]) AS name",
    )?;
    let live = number(
        &mut client,
        "SELECT sum(bytes_stored)::int8 FROM lanes.arena_segments('lanes.samples')",
    )?;
    let requests = number(
        &mut client,
        "SELECT pg_total_relation_size('lanes.requests')",
    )?;
    client.batch_execute("SELECT lanes.index_labels()")?;
    client.batch_execute("VACUUM lanes.label_runs, lanes.label_blocks, lanes.series_hashes")?;
    let label_index = number(
        &mut client,
        "SELECT sum(pg_total_relation_size(name))::int8
           FROM unnest(ARRAY['lanes.label_runs', 'lanes.label_blocks', 'lanes.series_hashes']::regclass[]) AS name",
    )?;
    let registered = system.series()?;
    let gateway_start = system.restart_gateway()?;
    let filled = Filled {
        describes: system.describe(),
        samples: sent.samples,
        series: registered,
        bytes: vec![
            (ON_DISK, samples + series),
            ("of these, sealed segments", live),
            (
                "of these, space of samples to be used again",
                samples.saturating_sub(live),
            ),
            ("of these, series", series),
            ("on disk: requests remembered for a day", requests),
            (IN_MEMORY, read_once),
            (DECODED, decoded),
        ],
        seal_cpu: Some((sealing, merging)),
        label_index: Some(label_index),
        gateway_start: Some(gateway_start),
    };
    drop(client);
    system.stop()?;
    Ok(filled)
}

/// CPU seconds of PostgreSQL while these statements run.
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
    use crate::scenario::Options;

    #[test]
    fn the_data_file_fits_and_is_of_an_hour() {
        for short in [false, true] {
            let options = Options {
                short,
                ..Options::default()
            };
            let run = Run::read("size", &options).unwrap();
            let definition: Definition = run.definition().unwrap();
            assert!(Lanes::level_of(&definition.system).is_some());
            assert_eq!(definition.bars.size.system, definition.system);
            let seconds = (definition.scrapes - 1) as f64 * definition.fleet.interval_seconds;
            assert!(seconds >= 3600.0);
        }
    }

    #[test]
    fn figures_are_of_one_sample() {
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
