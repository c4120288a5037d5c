//! The tables of a database that is moved, and what is asked of them before and after.

use super::wait_for;
use lanes_support::cluster::Cluster;
use lanes_support::objects::{Objects, Supplier};

/// The database.
pub const DATABASE: &str = "moved";

/// Tables in all states, by statements in this order.
const TABLES: [&str; 22] = [
    "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')",
    "CREATE DOMAIN positive AS int CHECK (VALUE > 0)",
    // Open rows alone.
    "CREATE TABLE open_rows (k int, v text, f float8, b bool, m mood, p positive, n numeric, a int[]) USING lanes",
    "INSERT INTO open_rows SELECT g, NULLIF('v' || g % 13, 'v3'), g / 7.0, g % 3 = 0, \
         (ARRAY['sad', 'ok', 'happy'])[1 + g % 3]::mood, g, g * 1.5, ARRAY[g, g + 1] FROM generate_series(1, 5000) g",
    "DELETE FROM open_rows WHERE k % 11 = 0",
    // Sealed in another order, with duplicates taken out, changed since, and with open rows behind.
    "CREATE TABLE sorted (series int, ts timestamptz, v float8, txt text) USING lanes \
         WITH (order_by = 'series, ts', dedup)",
    "INSERT INTO sorted SELECT g % 7, timestamptz '2026-01-01' + (g % 50000) * interval '1 s', g, repeat('x', g % 50) \
         FROM generate_series(1, 90000) g",
    "SELECT lanes.seal('sorted')",
    "UPDATE sorted SET v = -v WHERE series = 3 AND v < 9000; DELETE FROM sorted WHERE series = 5 AND v > 80000",
    "INSERT INTO sorted SELECT 1, timestamptz '2026-02-01' + g * interval '1 s', g, 'late' FROM generate_series(1, 500) g",
    // Indexes of each kind over open and sealed rows, with columns that were dropped and added.
    "CREATE TABLE indexed (gone bool, k int PRIMARY KEY, words text[], span int4range, txt text, gone_too text, h int) \
         USING lanes WITH (order_by = 'h')",
    "INSERT INTO indexed SELECT true, g, ARRAY['w' || g % 17, 'z' || g % 5], int4range(g, g + 10), 't' || g % 1000, \
         'x', g % 101 FROM generate_series(1, 70000) g",
    "CREATE INDEX indexed_txt ON indexed (lower(txt)); CREATE INDEX indexed_h ON indexed USING hash (h); \
     CREATE INDEX indexed_words ON indexed USING gin (words); CREATE INDEX indexed_span ON indexed USING gist (span); \
     CREATE INDEX indexed_part ON indexed (k) INCLUDE (h) WHERE h < 10; CREATE INDEX indexed_brin ON indexed USING brin (k)",
    "ALTER TABLE indexed DROP COLUMN gone; SELECT lanes.seal('indexed'); ALTER TABLE indexed DROP COLUMN gone_too; \
     ALTER TABLE indexed ADD COLUMN added int DEFAULT 42, ADD COLUMN twice int GENERATED ALWAYS AS (k * 2) STORED",
    "DELETE FROM indexed WHERE k % 9 = 0; UPDATE indexed SET h = h + 1 WHERE k BETWEEN 100 AND 300",
    "INSERT INTO indexed (k, words, span, txt, h) SELECT g, ARRAY['new'], int4range(g, g + 1), 'new', 5 \
         FROM generate_series(70001, 71000) g",
    // Partitions of both access methods, an identity, a materialised view, a table without WAL.
    "CREATE TABLE parts (id bigint GENERATED ALWAYS AS IDENTITY, k int, v text) PARTITION BY RANGE (k); \
     CREATE TABLE parts_low PARTITION OF parts FOR VALUES FROM (0) TO (1000) USING lanes; \
     CREATE TABLE parts_high PARTITION OF parts FOR VALUES FROM (1000) TO (5000) USING heap; \
     CREATE UNIQUE INDEX ON parts (k)",
    "INSERT INTO parts (k, v) SELECT g, 'p' || g FROM generate_series(0, 2000) g; SELECT lanes.seal('parts_low')",
    "CREATE MATERIALIZED VIEW summary USING lanes AS SELECT series, count(*), sum(v) FROM sorted GROUP BY series",
    "CREATE UNLOGGED TABLE unlogged (k int) USING lanes; INSERT INTO unlogged SELECT generate_series(1, 100)",
    // Samples of Prometheus, and the series that they belong to.
    "SELECT lanes.register_series(2147483647, ARRAY[ROW('up', ARRAY(SELECT format('{\"instance\":\"%s\",\"job\":\"j%s\"}', i, i % 4) \
         FROM generate_series(1, 300) i))::lanes.series_run])",
    "INSERT INTO lanes.samples (ts, series, value) SELECT timestamptz '2026-01-01' + t * interval '10 s', s, s * 1.5 + t \
         FROM generate_series(1, 60) t, generate_series(1, 300) s; SELECT lanes.seal('lanes.samples')",
];

