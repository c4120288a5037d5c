//! A lanes table and its heap twin, written in the same transactions: whatever is killed, they are
//! equal afterwards. Meanwhile sealed parts of the lanes table move to object storage, and are read
//! and changed there.

use super::{is_lost, kill};
use lanes_support::budget::Budget;
use lanes_support::cluster::Cluster;
use lanes_support::objects::{Objects, Supplier, forget_recalled};
use lanes_support::seed::{Random, seeded};
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const ROUNDS: Budget = Budget { short: 4, long: 10 };
const WORKERS: u64 = 2;

/// Returns the statements of a transaction. `{t}` is replaced by the one table, then by the other.
fn statements(random: &mut Random, worker: u64, number: u64) -> Vec<String> {
    let key = worker * 1_000_000_000 + number * 10_000;
    (0..random.random_range(1..4))
        .map(|_| match random.random_range(0..12) {
            0..=4 => format!("INSERT INTO {{t}} SELECT {worker}, {key} + g, 'v' || g % 7, g / 4.0 FROM generate_series(1, {}) g", random.random_range(1..800)),
            5 => format!("INSERT INTO {{t}} VALUES ({worker}, {key}, repeat('long', {}), NULL)", random.random_range(1..30_000)),
            6 | 7 => format!("UPDATE {{t}} SET v = 'updated', f = f + 1 WHERE worker = {worker} AND k % {} = 0", random.random_range(3..40)),
            8 | 9 => format!("DELETE FROM {{t}} WHERE worker = {worker} AND k % {} = 1", random.random_range(3..40)),
            10 => format!("SAVEPOINT s; DELETE FROM {{t}} WHERE worker = {worker}; ROLLBACK TO s"),
            _ => format!("DELETE FROM {{t}} WHERE worker = {worker} AND k < {key} - 300000"),
        })
        .collect()
}

/// Writes until it is stopped, and reconnects after a lost connection.
fn work(
    config: postgres::Config,
    worker: u64,
    seed: u64,
    stop: Arc<AtomicBool>,
    committed: Arc<AtomicU64>,
) {
    let mut random = Random::seed_from_u64(seed);
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        let Ok(mut client) = config.connect(postgres::NoTls) else {
            std::thread::sleep(Duration::from_millis(20));
            continue;
        };
        while !stop.load(Ordering::Relaxed) {
            number += 1;
            let mut script = "BEGIN;".to_owned();
            for statement in statements(&mut random, worker, number) {
                for table in ["heap_twin", "lanes_twin"] {
                    script.push_str(&statement.replace("{t}", table));
                    script.push(';');
                }
            }
            script.push_str("INSERT INTO unlogged VALUES (1);");
            script.push_str(if random.random_ratio(1, 6) {
                "ROLLBACK"
            } else {
                "COMMIT"
            });
            match client.batch_execute(&script) {
                Ok(()) => _ = committed.fetch_add(1, Ordering::Relaxed),
                Err(error) if is_lost(&error) => break,
                Err(error) => panic!("worker {worker}: {error:?}\n{script}"),
            }
        }
    }
}

/// Runs VACUUM, sealing, merging and offloading meanwhile.
fn maintain(config: postgres::Config, seed: u64, stop: Arc<AtomicBool>, objects: Objects) {
    let mut random = Random::seed_from_u64(seed);
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(random.random_range(5..100)));
        if let Ok(mut client) = config.connect(postgres::NoTls) {
            if random.random_ratio(1, 3) {
                let _ = objects.offload(&mut client);
                continue;
            }
            let statement = [
                "VACUUM lanes_twin",
                "VACUUM (FREEZE) lanes_twin",
                "ANALYZE lanes_twin",
                "CHECKPOINT",
                "VACUUM FULL lanes_twin",
                "SELECT lanes.seal('lanes_twin')",
                "SELECT lanes.seal('lanes_twin')",
                "SELECT lanes.seal('unlogged')",
            ]
            .choose(&mut random)
            .unwrap();
            let _ = client.batch_execute(statement);
        }
    }
}

