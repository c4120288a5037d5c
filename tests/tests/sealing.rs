//! The background sealer: it seals, drops what is too old, and gives space back, without being asked.

use lanes_tests::cluster::{Cluster, Stop};
use std::io::{Seek, SeekFrom, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Long enough for any machine; the sealer takes a second or two.
const PATIENCE: Duration = Duration::from_secs(120);

/// Asks again and again until the answer is the one that is waited for.
fn wait_for(client: &mut postgres::Client, query: &str) {
    let deadline = Instant::now() + PATIENCE;
    while !client.query_one(query, &[]).unwrap().get::<_, bool>(0) {
        assert!(Instant::now() < deadline, "never came true: {query}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn tables_are_sealed_and_thinned_without_being_asked() {
    let cluster = Cluster::builder("sealing")
        .setting("lanes.seal_naptime", "1")
        .setting("lanes.seal_rows", "1000")
        .setting("autovacuum", "off")
        .start()
        .unwrap();
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
        "SELECT bool_and(state = 'sealed') FROM lanes.segments('load') WHERE rows > rows_dead",
    );
    let sum = "SELECT count(*) = 5000 AND sum(value) = 12502500 FROM load";
    wait_for(&mut client, sum);
    // What was sealed is settled: its runs are gone from the file's directory, and their space is used again.
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
            "SELECT bool_and(state = 'sealed') FROM lanes.segments('load') WHERE rows > rows_dead",
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

/// The nice value of a process; `None` once it has ended.
fn nice(process: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // After the name, which may hold anything, this is the 17th field.
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
        // It begins as all others do.
        if found.iter().any(|row| nice(row.get(0)) == Some(7)) {
            break;
        }
        assert!(Instant::now() < deadline, "no sealer was seen to give way");
    }
    assert_eq!(nice(std::process::id() as i32), Some(0));
}

/// Fewer rows than are worth sealing are sealed all the same when only so they can go.
#[test]
fn few_rows_are_dropped_too_once_they_are_too_old() {
    let cluster = Cluster::builder("sealing_few")
        .setting("lanes.seal_naptime", "1")
        .setting("autovacuum", "off")
        .start()
        .unwrap();
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
        "SELECT count(*) = 10 AND (SELECT bool_and(state = 'open') FROM lanes.segments('kept')) FROM kept",
    );
}

/// Transactions that change rows follow each other so closely that at no moment there is none.
#[test]
fn a_table_that_is_always_being_changed_is_sealed() {
    const WRITERS: i32 = 4;
    let cluster = Cluster::builder("sealing_changes")
        .setting("lanes.seal_naptime", "1")
        .setting("lanes.seal_rows", "1000")
        .setting("autovacuum", "off")
        .start()
        .unwrap();
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

/// A table that cannot be read keeps none of the others from being sealed.
#[test]
fn a_damaged_table_does_not_end_the_visit() {
    let mut cluster = Cluster::builder("sealing_damage")
        .setting("lanes.seal_naptime", "0")
        .setting("lanes.seal_rows", "1000")
        .setting("autovacuum", "off")
        .start()
        .unwrap();
    let mut client = cluster.connect("postgres").unwrap();
    client.batch_execute("CREATE EXTENSION lanes").unwrap();
    let mut damaged = Vec::new();
    for number in 0..6 {
        client
            .batch_execute(&format!(
                "CREATE TABLE t{number} (host int, value int) USING lanes WITH (order_by = 'host');
                 INSERT INTO t{number} SELECT g % 10, g FROM generate_series(1, 5000) g"
            ))
            .unwrap();
        if number != 3 {
            let path = format!("SELECT pg_relation_filepath('t{number}')");
            damaged.push(client.query_one(&path, &[]).unwrap().get::<_, String>(0));
        }
    }
    drop(client);
    cluster.stop(Stop::Fast).unwrap();
    for path in damaged {
        // The first page of its directory.
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .open(cluster.data().join(path))
            .unwrap();
        file.seek(SeekFrom::Start(8192)).unwrap();
        file.write_all(&[0x5a; 8192]).unwrap();
    }
    cluster.set("lanes.seal_naptime", "1");
    cluster.start().unwrap();
    let mut client = cluster.connect("postgres").unwrap();
    wait_for(
        &mut client,
        "SELECT bool_and(state = 'sealed') FROM lanes.stored_segments('t3')",
    );
    // One more round, seen from its beginning.
    let log = || std::fs::read_to_string(cluster.log()).unwrap();
    let failures = || log().matches("could not seal \"t5\"").count();
    let (before, deadline) = (failures(), Instant::now() + PATIENCE);
    while failures() < before + 2 {
        assert!(Instant::now() < deadline, "the sealer goes on:\n{}", log());
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(
        !log().contains("\"lanes sealer\" (PID"),
        "a sealer ended by an error:\n{}",
        log()
    );
}

fn size(client: &mut postgres::Client) -> i64 {
    let row = client.query_one("SELECT pg_relation_size('load')", &[]);
    row.unwrap().get(0)
}

/// What is damaged is told of each time that it is read: nobody keeps it as if it were right.
#[test]
fn damaged_images_are_never_kept() {
    let mut cluster = Cluster::builder("sealing_images")
        .setting("lanes.seal_naptime", "0")
        .setting("autovacuum", "off")
        .start()
        .unwrap();
    let mut client = cluster.connect("postgres").unwrap();
    // More rows than those of small segments, whose images are not kept; the query asks for later ones alone.
    for statement in [
        "CREATE EXTENSION lanes",
        "CREATE TABLE t (k int8, v float8) USING lanes WITH (order_by = 'k')",
        "INSERT INTO t SELECT g % 100, g::int8 * 7919 % 1000003 / 4.0 FROM generate_series(1, 200000) g",
        "SELECT lanes.seal('t')",
    ] {
        client.batch_execute(statement).unwrap();
    }
    let path: String = client
        .query_one("SELECT pg_relation_filepath('t')", &[])
        .unwrap()
        .get(0);
    drop(client);
    cluster.stop(Stop::Fast).unwrap();
    let path = cluster.data().join(path);
    let mut bytes = std::fs::read(&path).unwrap();
    // Not the first page of what goes over several, as images do and the part's index does not.
    let is_later = |page: &&mut [u8]| page[24..28] == *b"LDAT" && page[32..36] != [0; 4];
    for page in bytes.chunks_mut(8192).filter(is_later) {
        page[60] ^= 1;
    }
    std::fs::write(&path, bytes).unwrap();
    cluster.start().unwrap();
    let mut client = cluster.connect("postgres").unwrap();
    // As in a cluster without checksums of pages.
    client
        .batch_execute("SET ignore_checksum_failure = on")
        .unwrap();
    for _ in 0..3 {
        let failure = client
            .query_one("SELECT sum(v) FROM t WHERE k >= 90", &[])
            .unwrap_err();
        let told = failure.as_db_error().unwrap().message().to_owned();
        assert!(told.contains("checksum"), "{told}");
    }
}
