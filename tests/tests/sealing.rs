//! The background sealer: it seals, drops what is too old, and gives space back, without being asked.

use lanes_tests::cluster::Cluster;
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

fn size(client: &mut postgres::Client) -> i64 {
    let row = client.query_one("SELECT pg_relation_size('load')", &[]);
    row.unwrap().get(0)
}
