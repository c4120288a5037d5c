//! The scenario `sealed`: reading sealed rows: whole tables beside the same rows open, one series
//! out of many, and one series from an object store.

use super::object_store::{Kind, ObjectStore};
use super::sample_table::{NAME as TABLE, Reader, SampleTable};
use crate::scenario::system::{NAME, Setup, System};
use crate::scenario::{Bar, Findings, Record, Run};
use crate::sql::open_and_sealed::{self, Compared};
use crate::statistics::Times;
use lanes_support::error::{Error, Result};
use postgres::{Client, SimpleQueryMessage};
use serde::Deserialize;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The scenario's part of the data file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Definition {
    scans: Scans,
    series: OneSeries,
    bars: Bars,
    #[serde(default)]
    setup: Setup,
}

/// Queries on whole tables.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scans {
    /// The number of trades and of quotes; there are five times as many events.
    rows: usize,
    repeat: usize,
    /// The time for the timed executions of one query in one turn.
    budget_seconds: f64,
}

/// One series out of many.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OneSeries {
    /// The number of series in the table.
    count: usize,
    /// The number of samples of each series.
    samples: usize,
    interval_seconds: f64,
    /// The number of series that are read, one after another.
    reads: usize,
    /// The number of rounds over all of these series before the measurement.
    rounds_before: usize,
    /// The number of series that are read from a store.
    cold_reads: usize,
    /// The time until all segments are in a store.
    offload_seconds: f64,
    stores: Vec<Kind>,
}

/// The bars.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bars {
    /// The bar of rows per second on sealed rows, as a multiple of those on open rows.
    scan: Bar,
    /// The bar of milliseconds for one series.
    hot: Bar,
    /// The bar of milliseconds for one series that is only in a store.
    cold: Bar,
}

/// Runs the scenario.
///
/// # Errors
/// There are none: what cannot be measured is a record that says so.
pub fn run(run: &Run) -> Result<Findings> {
    let definition: Definition = run.definition()?;
    let mut findings = Findings::default();
    scans(run, &definition, &mut findings);
    // Each store has a system of its own. The first system is also read before anything is
    // offloaded.
    for (place, kind) in definition.series.stores.iter().enumerate() {
        let row = cold_row(&definition, *kind);
        let reads_hot = place == 0 && run.options.wants(&hot_row(&definition));
        if !reads_hot && !run.options.wants(&row) {
            continue;
        }
        if let Err(error) = series(run, &definition, *kind, reads_hot, &mut findings) {
            let record = Record::failed(row, NAME, "ms", error.to_string());
            findings.add(record.bar(Some(definition.bars.cold)));
        }
    }
    Ok(findings)
}

fn scans(run: &Run, definition: &Definition, findings: &mut Findings) {
    let settings = open_and_sealed::Settings {
        rows: definition.scans.rows,
        repeat: definition.scans.repeat,
        budget: Duration::from_secs_f64(definition.scans.budget_seconds),
    };
    let wants = |row: &str| run.options.wants(&format!("scan: {row}"));
    let compared = run
        .options
        .servers
        .starting(|| open_and_sealed::compare(&settings, wants));
    match compared {
        Ok(compared) => {
            for one in &compared {
                report_scan(definition, one, findings);
            }
        }
        Err(error) => findings.add(Record::failed("scan", NAME, "x open", error.to_string())),
    }
}

fn report_scan(definition: &Definition, compared: &Compared, findings: &mut Findings) {
    const UNIT: &str = "x open";
    if let (Err(reason), true) = (&compared.open, compared.sealed.is_empty()) {
        let record = Record::failed(format!("scan: {}", compared.row), NAME, UNIT, reason);
        findings.add(record.bar(Some(definition.bars.scan)));
    }
    for (form, sealed) in &compared.sealed {
        let row = format!("scan: {}, rows {form}", compared.row);
        let record = match (&compared.open, sealed) {
            (Ok(open), Ok(sealed)) => Record::new(row, NAME, open / sealed, UNIT)
                .notes([format!("open {open:.3} ms, sealed {sealed:.3} ms")]),
            (Err(reason), _) | (_, Err(reason)) => Record::failed(row, NAME, UNIT, reason),
        };
        findings.add(record.bar(Some(definition.bars.scan)));
    }
}

fn hot_row(definition: &Definition) -> String {
    format!("one series of {}, sealed", definition.series.count)
}

fn cold_row(definition: &Definition, kind: Kind) -> String {
    format!(
        "one series of {}, from {}, cold",
        definition.series.count,
        kind.name()
    )
}

