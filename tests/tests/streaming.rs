//! A scan of a table that is larger than the arena does not displace the segments that others read.

use lanes_support::cluster::Cluster;
use postgres::Client;

fn texts(client: &mut Client, sql: &str) -> Vec<String> {
    let rows = client.query(sql, &[]).unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

fn evictions(client: &mut Client) -> i64 {
    let evictions = "SELECT segment_evictions FROM lanes.arena()";
    client.query_one(evictions, &[]).unwrap().get(0)
}

/// Returns the lines about segments in an executed plan.
fn segments(client: &mut Client, query: &str) -> Vec<String> {
    let plan = texts(
        client,
        &format!("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) {query}"),
    );
    let lines = plan.iter().map(|line| line.trim().to_owned());
    lines.filter(|line| line.starts_with("Segments")).collect()
}

#[test]
fn a_large_scan_does_not_displace_other_segments() {
    let mut cluster = Cluster::builder("streaming")
        .setting("autovacuum", "off")
        .setting("lanes.arena_size", "8MB")
        .setting("max_parallel_workers_per_gather", "0")
        .start()
        .unwrap();
    let setup = "CREATE EXTENSION lanes; \
        CREATE TABLE twin (k int8, v float8, note text, flag bool) USING heap; \
        INSERT INTO twin SELECT g, nullif(g % 97, 3) / 4.0, 'n' || g % 11, g % 5 = 0 FROM generate_series(1, 700000) g; \
        CREATE TABLE large (LIKE twin) USING lanes WITH (order_by = 'k'); \
        INSERT INTO large SELECT * FROM twin";
    let later =
        "ALTER TABLE large ADD later int DEFAULT 7; ALTER TABLE twin ADD later int DEFAULT 7";
    for statements in [setup, "SELECT lanes.seal('large')", later] {
        cluster.psql("postgres", statements).unwrap();
    }
    // The restart empties the arena.
    cluster.restart().unwrap();
    let mut client = cluster.connect("postgres").unwrap();
    let sum = segments(&mut client, "SELECT sum(v) FROM large");
    assert!(
        sum.iter().any(|line| line.starts_with("Segments Streamed")),
        "{sum:?}"
    );
    // A quarter of the arena has room for two segments of these rows. A scan of the whole table
    // would have displaced eight more.
    assert!(evictions(&mut client) <= 3, "{}", evictions(&mut client));

    for query in [
        "SELECT format('%s %s %s', count(*), sum(v), min(k)) FROM {t}",
        "SELECT format('%s %s', note, count(v)) FROM {t} GROUP BY note ORDER BY 1",
        "SELECT format('%s %s', flag, max(v)) FROM {t} WHERE v IS NULL OR later = 7 AND k % 3 = 0 GROUP BY flag ORDER BY 1",
        "SELECT t::text FROM {t} t WHERE v = 2.5 AND note = 'n3' AND k < 690000 ORDER BY k",
        "SELECT format('%s %s', k, flag) FROM {t} WHERE note > 'n8' AND k > 699000 ORDER BY k DESC",
        "SELECT count(*)::text FROM {t} WHERE later IS NOT NULL",
    ] {
        let [heap, lanes] =
            ["twin", "large"].map(|table| texts(&mut client, &query.replace("{t}", table)));
        assert!(!heap.is_empty(), "{query}");
        assert!(heap == lanes, "{query}");
    }
}
