//! The comparison of the tables, and of the answers by each index.

use super::work::COMMON_KEYS;
use super::{Shared, WORKERS};
use lanes_support::cluster::Cluster;
use postgres::Client;
use std::sync::atomic::Ordering;

const BY_SCAN: &str = "SET LOCAL lanes.vectorize = off; SET LOCAL enable_seqscan = on; SET LOCAL enable_indexscan = off; \
                       SET LOCAL enable_indexonlyscan = off; SET LOCAL enable_bitmapscan = off";
const VECTORIZED: &str = "SET LOCAL lanes.vectorize = on";
/// Plain index scans, and scans of bitmaps.
const BY_INDEX: [&str; 2] = [
    "SET LOCAL lanes.vectorize = off; SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = on; \
     SET LOCAL enable_indexonlyscan = on; SET LOCAL enable_bitmapscan = off",
    "SET LOCAL lanes.vectorize = off; SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = off; \
     SET LOCAL enable_indexonlyscan = off; SET LOCAL enable_bitmapscan = on",
];
/// What is asked of the rows that a condition names: all columns, and the key alone, which is in the index.
const DIGESTS: [&str; 2] = [
    "count(*) || ' ' || coalesce(sum(hashtextextended(ROW(worker, k, v, tags, f)::text, 0)), 0)",
    "count(k) || ' ' || coalesce(sum(k), 0)",
];
const KEY: &str = "lanes_twin_pkey";
/// Keys to look up: some that are there, and their neighbours.
const SOME_KEYS: &str = "SELECT coalesce(string_agg(k || ',' || k + 1, ','), '-1') \
                         FROM (SELECT k FROM heap_twin ORDER BY hashint8(k) LIMIT 100) t";

/// Fails if anything that was acknowledged is lost, or if an answer is wrong. The sessions may go on meanwhile.
pub fn compare(cluster: &Cluster, shared: &Shared, moment: &str) {
    let mut client = cluster.connect("postgres").unwrap();
    for worker in 1..=WORKERS {
        let acknowledged = shared.acknowledged[worker - 1].load(Ordering::SeqCst);
        let query = "SELECT coalesce(max(number), 0) FROM done WHERE worker = $1";
        let stored: i64 = client.query_one(query, &[&(worker as i32)]).unwrap().get(0);
        assert!(
            stored as u64 >= acknowledged,
            "{moment}: worker {worker} has committed {acknowledged}, and {stored} is there"
        );
    }
    // All answers are of one snapshot.
    client
        .batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        .unwrap();
    client.batch_execute(BY_SCAN).unwrap();
    let some_keys = format!("k IN ({})", scalar(&mut client, SOME_KEYS));
    let common = format!("k <= {COMMON_KEYS}");
    for (index, condition) in [
        (KEY, "k >= 0"),
        (KEY, &common),
        (KEY, &some_keys),
        ("by_v", "v = 'v3'"),
        ("by_v", "v = 'updated'"),
        ("by_tags", "tags @> '{7}'"),
        ("by_tags", "tags && '{3, 12}'"),
        ("later", "f BETWEEN 10 AND 60"),
    ] {
        for digest in DIGESTS {
            let of = |table: &str| format!("SELECT {digest} FROM {table} WHERE {condition}");
            compare_answers(&mut client, &of, index, moment);
        }
    }
    client.batch_execute("COMMIT").unwrap();
    for table in ["lanes_twin", "done"] {
        let findings = format!(
            "SELECT coalesce(string_agg(place || ': ' || problem, '; '), '') FROM lanes.check('{table}')"
        );
        let findings = scalar(&mut client, &findings);
        assert_eq!(findings, "", "{moment}: {table} is damaged");
    }
}

/// Compares the answers to a query of a table: of heap, and of lanes by scans and by an index.
fn compare_answers(
    client: &mut Client,
    query_of: &dyn Fn(&str) -> String,
    index: &str,
    moment: &str,
) {
    client.batch_execute(BY_SCAN).unwrap();
    let wanted = scalar(client, &query_of("heap_twin"));
    let query = query_of("lanes_twin");
    let mut used = Vec::new();
    for settings in [BY_SCAN, VECTORIZED, BY_INDEX[0], BY_INDEX[1]] {
        client.batch_execute(settings).unwrap();
        let plan = plan(client, &query);
        let found = scalar(client, &query);
        assert_eq!(
            found, wanted,
            "{moment}: lanes has another answer than heap: {query}\n{plan}"
        );
        used.push(plan);
    }
    // The index `later` is not always there.
    let is_used = used.iter().any(|plan| plan.contains(&format!(" {index}")));
    assert!(
        is_used || index == "later",
        "{moment}: no plan goes by {index}: {query}\n{}",
        used.join("\n")
    );
}

fn scalar(client: &mut Client, query: &str) -> String {
    client.query_one(query, &[]).unwrap().get(0)
}

fn plan(client: &mut Client, query: &str) -> String {
    let rows = client.query(&format!("EXPLAIN {query}"), &[]).unwrap();
    let lines = rows.iter().map(|row| row.get::<_, String>(0));
    lines.collect::<Vec<_>>().join("\n")
}