fn series(
    run: &Run,
    definition: &Definition,
    kind: Kind,
    reads_hot: bool,
    findings: &mut Findings,
) -> Result<()> {
    let of = &definition.series;
    let store = ObjectStore::start(kind, &run.options.folder.join("sealed"))?;
    let servers = &run.options.servers;
    let mut system = System::start_with("sealed", &definition.setup, store.environment(), servers)?;
    findings.systems.extend(system.versions()?);
    let interval = Duration::from_secs_f64(of.interval_seconds);
    let table = SampleTable::new(of.count, of.samples, interval);
    let mut client = system.connect()?;
    table.load(&mut client)?;
    table.seal(&mut client)?;
    if reads_hot {
        hot(definition, &mut system, &table, findings)?;
    }
    if run.options.wants(&cold_row(definition, kind)) {
        drop(client);
        cold(definition, kind, &mut system, &table, findings)?;
    }
    Ok(())
}

/// Reads series of resident segments: with PostgreSQL's default plan, and without parallel workers,
/// whose start takes longer than such a read.
fn hot(
    definition: &Definition,
    system: &mut System,
    table: &SampleTable,
    findings: &mut Findings,
) -> Result<()> {
    let of = &definition.series;
    let tree = system.tree()?;
    for (planned, workers, bar) in [
        ("", "DEFAULT", Some(definition.bars.hot)),
        (", no parallel workers", "0", None),
    ] {
        let mut reader = table.reader(system.connect()?)?;
        let setting = format!("SET max_parallel_workers_per_gather = {workers}");
        reader.client().batch_execute(&setting)?;
        for _ in 0..of.rounds_before {
            for series in table.spread(of.reads) {
                reader.read(series)?;
            }
        }
        // Parallel workers are included, because they have ended by then.
        let before = tree.cpu_seconds();
        let times = table
            .spread(of.reads)
            .map(|series| reader.read(series))
            .collect::<Result<Vec<f64>>>()?;
        let cpu = tree.cpu_seconds() - before;
        let floor = (0..of.reads)
            .map(|_| reader.floor())
            .collect::<Result<Vec<f64>>>()?;
        let mut notes = notes(&mut reader, &mut system.connect()?, table)?;
        notes.extend(costs(times.len(), cpu, floor));
        let row = format!("{}{planned}", hot_row(definition));
        add(findings, &row, times, bar, notes);
    }
    Ok(())
}

