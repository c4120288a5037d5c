//! Heap as the oracle: each script changes a heap table and a lanes table, and decoding says the same of both.

use super::builder;
use super::pair::wait_for;
use lanes_support::cluster::Cluster;
use lanes_wire::{BatchBuilder, ColumnType};
use postgres::{Client, SimpleQueryMessage};

/// The schemas of the tables. Scripts write `S` for either.
const SIDES: [(&str, &str); 2] = [("on_heap", "heap"), ("on_lanes", "lanes")];

/// Decodes what has happened since the last call, by the plugin `test_decoding`.
fn decoded(client: &mut Client, options: &str) -> Vec<String> {
    let sql = format!(
        "SELECT data FROM pg_logical_slot_get_changes('slot', NULL, NULL, 'include-xids', '0', 'skip-empty-xacts', '1'{options})"
    );
    let mut lines = Vec::new();
    for message in client.simple_query(&sql).unwrap() {
        if let SimpleQueryMessage::Row(row) = message {
            lines.push(row.get(0).unwrap().to_owned());
        }
    }
    lines
}

fn make_slot(client: &mut Client) {
    client
        .batch_execute(
            "SELECT pg_create_logical_replication_slot('slot', 'test_decoding', false, true)",
        )
        .unwrap();
}

fn start(name: &str) -> (Cluster, Client) {
    let cluster = builder(name).start().unwrap();
    let mut client = cluster.connect("postgres").unwrap();
    client.batch_execute("CREATE EXTENSION lanes").unwrap();
    for (schema, _) in SIDES {
        client
            .batch_execute(&format!("CREATE SCHEMA {schema}"))
            .unwrap();
    }
    make_slot(&mut client);
    (cluster, client)
}

/// Runs a script on both sides. Compares what is decoded, and returns it.
fn twin(client: &mut Client, script: &str, options: &str) -> Vec<String> {
    let [heap, lanes] = SIDES.map(|(schema, method)| {
        client
            .batch_execute(&format!("SET default_table_access_method = {method}"))
            .unwrap();
        for statement in script.split(";;") {
            let sql = statement.replace("S.", &format!("{schema}."));
            client.batch_execute(&sql).expect(&sql);
        }
        let lines = decoded(client, options).into_iter();
        let plain = lines.map(|line| line.replace(schema, "S"));
        plain.collect::<Vec<String>>()
    });
    assert_eq!(lanes, heap, "{script}");
    lanes
}

fn count(lines: &[String], word: &str) -> usize {
    lines.iter().filter(|line| line.contains(word)).count()
}

const TABLE: &str = "CREATE TABLE S.t (id int PRIMARY KEY, v text, n numeric, b bool, f float8, u uuid, c \"char\", a int[], at timestamptz, fixed char(3), d date)";

