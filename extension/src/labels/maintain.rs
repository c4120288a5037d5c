//! Builds and merges runs of the label index, and adds columns for labels to the views of metrics.

use std::collections::{BTreeMap, BTreeSet};

use lanes_labels::Malformed;
use lanes_labels::index::top::{self, RunRef};
use lanes_labels::index::{self, Builder, Directory};
use lanes_labels::label_set::{self, Label};
use pgrx::pg_sys::BuiltinOid::{BYTEAOID, INT4OID, INT8OID, TEXTARRAYOID, TEXTOID};
use pgrx::prelude::*;

use super::hashes;
use super::source::{RunBlocks, directory_by_now, each_series, sound};
use crate::error;
use crate::pg::statement::{OwnedArgument, Statement};
use crate::pg::text::ServerText;
use crate::pg::{catalog, server};

/// The lock conflicts with itself and with the lock under which the index is emptied.
static LOCK: Statement = Statement::changing(
    c"LOCK TABLE lanes.label_runs IN SHARE UPDATE EXCLUSIVE MODE",
    &[],
);
static RUNS: Statement = Statement::changing(
    c"SELECT run, first_id, last_id, series FROM lanes.label_runs ORDER BY first_id",
    &[],
);
/// Returns a row if there are runs of another version of this library.
static HAS_OTHERS: Statement = Statement::changing(
    c"SELECT FROM lanes.label_runs WHERE pg_catalog.substr(directory, 1, 1) <> $1 LIMIT 1",
    &[BYTEAOID],
);
static FORGET: Statement = Statement::changing(c"SELECT lanes.forget_label_index()", &[]);
static NEXT_SERIES: Statement = Statement::changing(
    c"SELECT min(first_id) FROM lanes.series_runs WHERE first_id > $1",
    &[INT4OID],
);
/// Series of a range of ids.
pub(super) static SERIES: Statement = Statement::changing(
    c"
    SELECT first_id, metric, labels FROM lanes.series_runs
     WHERE first_id BETWEEN $1 AND $2 ORDER BY first_id",
    &[INT4OID, INT4OID],
);
static NUMBER: Statement =
    Statement::changing(c"SELECT pg_catalog.nextval('lanes.label_run_numbers')", &[]);
static PUT_BLOCK: Statement = Statement::changing(
    c"INSERT INTO lanes.label_blocks (run, block, terms) VALUES ($1, $2, $3)",
    &[INT8OID, INT4OID, BYTEAOID],
);
static PUT_RUN: Statement = Statement::changing(
    c"INSERT INTO lanes.label_runs (run, first_id, last_id, series, directory) VALUES ($1, $2, $3, $4, $5)",
    &[INT8OID, INT4OID, INT4OID, INT4OID, BYTEAOID],
);
static DELETE_BLOCKS: Statement =
    Statement::changing(c"DELETE FROM lanes.label_blocks WHERE run = $1", &[INT8OID]);
static DELETE_RUN: Statement =
    Statement::changing(c"DELETE FROM lanes.label_runs WHERE run = $1", &[INT8OID]);

static PUT_LABELS: Statement = Statement::changing(
    c"
    INSERT INTO lanes.metric_labels (metric, name) SELECT $1, n FROM pg_catalog.unnest($2) AS n
    ON CONFLICT DO NOTHING",
    &[TEXTOID, TEXTARRAYOID],
);
static METRICS_TO_EXTEND: Statement =
    Statement::changing(c"SELECT metric FROM lanes.metrics_to_extend", &[]);
static LOCK_TIMEOUT: Statement = Statement::changing(
    c"SELECT pg_catalog.set_config('lock_timeout', '100ms', true)",
    &[],
);
static EXTEND: Statement = Statement::changing(c"SELECT lanes.extend_metric_view($1)", &[TEXTOID]);

/// The approximate number of ids that a new run covers. A run is built in memory.
pub(super) const RUN_IDS: i32 = 250_000;
/// A run is merged with the runs after it, unless it has this many times their series. The sizes of
/// runs follow a binary counter. So there are few runs, and a series is written again only when its
/// run grows by at least half.
const MERGE_RATIO: i64 = 2;

/// A run as stored in its table.
#[derive(Clone, Copy)]
struct Run {
    number: i64,
    first: i32,
    last: i32,
    series: i32,
}

/// Indexes all series that no run covers yet, and merges runs. Returns the number of series that were indexed.
#[pg_extern(sql = false)]
fn index_labels() -> i64 {
    if server::is_standby() {
        error::raise(
            PgSqlErrorCode::ERRCODE_READ_ONLY_SQL_TRANSACTION,
            "a standby cannot index labels",
            "Run lanes.index_labels() on the primary; its standbys follow.",
        );
    }
    if server::has_fixed_snapshot() {
        error::raise(
            PgSqlErrorCode::ERRCODE_INVALID_TRANSACTION_STATE,
            "lanes.index_labels() must see all committed rows",
            "Run it in a transaction of isolation level READ COMMITTED.",
        );
    }
    LOCK.run(&[]);
    let mut has_others = false;
    if let Some(version) = [index::VERSION].as_slice().into_datum() {
        HAS_OTHERS.each_row(&[version], |_| has_others = true);
    }
    if has_others {
        FORGET.run(&[]);
    }
    hashes::add();
    let mut indexed = 0;
    while let Some(first) = next_series(runs().last().map_or(0, |run| run.last)) {
        indexed += i64::from(build(first));
        merge_tail();
    }
    indexed
}

fn runs() -> Vec<Run> {
    let mut found = Vec::new();
    RUNS.each_row(&[], |row| {
        let columns = (row.get(1), row.get(2), row.get(3), row.get(4));
        if let (Some(number), Some(first), Some(last), Some(series)) = columns {
            found.push(Run {
                number,
                first,
                last,
                series,
            });
        }
    });
    found
}

