//! PostgreSQL as a [`Sink`]: a few sessions for each level of acknowledgement, opened when first
//! needed and reopened when lost.
//!
//! The callers determine the number of sessions. Each level of a worker uses as many as it has
//! batches in flight; registration and supervision use one each. Idle sessions are kept here.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::call_error::CallError;
use super::connection::Connection;
use super::describe::create_statement;
use super::logged::no_log;
use super::metrics::DeliverMetrics;
use super::opening_pause::OpeningPause;
use super::registration::Unregistered;
use super::registry::Registry;
use super::sink::{Append, Health, Registered, Repeated, Sink, SinkError};
use crate::clock::{self, Instant};
use crate::connect::Connector;
use crate::model::{AckLevel, ColumnKind, InsertPrivilege, Table};
use crate::objects::ObjectLog;
use crate::series::{LabelSet, SeriesCache};

/// How to connect to the database.
#[derive(Clone)]
pub struct PostgresSettings {
    /// The address, the role and the password.
    pub connection: Connector,
    /// The table of samples, with its schema.
    pub table: String,
    /// The timeout for opening a session.
    pub connect_timeout: Duration,
    /// The timeout for each call.
    pub statement_timeout: Duration,
}

/// The database behind the gateway.
pub struct PostgresSink {
    settings: PostgresSettings,
    registry: Arc<Registry>,
    metrics: Arc<DeliverMetrics>,
    /// The log for level `object`; `None` if that level cannot be kept.
    log: Option<Arc<ObjectLog>>,
    idle: [Mutex<Vec<Connection>>; AckLevel::ALL.len()],
    supervision: Mutex<Vec<Connection>>,
    /// Shared by the sinks of all threads.
    opening_pause: Arc<OpeningPause>,
    /// The time at which a write last met a full disk. Shared by the sinks of all threads.
    disk_full: Arc<Mutex<Option<Instant>>>,
    is_reachable: AtomicBool,
    last_warning: Mutex<Option<(String, Instant)>>,
}

/// The time in which the same failure is logged only once.
const WARNING_INTERVAL: Duration = Duration::from_secs(10);

impl PostgresSink {
    /// Creates a sink without opening a session.
    pub fn new(
        settings: PostgresSettings,
        cache: Arc<SeriesCache>,
        metrics: Arc<DeliverMetrics>,
    ) -> Self {
        Self::on(settings, Arc::new(Registry::new(cache)), metrics)
    }

    /// Adds the log for level `object`.
    pub fn with_log(mut self, log: Arc<ObjectLog>) -> Self {
        self.log = Some(log);
        self
    }

    /// Returns the log if it accepts entries.
    fn open_log(&self) -> Result<&ObjectLog, SinkError> {
        let log = self.log.as_deref().ok_or_else(no_log)?;
        match log.check_open() {
            Ok(()) => Ok(log),
            Err(error) => Err(SinkError::Unavailable(error.to_string())),
        }
    }

    fn on(
        settings: PostgresSettings,
        registry: Arc<Registry>,
        metrics: Arc<DeliverMetrics>,
    ) -> Self {
        Self {
            settings,
            registry,
            metrics,
            log: None,
            idle: Default::default(),
            supervision: Mutex::default(),
            opening_pause: Arc::default(),
            disk_full: Arc::default(),
            is_reachable: AtomicBool::new(true),
            last_warning: Mutex::default(),
        }
    }

    async fn session(
        &self,
        place: &Mutex<Vec<Connection>>,
        level: AckLevel,
    ) -> Result<Connection, SinkError> {
        loop {
            // The session is taken while the lock is held, which ends before the next await.
            let idle = place.lock().pop();
            match idle {
                // A session of an earlier registry is unusable.
                Some(connection)
                    if !connection.is_closed()
                        && connection.generation() == self.registry.generation() =>
                {
                    return Ok(connection);
                }
                Some(lost) => drop(lost),
                None => break,
            }
        }
        self.opening_pause.check()?;
        let Self {
            settings, registry, ..
        } = self;
        let opened = Connection::open(
            &settings.connection,
            level,
            registry,
            settings.connect_timeout,
            settings.statement_timeout,
        )
        .await;
        match opened {
            Ok(connection) => {
                self.opening_pause.end();
                self.metrics.postgres_sessions_opened.inc();
                if !self.is_reachable.swap(true, Ordering::AcqRel) {
                    tracing::info!("PostgreSQL is available again");
                }
                Ok(connection)
            }
            Err(error) => {
                self.opening_pause.note(&error);
                Err(self.note(error))
            }
        }
    }

    /// Returns the ids of label sets.
    async fn ids(
        &self,
        label_sets: &[&LabelSet],
        unregistered: Unregistered,
    ) -> Result<Registered, SinkError> {
        // An id must not be lost after it has been used, so level memory is not enough.
        let place = &self.idle[AckLevel::Wal.index()];
        let session = self.session(place, AckLevel::Wal).await?;
        let generation = session.generation();
        let result = session.ids(label_sets, unregistered).await;
        self.settle(place, session, result)
            .map(|ids| Registered { ids, generation })
    }

    /// Puts a session back if it is still usable, and converts the error.
    fn settle<T>(
        &self,
        place: &Mutex<Vec<Connection>>,
        session: Connection,
        result: Result<T, CallError>,
    ) -> Result<T, SinkError> {
        let is_good = match &result {
            Ok(_) => true,
            Err(error) => error.is_session_good,
        };
        if is_good && !session.is_closed() {
            place.lock().push(session);
        }
        result.map_err(|error| self.note(error))
    }

