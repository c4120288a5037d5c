//! What clients see: exact status codes, headers and reasons, over the router and with a database
//! in memory.

mod refusals;
#[path = "../support/mod.rs"]
mod support;

use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use lanes_gateway::model::AckLevel;
use lanes_gateway::series::protobuf::put_delimited;
use support::{body, compress, series, simple, start, start_on};
use tower::ServiceExt;

async fn call(router: &Router, request: Request<Body>) -> (StatusCode, String) {
    let response = answer(router, request).await;
    let status = response.status();
    let text = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8_lossy(&text).into_owned())
}

async fn answer(router: &Router, request: Request<Body>) -> Response<Body> {
    router.clone().oneshot(request).await.unwrap()
}

fn get(path: &str) -> Request<Body> {
    Request::get(path).body(Body::empty()).unwrap()
}

/// Returns a write request, with the type of remote write unless `headers` contain another.
fn post(headers: &[(&str, &str)], body: Vec<u8>) -> Request<Body> {
    let mut request = Request::post("/api/v1/write");
    if !headers.iter().any(|(name, _)| *name == "content-type") {
        request = request.header("content-type", "application/x-protobuf");
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::from(body)).unwrap()
}

const HEADERS: [(&str, &str); 3] = [
    ("content-type", "application/x-protobuf"),
    ("content-encoding", "snappy"),
    ("x-prometheus-remote-write-version", "0.1.0"),
];

#[tokio::test(start_paused = true)]
async fn a_write_is_stored_when_it_is_acknowledged() {
    let (app, database) = start(&[]);
    let request = body(&[
        series(
            &[("__name__", "up"), ("job", "a")],
            &[(1.0, 2000), (0.5, 1000)],
        ),
        series(
            &[("__name__", "up"), ("job", "b")],
            &[(f64::from_bits(0x7ff0_0000_0000_0002), 3000)],
        ),
    ]);
    let (status, text) = call(&app.router(), post(&HEADERS, request)).await;
    assert_eq!((status, text.as_str()), (StatusCode::NO_CONTENT, ""));
    let mut samples = database.samples.lock().clone();
    samples.sort();
    let expected = [
        ("up{\"job\":\"a\"}".to_owned(), 1_000_000, 0.5f64.to_bits()),
        ("up{\"job\":\"a\"}".to_owned(), 2_000_000, 1f64.to_bits()),
        (
            "up{\"job\":\"b\"}".to_owned(),
            3_000_000,
            0x7ff0_0000_0000_0002,
        ),
    ];
    assert_eq!(samples, expected);
}

