//! A streaming standby returns the same rows as its primary, at every moment, and can be promoted.
//!
//! The primary runs with `wal_consistency_checking = all`: while replaying, the standby compares
//! each page with the primary's, and dies of a difference.

use lanes_support::budget::Budget;
use lanes_support::cluster::Cluster;
use lanes_support::seed::{Random, seeded};
use rand::RngExt;
use rand::seq::IndexedRandom;

/// The number of rounds of changes, each followed by a comparison.
const ROUNDS: Budget = Budget {
    short: 15,
    long: 40,
};

/// Queries that together read everything of a table: the stored rows, ranges of positions, and
/// sums.
const QUERIES: [&str; 4] = [
    "SELECT x::text FROM t x ORDER BY x::text COLLATE \"C\"",
    "SELECT ctid, xmin, t.* FROM t ORDER BY ctid",
    "SELECT worker, count(*), sum(k), sum(f), min(v), count(v) FROM t GROUP BY worker ORDER BY worker",
    "SELECT count(*) FROM t WHERE k % 7 = 3 AND v IS NOT NULL",
];

fn change(random: &mut Random, round: u32) -> String {
    let key = u64::from(round) * 10_000;
    let rows = *[1, 10, 500, 3000].choose(random).unwrap();
    match random.random_range(0..17) {
        0..=3 => format!(
            "INSERT INTO t SELECT 1, {key} + g, CASE WHEN g % 5 > 0 THEN 'v' || g % 9 END, g / 4.0 FROM generate_series(1, {rows}) g"
        ),
        4 => format!(
            "BEGIN; INSERT INTO t SELECT 2, {key} + g, repeat('long ', g % 900), NULL FROM generate_series(1, {rows}) g; SAVEPOINT s; DELETE FROM t WHERE k % 3 = 0; ROLLBACK TO s; DELETE FROM t WHERE k % 11 = 0; COMMIT"
        ),
        5 => "BEGIN; DELETE FROM t; ROLLBACK".to_owned(),
        6 => format!(
            "UPDATE t SET v = 'round {round}', f = f + 1 WHERE k % {} = 0",
            random.random_range(2..20)
        ),
        7 => format!("DELETE FROM t WHERE k % {} = 1", random.random_range(2..20)),
        8 => "VACUUM t".to_owned(),
        9 => "VACUUM (FREEZE) t".to_owned(),
        10 => "TRUNCATE t".to_owned(),
        11 => "BEGIN; TRUNCATE t; INSERT INTO t VALUES (3, 3, 'not kept', 3); ROLLBACK".to_owned(),
        12 => "VACUUM FULL t".to_owned(),
        13 | 14 => "SELECT lanes.seal('t')".to_owned(),
        15 => format!(
            "ALTER TABLE t SET (order_by = '{}')",
            ["v, k", "k", "f, k"].choose(random).unwrap()
        ),
        _ => "ALTER TABLE t ALTER COLUMN f TYPE float8 USING f * 2".to_owned(),
    }
}

fn assert_same(primary: &Cluster, standby: &mut Cluster, moment: &str) {
    standby.wait_replayed(primary).unwrap();
    for query in QUERIES {
        let (expected, found) = (
            primary.query("postgres", query).unwrap(),
            standby.query("postgres", query).unwrap(),
        );
        assert!(
            expected == found,
            "{moment}: {query}: {} rows on the primary, {} on the standby",
            expected.len(),
            found.len()
        );
    }
}

fn primary(name: &str) -> Cluster {
    Cluster::builder(name)
        .setting("wal_consistency_checking", "all")
        .setting("autovacuum", "off")
        .setting("wal_log_hints", "on")
        // VACUUM seals as much as it can, and there is no automatic sealing.
        .setting("lanes.seal_naptime", "0")
        .setting("lanes.seal_rows", "1")
        .start()
        .unwrap()
}

