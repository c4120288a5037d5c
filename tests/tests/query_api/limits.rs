//! Few sessions, slow queries, clients that go away, roles without privileges, PostgreSQL stopped.

use super::{START, Stage, until};
use lanes_support::cluster::Stop;
use lanes_support::gateway::Settings;
use lanes_support::provision::DATABASE;
use lanes_support::remote_write::{Series, body};
use postgres::Client;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;

/// Blocks all queries of samples until it is dropped.
pub fn lock(stage: &Stage) -> Client {
    let mut client = stage.cluster.connect(DATABASE).unwrap();
    client
        .batch_execute("BEGIN; LOCK TABLE lanes.samples IN ACCESS EXCLUSIVE MODE")
        .unwrap();
    client
}

/// The states of the sessions that read.
pub fn states(stage: &Stage) -> Vec<String> {
    let rows = stage.cluster.query(
        "postgres",
        "SELECT state FROM pg_stat_activity WHERE application_name = 'lanes-gateway query' AND usename = 'lanes_reader' ORDER BY 1",
    );
    let states = rows.unwrap().into_iter().flatten();
    states.map(Option::unwrap_or_default).collect()
}

/// Whether sessions are open, all idle. Each worker may have some.
pub fn are_idle(stage: &Stage) -> bool {
    let states = states(stage);
    !states.is_empty() && states.iter().all(|state| state == "idle")
}

/// Sends a query of samples, and returns its connection without reading the answer.
fn ask(stage: &Stage) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", stage.gateway.port())).unwrap();
    let line = format!("GET /api/v1/query?query=up&time={START} HTTP/1.1");
    write!(stream, "{line}\r\nHost: 127.0.0.1\r\n\r\n").unwrap();
    stream
}

#[test]
fn sessions_are_few_and_clients_that_go_away_free_them() {
    let stage = Stage::start(
        "query_api_sessions",
        &[
            ("LANES_GATEWAY_QUERY_SESSIONS", "2"),
            ("LANES_GATEWAY_QUERY_QUEUE", "1"),
            ("LANES_GATEWAY_QUERY_QUEUE_WAIT", "500ms"),
            ("LANES_GATEWAY_LISTEN_WORKERS", "2"),
        ],
    );
    let locked = lock(&stage);
    let asking = [ask(&stage), ask(&stage)];
    until("two queries run", || states(&stage) == ["active", "active"]);
    assert_eq!(stage.metric("query_sessions_in_use"), 2.0);

    let waited = stage.get("/api/v1/query", &[("query", "up")]);
    let expected = r#"{"status":"error","errorType":"unavailable","error":"no session became free within 500ms (query.queue_wait)"}"#;
    assert_eq!((waited.status, waited.body.as_str()), (503, expected));
    assert_eq!(waited.header("retry-after"), Some("2"));
    assert_eq!(stage.metric("queries_refused_total"), 1.0);
    assert_eq!(states(&stage).len(), 2);

    // Writes have sessions of their own. What needs no session is answered.
    let formatted = stage.get("/api/v1/format_query", &[("query", "up")]);
    assert_eq!(formatted.status, 200);

    drop(asking);
    until("the statements are cancelled", || {
        states(&stage) == ["idle", "idle"]
    });
    until("the sessions are free", || {
        stage.metric("query_sessions_in_use") == 0.0
    });
    assert_eq!(stage.metric("queries_canceled_total"), 2.0);
    let gone = r#"queries_total{outcome="client_gone",route="/api/v1/query"}"#;
    assert_eq!(stage.metric(gone), 2.0);

    drop(locked);
    let at = START.to_string();
    let body = stage.body("/api/v1/query", &[("query", "up"), ("time", &at)]);
    assert!(body.contains(r#""job":"db""#), "{body}");
    assert_eq!(
        states(&stage),
        ["idle", "idle"],
        "the sessions are used again"
    );
}

#[test]
fn workers_share_the_number_of_sessions() {
    let stage = Stage::start(
        "query_api_workers",
        &[
            ("LANES_GATEWAY_QUERY_SESSIONS", "1"),
            ("LANES_GATEWAY_LISTEN_WORKERS", "2"),
        ],
    );
    let pid = "SELECT pid::text FROM pg_stat_activity WHERE application_name = 'lanes-gateway query' AND usename = 'lanes_reader'";
    let mut pids = BTreeSet::new();
    // The workers take connections in turns.
    for _ in 0..4 {
        let mut head = [0; 12];
        ask(&stage).read_exact(&mut head).unwrap();
        assert_eq!(head, *b"HTTP/1.1 200");
        until("only one session is open", || states(&stage).len() == 1);
        let rows = stage.cluster.query("postgres", pid).unwrap();
        pids.extend(rows.into_iter().flatten().flatten());
    }
    // A worker uses its own session only.
    assert!(pids.len() > 1, "{pids:?}");
}

#[test]
fn slow_queries_time_out_and_leave_their_session_idle() {
    let stage = Stage::start(
        "query_api_timeout",
        &[("LANES_GATEWAY_QUERY_TIMEOUT", "1s")],
    );
    let locked = lock(&stage);
    let expected = r#"{"status":"error","errorType":"timeout","error":"query timed out in expression evaluation"}"#;
    // The second asks for less, the third may not ask for more.
    for timeout in ["", "200ms", "10m"] {
        let answer = stage.get("/api/v1/query", &[("query", "up"), ("timeout", timeout)]);
        assert_eq!((answer.status, answer.body.as_str()), (503, expected));
        until("the sessions are idle", || are_idle(&stage));
    }
    // PostgreSQL itself ended them.
    assert_eq!(stage.metric("queries_canceled_total"), 0.0);
    drop(locked);
    // The short timeout does not stay with the session.
    let body = stage.body("/api/v1/query", &[("query", "count(up)")]);
    assert!(body.contains("success"), "{body}");
    let cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'lanes-gateway query' AND state = 'active'";
    let _locked = lock(&stage);
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| stage.get("/api/v1/query", &[("query", "up")]));
        until("the query is cancelled", || {
            !stage.cluster.query("postgres", cancel).unwrap().is_empty()
        });
        let answer = asked.join().unwrap();
        assert_eq!(answer.status, 503);
        assert!(
            answer.body.contains(r#""errorType":"canceled""#),
            "{}",
            answer.body
        );
    });
}

