//! Subscriptions between heap and lanes tables: the initial copy, and changes afterwards.

use super::pair::{Pair, rows, wait_for};

/// The access methods of the tables at the source and at the target.
const WAYS: [(&str, &str); 3] = [("lanes", "heap"), ("heap", "lanes"), ("lanes", "lanes")];

fn name(way: (&str, &str)) -> String {
    format!("{}_to_{}", way.0, way.1)
}

#[test]
fn tables_are_copied_and_followed() {
    let mut pair = Pair::start("logical_ways");
    for way in WAYS {
        let schema = name(way);
        for (client, method) in [(&mut pair.source, way.0), (&mut pair.target, way.1)] {
            client
                .batch_execute(&format!(
                    "CREATE SCHEMA {schema}; \
                     CREATE TABLE {schema}.keyed (id int PRIMARY KEY, v text, f float8, a int[]) USING {method}; \
                     CREATE TABLE {schema}.named (id int, k text NOT NULL, v numeric) USING {method}; \
                     CREATE UNIQUE INDEX k ON {schema}.named (k); \
                     ALTER TABLE {schema}.named REPLICA IDENTITY USING INDEX k; \
                     CREATE TABLE {schema}.whole (id int, v text) USING {method}; \
                     ALTER TABLE {schema}.whole REPLICA IDENTITY FULL"
                ))
                .unwrap();
        }
        pair.source
            .batch_execute(&format!(
                "INSERT INTO {schema}.keyed SELECT g, 'v' || g, g / 7.0, ARRAY[g, NULL] FROM generate_series(1, 2000) g; \
                 INSERT INTO {schema}.named SELECT g, 'k' || g, g / 3.0 FROM generate_series(1, 100) g; \
                 INSERT INTO {schema}.whole SELECT g % 10, nullif('v' || g, 'v5') FROM generate_series(1, 100) g; \
                 CREATE PUBLICATION {schema} FOR TABLES IN SCHEMA {schema}"
            ))
            .unwrap();
        pair.subscribe(&schema, "");
    }
    pair.catch_up();
    let assert_same = |pair: &mut Pair| {
        for way in WAYS {
            for table in ["keyed", "named", "whole"] {
                let rows = pair.assert_same(&format!("SELECT * FROM {}.{table}", name(way)));
                assert!(rows > 0);
            }
        }
    };
    assert_same(&mut pair);
    for way in WAYS {
        let schema = name(way);
        pair.source
            .batch_execute(&format!(
                "SET search_path = {schema}; \
                 INSERT INTO keyed SELECT g, 'new' || g FROM generate_series(3001, 3100) g; \
                 UPDATE keyed SET v = v || '!' WHERE id % 100 = 0; \
                 UPDATE keyed SET id = -id WHERE id % 100 = 1; \
                 DELETE FROM keyed WHERE id % 100 = 2; \
                 INSERT INTO keyed (id, v) VALUES (5, 'up') ON CONFLICT (id) DO UPDATE SET v = excluded.v; \
                 INSERT INTO keyed (id, v) SELECT 9999, string_agg(md5(g::text), '') FROM generate_series(1, 5000) g; \
                 UPDATE named SET v = v + 1 WHERE id < 20; \
                 UPDATE named SET k = k || 'x' WHERE id < 10; \
                 DELETE FROM named WHERE id > 90; \
                 INSERT INTO whole VALUES (1, 'v11'), (NULL, NULL); \
                 UPDATE whole SET v = v || '?' WHERE id = 3; \
                 UPDATE whole SET id = 77 WHERE id IS NULL OR v IS NULL; \
                 DELETE FROM whole WHERE id = 4"
            ))
            .unwrap();
    }
    pair.catch_up();
    assert_same(&mut pair);
    for way in WAYS {
        let schema = name(way);
        pair.source
            .batch_execute(&format!(
                "TRUNCATE {schema}.keyed, {schema}.named; INSERT INTO {schema}.keyed VALUES (1); \
                 INSERT INTO {schema}.named VALUES (1, 'one')"
            ))
            .unwrap();
    }
    pair.catch_up();
    assert_same(&mut pair);
    // Rows of the target may be sealed before they are changed.
    pair.target
        .batch_execute(
            "SELECT lanes.seal('lanes_to_lanes.whole'); SELECT lanes.seal('heap_to_lanes.whole')",
        )
        .unwrap();
    for schema in ["lanes_to_lanes", "heap_to_lanes"] {
        pair.source
            .batch_execute(&format!("UPDATE {schema}.whole SET v = 'sealed' WHERE id = 5; DELETE FROM {schema}.whole WHERE id = 6"))
            .unwrap();
    }
    pair.catch_up();
    assert_same(&mut pair);
}