#[test]
fn rows_that_are_inserted() {
    let (_cluster, mut client) = start("logical_inserts");
    twin(&mut client, TABLE, "");
    let lines = twin(
        &mut client,
        "INSERT INTO S.t VALUES (1, 'a', 1.5, true, 0.1, '00000000-0000-0000-0000-000000000001', 'x', '{1,2}', '2020-01-01', 'ab', '2021-02-03')",
        "",
    );
    assert_eq!(count(&lines, "INSERT"), 1);
    twin(
        &mut client,
        "INSERT INTO S.t (id) VALUES (2), (3) RETURNING id",
        "",
    );
    let lines = twin(
        &mut client,
        "INSERT INTO S.t SELECT g, repeat('v', g % 300), g, g % 3 = 0 FROM generate_series(10, 500) g",
        "",
    );
    assert_eq!(count(&lines, "INSERT"), 491);
    twin(
        &mut client,
        "COPY S.t (id) FROM PROGRAM 'seq 1000 1100'",
        "",
    );
    // Out of line in heap, inline in lanes and in the record.
    twin(
        &mut client,
        "INSERT INTO S.t (id, v) SELECT 2000, string_agg(md5(g::text), '') FROM generate_series(1, 4000) g;;\
         CREATE TABLE S.copy AS SELECT * FROM S.t ORDER BY id;;\
         INSERT INTO S.t SELECT id + 1, v FROM S.copy WHERE id = 2000",
        "",
    );
    let lines = twin(
        &mut client,
        "INSERT INTO S.t (id) VALUES (1), (5) ON CONFLICT DO NOTHING;;\
         INSERT INTO S.t (id, v) VALUES (1, 'b'), (6, 'c') ON CONFLICT (id) DO UPDATE SET v = excluded.v;;\
         INSERT INTO S.t (id) VALUES (7) ON CONFLICT DO NOTHING",
        "",
    );
    assert_eq!((count(&lines, "INSERT"), count(&lines, "UPDATE")), (3, 1));
    // Rows that are written together, some of whose keys are there.
    let lines = twin(
        &mut client,
        "INSERT INTO S.t (id) SELECT i FROM generate_series(3000, 3099) i ON CONFLICT DO NOTHING;;\
         INSERT INTO S.t (id) SELECT i FROM generate_series(3050, 3149) i ON CONFLICT (id) DO NOTHING",
        "",
    );
    assert_eq!(count(&lines, "INSERT"), 150);
    twin(
        &mut client,
        "CREATE TABLE S.none (); INSERT INTO S.none DEFAULT VALUES",
        "",
    );
    twin(
        &mut client,
        "CREATE UNLOGGED TABLE S.unlogged (a int); INSERT INTO S.unlogged VALUES (1)",
        "",
    );
}

#[test]
fn rows_that_are_updated_and_deleted() {
    let (_cluster, mut client) = start("logical_changes");
    twin(
        &mut client,
        "CREATE TABLE S.t (id int PRIMARY KEY, k text NOT NULL, v int);;\
         CREATE UNIQUE INDEX k ON S.t (k);;\
         INSERT INTO S.t SELECT g, 'k' || g, g FROM generate_series(1, 50) g",
        "",
    );
    for identity in ["DEFAULT", "USING INDEX k", "FULL", "NOTHING"] {
        let lines = twin(
            &mut client,
            &format!(
                "ALTER TABLE S.t REPLICA IDENTITY {identity};;\
                 UPDATE S.t SET v = v + 1 WHERE id < 5;;\
                 UPDATE S.t SET id = id + 100 WHERE id < 3;;\
                 UPDATE S.t SET k = k || 'x' WHERE id = 7;;\
                 UPDATE S.t SET v = NULL WHERE id = 8;;\
                 DELETE FROM S.t WHERE id IN (4, 101, 102);;\
                 INSERT INTO S.t VALUES (1, 'k1', 1), (2, 'k2', 2), (4, 'k4', 4)"
            ),
            "",
        );
        assert_eq!(count(&lines, "UPDATE"), 8, "{identity}");
        assert_eq!(count(&lines, "DELETE"), 3, "{identity}");
    }
    twin(
        &mut client,
        "ALTER TABLE S.t REPLICA IDENTITY FULL;;\
         MERGE INTO S.t USING (VALUES (1), (900)) s (id) ON t.id = s.id \
           WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'm', 0)",
        "",
    );
    // Rows from before a column was added, and after one was dropped.
    twin(
        &mut client,
        "ALTER TABLE S.t ADD w text DEFAULT 'old', DROP v;;\
         UPDATE S.t SET k = k || 'y' WHERE id = 10;;\
         DELETE FROM S.t WHERE id = 11;;\
         INSERT INTO S.t VALUES (12000, 'z')",
        "",
    );
    // Rewrites say nothing.
    let lines = twin(
        &mut client,
        "ALTER TABLE S.t ALTER id TYPE bigint;;VACUUM FULL S.t;;CLUSTER S.t USING k",
        "",
    );
    assert_eq!(lines, Vec::<String>::new());
    let lines = twin(
        &mut client,
        "TRUNCATE S.t;;INSERT INTO S.t VALUES (1, 'a')",
        "",
    );
    assert_eq!(count(&lines, "TRUNCATE"), 1);
}

