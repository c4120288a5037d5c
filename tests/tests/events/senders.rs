//! Many concurrent senders.

use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use super::{FLATBUFFERS, assert_stored, batch, begin, scalar, send, settings};
use lanes_support::gateway::Gateway;
use lanes_support::remote_write::{Series, body};
use lanes_wire::ColumnType;

const SENDERS: i64 = 8;
const REQUESTS: i64 = 40;
const ROWS: i64 = 25;

/// Returns the rows of one request: numbers from `first`, and a service, which some senders omit
/// and others send first.
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
                        // A refused request does not affect the others in its batch.
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
fn acknowledged_rows_survive_kills_and_are_stored_once() {
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
                    // The request is repeated with its key until it is acknowledged.
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

/// The number of idle connections, more than a gateway allows to wait.
const IDLE_CONNECTIONS: usize = 10_000;

#[test]
fn idle_slow_and_dying_clients_do_not_affect_others() {
    let (cluster, _passwords, gateway) = begin("events_idle", TABLE);
    raise_file_limit();
    let connect = || TcpStream::connect(("127.0.0.1", gateway.port())).unwrap();
    let idle: Vec<TcpStream> = (0..IDLE_CONNECTIONS).map(|_| connect()).collect();
    let head = "POST /api/v1/events/t HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-flatbuffers\r\n\
                content-length: 1000\r\n\r\n";
    // The connections stop after one byte of the head, after the head, and in the middle of the
    // body.
    let mut slow = connect();
    slow.write_all(b"P").unwrap();
    let mut waiting = connect();
    waiting.write_all(head.as_bytes()).unwrap();
    let mut dying = connect();
    dying.write_all(head.as_bytes()).unwrap();
    dying.write_all(&[0; 500]).unwrap();
    drop(dying);
    for request in 0..20 {
        assert_stored(&send(
            &gateway,
            "t",
            FLATBUFFERS,
            &events(1, request * ROWS),
        ));
    }
    assert_eq!(
        scalar(&cluster, "SELECT count(*) FROM t"),
        (20 * ROWS).to_string()
    );
    drop((idle, slow, waiting));
}

fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: maximum,
            maximum,
        },
    )
    .unwrap();
}

#[test]
fn a_locked_table_delays_neither_samples_nor_other_tables() {
    let (cluster, passwords, gateway) = begin(
        "events_locked",
        "CREATE TABLE t (n int8, service text) USING lanes; CREATE TABLE u (LIKE t) USING lanes;
         GRANT INSERT ON t, u TO lanes_gateway",
    );
    drop(gateway);
    let few = settings("few", &cluster, &passwords)
        .environment("LANES_GATEWAY_POSTGRES_SESSIONS", "2")
        .environment("LANES_GATEWAY_ACK_TIMEOUT", "8s");
    let gateway = Gateway::start(few).unwrap();
    assert_stored(&send(&gateway, "t", FLATBUFFERS, &events(1, 0)));
    let mut blocker = cluster.connect(super::DATABASE).unwrap();
    blocker
        .batch_execute("BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
        .unwrap();
    std::thread::scope(|scope| {
        let blocked: Vec<_> = (1..=20)
            .map(|request| {
                let gateway = &gateway;
                scope.spawn(move || send(gateway, "t", FLATBUFFERS, &events(1, request * ROWS)))
            })
            .collect();
        // Wait until a session of PostgreSQL waits for the lock.
        let deadline = Instant::now() + Duration::from_secs(10);
        while scalar(&cluster, "SELECT count(*) FROM pg_locks WHERE NOT granted") == "0" {
            assert!(Instant::now() < deadline, "nothing waits for the table");
            std::thread::sleep(Duration::from_millis(10));
        }
        for request in 0..4 {
            assert_stored(&send(
                &gateway,
                "u",
                FLATBUFFERS,
                &events(1, request * ROWS),
            ));
            let series = Series::new("up", &[], vec![(1_700_000_000_000 + request, 1.0)]);
            assert_stored(&gateway.remote_write(&body(&[series]), None).unwrap());
        }
        blocker.batch_execute("ROLLBACK").unwrap();
        for request in blocked {
            let status = request.join().unwrap().status;
            assert!(status == 204 || status == 503, "{status}");
        }
    });
    assert_eq!(
        scalar(&cluster, "SELECT count(*) FROM u"),
        (4 * ROWS).to_string()
    );
}

#[test]
fn an_overload_is_reported_and_loses_nothing() {
    let (cluster, passwords, gateway) = begin("events_overload", TABLE);
    let small = settings("small", &cluster, &passwords)
        .environment("LANES_GATEWAY_RECEIVE_BODY_BYTES_MAX", "1MiB")
        .environment("LANES_GATEWAY_RECEIVE_SAMPLES_MAX", "10000")
        .environment("LANES_GATEWAY_RECEIVE_PENDING_BYTES_MAX", "1MiB")
        .environment("LANES_GATEWAY_RECEIVE_PENDING_WAIT", "100ms")
        .environment("LANES_GATEWAY_ACK_TIMEOUT", "4s");
    drop(gateway);
    let gateway = Gateway::start(small).unwrap();
    let mut blocker = cluster.connect(super::DATABASE).unwrap();
    // The request makes the table known.
    assert_stored(&send(&gateway, "t", FLATBUFFERS, &events(1, 0)));
    blocker
        .batch_execute("BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
        .unwrap();
    const REQUESTS: i64 = 200;
    const LARGE: i64 = 1_000;
    let answers: Vec<(u16, Option<String>)> = std::thread::scope(|scope| {
        let sent: Vec<_> = (1..=REQUESTS)
            .map(|request| {
                let gateway = &gateway;
                scope.spawn(move || {
                    let body = batch(&[("n", ColumnType::Int64)], |buffers| {
                        let first = request * LARGE;
                        buffers[0]
                            .extend_i64(&(first..first + LARGE).collect::<Vec<_>>())
                            .unwrap();
                    });
                    let answer = send(gateway, "t", FLATBUFFERS, &body);
                    (
                        answer.status,
                        answer.header("retry-after").map(str::to_owned),
                    )
                })
            })
            .collect();
        sent.into_iter()
            .map(|request| request.join().unwrap())
            .collect()
    });
    assert!(
        answers
            .iter()
            .all(|(status, retry_after)| *status == 503 && retry_after.is_some()),
        "nothing can be stored while the table is locked: {answers:?}"
    );
    blocker.batch_execute("ROLLBACK").unwrap();
    assert_stored(&send(&gateway, "t", FLATBUFFERS, &events(1, 1_000_000)));
    // A request with a 503 may be stored or not, but completely or not at all.
    assert_eq!(
        scalar(
            &cluster,
            "SELECT count(*) FROM (SELECT FROM t WHERE service IS NULL GROUP BY n / 1000 HAVING count(*) <> 1000) AS torn"
        ),
        "0"
    );
    assert_eq!(
        scalar(&cluster, "SELECT count(*) FROM t WHERE service IS NOT NULL"),
        (2 * ROWS).to_string()
    );
}
