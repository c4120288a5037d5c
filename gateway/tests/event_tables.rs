//! The tables that events are written to, and the scope of keys.

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use lanes_gateway::app::{App, AppMetrics};
use lanes_gateway::clock;
use lanes_gateway::deliver::SinkError;
use lanes_gateway::model::Table;
use lanes_gateway::series::SeriesCache;
use support::{Memory, settings, start, table};
use tower::ServiceExt;

fn begin(flags: &[&str]) -> (Router, Arc<Memory>) {
    let (app, database) = start(flags);
    put(&database, table(7, "public.t"));
    (app.router(), database)
}

fn put(database: &Memory, table: Table) {
    database.tables.lock().insert(table.name.clone(), table);
}

/// Sends a request with JSON. Returns its status.
async fn post(router: &Router, table: &str, key: Option<&str>, body: &'static str) -> u16 {
    let mut request =
        Request::post(format!("/api/v1/events/{table}")).header("content-type", "application/json");
    if let Some(key) = key {
        request = request.header("idempotency-key", key);
    }
    let request = request.body(Body::from(body)).unwrap();
    let answer = router.clone().oneshot(request).await.unwrap();
    answer.status().as_u16()
}

const ROW: &str = r#"[{"n": 1}]"#;

#[tokio::test(start_paused = true)]
async fn a_key_is_of_the_table_and_not_of_its_path() {
    let (router, database) = begin(&[]);
    for path in ["t", "public.t", "t"] {
        assert_eq!(post(&router, path, Some("k"), ROW).await, 204);
    }
    assert_eq!(database.events.lock().len(), 1);
    // The table is dropped and created again, which the first append detects.
    put(&database, table(8, "public.t"));
    let error = SinkError::TableChanged("it is gone".to_owned());
    database.event_errors.lock().push(error);
    assert_eq!(post(&router, "t", Some("k"), ROW).await, 204);
    let oids: Vec<u32> = database.events.lock().iter().map(|(oid, _)| *oid).collect();
    assert_eq!(oids, [7, 8]);
}

#[tokio::test(start_paused = true)]
async fn tables_are_dropped_from_the_catalogue_with_their_database() {
    let database = Arc::new(Memory::default());
    let cache = Arc::new(SeriesCache::new(1 << 20, 1));
    let (sink, metrics) = (Arc::clone(&database), AppMetrics::default());
    let app = App::start(settings(&[]), sink, Arc::clone(&cache), metrics);
    let router = app.router();
    for (oid, generation) in [(7, 0), (8, 1)] {
        put(&database, table(oid, "public.t"));
        assert_eq!(post(&router, "t", None, ROW).await, 204);
        let calls = database.describe_calls.load(Ordering::Acquire);
        assert_eq!(calls, u64::from(oid) - 6);
        let target = database.targets.lock().pop().unwrap();
        assert_eq!(target.generation(), generation);
        cache.begin_generation();
    }
}

#[tokio::test(start_paused = true)]
async fn a_malformed_body_causes_no_query() {
    let (router, database) = begin(&[]);
    assert_eq!(post(&router, "t", None, ROW).await, 204);
    let calls = || database.describe_calls.load(Ordering::Acquire);
    assert_eq!(calls(), 1);
    for body in ["[{", r#"[{"n": 1, "n": 2}]"#, "[1]"] {
        assert_eq!(post(&router, "t", None, body).await, 400);
        assert_eq!(calls(), 1, "{body}");
    }
    // The column may have been added in the meantime.
    assert_eq!(post(&router, "t", None, r#"[{"m": 1}]"#).await, 400);
    assert_eq!(calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn names_that_no_table_has_and_the_table_of_samples() {
    let (router, database) = begin(&["--postgres-table", "public.samples"]);
    put(&database, table(9, "public.samples"));
    let (long, longest) = ("t".repeat(64), "t".repeat(63));
    put(&database, table(10, &format!("public.{longest}")));
    for (path, status) in [
        (&*long, 404),
        ("public.", 404),
        (".t", 404),
        ("t%00", 404),
        (&longest, 204),
        ("samples", 403),
        ("public.samples", 403),
        ("t", 204),
    ] {
        assert_eq!(post(&router, path, None, ROW).await, status, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_privilege_lost_is_forbidden() {
    let (router, database) = begin(&[]);
    let denied = || SinkError::Forbidden("permission denied for table t".to_owned());
    database.event_errors.lock().push(denied());
    assert_eq!(post(&router, "t", None, ROW).await, 204, "granted again");
    database.event_errors.lock().extend([denied(), denied()]);
    assert_eq!(post(&router, "t", None, ROW).await, 403);
}

#[tokio::test(start_paused = true)]
async fn a_missing_privilege_is_checked_once_a_second() {
    let (router, database) = begin(&[]);
    let denied = Table {
        may_insert: false,
        ..table(7, "public.t")
    };
    put(&database, denied);
    let calls = || database.describe_calls.load(Ordering::Acquire);
    for _ in 0..20 {
        assert_eq!(post(&router, "t", None, ROW).await, 403);
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(calls(), 2);
    put(&database, table(7, "public.t"));
    tokio::time::sleep(std::time::Duration::from_millis(1_001)).await;
    assert_eq!(post(&router, "t", None, ROW).await, 204);
    assert_eq!(calls(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_database_that_does_not_answer_is_503_in_time() {
    let (router, database) = begin(&["--ack-timeout", "2s"]);
    *database.describe_takes.lock() = std::time::Duration::from_secs(60);
    let started = clock::now();
    assert_eq!(post(&router, "t", None, ROW).await, 503);
    assert_eq!((clock::now() - started).as_secs(), 2);
}

#[tokio::test(start_paused = true)]
async fn senders_to_a_missing_table_delay_nobody() {
    let (router, database) = begin(&[]);
    let takes = std::time::Duration::from_millis(100);
    *database.describe_takes.lock() = takes;
    let missing: Vec<_> = (0..50)
        .map(|_| {
            let router = router.clone();
            tokio::spawn(async move { post(&router, "none", None, ROW).await })
        })
        .collect();
    tokio::time::sleep(takes / 2).await;
    let started = clock::now();
    assert_eq!(post(&router, "t", None, ROW).await, 204);
    assert!(clock::now() - started <= 3 * takes);
    for sender in missing {
        assert_eq!(sender.await.unwrap(), 404);
    }
    // Later requests find a table that was created in the meantime.
    put(&database, table(8, "public.none"));
    assert_eq!(post(&router, "none", None, ROW).await, 204);
}

/// A body may take longer to arrive than PostgreSQL may take to confirm.
#[tokio::test(start_paused = true)]
async fn the_time_to_confirm_begins_with_the_end_of_the_body() {
    let (router, database) = begin(&["--ack-timeout", "2s", "--listen-body-timeout", "10s"]);
    let body = futures_util::stream::once(async {
        tokio::time::sleep(std::time::Duration::from_secs(5)).await;
        Ok::<_, std::convert::Infallible>(ROW)
    });
    let request = Request::post("/api/v1/events/t")
        .header("content-type", "application/json")
        .body(Body::from_stream(body))
        .unwrap();
    let answer = router.clone().oneshot(request).await.unwrap();
    assert_eq!(answer.status().as_u16(), 204);
    assert_eq!(database.events.lock().len(), 1);
}
