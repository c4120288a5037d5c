//! The memory budget of requests that nobody waits for any more.

mod support;

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt;
use support::{simple, start, table};
use tower::ServiceExt;

/// Returns the bytes taken from the budget.
async fn pending_bytes(router: &Router) -> u64 {
    let request = Request::get("/api/v1/status").body(Body::empty()).unwrap();
    let answer = router.clone().oneshot(request).await.unwrap();
    let text = answer.into_body().collect().await.unwrap().to_bytes();
    let status: serde_json::Value = serde_json::from_slice(&text).unwrap();
    status["pending_bytes"].as_u64().unwrap()
}

#[tokio::test(start_paused = true)]
async fn label_sets_in_the_queue_are_counted_and_not_registered_in_vain() {
    let (app, database) = start(&["--ack-timeout", "2s"]);
    let router = app.router();
    *database.register_takes.lock() = Duration::from_secs(10);
    let mut sent = Vec::new();
    for metric in ["first", "second"] {
        let router = router.clone();
        let body = Body::from(simple(metric, 1.0));
        let request = Request::post("/api/v1/write")
            .header("content-type", "application/x-protobuf")
            .body(body)
            .unwrap();
        sent.push(tokio::spawn(async move {
            router.oneshot(request).await.unwrap().status()
        }));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for request in sent {
        assert_eq!(request.await.unwrap(), StatusCode::SERVICE_UNAVAILABLE);
    }
    assert_eq!(pending_bytes(&router).await, 2048, "both are still held");
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(pending_bytes(&router).await, 0);
    assert_eq!(
        *database.register_calls.lock(),
        [1],
        "the second was not called for"
    );
}

async fn post_json(router: Router, body: String) -> StatusCode {
    let request = Request::post("/api/v1/events/t").header("content-type", "application/json");
    let request = request.body(Body::from(body)).unwrap();
    router.oneshot(request).await.unwrap().status()
}

#[tokio::test]
async fn a_large_body_of_json_leaves_room_for_others() {
    let flags = &[
        "--receive-pending-bytes-max",
        "64MiB",
        "--receive-pending-wait",
        "0",
        "--events-rows-max",
        "10000000",
    ];
    let (app, database) = start(flags);
    let table = table(7, "public.t");
    database.tables.lock().insert(table.name.clone(), table);
    let router = app.router();
    let small = "[{\"n\":1}]".to_owned();
    assert_eq!(post_json(router.clone(), small.clone()).await, 204);
    // The body has 7 MiB, and decoding it takes at most 19 times as much.
    let large = "{\"n\": 123}\n".repeat(640 << 10);
    let mut decoding = tokio::spawn(post_json(router.clone(), large));
    while pending_bytes(&router).await < 20 << 20 && !decoding.is_finished() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for _ in 0..10 {
        assert_eq!(post_json(router.clone(), small.clone()).await, 204);
    }
    assert_eq!((&mut decoding).await.unwrap(), 204);
    assert_eq!(pending_bytes(&router).await, 0);
}