#[test]
fn transactions_and_subtransactions() {
    let (_cluster, mut client) = start("logical_transactions");
    twin(
        &mut client,
        "CREATE TABLE S.t (id int PRIMARY KEY, v int); CREATE TABLE S.plain (a int)",
        "",
    );
    let lines = twin(
        &mut client,
        "BEGIN;;INSERT INTO S.t VALUES (1);;ROLLBACK;;\
         BEGIN;;INSERT INTO S.t VALUES (2);;SAVEPOINT a;;INSERT INTO S.t VALUES (3);;ROLLBACK TO a;;\
         SAVEPOINT b;;INSERT INTO S.t VALUES (4);;UPDATE S.t SET v = 1;;RELEASE b;;DELETE FROM S.t WHERE id = 2;;COMMIT",
        "",
    );
    assert_eq!(count(&lines, "INSERT"), 2);
    // Rows that were gathered are written inside a subtransaction that is then rolled back, and stay.
    let lines = twin(
        &mut client,
        "CREATE FUNCTION S.look(i int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN \
           BEGIN \
             IF i = 3 THEN \
               INSERT INTO S.t VALUES (30); PERFORM count(*) FROM S.plain; PERFORM 1 / 0; \
             END IF; \
           EXCEPTION WHEN division_by_zero THEN NULL; END; \
           RETURN i; END $$;;\
         INSERT INTO S.plain SELECT S.look(g) FROM generate_series(1, 5) g;;\
         BEGIN;;SAVEPOINT a;;INSERT INTO S.plain SELECT S.look(g) FROM generate_series(1, 5) g;;RELEASE a;;COMMIT;;\
         BEGIN;;SAVEPOINT a;;INSERT INTO S.plain SELECT S.look(g) FROM generate_series(1, 5) g;;ROLLBACK TO a;;COMMIT",
        "",
    );
    assert_eq!(count(&lines, "INSERT"), 10);
    let lines = twin(
        &mut client,
        "BEGIN;;INSERT INTO S.t VALUES (100);;PREPARE TRANSACTION 'x';;COMMIT PREPARED 'x';;\
         BEGIN;;INSERT INTO S.t VALUES (101);;PREPARE TRANSACTION 'x';;ROLLBACK PREPARED 'x'",
        "",
    );
    assert_eq!(count(&lines, "PREPARE TRANSACTION"), 2);
    // Triggers, foreign keys and partitions.
    twin(
        &mut client,
        "CREATE TABLE S.child (a int REFERENCES S.t ON DELETE CASCADE ON UPDATE CASCADE);;\
         ALTER TABLE S.child REPLICA IDENTITY FULL;;\
         INSERT INTO S.child VALUES (4), (100);;DELETE FROM S.t WHERE id = 4;;UPDATE S.t SET id = 5 WHERE id = 100",
        "",
    );
    let lines = twin(
        &mut client,
        "CREATE TABLE S.root (a int PRIMARY KEY, b int) PARTITION BY RANGE (a);;\
         CREATE TABLE S.low PARTITION OF S.root FOR VALUES FROM (0) TO (10);;\
         CREATE TABLE S.high PARTITION OF S.root FOR VALUES FROM (10) TO (20);;\
         INSERT INTO S.root SELECT generate_series(0, 14);;UPDATE S.root SET a = a + 15 WHERE a = 1",
        "",
    );
    assert_eq!(count(&lines, "S.low: DELETE"), 1);
}

