//! The purpose of sealing, by hand and by VACUUM: a table keeps its size, and tables larger than
//! the arena can be queried.

use lanes_support::cluster::Cluster;
use lanes_support::objects::{Objects, Supplier, forget_recalled};
use lanes_support::seed::{Random, seeded};
use postgres::{Client, NoTls};
use rand::RngExt;
use rand::seq::IndexedRandom;
use std::sync::atomic::{AtomicBool, Ordering};

/// The number of rows of a minute, which a round of steady ingest adds.
const ROUND_ROWS: i64 = 10_000;
/// The retention of the table in minutes.
const RETAINED: i64 = 3;
const ROUNDS: i64 = 60;

/// The start of the first minute.
const STARTED: &str = "'2020-01-01 00:00+00'::timestamptz";

/// Inserts the rows of a minute, counted from the first.
fn insert_minute(client: &mut Client, table: &str, minute: i64) {
    client
        .batch_execute(&format!(
            "INSERT INTO {table} SELECT g % 100, {STARTED} + interval '{minute} min' + g * interval '6 ms', random() \
             FROM generate_series(0, {ROUND_ROWS} - 1) g"
        ))
        .unwrap();
}

/// Returns the age of a minute. The clock cannot be set, so the tables' limits of age are adjusted
/// instead.
fn age_of_minute(client: &mut Client, minute: i64) -> String {
    let age = format!(
        "SELECT (extract(epoch FROM now() - {STARTED})::int8 - 60 * ({minute}))::text || ' s'"
    );
    client.query_one(&age, &[]).unwrap().get(0)
}

fn number(client: &mut Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).unwrap().get(0)
}

/// Rows arrive, change, and are sealed, merged and dropped. The file is as large after many rounds
/// as after some. Without reuse of space it would be more than twice as large.
#[test]
fn a_table_under_steady_ingest_keeps_its_size() {
    let cluster = Cluster::builder("sealed_steady")
        .sealed_by_hand()
        .start()
        .unwrap();
    let mut client = cluster.connect("postgres").unwrap();
    client
        .batch_execute(
            "CREATE EXTENSION lanes; \
             CREATE TABLE steady (series int, ts timestamptz, v float8) USING lanes WITH (order_by = 'series, ts'); \
             CREATE TABLE changing (k int, v float8) USING lanes WITH (order_by = 'k'); \
             INSERT INTO changing SELECT g, random() FROM generate_series(1, 20000) g",
        )
        .unwrap();
    let mut largest = [[0; 2]; 2];
    let mut rows_most = 0;
    for round in 0..ROUNDS {
        insert_minute(&mut client, "steady", round);
        let retain = age_of_minute(&mut client, round - RETAINED);
        for statement in [
            format!("ALTER TABLE steady SET (retain = '{retain}')"),
            "VACUUM steady".to_owned(),
            format!("UPDATE changing SET v = -v WHERE k % 10 = {round} % 10"),
            format!("DELETE FROM changing WHERE k = {round} + 1"),
            format!("INSERT INTO changing VALUES ({round} + 1, {round})"),
            "VACUUM changing".to_owned(),
        ] {
            client.batch_execute(&statement).unwrap();
        }
        let half = usize::from(round >= ROUNDS / 2);
        for (place, table) in ["steady", "changing"].iter().enumerate() {
            let size = number(&mut client, &format!("SELECT pg_relation_size('{table}')"));
            largest[half][place] = size.max(largest[half][place]);
        }
        rows_most = rows_most.max(number(&mut client, "SELECT count(*) FROM steady"));
        let newest = number(
            &mut client,
            &format!(
                "SELECT count(*) FROM steady WHERE ts >= {STARTED} + interval '{round} min' - interval '{RETAINED} min'"
            ),
        );
        assert_eq!(
            newest,
            ROUND_ROWS * (round.min(RETAINED) + 1),
            "round {round}: retained rows are present"
        );
        assert_eq!(number(&mut client, "SELECT count(*) FROM changing"), 20_000);
    }
    println!("largest files, half by half: {largest:?}; rows at most: {rows_most}");
    assert!(
        rows_most < ROUND_ROWS * ROUNDS / 3,
        "old rows are dropped: {rows_most}"
    );
    for (first, second) in largest[0].iter().zip(largest[1]) {
        assert!(second <= first * 7 / 4, "files keep growing: {largest:?}");
    }
}

