//! What senders of events see, over the router and with a database in memory.

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt;
use lanes_gateway::deliver::SinkError;
use lanes_gateway::model::{ColumnKind, Table, TableColumn};
use lanes_wire::{BatchBuilder, BatchView, ColumnType};
use support::{Memory, simple, start};
use tower::ServiceExt;

fn column(name: &str, kind: ColumnKind, is_not_null: bool) -> TableColumn {
    TableColumn {
        name: name.to_owned(),
        sql_type: format!("{kind:?}").to_lowercase(),
        kind,
        is_not_null,
        has_default: false,
        is_generated: false,
    }
}

fn table(oid: u32) -> Table {
    Table {
        oid,
        name: "public.events".to_owned(),
        columns: vec![
            column("ts", ColumnKind::Timestamp, true),
            column("service", ColumnKind::Text, false),
        ],
        may_insert: true,
    }
}

/// Starts a gateway on a database with one table.
fn begin(flags: &[&str]) -> (Router, Arc<Memory>) {
    let (app, database) = start(flags);
    database
        .tables
        .lock()
        .insert("public.events".to_owned(), table(7));
    (app.router(), database)
}

/// Returns a batch with rows of `(ts, service)`.
fn batch(rows: &[(i64, &str)]) -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    let ts = builder.add_column("ts", ColumnType::Timestamp).unwrap();
    let service = builder.add_column("service", ColumnType::Text).unwrap();
    for (time, name) in rows {
        builder.column(ts).push_i64(*time).unwrap();
        builder.column(service).push_text(name).unwrap();
    }
    let mut bytes = Vec::new();
    builder.finish(&mut bytes).unwrap();
    bytes
}

async fn post(
    router: &Router,
    table: &str,
    headers: &[(&str, &str)],
    body: Vec<u8>,
) -> (StatusCode, String) {
    let mut request = Request::post(format!("/api/v1/events/{table}"));
    if headers.iter().all(|(name, _)| *name != "content-type") {
        request = request.header("content-type", "application/x-flatbuffers");
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::from(body)).unwrap();
    let response = router.clone().oneshot(request).await.unwrap();
    let status = response.status();
    let text = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8_lossy(&text).into_owned())
}

/// Returns all stored rows, in order.
fn stored(database: &Memory) -> Vec<(u32, i64, String)> {
    let mut rows = Vec::new();
    for (oid, bytes) in database.events.lock().iter() {
        let view = BatchView::verify(bytes).unwrap();
        let times = view.column("ts").unwrap().values().arrays::<8>().unwrap();
        let services = view.column("service").unwrap();
        for (row, time) in times.iter().enumerate() {
            let service = String::from_utf8(services.item(row).unwrap().to_vec()).unwrap();
            rows.push((*oid, i64::from_le_bytes(*time), service));
        }
    }
    rows
}

const OK: (StatusCode, String) = (StatusCode::NO_CONTENT, String::new());

#[tokio::test(start_paused = true)]
async fn a_batch_is_stored_before_it_is_answered() {
    let (router, database) = begin(&[]);
    assert_eq!(
        post(&router, "events", &[], batch(&[(1, "api"), (2, "web")])).await,
        OK
    );
    assert_eq!(
        post(&router, "public.events", &[], batch(&[(3, "api")])).await,
        OK
    );
    assert_eq!(post(&router, "events", &[], batch(&[])).await, OK);
    assert_eq!(
        stored(&database),
        [
            (7, 1, "api".to_owned()),
            (7, 2, "web".to_owned()),
            (7, 3, "api".to_owned())
        ]
    );
    assert_eq!(
        database.describe_calls.load(Ordering::Acquire),
        1,
        "the table is described once"
    );
}

#[tokio::test(start_paused = true)]
async fn requests_of_a_moment_share_a_batch() {
    let (router, database) = begin(&["--postgres-sessions", "1"]);
    assert_eq!(post(&router, "events", &[], batch(&[(0, "a")])).await, OK);
    *database.append_takes.lock() = std::time::Duration::from_millis(3);
    let sent: Vec<_> = (1..20)
        .map(|time| {
            let router = router.clone();
            tokio::spawn(async move { post(&router, "events", &[], batch(&[(time, "a")])).await })
        })
        .collect();
    for request in sent {
        assert_eq!(request.await.unwrap(), OK);
    }
    assert_eq!(stored(&database).len(), 20);
    assert!(
        database.events.lock().len() <= 4,
        "{} batches",
        database.events.lock().len()
    );
}

