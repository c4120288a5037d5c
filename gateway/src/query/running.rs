//! A statement that runs: its rows, its timeout, its cancellation.
//!
//! ```text
//! start ─► first row ─► rows ─► end: the session is free
//!   └─────────┴───────────┴► dropped: cancel request ─► the session confirms that it is idle ─► free
//! ```
//! The statement of a user runs in a transaction of its own, as the user's role (`SET LOCAL ROLE`).
//! Statements are constants with parameters, so none can reset it. The transaction ends before the
//! session is free. A statement as the role of the login, with the timeout that the session has,
//! needs no transaction.
//!
//! PostgreSQL measures the time of the statement (`statement_timeout`), the sending of its rows
//! included. The gateway waits a little longer, for the case that the server does not answer at all.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, TryFutureExt, try_join};
use tokio::runtime::Handle;
use tokio::time::{timeout, timeout_at};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, RowStream};

use super::failure::Failure;
use super::pool::Lease;
use super::sessions::{Busy, Statement};
use crate::clock::{self, Instant};
use crate::deliver::describe::identifier;

/// The time between the server's own timeout and the moment at which a session is given up.
const GRACE: Duration = Duration::from_secs(5);
/// The time in which a cancelled statement has to end. After it the session is closed.
const CANCEL_TIME: Duration = Duration::from_secs(10);

/// The statement that ends the transaction of a query.
const END: &str = "ROLLBACK";

/// A session that runs a statement. Dropping it cancels the statement.
pub(super) struct Running {
    /// `None` once the session is free.
    session: Option<(Lease, Busy)>,
    /// The runtime of the session.
    runtime: Handle,
    timeout: Duration,
    started: Instant,
    /// The role of the statement; `None` for that of the login.
    role: Option<Arc<str>>,
    /// The statements that begin the query's transaction; `None` if it needs no transaction.
    beginning: Option<String>,
}

/// The timeout of a statement in PostgreSQL, in milliseconds. It is rounded up, so that a statement
/// that PostgreSQL ended is late here too. 0 would mean no limit.
pub(super) fn millis(timeout: Duration) -> u128 {
    timeout.as_nanos().div_ceil(1_000_000).max(1)
}

/// The statements that begin a query's transaction. If the role cannot be taken, the transaction is
/// aborted, and the statement, which is sent already, does not run as another role.
fn beginning(timeout: Duration, role: Option<&str>, session_timeout: Duration) -> Option<String> {
    let millis_of = millis(timeout);
    let timeout = format!("BEGIN READ ONLY; SET LOCAL statement_timeout = {millis_of}");
    match role {
        Some(role) => Some(format!("{timeout}; SET LOCAL ROLE {}", identifier(role))),
        None => (millis_of != millis(session_timeout)).then_some(timeout),
    }
}

impl Running {
    /// Takes a session for a statement that may take `timeout`, as a role.
    pub(super) fn new(lease: Lease, busy: Busy, timeout: Duration, role: Option<Arc<str>>) -> Self {
        let beginning = beginning(timeout, role.as_deref(), busy.session_timeout);
        Self {
            beginning,
            session: Some((lease, busy)),
            runtime: Handle::current(),
            timeout,
            started: clock::now(),
            role,
        }
    }

    /// Starts the statement, and waits for its first row or its end.
    pub(super) async fn start(mut self, statement: Statement) -> Result<Rows, Failure> {
        let Some((lease, _)) = &self.session else {
            return Err(Failure::unavailable("the session has ended"));
        };
        let session = lease.session();
        let starting = async {
            let prepared = session.prepared(statement.sql);
            let prepared = prepared.await.map_err(|error| self.failure(&error))?;
            let parameters = statement.parameters.iter();
            let parameters = parameters.map(|parameter| &**parameter as &(dyn ToSql + Sync));
            let rows = session.query_raw(&prepared, parameters);
            let rows = rows.map_err(|error| self.failure(&error));
            let Some(beginning) = &self.beginning else {
                return rows.await;
            };
            // Both are sent at once, in this order.
            let begun = session.batch_execute(beginning);
            let begun = begun.map_err(|error| self.failure_of_role(&error));
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

    /// Returns the failure of the beginning.
    fn failure_of_role(&self, error: &tokio_postgres::Error) -> Failure {
        match &self.role {
            Some(role) => Failure::of_role(error, role),
            None => self.failure(error),
        }
    }

    /// Returns the session, whose statement has ended. If there is a transaction, it is ended first.
    fn free(&mut self) {
        if let Some((lease, busy)) = self.session.take()
            && self.beginning.is_some()
        {
            self.runtime.spawn(end(lease, busy));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some((lease, busy)) = self.session.take() {
            busy.metrics.canceled.inc();
            let has_transaction = self.beginning.is_some();
            self.runtime.spawn(cancel(lease, busy, has_transaction));
        }
    }
}

/// Ends the transaction of a session, and so its role, and returns the session.
async fn end(lease: Lease, busy: Busy) {
    let ended = timeout(CANCEL_TIME, lease.session().batch_execute(END));
    if !matches!(ended.await, Ok(Ok(()))) {
        // No other request may meet the role.
        lease.close();
    }
    drop(busy);
}

/// Cancels the statement of a session, and returns the session once it is idle.
async fn cancel(lease: Lease, busy: Busy, has_transaction: bool) {
    let session = lease.session();
    let ended = timeout(CANCEL_TIME, async {
        busy.connector.cancel(&session.cancel_token()).await?;
        // The empty statement is answered after the cancelled one. A request that came too late for
        // that one may have met this one, and then the next is answered.
        match session.batch_execute("").await {
            Err(error) if error.code() == Some(&SqlState::QUERY_CANCELED) => {
                session.batch_execute("").await
            }
            answered => answered,
        }?;
        match has_transaction {
            true => session.batch_execute(END).await,
            false => Ok(()),
        }
    });
    if !matches!(ended.await, Ok(Ok(()))) {
        lease.close();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_without_peculiarities_need_no_transaction() {
        let session = Duration::from_secs(120);
        let nearly = session - Duration::from_micros(900);
        assert_eq!(beginning(session, None, session), None);
        assert_eq!(beginning(nearly, None, session), None);
        let shorter = beginning(Duration::from_secs(5), None, session);
        let expected = "BEGIN READ ONLY; SET LOCAL statement_timeout = 5000";
        assert_eq!(shorter.as_deref(), Some(expected));
        let as_role = beginning(session, Some("Ann"), session);
        let expected =
            "BEGIN READ ONLY; SET LOCAL statement_timeout = 120000; SET LOCAL ROLE \"Ann\"";
        assert_eq!(as_role.as_deref(), Some(expected));
        assert_eq!(millis(Duration::ZERO), 1);
    }
}
