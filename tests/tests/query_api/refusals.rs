//! Wrong requests, and the words of Prometheus for them.

use super::{START, Stage};

/// The body of an error.
fn error(kind: &str, text: &str) -> String {
    let text = serde_json::Value::from(text);
    format!(r#"{{"status":"error","errorType":"{kind}","error":{text}}}"#)
}

/// A route, parameters and the text of the error.
type Refusal = (
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
);

#[rustfmt::skip]
const REFUSALS: [Refusal; 15] = [
    ("query", &[("query", "up{")],
        r#"invalid parameter "query": 1:4: parse error: unexpected end of input inside braces"#),
    ("query", &[],
        r#"invalid parameter "query": unknown position: parse error: no expression found in input"#),
    ("query", &[("query", "up"), ("time", "x")],
        r#"invalid parameter "time": invalid time value for 'time': cannot parse "x" to a valid timestamp"#),
    ("query", &[("query", "up"), ("timeout", "x")],
        r#"invalid parameter "timeout": cannot parse "x" to a valid duration"#),
    ("query", &[("query", "up"), ("lookback_delta", "x")],
        r#"error parsing lookback delta duration: cannot parse "x" to a valid duration"#),
    ("query", &[("query", "up"), ("limit", "-1")],
        r#"invalid parameter "limit": limit must be non-negative"#),
    ("query_range", &[("query", "up[5m]"), ("start", "0"), ("end", "10"), ("step", "1")],
        r#"invalid parameter "query": invalid expression type "range vector" for range query, must be Scalar or instant Vector"#),
    ("query_range", &[("query", "up"), ("start", "2"), ("end", "1"), ("step", "1")],
        r#"invalid parameter "end": end timestamp must not be before start time"#),
    ("query_range", &[("query", "up"), ("start", "1"), ("end", "2"), ("step", "0")],
        r#"invalid parameter "step": zero or negative query resolution step widths are not accepted. Try a positive integer"#),
    ("query_range", &[("query", "up"), ("start", "0"), ("end", "20000"), ("step", "1")],
        "exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)"),
    ("series", &[], "no match[] parameter provided"),
    ("series", &[("match[]", "{job=''}")],
        r#"invalid parameter "match[]": match[] must contain at least one non-empty matcher"#),
    ("labels", &[("match[]", "{job=''}")], "match[] must contain at least one non-empty matcher"),
    ("metadata", &[("limit", "x")], "limit must be a number"),
    ("status/tsdb", &[("limit", "0")], "limit must be a positive number"),
];

#[test]
fn wrong_requests_are_refused_in_the_words_of_prometheus() {
    let stage = Stage::start("query_api_refusals", &[]);
    for (route, parameters, text) in REFUSALS {
        let answer = stage.get(&format!("/api/v1/{route}"), parameters);
        assert_eq!(answer.body, error("bad_data", text));
        assert_eq!(answer.status, 400, "{text}");
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
