//! Segments in object storage, through the SQL contract that a gateway keeps: offloaded, recalled, cancelled, timed out,
//! changed, dropped, kept in a cache of bounded size; after a crash, and on a standby with a gateway of its own.

use lanes_support::cluster::{Cluster, Stop};
use lanes_support::objects::{Objects, Supplier, recalled_files};
use postgres::Client;
use std::time::{Duration, Instant};

/// Long enough for any machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Reads everything of a table, in several ways.
const QUERIES: [&str; 4] = [
    "SELECT x::text FROM far x ORDER BY x::text COLLATE \"C\"",
    "SELECT host, count(*), sum(v), min(ts), max(ts) FROM far GROUP BY host ORDER BY host",
    "SELECT count(*), max(v) FROM far WHERE host = 3 AND ts > '2020-01-01 10:00+00'",
    "SELECT txt, count(*) FROM far WHERE v % 1000 = 7 GROUP BY txt ORDER BY txt",
];

/// Asks again and again until the answer is yes.
fn wait_for(client: &mut Client, query: &str) {
    let deadline = Instant::now() + PATIENCE;
    while !client.query_one(query, &[]).unwrap().get::<_, bool>(0) {
        assert!(Instant::now() < deadline, "never came true: {query}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn answers(cluster: &Cluster) -> Vec<Vec<Vec<Option<String>>>> {
    let query = |query: &&str| cluster.query("postgres", query).unwrap();
    QUERIES.iter().map(query).collect()
}

fn cluster(name: &str) -> Cluster {
    let cluster = Cluster::builder(name)
        .setting("autovacuum", "off")
        .setting("max_parallel_workers_per_gather", "2")
        .setting("min_parallel_table_scan_size", "0")
        .setting("parallel_setup_cost", "0")
        .setting("parallel_tuple_cost", "0")
        .start()
        .unwrap();
    cluster
        .psql(
            "postgres",
            &format!("CREATE EXTENSION lanes; {TABLE}; {ROWS}"),
        )
        .unwrap();
    cluster
}

const TABLE: &str = "CREATE TABLE far (host int, ts timestamptz, v int, txt text) USING lanes
    WITH (order_by = 'host, ts', hot = '1 day')";
const ROWS: &str = "INSERT INTO far
    SELECT g % 10, '2020-01-01 00:00+00'::timestamptz + g * interval '1 s', g, 'text ' || g % 13 FROM generate_series(1, 200000) g";

fn size(client: &mut Client) -> i64 {
    let row = client.query_one("SELECT pg_relation_size('far')", &[]);
    row.unwrap().get(0)
}

#[test]
fn offloaded_rows_come_back() {
    let mut cluster = cluster("remote");
    let mut client = cluster.connect("postgres").unwrap();
    let objects = Objects::default();
    let expected = answers(&cluster);
    client.execute("SELECT lanes.seal('far')", &[]).unwrap();
    assert_eq!(objects.offload(&mut client).unwrap(), 1);
    assert!(objects.len() > 2);
    // The arena still has what was read before; a crash empties it.
    drop(client);
    cluster.stop(Stop::Immediate).unwrap();
    cluster.start().unwrap();
    let mut client = cluster.connect("postgres").unwrap();

    // Nobody answers.
    client
        .batch_execute("SET lanes.recall_timeout = '50ms'")
        .unwrap();
    let error = client.query("SELECT sum(v + 0) FROM far", &[]).unwrap_err();
    let error = error.as_db_error().unwrap();
    assert_eq!(error.code().code(), "58030");
    assert!(
        error
            .message()
            .contains("rows of \"far\" from 2020-01-01 00:00:"),
        "{}",
        error.message()
    );
    assert!(error.hint().unwrap().contains("lanes-gateway"));

    // A query that waits can be cancelled.
    client
        .batch_execute("SET lanes.recall_timeout = '60s'")
        .unwrap();
    let cancel = client.cancel_token();
    let mut observer = cluster.connect("postgres").unwrap();
    let waiting =
        std::thread::spawn(move || client.query("SELECT sum(v + 0) FROM far", &[]).unwrap_err());
    wait_for(
        &mut observer,
        "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Extension' AND query LIKE 'SELECT sum%'",
    );
    cancel.cancel_query(postgres::NoTls).unwrap();
    let error = waiting.join().unwrap();
    assert_eq!(error.code().unwrap().code(), "57014");

    // A gateway that does not have them says so at once.
    let empty = Supplier::start(&cluster, "postgres", &Objects::default());
    let error = observer
        .query("SELECT sum(v + 0) FROM far", &[])
        .unwrap_err();
    let error = error.as_db_error().unwrap();
    assert_eq!(error.code().code(), "58030");
    assert!(
        error.message().ends_with("recalled: no such object"),
        "{}",
        error.message()
    );
    drop(empty);

    // Somebody answers what had been asked before, and what is asked now, each once.
    let gateway = Supplier::start(&cluster, "postgres", &objects);
    assert_eq!(answers(&cluster), expected);
    assert_eq!(gateway.supplied(), objects.len() as u64);

    // Rows of it are changed; another crash; the gateway's next life.
    let mut client = cluster.connect("postgres").unwrap();
    client
        .batch_execute("DELETE FROM far WHERE host = 3 AND v < 5000; UPDATE far SET txt = 'changed' WHERE v % 777 = 1")
        .unwrap();
    let expected = answers(&cluster);
    drop(gateway);
    drop(client);
    cluster.stop(Stop::Immediate).unwrap();
    cluster.start().unwrap();
    let gateway = Supplier::start(&cluster, "postgres", &objects);
    assert_eq!(answers(&cluster), expected);

    // Sealing and VACUUM leave it where it is, and free what it has left behind.
    let mut client = cluster.connect("postgres").unwrap();
    client.batch_execute("SELECT lanes.seal('far')").unwrap();
    for _ in 0..3 {
        client
            .batch_execute("CREATE TABLE IF NOT EXISTS tick (a int); INSERT INTO tick VALUES (1)")
            .unwrap();
        client.batch_execute("VACUUM far").unwrap();
    }
    assert_eq!(answers(&cluster), expected);
    drop(gateway);
    let mut sizes = Vec::new();
    for _ in 0..5 {
        client.batch_execute(ROWS).unwrap();
        client.batch_execute("SELECT lanes.seal('far')").unwrap();
        objects.offload(&mut client).unwrap();
        for _ in 0..2 {
            client.batch_execute("INSERT INTO tick VALUES (1)").unwrap();
            client.batch_execute("VACUUM far").unwrap();
        }
        sizes.push(size(&mut client));
    }
    assert!(
        // What is left of a round are the indexes of its parts.
        sizes[4] <= sizes[1] + 3 * 2 * 8192,
        "blocks of local parts are not used again: {sizes:?}"
    );

    // Dropped by age, without a look at it, and its keys with it.
    client
        .batch_execute("ALTER TABLE far SET (retain = '30 days')")
        .unwrap();
    client
        .batch_execute("SET lanes.recall_timeout = '50ms'; SELECT lanes.seal('far')")
        .unwrap();
    client.batch_execute("SELECT lanes.seal('far')").unwrap();
    let left = client.query_one("SELECT count(*) FROM far", &[]).unwrap();
    assert_eq!(left.get::<_, i64>(0), 0);
    let deadline = Instant::now() + PATIENCE;
    loop {
        client.batch_execute("INSERT INTO tick VALUES (1)").unwrap();
        client.batch_execute("VACUUM far").unwrap();
        let keys = client.query("SELECT lanes.remote_keys()", &[]).unwrap();
        if keys.is_empty() {
            break;
        }
        assert!(
            Instant::now() < deadline,
            "{} keys are still named",
            keys.len()
        );
    }
}

/// Changes an image's last byte and makes its own checksum right again. Twice is not at all.
fn forge(image: &mut [u8]) {
    if let Some(last) = image.last_mut() {
        *last ^= 1;
    }
    vouch_for(image);
}

/// Makes an image's own checksum right.
fn vouch_for(image: &mut [u8]) {
    /// A version, then the checksum of what follows (`lanes_columnar::image`).
    const CHECKED_OFFSET: usize = 5;
    let checksum = xxhash_rust::xxh3::xxh3_64(&image[CHECKED_OFFSET..]) as u32;
    image[1..CHECKED_OFFSET].copy_from_slice(&checksum.to_le_bytes());
}

#[test]
fn an_image_that_was_changed_in_the_store_is_refused() {
    let mut cluster = cluster("remote_changed");
    let mut client = cluster.connect("postgres").unwrap();
    let expected = answers(&cluster);
    let objects = Objects::default();
    client.execute("SELECT lanes.seal('far')", &[]).unwrap();
    assert_eq!(objects.offload(&mut client).unwrap(), 1);
    // The part that has the digests is moved and read again.
    client
        .batch_execute("CREATE TABLE tick (a int); INSERT INTO tick VALUES (1)")
        .unwrap();
    for _ in 0..2 {
        client.batch_execute("VACUUM far").unwrap();
    }
    drop(client);
    cluster.stop(Stop::Immediate).unwrap();
    cluster.start().unwrap();
    objects.change(|image| forge(image));
    let gateway = Supplier::start(&cluster, "postgres", &objects);
    let mut client = cluster.connect("postgres").unwrap();
    client
        .batch_execute("SET lanes.recall_timeout = '300s'")
        .unwrap();
    let began = Instant::now();
    let error = client.query("SELECT sum(v + 0) FROM far", &[]).unwrap_err();
    assert!(began.elapsed() < PATIENCE, "the query waited until its end");
    let error = error.as_db_error().unwrap();
    assert_eq!(error.code().code(), "XX001");
    for words in ["rows of \"far\" from 2020-01-01 00:00:", "SHA-256"] {
        assert!(error.message().contains(words), "{}", error.message());
    }
    assert!(error.hint().unwrap().contains("in the store"));
    assert!(recalled_files(&cluster).is_empty());
    drop(gateway);
    // The right ones are put back.
    objects.change(|image| forge(image));
    let _gateway = Supplier::start(&cluster, "postgres", &objects);
    assert_eq!(answers(&cluster), expected);
}

/// Nothing vouches for an image that is restored, so whatever reading its rows relies on is looked at.
#[test]
fn an_image_whose_values_could_do_harm_is_not_restored() {
    let cluster = Cluster::builder("remote_harm")
        .setting("autovacuum", "off")
        .start()
        .unwrap();
    let mut client = cluster.connect("postgres").unwrap();
    client
        .batch_execute(
            "CREATE EXTENSION lanes;
             CREATE TABLE source (gone int, txt text, called name, bits varbit, ts timestamptz) USING lanes WITH (hot = '1 day');
             ALTER TABLE source DROP COLUMN gone;
             INSERT INTO source VALUES ('abcde', 'fghij', B'1010101', '2020-01-01'), ('abcde', 'fghij', NULL, '2020-01-01');
             CREATE TABLE back (gone int, txt text, called name, bits varbit, ts timestamptz) USING lanes;
             ALTER TABLE back DROP COLUMN gone",
        )
        .unwrap();
    client.execute("SELECT lanes.seal('source')", &[]).unwrap();
    let image: Vec<u8> = client
        .query_one(
            "SELECT lanes.segment_image('source', part, first_row) FROM lanes.stored_segments('source')",
            &[],
        )
        .unwrap()
        .get(0);
    let mut restore =
        |image: &[u8]| client.execute("SELECT lanes.restore_segment('back', $1)", &[&image]);
    restore(&image).unwrap();
    // Of five letters and its header; of so many bits, their number and its header.
    let text = [13, b'a', b'b', b'c', b'd', b'e'];
    let bits = [13, 7, 0, 0, 0, 0b1010_1010];
    let name = {
        let mut name = [0; 64];
        name[..5].copy_from_slice(b"fghij");
        name
    };
    let changed = |found: &[u8], place: usize, byte: u8| {
        let mut image = image.clone();
        let at = image.windows(found.len()).position(|bytes| bytes == found);
        image[at.unwrap() + place] = byte;
        vouch_for(&mut image);
        image
    };
    for (what, image) in [
        ("a longer text", changed(&text, 0, 15)),
        ("a pointer", changed(&text, 0, 1)),
        ("no UTF-8", changed(&text, 3, 0xff)),
        ("a NUL", changed(&text, 3, 0)),
        ("a shorter bit string", changed(&bits, 0, 11)),
        ("a compressed value", changed(&bits, 0, 2)),
        ("a name without an end", changed(&name, 63, b'x')),
    ] {
        let refused = restore(&image);
        let error = refused.expect_err(what);
        assert_eq!(error.code().unwrap().code(), "XX001", "{what}: {error}");
    }
    // The bytes of the right values, changed to others that are right.
    restore(&changed(&text, 3, b'x')).unwrap();
    let rows = client
        .query_one(
            "SELECT string_agg(DISTINCT txt || called, ' ' ORDER BY txt || called) || count(*) || sum(length(bits)) FROM back",
            &[],
        )
        .unwrap();
    assert_eq!(rows.get::<_, String>(0), "abcdefghij abxdefghij414");
}

#[test]
fn what_came_back_takes_no_more_disk_than_it_may() {
    const BYTES_MAX: u64 = 1 << 20;
    let cluster = Cluster::builder("remote_bounded")
        .setting("autovacuum", "off")
        .setting("lanes.arena_size", "1MB")
        .setting("lanes.cold_cache_size", "1MB")
        .start()
        .unwrap();
    let mut client = cluster.connect("postgres").unwrap();
    // Of which hardly a bit can be saved.
    client
        .batch_execute(&format!(
            "CREATE EXTENSION lanes; {TABLE}; ALTER TABLE far ADD COLUMN noise float8; \
             INSERT INTO far SELECT g % 10, '2020-01-01 00:00+00'::timestamptz + g * interval '1 s', g, NULL, random() FROM generate_series(1, 500000) g"
        ))
        .unwrap();
    client.batch_execute("SELECT lanes.seal('far')").unwrap();
    let sum = "SELECT sum(v)::text, count(DISTINCT noise)::text, max(noise)::text, min(noise)::text FROM far";
    let expected = cluster.query("postgres", sum).unwrap();
    let objects = Objects::default();
    assert_eq!(objects.offload(&mut client).unwrap(), 1);
    let bytes: i64 = client
        .query_one(
            "SELECT sum(bytes)::int8 FROM lanes.stored_segments('far')",
            &[],
        )
        .unwrap()
        .get(0);
    assert!(bytes as u64 > 2 * BYTES_MAX, "{bytes} bytes are away");
    let gateway = Supplier::start(&cluster, "postgres", &objects);
    for round in 1..=2 {
        assert_eq!(cluster.query("postgres", sum).unwrap(), expected);
        let kept = recalled_files(&cluster);
        let kept: Vec<u64> = kept
            .iter()
            .filter_map(|file| Some(file.metadata().ok()?.len()))
            .collect();
        let sum: u64 = kept.iter().sum();
        assert!(sum > 0 && sum <= BYTES_MAX, "round {round}: {kept:?}");
    }
    // What had to make room came once more.
    let supplied = gateway.supplied();
    assert!(supplied > objects.len() as u64, "{supplied} came");
}

#[test]
fn a_standby_recalls_by_itself() {
    let primary = cluster("remote_primary");
    let expected = answers(&primary);
    let mut standby = primary.standby("remote_standby").unwrap();
    let mut client = primary.connect("postgres").unwrap();
    let objects = Objects::default();
    client.execute("SELECT lanes.seal('far')", &[]).unwrap();
    objects.offload(&mut client).unwrap();
    for _ in 0..2 {
        client
            .batch_execute("CREATE TABLE IF NOT EXISTS tick (a int); INSERT INTO tick VALUES (1)")
            .unwrap();
        client.batch_execute("VACUUM far").unwrap();
    }
    standby.wait_replayed(&primary).unwrap();
    standby.restart().unwrap();
    let mut reader = standby.connect("postgres").unwrap();
    reader
        .batch_execute("SET lanes.recall_timeout = '50ms'")
        .unwrap();
    let error = reader.query("SELECT sum(v + 0) FROM far", &[]).unwrap_err();
    assert_eq!(error.code().unwrap().code(), "58030");
    let gateway = Supplier::start(&standby, "postgres", &objects);
    assert_eq!(answers(&standby), expected);
    assert!(gateway.supplied() > 0);
    let error = reader
        .query("SELECT lanes.offload_commit('far', 1)", &[])
        .unwrap_err();
    assert_eq!(error.code().unwrap().code(), "25006");
    let due = reader
        .query("SELECT * FROM lanes.offload_list(10)", &[])
        .unwrap();
    assert!(due.is_empty());
}
