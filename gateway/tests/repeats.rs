//! A body that is sent again after an operator has raised a limit.

mod support;

use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use support::{Memory, body, series, start_on};
use tower::ServiceExt;

#[tokio::test(start_paused = true)]
async fn what_was_refused_in_part_is_stored_once_its_limit_is_raised() {
    let database = Arc::new(Memory::default());
    let sample = [(1.0, 1_700_000_000_000)];
    let body = body(&[
        series(&[("__name__", "few")], &sample),
        series(&[("__name__", "many"), ("a", "1"), ("b", "2")], &sample),
    ]);
    for (labels_max, status, stored) in [("2", 400, 0), ("2", 400, 0), ("3", 204, 1), ("3", 204, 1)]
    {
        let app = start_on(&["--receive-labels-max", labels_max], &database);
        let request = Request::post("/api/v1/write")
            .header("content-type", "application/x-protobuf")
            .body(Body::from(body.clone()));
        let answer = app.router().oneshot(request.unwrap()).await.unwrap();
        assert_eq!(answer.status(), status);
        assert_eq!(database.values("many").len(), stored);
    }
    // The rows accepted at first are stored twice, because the second body contains them again.
    assert_eq!(database.values("few").len(), 2);
}