/// The apply worker waits for a session of the target that has changed or inserted the row.
#[test]
fn a_worker_waits_for_sessions_of_the_target() {
    let mut pair = Pair::start("logical_waits");
    pair.both(
        "CREATE TABLE keyed (id int PRIMARY KEY, v text) USING lanes; \
         CREATE TABLE whole (id int, v text) USING lanes; ALTER TABLE whole REPLICA IDENTITY FULL",
    );
    pair.source
        .batch_execute("INSERT INTO keyed VALUES (1, 'a'); INSERT INTO whole VALUES (1, 'a'); CREATE PUBLICATION p FOR TABLE keyed, whole")
        .unwrap();
    pair.subscribe("p", "");
    pair.catch_up();
    for table in ["keyed", "whole"] {
        let mut other = pair.cluster.connect("target").unwrap();
        other
            .batch_execute(&format!("BEGIN; UPDATE {table} SET v = v WHERE id = 1"))
            .unwrap();
        pair.source
            .batch_execute(&format!("UPDATE {table} SET v = 'b' WHERE id = 1"))
            .unwrap();
        wait_for(
            &mut pair.target,
            &pair.cluster,
            "SELECT count(*) > 0 FROM pg_stat_activity \
              WHERE backend_type = 'logical replication worker' AND wait_event_type = 'Lock'",
        );
        other.batch_execute("COMMIT").unwrap();
        pair.catch_up();
        pair.assert_same(&format!("SELECT * FROM {table}"));
    }
}

#[test]
fn filters_columns_roots_and_new_tables() {
    let mut pair = Pair::start("logical_filters");
    let tables = |method: &str| {
        format!(
            "CREATE TABLE few (id int PRIMARY KEY, v text, hidden text) USING {method}; \
             CREATE TABLE root (a int PRIMARY KEY, b text) PARTITION BY RANGE (a); \
             CREATE TABLE low PARTITION OF root FOR VALUES FROM (0) TO (10) USING {method}; \
             CREATE TABLE late (id int PRIMARY KEY) USING {method}"
        )
    };
    let [lanes, heap] = ["lanes", "heap"].map(tables);
    pair.source
        .batch_execute(&format!(
            "{lanes}; CREATE TABLE high PARTITION OF root FOR VALUES FROM (10) TO (20) USING lanes"
        ))
        .unwrap();
    // Another partition than at the source.
    pair.target
        .batch_execute(&format!(
            "{heap}; CREATE TABLE rest PARTITION OF root DEFAULT USING lanes"
        ))
        .unwrap();
    pair.source
        .batch_execute(
            "INSERT INTO few SELECT g, 'v', 'secret' FROM generate_series(1, 20) g; \
             INSERT INTO root SELECT g, 'b' FROM generate_series(0, 19) g; \
             INSERT INTO late VALUES (1); \
             CREATE PUBLICATION p FOR TABLE few (id, v) WHERE (id > 10), root WITH (publish_via_partition_root)",
        )
        .unwrap();
    pair.subscribe("p", "");
    pair.catch_up();
    pair.assert_same("SELECT a, b FROM root");
    pair.source
        .batch_execute(
            "INSERT INTO few SELECT g, 'w', 'secret' FROM generate_series(30, 40) g; \
             INSERT INTO few VALUES (0, 'x', 'secret'); \
             UPDATE few SET id = 5 - 100 WHERE id = 12; UPDATE few SET id = 100 WHERE id = 3; DELETE FROM few WHERE id IN (2, 13); \
             UPDATE root SET a = 12 WHERE a = 12; \
             DELETE FROM root WHERE a IN (3, 15); UPDATE root SET a = 15 WHERE a = 2",
        )
        .unwrap();
    pair.catch_up();
    pair.assert_same("SELECT a, b FROM root");
    let kept = rows(
        &mut pair.source,
        "SELECT id, v, NULL::text FROM few WHERE id > 10",
    );
    assert_eq!(
        rows(&mut pair.target, "SELECT id, v, hidden FROM few"),
        kept
    );
    // A table that is published later.
    pair.source
        .batch_execute("ALTER PUBLICATION p ADD TABLE late")
        .unwrap();
    pair.target
        .batch_execute("ALTER SUBSCRIPTION p REFRESH PUBLICATION")
        .unwrap();
    pair.catch_up();
    pair.source
        .batch_execute("INSERT INTO late VALUES (2)")
        .unwrap();
    pair.catch_up();
    assert_eq!(pair.assert_same("SELECT * FROM late"), 2);
    // The target changes with the table.
    pair.both("ALTER TABLE late ADD w text DEFAULT 'w'");
    pair.source
        .batch_execute("UPDATE late SET w = 'x' WHERE id = 1; INSERT INTO late VALUES (3, 'y')")
        .unwrap();
    pair.catch_up();
    pair.assert_same("SELECT * FROM late");
}

