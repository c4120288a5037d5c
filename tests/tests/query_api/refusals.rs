//! Wrong requests, and the words of Prometheus for them.

use super::{START, Stage};

/// The body of an error.
fn error(kind: &str, text: &str) -> String {
    let text = serde_json::Value::from(text);
    format!(r#"{{"status":"error","errorType":"{kind}","error":{text}}}"#)
}

#[test]
fn wrong_requests_are_refused_in_the_words_of_prometheus() {
    let stage = Stage::start("query_api_refusals", &[]);
    let range = |query, start, end, step| {
        vec![
            ("query", query),
            ("start", start),
            ("end", end),
            ("step", step),
        ]
    };
    for (route, parameters, status, kind, text) in [
        (
            "query",
            vec![("query", "up{")],
            400,
            "bad_data",
            r#"invalid parameter "query": 1:4: parse error: unexpected end of input inside braces"#,
        ),
        (
            "query",
            vec![],
            400,
            "bad_data",
            r#"invalid parameter "query": unknown position: parse error: no expression found in input"#,
        ),
        (
            "query",
            vec![("query", "up"), ("time", "x")],
            400,
            "bad_data",
            r#"invalid parameter "time": invalid time value for 'time': cannot parse "x" to a valid timestamp"#,
        ),
        (
            "query",
            vec![("query", "up"), ("timeout", "x")],
            400,
            "bad_data",
            r#"invalid parameter "timeout": cannot parse "x" to a valid duration"#,
        ),
        (
            "query",
            vec![("query", "up"), ("lookback_delta", "x")],
            400,
            "bad_data",
            r#"error parsing lookback delta duration: cannot parse "x" to a valid duration"#,
        ),
        (
            "query",
            vec![("query", "up"), ("limit", "-1")],
            400,
            "bad_data",
            r#"invalid parameter "limit": limit must be non-negative"#,
        ),
        (
            "query_range",
            range("up[5m]", "0", "10", "1"),
            400,
            "bad_data",
            r#"invalid parameter "query": invalid expression type "range vector" for range query, must be Scalar or instant Vector"#,
        ),
        (
            "query_range",
            range("up", "2", "1", "1"),
            400,
            "bad_data",
            r#"invalid parameter "end": end timestamp must not be before start time"#,
        ),
        (
            "query_range",
            range("up", "0", "20000", "1"),
            400,
            "bad_data",
            "exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)",
        ),
        (
            "series",
            vec![],
            400,
            "bad_data",
            "no match[] parameter provided",
        ),
        (
            "series",
            vec![("match[]", "{job=''}")],
            400,
            "bad_data",
            r#"invalid parameter "match[]": match[] must contain at least one non-empty matcher"#,
        ),
        (
            "labels",
            vec![("match[]", "{job=''}")],
            400,
            "bad_data",
            "match[] must contain at least one non-empty matcher",
        ),
        (
            "metadata",
            vec![("limit", "x")],
            400,
            "bad_data",
            "limit must be a number",
        ),
        (
            "status/tsdb",
            vec![("limit", "0")],
            400,
            "bad_data",
            "limit must be a positive number",
        ),
    ] {
        let answer = stage.get(&format!("/api/v1/{route}"), &parameters);
        assert_eq!(answer.body, error(kind, text));
        assert_eq!(answer.status, status, "{text}");
        assert_eq!(answer.header("content-type"), Some("application/json"));
    }
    what_the_database_refuses(&stage);
    let refused = r#"queries_total{outcome="bad_data",route="/api/v1/query"}"#;
    assert_eq!(stage.metric(refused), 7.0);
}

fn what_the_database_refuses(stage: &Stage) {
    let at = (START + 60).to_string();
    let parameters = [("query", "up * on () up"), ("time", at.as_str())];
    let answer = stage.get("/api/v1/query", &parameters);
    assert_eq!(answer.status, 422, "{}", answer.body);
    let expected = r#"{"status":"error","errorType":"execution","error":"found duplicate series for the match group {}"#;
    assert!(answer.body.starts_with(expected), "{}", answer.body);
    // A NUL is no text of PostgreSQL.
    let answer = stage.get("/api/v1/query", &[("query", "'\0'")]);
    assert_eq!(answer.status, 422, "{}", answer.body);
    let long = "x".repeat(2 << 20);
    let answer = stage.post("/api/v1/query", &[("query", &long)]);
    assert_eq!(
        answer.body,
        error("bad_data", "body is longer than 1048576 bytes")
    );
}
