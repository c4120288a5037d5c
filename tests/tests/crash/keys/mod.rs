//! A lanes table with a primary key and other indexes, and its heap twin, written in the same transactions by sessions
//! that insert with ON CONFLICT, some of them the same keys. Meanwhile rows are sealed and vacuumed, and indexes built.
//! Whatever is killed: what was acknowledged is there, both tables have the same rows, and each index finds them.
//!
//! | module | contents |
//! |---|---|
//! | [`work`] | the transactions that write to both tables |
//! | [`upkeep`] | VACUUM and sealing, and the building of indexes |
//! | [`compare`] | the comparison of the tables and of the answers by each index |

mod compare;
mod upkeep;
mod work;

use super::kill;
use lanes_support::budget::Budget;
use lanes_support::cluster::Cluster;
use lanes_support::seed::seeded;
use rand::RngExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const ROUNDS: Budget = Budget {
    short: 4,
    long: 200,
};
const WORKERS: usize = 3;
/// What recovery compares with the primary's pages: all but hash indexes. VACUUM of a hash index registers the first page
/// of a bucket without a lock (`hashbucketcleanup`). With a comparison the record has an image of that page, which others
/// may change before it is copied. Its checksum is then wrong, and WAL behind it is lost, with heap tables too.
const COMPARED: &str = "heap, heap2, btree, gin, generic";

/// What the threads of the test share.
#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    /// The number of each worker's last transaction that was acknowledged.
    acknowledged: [AtomicU64; WORKERS],
}

impl Shared {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

const TABLES: &str = "CREATE EXTENSION lanes; \
    CREATE TABLE heap_twin (worker int, k int8 PRIMARY KEY, v text, tags int[], f float8) USING heap; \
    CREATE TABLE lanes_twin (worker int, k int8 PRIMARY KEY, v text, tags int[], f float8) \
        USING lanes WITH (order_by = 'v, k'); \
    CREATE INDEX by_v ON lanes_twin USING hash (v); \
    CREATE INDEX by_tags ON lanes_twin USING gin (tags); \
    CREATE TABLE done (worker int PRIMARY KEY, number int8) USING lanes";

#[test]
fn every_index_finds_the_rows_of_the_heap_twin_after_any_kill() {
    let (mut random, seed) = seeded("crash_keys");
    let mut cluster = Cluster::builder("crash_keys")
        .setting("checkpoint_timeout", "30s")
        .setting("max_wal_size", "64MB")
        .setting("wal_consistency_checking", COMPARED)
        .setting("lanes.seal_naptime", "1")
        .setting("lanes.seal_rows", "1")
        .setting("autovacuum_naptime", "1s")
        .setting("deadlock_timeout", "100ms")
        .start()
        .unwrap();
    cluster.psql("postgres", TABLES).unwrap();
    let shared = Arc::new(Shared::default());
    let mut threads = Vec::new();
    for worker in 1..=WORKERS {
        let (config, shared) = (cluster.config("postgres"), shared.clone());
        let seed = seed ^ worker as u64;
        threads.push(std::thread::spawn(move || {
            work::work(&config, worker, seed, &shared)
        }));
    }
    for (place, statements) in [upkeep::OF_ROWS, upkeep::OF_INDEXES]
        .into_iter()
        .enumerate()
    {
        let (config, shared) = (cluster.config("postgres"), shared.clone());
        let seed = seed ^ (100 + place as u64);
        threads.push(std::thread::spawn(move || {
            upkeep::maintain(&config, statements, seed, &shared)
        }));
    }
    for round in 0..ROUNDS.rounds() {
        std::thread::sleep(Duration::from_millis(random.random_range(100..1200)));
        let victim = kill(&mut cluster, &mut random);
        compare::compare(&cluster, &shared, &format!("round {round} ({victim:?})"));
        let ended = threads.iter().any(std::thread::JoinHandle::is_finished);
        assert!(!ended, "round {round}: a session of the test has failed");
    }
    shared.stop.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().unwrap();
    }
    compare::compare(&cluster, &shared, "at the end");
    for statement in ["REINDEX TABLE lanes_twin", "VACUUM FULL lanes_twin"] {
        cluster.psql("postgres", statement).unwrap();
        compare::compare(&cluster, &shared, statement);
    }
    let mut worked = shared.acknowledged.iter();
    let worked = worked.all(|number| number.load(Ordering::Relaxed) > u64::from(ROUNDS.rounds()));
    assert!(worked, "the workers worked");
}
