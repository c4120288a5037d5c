//! The background sealer seals rows, drops old ones, and releases space, without a request.

mod damage;

use lanes_support::cluster::Cluster;
use lanes_support::seed::seeded;
use postgres::error::DbError;
use rand::RngExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A timeout that suffices on any machine; the sealer takes a second or two.
const PATIENCE: Duration = Duration::from_secs(120);

/// Starts a cluster whose sealer runs every `naptime` seconds, or never if that is zero, and seals
/// from `rows` rows on.
fn cluster(name: &str, naptime: u32, rows: Option<u32>) -> Cluster {
    let mut builder = Cluster::builder(name)
        .setting("lanes.seal_naptime", &naptime.to_string())
        .setting("autovacuum", "off");
    if let Some(rows) = rows {
        builder = builder.setting("lanes.seal_rows", &rows.to_string());
    }
    builder.start().unwrap()
}

/// Repeats a query until it returns the awaited answer.
fn wait_for(client: &mut postgres::Client, query: &str) {
    let deadline = Instant::now() + PATIENCE;
    while !client.query_one(query, &[]).unwrap().get::<_, bool>(0) {
        assert!(Instant::now() < deadline, "timed out: {query}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn size(client: &mut postgres::Client) -> i64 {
    let row = client.query_one("SELECT pg_relation_size('load')", &[]);
    row.unwrap().get(0)
}

#[test]
fn tables_are_sealed_and_trimmed_in_the_background() {
    let cluster = cluster("sealing", 1, Some(1000));
    let mut client = cluster.connect("postgres").unwrap();
    client
        .batch_execute(
            "CREATE EXTENSION lanes;
             CREATE TABLE load (host int, ts timestamptz, value int) USING lanes WITH (order_by = 'host, ts');
             INSERT INTO load SELECT g % 10, now() - interval '2 days' + g * interval '1 ms', g FROM generate_series(1, 5000) g",
        )
        .unwrap();
    wait_for(
        &mut client,
        "SELECT bool_and(state = 'sealed') FROM lanes.arena_segments('load') WHERE rows > rows_dead",
    );
    let sum = "SELECT count(*) = 5000 AND sum(value) = 12502500 FROM load";
    wait_for(&mut client, sum);
    // Sealed runs are settled: they are gone from the file's directory, and their space is reused.
    let mut sizes = Vec::new();
    for _ in 0..12 {
        client
            .batch_execute(
                "DELETE FROM load;
                 INSERT INTO load SELECT g % 10, now() - interval '2 days' + g * interval '1 ms', g FROM generate_series(1, 5000) g",
            )
            .unwrap();
        wait_for(
            &mut client,
            "SELECT bool_and(state = 'sealed') FROM lanes.arena_segments('load') WHERE rows > rows_dead",
        );
        sizes.push(size(&mut client));
    }
    wait_for(&mut client, sum);
    assert!(sizes[11] < sizes[3] * 3 / 2, "the file grows: {sizes:?}");
    client
        .batch_execute("ALTER TABLE load SET (retain = '1 day')")
        .unwrap();
    wait_for(&mut client, "SELECT count(*) = 0 FROM load");
}

/// The sealer is a superuser, while the database's owner may set its `search_path` and much else.
#[test]
fn settings_of_the_database_do_not_affect_the_sealer() {
    let cluster = cluster("sealing_settings", 1, None);
    let mut client = cluster.connect("postgres").unwrap();
    client
        .batch_execute(
            "CREATE EXTENSION lanes;
             CREATE SCHEMA trap;
             CREATE FUNCTION trap.spring(int4, int4) RETURNS bool LANGUAGE plpgsql
                 AS $$ BEGIN RAISE EXCEPTION 'the trap of %', current_user; END $$;
             CREATE OPERATOR trap.> (FUNCTION = trap.spring, LEFTARG = int4, RIGHTARG = int4);
             ALTER DATABASE postgres SET search_path = trap, pg_catalog;
             ALTER DATABASE postgres SET default_transaction_isolation = 'repeatable read';
             ALTER DATABASE postgres SET default_transaction_read_only = on",
        )
        .unwrap();
    let register = r#"SELECT lanes.register_series(0, ARRAY[ROW('up', ARRAY['{"job":"a"}'])::lanes.series_run])"#;
    client.execute(register, &[]).unwrap();
    wait_for(
        &mut client,
        "SELECT count(*) = 1 FROM lanes.label_runs WHERE last_id = 1",
    );
    wait_for(
        &mut client,
        "SELECT count(*) = 1 FROM pg_attribute WHERE attrelid = 'metrics.up'::regclass AND attname = 'job'",
    );
}

/// `dedup = on` keeps the rows that DISTINCT ON returns, in whatever order rows arrived, were
/// deleted, sealed and merged.
#[test]
fn the_last_of_equal_keys_is_kept() {
    let (mut random, _) = seeded("sealing_dedup");
    let cluster = cluster("sealing_dedup", 0, Some(1));
    let mut client = cluster.connect("postgres").unwrap();
    client
        .batch_execute(
            "CREATE EXTENSION lanes;
             CREATE TABLE latest (host int, ts timestamptz, v int8, txt text) USING lanes WITH (order_by = 'host, ts', dedup = on);
             CREATE TABLE every (n int8 GENERATED ALWAYS AS IDENTITY, host int, ts timestamptz, v int8, txt text) USING heap",
        )
        .unwrap();
    // The last row of equal keys. A key with a NULL equals no other.
    const LAST: &str = "SELECT host, ts, v, txt FROM every WHERE host IS NULL OR ts IS NULL
         UNION ALL (SELECT DISTINCT ON (host, ts) host, ts, v, txt FROM every WHERE host IS NOT NULL AND ts IS NOT NULL ORDER BY host, ts, n DESC)";
    let none = |client: &mut postgres::Client, sql: &str, what: &str| {
        let found = client.query(sql, &[]).unwrap();
        assert!(found.is_empty(), "{what}: {} rows", found.len());
    };
    for round in 0..24 {
        let (rows, hosts) = (
            random.random_range(1..6000),
            [2, 20, 400][random.random_range(0..3)],
        );
        let insert = format!(
            "WITH new AS (INSERT INTO every (host, ts, v, txt)
                 SELECT nullif(hashint4(g * 7 + {round}) % {hosts}, 1), '2026-01-01 00:00+00'::timestamptz + hashint4(g) % 60 * interval '1 s',
                     {round} * 10000 + g, 'text ' || g % 5 FROM generate_series(1, {rows}) g RETURNING *)
             INSERT INTO latest SELECT host, ts, v, txt FROM new ORDER BY n"
        );
        client.batch_execute(&insert).unwrap();
        if random.random_ratio(1, 4) {
            let host = random.random_range(0..hosts);
            for table in ["every", "latest"] {
                let delete = format!("DELETE FROM {table} WHERE host = {host}");
                client.batch_execute(&delete).unwrap();
            }
        }
        match random.random_range(0..4) {
            0 => client.batch_execute("SELECT lanes.seal('latest')").unwrap(),
            1 => client.batch_execute("VACUUM latest").unwrap(),
            _ => {}
        }
        let missing = format!("({LAST}) EXCEPT ALL SELECT * FROM latest");
        none(&mut client, &missing, "the last of a key is gone");
        let made_up = "SELECT * FROM latest EXCEPT ALL SELECT host, ts, v, txt FROM every";
        none(&mut client, made_up, "the row was never inserted");
    }
    client.batch_execute("SELECT lanes.seal('latest')").unwrap();
    let more = format!("SELECT * FROM latest EXCEPT ALL ({LAST})");
    none(&mut client, &more, "not the last of its key");
}

/// Returns the nice value of a process, or `None` once it has ended.
fn nice(process: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The value is the 17th field after the name, which may contain anything.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(16)?.parse().ok()
}

#[test]
fn sealing_gives_way_to_sessions() {
    let cluster = Cluster::builder("sealing_nice")
        .setting("lanes.seal_naptime", "1")
        .setting("lanes.seal_nice", "7")
        .start()
        .unwrap();
    let mut client = cluster.connect("postgres").unwrap();
    client.batch_execute("CREATE EXTENSION lanes").unwrap();
    let sealers = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'lanes sealer'";
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = client.query(sealers, &[]).unwrap();
        // A process starts with the default value.
        if found.iter().any(|row| nice(row.get(0)) == Some(7)) {
            break;
        }
        assert!(Instant::now() < deadline, "no sealer lowered its priority");
    }
    assert_eq!(nice(std::process::id() as i32), Some(0));
}