/// A transaction larger than the memory for decoding is streamed, or spilled to disk.
#[test]
fn large_transactions() {
    let (_cluster, mut client) = start("logical_streaming");
    client
        .batch_execute("SET logical_decoding_work_mem = '64kB'")
        .unwrap();
    twin(&mut client, "CREATE TABLE S.t (id int, v text)", "");
    let script = "BEGIN;;INSERT INTO S.t SELECT g, 'value ' || g FROM generate_series(1, 5000) g;;SAVEPOINT a;;\
         INSERT INTO S.t SELECT g, 'gone ' || g FROM generate_series(1, 3000) g;;ROLLBACK TO a;;\
         INSERT INTO S.t VALUES (1, 'last');;COMMIT";
    let lines = twin(&mut client, script, "");
    assert_eq!(count(&lines, "INSERT"), 5001);
    for (schema, _) in SIDES {
        for statement in script.split(";;") {
            client
                .batch_execute(&statement.replace("S.", &format!("{schema}.")))
                .unwrap();
        }
        let lines = decoded(&mut client, ", 'stream-changes', '1'");
        assert!(count(&lines, "opening a streamed block") > 1, "{schema}");
        assert_eq!(
            count(&lines, "committing streamed transaction"),
            1,
            "{schema}"
        );
    }
}

/// A batch of one row of one column, `a`.
fn batch() -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    let column = builder.add_column("a", ColumnType::Int32).unwrap();
    builder.column(column).push_i32(7).unwrap();
    let mut batch = Vec::new();
    builder.finish(&mut batch).unwrap();
    batch
}

#[test]
fn batches_are_decoded_and_maintenance_is_not() {
    let (_cluster, mut client) = start("logical_maintenance");
    client
        .batch_execute(
            "CREATE TABLE t (a int, at timestamptz DEFAULT now()) USING lanes WITH (order_by = 'a')",
        )
        .unwrap();
    client
        .query_one("SELECT lanes.append('t', $1)", &[&batch()])
        .unwrap();
    let lines = decoded(&mut client, "");
    assert_eq!(
        count(&lines, "table public.t: INSERT: a[integer]:7"),
        1,
        "{lines:?}"
    );
    client
        .batch_execute("INSERT INTO t SELECT generate_series(1, 3000); DELETE FROM t WHERE a < 10")
        .unwrap();
    decoded(&mut client, "");
    for sql in [
        "SELECT lanes.seal('t')",
        "VACUUM t",
        "INSERT INTO t SELECT generate_series(1, 10)",
        "SELECT lanes.seal('t')",
        "ALTER TABLE t SET ACCESS METHOD heap",
        "ALTER TABLE t SET ACCESS METHOD lanes",
    ] {
        client.batch_execute(sql).expect(sql);
        let inserts = if sql.starts_with("INSERT") { 10 } else { 0 };
        assert_eq!(count(&decoded(&mut client, ""), "table"), inserts, "{sql}");
    }
}

/// Sessions with an origin of their own mark their changes, so that a plugin can leave them out.
#[test]
fn changes_keep_their_origin() {
    let (_cluster, mut client) = start("logical_origin");
    let script = "CREATE TABLE S.t (a int PRIMARY KEY);;\
        SELECT pg_replication_origin_create('S.elsewhere');;\
        SELECT pg_replication_origin_session_setup('S.elsewhere');;\
        INSERT INTO S.t VALUES (1);;DELETE FROM S.t;;\
        SELECT pg_replication_origin_session_reset();;\
        INSERT INTO S.t VALUES (2);;\
        BEGIN;;SELECT pg_replication_origin_session_setup('S.elsewhere');;INSERT INTO S.t VALUES (3);;\
        SELECT pg_replication_origin_session_reset();;INSERT INTO S.t VALUES (4);;COMMIT";
    let lines = twin(&mut client, script, ", 'only-local', '1'");
    assert_eq!(count(&lines, "INSERT"), 2);
}

