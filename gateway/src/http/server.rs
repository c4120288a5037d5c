//! Connections: their number, TLS, their timeouts and their end.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::HttpService;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use prometheus::IntCounter;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;

use super::body::SHORT_BYTES;
use super::metrics::HttpMetrics;

/// Limits of connections.
#[derive(Debug, Clone, Copy)]
pub struct ServerLimits {
    /// The maximum number of open connections. Further connections wait in the listener's backlog.
    pub connections_max: usize,
    /// The number of threads that serve requests.
    pub workers: usize,
    /// The time for a TLS handshake.
    pub handshake_timeout: Duration,
    /// The time for the head of a request, and for idling between requests.
    pub header_timeout: Duration,
    /// The time after which a client that does not read its answers is disconnected.
    pub write_timeout: Duration,
    /// The time for requests in flight after shutdown has begun.
    pub shutdown_timeout: Duration,
}

/// The size of the buffer that a connection reads a head or a part of a body into: the smallest
/// that hyper accepts. A connection keeps it while it is idle, so with thousands of connections it
/// dominates the gateway's memory. A larger buffer would save little, because a long body is copied
/// out of it in any case.
const READ_BYTES_MAX: usize = 8 << 10;

/// The bytes that a connection may hold without taking them from the memory budget: its buffer, a
/// second one while a part of a body waits, and a short body.
pub const CONNECTION_BYTES_MAX: usize = 2 * READ_BYTES_MAX + SHORT_BYTES;

/// The bytes that TLS keeps to send. A client that reads slowly delays its answer, and takes no more.
const TLS_WRITE_BYTES_MAX: usize = 16 << 10;

/// The bytes that TLS may hold for a connection besides: one received record of 18 KiB, its content
/// of 16 KiB, and records to send. During the handshake it is one message of 64 KiB instead.
pub const TLS_BYTES_MAX: usize = 64 << 10;

/// The pause after a failed accept, for example when file descriptors run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The body of an answer: empty for most successful requests, which costs nothing, or a body from
/// the router.
pub type Answer = http_body_util::Either<Empty<Bytes>, Body>;

/// A connection, and its slot among the open connections.
pub struct Accepted {
    stream: std::net::TcpStream,
    slot: OwnedSemaphorePermit,
}

/// Accepts connections until `stop` turns true, and distributes them to the workers in turn.
pub async fn accept_all(
    listener: TcpListener,
    limits: ServerLimits,
    workers: &[mpsc::Sender<Accepted>],
    mut stop: watch::Receiver<bool>,
) {
    let slots = Arc::new(Semaphore::new(limits.connections_max));
    let mut turns = workers.iter().cycle();
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => break,
            accepted = accept(&listener, &slots) => accepted,
        };
        match accepted {
            Ok(accepted) => {
                distribute(accepted, workers.len(), &mut turns).await;
            }
            Err(error) => {
                tracing::warn!("could not accept a connection: {error}");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Sends a connection to the next worker that accepts it. A worker accepts connections until
/// shutdown, unless it has died.
async fn distribute<'a>(
    accepted: Accepted,
    workers: usize,
    turns: &mut impl Iterator<Item = &'a mpsc::Sender<Accepted>>,
) {
    let mut unsent = accepted;
    for worker in turns.take(workers) {
        match worker.send(unsent).await {
            Ok(()) => return,
            Err(mpsc::error::SendError(back)) => unsent = back,
        }
    }
    tracing::error!("no worker is left to serve a connection");
}

/// What the connections of one worker share.
#[derive(Clone)]
pub struct Server {
    /// Limits of connections.
    pub limits: ServerLimits,
    /// The settings of TLS, now and later; `None` for connections without TLS.
    pub certificates: watch::Receiver<Option<Arc<ServerConfig>>>,
    /// Metrics of HTTP.
    pub metrics: Arc<HttpMetrics>,
    /// TLS handshakes that failed.
    pub handshakes_failed: IntCounter,
}

/// Serves the connections sent to one worker until the channel closes, then waits for requests in
/// flight. Returns whether all of them ended within the shutdown timeout.
pub async fn serve<H>(mut connections: mpsc::Receiver<Accepted>, service: H, server: Server) -> bool
where
    H: HttpService<Incoming, ResBody = Answer, Error = Infallible, Future: Send + 'static>
        + Clone
        + Send
        + 'static,
{
    let graceful = GracefulShutdown::new();
    let shutdown_timeout = server.limits.shutdown_timeout;
    while let Some(Accepted { stream, slot }) = connections.recv().await {
        let stream = match TcpStream::from_std(stream) {
            Ok(stream) => stream,
            Err(error) => {
                tracing::warn!("could not serve a connection: {error}");
                continue;
            }
        };
        // Answers are small, and clients wait for them.
        let _ = stream.set_nodelay(true);
        // A client that does not read would hold its connection and its answers forever.
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(server.limits.write_timeout));
        let (service, server, watcher) = (service.clone(), server.clone(), graceful.watcher());
        tokio::spawn(async move {
            server.metrics.connections.inc();
            server.drive(Box::pin(stream), service, watcher).await;
            server.metrics.connections.dec();
            drop(slot);
        });
    }
    timeout(shutdown_timeout, graceful.shutdown()).await.is_ok()
}

