//! A query that would run for hours ends when it is told to: by its timeout, by a cancelled
//! statement, by a client that goes away.
//!
//! Nothing measures time: each test waits until PostgreSQL says that the sessions are idle, which it
//! would not say within the patience of the tests if the query ran to its end.

use super::limits::are_idle;
use super::{START, Stage, until};
use lanes_support::provision::DATABASE;
use lanes_support::remote_write::{Series, body};
use std::io::Write;
use std::net::TcpStream;

/// Each of 300 series has a value for a day, of which 3 hours are sorted anew at each of 11,000
/// steps.
const LONG: &str = "quantile_over_time(0.5, long[3h:1s])";
const LOOKBACK: &str = "1d";

/// The parameters of the query with some more.
fn parameters<'p>(times: &'p [String; 2], more: &[(&'p str, &'p str)]) -> Vec<(&'p str, &'p str)> {
    let own = [
        ("query", LONG),
        ("start", times[0].as_str()),
        ("end", times[1].as_str()),
        ("step", "1"),
        ("lookback_delta", LOOKBACK),
    ];
    [&own[..], more].concat()
}

#[test]
fn a_long_query_ends_when_it_is_told_to() {
    let stage = Stage::start("query_api_cancellation", &[]);
    let series = (0..300).map(|number| {
        let label = number.to_string();
        Series::new("long", &[("n", &label)], vec![(START * 1000, 1.0)])
    });
    let series: Vec<Series> = series.collect();
    let stored = stage.gateway.remote_write(&body(&series), None).unwrap();
    assert_eq!(stored.status, 204);
    let times = [20_000, 31_000].map(|later| (START + later).to_string());
    timeout(&stage, &times);
    cancelled_statement(&stage, &times);
    client_that_goes_away(&stage, &times);
    // The session answers the next query.
    let at = START.to_string();
    let counted = stage.body("/api/v1/query", &[("query", "count(long)"), ("time", &at)]);
    assert!(counted.contains(r#""300"]"#), "{counted}");
    until("the sessions are idle", || are_idle(&stage));
}

fn timeout(stage: &Stage, times: &[String; 2]) {
    let parameters = parameters(times, &[("timeout", "500ms")]);
    let answer = stage.get("/api/v1/query_range", &parameters);
    let expected = r#"{"status":"error","errorType":"timeout","error":"query timed out in expression evaluation"}"#;
    assert_eq!((answer.status, answer.body.as_str()), (503, expected));
    until("the sessions are idle", || are_idle(stage));
    // PostgreSQL itself ended it.
    assert_eq!(stage.metric("queries_canceled_total"), 0.0);
}

fn cancelled_statement(stage: &Stage, times: &[String; 2]) {
    let cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'lanes-gateway query' AND state = 'active' AND query LIKE '%promql_api%'";
    std::thread::scope(|scope| {
        let parameters = parameters(times, &[]);
        let asked = scope.spawn(move || stage.get("/api/v1/query_range", &parameters));
        until("the query is cancelled", || {
            !stage.cluster.query(DATABASE, cancel).unwrap().is_empty()
        });
        let answer = asked.join().unwrap();
        let expected = r#"{"status":"error","errorType":"canceled","error":"query was canceled in expression evaluation"}"#;
        assert_eq!((answer.status, answer.body.as_str()), (503, expected));
    });
    until("the sessions are idle", || are_idle(stage));
}

fn client_that_goes_away(stage: &Stage, times: &[String; 2]) {
    let parameters = lanes_support::gateway::encoded(&parameters(times, &[]));
    let mut stream = TcpStream::connect(("127.0.0.1", stage.gateway.port())).unwrap();
    let line = format!("GET /api/v1/query_range?{parameters} HTTP/1.1");
    write!(stream, "{line}\r\nHost: 127.0.0.1\r\n\r\n").unwrap();
    // A session is active for a moment as it is taken, too.
    let running = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'lanes-gateway query' AND state = 'active' AND query LIKE '%promql_api%'";
    until("the query runs", || {
        !stage.cluster.query(DATABASE, running).unwrap().is_empty()
    });
    drop(stream);
    until("the sessions are idle", || are_idle(stage));
    until("the session is free", || {
        stage.metric("query_sessions_in_use") == 0.0
    });
    assert_eq!(stage.metric("queries_canceled_total"), 1.0);
    let gone = r#"queries_total{outcome="client_gone",route="/api/v1/query_range"}"#;
    assert_eq!(stage.metric(gone), 1.0);
}