/// Autovacuum writes the report of VACUUM (VERBOSE) to the server's log if its settings request
/// that.
#[test]
fn autovacuum_logs_what_it_did() {
    let cluster = Cluster::builder("sealing_log")
        .setting("lanes.seal_naptime", "1000")
        .setting("autovacuum_naptime", "1s")
        .setting("log_autovacuum_min_duration", "0")
        .start()
        .unwrap();
    let mut client = cluster.connect("postgres").unwrap();
    client
        .batch_execute(
            "CREATE EXTENSION lanes;
             CREATE TABLE logged (n int) USING lanes WITH (autovacuum_vacuum_threshold = 1);
             CREATE TABLE silent (n int) USING lanes WITH (autovacuum_vacuum_threshold = 1, log_autovacuum_min_duration = 3600000);
             INSERT INTO logged SELECT generate_series(1, 1000);
             INSERT INTO silent SELECT generate_series(1, 1000);
             DELETE FROM logged WHERE n % 4 = 0;
             DELETE FROM silent WHERE n % 4 = 0",
        )
        .unwrap();
    for table in ["logged", "silent"] {
        let vacuumed = format!(
            "SELECT coalesce(sum(autovacuum_count), 0) > 0 FROM pg_stat_user_tables WHERE relname = '{table}'"
        );
        wait_for(&mut client, &vacuumed);
    }
    let log = std::fs::read_to_string(cluster.log()).unwrap();
    let told = "automatic vacuum of \"postgres.public.logged\": 750 rows live, 250 dead; ";
    assert!(log.contains(told), "{log}");
    assert!(!log.contains("public.silent\": "), "{log}");
}