impl Server {
    /// Serves one connection to its end, within TLS if there is a certificate.
    async fn drive<H>(
        &self,
        stream: Pin<Box<TimeoutStream<TcpStream>>>,
        service: H,
        watcher: Watcher,
    ) where
        H: HttpService<Incoming, ResBody = Answer, Error = Infallible, Future: Send + 'static>
            + Clone
            + Send
            + 'static,
    {
        let certificates = self.certificates.borrow().clone();
        let Some(certificates) = certificates else {
            return self.requests(stream, service, watcher).await;
        };
        let handshake = TlsAcceptor::from(certificates).accept_with(stream, |connection| {
            connection.set_buffer_limit(Some(TLS_WRITE_BYTES_MAX));
        });
        let failed = match timeout(self.limits.handshake_timeout, handshake).await {
            Ok(Ok(stream)) => return self.requests(Box::pin(stream), service, watcher).await,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it took too long".to_owned(),
        };
        self.handshakes_failed.inc();
        tracing::debug!("TLS handshake: {failed}");
    }

    /// Serves the requests of a connection.
    async fn requests<H>(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        service: H,
        watcher: Watcher,
    ) where
        H: HttpService<Incoming, ResBody = Answer, Error = Infallible, Future: Send + 'static>,
    {
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.header_timeout)
            .max_buf_size(READ_BYTES_MAX)
            // Answers are small: copying them together costs less than a vectored write.
            .writev(false)
            .serve_connection(TokioIo::new(stream), service);
        if let Err(error) = watcher.watch(connection).await {
            tracing::debug!("connection: {error}");
        }
    }
}

async fn accept(listener: &TcpListener, slots: &Arc<Semaphore>) -> io::Result<Accepted> {
    let slot = Arc::clone(slots)
        .acquire_owned()
        .await
        .map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    // The worker registers the stream with its own runtime.
    let stream = stream.into_std()?;
    Ok(Accepted { stream, slot })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_dead_worker_is_skipped() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let limits = ServerLimits {
            connections_max: 10,
            workers: 2,
            handshake_timeout: Duration::from_secs(1),
            header_timeout: Duration::from_secs(1),
            write_timeout: Duration::from_secs(1),
            shutdown_timeout: Duration::from_secs(1),
        };
        let ((alive, mut dealt), (dead, gone)) = (mpsc::channel(10), mpsc::channel(10));
        drop(gone);
        let (_stop, stopped) = watch::channel(false);
        tokio::spawn(async move { accept_all(listener, limits, &[dead, alive], stopped).await });
        for _ in 0..4 {
            let stream = TcpStream::connect(address).await.unwrap();
            assert!(dealt.recv().await.is_some());
            drop(stream);
        }
    }
}