/// Rows arrive, are sealed, move to object storage and are dropped there. Neither the file nor
/// object storage grows for ever, and all retained rows are present the whole time.
#[test]
fn a_table_whose_rows_are_offloaded_keeps_its_size() {
    /// The number of minutes that stay in the file; the next constant is the retention.
    const HOT: i64 = 2;
    const KEPT: i64 = 8;
    let cluster = Cluster::builder("sealed_away")
        .sealed_by_hand()
        .start()
        .unwrap();
    let mut client = cluster.connect("postgres").unwrap();
    client
        .batch_execute(
            "CREATE EXTENSION lanes; \
             CREATE TABLE away (series int, ts timestamptz, v float8) USING lanes WITH (order_by = 'series, ts')",
        )
        .unwrap();
    let objects = Objects::default();
    let supplier = Supplier::start(&cluster, "postgres", &objects);
    // The sizes of the file and of its objects, in each half of the rounds.
    let mut largest = [[0; 2]; 2];
    let mut rows_in_file = 0;
    for round in 0..ROUNDS {
        insert_minute(&mut client, "away", round);
        let [hot, retain] = [HOT, KEPT].map(|minutes| age_of_minute(&mut client, round - minutes));
        client
            .batch_execute(&format!(
                "ALTER TABLE away SET (hot = '{hot}', retain = '{retain}')"
            ))
            .unwrap();
        client.batch_execute("VACUUM away").unwrap();
        objects.offload(&mut client).unwrap();
        client.batch_execute("VACUUM away").unwrap();
        forget_recalled(&cluster);
        let sizes = [
            "SELECT pg_relation_size('away')",
            "SELECT count(*) FROM lanes.remote_keys()",
        ]
        .map(|size| number(&mut client, size));
        let half = usize::from(round >= ROUNDS / 2);
        for (largest, size) in largest[half].iter_mut().zip(sizes) {
            *largest = size.max(*largest);
        }
        let retained = format!(
            "SELECT count(v + 0) FROM away WHERE ts >= {STARTED} + interval '{} min'",
            round - KEPT
        );
        assert_eq!(
            number(&mut client, &retained),
            ROUND_ROWS * (round.min(KEPT) + 1),
            "round {round}: retained rows are present"
        );
        rows_in_file = number(
            &mut client,
            "SELECT sum(rows)::int8 FROM lanes.segments WHERE relation = 'away'::regclass AND state <> 'remote'",
        );
    }
    println!(
        "largest file and most objects, half by half: {largest:?}; {} segments were recalled",
        supplier.supplied()
    );
    assert!(
        largest[1][1] > 0 && supplier.supplied() > 0,
        "rows are offloaded"
    );
    assert!(
        rows_in_file < ROUND_ROWS * 3 * HOT,
        "offloaded rows are not in the file: {rows_in_file}"
    );
    for (first, second) in largest[0].iter().zip(largest[1]) {
        assert!(
            second <= first * 7 / 4,
            "the sizes keep growing: {largest:?}"
        );
    }
}

/// A table without other writers also releases its superseded space.
#[test]
fn the_space_of_sealed_runs_is_reused_in_an_idle_cluster() {
    let cluster = Cluster::builder("sealed_idle")
        .sealed_by_hand()
        .start()
        .unwrap();
    let mut client = cluster.connect("postgres").unwrap();
    client.batch_execute("CREATE EXTENSION lanes").unwrap();
    for (table, seal) in [
        ("by_hand", "SELECT lanes.seal('by_hand')"),
        ("by_vacuum", "VACUUM by_vacuum"),
    ] {
        client
            .batch_execute(&format!(
                "CREATE TABLE {table} (k int, v float8) USING lanes; \
                 INSERT INTO {table} SELECT g, random() FROM generate_series(1, 200000) g"
            ))
            .unwrap();
        client.batch_execute(seal).unwrap();
        client
            .batch_execute(&format!("VACUUM (TRUNCATE off) {table}"))
            .unwrap();
        let size = format!("SELECT pg_relation_size('{table}')");
        let sealed = number(&mut client, &size);
        client
            .batch_execute(&format!(
                "INSERT INTO {table} SELECT g, random() FROM generate_series(1, 100000) g"
            ))
            .unwrap();
        assert_eq!(number(&mut client, &size), sealed, "{table}");
    }
}

/// The number of rows with known answers; more than ten times the arena.
const KNOWN_ROWS: i64 = 500_000;

/// Returns a query on the rows with known answers, which has the same answer on the heap twin.
fn question(random: &mut Random) -> String {
    let series = random.random_range(0..500);
    let hour = random.random_range(0..20);
    [
        "SELECT count(*), sum(v)::text, min(ts)::text, max(note) FROM {t} WHERE series < 1000".to_owned(),
        format!("SELECT count(*), sum(v)::text, min(ts)::text, max(note) FROM {{t}} WHERE series = {series}"),
        format!("SELECT count(*), sum(v)::text, min(note), max(note) FROM {{t}} WHERE series < 1000 AND ts BETWEEN '2026-01-01 00:00+00'::timestamptz + interval '{hour} h' AND '2026-01-01 01:00+00'::timestamptz + interval '{hour} h'"),
        format!("SELECT sum(n)::int8, sum(s)::text, min(note), max(note) FROM (SELECT note, count(*) n, sum(v) s FROM {{t}} WHERE series BETWEEN {series} AND 999 GROUP BY note) q"),
        format!("SELECT count(*), sum(v)::text, min(ts)::text, max(note) FROM (SELECT * FROM {{t}} WHERE series < 1000 ORDER BY ts DESC, series LIMIT {series}) q"),
        format!("SELECT count(*), sum(b.v)::text, min(a.ts)::text, max(a.note) FROM {{t}} a JOIN {{t}} b ON a.series = b.series AND a.ts = b.ts WHERE a.series = {series}"),
    ]
    .choose(random)
    .unwrap()
    .clone()
}