#[test]
fn queries_need_a_role_that_may_read_and_a_running_server() {
    let mut stage = Stage::start("query_api_roles", &[]);
    let run = |stage: &Stage, statement: &str| {
        stage
            .cluster
            .connect(DATABASE)
            .unwrap()
            .batch_execute(statement)
            .unwrap();
    };
    run(
        &stage,
        "REVOKE EXECUTE ON FUNCTION lanes.promql_api FROM lanes_reader",
    );
    let answer = stage.get("/api/v1/query", &[("query", "up")]);
    assert_eq!(answer.status, 403, "{}", answer.body);
    assert!(
        answer
            .body
            .contains("permission denied for function promql_api")
    );
    assert!(
        answer.body.contains("lanes.grant_reader"),
        "{}",
        answer.body
    );
    run(&stage, "SELECT lanes.grant_reader('lanes_reader')");
    run(&stage, "REVOKE SELECT ON lanes.samples FROM lanes_reader");
    let answer = stage.get("/api/v1/query", &[("query", "up")]);
    assert_eq!(answer.status, 403, "{}", answer.body);
    run(&stage, "SELECT lanes.grant_reader('lanes_reader')");
    assert_eq!(stage.get("/api/v1/query", &[("query", "up")]).status, 200);

    stage.cluster.stop(Stop::Fast).unwrap();
    let answer = stage.get("/api/v1/query", &[("query", "up")]);
    assert_eq!(answer.status, 503, "{}", answer.body);
    assert!(
        answer.body.contains(r#""errorType":"unavailable""#),
        "{}",
        answer.body
    );
    assert_eq!(answer.header("retry-after"), Some("2"));
    stage.cluster.start().unwrap();
    until("queries are answered again", || {
        stage.get("/api/v1/query", &[("query", "up")]).status == 200
    });
}

#[test]
fn an_answer_that_cannot_be_completed_ends_its_connection() {
    let stage = Stage::start("query_api_broken", &[]);
    let series = (0..100).map(|number| {
        let label = number.to_string();
        Series::new("wide", &[("n", &label)], vec![(START * 1000, 1.0)])
    });
    let series: Vec<Series> = series.collect();
    let stored = stage.gateway.remote_write(&body(&series), None).unwrap();
    assert_eq!(stored.status, 204);
    // Ten thousand points of each series: more than the buffers between server and client hold.
    let mut stream = TcpStream::connect(("127.0.0.1", stage.gateway.port())).unwrap();
    let end = START + 250;
    let line =
        format!("GET /api/v1/query_range?query=wide&start={START}&end={end}&step=0.025 HTTP/1.1");
    write!(stream, "{line}\r\nHost: 127.0.0.1\r\n\r\n").unwrap();
    let mut head = [0; 15];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    let sends = "SELECT pid FROM pg_stat_activity WHERE application_name = 'lanes-gateway query' AND wait_event = 'ClientWrite'";
    let found = || stage.cluster.query("postgres", sends).unwrap();
    // The server does not wait all the time, so the process is taken from the same look.
    let mut waiting = Vec::new();
    until("the server waits for the client", || {
        waiting = found();
        !waiting.is_empty()
    });
    let process = waiting[0][0].clone().unwrap();
    let end_it = format!("SELECT pg_terminate_backend({process})");
    stage.cluster.query("postgres", &end_it).unwrap();

    let mut rest = Vec::new();
    let read = stream.read_to_end(&mut rest);
    assert!(
        read.is_err() || !rest.ends_with(b"0\r\n\r\n"),
        "the body ends"
    );
    assert!(rest.len() > 1 << 20, "{}", rest.len());
    let failed = r#"queries_total{outcome="unavailable",route="/api/v1/query_range"}"#;
    until("the failure is counted", || stage.metric(failed) == 1.0);
    let log = std::fs::read_to_string(stage.gateway.log()).unwrap();
    assert!(
        log.contains("an answer to a query could not be completed"),
        "{log}"
    );
}

#[test]
fn without_a_connection_queries_are_off() {
    let stage = Stage::start_with("query_api_off", |settings| Settings {
        reader_password: String::new(),
        ..settings
    });
    for path in ["query", "labels", "label/job/values", "status/buildinfo"] {
        let answer = stage.get(&format!("/api/v1/{path}"), &[]);
        assert_eq!(answer.status, 503, "{path}");
        assert!(answer.body.contains("query.connection"), "{}", answer.body);
    }
}