fn compare(cluster: &Cluster, moment: &str) {
    let difference = "SELECT count(*) FROM ((SELECT * FROM heap_twin EXCEPT ALL SELECT * FROM lanes_twin) \
                      UNION ALL (SELECT * FROM lanes_twin EXCEPT ALL SELECT * FROM heap_twin)) d";
    // One statement has one snapshot, so the workers may continue.
    assert_eq!(
        cluster.scalar("postgres", difference).unwrap(),
        "0",
        "{moment}: the twins differ"
    );
    let findings = "SELECT coalesce(string_agg(place || ': ' || problem, '; '), '') FROM lanes.check('lanes_twin')";
    let findings = cluster.scalar("postgres", findings).unwrap();
    assert_eq!(findings, "", "{moment}: the table is damaged");
}

#[test]
fn a_lanes_table_equals_its_heap_twin_after_any_kill() {
    let (mut random, seed) = seeded("crash_sql");
    let mut cluster = Cluster::builder("crash_sql")
        // Checkpoints and full-page images occur at all moments.
        .setting("checkpoint_timeout", "30s")
        .setting("max_wal_size", "64MB")
        // Recovery compares each replayed page with the primary's.
        .setting("wal_consistency_checking", "all")
        // VACUUM and the background worker seal as much as they can.
        .setting("lanes.seal_naptime", "1")
        .setting("lanes.seal_rows", "1")
        .start()
        .unwrap();
    cluster
        .psql(
            "postgres",
            "CREATE EXTENSION lanes; \
             CREATE TABLE heap_twin (worker int, k int8, v text, f float8, ts timestamptz DEFAULT '2020-01-01 00:00+00') USING heap; \
             CREATE TABLE lanes_twin (LIKE heap_twin INCLUDING DEFAULTS) USING lanes WITH (order_by = 'v, k', hot = '1 day'); \
             CREATE UNLOGGED TABLE unlogged (i int) USING lanes",
        )
        .unwrap();
    let (stop, committed) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU64::new(0)),
    );
    let mut threads = Vec::new();
    for worker in 1..=WORKERS {
        let (config, stop, committed) =
            (cluster.config("postgres"), stop.clone(), committed.clone());
        threads.push(std::thread::spawn(move || {
            work(config, worker, seed ^ worker, stop, committed)
        }));
    }
    let objects = Objects::default();
    let supplier = Supplier::start(&cluster, "postgres", &objects);
    let (config, maintainer_stop, store) =
        (cluster.config("postgres"), stop.clone(), objects.clone());
    threads.push(std::thread::spawn(move || {
        maintain(config, seed, maintainer_stop, store)
    }));

    let kills = ROUNDS.rounds();
    for round in 0..kills {
        std::thread::sleep(Duration::from_millis(random.random_range(100..1200)));
        let victim = kill(&mut cluster, &mut random);
        compare(&cluster, &format!("round {round} ({victim:?})"));
        forget_recalled(&cluster);
    }
    // Even if there were few kills in a short time, some part has to be offloaded before the end.
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while objects.is_empty() && std::time::Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
    }
    stop.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().unwrap();
    }
    assert!(
        committed.load(Ordering::Relaxed) > u64::from(kills),
        "the workers worked"
    );
    compare(&cluster, "at the end");
    println!(
        "{} segments were offloaded, {} recalled",
        objects.len(),
        supplier.supplied()
    );
    assert!(!objects.is_empty(), "segments were offloaded");
    cluster
        .psql("postgres", "INSERT INTO unlogged VALUES (1)")
        .unwrap();
    cluster.kill9().unwrap();
    cluster.start().unwrap();
    assert_eq!(
        cluster
            .scalar("postgres", "SELECT count(*) FROM unlogged")
            .unwrap(),
        "0",
        "an unlogged table is empty after a crash"
    );
    cluster
        .psql("postgres", "INSERT INTO unlogged VALUES (1)")
        .unwrap();
    cluster.restart().unwrap();
    assert_eq!(
        cluster
            .scalar("postgres", "SELECT count(*) FROM unlogged")
            .unwrap(),
        "1",
        "an unlogged table survives a clean restart"
    );
    for verb in ["VACUUM (FREEZE)", "VACUUM FULL"] {
        cluster
            .psql("postgres", &format!("{verb} lanes_twin"))
            .unwrap();
    }
    compare(&cluster, "after VACUUM FULL");
}
