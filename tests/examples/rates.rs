//! How fast rows go in, heap and lanes in one run: INSERT … SELECT, COPY in binary, `lanes.append`, and samples through the
//! gateway. Each way's answer is verified before its rate is printed; lanes' rate is given as a ratio to heap's, since
//! times on their own say little. Not tuned for: one session, one client, default settings.
//!
//! `make setup`, then `cargo run --release -p lanes-tests --example rates`.

use std::io::Write;
use std::time::{Duration, Instant};

use lanes_tests::cluster::Cluster;
use lanes_tests::gateway::{self, Gateway};
use lanes_tests::provision::{DATABASE, Passwords, provision};
use lanes_tests::remote_write::{Series, body};
use lanes_wire::{ColumnSource, ValuesSource, encode};
use postgres::Client;

const ROWS: usize = 2_000_000;
const BATCH_ROWS: usize = 65_536;
const ROUNDS: usize = 3;
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
    println!("{ROWS} rows of (timestamptz, int4, float8), medians of {ROUNDS}");
    for (way, load) in [
        ("INSERT … SELECT", insert_select as Load),
        ("COPY binary", copy_binary),
    ] {
        let heap = rate(&mut client, "heap", load)?;
        let lanes = rate(&mut client, "lanes", load)?;
        println!(
            "{way:<18} heap {heap:>6.2} M rows/s   lanes {lanes:>6.2} M rows/s   ratio {:.2}",
            lanes / heap
        );
    }
    let heap = rate(&mut client, "heap", copy_binary)?;
    let lanes = rate(&mut client, "lanes", append)?;
    println!(
        "lanes.append       heap {heap:>6.2} M rows/s (COPY binary)   lanes {lanes:>6.2} M rows/s   ratio {:.2}",
        lanes / heap
    );
    drop(client);
    gateway_rates(cluster)
}

type Load = fn(&mut Client) -> Result<Duration>;

/// Millions of rows a second, the median of some rounds into a fresh table of this access method.
fn rate(client: &mut Client, access_method: &str, load: Load) -> Result<f64> {
    let mut rates = Vec::new();
    for _ in 0..ROUNDS {
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
        rates.push(ROWS as f64 / taken.as_secs_f64() / 1e6);
    }
    rates.sort_by(f64::total_cmp);
    Ok(rates[ROUNDS / 2])
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
    let mut bytes = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0".to_vec();
    for row in 0..ROWS {
        bytes.extend_from_slice(&3i16.to_be_bytes());
        bytes.extend_from_slice(&8i32.to_be_bytes());
        bytes.extend_from_slice(&(time_of(row) - POSTGRES_EPOCH_MICROS).to_be_bytes());
        bytes.extend_from_slice(&4i32.to_be_bytes());
        bytes.extend_from_slice(&((row % 1000) as i32).to_be_bytes());
        bytes.extend_from_slice(&8i32.to_be_bytes());
        bytes.extend_from_slice(&(row as f64).to_be_bytes());
    }
    bytes.extend_from_slice(&(-1i16).to_be_bytes());
    let started = Instant::now();
    let mut copy = client.copy_in("COPY rates FROM STDIN (FORMAT binary)")?;
    copy.write_all(&bytes)?;
    copy.finish()?;
    Ok(started.elapsed())
}

fn append(client: &mut Client) -> Result<Duration> {
    let mut batches = Vec::new();
    for first in (0..ROWS).step_by(BATCH_ROWS) {
        let rows = first..ROWS.min(first + BATCH_ROWS);
        let times: Vec<i64> = rows.clone().map(time_of).collect();
        let series: Vec<i32> = rows.clone().map(|row| (row % 1000) as i32).collect();
        let values: Vec<f64> = rows.clone().map(|row| row as f64).collect();
        let column = |name, values| ColumnSource {
            name,
            values,
            validity: None,
        };
        let columns = [
            column("ts", ValuesSource::Timestamp(&times)),
            column("series", ValuesSource::Int32(&series)),
            column("value", ValuesSource::Float64(&values)),
        ];
        let mut batch = Vec::new();
        encode(rows.len(), &columns, &mut batch)?;
        batches.push(batch);
    }
    let statement = client.prepare("SELECT lanes.append('rates', $1)")?;
    let started = Instant::now();
    for batch in &batches {
        client.query_one(&statement, &[batch])?;
    }
    Ok(started.elapsed())
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
