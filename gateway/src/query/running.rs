//! A statement that runs: its rows, its timeout, its cancellation.
//!
//! ```text
//! start ─► first row ─► rows ─► end: the session is free
//!   └─────────┴───────────┴► dropped: cancel request ─► the session confirms that it is idle ─► free
//! ```
//! PostgreSQL measures the time of the statement (`statement_timeout`), the sending of its rows
//! included. The gateway waits a little longer, for the case that the server does not answer at all.

use std::pin::Pin;
use std::time::Duration;

use deadpool_postgres::Object;
use futures_util::{StreamExt, try_join};
use tokio::runtime::Handle;
use tokio::time::{timeout, timeout_at};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{NoTls, Row, RowStream};

use super::failure::Failure;
use super::sessions::{Busy, Statement};
use crate::clock::{self, Instant};

/// The time between the server's own timeout and the moment at which a session is given up.
const GRACE: Duration = Duration::from_secs(5);
/// The time in which a cancelled statement has to end. After it the session is closed.
const CANCEL_TIME: Duration = Duration::from_secs(10);

/// A session that runs a statement. Dropping it cancels the statement.
pub(super) struct Running {
    /// `None` once the session is free.
    session: Option<(Object, Busy)>,
    runtime: Handle,
    timeout: Duration,
    started: Instant,
}

impl Running {
    /// Takes a session for a statement that may take `timeout`.
    pub(super) fn new(object: Object, busy: Busy, runtime: Handle, timeout: Duration) -> Self {
        Self {
            session: Some((object, busy)),
            runtime,
            timeout,
            started: clock::now(),
        }
    }

    /// Starts the statement, and waits for its first row or its end.
    pub(super) async fn start(mut self, statement: Statement) -> Result<Rows, Failure> {
        let Some((object, _)) = &self.session else {
            return Err(Failure::unavailable("the session has ended"));
        };
        let starting = async {
            let prepared = object.prepare_cached(statement.sql).await?;
            // Rounded up, so that a statement that PostgreSQL ended is late here too. 0 would mean no limit.
            let millis = self.timeout.as_nanos().div_ceil(1_000_000).max(1);
            let set = format!("SET statement_timeout = {millis}");
            let parameters = statement.parameters.iter();
            let parameters = parameters.map(|parameter| &**parameter as &(dyn ToSql + Sync));
            // Both are sent at once, in this order.
            let limited = object.batch_execute(&set);
            let rows = object.query_raw(&prepared, parameters);
            try_join!(limited, rows).map(|(_, rows)| rows)
        };
        let started = match timeout(self.timeout + GRACE, starting).await {
            Ok(Ok(rows)) => Ok(rows),
            Ok(Err(error)) => Err(error),
            Err(_) => return Err(Failure::timeout()),
        };
        let rows = match started {
            Ok(rows) => rows,
            Err(error) => {
                let failure = self.failure(&error);
                self.free();
                return Err(failure);
            }
        };
        let mut rows = Rows {
            first: None,
            stream: Some(Box::pin(rows)),
            running: self,
        };
        rows.first = rows.receive().await?;
        Ok(rows)
    }

    fn failure(&self, error: &tokio_postgres::Error) -> Failure {
        let is_late = clock::now() - self.started >= self.timeout;
        Failure::of_database(error, is_late)
    }

    /// Returns the session, whose statement has ended.
    fn free(&mut self) {
        self.session = None;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some((object, busy)) = self.session.take() {
            busy.metrics.canceled.inc();
            self.runtime.spawn(cancel(object, busy));
        }
    }
}

/// Cancels the statement of a session, and returns the session once it is idle.
async fn cancel(object: Object, busy: Busy) {
    let ended = timeout(CANCEL_TIME, async {
        object.cancel_token().cancel_query(NoTls).await?;
        // The empty statement is answered after the cancelled one. A request that came too late for
        // that one may have met this one, and then the next is answered.
        match object.batch_execute("").await {
            Err(error) if error.code() == Some(&SqlState::QUERY_CANCELED) => {
                object.batch_execute("").await
            }
            answered => answered,
        }
    });
    if !matches!(ended.await, Ok(Ok(()))) {
        // Dropping the client closes the connection.
        drop(Object::take(object));
    }
    drop(busy);
}

/// The rows of a statement.
pub struct Rows {
    first: Option<Row>,
    /// `None` once the rows have ended.
    stream: Option<Pin<Box<RowStream>>>,
    running: Running,
}

impl Rows {
    /// Returns the next row; `None` at the end.
    ///
    /// # Errors
    /// Returns the error that ended the statement.
    pub async fn next(&mut self) -> Result<Option<Row>, Failure> {
        match self.first.take() {
            Some(row) => Ok(Some(row)),
            None => self.receive().await,
        }
    }

    /// Returns all rows.
    ///
    /// # Errors
    /// Returns the error that ended the statement.
    pub async fn collect(mut self) -> Result<Vec<Row>, Failure> {
        let mut rows = Vec::new();
        while let Some(row) = self.next().await? {
            rows.push(row);
        }
        Ok(rows)
    }

    async fn receive(&mut self) -> Result<Option<Row>, Failure> {
        let Some(stream) = &mut self.stream else {
            return Ok(None);
        };
        let last_moment = self.running.started + self.running.timeout + GRACE;
        let received = match timeout_at(last_moment, stream.next()).await {
            Ok(received) => received,
            Err(_) => return Err(Failure::timeout()),
        };
        match received {
            Some(Ok(row)) => Ok(Some(row)),
            None => {
                self.stream = None;
                self.running.free();
                Ok(None)
            }
            Some(Err(error)) => {
                // The statement has ended, so the session is free.
                self.stream = None;
                let failure = self.running.failure(&error);
                self.running.free();
                Err(failure)
            }
        }
    }
}
