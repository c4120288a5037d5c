//! Sessions with PostgreSQL that are kept open, each on the runtime of the worker that opened it.
//!
//! The connection of a client, the task of its request and the session are on one thread. If a session lived on another
//! one, each query would wake that thread, and its answer would wake the worker again, which takes a fifth of the time
//! of a small query. Pools for tokio have no sessions by runtime.
//!
//! # Invariants
//! - The number of open sessions is bounded, and so is the number in use, which is that of the permits taken.
//! - A worker takes idle sessions of its own runtime only; the one used last, which has the most in its caches, first.
//!   If none is idle and no more may be opened, the worker closes the idle session of another worker that was used
//!   longest ago, and opens one.
//! - A session that is returned is idle: its last statement has ended.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::{Handle, Id};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_postgres::{Client, Error, Statement};

use crate::connect::Connector;

/// Why there is no session.
#[derive(Debug)]
pub(super) enum PoolError {
    /// All sessions were in use for too long.
    Wait,
    /// It took too long to open one.
    Connect,
    /// PostgreSQL refused to open one.
    Database(Error),
}

/// How long a request waits for a session.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// For one that is in use.
    pub wait: Duration,
    /// For PostgreSQL to open one.
    pub connect: Duration,
}

/// The sessions.
pub(super) struct Pool {
    connector: Connector,
    /// What a new session runs first.
    set_up: String,
    sessions_max: usize,
    /// A permit for each session that may be in use.
    permits: Arc<Semaphore>,
    sessions: Mutex<Sessions>,
}

#[derive(Default)]
struct Sessions {
    /// In the order of their last use.
    idle: Vec<Session>,
    /// The number of sessions that are idle, in use or being opened.
    open: usize,
}

/// A session.
pub(super) struct Session {
    client: Client,
    statements: Mutex<HashMap<&'static str, Statement>>,
    runtime: Id,
    _counted: Counted,
}

/// The place of a session among those that are open.
struct Counted(Arc<Pool>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.sessions.lock().open -= 1;
    }
}

impl Session {
    /// Returns the prepared statement of a text.
    ///
    /// # Errors
    /// PostgreSQL cannot prepare it.
    pub async fn prepared(&self, sql: &'static str) -> Result<Statement, Error> {
        let known = self.statements.lock().get(sql).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let statement = self.client.prepare(sql).await?;
        self.statements.lock().insert(sql, statement.clone());
        Ok(statement)
    }
}

impl Deref for Session {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

/// A session in use. Dropping it returns the session.
pub(super) struct Lease {
    /// `None` once the session is returned or closed.
    session: Option<Session>,
    pool: Arc<Pool>,
    // It is freed last, when the session can be taken.
    _permit: OwnedSemaphorePermit,
}

impl Lease {
    /// Returns the session.
    ///
    /// # Panics
    /// Never: the session is taken by what consumes the lease only.
    pub fn session(&self) -> &Session {
        self.session.as_ref().expect("the lease is not consumed")
    }

    /// Closes the session instead of returning it.
    pub fn close(mut self) {
        self.session = None;
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(session) = self.session.take()
            && !session.is_closed()
        {
            self.pool.sessions.lock().idle.push(session);
        }
    }
}

impl Pool {
    /// Creates a pool of so many sessions at most without opening one.
    pub fn new(connector: Connector, set_up: String, sessions_max: usize) -> Arc<Pool> {
        Arc::new(Pool {
            connector,
            set_up,
            sessions_max,
            permits: Arc::new(Semaphore::new(sessions_max)),
            sessions: Mutex::default(),
        })
    }

    /// Takes an idle session of the current runtime, or opens one.
    ///
    /// # Errors
    /// No session becomes free or can be opened in time.
    pub async fn take(self: &Arc<Pool>, patience: Patience) -> Result<Lease, PoolError> {
        let permit = Arc::clone(&self.permits).acquire_owned();
        let permit = timeout(patience.wait, permit).await;
        let Ok(Ok(permit)) = permit else {
            return Err(PoolError::Wait);
        };
        let session = match self.idle_or_place(Handle::current().id()) {
            Ok(session) => session,
            Err(place) => match timeout(patience.connect, self.open(place)).await {
                Ok(opened) => opened.map_err(PoolError::Database)?,
                Err(_) => return Err(PoolError::Connect),
            },
        };
        Ok(Lease {
            session: Some(session),
            pool: Arc::clone(self),
            _permit: permit,
        })
    }

    /// Returns an idle session of a runtime, or a place for a new session.
    fn idle_or_place(self: &Arc<Pool>, runtime: Id) -> Result<Session, Counted> {
        // Sessions are dropped after the lock is released, since that takes the lock.
        let mut dropped = Vec::new();
        let mut sessions = self.sessions.lock();
        let is_own = |session: &Session| session.runtime == runtime;
        while let Some(place) = sessions.idle.iter().rposition(is_own) {
            let session = sessions.idle.remove(place);
            if !session.is_closed() {
                drop(sessions);
                return Ok(session);
            }
            dropped.push(session);
        }
        let is_full = sessions.open - dropped.len() >= self.sessions_max;
        if is_full && !sessions.idle.is_empty() {
            dropped.push(sessions.idle.remove(0));
        }
        sessions.open += 1;
        drop(sessions);
        Err(Counted(Arc::clone(self)))
    }

    async fn open(&self, place: Counted) -> Result<Session, Error> {
        let (client, driver) = self.connector.connect().await?;
        let runtime = Handle::current();
        runtime.spawn(async move {
            // Statements end with its error.
            let _ = driver.await;
        });
        client.batch_execute(&self.set_up).await?;
        Ok(Session {
            client,
            statements: Mutex::default(),
            runtime: runtime.id(),
            _counted: place,
        })
    }
}
