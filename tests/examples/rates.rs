//! How fast rows go in, heap and lanes in one run: INSERT … SELECT, COPY in binary, `lanes.append`, events into an UNLOGGED
//! table, and samples through the gateway. Each way's answer is verified before its rate is printed; lanes' rate is given as a ratio
//! to heap's, since times on their own say little. Heap and lanes take turns, each commits as often as the other, and the
//! best of some rounds counts: what else the machine does can only make a round slower. Not tuned for: one session, one client,
//! default settings.
//!
//! `make setup`, then `cargo run --release -p lanes-tests --example rates`.

use std::io::Write;
use std::ops::Range;
use std::time::{Duration, Instant};

use lanes_tests::cluster::Cluster;
use lanes_tests::gateway::{self, Gateway};
use lanes_tests::provision::{DATABASE, Passwords, provision};
use lanes_tests::remote_write::{Series, body};
use lanes_wire::{ColumnSource, ItemsSource, ValuesSource, encode};
use postgres::Client;

const ROWS: usize = 2_000_000;
const BATCH_ROWS: usize = 65_536;
const ROUNDS: usize = 5;
const POSTGRES_EPOCH_MICROS: i64 = 946_684_800_000_000;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let cluster = Cluster::builder("rates")
        .durable()
        .setting("shared_buffers", "512MB")
        .setting("max_wal_size", "8GB")
        .setting("lanes.arena_size", "1GB")
        .start()?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute("CREATE EXTENSION IF NOT EXISTS lanes")?;
    println!("{ROWS} rows of (timestamptz, int4, float8), best of {ROUNDS} rounds");
    for (way, heap, lanes) in [
        (
            "INSERT … SELECT",
            insert_select as Load,
            insert_select as Load,
        ),
        ("COPY binary", copy_binary, copy_binary),
        (
            "append, one transaction",
            copy_binary,
            append_in_transaction,
        ),
        ("append, a commit each", copy_binary_in_parts, append),
    ] {
        let (heap, lanes) = rates(&mut client, heap, lanes)?;
        println!(
            "{way:<24} heap {heap:>6.2} M rows/s   lanes {lanes:>6.2} M rows/s   ratio {:.2}",
            lanes / heap
        );
    }
    println!("(heap beside an append: COPY binary, of as many rows a transaction)");
    for batch_rows in [100, 1_000, 10_000, BATCH_ROWS] {
        let rate = event_rate(&mut client, batch_rows)?;
        println!(
            "events, UNLOGGED, batches of {batch_rows:>6}: {rate:>6.2} M rows/s, each batch a transaction"
        );
    }
    drop(client);
    gateway_rates(cluster)
}

type Load = fn(&mut Client) -> Result<Duration>;

/// Millions of rows a second into fresh tables of heap and of lanes, the best of some rounds in turns.
fn rates(client: &mut Client, heap: Load, lanes: Load) -> Result<(f64, f64)> {
    let mut best = (0.0, 0.0);
    for _ in 0..ROUNDS {
        best.0 = f64::max(best.0, rate(client, "heap", heap)?);
        best.1 = f64::max(best.1, rate(client, "lanes", lanes)?);
    }
    Ok(best)
}

fn rate(client: &mut Client, access_method: &str, load: Load) -> Result<f64> {
    client.batch_execute(&format!(
        "DROP TABLE IF EXISTS rates;
         CREATE TABLE rates (ts timestamptz NOT NULL, series int4 NOT NULL, value float8 NOT NULL) USING {access_method}"
    ))?;
    let taken = load(client)?;
    let row = client.query_one("SELECT count(*), sum(series)::int8 FROM rates", &[])?;
    let expected: i64 = (0..ROWS).map(|i| (i % 1000) as i64).sum();
    if (row.get::<_, i64>(0), row.get::<_, i64>(1)) != (ROWS as i64, expected) {
        return Err("the table does not hold what was loaded".into());
    }
    Ok(ROWS as f64 / taken.as_secs_f64() / 1e6)
}

fn insert_select(client: &mut Client) -> Result<Duration> {
    let started = Instant::now();
    client.batch_execute(&format!(
        "INSERT INTO rates SELECT timestamptz '2026-01-01' + i * interval '1 ms', i % 1000, i FROM generate_series(0, {}) i",
        ROWS - 1
    ))?;
    Ok(started.elapsed())
}

fn time_of(row: usize) -> i64 {
    1_767_225_600_000_000 + row as i64 * 1000
}

fn copy_binary(client: &mut Client) -> Result<Duration> {
    copy_rows(client, ROWS)
}

fn copy_binary_in_parts(client: &mut Client) -> Result<Duration> {
    copy_rows(client, BATCH_ROWS)
}

