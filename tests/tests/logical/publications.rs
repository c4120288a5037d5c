//! The demands of a publication on its tables, and publications in a dump.

use super::builder;
use lanes_support::cluster::Cluster;
use std::process::Command;

/// The dump of a database's definitions.
fn dump(cluster: &Cluster) -> String {
    let mut command = Command::new(cluster.programs().join("pg_dump"));
    command
        .args(["--schema-only", "-d"])
        .arg(cluster.connection_string("postgres"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_published_table_needs_an_identity_as_heap_does() {
    let cluster = builder("logical_identity").start().unwrap();
    let mut client = cluster.connect("postgres").unwrap();
    client
        .batch_execute(
            "CREATE EXTENSION lanes; CREATE TABLE t (a int) USING lanes; INSERT INTO t VALUES (1), (2); \
             CREATE PUBLICATION p FOR TABLE t; INSERT INTO t VALUES (3)",
        )
        .unwrap();
    for (sql, expected) in [
        (
            "UPDATE t SET a = 0",
            "cannot update table \"t\" because it does not have a replica identity and publishes updates",
        ),
        (
            "DELETE FROM t",
            "cannot delete from table \"t\" because it does not have a replica identity and publishes deletes",
        ),
    ] {
        let error = client.batch_execute(sql).unwrap_err();
        assert_eq!(error.as_db_error().unwrap().message(), expected);
    }
    client
        .batch_execute("ALTER TABLE t REPLICA IDENTITY FULL; UPDATE t SET a = a + 1; DELETE FROM t WHERE a = 4")
        .unwrap();
    let count: i64 = client
        .query_one("SELECT count(*) FROM t", &[])
        .unwrap()
        .get(0);
    assert_eq!(count, 2);
}

#[test]
fn a_dump_holds_publications_and_identities() {
    let cluster = builder("logical_dump").start().unwrap();
    let mut client = cluster.connect("postgres").unwrap();
    client
        .batch_execute(
            "CREATE EXTENSION lanes; CREATE TABLE t (a int, b int) USING lanes; ALTER TABLE t REPLICA IDENTITY FULL; \
             CREATE PUBLICATION p FOR TABLE t (a) WHERE (a > 1); CREATE PUBLICATION everything FOR ALL TABLES",
        )
        .unwrap();
    let dump = dump(&cluster);
    for line in [
        "ALTER TABLE ONLY public.t REPLICA IDENTITY FULL;",
        "CREATE PUBLICATION everything FOR ALL TABLES WITH (publish = 'insert, update, delete, truncate');",
        "ALTER PUBLICATION p ADD TABLE ONLY public.t (a) WHERE ((a > 1));",
    ] {
        assert!(dump.contains(line), "{line}\n{dump}");
    }
    cluster
        .psql("postgres", "CREATE DATABASE restored")
        .unwrap();
    // Newer versions of pg_dump write commands for psql, which a script in an argument may not have.
    let statements: Vec<&str> = dump
        .lines()
        .filter(|line| !line.starts_with('\\'))
        .collect();
    cluster.psql("restored", &statements.join("\n")).unwrap();
    let published = cluster
        .scalar(
            "restored",
            "SELECT count(*) FROM pg_publication_tables WHERE tablename = 't'",
        )
        .unwrap();
    assert_eq!(published, "2");
}
