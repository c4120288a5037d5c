//! The thread of object storage: started with the gateway, and stopped in order.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{oneshot, watch};

use super::backlog::{BacklogLimit, BacklogWatch};
use super::log::LogWriter;
use super::model::{ObjectMetrics, ObjectStatus, Pauses};
use super::source::Source;
use super::store::location::Location;
use super::store::{Opener, Store};
use super::term::Terms;

/// The number of threads of its runtime, which build and read SlateDB's tables.
const THREADS: usize = 2;

/// The settings of object storage.
#[derive(Debug, Clone)]
pub struct ObjectSettings {
    /// The directory or bucket of the store.
    pub location: Location,
    /// How often due segments are queried.
    pub interval: Duration,
    /// The number of segments recalled at the same time.
    pub recalls_at_once: usize,
    /// How long an object is kept after no part names it.
    pub orphan_age: Duration,
    /// The limit of the backlog.
    pub backlog: BacklogLimit,
    /// The maximum memory for indexes and filters.
    pub cache_bytes_max: usize,
}

/// The running thread.
pub struct Objects {
    stop: watch::Sender<bool>,
    ended: oneshot::Receiver<()>,
}

impl Objects {
    /// Starts the thread. No later failure ends the gateway.
    ///
    /// # Errors
    /// Returns an error if the thread or its runtime cannot be created.
    pub fn start<S: Source, O: Opener>(
        source: S,
        opener: O,
        settings: ObjectSettings,
        log: LogWriter,
        status: Arc<ObjectStatus>,
        metrics: Arc<ObjectMetrics>,
    ) -> io::Result<Self> {
        let terms = Terms {
            source: Arc::new(source),
            opener,
            settings,
            log,
            pauses: Pauses::default(),
            status,
            metrics,
        };
        let (stop, stopped) = watch::channel(false);
        let (end, ended) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("objects")
            .enable_all()
            .build()?;
        std::thread::Builder::new()
            .name("objects".to_owned())
            .spawn(move || {
                runtime.block_on(run_until(terms, stopped));
                // Unfinished work, such as a request without an answer, is abandoned.
                runtime.shutdown_background();
                let _ = end.send(());
            })?;
        Ok(Self { stop, ended })
    }

    /// Stops the thread: work in progress is dropped, the claim is released, and the store is
    /// closed.
    pub async fn stop(self) {
        let _ = self.stop.send(true);
        let _ = self.ended.await;
    }
}

/// Runs terms until `stop` turns true, then closes what is open.
pub async fn run_until<S: Source, O: Opener>(terms: Terms<S, O>, mut stop: watch::Receiver<bool>) {
    let (open, opened) = watch::channel(None);
    let backlog = BacklogWatch {
        source: Arc::clone(&terms.source),
        limit: terms.settings.backlog,
        interval: terms.settings.interval,
        status: Arc::clone(&terms.status),
        metrics: Arc::clone(&terms.metrics),
    };
    tokio::select! {
        () = terms.run(&open) => {}
        () = backlog.run() => {}
        // If the sender is dropped, the gateway has ended.
        _ = stop.wait_for(|stop| *stop) => {}
    }
    terms.source.release().await;
    let store = opened.borrow().clone();
    if let Some(store) = store {
        store.close().await;
    }
}