/// Copies all rows, so many a transaction.
fn copy_rows(client: &mut Client, transaction_rows: usize) -> Result<Duration> {
    let parts: Vec<Vec<u8>> = (0..ROWS)
        .step_by(transaction_rows)
        .map(|first| copy_bytes(first..ROWS.min(first + transaction_rows)))
        .collect();
    let started = Instant::now();
    for part in &parts {
        let mut copy = client.copy_in("COPY rates FROM STDIN (FORMAT binary)")?;
        copy.write_all(part)?;
        copy.finish()?;
    }
    Ok(started.elapsed())
}

fn copy_bytes(rows: Range<usize>) -> Vec<u8> {
    let mut bytes = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0".to_vec();
    for row in rows {
        bytes.extend_from_slice(&3i16.to_be_bytes());
        bytes.extend_from_slice(&8i32.to_be_bytes());
        bytes.extend_from_slice(&(time_of(row) - POSTGRES_EPOCH_MICROS).to_be_bytes());
        bytes.extend_from_slice(&4i32.to_be_bytes());
        bytes.extend_from_slice(&((row % 1000) as i32).to_be_bytes());
        bytes.extend_from_slice(&8i32.to_be_bytes());
        bytes.extend_from_slice(&(row as f64).to_be_bytes());
    }
    bytes.extend_from_slice(&(-1i16).to_be_bytes());
    bytes
}

fn append(client: &mut Client) -> Result<Duration> {
    let batches = sample_batches()?;
    let statement = client.prepare("SELECT lanes.append('rates', $1)")?;
    let started = Instant::now();
    for batch in &batches {
        client.query_one(&statement, &[batch])?;
    }
    Ok(started.elapsed())
}

fn append_in_transaction(client: &mut Client) -> Result<Duration> {
    let batches = sample_batches()?;
    let statement = client.prepare("SELECT lanes.append('rates', $1)")?;
    let started = Instant::now();
    let mut transaction = client.transaction()?;
    for batch in &batches {
        transaction.query_one(&statement, &[batch])?;
    }
    transaction.commit()?;
    Ok(started.elapsed())
}

fn column<'a>(name: &'a str, values: ValuesSource<'a>) -> ColumnSource<'a> {
    ColumnSource {
        name,
        values,
        validity: None,
    }
}

fn sample_batches() -> Result<Vec<Vec<u8>>> {
    let mut batches = Vec::new();
    for first in (0..ROWS).step_by(BATCH_ROWS) {
        let rows = first..ROWS.min(first + BATCH_ROWS);
        let times: Vec<i64> = rows.clone().map(time_of).collect();
        let series: Vec<i32> = rows.clone().map(|row| (row % 1000) as i32).collect();
        let values: Vec<f64> = rows.clone().map(|row| row as f64).collect();
        let columns = [
            column("ts", ValuesSource::Timestamp(&times)),
            column("series", ValuesSource::Int32(&series)),
            column("value", ValuesSource::Float64(&values)),
        ];
        let mut batch = Vec::new();
        encode(rows.len(), &columns, &mut batch)?;
        batches.push(batch);
    }
    Ok(batches)
}

