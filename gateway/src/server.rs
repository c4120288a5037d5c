//! Connections: how many, how slow they may be, and how they end.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::{sleep, timeout};

use crate::observe::Metrics;

/// Bounds of connections.
#[derive(Debug, Clone, Copy)]
pub struct ServerLimits {
    /// Open at once; more wait in the listener's backlog.
    pub connections_max: usize,
    /// Threads that serve requests.
    pub workers: usize,
    /// For the head of a request, and for idling between requests.
    pub header_timeout: Duration,
    /// For requests on their way when shutdown begins.
    pub shutdown_timeout: Duration,
}

/// Pause after an accept that failed, as it does when file descriptors run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A connection and its place among those open at once.
pub struct Accepted {
    stream: std::net::TcpStream,
    slot: OwnedSemaphorePermit,
}

/// Accepts until `stop` turns true, and deals connections to the workers in turn.
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
                // A worker takes connections until it is told to stop, as this is.
                if let Some(worker) = turns.next() {
                    let _ = worker.send(accepted).await;
                }
            }
            Err(error) => {
                tracing::warn!("a connection could not be accepted: {error}");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Serves the connections dealt to one worker until there will be no more, then lets requests on their way end. Returns whether all of
/// them did within the shutdown timeout.
pub async fn serve(
    mut connections: mpsc::Receiver<Accepted>,
    router: Router,
    limits: ServerLimits,
    metrics: Arc<Metrics>,
) -> bool {
    let graceful = GracefulShutdown::new();
    while let Some(Accepted { stream, slot }) = connections.recv().await {
        let stream = match TcpStream::from_std(stream) {
            Ok(stream) => stream,
            Err(error) => {
                tracing::warn!("a connection could not be served: {error}");
                continue;
            }
        };
        // Answers are small and awaited.
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(tower_service(router.clone()));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.header_timeout)
            .serve_connection(TokioIo::new(stream), service);
        let watched = graceful.watch(connection);
        let metrics = Arc::clone(&metrics);
        tokio::spawn(async move {
            metrics.connections.inc();
            if let Err(error) = watched.await {
                tracing::debug!("connection: {error}");
            }
            metrics.connections.dec();
            drop(slot);
        });
    }
    timeout(limits.shutdown_timeout, graceful.shutdown())
        .await
        .is_ok()
}

async fn accept(listener: &TcpListener, slots: &Arc<Semaphore>) -> io::Result<Accepted> {
    let slot = Arc::clone(slots)
        .acquire_owned()
        .await
        .map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    // Its worker registers it with its own runtime.
    let stream = stream.into_std()?;
    Ok(Accepted { stream, slot })
}

/// The router for bodies as hyper gives them.
fn tower_service(
    router: Router,
) -> impl tower::Service<
    hyper::Request<hyper::body::Incoming>,
    Response = axum::response::Response,
    Error = std::convert::Infallible,
    Future: Send + 'static,
> + Clone
+ Send
+ 'static {
    tower::ServiceExt::map_request(router, |request: hyper::Request<hyper::body::Incoming>| {
        request.map(Body::new)
    })
}
