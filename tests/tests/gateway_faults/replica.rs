//! Level `replica` with a real synchronous standby.

use super::{cluster, metric, samples, settings, until};
use lanes_support::cluster::{Cluster, Stop};
use lanes_support::gateway::{Answer, Gateway};
use lanes_support::provision::DATABASE;
use lanes_support::remote_write::{Series, body};
use std::collections::BTreeSet;
use std::sync::Mutex;

const NOW_MS: i64 = 1_767_225_600_000;
const TABLE: &str =
    "CREATE TABLE t (n int8 NOT NULL) USING lanes; GRANT INSERT ON t TO lanes_gateway";

/// Sends samples and events that contain a number.
fn write(gateway: &Gateway, number: i64, level: &str) -> Answer {
    let sample = (NOW_MS + number, number as f64);
    let series = Series::new(
        "replica",
        &[("odd", &(number % 2).to_string())],
        vec![sample],
    );
    gateway.remote_write(&body(&[series]), Some(level)).unwrap()
}

fn event(gateway: &Gateway, number: i64, level: &str) -> Answer {
    let headers = [
        ("content-type", "application/json"),
        ("x-lanes-ack", level),
        ("idempotency-key", &number.to_string()),
    ];
    let body = format!("{{\"n\": {number}}}");
    gateway
        .post("/api/v1/events/t", &headers, body.as_bytes())
        .unwrap()
}

/// Starts a standby that commits wait for from now on.
fn synchronous_standby(primary: &Cluster, name: &str) -> Cluster {
    let standby = primary.standby(name).unwrap();
    for sql in [
        format!("ALTER SYSTEM SET synchronous_standby_names = '{name}'"),
        "SELECT pg_reload_conf()".to_owned(),
    ] {
        let mut client = primary.connect("postgres").unwrap();
        client.batch_execute(&sql).unwrap();
    }
    let state = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
    until("the standby is not synchronous", || {
        primary.scalar("postgres", state).unwrap() == "1"
    });
    standby
}

/// Waits until the gateway has noticed the standby, which it checks once a second.
fn until_taken(gateway: &Gateway) {
    until("level replica is not accepted", || {
        event(gateway, 0, "replica").status == 204
    });
}

#[test]
fn level_replica_alone_waits_for_the_standby() {
    let (primary, passwords) = cluster("replica_stopped");
    primary
        .connect(DATABASE)
        .unwrap()
        .batch_execute(TABLE)
        .unwrap();
    let settings = settings("gateway", &primary, &passwords)
        .environment("LANES_GATEWAY_ACK_TIMEOUT", "2s")
        .environment("LANES_GATEWAY_POSTGRES_STATEMENT_TIMEOUT", "1s");
    let gateway = Gateway::start(settings).unwrap();
    let refusals = |number| {
        [
            write(&gateway, number, "replica"),
            event(&gateway, number, "replica"),
        ]
    };
    for answer in refusals(1) {
        assert_eq!(answer.status, 503, "{}", answer.body);
        assert!(
            answer.body.contains("synchronous_standby_names"),
            "{}",
            answer.body
        );
    }
    let mut standby = synchronous_standby(&primary, "replica_back");
    until_taken(&gateway);
    for answer in refusals(2) {
        assert_eq!(answer.status, 204, "{}", answer.body);
    }
    standby.stop(Stop::Fast).unwrap();
    let missing = "synchronous standbys are missing";
    let readiness = || gateway.get("/-/ready").unwrap();
    until("the missing standby was not logged", || {
        readiness().body.contains(missing)
    });
    assert_eq!(readiness().status, 200);
    assert_eq!(
        metric(&gateway, "lanes_gateway_postgres_standbys_missing"),
        1.0
    );
    for answer in refusals(3) {
        assert_eq!(
            answer.status, 503,
            "the standby is stopped: {}",
            answer.body
        );
        assert!(answer.header("retry-after").is_some());
        assert!(answer.body.contains(missing), "{}", answer.body);
    }
    for level in ["memory", "wal"] {
        assert_eq!(write(&gateway, 4, level).status, 204, "{level}");
        assert_eq!(event(&gateway, 4, level).status, 204, "{level}");
    }
    standby.start().unwrap();
    // A refused request may be stored on the primary. Repeating it makes it durable on the standby
    // too, and stores it once.
    until(
        "the same requests are not acknowledged once the standby is back",
        || refusals(3).iter().all(|answer| answer.status == 204),
    );
    until("the return of the standby was not logged", || {
        metric(&gateway, "lanes_gateway_postgres_standbys_missing") == 0.0
    });
    assert_eq!(readiness().body, "ready\n");
    let log = std::fs::read_to_string(gateway.log()).unwrap();
    for told in [missing, "standbys are connected again"] {
        assert_eq!(log.matches(told).count(), 1, "{told}: {log}");
    }
    standby.wait_replayed(&primary).unwrap();
    let events = "SELECT concat_ws(' ', count(*), count(DISTINCT n)) FROM t WHERE n IN (2, 3, 4)";
    for cluster in [&primary, &standby] {
        assert_eq!(cluster.scalar(DATABASE, events).unwrap(), "3 3");
        assert_eq!(samples(cluster), 3);
    }
}

#[test]
fn rows_acknowledged_at_level_replica_survive_the_primary() {
    let (mut primary, passwords) = cluster("replica_killed");
    primary
        .connect(DATABASE)
        .unwrap()
        .batch_execute(TABLE)
        .unwrap();
    let settings =
        settings("gateway", &primary, &passwords).environment("LANES_GATEWAY_ACK_TIMEOUT", "1s");
    let gateway = Gateway::start(settings).unwrap();
    let mut standby = synchronous_standby(&primary, "replica_promoted");
    until_taken(&gateway);
    let (written, noted) = (Mutex::new(BTreeSet::new()), Mutex::new(BTreeSet::new()));
    std::thread::scope(|scope| {
        for sender in 0..4_i64 {
            let (gateway, written, noted) = (&gateway, &written, &noted);
            scope.spawn(move || {
                for turn in 1.. {
                    let number = turn * 4 + sender;
                    let (answer, acknowledged) = match sender % 2 {
                        0 => (write(gateway, number, "replica"), written),
                        _ => (event(gateway, number, "replica"), noted),
                    };
                    match answer.status {
                        204 => _ = acknowledged.lock().unwrap().insert(number),
                        // The primary is dead, which ends the loop.
                        503 => break,
                        status => panic!("{status}: {}", answer.body),
                    }
                }
            });
        }
        let enough = |numbers: &Mutex<BTreeSet<i64>>| numbers.lock().unwrap().len() >= 50;
        until("nothing is acknowledged", || {
            enough(&written) && enough(&noted)
        });
        primary.kill9().unwrap();
    });
    standby.promote().unwrap();
    let numbers = |sql: &str| -> Vec<i64> {
        let rows = standby.connect(DATABASE).unwrap().query(sql, &[]).unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    };
    for (sql, acknowledged) in [
        (
            "SELECT value::int8 FROM metrics.replica ORDER BY 1",
            written,
        ),
        ("SELECT n FROM t WHERE n > 0 ORDER BY 1", noted),
    ] {
        let stored = numbers(sql);
        let distinct: BTreeSet<i64> = stored.iter().copied().collect();
        assert_eq!(distinct.len(), stored.len(), "{sql}: a row occurs twice");
        let lost: Vec<i64> = acknowledged
            .into_inner()
            .unwrap()
            .difference(&distinct)
            .copied()
            .collect();
        assert!(
            lost.is_empty(),
            "{sql}: acknowledged but not on the standby: {lost:?}"
        );
    }
}