/// Offloads everything, and reads series that are only in the store.
fn cold(
    definition: &Definition,
    kind: Kind,
    system: &mut System,
    table: &SampleTable,
    findings: &mut Findings,
) -> Result<()> {
    let of = &definition.series;
    let mut client = system.connect()?;
    client.batch_execute(&format!("ALTER TABLE {TABLE} SET (hot = '1 second')"))?;
    let start = Instant::now();
    let away = format!(
        "SELECT coalesce(bool_and(state = 'remote'), false) FROM lanes.arena_segments('{TABLE}') WHERE rows > rows_dead"
    );
    while !client.query_one(&away, &[])?.get::<_, bool>(0) {
        if start.elapsed().as_secs_f64() > of.offload_seconds {
            return Err(Error::Other(format!(
                "some segments are not in the store after {} s",
                of.offload_seconds
            )));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let away_seconds = start.elapsed().as_secs_f64();
    // Nothing is resident after a restart. The first read waits until the gateway has reconnected
    // to PostgreSQL.
    drop(client);
    system.restart_postgres()?;
    let mut client = system.connect()?;
    let mut reader = table.reader(system.connect()?)?;
    reader.read(0)?;
    let cache = ColdCache::of(system);
    let (mut times, mut skipped, mut floor) = (Vec::new(), 0, Vec::new());
    let (tree, mut cpu) = (system.tree()?, 0.0);
    for series in table.spread(of.cold_reads) {
        cache.clear()?;
        floor.push(reader.floor()?);
        let before = tree.clock();
        let time = reader.read(series)?;
        let used = tree.clock().seconds_since(&before);
        // Nothing was recalled: another series of the segment was read before, so the segment is
        // resident.
        match cache.files()?.is_empty() {
            true => skipped += 1,
            false => {
                times.push(time);
                cpu += used;
            }
        }
    }
    let mut notes = notes(&mut reader, &mut client, table)?;
    notes.extend(costs(times.len(), cpu, floor));
    notes.push(format!(
        "all segments were offloaded within {away_seconds:.1} s"
    ));
    if skipped > 0 {
        notes.push(format!("{skipped} reads found their segment resident"));
    }
    if times.is_empty() {
        return Err(Error::Other("no read was cold".to_owned()));
    }
    let row = cold_row(definition, kind);
    let bar = Some(definition.bars.cold);
    add(findings, &row, times, bar, notes);
    Ok(())
}

fn add(findings: &mut Findings, row: &str, times: Vec<f64>, bar: Option<Bar>, notes: Vec<String>) {
    let record = match Times::new(times) {
        Some(times) => {
            findings.add(
                Record::new(format!("{row}: p50"), NAME, times.median(), "ms")
                    .bar(bar)
                    .notes(notes),
            );
            Record::new(format!("{row}: p99"), NAME, times.p99(), "ms")
                .notes([format!("{} reads", times.count())])
        }
        None => Record::failed(row, NAME, "ms", "nothing was read").bar(bar),
    };
    findings.add(record);
}

/// Returns notes on the CPU time of all processes per read, and on the time of an empty query.
fn costs(reads: usize, cpu_seconds: f64, floor: Vec<f64>) -> Vec<String> {
    let cpu = cpu_seconds * 1e3 / reads.max(1) as f64;
    let floor = Times::new(floor).map(|floor| format!("SELECT 1: p50 {:.3} ms", floor.median()));
    let cpu = format!("{cpu:.3} ms of the servers' CPU per read");
    std::iter::once(cpu).chain(floor).collect()
}

/// Returns notes on the layout of the table, and on the segments that one read visits.
fn notes(reader: &mut Reader, client: &mut Client, table: &SampleTable) -> Result<Vec<String>> {
    let row = client.query_one(
        &format!(
            "SELECT count(*), (SELECT bytes_used >> 20 FROM lanes.arena()) FROM lanes.arena_segments('{TABLE}') WHERE rows > rows_dead"
        ),
        &[],
    )?;
    let (segments, arena): (i64, i64) = (row.get(0), row.get(1));
    let explain = format!(
        "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT ts, value FROM {TABLE} WHERE series = {}",
        table.spread(2).last().unwrap_or_default()
    );
    let mut counters = Vec::new();
    for message in reader.client().simple_query(&explain)? {
        if let SimpleQueryMessage::Row(row) = message
            && let Some(line) = row.get(0)
            && line.contains("Segments")
        {
            counters.push(line.trim().to_owned());
        }
    }
    let mut notes = vec![format!(
        "{} rows in {segments} segments, arena {arena} MiB",
        table.rows()
    )];
    notes.extend(counters);
    Ok(notes)
}

/// PostgreSQL's files of recalled segments.
struct ColdCache(PathBuf);

impl ColdCache {
    fn of(system: &System) -> ColdCache {
        ColdCache(system.cluster().data().join("base/pgsql_tmp"))
    }

    fn files(&self) -> Result<Vec<PathBuf>> {
        let entries = match std::fs::read_dir(&self.0) {
            Ok(entries) => entries,
            // The folder is created with the first file.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::file("list", &self.0)(error)),
        };
        let paths = entries.flatten().map(|entry| entry.path());
        let is_ours = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with("pgsql_tmp_lanes_"))
        };
        Ok(paths.filter(is_ours).collect())
    }

    fn clear(&self) -> Result<()> {
        for file in self.files()? {
            std::fs::remove_file(&file).map_err(Error::file("remove", &file))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Options;

    #[test]
    fn the_data_file_is_valid() {
        for run in Run::both_forms("sealed") {
            let definition: Definition = run.definition().unwrap();
            assert!(!definition.series.stores.is_empty());
            let hour = definition.series.samples as f64 * definition.series.interval_seconds;
            assert!(hour >= 3600.0);
        }
    }

    #[test]
    fn a_scan_is_judged_by_the_ratio_of_times() {
        let options = Options::default();
        let run = Run::read("sealed", &options).unwrap();
        let definition: Definition = run.definition().unwrap();
        let mut findings = Findings::default();
        let compared = Compared {
            row: "x".to_owned(),
            open: Ok(2.0),
            sealed: vec![
                ("sorted", Ok(1.0)),
                ("in order of arrival", Err("wrong".to_owned())),
            ],
        };
        report_scan(&definition, &compared, &mut findings);
        let [faster, failed] = &findings.records[..] else {
            panic!("{:?}", findings.records);
        };
        assert_eq!((faster.value, faster.met), (Some(2.0), Some(true)));
        assert_eq!((failed.value, failed.met), (None, Some(false)));
    }

    #[test]
    fn a_scan_without_an_expected_answer_has_failed() {
        let options = Options::default();
        let run = Run::read("sealed", &options).unwrap();
        let definition: Definition = run.definition().unwrap();
        let mut findings = Findings::default();
        let compared = Compared {
            row: "x".to_owned(),
            open: Err("no such table".to_owned()),
            sealed: Vec::new(),
        };
        report_scan(&definition, &compared, &mut findings);
        let [failed] = &findings.records[..] else {
            panic!("{:?}", findings.records);
        };
        assert_eq!((failed.row.as_str(), failed.met), ("scan: x", Some(false)));
    }
}
