//! pg_dump and pg_restore with several processes.

use super::go_on;
use super::tables::{self, DATABASE, answers, check, compare};
use lanes_support::cluster::Cluster;
use lanes_support::process::run;
use std::process::Command;

#[test]
fn a_parallel_dump_restores_in_parallel() {
    let cluster = Cluster::builder("parallel_dump").start().unwrap();
    tables::fill(&cluster);
    let before = answers(&cluster, DATABASE);
    let folder = cluster.folder().join("dump");
    let program = |name: &str| {
        let mut command = Command::new(cluster.programs().join(name));
        command.arg("--jobs=3");
        command
    };
    let mut dump = program("pg_dump");
    dump.arg("--format=directory").arg("--file").arg(&folder);
    dump.arg("--dbname")
        .arg(cluster.connection_string(DATABASE));
    run(&mut dump).unwrap();
    cluster
        .psql("postgres", "CREATE DATABASE restored")
        .unwrap();
    let mut restore = program("pg_restore");
    restore.arg("--exit-on-error").arg("--dbname");
    restore
        .arg(cluster.connection_string("restored"))
        .arg(&folder);
    run(&mut restore).unwrap();
    compare(&before, &answers(&cluster, "restored"), "after the restore");
    check(&cluster, "restored", "after the restore");
    go_on(&cluster, DATABASE);
    go_on(&cluster, "restored");
    compare(
        &answers(&cluster, DATABASE),
        &answers(&cluster, "restored"),
        "later",
    );
    check(&cluster, "restored", "later");
}
