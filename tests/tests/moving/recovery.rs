//! A base backup, archived WAL, and recovery up to a point in time.

use super::tables::{self, DATABASE, answers, check, compare};
use super::{go_on, wait_for};
use lanes_support::cluster::Cluster;

#[test]
fn a_backup_and_archived_wal_lead_to_a_point_in_time() {
    let mut cluster = Cluster::builder("recovery")
        .setting("archive_mode", "on")
        .setting("archive_command", "cp %p ../archive_%f")
        .start()
        .unwrap();
    tables::fill(&cluster);
    let mut backup = cluster.backup("recovery_target").unwrap();
    // What WAL has to say about open rows, seals, deletions and indexes.
    go_on(&cluster, DATABASE);
    cluster
        .psql(
            DATABASE,
            "CREATE TABLE later (k int PRIMARY KEY) USING lanes; INSERT INTO later SELECT generate_series(1, 1000)",
        )
        .unwrap();
    let expected = answers(&cluster, DATABASE);
    cluster
        .psql("postgres", "SELECT pg_create_restore_point('here')")
        .unwrap();
    cluster
        .psql(
            DATABASE,
            "DELETE FROM open_rows; TRUNCATE sorted; DROP TABLE indexed; INSERT INTO later SELECT generate_series(1001, 9000)",
        )
        .unwrap();
    let last = cluster
        .scalar("postgres", "SELECT pg_walfile_name(pg_switch_wal())")
        .unwrap();
    wait_for("WAL is archived", || {
        cluster.folder().join(format!("archive_{last}")).exists()
    });
    cluster.kill9().unwrap();

    let archive = cluster.folder().join("archive_%f");
    backup.set("archive_mode", "off");
    backup.set("restore_command", &format!("cp {} %p", archive.display()));
    backup.set("recovery_target_name", "here");
    backup.set("recovery_target_action", "promote");
    backup.recover().unwrap();
    wait_for("the recovery ends", || {
        backup
            .scalar("postgres", "SELECT pg_is_in_recovery()")
            .unwrap()
            == "f"
    });
    compare(
        &expected,
        &answers(&backup, DATABASE),
        "at the point in time",
    );
    let later = "SELECT count(*) FROM later";
    assert_eq!(backup.scalar(DATABASE, later).unwrap(), "1000");
    check(&backup, DATABASE, "at the point in time");
    backup
        .psql(
            DATABASE,
            "INSERT INTO later SELECT generate_series(2001, 3000)",
        )
        .unwrap();
    backup.kill9().unwrap();
    backup.start().unwrap();
    assert_eq!(backup.scalar(DATABASE, later).unwrap(), "2000");
    check(&backup, DATABASE, "on the new timeline");
}
