//! A worker: a thread with a runtime, sessions and batches of its own. Nothing that a request touches on its way is another worker's, but
//! the cache of series, the memory budget and the registration of new series.

use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;

use crate::app::AppSettings;
use crate::batch::accumulate::{Accumulator, BatchLimits};
use crate::batch::register::RegisterJob;
use crate::batch::{Budget, SeriesCache};
use crate::deliver::{AckLevel, Sender, Sink};
use crate::events::{Accumulators, Catalogue, EventPath};
use crate::observe::{Metrics, Status};
use crate::receive::WritePath;
use crate::router::Handlers;

/// Requests that may wait in one channel; their memory is bounded by the budget.
pub const QUEUE_REQUESTS_MAX: usize = 1024;

/// What all workers share.
#[derive(Clone)]
pub struct Shared {
    /// Bounds.
    pub settings: AppSettings,
    /// Memory of all requests.
    pub budget: Budget,
    /// Known series.
    pub cache: Arc<SeriesCache>,
    /// Memory of what accumulators keep from batch to batch.
    pub joiners: Budget,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Readiness and rates.
    pub status: Arc<Status>,
    /// Turns to decode long bodies of events.
    pub decoders: Arc<Semaphore>,
    /// To the registration of new series.
    pub register: mpsc::Sender<RegisterJob>,
}

/// The handlers of one worker, and the tasks behind them, started on the runtime that this is called on.
pub fn start<S: Sink>(shared: &Shared, sink: Arc<S>) -> (Handlers<S>, Vec<JoinHandle<()>>) {
    let Shared {
        settings,
        budget,
        cache,
        joiners,
        metrics,
        status,
        decoders,
        register,
    } = shared.clone();
    let senders = AckLevel::ALL
        .map(|level| Arc::new(Sender::new(Arc::clone(&sink), level, Arc::clone(&metrics))));
    // Slots of samples and slots of tables, so that a table that is locked or slow never holds up samples.
    let accumulators_of = |limits: BatchLimits, leaves_room: bool| {
        let (senders, joiners) = (senders.clone(), joiners.clone());
        let slots = AckLevel::ALL.map(|_| Arc::new(Semaphore::new(limits.in_flight_max)));
        move |level: AckLevel| Accumulator {
            sender: Arc::clone(&senders[level.index()]),
            limits,
            leaves_room,
            joiners: joiners.clone(),
            slots: Arc::clone(&slots[level.index()]),
        }
    };
    let of_samples = accumulators_of(settings.batch, false);
    // One more than samples have: with the fewest there can be, one table that is locked still leaves a slot to another. So one table has
    // one batch on its way by default, and two from three sessions on: its next batch is joined meanwhile, and is larger for it.
    let of_tables = accumulators_of(
        BatchLimits {
            in_flight_max: settings.batch.in_flight_max + 1,
            ..settings.batch
        },
        true,
    );
    let mut tasks = Vec::new();
    let levels = AckLevel::ALL.map(|level| {
        let (requests, received) = mpsc::channel(QUEUE_REQUESTS_MAX);
        tasks.push(tokio::spawn(of_samples(level).run(received, None)));
        requests
    });
    let samples_table = settings.events.samples_table.clone();
    let events = EventPath {
        settings: settings.events,
        limits: settings.receive,
        budget: budget.clone(),
        metrics: Arc::clone(&metrics),
        decoders,
        catalogue: Arc::new(Catalogue::new(sink, Arc::clone(&cache), samples_table)),
        accumulators: Accumulators::new(of_tables),
    };
    let path = WritePath {
        limits: settings.receive,
        budget,
        cache,
        metrics,
        register,
        levels,
    };
    let handlers = Handlers {
        path: Arc::new(path),
        events: Arc::new(events),
        status,
        default_level: settings.default_level,
        has_objects: settings.has_objects,
        hosts: Arc::new(settings.hosts.clone()),
    };
    (handlers, tasks)
}