/// Queries whose answers must not change.
const QUERIES: [&str; 12] = [
    "SELECT * FROM open_rows ORDER BY k",
    "SELECT * FROM sorted ORDER BY series, ts, v",
    "SELECT series, count(*), sum(v), min(ts), max(ts) FROM sorted GROUP BY series ORDER BY series",
    "SELECT * FROM indexed ORDER BY k",
    "SELECT * FROM parts ORDER BY k",
    "SELECT * FROM summary ORDER BY series",
    "SELECT * FROM lanes.samples ORDER BY series, ts",
    "SELECT id, metric, labels::text, registered_at FROM lanes.series ORDER BY id",
    "SELECT i FROM lanes.series_ids('up{job=\"j3\"}') i ORDER BY i",
    "SELECT labels->>'job', ts, value FROM lanes.promql('sum by (job) (up)', '2026-01-01 00:05+00') ORDER BY 1",
    "SELECT count(*), sum(value) FROM metrics.up",
    "SELECT c.relname, a.amname, c.reloptions FROM pg_class c JOIN pg_am a ON a.oid = c.relam \
         WHERE a.amname = 'lanes' ORDER BY 1",
];

/// Counts the rows of a table without WAL, which a crash empties.
pub const UNLOGGED: &str = "SELECT count(*) FROM unlogged";

/// A table whose rows go to object storage.
const FAR: &str = "CREATE TABLE far (host int, ts timestamptz, v int, txt text) USING lanes \
         WITH (order_by = 'host, ts', hot = '1 day'); \
     INSERT INTO far SELECT g % 10, timestamptz '2020-01-01' + g * interval '1 s', g, 'text ' || g % 13 \
         FROM generate_series(1, 100000) g";
/// Changes of its rows after they were moved, and a row that stays.
const FAR_CHANGES: &str =
    "DELETE FROM far WHERE v < 500; INSERT INTO far VALUES (3, '2021-06-01', -1, 'young')";

/// Queries about it, whose answers pg_upgrade must not change.
const FAR_QUERIES: [&str; 4] = [
    "SELECT * FROM far ORDER BY v",
    "SELECT host, count(*), max(ts) FROM far WHERE v > 777 GROUP BY host ORDER BY host",
    "SELECT key FROM lanes.remote_keys() key ORDER BY key",
    "SELECT lanes.object_scope()",
];

/// Queries that indexes answer, with all other plans switched off.
const BY_INDEX: [&str; 8] = [
    "SELECT * FROM indexed WHERE k = 4712",
    "SELECT k FROM indexed WHERE lower(txt) = 't77' ORDER BY k",
    "SELECT k FROM indexed WHERE h = 50 ORDER BY k",
    "SELECT k FROM indexed WHERE words @> '{w3,z1}' ORDER BY k",
    "SELECT k FROM indexed WHERE span && int4range(500, 505) ORDER BY k",
    "SELECT k, h FROM indexed WHERE k BETWEEN 200 AND 70500 AND h < 10 ORDER BY k",
    "SELECT k FROM indexed WHERE k > 70900 ORDER BY k",
    "SELECT v FROM parts WHERE k = 17",
];