#[test]
fn a_standby_agrees_with_its_primary_and_can_be_promoted() {
    let (mut random, _) = seeded("standby");
    let primary = primary("standby_primary");
    primary
        .psql(
            "postgres",
            "CREATE EXTENSION lanes; CREATE TABLE t (worker int, k int8, v text, f float8) USING lanes; \
             CREATE UNLOGGED TABLE u (i int) USING lanes; INSERT INTO u VALUES (1); \
             INSERT INTO t SELECT 0, g, 'v' || g % 3, g FROM generate_series(1, 5000) g",
        )
        .unwrap();
    let mut standby = primary.standby("standby_standby").unwrap();
    assert_same(&primary, &mut standby, "at first");

    for round in 1..=ROUNDS.rounds() {
        let change = change(&mut random, round);
        primary
            .connect("postgres")
            .unwrap()
            .batch_execute(&change)
            .unwrap();
        // The standby's arena contains what the last rounds read. Sometimes it has to notice two
        // changes at once.
        if random.random_bool(0.7) {
            assert_same(&primary, &mut standby, &format!("round {round} ({change})"));
        }
    }
    assert_same(&primary, &mut standby, "after the rounds");

    // A standby refuses writes of any kind, and has no unlogged rows.
    for (statement, state) in [
        ("INSERT INTO t VALUES (1, 1, 'no', 1)", "25006"),
        ("DELETE FROM t", "25006"),
        ("SELECT * FROM t FOR UPDATE", "25006"),
        ("VACUUM t", "25006"),
        ("SELECT * FROM u", "0A000"),
    ] {
        let error = standby
            .query("postgres", statement)
            .unwrap_err()
            .to_string();
        assert!(error.contains(state), "{statement}: {error}");
    }

    // After a restart the standby's arena is empty.
    standby.restart().unwrap();
    assert_same(&primary, &mut standby, "after a restart of the standby");

    // Rows of open transactions are lost at the promotion.
    let mut in_flight = primary.connect("postgres").unwrap();
    in_flight
        .batch_execute("BEGIN; INSERT INTO t SELECT 9, g, 'in flight', 0 FROM generate_series(1, 3000) g; DELETE FROM t WHERE k % 2 = 0")
        .unwrap();
    let expected = primary.query("postgres", QUERIES[0]).unwrap();
    assert_same(&primary, &mut standby, "before the promotion");
    drop(primary);
    standby.promote().unwrap();
    assert_eq!(standby.query("postgres", QUERIES[0]).unwrap(), expected);
    let mut client = standby.connect("postgres").unwrap();
    client
        .batch_execute("INSERT INTO t SELECT 10, g, 'promoted', 0 FROM generate_series(1, 3000) g")
        .unwrap();
    client
        .batch_execute("UPDATE t SET v = 'still' WHERE worker = 10 AND k <= 10")
        .unwrap();
    client.batch_execute("VACUUM t").unwrap();
    assert_eq!(
        standby
            .scalar("postgres", "SELECT count(*) FROM t")
            .unwrap(),
        (expected.len() + 3000).to_string()
    );
    client.batch_execute("INSERT INTO u VALUES (2)").unwrap();
    assert_eq!(
        standby
            .scalar("postgres", "SELECT count(*) FROM u")
            .unwrap(),
        "1"
    );
    standby.restart().unwrap();
    assert_eq!(
        standby
            .scalar(
                "postgres",
                "SELECT count(*) FILTER (WHERE v = 'still') FROM t"
            )
            .unwrap(),
        "10"
    );
}