#[test]
fn a_growing_table_ten_times_the_arena_has_correct_answers() {
    let (mut random, _) = seeded("sealed_large");
    let cluster = Cluster::builder("sealed_large")
        .sealed_by_hand()
        .setting("lanes.arena_size", "1MB")
        .setting("lanes.seal_memory", "16MB")
        .start()
        .unwrap();
    let mut client = cluster.connect("postgres").unwrap();
    client
        .batch_execute(&format!(
            "CREATE EXTENSION lanes; \
             CREATE TABLE known (series int, ts timestamptz, v float8, note text) USING heap; \
             INSERT INTO known SELECT g % 500, '2026-01-01 00:00+00'::timestamptz + (g / 500) * interval '1 min', (g % 9973) / 4.0, 'n' || g % 11 \
             FROM generate_series(0, {KNOWN_ROWS} - 1) g; \
             CREATE INDEX ON known (series); ANALYZE known; \
             CREATE TABLE large (LIKE known) USING lanes WITH (order_by = 'series, ts')"
        ))
        .unwrap();
    // A third is sealed by hand, a third is sealed by VACUUM, and a third is open.
    for third in 0..3 {
        client
            .batch_execute(&format!(
                "INSERT INTO large SELECT * FROM known WHERE extract(hour FROM ts AT TIME ZONE 'UTC')::int % 3 = {third}"
            ))
            .unwrap();
        match third {
            0 => client.batch_execute("SELECT lanes.seal('large')").unwrap(),
            1 => client.batch_execute("VACUUM large").unwrap(),
            _ => {}
        }
    }
    let arenas = number(
        &mut client,
        "SELECT (sum(bytes_raw) / (SELECT max(bytes_total) FROM lanes.arena()))::int8 FROM lanes.segments WHERE relation = 'large'::regclass",
    );
    assert!(arenas >= 10, "its rows take {arenas} arenas");
    let stop = AtomicBool::new(false);
    let (stop, config) = (&stop, &cluster.config("postgres"));
    std::thread::scope(|scope| {
        let ending = |work: &mut dyn FnMut(&mut Client, i64)| {
            let mut client = config.connect(NoTls).unwrap();
            let mut round = 0;
            while !stop.load(Ordering::Relaxed) {
                round += 1;
                work(&mut client, round);
            }
            round
        };
        let ingest = scope.spawn(move || {
            ending(&mut |client, round| {
                client
                    .batch_execute(&format!(
                        "INSERT INTO large SELECT 1000 + g % 10, '2027-01-01 00:00+00'::timestamptz + interval '{round} s', g - 50.5, 'new' \
                         FROM generate_series(1, 100) g"
                    ))
                    .unwrap()
            })
        });
        let maintain = scope.spawn(move || {
            ending(&mut |client, round| {
                let statement =
                    ["VACUUM large", "SELECT lanes.seal('large')"][(round / 4 % 2) as usize];
                client.batch_execute(statement).unwrap()
            })
        });
        for asked in 0..12 {
            let question = question(&mut random);
            let answer = |client: &mut Client, table: &str| {
                let row = client
                    .query_one(&question.replace("{t}", table), &[])
                    .unwrap();
                let texts: [Option<String>; 3] = [1, 2, 3].map(|place| row.get(place));
                (row.get::<_, Option<i64>>(0), texts)
            };
            let (expected, found) = (answer(&mut client, "known"), answer(&mut client, "large"));
            if expected != found {
                stop.store(true, Ordering::Relaxed);
            }
            assert_eq!(expected, found, "{question}");
            let new = client
                .query_one(
                    "SELECT count(*) % 100, coalesce(sum(v), 0) FROM large WHERE series >= 1000",
                    &[],
                )
                .unwrap();
            let new: (i64, f64) = (new.get(0), new.get(1));
            if new != (0, 0.0) {
                stop.store(true, Ordering::Relaxed);
            }
            assert_eq!(new, (0, 0.0), "query {asked}: complete statements only");
        }
        stop.store(true, Ordering::Relaxed);
        let (ingested, maintained) = (ingest.join().unwrap(), maintain.join().unwrap());
        println!(
            "{ingested} statements were inserted meanwhile, and the table was sealed {maintained} times"
        );
        assert!(
            ingested > 12,
            "ingest continues beside questions: {ingested}"
        );
        let there = number(
            &mut client,
            "SELECT count(*) FROM large WHERE series >= 1000",
        );
        assert_eq!(there, ingested * 100, "every inserted row is present");
        let arena = client
            .query_one(
                "SELECT segments, segment_evictions, bytes_used <= bytes_total FROM lanes.arena()",
                &[],
            )
            .unwrap();
        let (segments, evictions): (i64, i64) = (arena.get(0), arena.get(1));
        println!("{segments} segments are in the arena, {evictions} were evicted");
        assert!(evictions > 0 && arena.get::<_, bool>(2), "{arena:?}");
    });
}
