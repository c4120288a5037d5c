//! Many concurrent sessions on the same lanes tables: every snapshot is consistent while rows are
//! written, vacuumed, sealed, loaded, evicted, offloaded and recalled.
//!
//! - `account`: transfers between rows by UPDATE, some of them computed by the client from rows
//!   that it locked. Each snapshot has all accounts and the same total.
//! - `batch`: each transaction inserts a number of rows, and each row contains that number. Each
//!   snapshot has all rows of a batch or none. Some batches are rolled back, and some are deleted
//!   as a whole.

use lanes_support::budget::Budget;
use lanes_support::cluster::{Builder, Cluster};
use lanes_support::objects::{Objects, Supplier, forget_recalled};
use lanes_support::seed::{Random, seeded};
use postgres::error::SqlState;
use postgres::{Client, Config, NoTls};
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const ACCOUNTS: i64 = 200;
const TOTAL: i64 = ACCOUNTS * 100;
const SECONDS: Budget = Budget { short: 5, long: 8 };

struct Field<'a> {
    config: &'a Config,
    stop: &'a AtomicBool,
    work: &'a AtomicU64,
}

impl Field<'_> {
    /// Runs a piece of work repeatedly in a session of its own.
    fn repeat(&self, seed: u64, mut piece: impl FnMut(&mut Client, &mut Random)) {
        let mut client = self.config.connect(NoTls).unwrap();
        let mut random = Random::seed_from_u64(seed);
        while !self.stop.load(Ordering::Relaxed) {
            piece(&mut client, &mut random);
            self.work.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Moves an amount between two accounts in an order that cannot deadlock.
fn transfer(client: &mut Client, random: &mut Random) {
    let from = random.random_range(0..ACCOUNTS - 1);
    let to = random.random_range(from + 1..ACCOUNTS);
    let amount = random.random_range(1..50);
    let end = if random.random_ratio(1, 5) {
        "ROLLBACK"
    } else {
        "COMMIT"
    };
    client
        .batch_execute(&format!(
            "BEGIN; UPDATE account SET balance = balance - {amount} WHERE id = {from}; SAVEPOINT s; \
             UPDATE account SET balance = 0 WHERE id = {to}; ROLLBACK TO s; \
             UPDATE account SET balance = balance + {amount} WHERE id = {to}; {end}"
        ))
        .unwrap();
}

/// Moves an amount that the client computes from locked rows. The total would change if another row
/// was locked or changed than the one that was read.
fn transfer_by_client(client: &mut Client, random: &mut Random) {
    let from = random.random_range(0..ACCOUNTS - 1);
    let to = random.random_range(from + 1..ACCOUNTS);
    let amount = random.random_range(1..50);
    let mut transaction = client.transaction().unwrap();
    for (id, change) in [(from, -amount), (to, amount)] {
        let locked = transaction
            .query(
                "SELECT balance FROM account WHERE id = $1 FOR UPDATE",
                &[&id],
            )
            .unwrap();
        assert_eq!(locked.len(), 1, "an account exists once");
        let balance: i64 = locked[0].get(0);
        let changed = transaction.execute(
            "UPDATE account SET balance = $1 WHERE id = $2",
            &[&(balance + change), &id],
        );
        match changed {
            Ok(rows) => assert_eq!(rows, 1, "the locked rows exist"),
            Err(error) => panic!("account {id}: {error:?}"),
        }
    }
    match random.random_ratio(1, 5) {
        true => transaction.rollback().unwrap(),
        false => transaction.commit().unwrap(),
    }
}

/// Inserts a batch in one or two statements, or deletes old ones.
fn batch(client: &mut Client, random: &mut Random) {
    let number: i64 = random.random();
    let rows = random.random_range(1..1500);
    let cut = random.random_range(0..=rows);
    let end = if random.random_ratio(1, 5) {
        "ROLLBACK"
    } else {
        "COMMIT"
    };
    let insert = |from: i32, to: i32| {
        format!(
            "INSERT INTO batch SELECT {number}, {rows}, 'k' || g % 5, repeat('x', g % 50) FROM generate_series({from}, {to}) g"
        )
    };
    client
        .batch_execute(&format!(
            "BEGIN; {}; {}; {end}",
            insert(1, cut),
            insert(cut + 1, rows)
        ))
        .unwrap();
    if random.random_ratio(1, 4) {
        let modulus = random.random_range(2..6);
        client
            .batch_execute(&format!("DELETE FROM batch WHERE number % {modulus} = 0"))
            .unwrap();
    }
}

/// Reads everything twice in one snapshot, and checks it.
fn read(client: &mut Client, random: &mut Random) {
    client
        .batch_execute(
            "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; \
             BEGIN ISOLATION LEVEL REPEATABLE READ; DECLARE slow CURSOR FOR SELECT id, balance FROM account",
        )
        .unwrap();
    let mut before = None;
    let mut slow = Vec::new();
    for rows in ["70", "ALL"] {
        slow.extend(
            client
                .query(&format!("FETCH {rows} FROM slow"), &[])
                .unwrap(),
        );
        let accounts = client
            .query_one(
                "SELECT count(*), sum(balance)::int8, count(DISTINCT id) FROM account",
                &[],
            )
            .unwrap();
        let accounts: (i64, i64, i64) = (accounts.get(0), accounts.get(1), accounts.get(2));
        assert_eq!(
            accounts,
            (ACCOUNTS, TOTAL, ACCOUNTS),
            "every account occurs once, with the same total"
        );
        let broken = client
            .query("SELECT number, rows, count(*), count(DISTINCT k) FROM batch GROUP BY 1, 2 HAVING count(*) <> rows", &[])
            .unwrap();
        assert!(broken.is_empty(), "all rows of a batch or none: {broken:?}");
        let sums = client
            .query_one("SELECT count(*), sum(number % 1000)::int8, sum(length(x)), (SELECT sum(id * balance)::int8 FROM account) FROM batch", &[])
            .unwrap();
        let sums: (i64, Option<i64>, Option<i64>, Option<i64>) =
            (sums.get(0), sums.get(1), sums.get(2), sums.get(3));
        if let Some(before) = before {
            assert_eq!(sums, before, "a snapshot does not change");
        }
        before = Some(sums);
        std::thread::sleep(Duration::from_millis(random.random_range(0..40)));
    }
    client.batch_execute("COMMIT").unwrap();
    let total: i64 = slow.iter().map(|row| row.get::<_, i64>(1)).sum();
    assert_eq!(
        (slow.len() as i64, total),
        (ACCOUNTS, TOTAL),
        "a cursor reads every account once"
    );
}

/// Runs maintenance and DDL that do not change the rows.
fn maintain(client: &mut Client, random: &mut Random) {
    std::thread::sleep(Duration::from_millis(random.random_range(0..60)));
    let statement = [
        "VACUUM batch",
        "VACUUM account",
        "VACUUM (FREEZE) batch",
        "VACUUM (FREEZE) account",
        "SELECT lanes.seal('batch')",
        "SELECT lanes.seal('account')",
        "SELECT lanes.seal('account')",
        "ANALYZE batch",
        "CHECKPOINT",
        "ALTER TABLE batch ADD COLUMN IF NOT EXISTS later int DEFAULT 5",
        "SELECT * FROM lanes.arena_segments('batch')",
    ]
    .choose(random)
    .unwrap();
    if let Err(error) = client.batch_execute(statement) {
        // ALTER and readers wait for each other, so ALTER times out.
        assert_eq!(
            error.code(),
            Some(&SqlState::LOCK_NOT_AVAILABLE),
            "{statement}: {error:?}"
        );
    }
}

/// A piece of work that a session repeats.
type Piece<'a> = dyn Fn(&mut Client, &mut Random) + Sync + 'a;

/// Offloads the sealed segments, and removes recalled ones.
fn move_away(cluster: &Cluster, objects: &Objects, client: &mut Client, random: &mut Random) {
    std::thread::sleep(Duration::from_millis(random.random_range(0..60)));
    match objects.offload(client) {
        Ok(_) => {}
        // The part has been merged since it was listed, or its rows are locked for long.
        Err(error) => assert!(
            [
                Some(&SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE),
                Some(&SqlState::LOCK_NOT_AVAILABLE)
            ]
            .contains(&error.code()),
            "{error:?}"
        ),
    }
    if random.random_ratio(1, 2) {
        forget_recalled(cluster);
    }
}

fn run(name: &str, builder: Builder, rows_move_away: bool) {
    let (mut random, _) = seeded(name);
    let builder = builder
        .setting("lock_timeout", "20s")
        // VACUUM and the background worker seal as much as they can.
        .setting("lanes.seal_naptime", "1")
        .setting("lanes.seal_rows", "1")
        .setting("lanes.seal_memory", "16MB");
    let cluster = builder.start().unwrap();
    cluster
        .psql(
            "postgres",
            &format!(
                "CREATE EXTENSION lanes; CREATE TABLE account (id int8, balance int8, at timestamptz DEFAULT '2020-01-01') USING lanes WITH (order_by = 'balance'); \
                 CREATE TABLE batch (number int8, rows int8, k text, x text, at timestamptz DEFAULT '2020-01-01') USING lanes \
                     WITH (order_by = 'k, number'); \
                 INSERT INTO account SELECT g, 100 FROM generate_series(0, {ACCOUNTS} - 1) g"
            ),
        )
        .unwrap();
    let objects = Objects::default();
    let supplier = rows_move_away.then(|| {
        let away = "ALTER TABLE account SET (hot = '1 day'); ALTER TABLE batch SET (hot = '1 day')";
        cluster.psql("postgres", away).unwrap();
        Supplier::start(&cluster, "postgres", &objects)
    });
    let config = cluster.config("postgres");
    let stop = AtomicBool::new(false);
    let work: [AtomicU64; 6] = Default::default();
    let away =
        |client: &mut Client, random: &mut Random| move_away(&cluster, &objects, client, random);
    let pieces: [&Piece<'_>; 6] = [
        &transfer,
        &transfer_by_client,
        &batch,
        &read,
        &maintain,
        &away,
    ];
    let sessions = [2, 1, 2, 2, 1, usize::from(rows_move_away)];
    std::thread::scope(|scope| {
        for (place, piece) in pieces.into_iter().enumerate() {
            for _ in 0..sessions[place] {
                let seed = random.random();
                let field = Field {
                    config: &config,
                    stop: &stop,
                    work: &work[place],
                };
                let stop = &stop;
                scope.spawn(move || {
                    // A session that fails ends the others; otherwise the test would only end with
                    // its time limit.
                    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                        field.repeat(seed, piece)
                    }));
                    if let Err(panic) = outcome {
                        stop.store(true, Ordering::Relaxed);
                        std::panic::resume_unwind(panic);
                    }
                });
            }
        }
        let duration = Duration::from_secs(SECONDS.rounds().into());
        let start = std::time::Instant::now();
        while start.elapsed() < duration && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(20));
        }
        stop.store(true, Ordering::Relaxed);
    });
    let work = work.map(AtomicU64::into_inner);
    println!("{name}: transfers, by clients, batches, reads, maintenance, moves: {work:?}");
    assert!(
        work.iter()
            .zip(sessions)
            .all(|(done, sessions)| *done > 0 || sessions == 0),
        "every kind of work was done: {work:?}"
    );
    if let Some(supplier) = &supplier {
        let (away, back) = (objects.len(), supplier.supplied());
        println!("{name}: {away} segments were offloaded, {back} recalled");
        assert!(away > 0 && back > 0, "{away} offloaded, {back} recalled");
    }
    // The digest is computed again from the pages alone.
    let digest = "SELECT (SELECT sum(hashtextextended(a::text, 0)::numeric) FROM account a) || ' ' || (SELECT sum(hashtextextended(b::text, 0)::numeric) FROM batch b)";
    let before = cluster.scalar("postgres", digest).unwrap();
    let mut cluster = cluster;
    cluster.restart().unwrap();
    assert_eq!(
        cluster.scalar("postgres", digest).unwrap(),
        before,
        "after a restart"
    );
    read(&mut cluster.connect("postgres").unwrap(), &mut random);
}

#[test]
fn every_snapshot_is_consistent() {
    run("concurrent", Cluster::builder("concurrent"), false);
}

/// The arena holds only a part of the tables, and evicts continuously.
#[test]
fn every_snapshot_is_consistent_with_a_tiny_arena() {
    let builder = Cluster::builder("concurrent_tiny").setting("lanes.arena_size", "1MB");
    run("concurrent_tiny", builder, false);
}

/// Rows move to object storage and back continuously.
#[test]
fn every_snapshot_is_consistent_while_rows_are_offloaded() {
    let builder = Cluster::builder("concurrent_away").setting("lanes.arena_size", "1MB");
    run("concurrent_away", builder, true);
}
