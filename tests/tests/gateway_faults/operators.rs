//! Faults that an operator has to repair. Each is logged once, disturbs PostgreSQL little, and ends
//! by itself once it is repaired.

use std::time::{Duration, Instant};

use lanes_support::gateway::{Answer, Gateway};
use lanes_support::provision::DATABASE;

use super::{cluster, metric, settings, until};

#[test]
fn a_gateway_without_privileges_retries_less_and_less_often() {
    let (cluster, passwords) = cluster("rights");
    let run = |sql| cluster.psql(DATABASE, sql).unwrap();
    run("REVOKE EXECUTE ON FUNCTION lanes.registry_identity() FROM lanes_gateway");
    let settings =
        settings("gateway", &cluster, &passwords).environment("LANES_GATEWAY_ACK_TIMEOUT", "3s");
    let mut gateway = Gateway::new(settings);
    gateway.start_again().unwrap();
    until("the gateway does not listen", || {
        gateway.get("/metrics").is_ok()
    });
    let start = Instant::now();
    // The senders keep trying.
    while start.elapsed() < Duration::from_secs(6) {
        let headers = [("content-type", "application/json")];
        let answer = gateway.post("/api/v1/events/t", &headers, b"{}").unwrap();
        assert_eq!(answer.status, 503, "{}", answer.body);
        assert!(
            answer.body.contains("lanes.grant_gateway"),
            "{}",
            answer.body
        );
    }
    let log = std::fs::read_to_string(cluster.log()).unwrap();
    let attempts = log.matches("permission denied for function").count();
    assert!(
        (1..=8).contains(&attempts),
        "a few at the start, then after 1, 3 and 7 s: {log}"
    );
    run("SELECT lanes.grant_gateway('lanes_gateway')");
    gateway.wait_ready().unwrap();
}

#[test]
fn a_full_disk_and_its_end_are_logged() {
    let (cluster, passwords) = cluster("disk_full");
    let run = |sql| cluster.psql(DATABASE, sql).unwrap();
    run(
        "CREATE TABLE t (n int8) USING lanes; GRANT INSERT ON t TO lanes_gateway;
         CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$;
         CREATE TRIGGER full_disk BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION fail()",
    );
    let settings =
        settings("gateway", &cluster, &passwords).environment("LANES_GATEWAY_ACK_TIMEOUT", "3s");
    let gateway = Gateway::start(settings).unwrap();
    let send = || -> Answer {
        let headers = [("content-type", "application/json")];
        gateway
            .post("/api/v1/events/t", &headers, b"{\"n\": 1}")
            .unwrap()
    };
    for _ in 0..3 {
        let answer = send();
        assert_eq!(answer.status, 503, "{}", answer.body);
        let is_told = ["No space left", "disk is full"].map(|told| answer.body.contains(told));
        assert!(is_told.contains(&true), "{}", answer.body);
    }
    assert_eq!(metric(&gateway, "lanes_gateway_postgres_disk_full"), 1.0);
    let ready = gateway.get("/-/ready").unwrap().body;
    assert!(ready.contains("PostgreSQL's disk is full"), "{ready}");
    run("DROP TRIGGER full_disk ON t");
    until("the row was not stored", || send().status == 204);
    until("the end of the full disk was not logged", || {
        send();
        metric(&gateway, "lanes_gateway_postgres_disk_full") == 0.0
    });
    assert_eq!(gateway.get("/-/ready").unwrap().body, "ready\n");
    let log = std::fs::read_to_string(gateway.log()).unwrap();
    for told in ["disk is full", "has room again"] {
        assert_eq!(log.matches(told).count(), 1, "{told}: {log}");
    }
}