/// Fewer rows than are worth sealing are sealed nevertheless if only sealing allows them to be
/// dropped.
#[test]
fn a_few_expired_rows_are_dropped_too() {
    let cluster = cluster("sealing_few", 1, None);
    let mut client = cluster.connect("postgres").unwrap();
    client
        .batch_execute(
            "CREATE EXTENSION lanes;
             CREATE TABLE few (ts timestamptz, value int) USING lanes WITH (retain = '1 day');
             CREATE TABLE kept (LIKE few) USING lanes WITH (retain = '3 days');
             INSERT INTO few SELECT now() - interval '2 days', g FROM generate_series(1, 10) g;
             INSERT INTO kept SELECT now() - interval '2 days', g FROM generate_series(1, 10) g",
        )
        .unwrap();
    wait_for(&mut client, "SELECT count(*) = 0 FROM few");
    wait_for(
        &mut client,
        "SELECT count(*) = 10 AND (SELECT bool_and(state = 'open') FROM lanes.arena_segments('kept')) FROM kept",
    );
}

/// Transactions that change rows overlap, so that at no moment there is none.
#[test]
fn a_continuously_changed_table_is_sealed() {
    const WRITERS: i32 = 4;
    let cluster = cluster("sealing_changes", 1, Some(1000));
    let mut client = cluster.connect("postgres").unwrap();
    client
        .batch_execute(
            "CREATE EXTENSION lanes;
             CREATE TABLE load (host int, ts timestamptz, value int) USING lanes WITH (order_by = 'host, ts');",
        )
        .unwrap();
    let stop = AtomicBool::new(false);
    let (stop, config) = (&stop, &cluster.config("postgres"));
    let changes = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn(move || {
                    let mut client = config.connect(postgres::NoTls).unwrap();
                    let own = format!("INSERT INTO load VALUES ({}, now(), 0)", -1 - writer);
                    client.batch_execute(&own).unwrap();
                    let change = format!(
                        "BEGIN; UPDATE load SET value = value + 1 WHERE host = {}; SELECT pg_sleep(0.1); COMMIT",
                        -1 - writer
                    );
                    let mut changes = 0;
                    while !stop.load(Ordering::Relaxed) {
                        client.batch_execute(&change).unwrap();
                        changes += 1;
                    }
                    changes
                })
            })
            .collect();
        // They overlap before there is anything to seal.
        let overlap = format!(
            "SELECT count(*) = {WRITERS} FROM pg_locks WHERE locktype = 'page' AND page = 1 AND granted"
        );
        wait_for(&mut client, &overlap);
        client
            .batch_execute("INSERT INTO load SELECT g % 10, now() - interval '2 days' + g * interval '1 ms', g FROM generate_series(1, 50000) g")
            .unwrap();
        let sealed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            wait_for(
                &mut client,
                "SELECT coalesce(sum(rows), 0) >= 50000 FROM lanes.segments WHERE relation = 'load'::regclass AND state = 'sealed'",
            )
        }));
        stop.store(true, Ordering::Relaxed);
        let changes: i64 = writers
            .into_iter()
            .map(|writer| writer.join().unwrap())
            .sum();
        sealed.unwrap();
        changes
    });
    let after = "SELECT count(*), sum(value) FILTER (WHERE host < 0) FROM load";
    let row = client.query_one(after, &[]).unwrap();
    assert_eq!(
        (row.get(0), row.get(1)),
        (50_000 + i64::from(WRITERS), Some(changes))
    );
}

