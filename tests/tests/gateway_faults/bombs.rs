//! Malicious requests.

use super::{cluster, metric, samples, settings};
use lanes_support::gateway::Gateway;
use lanes_support::provision::DATABASE;
use lanes_support::remote_write::{
    Series, body, compress, delimited, label, message, sample, varint,
};

/// Small limits, so that small requests reach them.
const BODY_BYTES_MAX: usize = 256 << 10;
const DECOMPRESSED_BYTES_MAX: usize = 512 << 10;
/// The number of repetitions of each request.
const REPETITIONS: usize = 30;
/// The greatest growth of the process after all requests: far less than one decompressed body per
/// request.
const GROWTH_BYTES_MAX: f64 = 64.0 * 1024.0 * 1024.0;

const NOW_MS: i64 = 1_767_225_600_000;

/// Returns a request of one series with raw label messages and one sample.
fn raw_series(labels: &[Vec<u8>]) -> Vec<u8> {
    let mut series = Vec::new();
    for one in labels {
        delimited(&mut series, 1, one);
    }
    delimited(&mut series, 2, &sample(NOW_MS, 1.0));
    let mut request = Vec::new();
    delimited(&mut request, 1, &series);
    compress(&request)
}

fn one(labels: &[(&str, &str)], time: i64) -> Vec<u8> {
    let labels = labels
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    body(&[Series {
        labels,
        samples: vec![(time, 1.0)],
    }])
}

fn good(metric: &str) -> Vec<u8> {
    one(&[("__name__", metric), ("job", "bombs")], NOW_MS)
}

fn declared(length: u64, rest: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    varint(&mut bytes, length);
    bytes.extend_from_slice(rest);
    bytes
}

/// Returns every malicious request with a name. The response to each is 400.
fn bombs() -> Vec<(&'static str, Vec<u8>)> {
    let name = label(b"__name__", b"m");
    let whole = message(&[Series::new("m", &[("job", "x")], vec![(NOW_MS, 1.0)])]);
    let many_labels: Vec<(String, String)> =
        std::iter::once(("__name__".to_owned(), "m".to_owned()))
            .chain((0..200).map(|number| (format!("l{number:03}"), "v".to_owned())))
            .collect();
    let deep = (0..20_000).fold(Vec::new(), |inner: Vec<u8>, _| {
        let mut outer = vec![0x0a];
        varint(&mut outer, inner.len() as u64 & 0x7f);
        outer.extend_from_slice(&inner);
        outer.truncate(100_000);
        outer
    });
    vec![
        ("no bytes at all", Vec::new()),
        ("no snappy", b"this is no snappy block".to_vec()),
        ("a length that never ends", vec![0xff; 11]),
        ("4 GiB declared in five bytes", declared((1 << 32) - 1, b"")),
        ("16 EiB declared", declared(u64::MAX, b"abc")),
        ("a gibibyte declared", declared(1 << 30, &[0; 64])),
        (
            "one byte more than allowed declared",
            declared(DECOMPRESSED_BYTES_MAX as u64 + 1, &[0; 64]),
        ),
        (
            "more declared than there is",
            declared(1000, &compress(b"abc")[1..]),
        ),
        (
            "less declared than there is",
            declared(1, &compress(b"abc")[1..]),
        ),
        ("a copy from before the beginning", vec![10, 0x05, 0xff]),
        (
            "a copy that expands for ever",
            declared(400_000, &[0, b'a', 0xfe, 1, 0, 0xfe, 1, 0]),
        ),
        ("protobuf cut short", compress(&whole[..whole.len() - 1])),
        (
            "protobuf cut at each third",
            compress(&whole[..whole.len() / 3]),
        ),
        ("a field of the wrong type", compress(&[0x08, 0x01])),
        ("a group", compress(&[0x0b, 0x0c])),
        ("groups in groups", compress(&[0x1b; 50_000])),
        ("messages in messages", compress(&deep)),
        (
            "a message longer than the rest",
            compress(&[0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f]),
        ),
        ("a varint of eleven bytes", compress(&[0x80; 11])),
        ("field number zero", compress(&[0x00, 0x01])),
        ("ones only", compress(&[0xff; 10_000])),
        (
            "a name that is not UTF-8",
            raw_series(&[name.clone(), label(b"j\xff", b"x")]),
        ),
        (
            "a value that is not UTF-8",
            raw_series(&[name.clone(), label(b"job", b"\xc3\x28")]),
        ),
        (
            "an overlong NUL",
            raw_series(&[name.clone(), label(b"job", b"\xc0\x80")]),
        ),
        (
            "a surrogate",
            raw_series(&[name.clone(), label(b"job", b"\xed\xa0\x80")]),
        ),
        ("a NUL", raw_series(&[name.clone(), label(b"job", b"a\0b")])),
        ("no labels", raw_series(&[])),
        ("no metric name", one(&[("job", "x")], NOW_MS)),
        (
            "an empty metric name",
            one(&[("__name__", ""), ("job", "x")], NOW_MS),
        ),
        (
            "an empty label name",
            one(&[("", "x"), ("__name__", "m")], NOW_MS),
        ),
        (
            "unsorted labels",
            one(&[("__name__", "m"), ("b", "x"), ("a", "x")], NOW_MS),
        ),
        (
            "a label twice",
            one(&[("__name__", "m"), ("a", "x"), ("a", "y")], NOW_MS),
        ),
        (
            "the metric name twice",
            one(&[("__name__", "m"), ("__name__", "n")], NOW_MS),
        ),
        (
            "too many labels",
            body(&[Series {
                labels: many_labels,
                samples: vec![(NOW_MS, 1.0)],
            }]),
        ),
        (
            "a label name too long",
            one(&[("__name__", "m"), (&"n".repeat(1025), "x")], NOW_MS),
        ),
        (
            "a label value too long",
            one(&[("__name__", "m"), ("job", &"v".repeat(8193))], NOW_MS),
        ),
        (
            "a metric name too long",
            one(&[("__name__", &"m".repeat(1025))], NOW_MS),
        ),
        (
            "the last moment of int64",
            one(&[("__name__", "m")], i64::MAX),
        ),
        (
            "the first moment of int64",
            one(&[("__name__", "m")], i64::MIN),
        ),
        (
            "after Postgres's calendar",
            one(&[("__name__", "m")], 9_224_318_016_000_000),
        ),
        (
            "before Postgres's calendar",
            one(&[("__name__", "m")], -210_866_803_200_001),
        ),
        ("a body too long", compress(&vec![0; BODY_BYTES_MAX + 1])),
    ]
}

