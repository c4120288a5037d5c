//! The parts put together, started and stopped.
//!
//! Shutdown: `/-/ready` turns 503, the listener closes, requests on their way are stored and answered, then the tasks behind them end.
//! Whatever is not answered by then was never acknowledged.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use crate::batch::accumulate::{self, BatchLimits};
use crate::batch::{Budget, Reservation, SeriesCache, register};
use crate::clock;
use crate::deliver::{AckLevel, Sender, Sink};
use crate::error::Refusal;
use crate::observe::supervise::Supervision;
use crate::observe::{Metrics, Status, self_scrape};
use crate::receive::{ReceiveLimits, WritePath};
use crate::router::{Handlers, router};
use crate::server::{ServerLimits, serve};

/// Requests that may wait in one channel; their memory is bounded by the budget.
const QUEUE_REQUESTS_MAX: usize = 1024;

/// All that the parts need to know.
#[derive(Debug, Clone)]
pub struct AppSettings {
    /// Connections.
    pub server: ServerLimits,
    /// Requests.
    pub receive: ReceiveLimits,
    /// Memory of all requests.
    pub pending_bytes_max: usize,
    /// How long a request waits for memory.
    pub pending_wait: Duration,
    /// Batches.
    pub batch: BatchLimits,
    /// The level of requests that choose none.
    pub default_level: AckLevel,
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
pub struct App {
    settings: AppSettings,
    handlers: Handlers,
    metrics: Arc<Metrics>,
    status: Arc<Status>,
    tasks: Vec<JoinHandle<()>>,
}

impl App {
    /// Starts all tasks.
    pub fn start<S: Sink>(
        settings: AppSettings,
        sink: Arc<S>,
        cache: Arc<SeriesCache>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let status = Arc::new(Status::default());
        let budget = Budget::new(settings.pending_bytes_max, settings.pending_wait);
        let (register, register_jobs) = mpsc::channel(QUEUE_REQUESTS_MAX);
        let mut tasks = vec![tokio::spawn(register::run(
            register_jobs,
            Arc::clone(&sink),
            Arc::clone(&cache),
            Arc::clone(&metrics),
        ))];
        let levels = AckLevel::ALL.map(|level| {
            let (requests, received) = mpsc::channel(QUEUE_REQUESTS_MAX);
            let sender = Arc::new(Sender::new(Arc::clone(&sink), level, Arc::clone(&metrics)));
            tasks.push(tokio::spawn(accumulate::run(
                received,
                sender,
                settings.batch,
            )));
            requests
        });
        let supervision = Supervision {
            sink,
            status: Arc::clone(&status),
            metrics: Arc::clone(&metrics),
            cache: Arc::clone(&cache),
            budget: budget.clone(),
            request_window: settings.request_window,
        };
        tasks.push(tokio::spawn(supervision.run()));
        let path = WritePath {
            limits: settings.receive,
            budget,
            cache,
            metrics: Arc::clone(&metrics),
            register,
            levels,
        };
        let path = Arc::new(path);
        if let Some(own) = settings.self_scrape.clone() {
            tasks.push(tokio::spawn(scrape_self(
                own,
                Arc::clone(&path),
                settings.default_level,
            )));
        }
        let handlers = Handlers {
            path,
            status: Arc::clone(&status),
            default_level: settings.default_level,
        };
        Self {
            settings,
            handlers,
            metrics,
            status,
            tasks,
        }
    }

    /// The routes.
    pub fn router(&self) -> axum::Router {
        router(self.handlers.clone())
    }

    /// Readiness and rates.
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// Serves `listener` until `stop` turns true and requests on their way have ended. Returns whether all of them did.
    pub async fn serve(self, listener: TcpListener, stop: watch::Receiver<bool>) -> bool {
        let mut stopping = stop.clone();
        let status = Arc::clone(&self.status);
        let announce = tokio::spawn(async move {
            let _ = stopping.wait_for(|stop| *stop).await;
            status.set_stopping();
        });
        let all_ended = serve(
            listener,
            self.router(),
            self.settings.server,
            Arc::clone(&self.metrics),
            stop,
        )
        .await;
        announce.abort();
        for task in &self.tasks {
            task.abort();
        }
        all_ended
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