#[tokio::test(start_paused = true)]
async fn a_known_series_is_not_registered_again() {
    let (app, database) = start(&[]);
    let router = app.router();
    for value in [1.0, 2.0, 3.0] {
        assert_eq!(
            call(&router, post(&HEADERS, simple("up", value))).await.0,
            StatusCode::NO_CONTENT
        );
    }
    assert_eq!(*database.register_calls.lock(), [1]);
    assert_eq!(database.values("up").len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_request_sent_again_is_acknowledged_and_not_applied() {
    let (app, database) = start(&[]);
    for _ in 0..3 {
        assert_eq!(
            call(&app.router(), post(&HEADERS, simple("up", 1.0)))
                .await
                .0,
            StatusCode::NO_CONTENT
        );
    }
    // Another gateway on the same database recognises it too.
    let other = start_on(&[], &database);
    assert_eq!(
        call(&other.router(), post(&HEADERS, simple("up", 1.0)))
            .await
            .0,
        StatusCode::NO_CONTENT
    );
    assert_eq!(database.values("up"), [1.0]);
}

#[tokio::test(start_paused = true)]
async fn requests_at_once_share_batches_and_registration() {
    let (app, database) = start(&[]);
    let router = app.router();
    let calls = (0..50).map(|number| {
        let router = router.clone();
        let body = simple(&format!("metric_{}", number % 10), f64::from(number));
        tokio::spawn(async move { call(&router, post(&HEADERS, body)).await.0 })
    });
    for status in futures_util::future::join_all(calls).await {
        assert_eq!(status.unwrap(), StatusCode::NO_CONTENT);
    }
    assert_eq!(database.samples.lock().len(), 50);
    assert_eq!(database.series.lock().len(), 10);
    let calls = database.append_calls.lock();
    assert!(calls.len() <= 4, "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn unsorted_labels_are_sorted_where_that_is_chosen() {
    let (app, database) = start(&["--receive-label-order", "sort"]);
    let router = app.router();
    for labels in [
        [("b", "2"), ("__name__", "up")],
        [("__name__", "up"), ("b", "2")],
    ] {
        let request = body(&[series(
            &labels,
            &[(1.0, 1), (1.0, labels[0].0.len() as i64)],
        )]);
        assert_eq!(
            call(&router, post(&HEADERS, request)).await.0,
            StatusCode::NO_CONTENT
        );
    }
    assert_eq!(database.series.lock().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn requests_of_nothing_are_204() {
    let (app, database) = start(&[]);
    let mut metadata = Vec::new();
    put_delimited(&mut metadata, 3, b"\x08\x01\x12\x02up");
    let no_samples = body(&[series(&[("__name__", "up")], &[])]);
    for nothing in [compress(b""), compress(&metadata), no_samples] {
        assert_eq!(
            call(&app.router(), post(&HEADERS, nothing)).await.0,
            StatusCode::NO_CONTENT
        );
    }
    assert!(database.append_calls.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn levels_are_chosen_by_header_or_configuration() {
    let (app, database) = start(&["--ack-level", "memory"]);
    database.has_standbys.store(true, Ordering::Release);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let router = app.router();
    for (number, level) in [None, Some("wal"), Some("REPLICA"), Some("memory")]
        .into_iter()
        .enumerate()
    {
        let mut headers = HEADERS.to_vec();
        headers.extend(level.map(|level| ("X-Lanes-Ack", level)));
        let (status, text) = call(&router, post(&headers, simple("up", number as f64))).await;
        assert_eq!(status, StatusCode::NO_CONTENT, "{text}");
    }
    let levels: Vec<AckLevel> = database
        .append_calls
        .lock()
        .iter()
        .map(|(level, _)| *level)
        .collect();
    assert_eq!(
        levels,
        [
            AckLevel::Memory,
            AckLevel::Wal,
            AckLevel::Replica,
            AckLevel::Memory
        ]
    );
    for (level, reason) in [("object", "set objects.url"), ("disk", "unknown")] {
        let (status, text) =
            call(&router, post(&[("X-Lanes-Ack", level)], simple("up", 9.0))).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert!(text.contains(reason), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn replica_without_standbys_is_refused_for_now() {
    let (app, database) = start(&[]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let response = answer(
        &app.router(),
        post(&[("X-Lanes-Ack", "replica")], simple("up", 1.0)),
    )
    .await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    let text = response.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&text).contains("synchronous_standby_names"));
    assert!(database.samples.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn writes_of_every_kind_are_503_while_object_storage_is_behind() {
    let (app, database) = start(&[]);
    let router = app.router();
    app.status()
        .objects
        .set_backlog_refusal(Some("object storage is behind".to_owned()));
    let events = Request::post("/api/v1/events/t")
        .header("content-type", "application/json")
        .body(Body::from("{\"a\": 1}"));
    for request in [post(&HEADERS, simple("up", 1.0)), events.unwrap()] {
        let response = answer(&router, request).await;
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()["retry-after"], "2");
        let text = response.into_body().collect().await.unwrap().to_bytes();
        assert!(String::from_utf8_lossy(&text).contains("object storage is behind"));
    }
    let (_, status) = call(&router, get("/api/v1/status")).await;
    assert!(status.contains("object storage is behind"), "{status}");
    assert!(database.samples.lock().is_empty());

    app.status().objects.set_backlog_refusal(None);
    let (status, _) = call(&router, post(&HEADERS, simple("up", 1.0))).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
}

#[tokio::test(start_paused = true)]
async fn a_database_away_is_503_with_retry_after_and_not_ready() {
    let (app, database) = start(&["--ack-timeout", "3s"]);
    let router = app.router();
    database.is_away.store(true, Ordering::Release);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(
        call(&router, get("/-/ready")).await.0,
        StatusCode::SERVICE_UNAVAILABLE
    );
    assert_eq!(call(&router, get("/-/healthy")).await.0, StatusCode::OK);
    let response = answer(&router, post(&HEADERS, simple("up", 1.0))).await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.headers()["retry-after"], "2");

    database.is_away.store(false, Ordering::Release);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(call(&router, get("/-/ready")).await.0, StatusCode::OK);
    assert_eq!(
        call(&router, post(&HEADERS, simple("up", 1.0))).await.0,
        StatusCode::NO_CONTENT
    );
    assert_eq!(database.values("up"), [1.0]);
}

#[tokio::test(start_paused = true)]
async fn a_short_absence_only_delays() {
    let (app, database) = start(&[]);
    database.is_away.store(true, Ordering::Release);
    let router = app.router();
    let waiting =
        tokio::spawn(async move { call(&router, post(&HEADERS, simple("up", 1.0))).await.0 });
    tokio::time::sleep(Duration::from_secs(4)).await;
    database.is_away.store(false, Ordering::Release);
    assert_eq!(waiting.await.unwrap(), StatusCode::NO_CONTENT);
}

#[tokio::test(start_paused = true)]
async fn overload_is_503_and_memory_stays_bounded() {
    let flags = [
        "--receive-pending-bytes-max",
        "1MiB",
        "--receive-body-bytes-max",
        "64KiB",
        "--receive-samples-max",
        "1000",
    ];
    let (app, database) = start(&flags);
    *database.append_takes.lock() = Duration::from_secs(10);
    let router = app.router();
    let calls = (0..100).map(|number| {
        let router = router.clone();
        let body = simple("up", f64::from(number));
        tokio::spawn(async move { call(&router, post(&HEADERS, body)).await.0 })
    });
    let mut statuses = Vec::new();
    for status in futures_util::future::join_all(calls).await {
        statuses.push(status.unwrap());
    }
    let stored = statuses
        .iter()
        .filter(|status| **status == StatusCode::NO_CONTENT)
        .count();
    let busy = statuses
        .iter()
        .filter(|status| **status == StatusCode::SERVICE_UNAVAILABLE)
        .count();
    assert_eq!(stored + busy, 100);
    assert!(stored > 0, "{statuses:?}");
    assert!(
        database.samples.lock().len() >= stored,
        "every acknowledged sample is there"
    );
}

#[tokio::test(start_paused = true)]
async fn routes_and_methods() {
    let (app, _) = start(&[]);
    let router = app.router();
    for (path, status) in [
        ("/", StatusCode::OK),
        ("/api/v1/write", StatusCode::METHOD_NOT_ALLOWED),
        ("/nothing", StatusCode::NOT_FOUND),
    ] {
        let (answered, text) = call(&router, get(path)).await;
        assert_eq!(answered, status, "{path}");
        assert!(text.contains("POST /api/v1/write"), "{path}: {text}");
    }
    call(&router, post(&HEADERS, simple("up", 1.0))).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (status, text) = call(&router, get("/api/v1/status")).await;
    assert_eq!(status, StatusCode::OK);
    let status: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&status["rows"], &status["series"], &status["ready"]),
        (&1.into(), &1.into(), &true.into())
    );
    assert_eq!(status["pending_bytes"], 0);
    let (_, text) = call(&router, get("/metrics")).await;
    assert!(
        text.contains(
            "lanes_gateway_http_requests_total{route=\"/api/v1/write\",status=\"204\"} 1"
        ),
        "{text}"
    );
    assert!(
        text.contains("lanes_gateway_http_requests_total{route=\"other\",status=\"404\"} 1"),
        "{text}"
    );
    assert!(
        text.contains("lanes_gateway_samples_stored_total 1"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_gateway_stores_its_own_metrics() {
    let (app, database) = start(&["--self-scrape-interval", "5s"]);
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(database.values("up"), [1.0, 1.0, 1.0]);
    assert!(database.values("lanes_gateway_samples_stored_total").last() > Some(&100.0));
    drop(app);
}