#[test]
fn every_bomb_is_refused_and_leaves_nothing_behind() {
    let (cluster, passwords) = cluster("bombs");
    let settings = settings("gateway", &cluster, &passwords)
        .environment(
            "LANES_GATEWAY_RECEIVE_BODY_BYTES_MAX",
            &BODY_BYTES_MAX.to_string(),
        )
        .environment(
            "LANES_GATEWAY_RECEIVE_DECOMPRESSED_BYTES_MAX",
            &DECOMPRESSED_BYTES_MAX.to_string(),
        );
    let mut gateway = Gateway::start(settings).unwrap();

    // These requests are unusual but valid.
    for (name, bytes) in [
        ("a good request", good("good")),
        ("nothing in it", compress(b"")),
        (
            "metadata only",
            compress(&[0x1a, 0x04, 0x08, 0x01, 0x12, 0x00]),
        ),
        (
            "a series without samples",
            body(&[Series::new("empty", &[], Vec::new())]),
        ),
        ("a field of the future", compress(&[0x7a, 0x01, 0x00])),
    ] {
        let answer = gateway.remote_write(&bytes, None).unwrap();
        assert_eq!(answer.status, 204, "{name}: {}", answer.body);
    }
    assert_eq!(samples(&cluster), 1);

    let throw = |gateway: &Gateway| {
        for (name, bytes) in bombs() {
            match gateway.remote_write(&bytes, None) {
                Ok(answer) => {
                    assert_eq!(answer.status, 400, "{name}: {}", answer.body);
                    assert!(
                        answer.body.len() > 5 && answer.body.len() < 1000,
                        "{name}: a reason, and a short one: {}",
                        answer.body
                    );
                }
                // The response to an overlong body may arrive before the whole body is sent, and
                // end the connection.
                Err(error) => assert_eq!(name, "a body too long", "{error}"),
            }
        }
    };
    throw(&gateway);
    let before = metric(&gateway, "process_resident_memory_bytes");
    for _ in 0..REPETITIONS {
        throw(&gateway);
    }
    let growth = metric(&gateway, "process_resident_memory_bytes") - before;
    assert!(growth < GROWTH_BYTES_MAX, "grown by {growth} bytes");
    assert_eq!(
        samples(&cluster),
        1,
        "no part of a refused request is stored"
    );
    assert_eq!(
        cluster
            .scalar(
                DATABASE,
                "SELECT count(*) FROM lanes.series WHERE metric <> 'good' AND metric <> 'empty'"
            )
            .unwrap(),
        "0"
    );

    // The gateway is as healthy as before.
    assert_eq!(
        gateway
            .remote_write(&good("good_again"), None)
            .unwrap()
            .status,
        204
    );
    assert_eq!(gateway.get("/-/ready").unwrap().status, 200);
    gateway.check().unwrap();
}

