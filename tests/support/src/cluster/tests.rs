//! Tests of the harness itself, on PostgreSQL without the extension.

use super::{Cluster, Stop};
use crate::error::Error;

#[test]
fn committed_rows_survive_every_kind_of_stop() {
    let mut cluster = Cluster::builder("harness_stops")
        .without_extension()
        .start()
        .unwrap();
    let count = |cluster: &Cluster| {
        cluster
            .scalar("postgres", "SELECT count(*) FROM t")
            .unwrap()
    };
    cluster
        .psql(
            "postgres",
            "CREATE TABLE t AS SELECT generate_series(1, 1000) AS x",
        )
        .unwrap();

    cluster.restart().unwrap();
    assert_eq!(count(&cluster), "1000");
    cluster.stop(Stop::Immediate).unwrap();
    cluster.start().unwrap();
    assert_eq!(count(&cluster), "1000");
    cluster.kill9().unwrap();
    assert!(!cluster.is_running());
    cluster.start().unwrap();
    assert_eq!(count(&cluster), "1000");
    cluster.kill9_postmaster().unwrap();
    cluster.start().unwrap();
    assert_eq!(count(&cluster), "1000");

    let mut client = cluster.connect("postgres").unwrap();
    let backend: i32 = client
        .query_one("SELECT pg_backend_pid()", &[])
        .unwrap()
        .get(0);
    cluster.kill9_backend(backend as u32).unwrap();
    assert!(client.simple_query("SELECT 1").is_err());
    cluster.wait_ready().unwrap();
    assert_eq!(count(&cluster), "1000");
    assert!(
        cluster.kill9_backend(1).is_err(),
        "process 1 is not a backend of the cluster"
    );
}

#[test]
fn a_standby_follows_and_is_promoted() {
    let primary = Cluster::builder("harness_primary")
        .without_extension()
        .start()
        .unwrap();
    let mut standby = primary.standby("harness_standby").unwrap();
    primary
        .psql(
            "postgres",
            "CREATE TABLE t AS SELECT generate_series(1, 1000) AS x",
        )
        .unwrap();
    standby.wait_replayed(&primary).unwrap();
    assert_eq!(
        standby.scalar("postgres", "SELECT sum(x) FROM t").unwrap(),
        "500500"
    );
    assert!(standby.psql("postgres", "DELETE FROM t").is_err());
    drop(primary);
    standby.promote().unwrap();
    standby.psql("postgres", "DELETE FROM t").unwrap();
}

#[test]
fn roles_need_their_password_and_a_failed_start_shows_the_log() {
    let mut cluster = Cluster::builder("harness_access")
        .without_extension()
        .start()
        .unwrap();
    cluster
        .psql("postgres", "CREATE ROLE someone LOGIN PASSWORD 'right'")
        .unwrap();
    cluster.connect_as("someone", "right", "postgres").unwrap();
    let refused = cluster
        .connect_as("someone", "wrong", "postgres")
        .map(drop)
        .unwrap_err();
    assert!(refused.to_string().contains("28P01"), "{refused}");

    let data = cluster.data().to_owned();
    cluster.set("shared_buffers", "nonsense");
    let error = cluster.restart().unwrap_err();
    assert!(
        matches!(error, Error::Died { .. }) && error.to_string().contains("shared_buffers"),
        "{error}"
    );
    drop(cluster);
    assert!(!data.exists(), "a temporary cluster leaves nothing behind");
}
