//! The body of every route, to the byte.

use super::{START, Stage};
use lanes_support::provision::DATABASE;
use lanes_support::remote_write::{Series, body};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

fn success(data: &str) -> String {
    format!(r#"{{"status":"success","data":{data}}}"#)
}

#[test]
fn every_route_answers_as_prometheus_does() {
    let stage = Stage::start("query_api_answers", &[]);
    queries(&stage);
    ranges(&stage);
    labels(&stage);
    series(&stage);
    federation(&stage);
    texts(&stage);
    server(&stage);
    compression(&stage);
    methods(&stage);
}

fn queries(stage: &Stage) {
    let at = (START + 60).to_string();
    let body = |query: &str| stage.body("/api/v1/query", &[("query", query), ("time", &at)]);
    let up = format!(
        r#"{{"resultType":"vector","result":[{{"metric":{{"__name__":"up","job":"api"}},"value":[{at},"1"]}},{{"metric":{{"__name__":"up","job":"db","zone":"\"é\""}},"value":[{at},"0"]}}]}}"#
    );
    assert_eq!(body("up"), success(&up));
    let sum =
        format!(r#"{{"resultType":"vector","result":[{{"metric":{{}},"value":[{at},"66"]}}]}}"#);
    assert_eq!(body("sum(requests_total)"), success(&sum));
    let scalar = format!(r#"{{"resultType":"scalar","result":[{at},"2"]}}"#);
    assert_eq!(body("1 + 1"), success(&scalar));
    let text = format!(r#"{{"resultType":"string","result":[{at},"a"]}}"#);
    assert_eq!(body("'a'"), success(&text));
    let matrix = format!(
        r#"{{"resultType":"matrix","result":[{{"metric":{{"__name__":"up","job":"api"}},"values":[[{},"1"],[{at},"1"]]}}]}}"#,
        START + 50
    );
    assert_eq!(body("up{job='api'}[15s]"), success(&matrix));
    assert_eq!(
        body("absent_metric"),
        success(r#"{"resultType":"vector","result":[]}"#)
    );

    optional_parameters(stage, &up);
}

/// `up` is the data of the query `up` at the last sample.
fn optional_parameters(stage: &Stage, up: &str) {
    // The age up to which a sample counts.
    let late = (START + 60 + 299).to_string();
    let later = (START + 60 + 301).to_string();
    let found = |time: &str, delta: &str| {
        let parameters = [
            ("query", "count(up)"),
            ("time", time),
            ("lookback_delta", delta),
        ];
        stage.body("/api/v1/query", &parameters).contains("\"2\"")
    };
    assert!(found(&late, ""));
    assert!(!found(&later, ""));
    assert!(found(&later, "10m"));
    assert!(!found(&late, "60"));

    // RFC 3339, a limit, statistics.
    let time = ("time", "2023-11-14T22:14:20Z");
    assert_eq!(
        stage.body("/api/v1/query", &[("query", "up"), time]),
        success(up)
    );
    let limited = stage.body("/api/v1/query", &[("query", "up"), time, ("limit", "1")]);
    let limited: Value = serde_json::from_str(&limited).unwrap();
    assert_eq!(limited["data"]["result"].as_array().unwrap().len(), 1);
    assert_eq!(
        limited["warnings"],
        json!(["results truncated due to limit"])
    );
    let counted = stage.body("/api/v1/query", &[("query", "up"), time, ("stats", "all")]);
    let counted: Value = serde_json::from_str(&counted).unwrap();
    let samples = &counted["data"]["stats"]["samples"];
    assert!(
        samples["totalQueryableSamples"].as_u64() >= Some(2),
        "{samples}"
    );
}

fn ranges(stage: &Stage) {
    let (start, end) = (START.to_string(), (START + 60).to_string());
    let parameters = [
        ("query", "sum by (code) (rate(requests_total[20s]))"),
        ("start", &start),
        ("end", &end),
        ("step", "30s"),
    ];
    let expected = format!(
        r#"{{"resultType":"matrix","result":[{{"metric":{{"code":"200"}},"values":[[{0},"1"],[{1},"1"]]}},{{"metric":{{"code":"500"}},"values":[[{0},"0.1"],[{1},"0.1"]]}}]}}"#,
        START + 30,
        START + 60
    );
    assert_eq!(
        stage.body("/api/v1/query_range", &parameters),
        success(&expected)
    );
    let posted = stage.post("/api/v1/query_range", &parameters);
    assert_eq!((posted.status, posted.body), (200, success(&expected)));
}

fn labels(stage: &Stage) {
    let body = |path: &str, parameters: &[(&str, &str)]| stage.body(path, parameters);
    let names = success(r#"["__name__","code","job","zone"]"#);
    assert_eq!(body("/api/v1/labels", &[]), names);
    assert_eq!(stage.post("/api/v1/labels", &[]).body, names);
    assert_eq!(
        body("/api/v1/labels", &[("match[]", "up{job!='api'}")]),
        success(r#"["__name__","job","zone"]"#)
    );
    assert_eq!(
        body(
            "/api/v1/labels",
            &[("match[]", "up"), ("match[]", "requests_total")]
        ),
        names
    );
    assert_eq!(
        body("/api/v1/labels", &[("limit", "2")]),
        r#"{"status":"success","data":["__name__","code"],"warnings":["results truncated due to limit"]}"#
    );
    assert_eq!(body("/api/v1/labels", &[("limit", "4")]), names);

    let jobs = success(r#"["api","db"]"#);
    assert_eq!(body("/api/v1/label/job/values", &[]), jobs);
    assert_eq!(body("/api/v1/label/U__job/values", &[]), jobs);
    assert_eq!(body("/api/v1/label/%6Aob/values", &[]), jobs);
    assert_eq!(
        body("/api/v1/label/zone/values", &[]),
        success(r#"["\"é\""]"#)
    );
    assert_eq!(body("/api/v1/label/missing/values", &[]), success("[]"));
    assert_eq!(
        body(
            "/api/v1/label/__name__/values",
            &[("match[]", "{job='db'}")]
        ),
        success(r#"["up"]"#)
    );
    labels_between(stage);
}

/// Only series with samples between `start` and `end` have labels.
fn labels_between(stage: &Stage) {
    let late = Series::new(
        "late",
        &[("shift", "night")],
        vec![((START + 7200) * 1000, 1.0)],
    );
    let stored = stage.gateway.remote_write(&body(&[late]), None).unwrap();
    assert_eq!(stored.status, 204);
    let between = |path: &str, start: i64, end: i64| {
        let (start, end) = (start.to_string(), end.to_string());
        let times = [("start", start.as_str()), ("end", end.as_str())];
        stage.body(&format!("/api/v1/{path}"), &times)
    };
    let early = success(r#"["__name__","code","job","zone"]"#);
    let names = |start, end| between("labels", START + start, START + end);
    assert_eq!(names(0, 7199), early);
    assert_eq!(names(60, 60), early);
    assert_eq!(names(61, 7200), success(r#"["__name__","shift"]"#));
    assert_eq!(names(7201, 9999), success("[]"));
    let values = |start, end| between("label/__name__/values", START + start, START + end);
    assert_eq!(values(-10, 0), success(r#"["requests_total","up"]"#));
    assert_eq!(values(7200, 7200), success(r#"["late"]"#));
    assert_eq!(values(-10, -1), success("[]"));
    // A missing end is no end, a missing start no start.
    let after = (START + 61).to_string();
    assert_eq!(
        stage.body("/api/v1/label/shift/values", &[("start", &after)]),
        success(r#"["night"]"#)
    );
    assert_eq!(
        stage.body("/api/v1/label/shift/values", &[("end", &after)]),
        success("[]")
    );
    let wrong = stage.get("/api/v1/labels", &[("start", "x")]);
    assert_eq!(wrong.status, 400);
    let text = r#"invalid parameter \"start\": invalid time value for 'start': cannot parse \"x\""#;
    assert!(wrong.body.contains(text), "{}", wrong.body);
    // The later tests count series.
    let forget = "DELETE FROM lanes.series_runs WHERE metric = 'late'; DELETE FROM lanes.samples WHERE ts > '2023-11-15'";
    let mut client = stage.cluster.connect(DATABASE).unwrap();
    client.batch_execute(forget).unwrap();
}

fn series(stage: &Stage) {
    let api = r#"{"__name__":"up","job":"api"}"#;
    let db = r#"{"__name__":"up","job":"db","zone":"\"é\""}"#;
    let both = success(&format!("[{api},{db}]"));
    let body = |parameters: &[(&str, &str)]| stage.body("/api/v1/series", parameters);
    assert_eq!(body(&[("match[]", "up")]), both);
    assert_eq!(
        body(&[("match[]", "up"), ("match[]", "{job='api',__name__='up'}")]),
        both
    );
    assert_eq!(
        body(&[("match[]", "{zone!=''}")]),
        success(&format!("[{db}]"))
    );
    assert_eq!(
        body(&[("match[]", "up"), ("limit", "1")]),
        format!(
            r#"{{"status":"success","data":[{api}],"warnings":["results truncated due to limit"]}}"#
        )
    );
    let (start, end, after) = (
        START.to_string(),
        (START + 5).to_string(),
        (START + 61).to_string(),
    );
    assert_eq!(
        body(&[("match[]", "up"), ("start", &start), ("end", &end)]),
        both
    );
    assert_eq!(body(&[("match[]", "up"), ("start", &after)]), success("[]"));
    let first = ("start", "-292273086-05-16T16:47:06Z");
    let last = ("end", "292277025-08-18T07:12:54.999999999Z");
    assert_eq!(body(&[("match[]", "up"), first, last]), both);
    assert_eq!(body(&[("match[]", "missing")]), success("[]"));
}

/// The latest samples count, if they are not older than the look-back.
fn federation(stage: &Stage) {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.unwrap().as_millis() as i64;
    let sample = |labels: &[(&str, &str)], age: i64, value: f64| {
        let samples = vec![(now - age - 1000, 0.5), (now - age, value)];
        Series::new("fresh", labels, samples)
    };
    let stale = f64::from_bits(0x7ff0_0000_0000_0002);
    let written = body(&[
        sample(&[("job", "old")], 600_000, 1.0),
        sample(&[("instance", "i"), ("job", "a")], 20_000, 2.0),
        sample(&[("job", "b\"")], 10_000, 3.0),
        sample(&[("job", "gone")], 10_000, stale),
    ]);
    assert_eq!(
        stage.gateway.remote_write(&written, None).unwrap().status,
        204
    );
    let answer = stage.get("/federate", &[("match[]", "fresh"), ("match[]", "up")]);
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(
        answer
            .header("content-type")
            .unwrap()
            .starts_with("text/plain")
    );
    let expected = format!(
        "# TYPE fresh untyped\nfresh{{instance=\"i\",job=\"a\"}} 2 {}\nfresh{{instance=\"\",job=\"b\\\"\"}} 3 {}\n",
        now - 20_000,
        now - 10_000
    );
    assert_eq!(answer.body, expected);
    let wrong = stage.get("/federate", &[("match[]", "{")]);
    assert_eq!(wrong.status, 400);
    assert!(wrong.body.contains("parse error"), "{}", wrong.body);
}

fn texts(stage: &Stage) {
    let query = [("query", "sum(up)by(job)")];
    assert_eq!(
        stage.body("/api/v1/format_query", &query),
        success(r#""sum by (job) (up)""#)
    );
    let tree: Value = serde_json::from_str(&stage.body("/api/v1/parse_query", &query)).unwrap();
    assert_eq!(tree["data"]["type"], json!("aggregation"));
    assert_eq!(tree["data"]["expr"]["name"], json!("up"));
    assert_eq!(stage.body("/api/v1/query_exemplars", &query), success("[]"));
    assert_eq!(
        stage
            .get("/api/v1/query_exemplars", &[("query", "1")])
            .status,
        204
    );
}

fn server(stage: &Stage) {
    let body = |path: &str| stage.body(&format!("/api/v1/{path}"), &[]);
    let data = |path: &str| {
        let answer: Value = serde_json::from_str(&body(path)).unwrap();
        answer["data"].clone()
    };
    assert_eq!(body("metadata"), success("{}"));
    assert_eq!(body("rules"), success(r#"{"groups":[]}"#));
    assert_eq!(body("alerts"), success(r#"{"alerts":[]}"#));
    assert_eq!(body("targets/metadata"), success("[]"));
    assert_eq!(data("targets")["activeTargets"], json!([]));
    assert_eq!(data("alertmanagers")["activeAlertmanagers"], json!([]));
    assert_eq!(body("status/config"), success(r#"{"yaml":""}"#));
    assert_eq!(data("status/flags")["query.timeout"], json!("120s"));
    assert!(
        data("status/buildinfo")["version"]
            .as_str()
            .unwrap()
            .starts_with("3.")
    );
    assert!(
        data("status/runtimeinfo")["startTime"]
            .as_str()
            .unwrap()
            .ends_with('Z')
    );
    let tsdb = data("status/tsdb");
    assert_eq!(tsdb["headStats"]["numSeries"], json!(8));
    // Three metrics, two codes, six jobs, one zone, one instance.
    assert_eq!(tsdb["headStats"]["numLabelPairs"], json!(13));
    assert_eq!(tsdb["headStats"]["minTime"], json!(START * 1000));
    let metrics = tsdb["seriesCountByMetricName"].as_array().unwrap();
    assert!(
        metrics.contains(&json!({"name": "up", "value": 2})),
        "{tsdb}"
    );
}

/// Reads an answer as it is sent: the head, and the body's bytes without their chunks.
pub fn raw(stage: &Stage, request: &[u8]) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(("127.0.0.1", stage.gateway.port())).unwrap();
    stream.write_all(request).unwrap();
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
    }
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let bytes = usize::from_str_radix(line.trim(), 16).unwrap();
        let mut chunk = vec![0; bytes + 2];
        reader.read_exact(&mut chunk).unwrap();
        if bytes == 0 {
            return (head, body);
        }
        body.extend_from_slice(&chunk[..bytes]);
    }
}

fn compression(stage: &Stage) {
    let at = START + 60;
    let request = |encoding: &str| {
        let line = format!("GET /api/v1/query?query=up&time={at} HTTP/1.1");
        let request = format!("{line}\r\nHost: 127.0.0.1\r\nAccept-Encoding: {encoding}\r\n\r\n");
        raw(stage, request.as_bytes())
    };
    let (head, plain) = request("identity");
    assert!(!head.contains("content-encoding"), "{head}");
    assert!(plain.starts_with(b"{\"status\":\"success\""));
    let (head, packed) = request("gzip, deflate");
    assert!(head.contains("content-encoding: gzip"), "{head}");
    assert_eq!(&packed[..2], b"\x1f\x8b");
    assert_eq!(unpacked(&packed), plain);
    // Other routes are not compressed.
    let metrics = stage.gateway.get("/metrics").unwrap();
    assert_eq!(metrics.header("content-encoding"), None);
}

fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut program = std::process::Command::new("gzip")
        .arg("-dc")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    program.stdin.take().unwrap().write_all(packed).unwrap();
    let output = program.wait_with_output().unwrap();
    assert!(output.status.success());
    output.stdout
}

fn methods(stage: &Stage) {
    let wrong = stage.post("/api/v1/label/job/values", &[]);
    assert_eq!(wrong.status, 405);
    // A body that is no form does not count, as in Prometheus.
    let kind = ("content-type", "application/json");
    let path = "/api/v1/query?query=1";
    let answer = stage.gateway.post(path, &[kind], b"query=2").unwrap();
    assert!(answer.body.contains("\"1\""), "{}", answer.body);
    let foreign = ("origin", "http://evil.example");
    let refused = stage.gateway.post(path, &[foreign], b"").unwrap();
    assert_eq!(refused.status, 403);
    let list = stage.gateway.get("/").unwrap().body;
    assert!(list.contains("/api/v1/query "), "{list}");
}
