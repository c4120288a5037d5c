//! A lanes table that is published in spite of the check of statements, because two sessions
//! published and created at once, refuses writes instead of losing them. The suite of SQL tests
//! the statements (`tests/regress/sql/publication.sql`).

use lanes_support::cluster::Cluster;
use lanes_wire::{BatchBuilder, ColumnType};
use postgres::Client;
use postgres::error::DbError;

/// A batch of one row of one column, `a`.
fn batch() -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    let column = builder.add_column("a", ColumnType::Int32).unwrap();
    builder.column(column).push_i32(7).unwrap();
    let mut batch = Vec::new();
    builder.finish(&mut batch).unwrap();
    batch
}

fn error(client: &mut Client, sql: &str) -> DbError {
    let refused = client.batch_execute(sql);
    let error = refused.expect_err(sql);
    error.as_db_error().expect(sql).clone()
}

/// Creates a lanes table in a schema that another session publishes meanwhile.
fn publish_while_creating(creator: &mut Client, publisher: &mut Client) {
    publisher.batch_execute("CREATE SCHEMA s").unwrap();
    publisher
        .batch_execute("BEGIN; CREATE PUBLICATION p FOR TABLES IN SCHEMA s")
        .unwrap();
    creator
        .batch_execute(
            "CREATE TABLE s.t (a int) USING lanes; ALTER TABLE s.t REPLICA IDENTITY FULL; \
             CREATE UNLOGGED TABLE s.unlogged (a int) USING lanes; \
             INSERT INTO s.t SELECT generate_series(1, 1000)",
        )
        .unwrap();
    publisher.batch_execute("COMMIT").unwrap();
}

fn count(client: &mut Client) -> i64 {
    let row = client.query_one("SELECT count(*) FROM s.t", &[]).unwrap();
    row.get(0)
}

#[test]
fn a_published_table_refuses_what_logical_decoding_would_lose() {
    let mut cluster = Cluster::builder("publication")
        .setting("wal_level", "logical")
        .start()
        .unwrap();
    let mut client = cluster.connect("postgres").unwrap();
    let mut other = cluster.connect("postgres").unwrap();
    client.batch_execute("CREATE EXTENSION lanes").unwrap();
    publish_while_creating(&mut client, &mut other);

    let writes = [
        ("INSERT INTO s.t VALUES (1)", "insert into"),
        (
            "INSERT INTO s.t SELECT generate_series(1, 9)",
            "insert into",
        ),
        ("COPY s.t FROM PROGRAM 'echo 1'", "insert into"),
        ("UPDATE s.t SET a = 0 WHERE a = 1", "update"),
        ("DELETE FROM s.t WHERE a = 1", "delete from"),
    ];
    for (sql, action) in writes {
        for client in [&mut client, &mut other] {
            let error = error(client, sql);
            assert_eq!(error.code().code(), "0A000", "{error}");
            let expected = format!("cannot {action} lanes table \"t\" because a publication");
            assert!(error.message().starts_with(&expected), "{error}");
            assert!(error.hint().is_some_and(|hint| hint.contains("FOR TABLE")));
        }
    }
    let append = "SELECT lanes.append('s.t', $1)";
    let refused = client.query_one(append, &[&batch()]).unwrap_err();
    let message = refused.as_db_error().unwrap().message();
    assert!(
        message.starts_with("cannot insert into lanes table"),
        "{message}"
    );

    // What decoding does not read of any table, or reads of this one too, is not refused.
    for sql in [
        "SELECT lanes.seal('s.t')",
        "VACUUM FULL s.t",
        "ALTER TABLE s.t ALTER a TYPE text",
        "ALTER TABLE s.t ALTER a TYPE int USING a::int",
        "INSERT INTO s.unlogged VALUES (1)",
    ] {
        client.batch_execute(sql).expect(sql);
    }
    assert_eq!(count(&mut client), 1000);
    client.batch_execute("TRUNCATE s.t").unwrap();

    // The table takes rows again when it is no longer published, in a session that had refused.
    other
        .batch_execute("ALTER PUBLICATION p SET (publish = 'truncate')")
        .unwrap();
    client.query_one(append, &[&batch()]).unwrap();
    client.batch_execute("UPDATE s.t SET a = 8").unwrap();
    let error = error(&mut other, "ALTER PUBLICATION p SET (publish = 'update')");
    assert_eq!(
        error.detail(),
        Some("Publication \"p\" would include the lanes table \"s.t\".")
    );
    assert_eq!(count(&mut client), 1);

    // Without logical decoding nothing is lost, so nothing is refused.
    drop((client, other));
    cluster.set("wal_level", "replica");
    cluster.restart().unwrap();
    let mut client = cluster.connect("postgres").unwrap();
    let mut other = cluster.connect("postgres").unwrap();
    client
        .batch_execute("DROP SCHEMA s CASCADE; DROP PUBLICATION p")
        .unwrap();
    publish_while_creating(&mut client, &mut other);
    client
        .batch_execute("INSERT INTO s.t VALUES (1); DELETE FROM s.t")
        .unwrap();
    assert_eq!(count(&mut client), 0);
}

/// The extension owns a lanes table, so a publication of all tables and the extension exclude each
/// other.
#[test]
fn the_extension_and_a_publication_of_all_tables_exclude_each_other() {
    let cluster = Cluster::builder("publication_all").start().unwrap();
    cluster
        .psql("postgres", "CREATE DATABASE published")
        .unwrap();
    let mut client = cluster.connect("published").unwrap();
    client
        .batch_execute("CREATE TABLE t (a int); CREATE PUBLICATION p FOR ALL TABLES")
        .unwrap();
    let refused = error(&mut client, "CREATE EXTENSION lanes");
    assert_eq!(refused.code().code(), "0A000");
    let detail = "Publication \"p\" would include the lanes table \"lanes.samples\".";
    assert_eq!(refused.detail(), Some(detail));
    client
        .batch_execute(
            "DROP PUBLICATION p; CREATE PUBLICATION p FOR TABLE t; CREATE EXTENSION lanes",
        )
        .unwrap();
    let refused = error(&mut client, "CREATE PUBLICATION everything FOR ALL TABLES");
    let detail = "Publication \"everything\" would include the lanes table \"lanes.samples\".";
    assert_eq!(refused.detail(), Some(detail));
}
