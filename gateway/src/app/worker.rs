//! A worker: a thread with its own runtime, batches and sessions of the database that write them. All workers use the
//! values in [`Shared`].

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;

use super::handlers::{Common, Handlers};
use super::metrics::AppMetrics;
use super::settings::AppSettings;
use crate::access::{Guard, Writers};
use crate::batch::QUEUE_REQUESTS_MAX;
use crate::batch::accumulate::{Accumulator, BatchLimits, JOINERS_BYTES_MAX};
use crate::batch::register::RegisterJob;
use crate::deliver::{Sender, Sink};
use crate::events::{Accumulators, Catalogue, EventPath};
use crate::http::server::Server;
use crate::model::{AckLevel, Budget};
use crate::observe::Status;
use crate::query::QueryApi;
use crate::quota::Quotas;
use crate::receive::WritePath;
use crate::series::SeriesCache;

/// The values that all workers of a gateway use. A clone has the same values.
#[derive(Clone)]
pub struct Shared {
    /// The settings.
    pub settings: AppSettings,
    /// The memory of all requests.
    pub budget: Budget,
    /// Known series.
    pub cache: Arc<SeriesCache>,
    /// The memory of the buffers that accumulators keep from batch to batch.
    pub joiners: Budget,
    /// The metrics of all parts.
    pub metrics: AppMetrics,
    /// Readiness and rates.
    pub status: Arc<Status>,
    /// Permits to decode a long body of events.
    pub decoders: Arc<Semaphore>,
    /// Users and certificates.
    pub guard: Arc<Guard>,
    /// The default limits of what users write.
    pub quotas: Arc<Quotas>,
    /// Prometheus's query API, whose sessions all workers use.
    pub query: Arc<QueryApi>,
    /// The queue of series to register.
    pub register: mpsc::Sender<RegisterJob>,
}

impl Shared {
    /// Makes these values for one gateway. Its workers send the series that have to be registered to `register`.
    pub fn new(
        settings: AppSettings,
        cache: Arc<SeriesCache>,
        metrics: AppMetrics,
        register: mpsc::Sender<RegisterJob>,
    ) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let budget = Budget::new(settings.pending_bytes_max, settings.pending_wait);
        let query = QueryApi::new(
            settings.query.clone(),
            budget.clone(),
            settings.receive.body_timeout,
            Arc::clone(&metrics.query),
        );
        let guard = Guard::new(&settings.access.loaded, Arc::clone(&metrics.access));
        let quotas = Quotas::new(settings.user_limits, Arc::clone(&metrics.quota));
        Shared {
            settings,
            budget,
            cache,
            joiners: Budget::new(JOINERS_BYTES_MAX, Duration::ZERO),
            metrics,
            status: Arc::new(Status::default()),
            decoders: Arc::new(Semaphore::new(cores)),
            guard: Arc::new(guard),
            quotas: Arc::new(quotas),
            query: Arc::new(query),
            register,
        }
    }

    /// Makes what the handlers of one worker use besides the worker's own paths for samples and events.
    fn common(&self) -> Common {
        let settings = &self.settings;
        Common {
            status: Arc::clone(&self.status),
            metrics: self.metrics.clone(),
            default_level: settings.default_level,
            has_objects: settings.has_objects,
            hosts: settings.hosts.clone(),
            guard: Arc::clone(&self.guard),
            quotas: Arc::clone(&self.quotas),
            query: Arc::clone(&self.query),
        }
    }

    /// What connections of one worker need.
    pub fn server(&self) -> Server {
        Server {
            limits: self.settings.server,
            certificates: self.guard.certificates(),
            metrics: Arc::clone(&self.metrics.http),
            handshakes_failed: self.metrics.access.handshakes_failed.clone(),
        }
    }
}

/// Starts the tasks of one worker on the current runtime. Returns them and the handlers that use
/// them.
pub fn start<S: Sink>(shared: &Shared, sink: Arc<S>) -> (Handlers<S>, Vec<JoinHandle<()>>) {
    let settings = &shared.settings;
    let metrics = &shared.metrics;
    let senders = AckLevel::ALL.map(|level| {
        let metrics = Arc::clone(&metrics.deliver);
        Arc::new(Sender::new(Arc::clone(&sink), level, metrics))
    });
    let of_samples = accumulators(&senders, &shared.joiners, settings.batch, false);
    let of_tables = accumulators(
        &senders,
        &shared.joiners,
        table_limits(settings.batch),
        true,
    );
    let mut tasks = Vec::new();
    let levels = AckLevel::ALL.map(|level| {
        let (requests, received) = mpsc::channel(QUEUE_REQUESTS_MAX);
        tasks.push(tokio::spawn(of_samples(level).run(received, None)));
        requests
    });
    let writers = Writers::new(
        Arc::clone(&sink),
        Arc::clone(&metrics.access),
        settings.receive.ack_timeout,
    );
    let samples_table = settings.events.samples_table.clone();
    let cache = Arc::clone(&shared.cache);
    let events = EventPath {
        settings: settings.events.clone(),
        ack_timeout: settings.receive.ack_timeout,
        budget: shared.budget.clone(),
        http: Arc::clone(&metrics.http),
        deliver: Arc::clone(&metrics.deliver),
        decoders: Arc::clone(&shared.decoders),
        catalogue: Arc::new(Catalogue::new(sink, Arc::clone(&cache), samples_table)),
        accumulators: Accumulators::new(of_tables),
    };
    let path = WritePath {
        limits: settings.receive,
        budget: shared.budget.clone(),
        cache,
        metrics: Arc::clone(&metrics.receive),
        http: Arc::clone(&metrics.http),
        deliver: Arc::clone(&metrics.deliver),
        register: shared.register.clone(),
        levels,
    };
    let handlers = Handlers {
        path: Arc::new(path),
        events: Arc::new(events),
        writers: Arc::new(writers),
        common: Arc::new(shared.common()),
    };
    (handlers, tasks)
}

/// The limits of batches of events. They have one slot more than batches of samples: even with the
/// fewest slots, one locked table leaves a slot to another. By default one table has one batch in
/// flight, and two from three sessions on; its next batch grows meanwhile.
fn table_limits(samples: BatchLimits) -> BatchLimits {
    BatchLimits {
        in_flight_max: samples.in_flight_max + 1,
        ..samples
    }
}

/// Returns a function that creates an accumulator for a level. Its accumulators share slots with
/// no others, so that a locked or slow table never delays samples.
fn accumulators<S: Sink>(
    senders: &[Arc<Sender<S>>; AckLevel::ALL.len()],
    joiners: &Budget,
    limits: BatchLimits,
    leaves_room: bool,
) -> impl Fn(AckLevel) -> Accumulator<S> + Send + Sync + use<S> {
    let (senders, joiners) = (senders.clone(), joiners.clone());
    let slots = AckLevel::ALL.map(|_| Arc::new(Semaphore::new(limits.in_flight_max)));
    move |level| Accumulator {
        sender: Arc::clone(&senders[level.index()]),
        limits,
        leaves_room,
        joiners: joiners.clone(),
        slots: Arc::clone(&slots[level.index()]),
    }
}
