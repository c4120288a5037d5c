//! Object storage's own thread: started with the gateway, ended in good order.

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

/// Of its runtime; tables are put together and taken apart on them.
const THREADS: usize = 2;

/// What an operator chooses.
#[derive(Debug, Clone)]
pub struct ObjectSettings {
    /// Where objects lie.
    pub location: Location,
    /// How often it is asked what is due.
    pub interval: Duration,
    /// Segments recalled at once.
    pub recalls_at_once: usize,
    /// How long an object is kept that no part names.
    pub orphan_age: Duration,
    /// How much may wait to be offloaded.
    pub backlog: BacklogLimit,
    /// Memory for indexes and filters.
    pub cache_bytes_max: usize,
}

/// What runs.
pub struct Objects {
    stop: watch::Sender<bool>,
    ended: oneshot::Receiver<()>,
}

impl Objects {
    /// Starts a thread for it. Nothing that goes wrong from then on ends the gateway.
    ///
    /// # Errors
    /// The thread or its runtime cannot be made.
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
                // Whatever is left, such as a request that is not answered, is not waited for.
                runtime.shutdown_background();
                let _ = end.send(());
            })?;
        Ok(Self { stop, ended })
    }

    /// Ends it: what is on its way is dropped, the claim is given up, the store is closed.
    pub async fn stop(self) {
        let _ = self.stop.send(true);
        let _ = self.ended.await;
    }
}

/// Runs terms until it is told to stop, then closes what is open.
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
        // A sender that is gone is a gateway that is gone.
        _ = stop.wait_for(|stop| *stop) => {}
    }
    terms.source.release().await;
    let store = opened.borrow().clone();
    if let Some(store) = store {
        store.close().await;
    }
}