/// Sealing by hand that had to wait releases its lock at once, and not with its transaction.
/// Otherwise transactions that change rows would wait for it too.
#[test]
fn sealing_locks_others_out_only_briefly() {
    let cluster = cluster("sealing_moment", 0, Some(1));
    let mut client = cluster.connect("postgres").unwrap();
    client
        .batch_execute(
            "CREATE EXTENSION lanes;
             CREATE TABLE load (host int, ts timestamptz, value int) USING lanes WITH (order_by = 'host, ts');
             INSERT INTO load VALUES (-1, now(), 0)",
        )
        .unwrap();
    let (mut changer, config) = (
        cluster.connect("postgres").unwrap(),
        cluster.config("postgres"),
    );
    let deadline = Instant::now() + PATIENCE;
    loop {
        client
            .batch_execute("INSERT INTO load SELECT g, now(), g FROM generate_series(1, 1000) g")
            .unwrap();
        changer
            .batch_execute("BEGIN; UPDATE load SET value = value + 1 WHERE host = -1")
            .unwrap();
        let config = config.clone();
        let sealer = std::thread::spawn(move || {
            let mut client = config.connect(postgres::NoTls).unwrap();
            client.batch_execute("BEGIN").unwrap();
            let sealed = client.query_one("SELECT lanes.seal('load')", &[]).unwrap();
            let kept = client
                .query_one(
                    "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'page' AND granted",
                    &[],
                )
                .unwrap();
            client.batch_execute("COMMIT").unwrap();
            (sealed.get::<_, i64>(0), kept.get::<_, i64>(0))
        });
        let waits = "SELECT count(*) > 0 FROM pg_locks WHERE locktype = 'page' AND page = 1 AND NOT granted";
        let mut waited = false;
        while !waited && !sealer.is_finished() {
            waited = client.query_one(waits, &[]).unwrap().get(0);
        }
        changer.batch_execute("COMMIT").unwrap();
        let (rows, kept) = sealer.join().unwrap();
        assert_eq!(kept, 0, "{rows} rows were sealed");
        // The sealing may have given up before the change was committed.
        if waited && rows > 0 {
            break;
        }
        assert!(Instant::now() < deadline, "sealing never had to wait");
    }
}

/// A session that waits for requests as the gateway does keeps no row open. A session that does is
/// reported.
#[test]
fn the_snapshot_that_keeps_rows_open_is_reported() {
    let cluster = cluster("sealing_open", 0, None);
    let told: Arc<Mutex<Vec<DbError>>> = Arc::default();
    let notices = Arc::clone(&told);
    let mut client = cluster
        .config("postgres")
        .notice_callback(move |notice| notices.lock().unwrap().push(notice))
        .connect(postgres::NoTls)
        .unwrap();
    client
        .batch_execute("CREATE EXTENSION lanes; CREATE TABLE t (n int8) USING lanes")
        .unwrap();
    let pid = |client: &mut postgres::Client| {
        let row = client.query_one("SELECT pg_backend_pid()", &[]).unwrap();
        row.get::<_, i32>(0)
    };

    let mut gateway = cluster.connect("postgres").unwrap();
    let waiting = pid(&mut gateway);
    let end = gateway.cancel_token();
    let wait =
        std::thread::spawn(move || gateway.batch_execute("CALL lanes.recall_wait('1 hour')"));
    wait_for(
        &mut client,
        &format!(
            "SELECT count(*) = 1 FROM pg_stat_activity WHERE pid = {waiting} AND wait_event_type = 'Extension' AND backend_xmin IS NULL"
        ),
    );
    let mut seal = || {
        client
            .batch_execute("INSERT INTO t SELECT generate_series(1, 1000)")
            .unwrap();
        let row = client.query_one("SELECT lanes.seal('t')", &[]).unwrap();
        row.get::<_, i64>(0)
    };
    assert_eq!(seal(), 1000);
    assert_eq!(told.lock().unwrap().len(), 0, "nothing stays open");
    end.cancel_query(postgres::NoTls).unwrap();
    assert!(wait.join().unwrap().is_err(), "the wait is cancelled");

    let mut reader = cluster.connect("postgres").unwrap();
    reader
        .batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t")
        .unwrap();
    assert_eq!(seal(), 0);
    let told = told.lock().unwrap();
    let [notice] = &told[..] else {
        panic!("one notice: {told:?}");
    };
    let rows = "because not every snapshot sees them: 1000";
    assert!(notice.message().contains(rows), "{notice}");
    let named = format!("session {} (", pid(&mut reader));
    assert!(notice.detail().unwrap().contains(&named), "{notice:?}");
}
