//! A statement that runs: its rows, its timeout, its cancellation.
//!
//! ```text
//! start ─► first row ─► rows ─► end: the session is free
//!   └─────────┴───────────┴► dropped: cancel request ─► the session confirms that it is idle ─► free
//! ```
//! The statement of a user runs in a transaction of its own, as the user's role (`SET LOCAL ROLE`).
//! Statements are constants with parameters, so none can reset it. The transaction ends before the
//! session is free.
//!
//! PostgreSQL measures the time of the statement (`statement_timeout`), the sending of its rows
//! included. The gateway waits a little longer, for the case that the server does not answer at all.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::Object;
use futures_util::{StreamExt, TryFutureExt, try_join};
use tokio::runtime::Handle;
use tokio::time::{timeout, timeout_at};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, RowStream};

use super::failure::Failure;
use super::sessions::{Busy, Statement};
use crate::clock::{self, Instant};
use crate::deliver::describe::identifier;

/// The time between the server's own timeout and the moment at which a session is given up.
const GRACE: Duration = Duration::from_secs(5);
/// The time in which a cancelled statement has to end. After it the session is closed.
const CANCEL_TIME: Duration = Duration::from_secs(10);

/// What ends the transaction of a role.
const END: &str = "ROLLBACK";

/// A session that runs a statement. Dropping it cancels the statement.
pub(super) struct Running {
    /// `None` once the session is free.
    session: Option<(Object, Busy)>,
    runtime: Handle,
    timeout: Duration,
    started: Instant,
    /// The role of the statement; `None` for that of the login.
    role: Option<Arc<str>>,
}

impl Running {
    /// Takes a session for a statement that may take `timeout`, as a role.
    pub(super) fn new(
        object: Object,
        busy: Busy,
        runtime: Handle,
        timeout: Duration,
        role: Option<Arc<str>>,
    ) -> Self {
        Self {
            session: Some((object, busy)),
            runtime,
            timeout,
            started: clock::now(),
            role,
        }
    }

    /// What goes before the statement.
    fn preamble(&self) -> String {
        // Rounded up, so that a statement that PostgreSQL ended is late here too. 0 would mean no limit.
        let millis = self.timeout.as_nanos().div_ceil(1_000_000).max(1);
        match &self.role {
            None => format!("SET statement_timeout = {millis}"),
            // The role ends with the transaction. If it cannot be taken, the transaction is aborted,
            // and the statement, which is sent already, does not run as another role.
            Some(role) => format!(
                "BEGIN READ ONLY; SET LOCAL statement_timeout = {millis}; SET LOCAL ROLE {}",
                identifier(role)
            ),
        }
    }

    /// Starts the statement, and waits for its first row or its end.
    pub(super) async fn start(mut self, statement: Statement) -> Result<Rows, Failure> {
        let Some((object, _)) = &self.session else {
            return Err(Failure::unavailable("the session has ended"));
        };
        let starting = async {
            let prepared = object.prepare_cached(statement.sql);
            let prepared = prepared.await.map_err(|error| self.failure(&error))?;
            let preamble = self.preamble();
            let parameters = statement.parameters.iter();
            let parameters = parameters.map(|parameter| &**parameter as &(dyn ToSql + Sync));
            // Both are sent at once, in this order.
            let begun = object.batch_execute(&preamble);
            let begun = begun.map_err(|error| self.failure_of_role(&error));
            let rows = object.query_raw(&prepared, parameters);
            let rows = rows.map_err(|error| self.failure(&error));
            try_join!(begun, rows).map(|(_, rows)| rows)
        };
        let started = match timeout(self.timeout + GRACE, starting).await {
            Ok(Ok(rows)) => Ok(rows),
            Ok(Err(failure)) => Err(failure),
            Err(_) => return Err(Failure::timeout()),
        };
        let rows = match started {
            Ok(rows) => rows,
            Err(failure) => {
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
        Failure::of_database(error, is_late, self.role.as_deref())
    }

    /// Returns the failure of the preamble.
    fn failure_of_role(&self, error: &tokio_postgres::Error) -> Failure {
        match &self.role {
            Some(role) => Failure::of_role(error, role),
            None => self.failure(error),
        }
    }

    /// Returns the session, whose statement has ended. With a role, it first ends the transaction.
    fn free(&mut self) {
        if let Some((object, busy)) = self.session.take()
            && self.role.is_some()
        {
            self.runtime.spawn(end(object, busy));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some((object, busy)) = self.session.take() {
            busy.metrics.canceled.inc();
            let has_role = self.role.is_some();
            self.runtime.spawn(cancel(object, busy, has_role));
        }
    }
}

/// Ends the transaction of a session, and so its role, and returns the session.
async fn end(object: Object, busy: Busy) {
    let ended = timeout(CANCEL_TIME, object.batch_execute(END));
    if !matches!(ended.await, Ok(Ok(()))) {
        // Dropping the client closes the connection: no other request meets the role.
        drop(Object::take(object));
    }
    drop(busy);
}

/// Cancels the statement of a session, and returns the session once it is idle.
async fn cancel(object: Object, busy: Busy, has_role: bool) {
    let ended = timeout(CANCEL_TIME, async {
        busy.connector.cancel(&object.cancel_token()).await?;
        // The empty statement is answered after the cancelled one. A request that came too late for
        // that one may have met this one, and then the next is answered.
        match object.batch_execute("").await {
            Err(error) if error.code() == Some(&SqlState::QUERY_CANCELED) => {
                object.batch_execute("").await
            }
            answered => answered,
        }?;
        match has_role {
            true => object.batch_execute(END).await,
            false => Ok(()),
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
