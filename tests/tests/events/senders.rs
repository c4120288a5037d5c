//! Many senders.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use super::{FLATBUFFERS, assert_stored, batch, begin, scalar, send, settings};
use lanes_tests::gateway::Gateway;
use lanes_wire::ColumnType;

const SENDERS: i64 = 8;
const REQUESTS: i64 = 40;
const ROWS: i64 = 25;

/// Rows of one request: numbers from `first`, and a service that some senders leave out and others put first.
fn events(sender: i64, first: i64) -> Vec<u8> {
    let (n, service) = (("n", ColumnType::Int64), ("service", ColumnType::Text));
    let columns = match sender % 3 {
        0 => vec![n],
        1 => vec![n, service],
        _ => vec![service, n],
    };
    batch(&columns, |buffers| {
        for row in first..first + ROWS {
            for buffer in buffers.iter_mut() {
                match buffer.column_type() {
                    ColumnType::Int64 => buffer.push_i64(row).unwrap(),
                    _ => buffer.push_text(&format!("service {}", row % 7)).unwrap(),
                }
            }
        }
    })
}

const TABLE: &str = "CREATE TABLE t (n int8 NOT NULL CHECK (n >= 0), service text) USING lanes; GRANT INSERT ON t TO lanes_gateway";

#[test]
fn all_rows_of_all_senders_arrive_once() {
    let (cluster, passwords, gateway) = begin("events_many", TABLE);
    let other = Gateway::start(settings("other", &cluster, &passwords)).unwrap();
    std::thread::scope(|scope| {
        for sender in 0..SENDERS {
            let gateway = if sender % 2 == 0 { &gateway } else { &other };
            scope.spawn(move || {
                for request in 0..REQUESTS {
                    let first = (sender * REQUESTS + request) * ROWS;
                    assert_stored(&send(gateway, "t", FLATBUFFERS, &events(sender, first)));
                    if request % 10 == 0 {
                        // A guilty neighbour harms nobody.
                        let answer = send(gateway, "t", FLATBUFFERS, &events(0, -5));
                        assert_eq!(answer.status, 400, "{}", answer.body);
                    }
                }
            });
        }
    });
    let rows = SENDERS * REQUESTS * ROWS;
    assert_eq!(
        scalar(
            &cluster,
            "SELECT concat_ws(' ', count(*), count(DISTINCT n), min(n), max(n),
                    count(*) FILTER (WHERE service = 'service ' || n % 7),
                    count(*) FILTER (WHERE service IS NULL)) FROM t"
        ),
        format!(
            "{rows} {rows} 0 {} {} {}",
            rows - 1,
            rows * 5 / 8,
            rows * 3 / 8
        )
    );
}

#[test]
fn what_is_acknowledged_survives_kills_and_is_there_once() {
    let (cluster, _passwords, mut gateway) = begin("events_kill", TABLE);
    let port = gateway.port();
    let acknowledged = AtomicI64::new(0);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for sender in 0..4 {
            let (acknowledged, is_over, url) = (
                &acknowledged,
                &is_over,
                format!("http://127.0.0.1:{port}/api/v1/events/t"),
            );
            scope.spawn(move || {
                let mut request = 0;
                while !is_over.load(Ordering::Acquire) {
                    let first = (sender * 1_000_000 + request) * ROWS;
                    let body = events(sender, first);
                    // Repeated, with its key, until it is acknowledged.
                    let deadline = Instant::now() + Duration::from_secs(60);
                    loop {
                        let answer = ureq::post(&url)
                            .header("content-type", FLATBUFFERS)
                            .header("idempotency-key", format!("{sender}/{request}"))
                            .send(&body[..]);
                        if answer.is_ok_and(|answer| answer.status() == 204) {
                            break;
                        }
                        assert!(Instant::now() < deadline, "no acknowledgement in a minute");
                        std::thread::sleep(Duration::from_millis(20));
                    }
                    acknowledged.fetch_add(ROWS, Ordering::AcqRel);
                    request += 1;
                }
            });
        }
        for _ in 0..5 {
            std::thread::sleep(Duration::from_millis(400));
            gateway.kill9().unwrap();
            gateway.start_again().unwrap();
            gateway.wait_ready().unwrap();
        }
        is_over.store(true, Ordering::Release);
    });
    let acknowledged = acknowledged.load(Ordering::Acquire);
    assert!(acknowledged > 0);
    assert_eq!(
        scalar(
            &cluster,
            "SELECT concat_ws(' ', count(*), count(DISTINCT n)) FROM t"
        ),
        format!("{acknowledged} {acknowledged}")
    );
}
