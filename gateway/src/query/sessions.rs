//! A bounded number of sessions that only read, shared by all workers.
//!
//! The pool keeps the sessions. This module adds what they run first, the bound of requests that wait, and the words
//! for a request that gets no session.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_postgres::types::ToSql;

use super::failure::Failure;
use super::metrics::QueryMetrics;
use super::pool::{Lease, Patience, Pool, PoolError};
use super::running::{Rows, Running, millis};
use super::settings::QuerySettings;
use crate::clock;
use crate::connect::Connector;

/// What a new session runs first. JIT compilation would take longer than most queries.
const SET_UP: &str = "SET search_path = pg_catalog; SET default_transaction_read_only = on; SET jit = off; \
     SET default_transaction_isolation = 'read committed'; SET client_min_messages = warning";

/// A parameter of a statement.
pub type Parameter = Box<dyn ToSql + Send + Sync>;

/// A statement, prepared once in each session.
pub struct Statement {
    /// The text.
    pub sql: &'static str,
    /// The parameters.
    pub parameters: Vec<Parameter>,
    /// The maximum time of the statement, with its wait for a session.
    pub timeout: Duration,
}

/// The sessions as a role: that of the user, or that of the login.
pub struct AsRole<'a> {
    sessions: &'a ReadSessions,
    role: Option<Arc<str>>,
}

impl AsRole<'_> {
    /// Runs a statement until its first row or its end.
    ///
    /// # Errors
    /// Returns a failure if no session is free in time, PostgreSQL is unavailable or the role cannot
    /// be taken, and the error of the statement if it has no row.
    pub async fn run(&self, statement: Statement) -> Result<Rows, Failure> {
        self.sessions.run(statement, self.role.clone()).await
    }
}

/// The sessions.
pub struct ReadSessions {
    pool: Arc<Pool>,
    /// One permit for each request that has a session or waits for one.
    places: Arc<Semaphore>,
    settings: QuerySettings,
    connector: Connector,
    metrics: Arc<QueryMetrics>,
}

impl ReadSessions {
    /// Creates the sessions of a connection without opening one.
    pub fn new(connector: Connector, settings: QuerySettings, metrics: Arc<QueryMetrics>) -> Self {
        let set_up = format!(
            "{SET_UP}; SET statement_timeout = {}",
            millis(settings.timeout)
        );
        let pool = Pool::new(connector.clone(), set_up, settings.sessions);
        Self {
            pool,
            places: Arc::new(Semaphore::new(settings.sessions + settings.queue)),
            settings,
            connector,
            metrics,
        }
    }

    /// Returns the sessions as a role; with `None` as the role of the login.
    pub fn as_role(&self, role: Option<Arc<str>>) -> AsRole<'_> {
        AsRole {
            sessions: self,
            role,
        }
    }

    async fn run(&self, statement: Statement, role: Option<Arc<str>>) -> Result<Rows, Failure> {
        let started = clock::now();
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            return Err(self.refused(format!(
                "{} queries run and {} wait (query.sessions, query.queue)",
                self.settings.sessions, self.settings.queue
            )));
        };
        let lease = self.lease(statement.timeout).await?;
        let left = statement.timeout.saturating_sub(clock::now() - started);
        if left.is_zero() {
            return Err(Failure::timeout());
        }
        let busy = Busy::new(place, self);
        let running = Running::new(lease, busy, left, role);
        running.start(statement).await
    }

    async fn lease(&self, timeout: Duration) -> Result<Lease, Failure> {
        let started = clock::now();
        let patience = Patience {
            wait: self.settings.queue_wait,
            connect: self.settings.connect_timeout,
        };
        // A statement may have less time than its wait.
        match tokio::time::timeout(timeout, self.pool.take(patience)).await {
            Ok(Ok(lease)) => Ok(lease),
            Ok(Err(_)) if clock::now() - started >= timeout => Err(Failure::timeout()),
            Ok(Err(PoolError::Wait)) => Err(self.refused(format!(
                "no session became free within {:?} (query.queue_wait)",
                self.settings.queue_wait
            ))),
            Ok(Err(PoolError::Database(error))) => Err(Failure::of_database(&error, false, None)),
            Ok(Err(PoolError::Connect)) => Err(Failure::unavailable(format!(
                "could not open a session with PostgreSQL within {:?} (postgres.connect_timeout)",
                self.settings.connect_timeout
            ))),
            Err(_) => Err(Failure::timeout()),
        }
    }

    fn refused(&self, reason: String) -> Failure {
        self.metrics.refused.inc();
        Failure::unavailable(reason)
    }
}

/// The place of a request that has a session. Dropping it frees the place.
pub(super) struct Busy {
    _place: OwnedSemaphorePermit,
    /// The timeout of its statements, unless they have one of their own.
    pub session_timeout: Duration,
    /// Cancels the statement of the session.
    pub connector: Connector,
    /// The metrics of queries.
    pub metrics: Arc<QueryMetrics>,
}

impl Busy {
    fn new(place: OwnedSemaphorePermit, sessions: &ReadSessions) -> Self {
        sessions.metrics.sessions_in_use.inc();
        Self {
            _place: place,
            session_timeout: sessions.settings.timeout,
            connector: sessions.connector.clone(),
            metrics: Arc::clone(&sessions.metrics),
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.metrics.sessions_in_use.dec();
    }
}
