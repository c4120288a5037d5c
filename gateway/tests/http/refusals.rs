//! Requests that are refused for what they contain, and their reasons.

use super::*;

/// Posts a body that must be refused with 400 and a reason.
async fn refused(router: &Router, body: Vec<u8>, reason: &str) {
    let (status, text) = call(router, post(&HEADERS, body)).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{text}");
    assert!(
        text.contains(reason),
        "{text:?} does not contain {reason:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn other_media_are_415() {
    let (app, database) = start(&[]);
    for header in [
        ("content-type", "application/json"),
        (
            "content-type",
            "application/x-protobuf;proto=io.prometheus.write.v2.Request",
        ),
        ("content-encoding", "zstd"),
        ("content-encoding", "gzip"),
    ] {
        let (status, text) = call(&app.router(), post(&[header], simple("up", 1.0))).await;
        assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{header:?}");
        assert!(text.contains("not supported"), "{text}");
    }
    assert!(database.samples.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn web_pages_of_other_sites_cannot_write() {
    let (app, database) = start(&["--listen-hosts", "gateway"]);
    let mut written = 0;
    for (headers, status, told) in [
        (vec![("host", "gateway:9201")], 204, ""),
        (vec![("host", "127.0.0.1:9201")], 204, ""),
        (
            vec![("host", "gateway"), ("origin", "http://gateway")],
            204,
            "",
        ),
        (vec![("host", "evil.example:9201")], 403, "listen.hosts"),
        (
            vec![("host", "gateway"), ("origin", "http://evil.example")],
            403,
            "http://evil.example",
        ),
        (vec![("host", "gateway"), ("origin", "null")], 403, "null"),
    ] {
        // Each request has its own body, because a repeated one is not stored again.
        let request = post(&headers, simple("up", written as f64));
        written += usize::from(status == 204);
        let (answered, text) = call(&app.router(), request).await;
        assert_eq!(answered.as_u16(), status, "{headers:?}: {text}");
        assert!(text.contains(told), "{text}");
        assert_eq!(database.samples.lock().len(), written);
    }
    let mut metrics = get("/metrics");
    metrics
        .headers_mut()
        .insert("host", "evil.example".parse().unwrap());
    assert_eq!(
        call(&app.router(), metrics).await.0,
        StatusCode::FORBIDDEN,
        "nor read"
    );
}

#[tokio::test(start_paused = true)]
async fn malformed_bodies_are_400_with_a_reason() {
    let (app, database) = start(&[]);
    let router = app.router();
    refused(&router, Vec::new(), "body is empty").await;
    refused(&router, b"not snappy at all".to_vec(), "snappy").await;
    // Six bytes declare 4 GiB.
    refused(
        &router,
        vec![0xff, 0xff, 0xff, 0xff, 0x0f, 0x00],
        "receive.decompressed_bytes_max",
    )
    .await;
    // Six bytes declare 60 MB, which is within the limit.
    refused(
        &router,
        vec![0x80, 0x87, 0xce, 0x1c, 0x00, 0x00],
        "cannot produce",
    )
    .await;
    refused(&router, compress(b"\x0a\x05\x0a"), "is truncated").await;
    refused(&router, compress(&[0x0b; 100_000]), "wire type").await;
    let mut not_text = Vec::new();
    put_delimited(
        &mut not_text,
        1,
        b"\x0a\x0e\x0a\x08__name__\x12\x02\xff\xfe\x12\x02\x10\x01",
    );
    let mut request = Vec::new();
    put_delimited(
        &mut request,
        1,
        &series(&[("__name__", "good")], &[(1.0, 1)]),
    );
    request.extend_from_slice(&not_text);
    refused(&router, compress(&request), "not UTF-8").await;
    assert!(
        database.samples.lock().is_empty(),
        "nothing of a malformed request is stored"
    );
}

#[tokio::test(start_paused = true)]
async fn illegal_series_are_400_with_a_reason() {
    let (app, database) = start(&[]);
    let router = app.router();
    let one = [(1.0, 1)];
    for (labels, reason) in [
        (
            &[("__name__", "up"), ("b", "1"), ("a", "1")][..],
            "not sorted",
        ),
        (
            &[("__name__", "up"), ("a", "1"), ("a", "2")],
            "more than once",
        ),
        (&[("", "1"), ("__name__", "up")], "empty name"),
        (&[("a", "1")], "__name__"),
        (&[], "__name__"),
        (&[("__name__", "up"), ("a", "\0")], "U+0000"),
        (&[("__name__", &"m".repeat(1025))], "1024 are allowed"),
        (
            &[("__name__", "up"), ("a", &"v".repeat(8193))],
            "8192 are allowed",
        ),
        (
            &[("__name__", "up"), (&"n".repeat(1025), "v")],
            "1024 are allowed",
        ),
    ] {
        refused(&router, body(&[series(labels, &one)]), reason).await;
    }
    let names: Vec<String> = (0..128).map(|number| format!("a{number:03}")).collect();
    let many: Vec<(&str, &str)> = [("__name__", "up")]
        .into_iter()
        .chain(names.iter().map(|name| (name.as_str(), "1")))
        .collect();
    refused(&router, body(&[series(&many, &one)]), "129 labels").await;
    for time in [i64::MAX, i64::MIN, 9_223_372_036_854_776] {
        refused(
            &router,
            body(&[series(&[("__name__", "up")], &[(f64::NAN, time)])]),
            "timestamptz",
        )
        .await;
    }
    assert!(database.samples.lock().is_empty() && database.series.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn valid_parts_are_stored_beside_refused_ones() {
    let (app, database) = start(&[]);
    let mut histogram = series(&[("__name__", "latency")], &[]);
    put_delimited(&mut histogram, 4, b"");
    let request = body(&[
        series(&[("__name__", "good")], &[(1.0, 1)]),
        series(&[("job", "nameless")], &[(1.0, 1)]),
        histogram,
    ]);
    refused(
        &app.router(),
        request,
        "refused 1 series, 1 samples, 1 native histogram samples, stored 1 samples",
    )
    .await;
    assert_eq!(database.values("good"), [1.0]);
}

#[tokio::test(start_paused = true)]
async fn long_bodies_are_400_never_413() {
    let (app, _) = start(&[
        "--receive-body-bytes-max",
        "1KiB",
        "--receive-decompressed-bytes-max",
        "1KiB",
        "--receive-samples-max",
        "10",
    ]);
    let router = app.router();
    refused(&router, vec![7; 1025], "receive.body_bytes_max").await;
    refused(
        &router,
        compress(&[0; 1025]),
        "receive.decompressed_bytes_max",
    )
    .await;
    let samples: Vec<(f64, i64)> = (0..11).map(|time| (1.0, time)).collect();
    refused(
        &router,
        body(&[series(&[("__name__", "up")], &samples)]),
        "receive.samples_max",
    )
    .await;
}