/// The rows of an answer.
pub type Rows = Vec<Vec<Option<String>>>;

/// The answers to queries.
pub type Answers = Vec<(String, Rows)>;

/// Creates the database with its tables.
pub fn fill(cluster: &Cluster) {
    cluster
        .psql("postgres", &format!("CREATE DATABASE {DATABASE}"))
        .unwrap();
    let mut client = cluster.connect(DATABASE).unwrap();
    client.batch_execute("CREATE EXTENSION lanes").unwrap();
    let takes_brin = takes_brin(cluster);
    // Each is a transaction of its own, so that rows can be sealed.
    let statements = TABLES.iter().flat_map(|several| several.split("; "));
    for statement in statements.filter(|one| takes_brin || !one.contains("USING brin")) {
        client
            .batch_execute(statement)
            .unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    }
}

/// Whether lanes tables can have BRIN indexes on the cluster's version of PostgreSQL.
pub fn takes_brin(cluster: &Cluster) -> bool {
    let version = cluster.scalar("postgres", "SHOW server_version_num");
    version.unwrap().parse::<u32>().unwrap() < 170_000
}

/// Creates a table and moves its rows to object storage.
pub fn fill_far(cluster: &Cluster, database: &str, objects: &Objects) {
    let mut client = cluster.connect(database).unwrap();
    client.batch_execute(FAR).unwrap();
    client.batch_execute("SELECT lanes.seal('far')").unwrap();
    // A table that the sealer has locked at this moment is left for the next call.
    wait_for("a part is offloaded", || {
        objects.offload(&mut client).unwrap() == 1
    });
    let _supplier = Supplier::start(cluster, database, objects);
    client.batch_execute(FAR_CHANGES).unwrap();
}

/// Returns the answers of all queries but those about rows in object storage.
pub fn answers(cluster: &Cluster, database: &str) -> Answers {
    let by_index = BY_INDEX
        .map(|query| format!("SET enable_seqscan = off; SET lanes.vectorize = off; {query}"));
    let queries = QUERIES.map(str::to_owned).into_iter().chain(by_index);
    queries
        .map(|query| answer(cluster, database, query))
        .collect()
}

/// Returns the answers of queries about rows in object storage.
pub fn far_answers(cluster: &Cluster, database: &str) -> Answers {
    let queries = FAR_QUERIES.map(str::to_owned).into_iter();
    queries
        .map(|query| answer(cluster, database, query))
        .collect()
}

fn answer(cluster: &Cluster, database: &str, query: String) -> (String, Rows) {
    let rows = cluster
        .query(database, &query)
        .unwrap_or_else(|error| panic!("{query}: {error}"));
    assert!(!rows.is_empty(), "{query}");
    (query, rows)
}

/// Fails with the first difference, shortened.
pub fn compare(expected: &[(String, Rows)], found: &[(String, Rows)], when: &str) {
    for ((query, expected), (_, found)) in expected.iter().zip(found) {
        let differs = expected
            .iter()
            .zip(found)
            .find(|(left, right)| left != right);
        assert!(
            expected == found,
            "{when}: {query}: {} rows and {}, first difference {differs:?}",
            expected.len(),
            found.len()
        );
    }
}

/// Fails if a lanes table of a database is damaged.
pub fn check(cluster: &Cluster, database: &str, when: &str) {
    let findings = "SELECT c.oid::regclass, f.place, f.problem FROM pg_class c \
        JOIN pg_am a ON a.oid = c.relam AND a.amname = 'lanes' \
        CROSS JOIN LATERAL lanes.check(c.oid, remote => true) f WHERE c.relkind IN ('r', 'm')";
    let found = cluster.query(database, findings).unwrap();
    assert!(found.is_empty(), "{when}: {found:?}");
}