    /// Records that the disk has room again, unless it was full less than `since` ago. The disk of
    /// one table may be full while another's is not.
    fn note_room(&self, since: Duration) {
        if self.metrics.postgres_disk_full.get() == 0 {
            return;
        }
        let mut full = self.disk_full.lock();
        if full.is_some_and(|at| clock::now() - at >= since) {
            *full = None;
            self.metrics.postgres_disk_full.set(0);
            tracing::info!("PostgreSQL's disk has room again: writes are accepted");
        }
    }

    fn note(&self, error: CallError) -> SinkError {
        if matches!(error.error, SinkError::Duplicates { .. }) {
            return error.error;
        }
        self.metrics
            .postgres_errors
            .with_label_values(&[error.kind.as_str()])
            .inc();
        if error.kind == DISK_FULL {
            let before = self.disk_full.lock().replace(clock::now());
            if before.is_none() {
                self.metrics.postgres_disk_full.set(1);
                tracing::warn!(
                    kind = error.kind,
                    "PostgreSQL's disk is full; writes are refused until there is room: {}",
                    error.error
                );
            }
            return error.error;
        }
        let is_news = !error.is_session_good && self.is_reachable.swap(false, Ordering::AcqRel);
        let mut last = self.last_warning.lock();
        let now = clock::now();
        let is_repeated = last
            .as_ref()
            .is_some_and(|(kind, at)| *kind == error.kind && now - *at < WARNING_INTERVAL);
        if is_news || !is_repeated {
            tracing::warn!(kind = error.kind, "{}", error.error);
            *last = Some((error.kind, now));
        } else {
            tracing::debug!(kind = error.kind, "{}", error.error);
        }
        error.error
    }
}

/// The SQLSTATE of a full disk.
const DISK_FULL: &str = "53100";
/// The time after a write that met a full disk until a successful write shows that there is room
/// again.
const ROOM_AFTER: Duration = Duration::from_secs(2);
/// The time without a write that met a full disk after which the disk is assumed to have room
/// again.
const ROOM_IF_SILENT: Duration = Duration::from_secs(30);

impl Sink for PostgresSink {
    fn for_another_thread(self: &Arc<Self>) -> Arc<Self> {
        let sink = Self::on(
            self.settings.clone(),
            Arc::clone(&self.registry),
            Arc::clone(&self.metrics),
        );
        Arc::new(Self {
            log: self.log.clone(),
            opening_pause: Arc::clone(&self.opening_pause),
            disk_full: Arc::clone(&self.disk_full),
            ..sink
        })
    }

    async fn describe(&self, schema: &str, table: &str) -> Result<Option<Table>, SinkError> {
        let session = self.session(&self.supervision, AckLevel::Memory).await?;
        let result = session.describe(schema, table).await;
        self.settle(&self.supervision, session, result)
    }

    async fn may_insert(&self, role: &str, table: &str) -> Result<InsertPrivilege, SinkError> {
        let session = self.session(&self.supervision, AckLevel::Memory).await?;
        let result = session.may_insert(role, table).await;
        self.settle(&self.supervision, session, result)
    }

    async fn register(&self, label_sets: &[&LabelSet]) -> Result<Registered, SinkError> {
        self.ids(label_sets, Unregistered::Register).await
    }

    async fn look_up(&self, label_sets: &[&LabelSet]) -> Result<Registered, SinkError> {
        self.ids(label_sets, Unregistered::Leave).await
    }

    async fn append(&self, append: Append<'_>) -> Result<(), SinkError> {
        // The log is checked first: appending rows that cannot be logged would be useless.
        let log = match append.level {
            AckLevel::Object => Some(self.open_log()?),
            _ => None,
        };
        let place = &self.idle[append.level.index()];
        let session = self.session(place, append.level).await?;
        if session.generation() != append.target.generation() {
            // Either the request or the session belongs to an earlier registry. Such a session is
            // dropped.
            if session.generation() == self.registry.generation() {
                place.lock().push(session);
            }
            return Err(SinkError::OtherRegistry);
        }
        let samples = &self.settings.table;
        let result = match log {
            Some(log) => session.append_logged(samples, &append, log).await,
            None => session.append(samples, &append).await,
        };
        if result.is_ok() {
            self.note_room(ROOM_AFTER);
        }
        self.settle(place, session, result)
    }

    async fn create(
        &self,
        schema: &str,
        table: &str,
        columns: &[(&str, ColumnKind)],
        is_unlogged: bool,
    ) -> Result<(), SinkError> {
        let session = self.session(&self.supervision, AckLevel::Memory).await?;
        let statement = create_statement(schema, table, columns, is_unlogged);
        let result = session.define(&statement).await;
        self.settle(&self.supervision, session, result)
    }

    async fn confirm(&self, level: AckLevel) -> Result<(), SinkError> {
        if level == AckLevel::Memory {
            return Ok(());
        }
        let place = &self.idle[level.index()];
        let session = self.session(place, level).await?;
        let result = session.confirm().await;
        self.settle(place, session, result)
    }

    async fn log_again(&self, repeated: Repeated<'_>) -> Result<(), SinkError> {
        let log = self.open_log()?;
        let place = &self.idle[AckLevel::Object.index()];
        let session = self.session(place, AckLevel::Object).await?;
        let result = session
            .log_again(&self.settings.table, &repeated, log)
            .await;
        self.settle(place, session, result)
    }

    async fn health(&self) -> Result<Health, SinkError> {
        self.note_room(ROOM_IF_SILENT);
        let session = self.session(&self.supervision, AckLevel::Memory).await?;
        let result = session.health(&self.registry).await;
        self.settle(&self.supervision, session, result)
    }

    async fn forget(&self, window: Duration) -> Result<u64, SinkError> {
        let session = self.session(&self.supervision, AckLevel::Memory).await?;
        let result = session.forget(window).await;
        self.settle(&self.supervision, session, result)
    }
}
