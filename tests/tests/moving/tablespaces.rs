//! Tables and databases that move to another tablespace, with rows in memory, and crashes afterwards.

use super::go_on;
use super::tables::{self, DATABASE, UNLOGGED, answers, check, compare};
use lanes_support::cluster::Cluster;

const LANES_TABLES: &str = "SELECT c.oid::regclass::text FROM pg_class c JOIN pg_am a ON a.oid = c.relam \
    WHERE a.amname = 'lanes' AND c.relkind IN ('r', 'm') ORDER BY 1";

fn cluster(name: &str) -> Cluster {
    let cluster = Cluster::builder(name)
        .setting("allow_in_place_tablespaces", "on")
        .start()
        .unwrap();
    cluster
        .psql("postgres", "CREATE TABLESPACE elsewhere LOCATION ''")
        .unwrap();
    tables::fill(&cluster);
    cluster
}

fn crash(cluster: &mut Cluster) {
    cluster.kill9().unwrap();
    cluster.start().unwrap();
}

/// Moves all lanes tables of the database, and their indexes.
fn move_tables(cluster: &Cluster, tablespace: &str) {
    let found = cluster.query(DATABASE, LANES_TABLES).unwrap();
    for name in found.into_iter().flatten().flatten() {
        let is_view = name == "summary";
        let kind = if is_view {
            "MATERIALIZED VIEW"
        } else {
            "TABLE"
        };
        let statement = format!("ALTER {kind} {name} SET TABLESPACE {tablespace}");
        cluster.psql(DATABASE, &statement).unwrap();
    }
    cluster
        .psql(
            DATABASE,
            &format!("ALTER INDEX ALL IN TABLESPACE pg_default SET TABLESPACE {tablespace}"),
        )
        .unwrap();
}

#[test]
fn tables_move_to_another_tablespace_and_back() {
    let mut cluster = cluster("tablespaces");
    let before = answers(&cluster, DATABASE);
    // One that is taken back.
    cluster
        .psql(
            DATABASE,
            "BEGIN; ALTER TABLE indexed SET TABLESPACE elsewhere; DELETE FROM indexed; ROLLBACK",
        )
        .unwrap();
    compare(&before, &answers(&cluster, DATABASE), "after a rollback");
    move_tables(&cluster, "elsewhere");
    assert_eq!(cluster.scalar(DATABASE, UNLOGGED).unwrap(), "100");
    compare(&before, &answers(&cluster, DATABASE), "elsewhere");
    crash(&mut cluster);
    compare(&before, &answers(&cluster, DATABASE), "after a crash");
    assert_eq!(cluster.scalar(DATABASE, UNLOGGED).unwrap(), "0");
    check(&cluster, DATABASE, "after a crash");
    go_on(&cluster, DATABASE);
    let after = answers(&cluster, DATABASE);
    crash(&mut cluster);
    compare(&after, &answers(&cluster, DATABASE), "changed elsewhere");
    move_tables(&cluster, "pg_default");
    compare(&after, &answers(&cluster, DATABASE), "back");
    crash(&mut cluster);
    compare(&after, &answers(&cluster, DATABASE), "back, after a crash");
    check(&cluster, DATABASE, "back, after a crash");
}

/// A table has the same file number before and after. So what memory has of it, under its place in the first tablespace,
/// must not be taken for its content when it comes back.
#[test]
fn a_database_moves_to_another_tablespace_and_back() {
    let mut cluster = cluster("database_tablespace");
    let before = answers(&cluster, DATABASE);
    let move_to = |cluster: &Cluster, tablespace: &str| {
        let statement = format!("ALTER DATABASE {DATABASE} SET TABLESPACE {tablespace}");
        cluster.psql("postgres", &statement).unwrap();
    };
    move_to(&cluster, "elsewhere");
    compare(&before, &answers(&cluster, DATABASE), "elsewhere");
    go_on(&cluster, DATABASE);
    let after = answers(&cluster, DATABASE);
    move_to(&cluster, "pg_default");
    compare(&after, &answers(&cluster, DATABASE), "back");
    check(&cluster, DATABASE, "back");
    cluster
        .psql(
            DATABASE,
            "DELETE FROM sorted WHERE series = 1; INSERT INTO open_rows (k) VALUES (-1)",
        )
        .unwrap();
    let last = answers(&cluster, DATABASE);
    move_to(&cluster, "elsewhere");
    compare(&last, &answers(&cluster, DATABASE), "elsewhere again");
    crash(&mut cluster);
    compare(&last, &answers(&cluster, DATABASE), "after a crash");
    check(&cluster, DATABASE, "after a crash");
}
