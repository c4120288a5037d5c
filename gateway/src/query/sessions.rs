//! A bounded number of sessions that only read, shared by all workers.
//!
//! `deadpool-postgres` keeps the sessions: it bounds their number, opens them when they are first
//! needed, hands them out in turn and drops those that the server has closed. This module adds what
//! it does not have: the bound of requests that wait, and sessions that live on one runtime,
//! whichever worker opens them. Workers therefore share sessions, and a worker that is busy with
//! writes delays no rows of another.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use deadpool_postgres::{
    Connect, Hook, HookError, Manager, ManagerConfig, Object, Pool, PoolError, QueueMode,
    RecyclingMethod, Runtime, TimeoutType,
};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config};

use super::failure::Failure;
use super::metrics::QueryMetrics;
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
    pool: Pool,
    /// One permit for each request that has a session or waits for one.
    places: Arc<Semaphore>,
    settings: QuerySettings,
    connector: Connector,
    runtime: Handle,
    metrics: Arc<QueryMetrics>,
}

impl ReadSessions {
    /// Creates the sessions of a connection without opening one. They live on the current runtime.
    ///
    /// # Panics
    /// Panics outside of a runtime.
    pub fn new(connector: Connector, settings: QuerySettings, metrics: Arc<QueryMetrics>) -> Self {
        let runtime = Handle::current();
        let connect = OnRuntime {
            runtime: runtime.clone(),
            connector: connector.clone(),
        };
        let config = connector.config().clone();
        let recycling = ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        };
        let set_up = format!(
            "{SET_UP}; SET statement_timeout = {}",
            millis(settings.timeout)
        );
        let set_up: Arc<str> = set_up.into();
        let set_up = Hook::async_fn(move |session: &mut deadpool_postgres::ClientWrapper, _| {
            let set_up = Arc::clone(&set_up);
            Box::pin(async move {
                let set_up = session.batch_execute(&set_up);
                set_up.await.map_err(HookError::Backend)
            })
        });
        let pool = Pool::builder(Manager::from_connect(config, connect, recycling))
            .max_size(settings.sessions)
            // The session used last has the most in its caches.
            .queue_mode(QueueMode::Lifo)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(settings.queue_wait))
            .create_timeout(Some(settings.connect_timeout))
            .post_create(set_up)
            .build()
            .expect("a runtime is given with the timeouts");
        Self {
            pool,
            places: Arc::new(Semaphore::new(settings.sessions + settings.queue)),
            settings,
            connector,
            runtime,
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
        let object = self.session(statement.timeout).await?;
        let left = statement.timeout.saturating_sub(clock::now() - started);
        if left.is_zero() {
            return Err(Failure::timeout());
        }
        let busy = Busy::new(place, self);
        let running = Running::new(object, busy, self.runtime.clone(), left, role);
        running.start(statement).await
    }

    async fn session(&self, timeout: Duration) -> Result<Object, Failure> {
        // Opening a session includes its first statement, which has no timeout of its own.
        let longest = (self.settings.queue_wait + self.settings.connect_timeout).min(timeout);
        match tokio::time::timeout(longest, self.pool.get()).await {
            Ok(Ok(object)) => Ok(object),
            Ok(Err(PoolError::Timeout(TimeoutType::Wait))) => Err(self.refused(format!(
                "no session became free within {:?} (query.queue_wait)",
                self.settings.queue_wait
            ))),
            Err(_) if longest == timeout => Err(Failure::timeout()),
            Ok(Err(PoolError::Backend(error)))
            | Ok(Err(PoolError::PostCreateHook(HookError::Backend(error)))) => {
                Err(Failure::of_database(&error, false, None))
            }
            Ok(Err(_)) | Err(_) => Err(Failure::unavailable(format!(
                "could not open a session with PostgreSQL within {:?} (postgres.connect_timeout)",
                self.settings.connect_timeout
            ))),
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

/// Opens sessions on one runtime.
struct OnRuntime {
    runtime: Handle,
    connector: Connector,
}

type Opening<'a> = Pin<
    Box<dyn Future<Output = Result<(Client, JoinHandle<()>), tokio_postgres::Error>> + Send + 'a>,
>;

impl Connect for OnRuntime {
    fn connect(&self, _config: &Config) -> Opening<'_> {
        Box::pin(async move {
            let mut opening = Box::pin(self.connector.connect());
            // A socket belongs to the runtime in whose context it is made.
            let (client, connection) = poll_fn(|context| -> Poll<_> {
                let _context = self.runtime.enter();
                opening.as_mut().poll(context)
            })
            .await?;
            let driver = self.runtime.spawn(async move {
                // Statements end with its error.
                let _ = connection.await;
            });
            Ok((client, driver))
        })
    }
}