/// Millions of events a second into an UNLOGGED table, in batches of so many rows, each committed asynchronously: the best
/// of some rounds.
fn event_rate(client: &mut Client, batch_rows: usize) -> Result<f64> {
    const SERVICES: u32 = 10;
    const BATCHES_MAX: usize = 2_000;
    let rows = ROWS.min(batch_rows * BATCHES_MAX) / batch_rows * batch_rows;
    let names: Vec<String> = (0..SERVICES).map(|n| format!("service-{n}")).collect();
    let bytes = names.concat();
    let ends: Vec<u32> = names
        .iter()
        .scan(0, |end, name| {
            *end += name.len() as u32;
            Some(*end)
        })
        .collect();
    let mut batches = Vec::new();
    for first in (0..rows).step_by(batch_rows) {
        let rows = first..first + batch_rows;
        let times: Vec<i64> = rows.clone().map(time_of).collect();
        // Neither in turns nor in runs: what follows on what cannot be guessed.
        let mixed = |row: usize| (row as u32).wrapping_mul(0x9e37_79b9) >> 16;
        let codes: Vec<u32> = rows.clone().map(|row| mixed(row) % SERVICES).collect();
        let durations: Vec<f32> = rows.clone().map(|row| mixed(row) as f32 / 64.0).collect();
        let mut errors = vec![0; batch_rows.div_ceil(8)];
        for (index, _) in rows.enumerate().filter(|(_, row)| row % 20 == 0) {
            errors[index / 8] |= 1 << (index % 8);
        }
        let service = ItemsSource::Dictionary {
            codes: &codes,
            item_ends: &ends,
            item_bytes: bytes.as_bytes(),
        };
        let columns = [
            column("ts", ValuesSource::Timestamp(&times)),
            column("service", ValuesSource::Text(service)),
            column("duration", ValuesSource::Float32(&durations)),
            column("is_error", ValuesSource::Bool(&errors)),
        ];
        let mut batch = Vec::new();
        encode(batch_rows, &columns, &mut batch)?;
        batches.push(batch);
    }
    client.batch_execute("SET synchronous_commit = off")?;
    let mut best = 0.0;
    for _ in 0..ROUNDS {
        client.batch_execute(
            "DROP TABLE IF EXISTS events;
             CREATE UNLOGGED TABLE events (ts timestamptz, service text, duration float4, is_error bool) USING lanes",
        )?;
        let statement = client.prepare("SELECT lanes.append('events', $1)")?;
        let started = Instant::now();
        for batch in &batches {
            client.query_one(&statement, &[batch])?;
        }
        let taken = started.elapsed();
        let row = client.query_one(
            "SELECT count(*), count(*) FILTER (WHERE is_error), count(DISTINCT service) FROM events",
            &[],
        )?;
        let expected = (rows as i64, rows.div_ceil(20) as i64, i64::from(SERVICES));
        if (
            row.get::<_, i64>(0),
            row.get::<_, i64>(1),
            row.get::<_, i64>(2),
        ) != expected
        {
            return Err("the table does not hold the events".into());
        }
        best = f64::max(best, rows as f64 / taken.as_secs_f64() / 1e6);
    }
    client.batch_execute("RESET synchronous_commit; DROP TABLE events")?;
    Ok(best)
}

/// Samples a second through the gateway: two connections, 2,000 series, 5,000 samples a request, each request acked at
/// `wal` before the connection sends its next. The client's own work is part of it.
fn gateway_rates(cluster: Cluster) -> Result<()> {
    const REQUESTS: usize = 200;
    const SERIES: usize = 1000;
    const SAMPLES: usize = 5;
    let passwords = Passwords::generate();
    provision(&cluster, &passwords)?;
    let gateway = Gateway::start(gateway::Settings::for_test("rates", &cluster, &passwords)?)?;
    for round in ["new series", "known series"] {
        let start_time = if round == "new series" {
            0
        } else {
            REQUESTS * SAMPLES
        };
        let bodies: Vec<Vec<Vec<u8>>> = (0..2)
            .map(|worker| {
                (0..REQUESTS)
                    .map(|request| {
                        request_body(worker, start_time + request * SAMPLES, SERIES, SAMPLES)
                    })
                    .collect()
            })
            .collect();
        let before: i64 = cluster
            .scalar(
                DATABASE,
                "SELECT count(*) FROM lanes.samples WHERE value >= 1e6",
            )?
            .parse()?;
        let started = Instant::now();
        std::thread::scope(|scope| -> Result<()> {
            let workers: Vec<_> = bodies
                .iter()
                .map(|bodies| {
                    let gateway = &gateway;
                    scope.spawn(move || {
                        bodies.iter().all(|b| {
                            gateway
                                .remote_write(b, Some("wal"))
                                .is_ok_and(|a| a.status == 204)
                        })
                    })
                })
                .collect();
            for worker in workers {
                if !worker.join().unwrap_or(false) {
                    return Err("a request was not answered 204".into());
                }
            }
            Ok(())
        })?;
        let taken = started.elapsed();
        let sent = 2 * REQUESTS * SERIES * SAMPLES;
        let after: i64 = cluster
            .scalar(
                DATABASE,
                "SELECT count(*) FROM lanes.samples WHERE value >= 1e6",
            )?
            .parse()?;
        if after - before != sent as i64 {
            return Err(format!("{} samples are stored of {sent}", after - before).into());
        }
        println!(
            "gateway, {round:<13} {:>6.2} M samples/s (client and servers on this machine)",
            sent as f64 / taken.as_secs_f64() / 1e6
        );
    }
    Ok(())
}

fn request_body(worker: usize, first: usize, series: usize, samples: usize) -> Vec<u8> {
    let series: Vec<Series> = (0..series)
        .map(|s| {
            let name = format!("{}", worker * 100_000 + s);
            let points = (first..first + samples)
                .map(|t| (1_767_225_600_000 + t as i64 * 10_000, 1e6 + t as f64))
                .collect();
            Series::new(
                "rates_total",
                &[
                    ("instance", "localhost:9100"),
                    ("job", "rates"),
                    ("n", &name),
                ],
                points,
            )
        })
        .collect();
    body(&series)
}