#[test]
fn unusual_values_are_stored_bit_by_bit() {
    let (cluster, passwords) = cluster("odd_values");
    let gateway = Gateway::start(settings("gateway", &cluster, &passwords)).unwrap();
    let values: [u64; 10] = [
        0x7ff0_0000_0000_0002, // the stale marker
        0x7ff8_0000_0000_0001,
        0x7ff8_0000_0000_0000,
        0xfff8_0000_0000_dead,
        0x7ff0_0000_0000_0000,
        0xfff0_0000_0000_0000,
        0x8000_0000_0000_0000,
        0,
        1,
        0x7fef_ffff_ffff_ffff,
    ];
    // Samples out of order and with a duplicate time are all stored.
    let times = [5, 4, 9, 1, 1, 0, 2, 3, 8, 7];
    let samples = times
        .iter()
        .zip(values)
        .map(|(time, bits)| (NOW_MS + time, f64::from_bits(bits)))
        .collect();
    let labels = [("job", "naïve 日本"), ("été", "\"quoted\" \\ {}\n")];
    let answer = gateway
        .remote_write(
            &body(&[Series::new("odd.metric-é", &labels, samples)]),
            None,
        )
        .unwrap();
    assert_eq!(answer.status, 204, "{}", answer.body);
    let mut expected: Vec<(i64, u64)> =
        times.iter().map(|time| NOW_MS + time).zip(values).collect();
    expected.sort_unstable();
    let rows = cluster
        .connect(DATABASE)
        .unwrap()
        .query(
            "SELECT (extract(epoch FROM ts) * 1000)::int8, value FROM lanes.samples",
            &[],
        )
        .unwrap();
    let mut found: Vec<(i64, u64)> = rows
        .iter()
        .map(|row| (row.get(0), row.get::<_, f64>(1).to_bits()))
        .collect();
    found.sort_unstable();
    assert_eq!(found, expected);
    let view = "SELECT count(*), min(labels ->> 'été') FROM metrics.\"odd.metric-é\"";
    let row = cluster.query(DATABASE, view).unwrap().remove(0);
    assert_eq!(
        row[0].as_deref(),
        Some("9"),
        "the view leaves the stale marker out"
    );
    assert_eq!(row[1].as_deref(), Some("\"quoted\" \\ {}\n"));
}

#[test]
fn the_valid_part_of_a_request_is_stored() {
    let (cluster, passwords) = cluster("partly");
    let gateway = Gateway::start(settings("gateway", &cluster, &passwords)).unwrap();
    let labels = vec![
        ("__name__".to_owned(), "bad".to_owned()),
        ("z".to_owned(), "x".to_owned()),
        ("a".to_owned(), "x".to_owned()),
    ];
    let bytes = body(&[
        Series::new("before", &[], vec![(NOW_MS, 1.0)]),
        Series {
            labels,
            samples: vec![(NOW_MS, 2.0)],
        },
        Series::new("after", &[], vec![(NOW_MS, 3.0), (i64::MAX, 4.0)]),
    ]);
    let answer = gateway.remote_write(&bytes, None).unwrap();
    assert_eq!(answer.status, 400);
    assert!(answer.body.contains("sorted"), "{}", answer.body);
    assert_eq!(
        cluster.scalar(DATABASE, "SELECT string_agg(metric || '=' || value, ',' ORDER BY metric) FROM lanes.samples s JOIN lanes.series r ON r.id = s.series").unwrap(),
        "after=3,before=1"
    );
}

#[test]
fn methods_media_types_and_levels_have_their_status_codes() {
    let (cluster, passwords) = cluster("codes");
    let gateway = Gateway::start(settings("gateway", &cluster, &passwords)).unwrap();
    let bytes = good("codes");
    let status = |headers: &[(&str, &str)]| {
        gateway
            .post("/api/v1/write", headers, &bytes)
            .unwrap()
            .status
    };
    let (protobuf, snappy) = (
        ("content-type", "application/x-protobuf"),
        ("content-encoding", "snappy"),
    );
    assert_eq!(status(&[protobuf, snappy]), 204);
    assert_eq!(status(&[("content-type", "application/json"), snappy]), 415);
    assert_eq!(
        status(&[
            (
                "content-type",
                "application/x-protobuf;proto=io.prometheus.write.v2.Request"
            ),
            snappy
        ]),
        415
    );
    assert_eq!(
        status(&[
            (
                "content-type",
                "application/x-protobuf;proto=prometheus.WriteRequest"
            ),
            snappy
        ]),
        204
    );
    for encoding in ["gzip", "zstd", "identity"] {
        assert_eq!(
            status(&[protobuf, ("content-encoding", encoding)]),
            415,
            "{encoding}"
        );
    }
    for (level, expected) in [
        ("memory", 204),
        ("wal", 204),
        ("object", 400),
        ("nonsense", 400),
        ("replica", 503),
    ] {
        assert_eq!(
            status(&[protobuf, snappy, ("x-lanes-ack", level)]),
            expected,
            "{level}"
        );
    }
    assert_eq!(gateway.get("/api/v1/write").unwrap().status, 405);
    assert_eq!(gateway.get("/nothing/here").unwrap().status, 404);
    assert_eq!(gateway.get("/-/healthy").unwrap().status, 200);
}
