//! The parts put together, started and stopped.
//!
//! Shutdown: `/-/ready` turns 503, the listener closes, requests on their way are stored and answered, then the tasks behind them end.
//! Whatever is not answered by then was never acknowledged.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use crate::batch::accumulate::BatchLimits;
use crate::batch::payload::JOINERS_BYTES_MAX;
use crate::batch::{Budget, Reservation, SeriesCache, register};
use crate::clock;
use crate::deliver::{AckLevel, Sink};
use crate::error::Refusal;
use crate::events::EventSettings;
use crate::hosts::Hosts;
use crate::observe::supervise::Supervision;
use crate::observe::{Metrics, Status, self_scrape};
use crate::receive::{ReceiveLimits, WritePath};
use crate::router::{Handlers, router};
use crate::server::{Accepted, ServerLimits, accept_all, serve};
use crate::service::service;
use crate::worker::{self, QUEUE_REQUESTS_MAX, Shared};

/// Connections accepted and not yet taken by their worker.
const ACCEPTED_MAX: usize = 64;

/// All that the parts need to know.
#[derive(Debug, Clone)]
pub struct AppSettings {
    /// Connections.
    pub server: ServerLimits,
    /// Names under which it is asked.
    pub hosts: Hosts,
    /// Requests.
    pub receive: ReceiveLimits,
    /// Events.
    pub events: EventSettings,
    /// Memory of all requests.
    pub pending_bytes_max: usize,
    /// How long a request waits for memory.
    pub pending_wait: Duration,
    /// Batches.
    pub batch: BatchLimits,
    /// The level of requests that choose none.
    pub default_level: AckLevel,
    /// Whether level [`AckLevel::Object`] can be kept: there is object storage.
    pub has_objects: bool,
    /// How long digests are kept.
    pub request_window: Duration,
    /// How often the gateway stores its own metrics; `None` for never.
    pub self_scrape: Option<SelfScrape>,
}

/// Storing the gateway's own metrics.
#[derive(Debug, Clone)]
pub struct SelfScrape {
    /// How often.
    pub interval: Duration,
    /// The value of label `instance`.
    pub instance: String,
}

/// A running gateway without its listener; tests speak to its handlers directly.
pub struct App<S> {
    shared: Shared,
    sink: Arc<S>,
    /// Those of the worker on this runtime: the only one, or the one that stores the gateway's own metrics.
    handlers: Handlers<S>,
    tasks: Vec<JoinHandle<()>>,
}

impl<S: Sink> App<S> {
    /// Starts all tasks but those of further workers.
    pub fn start(
        settings: AppSettings,
        sink: Arc<S>,
        cache: Arc<SeriesCache>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let status = Arc::new(Status::default());
        let budget = Budget::new(settings.pending_bytes_max, settings.pending_wait);
        let (register, register_jobs) = mpsc::channel(QUEUE_REQUESTS_MAX);
        let registration = tokio::spawn(register::run(
            register_jobs,
            Arc::clone(&sink),
            Arc::clone(&cache),
            Arc::clone(&metrics),
        ));
        let supervision = Supervision {
            is_missing_told: AtomicBool::new(false),
            sink: Arc::clone(&sink),
            status: Arc::clone(&status),
            metrics: Arc::clone(&metrics),
            cache: Arc::clone(&cache),
            budget: budget.clone(),
            request_window: settings.request_window,
        };
        let shared = Shared {
            settings,
            budget,
            cache,
            joiners: Budget::new(JOINERS_BYTES_MAX, Duration::ZERO),
            metrics,
            status,
            decoders: Arc::new(Semaphore::new(cores)),
            register,
        };
        let (handlers, mut tasks) = worker::start(&shared, Arc::clone(&sink));
        tasks.extend([registration, tokio::spawn(supervision.run())]);
        if let Some(own) = shared.settings.self_scrape.clone() {
            tasks.push(tokio::spawn(scrape_self(
                own,
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

    /// The routes.
    pub fn router(&self) -> axum::Router {
        router(self.handlers.clone())
    }

    /// Readiness and rates.
    pub fn status(&self) -> &Arc<Status> {
        &self.shared.status
    }

    /// Serves `listener` until `stop` turns true and requests on their way have ended. Returns whether all of them did.
    ///
    /// # Errors
    /// A worker cannot be started; nothing is served then.
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
                let metrics = Arc::clone(&self.shared.metrics);
                here = Some(tokio::spawn(serve(
                    received,
                    service(self.handlers.clone()),
                    limits,
                    metrics,
                )));
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

    /// A thread that serves what it is dealt; the receiver tells how it ended.
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
                let limits = shared.settings.server;
                serve(connections, service(handlers), limits, shared.metrics).await
            });
            // Who started it may be gone.
            let _ = ended.send(all_ended);
        };
        let thread = std::thread::Builder::new().name(format!("worker-{number}"));
        thread.spawn(run)?;
        start.await.map_err(io::Error::other)??;
        Ok(end)
    }
}

async fn scrape_self(own: SelfScrape, path: Arc<WritePath>, level: AckLevel) {
    let mut times = interval(own.interval);
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        times.tick().await;
        let body = self_scrape::encode(&path.metrics.gather(), &own.instance, clock::unix_ms());
        match path
            .receive(body.into(), Reservation::default(), level, clock::now())
            .await
        {
            Ok(()) => {}
            // PostgreSQL is away, which is logged elsewhere; the gap in the samples tells it too.
            Err(Refusal::Busy(reason)) => tracing::debug!("own metrics are not stored: {reason}"),
            Err(refusal) => tracing::warn!("own metrics are refused: {refusal}"),
        }
    }
}
