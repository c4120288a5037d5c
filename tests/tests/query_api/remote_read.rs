//! Remote read: raw samples in both types of answers, for bytes and for a real Prometheus.

use super::answers::raw;
use super::{START, Stage};
use lanes_gateway::query::remote_read::xor::XorChunk;
use lanes_support::gateway::Answer;
use lanes_support::prometheus_receiver::{Receiver, debian, newest};
use lanes_support::provision::DATABASE;
use lanes_support::remote_write::{Series, body, compress, delimited, label, message, varint};
use serde_json::Value;
use std::path::Path;

/// The value by which Prometheus marks the end of a series.
const STALE: u64 = 0x7ff0_0000_0000_0002;

/// The types of answers.
const SAMPLES: u8 = 0;
const STREAMED_XOR_CHUNKS: u8 = 1;

/// A query: the first and the last time in seconds, and matchers.
type Query<'a> = (i64, i64, &'a [Matcher<'a>]);
/// A matcher: its type, the name of the label and the value.
type Matcher<'a> = (u8, &'a str, &'a str);

/// Returns a request, encoded and compressed.
pub fn request(queries: &[Query<'_>], accepted: &[u8]) -> Vec<u8> {
    let mut request = Vec::new();
    for (start, end, matchers) in queries {
        let mut query = vec![0x08];
        varint(&mut query, (start * 1000) as u64);
        query.push(0x10);
        varint(&mut query, (end * 1000) as u64);
        for (kind, name, value) in *matchers {
            let mut matcher = vec![0x08, *kind];
            delimited(&mut matcher, 2, name.as_bytes());
            delimited(&mut matcher, 3, value.as_bytes());
            delimited(&mut query, 3, &matcher);
        }
        delimited(&mut request, 1, &query);
    }
    delimited(&mut request, 2, accepted);
    compress(&request)
}

/// Sends a request, and returns the head and the body of the answer.
fn read(stage: &Stage, body: &[u8]) -> (String, Vec<u8>) {
    let mut request = format!(
        "POST /api/v1/read HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    request.extend_from_slice(body);
    raw(stage, &request)
}

/// Returns the messages that answer a request as `SAMPLES`, before compression.
fn samples(stage: &Stage, queries: &[Query<'_>]) -> Vec<u8> {
    let (head, body) = read(stage, &request(queries, &[SAMPLES]));
    assert!(
        head.contains("content-type: application/x-protobuf\r\n"),
        "{head}"
    );
    assert!(head.contains("content-encoding: snappy\r\n"), "{head}");
    snap::raw::Decoder::new().decompress_vec(&body).unwrap()
}

/// Returns the messages that answer a request as `STREAMED_XOR_CHUNKS`.
fn frames(stage: &Stage, queries: &[Query<'_>]) -> Vec<Vec<u8>> {
    let (head, body) = read(stage, &request(queries, &[STREAMED_XOR_CHUNKS, SAMPLES]));
    let kind =
        "content-type: application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse\r\n";
    assert!(head.contains(kind), "{head}");
    assert!(!head.contains("content-encoding"), "{head}");
    let mut rest = &*body;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let bytes = rest.iter().take_while(|byte| **byte >= 0x80).count() + 1;
        let length = (0..).zip(&rest[..bytes]);
        let length = length.fold(0, |sum, (place, byte)| {
            sum | usize::from(byte & 0x7f) << (7 * place)
        });
        // Prometheus checks the checksum in another test.
        let message = &rest[bytes + 4..bytes + 4 + length];
        found.push(message.to_vec());
        rest = &rest[bytes + 4 + length..];
    }
    found
}

/// The message `ReadResponse` with the series of each query.
fn response(results: &[Vec<Series>]) -> Vec<u8> {
    let mut response = Vec::new();
    for series in results {
        delimited(&mut response, 1, &message(series));
    }
    response
}

/// The frame of a series whose samples fit one chunk.
fn frame(query: u8, series: &Series) -> Vec<u8> {
    let mut chunk = XorChunk::default();
    for (time, value) in &series.samples {
        chunk.push(*time, *value);
    }
    let chunk = chunk.take();
    let mut field = vec![0x08];
    varint(&mut field, chunk.times.0 as u64);
    field.push(0x10);
    varint(&mut field, chunk.times.1 as u64);
    field.extend([0x18, 1]);
    delimited(&mut field, 4, &chunk.bytes);
    let mut of_series = Vec::new();
    for (name, value) in &series.labels {
        delimited(&mut of_series, 1, &label(name.as_bytes(), value.as_bytes()));
    }
    delimited(&mut of_series, 2, &field);
    let mut response = Vec::new();
    delimited(&mut response, 1, &of_series);
    response.extend([0x10, query]);
    response
}

/// A series with samples 10 s apart. Its labels are as Prometheus sorts them.
fn series(labels: &[(&str, &str)], values: &[f64]) -> Series {
    let owned = labels.iter();
    let labels = owned.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let times = (0..).map(|step| (START + 10 * step) * 1000);
    Series {
        labels: labels.collect(),
        samples: times.zip(values.iter().copied()).collect(),
    }
}

fn write(stage: &Stage, series: &[Series]) {
    let stored = stage.gateway.remote_write(&body(series), None).unwrap();
    assert_eq!(stored.status, 204, "{}", stored.body);
}

/// Series in the order of Prometheus: their labels are compared pair by pair.
fn ordered() -> Vec<Series> {
    let name = ("__name__", "ordered");
    vec![
        series(&[("A", "x"), name], &[1.0]),
        series(&[name], &[2.0, f64::from_bits(STALE)]),
        series(&[name, ("a", "b")], &[-0.0, f64::NAN, f64::INFINITY]),
        series(&[name, ("a", "b!")], &[4.0]),
        series(&[name, ("a", "\"b\""), ("c", "é\n")], &[5.0]),
    ]
}

fn post(stage: &Stage, body: &[u8]) -> Answer {
    stage.gateway.post("/api/v1/read", &[], body).unwrap()
}

#[test]
fn samples_are_read_to_the_bit_in_both_types() {
    let stage = Stage::start("query_api_read", &[]);
    let mut ordered = ordered();
    ordered.sort_by(|a, b| a.labels.cmp(&b.labels));
    // Ids in another order.
    let reversed: Vec<Series> = ordered.iter().rev().cloned().collect();
    write(&stage, &reversed);
    let all = (START, START + 60, &[(0, "__name__", "ordered")][..]);
    let expected = response(std::slice::from_ref(&ordered));
    assert_eq!(samples(&stage, &[all]), expected);
    let chunks: Vec<_> = ordered.iter().map(|one| frame(0, one)).collect();
    assert_eq!(frames(&stage, &[all]), chunks);

    // Of several samples in one millisecond the greatest counts.
    let again = Series {
        samples: vec![(START * 1000, 1.5), (START * 1000, 0.5)],
        ..ordered[0].clone()
    };
    write(&stage, &[again]);
    ordered[0].samples[0].1 = 1.5;
    let expected = response(std::slice::from_ref(&ordered));
    assert_eq!(samples(&stage, &[all]), expected);
    let seal = "SELECT lanes.seal('lanes.samples')";
    stage.cluster.scalar(DATABASE, seal).unwrap();
    assert_eq!(samples(&stage, &[all]), expected, "sealed");

    queries(&stage);
    hints(&stage);
}

/// A request with several queries, of which two have no samples.
fn queries(stage: &Stage) {
    let step = |n: i64| (START + 10 * n) * 1000;
    let code = |code: &str, rate: f64| {
        let labels = [("code", code), ("job", "api")];
        let values = [2, 3, 4].map(|n| (step(n), rate * n as f64));
        Series::new("requests_total", &labels, values.to_vec())
    };
    let up = |job: &[(&str, &str)], value| {
        let samples = (2..5).map(|n| (step(n), value));
        Series::new("up", job, samples.collect())
    };
    let (api, db) = (
        up(&[("job", "api")], 1.0),
        up(&[("job", "db"), ("zone", "\"é\"")], 0.0),
    );
    let (start, end) = (START + 20, START + 40);
    let named = (0, "__name__", "up");
    let queries: [Query<'_>; 7] = [
        (start, end, &[named]),
        (end, start, &[named]),
        (
            start,
            end,
            &[(2, "__name__", "up|requests_total"), (1, "code", "500")],
        ),
        (start, end, &[named, (3, "job", "a.*")]),
        (start, end, &[(0, "__name__", "missing")]),
        (start, end, &[named, (0, "zone", "")]),
        (start + 1, end, &[(0, "code", "200")]),
    ];
    let mut late = code("200", 10.0);
    late.samples.remove(0);
    let results = [
        vec![api.clone(), db.clone()],
        vec![],
        vec![code("200", 10.0), api.clone(), db.clone()],
        vec![db],
        vec![],
        vec![api],
        vec![late],
    ];
    assert_eq!(samples(stage, &queries), response(&results));
    let expected: Vec<_> = (0..)
        .zip(&results)
        .flat_map(|(query, series)| series.iter().map(move |one| frame(query, one)))
        .collect();
    let found = frames(stage, &queries);
    assert_eq!(found, expected);
    assert_eq!(samples(stage, &queries[4..5]), response(&[vec![]]));
    assert!(frames(stage, &queries[4..5]).is_empty());
    assert!(frames(stage, &[]).is_empty());
    assert!(samples(stage, &[]).is_empty());
}

/// Hints of one selector narrow the times of the whole expression.
fn hints(stage: &Stage) {
    let mut hints = vec![0x18];
    varint(&mut hints, (START * 1000) as u64);
    hints.push(0x20);
    varint(&mut hints, (START * 1000 + 9999) as u64);
    let mut matcher = Vec::new();
    delimited(&mut matcher, 2, b"code");
    delimited(&mut matcher, 3, b"500");
    let mut query = vec![0x10];
    varint(&mut query, ((START + 60) * 1000) as u64);
    delimited(&mut query, 3, &matcher);
    delimited(&mut query, 4, &hints);
    let mut request = Vec::new();
    delimited(&mut request, 1, &query);
    let (_, body) = read(stage, &compress(&request));
    let found = snap::raw::Decoder::new().decompress_vec(&body).unwrap();
    let labels = [("code", "500"), ("job", "api")];
    let only = Series::new("requests_total", &labels, vec![(START * 1000, 0.0)]);
    assert_eq!(found, response(&[vec![only]]));
}

#[test]
fn wrong_and_long_reads_are_refused() {
    let stage = Stage::start(
        "query_api_read_limits",
        &[("LANES_GATEWAY_QUERY_READ_SAMPLES_MAX", "13")],
    );
    let refused = |body: &[u8], expected: &str| {
        let answer = post(&stage, body);
        assert_eq!(answer.status, 400, "{}", answer.body);
        assert!(answer.body.contains(expected), "{}", answer.body);
    };
    refused(b"", "body is empty");
    refused(b"\xff\xff\xff\xff\x0f\0", "which snappy cannot produce");
    let zeros = snap::raw::Encoder::new().compress_vec(&vec![0; 2 << 20]);
    refused(&zeros.unwrap(), "only 1048576 are allowed");
    refused(&vec![0; 2 << 20], "body is longer than 1048576 bytes");
    refused(&compress(b"\x0a\x09\0"), "truncated");
    let all = |matcher| request(&[(START, START + 60, &[matcher])], &[SAMPLES]);
    refused(&all((2, "job", "(")), "matcher \"job\": ");
    refused(&request(&[], &[7]), "accepted_response_types");
    let two = all((0, "__name__", "up"));
    refused(&two, "exceeded sample limit (13) (query.read_samples_max)");
    let (head, _) = read(&stage, &all((0, "zone", "\"é\"")));
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    // Frames are sent as rows arrive, and have no such limit.
    let up: Query<'_> = (START, START + 60, &[(0, "__name__", "up")]);
    assert_eq!(frames(&stage, &[up]).len(), 2);
    assert_eq!(stage.get("/api/v1/read", &[]).status, 405);
    let counted = r#"queries_total{outcome="bad_data",route="/api/v1/read"}"#;
    assert_eq!(stage.metric(counted), 8.0);
    let rights = "REVOKE SELECT ON lanes.samples FROM lanes_reader";
    let mut client = stage.cluster.connect(DATABASE).unwrap();
    client.batch_execute(rights).unwrap();
    let answer = post(&stage, &two);
    assert_eq!(answer.status, 403, "{}", answer.body);
    assert!(
        answer.body.starts_with("permission denied"),
        "{}",
        answer.body
    );
}

/// It asks for answers of type `SAMPLES`.
#[test]
fn what_is_stored_is_read_by_debians_prometheus() {
    reads_what_is_stored("query_api_read_debian", &debian().unwrap());
}

/// It asks for answers of type `STREAMED_XOR_CHUNKS`.
#[test]
fn what_is_stored_is_read_by_the_newest_prometheus() {
    reads_what_is_stored("query_api_read_newest", &newest().unwrap());
}

/// A Prometheus without samples of its own answers queries as the gateway does.
fn reads_what_is_stored(name: &str, program: &Path) {
    let stage = Stage::start(name, &[]);
    // More than a chunk has, with gaps and values of any size.
    let long = (0..1000i64).map(|n| {
        let time = (START + n) * 1000 + n * n * n % 977;
        (time, (n as f64).sin() * 10f64.powi((n % 30) as i32))
    });
    write(
        &stage,
        &[
            Series::new("long", &[("n", "1")], long.collect()),
            Series::new(
                "long",
                &[("n", "2")],
                vec![
                    (START * 1000, 1.0),
                    ((START + 5) * 1000, f64::from_bits(STALE)),
                ],
            ),
        ],
    );
    let url = stage.gateway.url("/api/v1/read");
    let configuration =
        format!("scrape_configs: []\nremote_read:\n  - url: {url}\n    read_recent: true\n");
    let folder = stage.cluster.folder().join("prometheus");
    let prometheus = Receiver::start_with(program, &folder, &configuration).unwrap();
    // No sample lies at the left end of a range: versions of Prometheus differ there.
    let (start, end) = (START.to_string(), (START + 1000).to_string());
    for query in [
        "long",
        "rate(long[1m])",
        "sum by (job) (up)",
        "requests_total{code!~'4..'} offset 10s",
        "count({__name__=~'.+'})",
        "max_over_time(long{n='1'}[2m:7s])",
    ] {
        let parameters = [
            ("query", query),
            ("start", &start),
            ("end", &end),
            ("step", "14"),
        ];
        let owned = parameters.map(|(name, value)| (name, value.to_owned()));
        let found = prometheus.get("/api/v1/query_range", &owned).unwrap();
        let found: Value = serde_json::from_str(&found.body).unwrap();
        let expected: Value =
            serde_json::from_str(&stage.body("/api/v1/query_range", &parameters)).unwrap();
        assert_eq!(found["data"], expected["data"], "{query}");
        assert_ne!(
            found["data"]["result"].as_array().unwrap().len(),
            0,
            "{query}"
        );
    }
    let read = r#"queries_total{outcome="success",route="/api/v1/read"}"#;
    assert!(stage.metric(read) >= 6.0);
    prometheus.stop().unwrap();
}
