//! Connections over real sockets: slow clients, many clients, and shutdown.

mod support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use lanes_gateway::model::{ColumnKind, Table, TableColumn};
use support::{Memory, simple, start_on};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tower::ServiceExt;

struct Server {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    serving: JoinHandle<std::io::Result<bool>>,
    database: Arc<Memory>,
}

async fn serve(flags: &[&str]) -> Server {
    serve_on(flags, Arc::default()).await
}

async fn serve_on(flags: &[&str], database: Arc<Memory>) -> Server {
    let app = start_on(flags, &database);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = watch::channel(false);
    Server {
        address,
        stop,
        serving: tokio::spawn(app.serve(listener, stopped)),
        database,
    }
}

fn request(body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST /api/v1/write HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-protobuf\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

async fn read_all(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    // A reset after the answer also ends the connection.
    let _ = stream.read_to_end(&mut text).await;
    String::from_utf8_lossy(&text).into_owned()
}

#[tokio::test]
async fn a_request_over_a_socket() {
    let server = serve(&[]).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream
        .write_all(&request(&simple("up", 1.0)))
        .await
        .unwrap();
    assert!(read_all(&mut stream).await.starts_with("HTTP/1.1 204"));
    assert_eq!(server.database.values("up"), [1.0]);
}

/// Events over a socket take another path than over the router, and are answered and counted alike.
#[tokio::test]
async fn events_over_a_socket_are_answered_and_counted_as_by_the_router() {
    let database = Arc::new(Memory::default());
    let column = TableColumn {
        name: "n".to_owned(),
        sql_type: "bigint".to_owned(),
        kind: ColumnKind::Int8,
        is_not_null: false,
        has_default: false,
        is_generated: false,
    };
    let table = Table {
        oid: 7,
        name: "public.t".to_owned(),
        columns: vec![column],
        may_insert: true,
    };
    database.tables.lock().insert(table.name.clone(), table);
    let server = serve_on(&[], database).await;
    let router = start_on(&[], &server.database).router();
    let json = "content-type: application/json\r\n";
    for (line, headers, body, status) in [
        ("POST /api/v1/events/t", json, "[{\"n\": 1}]", 204),
        (
            "POST /api/v1/events/public.t?a=b",
            json,
            "[{\"n\": 2}]",
            204,
        ),
        ("POST /api/v1/events/%74", json, "[{\"n\": 3}]", 204),
        ("POST /api/v1/events/t", json, "[{\"m\": 1}]", 400),
        ("POST /api/v1/events/t", json, "[{", 400),
        ("POST /api/v1/events/u", json, "[{\"n\": 1}]", 404),
        ("POST /api/v1/events/t", "", "[{\"n\": 1}]", 415),
        (
            "POST /api/v1/events/t",
            "content-type: application/json\r\nx-lanes-ack: never\r\n",
            "[]",
            400,
        ),
        ("POST /api/v1/events/lanes.t", json, "[]", 403),
        (
            "POST /api/v1/events/t",
            "content-type: application/json\r\norigin: http://evil.example\r\n",
            "[]",
            403,
        ),
        ("GET /api/v1/events/t", json, "", 405),
        ("POST /api/v1/events/", json, "[]", 404),
        ("POST /api/v1/events/t/u", json, "[]", 404),
    ] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let text = format!(
            "{line} HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(text.as_bytes()).await.unwrap();
        let answer = read_all(&mut stream).await;
        let (method, path) = line.split_once(' ').unwrap();
        let mut request = Request::builder().method(method).uri(path);
        for header in headers.lines() {
            let (name, value) = header.split_once(": ").unwrap();
            request = request.header(name, value);
        }
        let request = request.body(Body::from(body)).unwrap();
        let routed = router.clone().oneshot(request).await.unwrap();
        assert_eq!(routed.status().as_u16(), status, "{line} {body}");
        let told = routed.into_body().collect().await.unwrap().to_bytes();
        let (head, told_here) = answer.split_once("\r\n\r\n").unwrap();
        assert!(
            head.starts_with(&format!("HTTP/1.1 {status} ")),
            "{line} {body}: {head}"
        );
        assert_eq!(told_here.as_bytes(), &*told, "{line} {body}");
    }
    let counted = |text: &str| {
        text.lines()
            .filter(|line| {
                line.starts_with("lanes_gateway_http_requests_total")
                    || line.contains("_request_duration_seconds_count")
            })
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let scrape = Request::get("/metrics").body(Body::empty()).unwrap();
    let by_router = router.oneshot(scrape).await.unwrap();
    let by_router = by_router.into_body().collect().await.unwrap().to_bytes();
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let scrape = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(scrape).await.unwrap();
    let here = counted(&read_all(&mut stream).await);
    assert_eq!(here, counted(&String::from_utf8_lossy(&by_router)));
    assert!(
        here.iter()
            .any(|line| line.contains("/api/v1/events/{table}") && line.contains("204")),
        "{here:?}"
    );
}

#[tokio::test]
async fn heads_and_bodies_that_never_end_are_ended() {
    let server = serve(&[
        "--listen-header-timeout",
        "1s",
        "--listen-body-timeout",
        "1s",
    ])
    .await;
    let mut slow_head = TcpStream::connect(server.address).await.unwrap();
    slow_head
        .write_all(b"POST /api/v1/write HTTP/1.1\r\n")
        .await
        .unwrap();
    let mut slow_body = TcpStream::connect(server.address).await.unwrap();
    let whole = request(&simple("up", 1.0));
    slow_body
        .write_all(&whole[..whole.len() - 1])
        .await
        .unwrap();
    let head = read_all(&mut slow_head).await;
    assert!(
        head.is_empty() || head.starts_with("HTTP/1.1 408"),
        "{head}"
    );
    assert!(read_all(&mut slow_body).await.starts_with("HTTP/1.1 503"));
}

#[tokio::test]
async fn a_length_over_the_limit_is_refused_before_the_body_arrives() {
    let server = serve(&["--receive-body-bytes-max", "1KiB"]).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream
        .write_all(b"POST /api/v1/write HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-protobuf\r\ncontent-length: 99999999\r\n\r\n")
        .await
        .unwrap();
    let mut start = [0; 12];
    stream.read_exact(&mut start).await.unwrap();
    assert_eq!(&start, b"HTTP/1.1 400");
}

#[tokio::test]
async fn connections_over_the_limit_wait_their_turn() {
    let server = serve(&["--listen-connections-max", "1"]).await;
    let mut first = TcpStream::connect(server.address).await.unwrap();
    first.write_all(b"POST /api").await.unwrap();
    let mut second = TcpStream::connect(server.address).await.unwrap();
    second
        .write_all(&request(&simple("up", 1.0)))
        .await
        .unwrap();
    let mut byte = [0];
    assert!(
        tokio::time::timeout(Duration::from_millis(200), second.read(&mut byte))
            .await
            .is_err()
    );
    drop(first);
    assert!(read_all(&mut second).await.starts_with("HTTP/1.1 204"));
}

#[tokio::test]
async fn shutdown_answers_requests_in_flight() {
    let server = serve(&[]).await;
    *server.database.append_takes.lock() = Duration::from_millis(300);
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream
        .write_all(&request(&simple("up", 1.0)))
        .await
        .unwrap();
    while server.database.series.lock().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    server.stop.send(true).unwrap();
    assert!(read_all(&mut stream).await.starts_with("HTTP/1.1 204"));
    assert!(
        server.serving.await.unwrap().unwrap(),
        "all requests ended in time"
    );
    assert_eq!(server.database.values("up"), [1.0]);
    assert!(
        TcpStream::connect(server.address).await.is_err(),
        "the listener is closed"
    );
}

/// Pipelines requests with long answers without reading any, until nothing more can be sent.
async fn fill(address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    let requests = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(100);
    let second = Duration::from_secs(1);
    while tokio::time::timeout(second, stream.write_all(&requests))
        .await
        .is_ok_and(|written| written.is_ok())
    {}
    stream
}

#[tokio::test]
async fn a_client_that_reads_no_answers_loses_its_connection() {
    let flags = &[
        "--listen-connections-max",
        "1",
        "--listen-write-timeout",
        "1s",
    ];
    let server = serve(flags).await;
    let deaf = fill(server.address).await;
    let mut other = TcpStream::connect(server.address).await.unwrap();
    other.write_all(&request(&simple("up", 1.0))).await.unwrap();
    let patience = Duration::from_secs(20);
    let answer = tokio::time::timeout(patience, read_all(&mut other)).await;
    assert!(answer.expect("its turn").starts_with("HTTP/1.1 204"));
    drop(deaf);
}

/// A client that sends its whole body before it reads still receives the answer.
#[tokio::test]
async fn a_body_that_is_refused_unread_does_not_cost_its_answer() {
    let server = serve(&["--receive-body-bytes-max", "4MiB"]).await;
    let body = vec![7; 5 << 20];
    for (headers, path, length, status) in [
        ("", "/api/v1/write", 4 << 20, 415),
        (
            "content-type: application/x-protobuf\r\nx-lanes-ack: never\r\n",
            "/api/v1/write",
            4 << 20,
            400,
        ),
        (
            "content-type: application/x-protobuf\r\n",
            "/api/v1/write",
            5 << 20,
            400,
        ),
        ("", "/api/v1/nothing", 4 << 20, 404),
        ("", "/api/v1/events/t", 4 << 20, 415),
    ] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        // The next request finds the connection usable, unless more was sent than is read.
        for _ in 0..2 {
            let head = format!(
                "POST {path} HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: {length}\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            // The body is sent slowly, so that the answer arrives long before its end.
            for part in body[..length].chunks(1 << 20) {
                tokio::time::sleep(Duration::from_millis(5)).await;
                let _ = stream.write_all(part).await;
            }
            let mut start = [0; 12];
            stream.read_exact(&mut start).await.unwrap();
            assert_eq!(start, *format!("HTTP/1.1 {status}").as_bytes());
            if length > 4 << 20 {
                break;
            }
            // The rest of this answer.
            while !matches!(
                tokio::time::timeout(Duration::from_millis(50), stream.read(&mut [0; 4096])).await,
                Err(_) | Ok(Ok(0) | Err(_))
            ) {}
        }
    }
}