#[test]
fn transactions_that_are_streamed_or_prepared() {
    let mut pair = Pair::start("logical_prepared");
    pair.cluster
        .psql(
            "postgres",
            "ALTER SYSTEM SET logical_decoding_work_mem = '64kB'",
        )
        .unwrap();
    pair.cluster
        .psql("postgres", "SELECT pg_reload_conf()")
        .unwrap();
    pair.both("CREATE TABLE t (id int PRIMARY KEY, v text) USING lanes");
    pair.source
        .batch_execute("CREATE PUBLICATION p FOR TABLE t")
        .unwrap();
    pair.subscribe("p", ", streaming = true, two_phase = true");
    pair.catch_up();
    pair.source
        .batch_execute(
            "BEGIN; INSERT INTO t SELECT g, 'v' || g FROM generate_series(1, 3000) g; \
             SAVEPOINT a; INSERT INTO t SELECT g, 'gone' FROM generate_series(5001, 7000) g; ROLLBACK TO a; \
             UPDATE t SET v = 'x' WHERE id < 100; COMMIT",
        )
        .unwrap();
    pair.catch_up();
    assert_eq!(pair.assert_same("SELECT * FROM t"), 3000);
    let streamed = "SELECT stream_txns > 0 FROM pg_stat_replication_slots WHERE slot_name = 'p'";
    wait_for(&mut pair.source, &pair.cluster, streamed);
    pair.source
        .batch_execute("BEGIN; DELETE FROM t WHERE id > 2990; INSERT INTO t VALUES (9000); PREPARE TRANSACTION 'x'")
        .unwrap();
    let prepared = "SELECT count(*) = 1 FROM pg_prepared_xacts WHERE database = 'target'";
    wait_for(&mut pair.target, &pair.cluster, prepared);
    pair.source.batch_execute("COMMIT PREPARED 'x'").unwrap();
    pair.catch_up();
    assert_eq!(pair.assert_same("SELECT * FROM t"), 2991);
}

/// A publication of all tables includes those of the extension, of which the target has one row already.
#[test]
fn all_tables_with_the_extension_at_both_ends() {
    let mut pair = Pair::start("logical_all");
    pair.both("CREATE TABLE t (id int PRIMARY KEY) USING lanes");
    pair.source
        .batch_execute(
            "INSERT INTO t VALUES (1); INSERT INTO lanes.samples VALUES (now(), 1, 0.5); \
             CREATE PUBLICATION p FOR ALL TABLES; ALTER TABLE lanes.samples REPLICA IDENTITY FULL",
        )
        .unwrap();
    pair.target
        .batch_execute("TRUNCATE lanes.registry")
        .unwrap();
    pair.subscribe("p", "");
    pair.catch_up();
    pair.source
        .batch_execute(
            "INSERT INTO t VALUES (2); DELETE FROM t WHERE id = 1; \
             INSERT INTO lanes.samples VALUES (now(), 2, 1.5); DELETE FROM lanes.samples WHERE series = 1",
        )
        .unwrap();
    pair.catch_up();
    assert_eq!(pair.assert_same("SELECT * FROM t"), 1);
    assert_eq!(pair.assert_same("SELECT * FROM lanes.samples"), 1);
    assert_eq!(pair.assert_same("SELECT * FROM lanes.registry"), 1);
}
