//! Segments in object storage, through the SQL contract that a gateway implements: offloaded,
//! recalled, cancelled, timed out, changed, dropped, cached in a bounded cache; after a crash, and
//! on a standby with its own gateway.

use lanes_support::cluster::{Cluster, Stop};
use lanes_support::objects::{Objects, Supplier, recalled_files};
use postgres::Client;
use std::time::{Duration, Instant};

/// A timeout that suffices on any machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Queries that read all rows of a table in several ways.
const QUERIES: [&str; 4] = [
    "SELECT x::text FROM far x ORDER BY x::text COLLATE \"C\"",
    "SELECT host, count(*), sum(v), min(ts), max(ts) FROM far GROUP BY host ORDER BY host",
    "SELECT count(*), max(v) FROM far WHERE host = 3 AND ts > '2020-01-01 10:00+00'",
    "SELECT txt, count(*) FROM far WHERE v % 1000 = 7 GROUP BY txt ORDER BY txt",
];

/// Repeats a query until it returns true.
fn wait_for(client: &mut Client, query: &str) {
    let deadline = Instant::now() + PATIENCE;
    while !client.query_one(query, &[]).unwrap().get::<_, bool>(0) {
        assert!(Instant::now() < deadline, "timed out: {query}");
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
fn offloaded_rows_are_recalled() {
    let mut cluster = cluster("remote");
    let mut client = cluster.connect("postgres").unwrap();
    let objects = Objects::default();
    let expected = answers(&cluster);
    client.execute("SELECT lanes.seal('far')", &[]).unwrap();
    assert_eq!(objects.offload(&mut client).unwrap(), 1);
    assert!(objects.len() > 2);
    // The arena still contains what was read before; a crash empties it.
    drop(client);
    cluster.stop(Stop::Immediate).unwrap();
    cluster.start().unwrap();
    let mut client = cluster.connect("postgres").unwrap();

    // No gateway answers.
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

    // A waiting query can be cancelled.
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

    // A gateway without the objects reports that at once.
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

    // A gateway answers earlier and new requests, each once.
    let gateway = Supplier::start(&cluster, "postgres", &objects);
    assert_eq!(answers(&cluster), expected);
    assert_eq!(gateway.supplied(), objects.len() as u64);

    // Rows are changed, then the server crashes again, and the gateway is restarted.
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

    // Sealing and VACUUM leave the segment remote, and release its old space.
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
        // Each round leaves the indexes of its parts.
        sizes[4] <= sizes[1] + 3 * 2 * 8192,
        "blocks of local parts are not reused: {sizes:?}"
    );

    // Rows are dropped by age, without reading them, and their keys with them.
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
            "{} keys are still listed",
            keys.len()
        );
    }
}

/// Flips a bit in an image's last byte and corrects the image's checksum. Calling it twice restores
/// the image.
fn forge(image: &mut [u8]) {
    if let Some(last) = image.last_mut() {
        *last ^= 1;
    }
    vouch_for(image);
}

/// Corrects an image's own checksum.
fn vouch_for(image: &mut [u8]) {
    /// The offset of the checked bytes: a version, then the checksum of what follows
    /// (`lanes_columnar::image`).
    const CHECKED_OFFSET: usize = 5;
    let checksum = xxhash_rust::xxh3::xxh3_64(&image[CHECKED_OFFSET..]) as u32;
    image[1..CHECKED_OFFSET].copy_from_slice(&checksum.to_le_bytes());
}

#[test]
fn an_image_changed_in_the_store_is_refused() {
    let mut cluster = cluster("remote_changed");
    let mut client = cluster.connect("postgres").unwrap();
    let expected = answers(&cluster);
    let objects = Objects::default();
    client.execute("SELECT lanes.seal('far')", &[]).unwrap();
    assert_eq!(objects.offload(&mut client).unwrap(), 1);
    // The part that contains the digests is offloaded and read again.
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
    // The correct images are put back.
    objects.change(|image| forge(image));
    let _gateway = Supplier::start(&cluster, "postgres", &objects);
    assert_eq!(answers(&cluster), expected);
}

/// Nothing guarantees the content of an image that is restored, so everything that reading its rows
/// depends on is verified.
#[test]
fn an_image_with_dangerous_values_is_not_restored() {
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
    // A text of five letters with its header, and a bit string with its length and header.
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
    // The bytes of valid values, changed to other valid ones.
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
fn the_cold_cache_stays_within_its_size() {
    const BYTES_MAX: u64 = 1 << 20;
    let cluster = Cluster::builder("remote_bounded")
        .setting("autovacuum", "off")
        .setting("lanes.arena_size", "1MB")
        .setting("lanes.cold_cache_size", "1MB")
        .start()
        .unwrap();
    let mut client = cluster.connect("postgres").unwrap();
    // These values are hardly compressible.
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
    assert!(
        bytes as u64 > 2 * BYTES_MAX,
        "{bytes} bytes are in the cold cache"
    );
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
    // An evicted segment is recalled once more.
    let supplied = gateway.supplied();
    assert!(supplied > objects.len() as u64, "{supplied} came");
}

#[test]
fn a_standby_recalls_through_its_own_gateway() {
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
