//! The transactions that write to both tables.

use super::super::is_lost;
use super::Shared;
use lanes_support::seed::Random;
use postgres::error::SqlState;
use rand::{RngExt, SeedableRng};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The keys that all workers insert.
pub const COMMON_KEYS: u64 = 2000;
/// The first own key of worker 1, and the number of each worker's own keys.
const OWN_KEYS: u64 = 1_000_000_000;
/// How far an UPDATE moves keys.
const MOVED: u64 = OWN_KEYS / 2;
/// The keys of a transaction, and of a statement.
const KEYS: u64 = 10_000;
const STATEMENT_KEYS: u64 = 1_000;

/// Returns the statements of a worker's transaction. `{t}` is replaced by the one table, then by the other.
///
/// A worker's own rows are changed by itself alone. Common rows are never found by a condition, and one statement of a
/// transaction inserts them, in the order of their keys, to heap first. So whoever comes first in heap is first in
/// lanes, and nobody waits in a circle.
fn statements(random: &mut Random, worker: usize, number: u64) -> Vec<String> {
    let first = worker as u64 * OWN_KEYS + number * KEYS;
    let mut own: Vec<String> = (0..random.random_range(1..4))
        .map(|place| own_rows(random, worker, first + place * STATEMENT_KEYS))
        .collect();
    if random.random_ratio(1, 3) {
        own.push(common_rows(random));
    }
    own
}

/// The columns of generated rows, but for the first.
fn columns(key: u64) -> String {
    format!("{key} + g, 'v' || g % 7, ARRAY[g % 10, g % 13], g / 4.0")
}

/// A statement on rows of a worker, of which the first key is new.
fn own_rows(random: &mut Random, worker: usize, key: u64) -> String {
    let rows = random.random_range(1..STATEMENT_KEYS);
    let (new, series) = (columns(key), format!("FROM generate_series(1, {rows}) g"));
    // Some of these keys are there already.
    let known = columns(key - random.random_range(1..4) * KEYS / 2);
    let part = random.random_range(3..40);
    let set = "SET v = excluded.v, f = x.f + 1, tags = excluded.tags";
    match random.random_range(0..16) {
        0..=3 => format!("INSERT INTO {{t}} SELECT {worker}, {new} {series}"),
        4 => format!(
            "INSERT INTO {{t}} VALUES ({worker}, {key}, repeat('long', {rows}), NULL, NULL)"
        ),
        5 | 6 => format!(
            "INSERT INTO {{t}} SELECT {worker}, {known} {series} ON CONFLICT (k) DO NOTHING"
        ),
        7 => format!("INSERT INTO {{t}} SELECT {worker}, {known} {series} ON CONFLICT DO NOTHING"),
        8 | 9 => format!(
            "INSERT INTO {{t}} AS x SELECT {worker}, {known} {series} ON CONFLICT (k) DO UPDATE {set}"
        ),
        10 => format!(
            "UPDATE {{t}} SET v = 'updated', f = f + 1 WHERE worker = {worker} AND k % {part} = 0"
        ),
        11 => format!(
            "UPDATE {{t}} SET k = k + {MOVED} WHERE worker = {worker} AND k % {part} = 0 AND k < {key}"
        ),
        12 => format!("DELETE FROM {{t}} WHERE worker = {worker} AND k % {part} = 1"),
        13 => format!("SAVEPOINT s; DELETE FROM {{t}} WHERE worker = {worker}; ROLLBACK TO s"),
        14 => {
            format!("SAVEPOINT s; INSERT INTO {{t}} SELECT {worker}, {new} {series}; ROLLBACK TO s")
        }
        _ => format!(
            "DELETE FROM {{t}} WHERE worker = {worker} AND k NOT BETWEEN {key} - 30 * {KEYS} AND {key} + {KEYS}"
        ),
    }
}

/// A statement that inserts rows of which other workers insert the same.
fn common_rows(random: &mut Random) -> String {
    let from = random.random_range(0..COMMON_KEYS);
    let rows = random.random_range(1..200).min(COMMON_KEYS - from);
    let action = match random.random_range(0..3) {
        0 => "ON CONFLICT DO NOTHING",
        1 => "ON CONFLICT (k) DO NOTHING",
        _ => "ON CONFLICT (k) DO UPDATE SET f = x.f + 1, v = 'v' || (x.f + 1)::int8 % 7",
    };
    let new = columns(from);
    format!("INSERT INTO {{t}} AS x SELECT 0, {new} FROM generate_series(1, {rows}) g {action}")
}

/// Writes until the test is over, and reconnects after a lost connection.
pub fn work(config: &postgres::Config, worker: usize, seed: u64, shared: &Shared) {
    let mut random = Random::seed_from_u64(seed);
    let mut number = 0;
    while !shared.is_over() {
        let Ok(mut client) = config.connect(postgres::NoTls) else {
            std::thread::sleep(Duration::from_millis(20));
            continue;
        };
        while !shared.is_over() {
            number += 1;
            let is_kept = random.random_ratio(5, 6);
            let script = script(&mut random, worker, number, is_kept);
            match client.batch_execute(&script) {
                Ok(()) if is_kept => {
                    shared.acknowledged[worker - 1].store(number, Ordering::SeqCst)
                }
                Ok(()) => {}
                Err(error) if is_lost(&error) => break,
                Err(error) if is_of_the_script(&error) => {
                    if client.batch_execute("ROLLBACK").is_err() {
                        break;
                    }
                }
                Err(error) => panic!("worker {worker}: {error:?}\n{script}"),
            }
        }
    }
}

/// A transaction. Its number is stored too.
fn script(random: &mut Random, worker: usize, number: u64, is_kept: bool) -> String {
    let mut script = "BEGIN;".to_owned();
    for statement in statements(random, worker, number) {
        for table in ["heap_twin", "lanes_twin"] {
            script.push_str(&statement.replace("{t}", table));
            script.push(';');
        }
    }
    script.push_str(&format!(
        "INSERT INTO done VALUES ({worker}, {number}) ON CONFLICT (worker) DO UPDATE SET number = excluded.number;"
    ));
    script.push_str(if is_kept { "COMMIT" } else { "ROLLBACK" });
    script
}

/// Whether heap fails in the same way: a moved key is there already, in heap first; or sessions wait in a circle,
/// because one that builds an index waits too.
fn is_of_the_script(error: &postgres::Error) -> bool {
    let table = error.as_db_error().and_then(|error| error.table());
    match error.code() {
        Some(code) if *code == SqlState::UNIQUE_VIOLATION => table == Some("heap_twin"),
        Some(code) => *code == SqlState::T_R_DEADLOCK_DETECTED,
        None => false,
    }
}