#[tokio::test(start_paused = true)]
async fn a_key_makes_it_once_and_none_makes_it_each_time() {
    let (router, database) = begin(&[]);
    for _ in 0..3 {
        let key = [("idempotency-key", "request 1")];
        assert_eq!(post(&router, "events", &key, batch(&[(1, "a")])).await, OK);
    }
    assert_eq!(stored(&database).len(), 1);
    for _ in 0..3 {
        assert_eq!(post(&router, "events", &[], batch(&[(2, "a")])).await, OK);
    }
    assert_eq!(stored(&database).len(), 4);
    for key in ["", &"k".repeat(257)] {
        let (status, text) = post(
            &router,
            "events",
            &[("idempotency-key", key)],
            batch(&[(1, "a")]),
        )
        .await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_is_named_and_nothing_is_stored() {
    let (router, database) = begin(&["--events-rows-max", "2"]);
    // Supervision has looked at the database and found no standbys.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let mut other = BatchBuilder::new();
    let column = other.add_column("tz", ColumnType::Timestamp).unwrap();
    other.column(column).push_i64(1).unwrap();
    let mut unknown_column = Vec::new();
    other.finish(&mut unknown_column).unwrap();
    let good = batch(&[(1, "a")]);
    for (table, headers, body, status, told) in [
        ("events", &[][..], b"nonsense".to_vec(), 400, "not a batch"),
        ("events", &[], Vec::new(), 400, "not a batch"),
        ("events", &[], good[..good.len() - 8].to_vec(), 400, ""),
        ("events", &[], unknown_column, 400, "has no column \"tz\""),
        (
            "events",
            &[],
            batch(&[(1, "a"), (2, "a"), (3, "a")]),
            400,
            "events.rows_max",
        ),
        (
            "nowhere",
            &[],
            good.clone(),
            404,
            "table public.nowhere does not exist; create it",
        ),
        ("lanes.requests", &[], good.clone(), 403, "schema \"lanes\""),
        (
            "events",
            &[("content-type", "text/csv")],
            good.clone(),
            415,
            "text/csv",
        ),
        (
            "events",
            &[("x-lanes-ack", "disk")],
            good.clone(),
            400,
            "\"disk\" is unknown",
        ),
        (
            "events",
            &[("x-lanes-ack", "replica")],
            good.clone(),
            503,
            "",
        ),
    ] {
        let (found, text) = post(&router, table, headers, body).await;
        assert_eq!(found.as_u16(), status, "{told}: {text}");
        assert!(text.contains(told), "{text}");
    }
    assert_eq!(stored(&database), []);
}

#[tokio::test(start_paused = true)]
async fn without_the_privilege_it_is_forbidden() {
    let (router, database) = begin(&[]);
    if let Some(table) = database.tables.lock().get_mut("public.events") {
        table.may_insert = false;
    }
    let (status, text) = post(&router, "events", &[], batch(&[(1, "a")])).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(text.contains("GRANT INSERT"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_changed_table_is_described_again() {
    let (router, database) = begin(&[]);
    assert_eq!(post(&router, "events", &[], batch(&[(1, "a")])).await, OK);
    database
        .tables
        .lock()
        .insert("public.events".to_owned(), table(8));
    database
        .event_errors
        .lock()
        .push(SinkError::TableChanged("it is gone".to_owned()));
    assert_eq!(post(&router, "events", &[], batch(&[(2, "a")])).await, OK);
    assert_eq!(
        stored(&database),
        [(7, 1, "a".to_owned()), (8, 2, "a".to_owned())]
    );

    // A column was added: the batch does not fit the cached description, but fits the next.
    let mut wider = table(8);
    wider
        .columns
        .push(self::column("tz", ColumnKind::Timestamp, false));
    database
        .tables
        .lock()
        .insert("public.events".to_owned(), wider);
    let mut builder = BatchBuilder::new();
    for name in ["ts", "tz"] {
        let index = builder.add_column(name, ColumnType::Timestamp).unwrap();
        builder.column(index).push_i64(1).unwrap();
    }
    let mut body = Vec::new();
    builder.finish(&mut body).unwrap();
    assert_eq!(post(&router, "events", &[], body).await, OK);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_is_not_silently_repeated() {
    let (router, database) = begin(&[]);
    database
        .event_errors
        .lock()
        .push(SinkError::OutcomeUnknown("connection lost".to_owned()));
    let (status, text) = post(&router, "events", &[], batch(&[(1, "a")])).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(text.contains("Idempotency-Key"), "{text}");
    assert_eq!(stored(&database), []);
}

#[tokio::test(start_paused = true)]
async fn while_the_database_is_away_it_is_503_and_then_stored() {
    let (router, database) = begin(&["--ack-timeout", "2s"]);
    assert_eq!(post(&router, "events", &[], batch(&[(1, "a")])).await, OK);
    database.is_away.store(true, Ordering::Release);
    let (status, _) = post(&router, "events", &[], batch(&[(2, "a")])).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    database.is_away.store(false, Ordering::Release);
    assert_eq!(post(&router, "events", &[], batch(&[(3, "a")])).await, OK);
    assert_eq!(stored(&database).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn json_and_arrow_become_the_same_rows() {
    let (router, database) = begin(&[]);
    let json = br#"[{"ts": 1, "service": "api"}, {"service": "web", "ts": "1970-01-01T00:00:00.000002Z"}]"#;
    let headers = [("content-type", "application/json")];
    assert_eq!(post(&router, "events", &headers, json.to_vec()).await, OK);
    let lines = [("content-type", "application/x-ndjson")];
    let body = b"{\"ts\": 3, \"service\": \"api\"}\n{\"ts\": 4, \"service\": \"\"}\n".to_vec();
    assert_eq!(post(&router, "events", &lines, body).await, OK);
    assert_eq!(
        stored(&database)
            .iter()
            .map(|(_, time, service)| (*time, service.as_str()))
            .collect::<Vec<_>>(),
        [(1, "api"), (2, "web"), (3, "api"), (4, "")]
    );
    for (body, told) in [
        (&b"[{\"ts\": 1, \"tz\": 2}]"[..], "tz"),
        (b"[{\"ts\": true}]", "ts"),
        (
            b"[{\"ts\": 1}, {\"service\": \"a\"}]",
            "NOT NULL, but row 2",
        ),
        (b"[{", "not JSON"),
    ] {
        let (status, text) = post(&router, "events", &headers, body.to_vec()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{text}");
        assert!(text.contains(told), "{text}");
    }
    let arrow = [("content-type", "application/vnd.apache.arrow.stream")];
    let (status, text) = post(&router, "events", &arrow, b"ARROW1".to_vec()).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{text}");
    assert_eq!(stored(&database).len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_large_body_is_decoded_beside_the_others_and_given_back() {
    let (router, database) = begin(&[]);
    let rows: Vec<String> = (0..20_000)
        .map(|time| format!("{{\"ts\": {time}, \"service\": \"service\"}}"))
        .collect();
    let headers = [("content-type", "application/x-ndjson")];
    let body = rows.join("\n").into_bytes();
    assert!(body.len() > 512 << 10);
    assert_eq!(post(&router, "events", &headers, body).await, OK);
    assert_eq!(stored(&database).len(), 20_000);
}

#[tokio::test(start_paused = true)]
async fn tables_are_created_only_if_configured() {
    let (app, database) = start(&["--events-create-tables", "unlogged"]);
    let router = app.router();
    let body = batch(&[(1, "a")]);
    assert_eq!(post(&router, "fresh", &[], body.clone()).await, OK);
    assert_eq!(post(&router, "fresh", &[], body.clone()).await, OK);
    assert_eq!(stored(&database).len(), 2);
    assert_eq!(stored(&database)[0].0, 101, "unlogged");
    let headers = [("content-type", "application/json")];
    let json = b"[{\"ts\": \"2026-01-05T16:00:00Z\", \"service\": \"a\", \"n\": 1}]";
    assert_eq!(post(&router, "other", &headers, json.to_vec()).await, OK);
    let kinds = |database: &Memory, name: &str| -> Vec<ColumnKind> {
        let tables = database.tables.lock();
        let columns = tables[name].columns.iter();
        columns.map(|column| column.kind).collect()
    };
    assert_eq!(
        kinds(&database, "public.other"),
        [ColumnKind::Timestamp, ColumnKind::Text, ColumnKind::Int8]
    );
    for (body, status, told) in [
        (
            "[{\"ts\": 1, \"service\": null}]",
            StatusCode::BAD_REQUEST,
            "column \"service\": every value is null",
        ),
        ("[{\"ts\": 1},", StatusCode::BAD_REQUEST, "not JSON"),
        ("[{\"\": 1}]", StatusCode::BAD_REQUEST, "name"),
        ("[]", StatusCode::NOT_FOUND, "does not exist"),
    ] {
        let (found, text) = post(&router, "third", &headers, body.into()).await;
        assert_eq!(found, status, "{text}");
        assert!(text.contains(told), "{text}");
    }
    assert!(!database.tables.lock().contains_key("public.third"));
    let big = format!("[{{\"t\": {:?}}}]", "a".repeat(300_000));
    assert_eq!(post(&router, "big", &headers, big.into()).await, OK);
    let (status, _) = post(&router, "lanes.other", &[], body).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
}

#[tokio::test(start_paused = true)]
async fn locked_tables_hold_up_neither_samples_nor_other_tables() {
    let (router, database) = begin(&["--postgres-sessions", "2"]);
    for (name, oid) in [("public.free", 8), ("public.locked", 9)] {
        let mut tables = database.tables.lock();
        tables.insert(name.to_owned(), table(oid));
    }
    database.locked.lock().extend([7, 9]);
    for time in 0..10 {
        for name in ["events", "locked"] {
            let router = router.clone();
            tokio::spawn(async move { post(&router, name, &[], batch(&[(time, "a")])).await });
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(post(&router, "free", &[], batch(&[(1, "a")])).await, OK);
    let samples = Request::post("/api/v1/write")
        .header("content-type", "application/x-protobuf")
        .body(Body::from(simple("up", 1.0)));
    let answer = router.clone().oneshot(samples.unwrap()).await.unwrap();
    assert_eq!(answer.status(), StatusCode::NO_CONTENT);
}

#[tokio::test(start_paused = true)]
async fn ageing_descriptions_are_refreshed_one_at_a_time() {
    let (router, database) = begin(&[]);
    let names: Vec<String> = (0..20).map(|number| format!("t{number}")).collect();
    for (name, oid) in names.iter().zip(100..) {
        let mut tables = database.tables.lock();
        tables.insert(format!("public.{name}"), table(oid));
    }
    for _ in 0..2 {
        for name in &names {
            assert_eq!(post(&router, name, &[], batch(&[(1, "a")])).await, OK);
        }
        tokio::time::sleep(std::time::Duration::from_secs(6)).await;
        *database.describe_takes.lock() = std::time::Duration::from_millis(10);
    }
    assert_eq!(database.describe_calls.load(Ordering::Acquire), 40);
    assert_eq!(database.describing_max.load(Ordering::Acquire), 1);
}

/// Returns the bytes taken from the memory budget.
async fn pending_bytes(router: &Router) -> u64 {
    let request = Request::get("/api/v1/status").body(Body::empty());
    let answer = router.clone().oneshot(request.unwrap()).await.unwrap();
    let text = answer.into_body().collect().await.unwrap().to_bytes();
    let status: serde_json::Value = serde_json::from_slice(&text).unwrap();
    status["pending_bytes"].as_u64().unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_is_held_until_the_answer_is_counted() {
    let (router, database) = begin(&[]);
    *database.append_takes.lock() = std::time::Duration::from_secs(1);
    let flat = batch(&[(1, &"a".repeat(100_000))]);
    let json = format!("[{{\"ts\": 1, \"service\": {:?}}}]", "a".repeat(100_000));
    for (content_type, body, held_bytes) in [
        ("application/x-flatbuffers", flat, 100_000),
        ("application/json", json.into_bytes(), 200_000),
    ] {
        let error = SinkError::TableChanged("it is another".to_owned());
        database.event_errors.lock().push(error);
        let sent = tokio::spawn({
            let router = router.clone();
            async move { post(&router, "events", &[("content-type", content_type)], body).await }
        });
        // In the first attempt, and in the second.
        for _ in 0..2 {
            tokio::time::sleep(std::time::Duration::from_millis(900)).await;
            let pending_bytes = pending_bytes(&router).await;
            assert!(
                (held_bytes..held_bytes + 20_000).contains(&pending_bytes),
                "{content_type}: {pending_bytes}"
            );
        }
        assert_eq!(sent.await.unwrap(), OK);
        assert_eq!(pending_bytes(&router).await, 0);
    }
}