#[test]
fn a_snapshot_on_a_standby_is_consistent_or_cancelled() {
    let primary = primary("snapshot_primary");
    primary
        .psql(
            "postgres",
            "CREATE EXTENSION lanes; CREATE TABLE t (k int) USING lanes; INSERT INTO t SELECT generate_series(1, 5000);
             CREATE TABLE twice (k int) USING lanes WITH (order_by = 'k', dedup = on)",
        )
        .unwrap();
    let mut standby = primary.standby("snapshot_standby").unwrap();
    standby.set("max_standby_streaming_delay", "100ms");
    standby.restart().unwrap();
    standby.wait_replayed(&primary).unwrap();
    let rows = |client: &mut postgres::Client| {
        client
            .query_one(
                "SELECT (SELECT count(*) FROM t) + (SELECT count(*) FROM twice)",
                &[],
            )
            .map(|row| row.get::<_, i64>(0))
    };
    // Duplicates are dropped by the sealing after the next transaction.
    let dropped = "SELECT lanes.seal('twice'); SELECT txid_current(); SELECT lanes.seal('twice')";
    for (maintenance, feedback) in [
        ("SELECT lanes.seal('twice')", "off"),
        (dropped, "off"),
        (dropped, "on"),
        ("SELECT lanes.seal('twice'); VACUUM twice", "off"),
        ("VACUUM t", "off"),
        ("VACUUM (FREEZE) t", "off"),
        ("VACUUM FULL t", "off"),
        ("TRUNCATE t", "off"),
        ("SELECT lanes.seal('t')", "off"),
        ("SELECT lanes.seal('t')", "on"),
        ("SELECT lanes.seal('t'); VACUUM t", "on"),
    ] {
        standby
            .psql(
                "postgres",
                &format!("ALTER SYSTEM SET hot_standby_feedback = {feedback}"),
            )
            .unwrap();
        standby.psql("postgres", "SELECT pg_reload_conf()").unwrap();
        primary.psql("postgres", "TRUNCATE t, twice").unwrap();
        primary
            .psql(
                "postgres",
                "INSERT INTO t SELECT generate_series(1, 4000);
                 INSERT INTO twice SELECT g % 500 FROM generate_series(1, 1000) g",
            )
            .unwrap();
        standby.wait_replayed(&primary).unwrap();
        let mut reader = standby.connect("postgres").unwrap();
        reader
            .batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            .unwrap();
        assert_eq!(rows(&mut reader).unwrap(), 5000);
        primary
            .psql("postgres", "DELETE FROM t WHERE k % 2 = 0")
            .unwrap();
        primary
            .psql("postgres", "INSERT INTO t SELECT generate_series(1, 100)")
            .unwrap();
        for statement in maintenance.split("; ") {
            primary.psql("postgres", statement).unwrap();
        }
        standby.wait_replayed(&primary).unwrap();
        match rows(&mut reader) {
            Ok(count) => assert_eq!(
                count, 5000,
                "{maintenance}, feedback {feedback}: an old snapshot sees what it saw"
            ),
            // 40001, or 57P01 if the session was terminated: "conflict with recovery".
            Err(error) => assert!(
                error
                    .code()
                    .is_none_or(|state| ["40001", "57P01"].contains(&state.code())),
                "{maintenance}: {error:?}"
            ),
        }
    }
}

#[test]
fn a_base_backup_under_load_restores_a_consistent_table() {
    let primary = primary("backup_primary");
    primary
        .psql("postgres", "CREATE EXTENSION lanes; CREATE TABLE t (k int, v text) USING lanes; CREATE TABLE h (LIKE t) USING heap")
        .unwrap();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (config, stopped) = (primary.config("postgres"), stop.clone());
    let writer = std::thread::spawn(move || {
        let mut client = config.connect(postgres::NoTls).unwrap();
        let mut k = 0;
        while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
            k += 1;
            let both =
                |sql: &str| format!("{};{}", sql.replace("{t}", "t"), sql.replace("{t}", "h"));
            let insert = both(&format!(
                "INSERT INTO {{t}} SELECT {k}, md5(g::text) FROM generate_series(1, 100) g"
            ));
            let delete = both(&format!("DELETE FROM {{t}} WHERE k = {} - 5", k));
            client
                .batch_execute(&format!("BEGIN; {insert}; {delete}; COMMIT"))
                .unwrap();
        }
    });
    let mut restored = primary.backup("backup_restored").unwrap();
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    writer.join().unwrap();
    restored.start().unwrap();
    let difference = "SELECT count(*) FROM ((TABLE t EXCEPT ALL TABLE h) UNION ALL (TABLE h EXCEPT ALL TABLE t)) d";
    assert_eq!(restored.scalar("postgres", difference).unwrap(), "0");
    assert_ne!(
        restored
            .scalar("postgres", "SELECT count(*) FROM t")
            .unwrap(),
        "0"
    );
}
