//! Connections over real sockets: slow clients, many clients, and the end.

mod support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use support::{Memory, simple, start_on};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

struct Server {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    serving: JoinHandle<std::io::Result<bool>>,
    database: Arc<Memory>,
}

async fn serve(flags: &[&str]) -> Server {
    let database = Arc::new(Memory::default());
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
        "POST /api/v1/write HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

async fn read_all(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    // A reset after the answer is the end too.
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
    slow_body
        .write_all(&request(&simple("up", 1.0))[..100])
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
async fn a_length_over_the_limit_is_refused_before_the_body_comes() {
    let server = serve(&["--receive-body-bytes-max", "1KiB"]).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream
        .write_all(b"POST /api/v1/write HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999\r\n\r\n")
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
async fn shutdown_answers_what_is_on_its_way() {
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
