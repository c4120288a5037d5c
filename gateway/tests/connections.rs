//! Connections over real sockets: slow clients, many clients, and shutdown.

mod support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use support::{Memory, simple, start_on, table};
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

/// Sends a sample of `up` over a new connection.
async fn send_sample(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = request(&simple("up", 1.0));
    stream.write_all(&request).await.unwrap();
    stream
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
    let mut stream = send_sample(server.address).await;
    assert!(read_all(&mut stream).await.starts_with("HTTP/1.1 204"));
    assert_eq!(server.database.values("up"), [1.0]);
}

/// Requests with events, as a request line, further headers and a body, and the status of their
/// answers.
const EVENTS: [(&str, &str, &str, u16); 13] = [
    ("POST /api/v1/events/t", JSON, "[{\"n\": 1}]", 204),
    (
        "POST /api/v1/events/public.t?a=b",
        JSON,
        "[{\"n\": 2}]",
        204,
    ),
    ("POST /api/v1/events/%74", JSON, "[{\"n\": 3}]", 204),
    ("POST /api/v1/events/t", JSON, "[{\"m\": 1}]", 400),
    ("POST /api/v1/events/t", JSON, "[{", 400),
    ("POST /api/v1/events/u", JSON, "[{\"n\": 1}]", 404),
    ("POST /api/v1/events/t", "", "[{\"n\": 1}]", 415),
    (
        "POST /api/v1/events/t",
        "content-type: application/json\r\nx-lanes-ack: never\r\n",
        "[]",
        400,
    ),
    ("POST /api/v1/events/lanes.t", JSON, "[]", 403),
    (
        "POST /api/v1/events/t",
        "content-type: application/json\r\norigin: http://evil.example\r\n",
        "[]",
        403,
    ),
    ("GET /api/v1/events/t", JSON, "", 405),
    ("POST /api/v1/events/", JSON, "[]", 404),
    ("POST /api/v1/events/t/u", JSON, "[]", 404),
];
const JSON: &str = "content-type: application/json\r\n";

/// Events over a socket take another path than over the router, and are answered and counted alike.
#[tokio::test]
async fn events_over_a_socket_are_answered_and_counted_as_by_the_router() {
    let database = Arc::new(Memory::default());
    let table = table(7, "public.t");
    database.tables.lock().insert(table.name.clone(), table);
    let server = serve_on(&[], database).await;
    let router = start_on(&[], &server.database).router();
    for (line, headers, body, status) in EVENTS {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let text = format!(
            "{line} HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(text.as_bytes()).await.unwrap();
        let answer = read_all(&mut stream).await;
        let (routed_status, routed_body) = routed(&router, line, headers, body).await;
        assert_eq!(routed_status, status, "{line} {body}");
        let (head, answer_body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(
            head.starts_with(&format!("HTTP/1.1 {status} ")),
            "{line} {body}: {head}"
        );
        assert_eq!(answer_body.as_bytes(), &*routed_body, "{line} {body}");
    }
    let (_, by_router) = routed(&router, "GET /metrics", "", "").await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let scrape = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(scrape).await.unwrap();
    let by_socket = request_counts(&read_all(&mut stream).await);
    assert_eq!(
        by_socket,
        request_counts(&String::from_utf8_lossy(&by_router))
    );
    assert!(
        by_socket
            .iter()
            .any(|line| line.contains("/api/v1/events/{table}") && line.contains("204")),
        "{by_socket:?}"
    );
}

/// Sends a request to the router. Returns the status and the body of the answer.
async fn routed(
    router: &Router,
    line: &str,
    headers: &str,
    body: &'static str,
) -> (u16, axum::body::Bytes) {
    let (method, path) = line.split_once(' ').unwrap();
    let mut request = Request::builder().method(method).uri(path);
    for header in headers.lines() {
        let (name, value) = header.split_once(": ").unwrap();
        request = request.header(name, value);
    }
    let request = request.body(Body::from(body)).unwrap();
    let answer = router.clone().oneshot(request).await.unwrap();
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, body)
}

/// Returns the lines of a scrape that count requests.
fn request_counts(text: &str) -> Vec<String> {
    text.lines()
        .filter(|line| {
            line.starts_with("lanes_gateway_http_requests_total")
                || line.contains("_request_duration_seconds_count")
        })
        .map(str::to_owned)
        .collect()
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
    let mut second = send_sample(server.address).await;
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
    let mut stream = send_sample(server.address).await;
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
    let mut other = send_sample(server.address).await;
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