/// A slot never reads rows of another database, not even those of a transaction that is streamed before it commits.
#[test]
fn other_databases_are_left_out() {
    let (cluster, mut client) = start("logical_databases");
    cluster.psql("postgres", "CREATE DATABASE other").unwrap();
    let mut other = cluster.connect("other").unwrap();
    other
        .batch_execute(
            "CREATE EXTENSION lanes; CREATE TABLE t (a int) USING lanes; \
             INSERT INTO t SELECT generate_series(1, 5000)",
        )
        .unwrap();
    client
        .batch_execute("SET logical_decoding_work_mem = '64kB'")
        .unwrap();
    let lines = decoded(&mut client, ", 'stream-changes', '1'");
    assert_eq!(lines, Vec::<String>::new());
}

/// A crash replays the records, and a slot reads them afterwards. So does a standby.
#[test]
fn a_crash_and_a_standby() {
    let (mut cluster, mut client) = start("logical_crash");
    client
        .batch_execute("CREATE TABLE t (a int PRIMARY KEY) USING lanes; CHECKPOINT")
        .unwrap();
    client
        .batch_execute("INSERT INTO t SELECT generate_series(1, 100); DELETE FROM t WHERE a = 5")
        .unwrap();
    drop(client);
    cluster.kill9_postmaster().unwrap();
    cluster.start().unwrap();
    let mut client = cluster.connect("postgres").unwrap();
    let lines = decoded(&mut client, "");
    assert_eq!((count(&lines, "INSERT"), count(&lines, "DELETE")), (100, 1));
    let rows: i64 = client
        .query_one("SELECT count(*) FROM t", &[])
        .unwrap()
        .get(0);
    assert_eq!(rows, 99);
    drop(client);
    // A standby replays the records too.
    let mut standby = cluster.standby("logical_standby").unwrap();
    cluster
        .psql("postgres", "DELETE FROM t WHERE a = 6")
        .unwrap();
    standby.wait_replayed(&cluster).unwrap();
    assert_eq!(
        standby
            .scalar("postgres", "SELECT count(*) FROM t")
            .unwrap(),
        "98"
    );
}

/// Another session makes the key after INSERT … ON CONFLICT has looked for it. The row is taken back then, and decoding
/// never tells of it. The index on slow(v) stops the insertion between its row and the decision.
#[test]
fn a_row_that_is_taken_back() {
    let (cluster, mut client) = start("logical_speculation");
    client
        .batch_execute(
            "CREATE TABLE t (id int, v text) USING lanes; \
             CREATE FUNCTION slow(v text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN \
                 PERFORM pg_advisory_lock_shared(length(v)); PERFORM pg_advisory_unlock_shared(length(v)); \
                 RETURN v; END $$; \
             CREATE UNIQUE INDEX ON t (slow(v)); CREATE UNIQUE INDEX ON t (id); \
             SELECT pg_advisory_lock(2)",
        )
        .unwrap();
    decoded(&mut client, "");
    let mut slow = cluster.connect("postgres").unwrap();
    let insertion = std::thread::spawn(move || {
        slow.batch_execute(
            "INSERT INTO t VALUES (1, 's1') ON CONFLICT (id) DO UPDATE SET v = t.v || ' and s1'",
        )
    });
    let waits = "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND locktype = 'advisory'";
    wait_for(&mut client, &cluster, waits);
    let mut other = cluster.connect("postgres").unwrap();
    other
        .batch_execute("INSERT INTO t VALUES (1, 'other')")
        .unwrap();
    client
        .batch_execute("SELECT pg_advisory_unlock(2)")
        .unwrap();
    insertion.join().unwrap().unwrap();
    let mut lines = decoded(&mut client, "");
    lines.retain(|line| line.starts_with("table"));
    let expected = [
        "table public.t: INSERT: id[integer]:1 v[text]:'other'",
        "table public.t: UPDATE: id[integer]:1 v[text]:'other and s1'",
    ];
    assert_eq!(lines, expected);
}
