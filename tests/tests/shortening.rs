//! The space that VACUUM returns to the file system: the free end of the file, and nothing that is
//! still read.
//!
//! While replaying, the clusters compare each page with the primary's (`wal_consistency_checking =
//! all`), and die of a difference.

use lanes_support::budget::Budget;
use lanes_support::cluster::Cluster;
use lanes_support::seed::seeded;
use postgres::Client;
use rand::RngExt;
use std::time::Duration;

/// The number of rows that a round of ingest adds: samples of 500 series.
const ROUND_ROWS: i64 = 40_000;
const ROUNDS: i64 = 12;
/// The number of blocks of a file besides those of its images: metapage, the last pages of three
/// chains, some pages before them.
const OTHER_BLOCKS: i64 = 8;

fn cluster(name: &str) -> Cluster {
    Cluster::builder(name)
        .setting("wal_consistency_checking", "all")
        .setting("autovacuum", "off")
        // There is no automatic sealing.
        .setting("lanes.seal_naptime", "0")
        .setting("lanes.seal_rows", "100000")
        .start()
        .unwrap()
}

fn create(client: &mut Client) {
    client
        .batch_execute(
            "CREATE EXTENSION lanes; \
             CREATE TABLE samples (ts timestamptz, series int, v float8) USING lanes WITH (order_by = 'series, ts'); \
             CREATE TABLE twin (LIKE samples) USING heap",
        )
        .unwrap();
}

/// Inserts the next samples of all series, and then corrects some of them.
fn ingest(client: &mut Client, round: i64) {
    let rows = format!(
        "SELECT '2026-01-01 00:00+00'::timestamptz + (g / 500) * interval '10 s', g % 500, (g % 500 * 10 + g / 500 % 7) / 4.0 \
         FROM generate_series({round} * {ROUND_ROWS}, ({round} + 1) * {ROUND_ROWS} - 1) g"
    );
    for table in ["samples", "twin"] {
        client
            .batch_execute(&format!(
                "INSERT INTO {table} {rows}; UPDATE {table} SET v = -v WHERE series = {round} AND v > 0"
            ))
            .unwrap();
    }
}

fn number(client: &mut Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).unwrap().get(0)
}

fn blocks(client: &mut Client) -> i64 {
    number(client, "SELECT pg_relation_size('samples') / 8192")
}

/// Returns the number of blocks of the sealed segments' images.
fn live_blocks(client: &mut Client) -> i64 {
    number(
        client,
        "SELECT sum(blocks)::int8 FROM \
         (SELECT (sum(bytes)::int8 + 8151) / 8152 AS blocks FROM lanes.stored_segments('samples') GROUP BY block) images",
    )
}

const DIFFERENCE: &str = "SELECT count(*) FROM ((TABLE samples EXCEPT ALL TABLE twin) UNION ALL (TABLE twin EXCEPT ALL TABLE samples)) d";

fn assert_same(client: &mut Client, moment: &str) {
    assert_eq!(number(client, DIFFERENCE), 0, "{moment}");
}

/// Rows arrive, are sealed and merged, as by the background worker. In the end the file has the
/// size of the sealed rows, on the primary, after a crash, and on a standby that is then promoted.
#[test]
fn a_sealed_table_takes_little_more_than_its_segments() {
    let mut primary = cluster("shortening_primary");
    let mut client = primary.connect("postgres").unwrap();
    create(&mut client);
    let mut standby = primary.standby("shortening_standby").unwrap();
    let mut largest = 0;
    for round in 0..ROUNDS {
        ingest(&mut client, round);
        largest = largest.max(blocks(&mut client));
        client.batch_execute("VACUUM samples").unwrap();
        if round % 3 == 0 {
            assert_same(&mut client, &format!("round {round}"));
            standby.wait_replayed(&primary).unwrap();
            assert_same(&mut standby.connect("postgres").unwrap(), "on the standby");
        }
    }
    client
        .batch_execute("SELECT lanes.seal('samples')")
        .unwrap();
    // The first VACUUM frees the merged parts, and may move the end of the file; the second one
    // then truncates it.
    client.batch_execute("VACUUM samples").unwrap();
    client.batch_execute("VACUUM samples").unwrap();
    let (now, live) = (blocks(&mut client), live_blocks(&mut client));
    println!("{now} blocks, {live} of segments; {largest} at most before");
    // The second VACUUM may leave an end that is not worth truncating.
    let most = live + OTHER_BLOCKS + 16;
    assert!(now <= most, "{now} blocks for {live} of segments");
    assert!(largest > 2 * most, "there was space to release: {largest}");
    assert_same(&mut client, "in the end");

    standby.wait_replayed(&primary).unwrap();
    let mut there = standby.connect("postgres").unwrap();
    assert_eq!(blocks(&mut there), now, "the standby's file is as long");
    assert_same(&mut there, "in the end, on the standby");
    drop((client, there));
    primary.kill9().unwrap();
    primary.start().unwrap();
    let mut client = primary.connect("postgres").unwrap();
    assert_eq!(blocks(&mut client), now, "as long after a crash");
    assert_same(&mut client, "after a crash");
    standby.wait_replayed(&primary).unwrap();
    drop(client);
    drop(primary);
    standby.promote().unwrap();
    let mut client = standby.connect("postgres").unwrap();
    assert_same(&mut client, "promoted");
    ingest(&mut client, ROUNDS);
    assert_same(&mut client, "the file grows again");
    client.batch_execute("VACUUM samples").unwrap();
    assert_same(&mut client, "and is vacuumed again");
}

