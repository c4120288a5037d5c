//! Whether the role of a user may insert into a table, as PostgreSQL said a few seconds ago.
//!
//! Batches join the requests of several users, and are appended by the gateway's own role. So the
//! privilege is asked for before a request is read, not by the statement that appends. Policies of
//! row-level security for INSERT are therefore those of the gateway's role.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::timeout;

use super::metrics::AccessMetrics;
use super::user::{Caller, User};
use crate::clock::{self, Instant};
use crate::deliver::{Sink, SinkError};
use crate::http::Refusal;
use crate::model::InsertPrivilege;

/// How long a privilege is believed after it was looked up.
const GRANTED: Duration = Duration::from_secs(5);
/// How long the lack of one is believed.
const DENIED: Duration = Duration::from_secs(1);
/// The number of pairs of role and table that are kept. Beyond it all are dropped.
const PAIRS_MAX: usize = 10_000;

type RoleAndTable = (Arc<str>, String);

/// A privilege, and when it was looked up.
struct Answer {
    insert: InsertPrivilege,
    at: Instant,
}

/// The privileges that one worker has looked up.
pub struct Writers<S> {
    sink: Arc<S>,
    metrics: Arc<AccessMetrics>,
    /// How long a request waits for the look-up.
    patience: Duration,
    known: Mutex<HashMap<RoleAndTable, Answer>>,
    /// Held for one look-up at a time. Requests that wait find its result when their turn comes.
    looking_up: tokio::sync::Mutex<()>,
}

impl<S: Sink> Writers<S> {
    /// Returns an empty table of privileges.
    pub fn new(sink: Arc<S>, metrics: Arc<AccessMetrics>, patience: Duration) -> Self {
        Self {
            sink,
            metrics,
            patience,
            known: Mutex::default(),
            looking_up: tokio::sync::Mutex::default(),
        }
    }

    /// Checks that a caller may insert into `table`: `schema.table`, quoted where SQL requires it.
    ///
    /// # Errors
    /// Returns a 403 with the GRANT that is missing, a 404 if there is no such table, and a 503 if
    /// PostgreSQL does not answer.
    pub async fn check(&self, caller: &Caller, table: &str) -> Result<(), Refusal> {
        let Some(user) = caller else { return Ok(()) };
        let insert = match self.known(user, table) {
            // PostgreSQL has no names with NUL, and takes none in a text.
            _ if table.contains('\0') => InsertPrivilege::NoTable,
            Some(insert) => insert,
            None => Box::pin(self.look_up(user, table)).await?,
        };
        let role = &user.role;
        let reason = match insert {
            InsertPrivilege::Granted => return Ok(()),
            InsertPrivilege::NoTable => {
                // It may appear before the request has been read, so its privileges are unknown.
                return Err(Refusal::NotFound(format!(
                    "table {table} does not exist; create it, and GRANT INSERT on it to role {role:?} and to the gateway's role (events.create_tables is for requests without a user)"
                )));
            }
            InsertPrivilege::Denied => format!(
                "role {role:?} may not insert into {table}; GRANT INSERT on it, and USAGE on its schema, to the role"
            ),
            InsertPrivilege::NoRole => format!(
                "PostgreSQL has no role {role:?}; create it, or name another in postgres_roles of listen.web_config"
            ),
        };
        self.metrics.forbidden.inc();
        Err(Refusal::Forbidden(reason))
    }

    fn known(&self, user: &User, table: &str) -> Option<InsertPrivilege> {
        let known = self.known.lock();
        let Answer { insert, at } = known.get(&(Arc::clone(&user.role), table.to_owned()))?;
        let lasts = match insert {
            InsertPrivilege::Granted => GRANTED,
            _ => DENIED,
        };
        (clock::now().saturating_duration_since(*at) <= lasts).then_some(*insert)
    }

    async fn look_up(&self, user: &User, table: &str) -> Result<InsertPrivilege, Refusal> {
        let looking_up = async {
            let _turn = self.looking_up.lock().await;
            if let Some(insert) = self.known(user, table) {
                return Ok(insert);
            }
            let at = clock::now();
            let insert = self.sink.may_insert(&user.role, table).await?;
            let mut known = self.known.lock();
            if known.len() >= PAIRS_MAX {
                known.clear();
            }
            known.insert(
                (Arc::clone(&user.role), table.to_owned()),
                Answer { insert, at },
            );
            Ok(insert)
        };
        match timeout(self.patience, looking_up).await {
            Ok(Ok(insert)) => Ok(insert),
            Ok(Err(error)) => Err(unknown(&error)),
            Err(_) => Err(Refusal::Busy(
                "PostgreSQL did not say in time whether the user may insert (ack.timeout)"
                    .to_owned(),
            )),
        }
    }
}

/// Without an answer nothing is decided, so the sender should try again.
fn unknown(error: &SinkError) -> Refusal {
    Refusal::Busy(error.to_string())
}
