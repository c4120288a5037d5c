//! Closed loops of one prepared statement over several connections to PostgreSQL.

use super::system::System;
use crate::load::{Latencies, Latency};
use lanes_support::error::{Error, Result};
use postgres::{Client, Statement};
use std::time::{Duration, Instant};

/// The settings of a loop.
#[derive(Debug, Clone, Copy)]
pub struct SqlLoop<'a> {
    /// The access method of the table.
    pub access_method: &'a str,
    /// The number of connections, each in its own thread.
    pub connections: usize,
    /// The setting `synchronous_commit`.
    pub synchronous: bool,
    /// The number of keys in the table of point reads.
    pub keys: usize,
    /// The number of values of each key.
    pub values_a_key: usize,
    /// The time before the measurement.
    pub warm_up: Duration,
    /// The measured time.
    pub window: Duration,
}

/// Inserts single rows, each in its own transaction. Returns commits per second and their
/// latencies. The committed rows are counted afterwards.
///
/// # Errors
/// PostgreSQL fails, or the table does not contain what was committed.
pub fn commits(system: &System, settings: &SqlLoop<'_>) -> Result<(f64, Latency)> {
    let mut client = system.connect()?;
    client.batch_execute(&format!(
        "DROP TABLE IF EXISTS commits;
         CREATE TABLE commits (ts timestamptz NOT NULL, key int4 NOT NULL, value float8 NOT NULL) USING {};
         CHECKPOINT",
        settings.access_method
    ))?;
    let insert = |client: &mut Client, statement: &Statement, number: u64| {
        let key = (number % 1000) as i32;
        client.execute(statement, &[&key, &(number as f64)])?;
        Ok(())
    };
    let (rate, latency, executed) = closed_loop(
        system,
        settings,
        "INSERT INTO commits VALUES (now(), $1, $2)",
        insert,
    )?;
    let stored: i64 = client
        .query_one("SELECT count(*) FROM commits", &[])?
        .get(0);
    match stored as u64 == executed {
        true => Ok((rate, latency)),
        false => Err(Error::Other(format!(
            "{stored} rows are stored, but {executed} were committed"
        ))),
    }
}

/// Reads the latest value of single keys. Returns reads per second and their latencies. Each answer
/// is compared with the loaded value.
///
/// # Errors
/// PostgreSQL fails, or an answer is wrong.
pub fn latest_reads(system: &System, settings: &SqlLoop<'_>) -> Result<(f64, Latency)> {
    let (keys, values) = (settings.keys as i64, settings.values_a_key as i64);
    let mut client = system.connect()?;
    let options = if settings.access_method == "lanes" {
        "WITH (order_by = 'key, ts')"
    } else {
        ""
    };
    client.batch_execute(&format!(
        "DROP TABLE IF EXISTS latest;
         CREATE TABLE latest (ts timestamptz NOT NULL, key int4 NOT NULL, value float8 NOT NULL) USING {} {options};
         INSERT INTO latest SELECT timestamptz '2026-01-01' + t * interval '10 s', k, t * {keys} + k
           FROM generate_series(0, {values} - 1) t, generate_series(0, {keys} - 1) k",
        settings.access_method
    ))?;
    if settings.access_method == "heap" {
        client.batch_execute("CREATE INDEX ON latest (key, ts) INCLUDE (value)")?;
    }
    // VACUUM cannot run in a transaction with other statements.
    client.batch_execute("VACUUM ANALYZE latest")?;
    client.batch_execute("CHECKPOINT")?;
    let read = |client: &mut Client, statement: &Statement, number: u64| {
        // The keys are in an order that differs from the stored one.
        let key = (number.wrapping_mul(2_654_435_761) % keys as u64) as i64;
        let found: f64 = client.query_one(statement, &[&(key as i32)])?.get(0);
        let expected = ((values - 1) * keys + key) as f64;
        match found == expected {
            true => Ok(()),
            false => Err(Error::Other(format!(
                "the latest value of key {key} is {expected}, not {found}"
            ))),
        }
    };
    let text = "SELECT value FROM latest WHERE key = $1 ORDER BY ts DESC LIMIT 1";
    closed_loop(system, settings, text, read).map(|(rate, latency, _)| (rate, latency))
}

/// Executes one statement repeatedly on each connection. Returns executions per second, the
/// latencies in the window, and the number of all executions.
fn closed_loop(
    system: &System,
    settings: &SqlLoop<'_>,
    text: &str,
    execute: impl Fn(&mut Client, &Statement, u64) -> Result<()> + Sync,
) -> Result<(f64, Latency, u64)> {
    let mut clients = Vec::new();
    for _ in 0..settings.connections {
        let mut client = system.connect()?;
        let level = if settings.synchronous { "on" } else { "off" };
        client.batch_execute(&format!("SET synchronous_commit = {level}"))?;
        let statement = client.prepare(text)?;
        clients.push((client, statement));
    }
    let opens = Instant::now() + settings.warm_up;
    let closes = opens + settings.window;
    std::thread::scope(|scope| {
        let execute = &execute;
        let stride = settings.connections as u64;
        let threads: Vec<_> = clients
            .into_iter()
            .zip(0u64..)
            .map(|((mut client, statement), place)| {
                scope.spawn(move || {
                    let (mut latencies, mut number) = (Latencies::default(), place);
                    loop {
                        let started = Instant::now();
                        if started >= closes {
                            return Ok((latencies, (number - place) / stride));
                        }
                        execute(&mut client, &statement, number)?;
                        if started >= opens {
                            latencies.add(started.elapsed().as_nanos() as u64);
                        }
                        number += stride;
                    }
                })
            })
            .collect();
        let (mut all, mut executed) = (Latencies::default(), 0);
        for thread in threads {
            let joined: std::result::Result<Result<(Latencies, u64)>, _> = thread.join();
            let (latencies, count) =
                joined.map_err(|_| Error::Other("a connection's thread panicked".to_owned()))??;
            all.add_all(&latencies);
            executed += count;
        }
        let latency = all.summary();
        Ok((
            latency.count as f64 / settings.window.as_secs_f64(),
            latency,
            executed,
        ))
    })
}
