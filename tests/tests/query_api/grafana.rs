//! The requests of Grafana's Prometheus data source, with their parameters.

use super::{START, Stage};
use lanes_support::gateway::{Answer, encoded};
use serde_json::{Value, json};

fn data(answer: Answer) -> Value {
    assert_eq!(answer.status, 200, "{}", answer.body);
    let body: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(body["status"], json!("success"), "{body}");
    body["data"].clone()
}

#[test]
fn the_requests_of_grafana_are_answered() {
    let stage = Stage::start("query_api_grafana", &[]);
    // "Save & test": a query by POST, then what the server is.
    let health = stage.post("/api/v1/query", &[("query", "1+1"), ("time", "4")]);
    assert_eq!(
        data(health),
        json!({"resultType": "scalar", "result": [4, "2"]})
    );
    let build = stage.get("/api/v1/status/buildinfo", &[]);
    assert!(data(build)["version"].is_string());
    assert_eq!(data(stage.get("/api/v1/rules", &[]))["groups"], json!([]));

    editor(&stage);
    panel(&stage);
    variables(&stage);
    explore(&stage);
    annotations(&stage);
}

/// The variables of a dashboard: `label_values(up, job)`, `label_values(job)`, `label_names()`,
/// `metrics(req)`, `query_result(up == 1)`.
fn variables(stage: &Stage) {
    let (start, end) = (START.to_string(), (START + 60).to_string());
    let between = [("start", start.as_str()), ("end", end.as_str())];
    let of_up = [between[0], between[1], ("match[]", "up")];
    assert_eq!(
        data(stage.get("/api/v1/label/job/values", &of_up)),
        json!(["api", "db"])
    );
    assert_eq!(
        data(stage.get("/api/v1/label/code/values", &between)),
        json!(["200", "500"])
    );
    let names = data(stage.get("/api/v1/labels", &between));
    assert_eq!(names, json!(["__name__", "code", "job", "zone"]));
    let metrics = [
        between[0],
        between[1],
        ("match[]", "{__name__=~\".*req.*\"}"),
    ];
    assert_eq!(
        data(stage.get("/api/v1/label/__name__/values", &metrics)),
        json!(["requests_total"])
    );
    let result = [("query", "up == 1"), ("time", end.as_str())];
    let result = data(stage.post("/api/v1/query", &result));
    let labels = json!({"__name__": "up", "job": "api"});
    assert_eq!(result["result"][0]["metric"], labels);
    assert_eq!(result["result"].as_array().unwrap().len(), 1);
}

/// Explore: a query as a graph and as a table at once, with the statistics that its inspector
/// shows, and a query without series.
fn explore(stage: &Stage) {
    let (start, end) = (START.to_string(), (START + 60).to_string());
    let query = "sum by(code) (requests_total)";
    let times = [("start", start.as_str()), ("end", &end), ("step", "30")];
    let range = [&[("query", query), ("stats", "all")][..], &times].concat();
    let range = data(stage.post("/api/v1/query_range", &range));
    let points = range["result"][0]["values"].as_array().unwrap();
    let expected = [(0, "0"), (30, "30"), (60, "60")];
    let expected = expected.map(|(second, value)| json!([START + second, value]));
    assert_eq!(points[..], expected);
    assert!(range["stats"]["samples"]["totalQueryableSamples"].is_u64());
    let table = [("query", query), ("time", end.as_str())];
    let table = data(stage.post("/api/v1/query", &table));
    assert_eq!(table["result"].as_array().unwrap().len(), 2);
    let nothing = [&[("query", "no_such_metric")][..], &times].concat();
    let nothing = data(stage.post("/api/v1/query_range", &nothing));
    assert_eq!(nothing, json!({"resultType": "matrix", "result": []}));
}

/// Annotations: a range query with a step of its own, whose series with values are the marks.
fn annotations(stage: &Stage) {
    let (start, end) = (START.to_string(), (START + 60).to_string());
    let annotation = [
        ("query", "changes(requests_total{code=\"500\"}[30s]) > 1"),
        ("start", start.as_str()),
        ("end", end.as_str()),
        ("step", "60s"),
    ];
    // Grafana says by these headers which dashboard asks.
    let form = encoded(&annotation);
    let headers = [
        ("content-type", "application/x-www-form-urlencoded"),
        ("x-dashboard-uid", "pg_lanes_promql"),
        ("x-panel-id", "1"),
    ];
    let path = "/api/v1/query_range";
    let answer = stage.gateway.post(path, &headers, form.as_bytes());
    let marks = data(answer.unwrap());
    let labels = json!({"code": "500", "job": "api"});
    assert_eq!(marks["result"][0]["metric"], labels, "{marks}");
    let empty = [
        ("query", "ALERTS{alertstate=\"firing\"}"),
        annotation[1],
        annotation[2],
        annotation[3],
    ];
    let empty = data(stage.post(path, &empty));
    assert_eq!(empty["result"], json!([]));
}

/// The query editor: metrics with their metadata, labels, values.
fn editor(stage: &Stage) {
    let (start, end) = (START.to_string(), (START + 60).to_string());
    let between = [("start", start.as_str()), ("end", end.as_str())];
    let metrics = stage.get("/api/v1/label/__name__/values", &between);
    assert_eq!(data(metrics), json!(["requests_total", "up"]));
    let metadata = stage.get("/api/v1/metadata", &[("limit", "40000")]);
    assert_eq!(data(metadata), json!({}));
    let selector = ("match[]", "{__name__=\"up\"}");
    let limited = [between[0], between[1], selector, ("limit", "40000")];
    let names = stage.post("/api/v1/labels", &limited);
    assert_eq!(data(names), json!(["__name__", "job", "zone"]));
    let jobs = stage.get("/api/v1/label/job/values", &limited);
    assert_eq!(data(jobs), json!(["api", "db"]));
    let series = stage.post("/api/v1/series", &limited);
    assert_eq!(data(series).as_array().unwrap().len(), 2);
    let formatted = stage.post("/api/v1/format_query", &[("query", "sum(up)")]);
    assert_eq!(data(formatted), json!("sum(up)"));
}

/// A panel: a range, the latest value, and exemplars.
fn panel(stage: &Stage) {
    let (start, end) = (START.to_string(), (START + 60).to_string());
    let fractions = [
        ("end", format!("{}.000", START + 60)),
        (
            "query",
            "rate(requests_total{code=\"200\"}[20s])".to_owned(),
        ),
        ("start", format!("{START}.000")),
        ("step", "15".to_owned()),
    ];
    let fractions: Vec<(&str, &str)> = fractions
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let range = data(stage.post("/api/v1/query_range", &fractions));
    assert_eq!(range["resultType"], json!("matrix"));
    let labels = json!({"code": "200", "job": "api"});
    assert_eq!(range["result"][0]["metric"], labels);
    let last = range["result"][0]["values"]
        .as_array()
        .unwrap()
        .last()
        .unwrap();
    assert_eq!(*last, json!([START + 60, "1"]));
    let latest = [("query", "up{job=\"api\"}"), ("time", end.as_str())];
    let latest = data(stage.post("/api/v1/query", &latest));
    assert_eq!(latest["result"][0]["value"], json!([START + 60, "1"]));
    let exemplars = [
        ("query", "up"),
        ("start", start.as_str()),
        ("end", end.as_str()),
    ];
    assert_eq!(
        data(stage.post("/api/v1/query_exemplars", &exemplars)),
        json!([])
    );
}
