//! Starting the parts, serving requests and stopping.
//!
//! On shutdown, `/-/ready` answers 503, the listener closes, requests in flight are stored and
//! answered, and then the tasks behind them end. Requests that are not answered by then were never
//! acknowledged.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use super::handlers::Handlers;
use super::metrics::AppMetrics;
use super::router::router;
use super::service::service;
use super::settings::{AppSettings, SelfScrape};
use super::worker::{self, Shared};
use crate::access;
use crate::batch::{QUEUE_REQUESTS_MAX, register};
use crate::clock;
use crate::deliver::Sink;
use crate::http::Refusal;
use crate::http::server::{Accepted, accept_all, serve};
use crate::metrics::Families;
use crate::model::{AckLevel, Reservation};
use crate::observe::supervise::Supervision;
use crate::observe::{Status, self_scrape};
use crate::receive::WritePath;
use crate::series::SeriesCache;

/// The maximum number of accepted connections that wait for one worker.
const ACCEPTED_MAX: usize = 64;

/// A running gateway without its listener. Tests call its handlers directly.
pub struct App<S> {
    shared: Shared,
    sink: Arc<S>,
    /// The handlers of the worker on this runtime. It is the only worker, or it only stores the
    /// gateway's own metrics.
    handlers: Handlers<S>,
    tasks: Vec<JoinHandle<()>>,
}

impl<S: Sink> App<S> {
    /// Starts all tasks except those of further workers.
    pub fn start(
        settings: AppSettings,
        sink: Arc<S>,
        cache: Arc<SeriesCache>,
        metrics: AppMetrics,
    ) -> Self {
        let (register, register_jobs) = mpsc::channel(QUEUE_REQUESTS_MAX);
        let registration = tokio::spawn(register::run(
            register_jobs,
            Arc::clone(&sink),
            Arc::clone(&cache),
            Arc::clone(&metrics.series),
        ));
        let shared = Shared::new(settings, cache, metrics, register);
        let watching = access::watch::run(
            shared.settings.access.clone(),
            Arc::clone(&shared.guard),
            Arc::clone(&shared.quotas),
        );
        let watching = tokio::spawn(watching);
        let supervision = Supervision {
            is_missing_logged: AtomicBool::new(false),
            sink: Arc::clone(&sink),
            status: Arc::clone(&shared.status),
            http: Arc::clone(&shared.metrics.http),
            series: Arc::clone(&shared.metrics.series),
            deliver: Arc::clone(&shared.metrics.deliver),
            cache: Arc::clone(&shared.cache),
            budget: shared.budget.clone(),
            request_window: shared.settings.request_window,
        };
        let (handlers, mut tasks) = worker::start(&shared, Arc::clone(&sink));
        tasks.extend([registration, watching, tokio::spawn(supervision.run())]);
        if let Some(settings) = shared.settings.self_scrape.clone() {
            tasks.push(tokio::spawn(scrape_self(
                settings,
                shared.metrics.families.clone(),
                Arc::clone(&handlers.path),
                shared.settings.default_level,
            )));
        }
        Self {
            shared,
            sink,
            handlers,
            tasks,
        }
    }

    /// Returns the router of all routes.
    pub fn router(&self) -> axum::Router {
        router(self.handlers.clone())
    }

    /// Readiness and rates.
    pub fn status(&self) -> &Arc<Status> {
        &self.shared.status
    }

    /// Serves `listener` until `stop` turns true and requests in flight have ended. Returns whether
    /// all of them ended in time.
    ///
    /// # Errors
    /// Returns an error if a worker cannot be started. Nothing is served in this case.
    pub async fn serve(
        self,
        listener: TcpListener,
        stop: watch::Receiver<bool>,
    ) -> io::Result<bool> {
        let limits = self.shared.settings.server;
        let mut connections = Vec::new();
        let mut threads = Vec::new();
        let mut here = None;
        for number in 0..limits.workers {
            let (dealt, received) = mpsc::channel(ACCEPTED_MAX);
            connections.push(dealt);
            if limits.workers == 1 {
                let context = self.shared.server();
                let service = service(self.handlers.clone());
                here = Some(tokio::spawn(serve(received, service, context)));
            } else {
                threads.push(self.spawn_worker(number, received).await?);
            }
        }
        let mut stopping = stop.clone();
        let status = Arc::clone(&self.shared.status);
        let announce = tokio::spawn(async move {
            let _ = stopping.wait_for(|stop| *stop).await;
            status.set_stopping();
        });
        accept_all(listener, limits, &connections, stop).await;
        drop(connections);
        let mut all_ended = true;
        if let Some(here) = here {
            all_ended &= here.await.unwrap_or(false);
        }
        for thread in threads {
            all_ended &= thread.await.unwrap_or(false);
        }
        announce.abort();
        for task in &self.tasks {
            task.abort();
        }
        Ok(all_ended)
    }

    /// Starts a thread that serves the connections sent to it. The receiver yields whether all
    /// requests in flight ended in time.
    async fn spawn_worker(
        &self,
        number: usize,
        connections: mpsc::Receiver<Accepted>,
    ) -> io::Result<oneshot::Receiver<bool>> {
        let ((started, start), (ended, end)) = (oneshot::channel(), oneshot::channel());
        let (shared, sink) = (self.shared.clone(), self.sink.for_another_thread());
        let run = move || {
            let runtime = match tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
            {
                Ok(runtime) => runtime,
                Err(error) => return drop(started.send(Err(error))),
            };
            let _ = started.send(Ok(()));
            let all_ended = runtime.block_on(async {
                let (handlers, _tasks) = worker::start(&shared, sink);
                serve(connections, service(handlers), shared.server()).await
            });
            // The thread that started this one may have ended.
            let _ = ended.send(all_ended);
        };
        let thread = std::thread::Builder::new().name(format!("worker-{number}"));
        thread.spawn(run)?;
        start.await.map_err(io::Error::other)??;
        Ok(end)
    }
}

async fn scrape_self(
    settings: SelfScrape,
    families: Families,
    path: Arc<WritePath>,
    level: AckLevel,
) {
    let mut times = interval(settings.interval);
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        times.tick().await;
        let body = self_scrape::encode(&families.gather(), &settings.instance, clock::unix_ms());
        match path
            .receive(
                body.into(),
                Reservation::default(),
                level,
                None,
                clock::now(),
            )
            .await
        {
            Ok(()) => {}
            // The cause, such as an unavailable database, is logged where it is detected.
            Err(Refusal::Busy(reason)) => {
                tracing::debug!("could not store the gateway's own metrics: {reason}")
            }
            Err(refusal) => tracing::warn!("the gateway's own metrics were refused: {refusal}"),
        }
    }
}