/// The file keeps its length if VACUUM's option or the table's parameter says so.
#[test]
fn a_file_keeps_its_length_on_request() {
    let cluster = cluster("shortening_off");
    let mut client = cluster.connect("postgres").unwrap();
    create(&mut client);
    ingest(&mut client, 0);
    client
        .batch_execute("SELECT lanes.seal('samples')")
        .unwrap();
    let before = blocks(&mut client);
    for statement in [
        "VACUUM (TRUNCATE off) samples",
        "ALTER TABLE samples SET (vacuum_truncate = off)",
        "VACUUM samples",
    ] {
        client.batch_execute(statement).unwrap();
        assert_eq!(blocks(&mut client), before, "{statement}");
    }
    for _ in 0..2 {
        client
            .batch_execute("VACUUM (TRUNCATE on) samples")
            .unwrap();
    }
    assert!(blocks(&mut client) * 2 < before);
    assert_same(&mut client, "shortened");
}

/// Entries, among them small runs, and tombstones are on pages after those of an aborted load.
/// These pages move.
#[test]
fn pages_of_chains_are_moved_with_their_content() {
    let mut primary = cluster("shortening_chains");
    let mut client = primary.connect("postgres").unwrap();
    client
        .batch_execute(
            "CREATE EXTENSION lanes; CREATE TABLE samples (k int, note text) USING lanes",
        )
        .unwrap();
    let mut standby = primary.standby("shortening_chains_standby").unwrap();
    for statement in [
        "INSERT INTO samples SELECT g, 'at first' FROM generate_series(1, 1000) g",
        "BEGIN; INSERT INTO samples SELECT g, 'undone' FROM generate_series(1, 200000) g; ROLLBACK",
        "DO $$ BEGIN FOR i IN 1001 .. 1400 LOOP INSERT INTO samples VALUES (i, repeat('small', i % 9)); END LOOP; END $$",
        "DELETE FROM samples WHERE k % 2 = 0",
    ] {
        client.batch_execute(statement).unwrap();
    }
    let rows = "SELECT string_agg(samples::text, ',' ORDER BY k) FROM samples";
    let read = |client: &mut Client| -> String { client.query_one(rows, &[]).unwrap().get(0) };
    let (before, expected) = (blocks(&mut client), read(&mut client));
    client.batch_execute("VACUUM samples").unwrap();
    let after = blocks(&mut client);
    println!("{before} blocks, then {after}");
    assert!(after * 4 < before, "{before} blocks, then {after}");
    assert_eq!(read(&mut client), expected, "by the arena");
    standby.wait_replayed(&primary).unwrap();
    assert_eq!(read(&mut standby.connect("postgres").unwrap()), expected);
    drop(client);
    primary.kill9().unwrap();
    primary.start().unwrap();
    let mut client = primary.connect("postgres").unwrap();
    assert_eq!(read(&mut client), expected, "by the pages");
    client
        .batch_execute(
            "INSERT INTO samples VALUES (1, 'once more'); DELETE FROM samples WHERE k = 1",
        )
        .unwrap();
    client.batch_execute("VACUUM samples").unwrap();
    assert_eq!(number(&mut client, "SELECT count(*) FROM samples"), 699);
}

/// Runs ingest, sealing and shortening until the server goes away. Returns how often the file
/// became shorter, and the next number to write.
fn work(config: &postgres::Config, mut number: u64) -> (u32, u64) {
    let mut shortened = 0;
    let Ok(mut client) = config.connect(postgres::NoTls) else {
        return (shortened, number);
    };
    let mut before = 0;
    loop {
        // Either both tables have the rows or neither.
        let both = ["samples", "twin"].map(|table| {
            format!(
                "INSERT INTO {table} SELECT '2026-01-01', g % 500, {number} FROM generate_series(1, 10000) g; \
                 DELETE FROM {table} WHERE v = {number} - 2;"
            )
        });
        number += 1;
        let both = format!("BEGIN; {} COMMIT", both.concat());
        let steps = [
            &both,
            "SELECT lanes.seal('samples')",
            "VACUUM samples",
            "VACUUM samples",
        ];
        for step in steps {
            if client.batch_execute(step).is_err() {
                return (shortened, number);
            }
            let Ok(row) = client.query_one("SELECT pg_relation_size('samples')", &[]) else {
                return (shortened, number);
            };
            let now: i64 = row.get(0);
            shortened += u32::from(now < before);
            before = now;
        }
        if number.is_multiple_of(4) && client.batch_execute("CHECKPOINT").is_err() {
            return (shortened, number);
        }
    }
}

/// Killed at any moment of ingest, sealing and shortening, the table has all committed rows.
#[test]
fn a_crash_at_any_step_loses_nothing() {
    const KILLS: Budget = Budget { short: 4, long: 8 };
    let (mut random, _) = seeded("shortening_crash");
    let mut cluster = cluster("shortening_crash");
    create(&mut cluster.connect("postgres").unwrap());
    let (mut shortened, mut number) = (0, 0);
    let kills = KILLS.rounds();
    for kill in 0..kills {
        let config = cluster.config("postgres");
        let life = Duration::from_millis(random.random_range(200..2500));
        let done = std::thread::scope(|scope| {
            let worker = scope.spawn(|| work(&config, number));
            std::thread::sleep(life);
            cluster.kill9().unwrap();
            worker.join().unwrap()
        });
        shortened += done.0;
        number = done.1;
        cluster.start().unwrap();
        assert_same(
            &mut cluster.connect("postgres").unwrap(),
            &format!("after kill {kill}"),
        );
    }
    println!("shortened {shortened} times between {kills} kills");
    assert!(shortened > 0, "the file was shortened between kills");
}