/// The directory and the blocks of a run.
fn stored(run: &Run) -> (Directory, RunBlocks) {
    (
        directory_by_now(run.number),
        RunBlocks::StoredByNow(run.number),
    )
}

/// The first id of a registration that begins after an id.
pub(super) fn next_series(after: i32) -> Option<i32> {
    let mut next = None;
    NEXT_SERIES.each_row(&[pg_sys::Datum::from(after)], |row| next = row.get(1));
    next
}

/// Builds a run of the series from an id on. Returns their number.
fn build(first: i32) -> i32 {
    let mut builder = Builder::default();
    let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut end = first;
    let last = first.saturating_add(RUN_IDS - 1);
    each_series(
        &SERIES,
        &[first, last].map(pg_sys::Datum::from),
        |_| true,
        |id, metric, labels| {
            let labels = sound(label_set::parse(labels));
            builder.add(id, metric, &labels);
            note_names(&mut names, metric, &labels);
            end = id as i32;
        },
    );
    let run = Run {
        number: number(),
        first,
        last: end,
        series: builder.series() as i32,
    };
    let mut earlier: Vec<(Directory, RunBlocks)> = runs().iter().map(stored).collect();
    let mut earlier: Vec<RunRef<RunBlocks>> = earlier
        .iter_mut()
        .map(|(directory, blocks)| RunRef { directory, blocks })
        .collect();
    let directory = sound(builder.finish(
        |block, terms| put_block(run.number, block, &terms),
        |name, values| top::known_values(&mut earlier, name, values),
    ));
    put_run(&run, &directory);
    for (metric, names) in names {
        let of_server = |text: &str| ServerText::of_utf8(text.as_bytes());
        let names: Vec<ServerText> = names.iter().map(|name| of_server(name)).collect();
        if let (Some(metric), Some(names)) = (of_server(&metric).into_datum(), names.into_datum()) {
            PUT_LABELS.run(&[metric, names]);
        }
    }
    run.series
}

/// Adds the names of labels to those of a metric.
fn note_names(names: &mut BTreeMap<String, BTreeSet<String>>, metric: &str, labels: &[Label]) {
    if !names.contains_key(metric) {
        names.insert(metric.to_owned(), BTreeSet::new());
    }
    let Some(known) = names.get_mut(metric) else {
        return;
    };
    for (name, _) in labels {
        if !known.contains(name.as_ref()) {
            known.insert(name.clone().into_owned());
        }
    }
}

/// Merges the last runs, if they are of similar sizes.
fn merge_tail() {
    let runs = runs();
    let (mut start, mut series) = (runs.len(), 0);
    while start > 0 && (series == 0 || i64::from(runs[start - 1].series) < MERGE_RATIO * series) {
        start -= 1;
        series += i64::from(runs[start].series);
    }
    let merged = &runs[start..];
    let (Some(first), Some(last), true) = (merged.first(), merged.last(), merged.len() > 1) else {
        return;
    };
    let mut inputs: Vec<(Directory, RunBlocks)> = merged.iter().map(stored).collect();
    let run = Run {
        number: number(),
        first: first.first,
        last: last.last,
        series: series as i32,
    };
    let put = |block: usize, terms: Vec<u8>| {
        pgrx::check_for_interrupts!();
        put_block(run.number, block, &terms)
    };
    let directory = sound(index::merge(&mut inputs, put));
    for run in merged {
        DELETE_BLOCKS.run(&[pg_sys::Datum::from(run.number)]);
        DELETE_RUN.run(&[pg_sys::Datum::from(run.number)]);
    }
    put_run(&run, &directory);
}

fn number() -> i64 {
    let mut number = None;
    NUMBER.each_row(&[], |row| number = row.get(1));
    number.unwrap_or_default()
}

fn put_block(run: i64, block: usize, terms: &[u8]) -> Result<(), Malformed> {
    let terms = OwnedArgument::of(terms).ok_or(Malformed("a block is empty"))?;
    PUT_BLOCK.run(&[
        pg_sys::Datum::from(run),
        pg_sys::Datum::from(block as i32),
        terms.datum(),
    ]);
    Ok(())
}

fn put_run(run: &Run, directory: &Directory) {
    let directory = directory.write().into_datum();
    PUT_RUN.run(&[
        pg_sys::Datum::from(run.number),
        pg_sys::Datum::from(run.first),
        pg_sys::Datum::from(run.last),
        pg_sys::Datum::from(run.series),
        directory.unwrap_or(pg_sys::Datum::null()),
    ]);
}

/// The metrics whose views lack a column for a label. Without the extension there are none.
pub fn metrics_to_extend() -> Vec<String> {
    let mut metrics = Vec::new();
    if label_runs().is_some() {
        METRICS_TO_EXTEND.each_row(&[], |row| metrics.extend(row.get::<String>(1)));
    }
    metrics
}

/// Adds its missing columns to the view of a metric. It is an error if the view stays locked for 100 ms.
pub fn extend_view(metric: &str) {
    LOCK_TIMEOUT.run(&[]);
    if let Some(metric) = metric.into_datum() {
        EXTEND.run(&[metric]);
    }
}

/// The table of runs; `None` in a database without the extension.
fn label_runs() -> Option<pg_sys::Oid> {
    catalog::lanes_table(c"label_runs")
}

/// Indexes new series of a background worker's database, unless another process does. Without the extension it does
/// nothing.
pub fn visit() {
    let Some(table) = label_runs() else {
        return;
    };
    if server::try_lock_table(table, pg_sys::ShareUpdateExclusiveLock) {
        index_labels();
    }
}
