//! Damaged tables and images.

use super::{PATIENCE, cluster, wait_for};
use lanes_support::cluster::Stop;
use std::io::{Seek, SeekFrom, Write};
use std::time::{Duration, Instant};

/// A table that cannot be read does not keep the others from being sealed.
#[test]
fn a_damaged_table_does_not_stop_the_sealer() {
    let mut cluster = cluster("sealing_damage", 0, Some(1000));
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
        // The damage is on the first page of its directory.
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
    // The test waits for one complete round.
    let log = || std::fs::read_to_string(cluster.log()).unwrap();
    let failures = || log().matches("could not seal \"t5\"").count();
    let (before, deadline) = (failures(), Instant::now() + PATIENCE);
    while failures() < before + 2 {
        assert!(
            Instant::now() < deadline,
            "the sealer continues:\n{}",
            log()
        );
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(
        !log().contains("\"lanes sealer\" (PID"),
        "a sealer ended by an error:\n{}",
        log()
    );
}

/// Damage is reported at each read: damaged data is never cached.
#[test]
fn damaged_images_are_never_cached() {
    let mut cluster = cluster("sealing_images", 0, None);
    let mut client = cluster.connect("postgres").unwrap();
    // There are more rows than in small segments, whose images are not kept. The query reads only
    // later rows.
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
    // The damage is on a later page. Images cover several pages, while the part's index does not.
    let is_later = |page: &&mut [u8]| page[24..28] == *b"LDAT" && page[32..36] != [0; 4];
    for page in bytes.chunks_mut(8192).filter(is_later) {
        page[60] ^= 1;
    }
    std::fs::write(&path, bytes).unwrap();
    cluster.start().unwrap();
    let mut client = cluster.connect("postgres").unwrap();
    // The cluster behaves as one without page checksums.
    client
        .batch_execute("SET ignore_checksum_failure = on")
        .unwrap();
    for _ in 0..3 {
        let failure = client
            .query_one("SELECT sum(v) FROM t WHERE k >= 90", &[])
            .unwrap_err();
        let told = failure.as_db_error().unwrap().message().to_owned();
        assert!(told.contains("checksum"), "{told}");
    } // `lanes.check` names each damaged segment, and no other.
    let found = client
        .query(
            "SELECT place, problem FROM lanes.check('t') ORDER BY 1",
            &[],
        )
        .unwrap();
    let segments: i64 = client
        .query_one("SELECT count(*) FROM lanes.stored_segments('t')", &[])
        .unwrap()
        .get(0);
    assert_eq!(found.len() as i64, segments);
    for row in found {
        let (place, problem): (&str, &str) = (row.get(0), row.get(1));
        assert!(place.starts_with("segment at row "), "{place}");
        assert!(problem.contains("checksum"), "{problem}");
    }
}
