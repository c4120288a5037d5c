//! The admin API: who may delete which samples, and what a deletion does to others.

use super::limits::lock;
use super::{START, Stage, encoded, until};
use lanes_support::gateway::Answer;
use lanes_support::provision::DATABASE;
use std::io::Write;
use std::net::TcpStream;

const DELETE: &str = "/api/v1/admin/tsdb/delete_series";

fn start(name: &str) -> Stage {
    Stage::start(name, &[("LANES_GATEWAY_QUERY_ADMIN_API", "true")])
}

/// Lets the role of `query.connection` delete.
fn granted(stage: &Stage) {
    run(stage, "GRANT DELETE ON lanes.samples TO lanes_reader");
}

fn run(stage: &Stage, statement: &str) {
    let mut client = stage.cluster.connect(DATABASE).unwrap();
    client.batch_execute(statement).unwrap();
}

/// The number of samples of a selector.
fn samples(stage: &Stage, selector: &str) -> u64 {
    let count = format!(
        "SELECT count(*) FROM lanes.samples WHERE series IN (SELECT lanes.series_ids($${selector}$$))"
    );
    let count = stage.cluster.scalar(DATABASE, &count).unwrap();
    count.parse().unwrap()
}

fn assert_refused(answer: &Answer, status: u16, text: &str) {
    assert_eq!(answer.status, status, "{}", answer.body);
    assert!(answer.body.contains(text), "{}", answer.body);
}

#[test]
fn samples_are_deleted_by_a_role_that_may() {
    let stage = start("query_api_delete");
    let (first, last) = ((START + 10).to_string(), (START + 20).to_string());
    let some = [("match[]", "up"), ("start", &first), ("end", &last)];
    let denied = stage.post(DELETE, &some);
    assert_refused(&denied, 403, "permission denied for table samples");
    assert_refused(&denied, 403, "GRANT DELETE ON lanes.samples");
    granted(&stage);
    let deleted = stage.post(DELETE, &some);
    assert_eq!((deleted.status, &*deleted.body), (204, ""));
    assert_eq!(samples(&stage, "up"), 10);
    assert_eq!(stage.metric("deleted_samples_total"), 4.0);
    // By PUT and the URL, all samples of two selectors.
    let path = format!(
        "{DELETE}?{}",
        encoded(&[("match[]", "up{job='api'}"), ("match[]", "{code='500'}")])
    );
    let mut stream = TcpStream::connect(("127.0.0.1", stage.gateway.port())).unwrap();
    write!(stream, "PUT {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").unwrap();
    until("the samples are deleted", || {
        samples(&stage, "{job=~'.+'}") == 5 + 7
    });
    assert_eq!(
        (samples(&stage, "up"), samples(&stage, "requests_total")),
        (5, 7)
    );
    // Series stay registered.
    let codes = stage.body("/api/v1/label/code/values", &[]);
    assert!(codes.contains("500"), "{codes}");

    let none = [("match[]", "up"), ("start", &last), ("end", &first)];
    assert_eq!(stage.post(DELETE, &none).status, 204);
    let wrong = stage.post(DELETE, &[("start", "0")]);
    assert_refused(&wrong, 400, "no match[] parameter provided");
    assert_eq!(stage.get(DELETE, &some).status, 405);
    let vacuum = stage.post("/api/v1/admin/tsdb/clean_tombstones", &[]);
    assert_refused(&vacuum, 422, "VACUUM lanes.samples");
    let backup = stage.post("/api/v1/admin/tsdb/snapshot", &[]);
    assert_refused(&backup, 422, "pg_basebackup");
    assert_eq!(samples(&stage, "up"), 5);
}

#[test]
fn the_admin_api_is_off_by_default() {
    let stage = Stage::start("query_api_admin_off", &[]);
    granted(&stage);
    for route in ["delete_series", "clean_tombstones", "snapshot"] {
        let path = format!("/api/v1/admin/tsdb/{route}");
        let refused = stage.post(&path, &[("match[]", "up")]);
        let expected = r#"{"status":"error","errorType":"unavailable","error":"admin APIs disabled: set query.admin_api (LANES_GATEWAY_QUERY_ADMIN_API) to true"}"#;
        assert_eq!((refused.status, &*refused.body), (503, expected));
    }
    assert_eq!(samples(&stage, "up"), 14);
}

#[test]
fn one_deletion_runs_at_a_time_and_outlives_its_client() {
    let stage = start("query_api_delete_once");
    granted(&stage);
    let locked = lock(&stage);
    let mut stream = TcpStream::connect(("127.0.0.1", stage.gateway.port())).unwrap();
    let selector = encoded(&[("match[]", "up")]);
    write!(
        stream,
        "POST {DELETE}?{selector} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    )
    .unwrap();
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'lanes-gateway admin' AND wait_event_type = 'Lock'";
    until("the deletion waits for the lock", || {
        stage.cluster.scalar("postgres", waits).unwrap() == "1"
    });
    let second = stage.post(DELETE, &[("match[]", "up")]);
    assert_refused(&second, 503, "another deletion runs");
    // Queries have sessions of their own.
    assert!(stage.body("/api/v1/labels", &[]).contains("job"));
    drop(stream);
    drop(locked);
    until("the samples are deleted", || samples(&stage, "up") == 0);
    until("the next deletion may run", || {
        stage.post(DELETE, &[("match[]", "requests_total")]).status == 204
    });
    assert_eq!(samples(&stage, "requests_total"), 0);
}

#[test]
fn a_deletion_that_cannot_end_deletes_nothing() {
    let stage = Stage::start(
        "query_api_delete_fails",
        &[
            ("LANES_GATEWAY_QUERY_ADMIN_API", "true"),
            ("LANES_GATEWAY_QUERY_TIMEOUT", "1s"),
        ],
    );
    granted(&stage);
    let locked = lock(&stage);
    let late = stage.post(DELETE, &[("match[]", "up")]);
    assert_refused(
        &late,
        503,
        "took longer than 1s (query.timeout), and nothing was deleted",
    );
    drop(locked);
    // Segments in object storage, which nobody fetches.
    run(&stage, "ALTER TABLE lanes.samples SET (hot = '1 day')");
    run(&stage, "SELECT lanes.seal('lanes.samples')");
    run(
        &stage,
        "SELECT lanes.offload_commit(target, part) FROM lanes.offload_list(1)",
    );
    run(
        &stage,
        "ALTER DATABASE lanes SET lanes.recall_timeout = '20ms'",
    );
    let remote = stage.post(DELETE, &[("match[]", "up")]);
    assert_refused(
        &remote,
        422,
        "are in object storage and could not be recalled",
    );
    let remote =
        "SELECT sum(rows) FROM lanes.arena_segments('lanes.samples') WHERE state = 'remote'";
    assert_eq!(stage.cluster.scalar(DATABASE, remote).unwrap(), "28");
}
