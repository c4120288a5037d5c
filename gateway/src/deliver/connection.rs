//! A session with PostgreSQL, configured and with its statements prepared.
//!
//! With autocommit, the server sends the result of a statement *before* it commits. Only
//! `ReadyForQuery` confirms the commit, and [`tokio_postgres::Client::query_one`] does not return
//! before it.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::OnceCell;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Row, Statement};

use super::call_error::{
    CallError, call_error, check_applied, no_standbys, of_definition, of_registration, of_table,
    timed_out,
};
use super::describe::{self, DESCRIBE, MAY_INSERT};
use super::logged::LoggedStatements;
use super::registration::{self, Unregistered};
use super::registry::Registry;
use super::registry_calls::RegistryStatements;
use super::sink::{Append, Health, SinkError};
use crate::connect::{Connector, Driver};
use crate::model::{AckLevel, InsertPrivilege, Table, Target};
use crate::series::{LabelSet, SeriesCache, SeriesId};

/// The time between the server's statement timeout and the moment at which the gateway gives up the
/// session.
const GRACE: Duration = Duration::from_secs(2);

const APPEND: &str = "SELECT a.applied, current_setting('synchronous_standby_names') <> '', a.reused \
     FROM lanes.append_once($1::text::regclass, $2, $3, $4) AS a";
const APPEND_TO_TABLE: &str = "SELECT lanes.append($1::oid::regclass, $2), current_setting('synchronous_standby_names') <> ''";
const APPEND_TO_TABLE_ONCE: &str = "SELECT a.applied, current_setting('synchronous_standby_names') <> '', a.reused \
     FROM lanes.append_once($1::oid::regclass, $2, $3, $4) AS a";
const HEALTH: &str = "SELECT lanes.registry_identity(), s.wanted, \
                      (SELECT next_id::int8 - 1 FROM lanes.registry), s.connected \
                      FROM lanes.synchronous_standbys() AS s";
const FORGET: &str = "SELECT lanes.forget_requests(make_interval(secs => $1))";
/// Writes a few bytes to the write-ahead log in a transaction of its own. Its commit flushes and
/// replicates all commits before it.
const CONFIRM: &str = "SELECT pg_logical_emit_message(true, 'lanes-gateway', ''), current_setting('synchronous_standby_names') <> ''";

/// An open session.
pub struct Connection {
    client: Client,
    connector: Connector,
    append: Statement,
    register: OnceCell<RegistryStatements>,
    logged: OnceCell<LoggedStatements>,
    cache: Arc<SeriesCache>,
    append_to_table: Statement,
    append_to_table_once: Statement,
    level: AckLevel,
    generation: u64,
    /// The result of `lanes.registry_identity`.
    identity: String,
    call_timeout: Duration,
    warnings: Arc<AtomicU64>,
    driver: JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    /// Opens a session that commits at `level`, and prepares its statements.
    ///
    /// # Errors
    /// Returns an error if the server is unavailable, refuses the login, or is not a primary with
    /// the extension `lanes` and the privileges of `lanes.grant_gateway`.
    pub async fn open(
        connector: &Connector,
        level: AckLevel,
        registry: &Registry,
        connect_timeout: Duration,
        statement_timeout: Duration,
    ) -> Result<Self, CallError> {
        let opening = Self::open_unbounded(connector, level, registry, statement_timeout);
        match timeout(connect_timeout, opening).await {
            Ok(opened) => opened,
            Err(_) => Err(timed_out(format!(
                "could not open a session with PostgreSQL within {connect_timeout:?}"
            ))),
        }
    }

    async fn open_unbounded(
        connector: &Connector,
        level: AckLevel,
        registry: &Registry,
        statement_timeout: Duration,
    ) -> Result<Self, CallError> {
        let (client, connection) = connector
            .connect()
            .await
            .map_err(|error| call_error(&error, true))?;
        let warnings = Arc::new(AtomicU64::new(0));
        let driver = tokio::spawn(drive(connection, Arc::clone(&warnings)));
        // From here on, an early return drops the client, which ends the driver.
        let set_up = format!(
            "SET search_path = pg_catalog; SET synchronous_commit = {}; SET statement_timeout = {}; SET lock_timeout = {}; \
             SET default_transaction_isolation = 'read committed'; SET default_transaction_read_only = off; \
             SET client_min_messages = warning",
            level.synchronous_commit(),
            statement_timeout.as_millis(),
            // A session that waits for a locked table returns in time for another attempt. The
            // value 0 would mean no limit.
            (statement_timeout / 2).as_millis().max(1),
        );
        let failed = |error| call_error(&error, true);
        client.batch_execute(&set_up).await.map_err(failed)?;
        let identity: String = client
            .query_one("SELECT lanes.registry_identity()", &[])
            .await
            .and_then(|row| row.try_get(0))
            .map_err(failed)?;
        let append = client.prepare(APPEND).await.map_err(failed)?;
        let append_to_table = client.prepare(APPEND_TO_TABLE).await.map_err(failed)?;
        let append_to_table_once = client.prepare(APPEND_TO_TABLE_ONCE).await.map_err(failed)?;
        let generation = registry.observe(&identity);
        let call_timeout = statement_timeout + GRACE;
        Ok(Self {
            client,
            connector: connector.clone(),
            append,
            register: OnceCell::new(),
            logged: OnceCell::new(),
            cache: Arc::clone(registry.cache()),
            append_to_table,
            append_to_table_once,
            level,
            generation,
            identity,
            call_timeout,
            warnings,
            driver,
        })
    }

    /// The registry generation of this session.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The identity of the database, its registry and its timeline.
    pub(super) fn identity(&self) -> &str {
        &self.identity
    }

    /// Whether the server has closed the connection.
    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Appends a batch and its digests. Samples are appended to the table `samples`. Returns when
    /// the rows are committed at the session's level.
    pub async fn append(&self, samples: &str, append: &Append<'_>) -> Result<(), CallError> {
        let appended = self.append_at_level(samples, append).await;
        match append.target {
            Target::Samples { .. } => appended,
            Target::Table { is_once, .. } => appended.map_err(|error| of_table(error, is_once)),
        }
    }

    async fn append_at_level(&self, samples: &str, append: &Append<'_>) -> Result<(), CallError> {
        let batch = &append.batch;
        let (digests, bodies) = append.digest_bytes();
        let call = async |statement, parameters: &[&(dyn ToSql + Sync)]| {
            self.committed(self.client.query_one(statement, parameters))
                .await
        };
        let row = match &append.target {
            Target::Samples { .. } => {
                call(&self.append, &[&samples, batch, &digests, &bodies]).await?
            }
            Target::Table { oid, is_once, .. } => {
                if !*is_once {
                    let row = call(&self.append_to_table, &[oid, batch]).await?;
                    return self.has_standbys(&row);
                }
                let parameters: [&(dyn ToSql + Sync); 4] = [oid, batch, &digests, &bodies];
                call(&self.append_to_table_once, &parameters).await?
            }
        };
        check_applied(get(&row, 0)?, get(&row, 2)?)?;
        self.has_standbys(&row)
    }

    /// Checks the second column of the row: without a standby to wait for, a commit at level
    /// `replica` is local only.
    fn has_standbys(&self, row: &Row) -> Result<(), CallError> {
        if self.level == AckLevel::Replica && !get::<bool>(row, 1)? {
            return Err(no_standbys());
        }
        Ok(())
    }

    /// Describes the table with this schema and name.
    pub async fn describe(&self, schema: &str, table: &str) -> Result<Option<Table>, CallError> {
        let names: [&(dyn ToSql + Sync); 2] = [&schema, &table];
        let rows = self.answered(self.client.query(DESCRIBE, &names)).await?;
        describe::table(&rows)
    }

    /// Looks up whether a role may insert into a table.
    pub async fn may_insert(&self, role: &str, table: &str) -> Result<InsertPrivilege, CallError> {
        let names: [&(dyn ToSql + Sync); 2] = [&role, &table];
        let rows = self.answered(self.client.query(MAY_INSERT, &names)).await?;
        match rows.first() {
            Some(row) => describe::privilege(row),
            None => Ok(InsertPrivilege::NoTable),
        }
    }

    /// Runs a statement that defines an object.
    pub async fn define(&self, statement: &str) -> Result<(), CallError> {
        self.answered(self.client.batch_execute(statement))
            .await
            .map_err(of_definition)
    }

    /// Makes everything committed so far as durable as this session's own commits.
    pub async fn confirm(&self) -> Result<(), CallError> {
        let row = self.committed(self.client.query_one(CONFIRM, &[])).await?;
        self.has_standbys(&row)
    }

    /// Returns the ids of distinct label sets; 0 for those that are left unregistered.
    pub async fn ids(
        &self,
        label_sets: &[&LabelSet],
        unregistered: Unregistered,
    ) -> Result<Vec<SeriesId>, CallError> {
        if self.generation != self.cache.generation() {
            // This session belongs to an earlier registry. It is dropped, and the next one belongs
            // to the current registry.
            return Err(CallError {
                error: SinkError::OtherRegistry,
                kind: "registry".to_owned(),
                is_session_good: false,
            });
        }
        let index = self.cache.index();
        let mut index = index.lock().await;
        let (generation, cache) = (self.generation, &self.cache);
        let ids = registration::ids(
            self,
            &mut index,
            generation,
            label_sets,
            cache,
            unregistered,
        );
        ids.await.map_err(of_registration)
    }

    /// Checks whether the server accepts batches.
    pub async fn health(&self, registry: &Registry) -> Result<Health, CallError> {
        let row = self.committed(self.client.query_one(HEALTH, &[])).await?;
        registry.observe(get(&row, 0)?);
        let (wanted, connected): (i32, i32) = (get(&row, 1)?, get(&row, 3)?);
        Ok(Health {
            has_standbys: wanted > 0,
            missing_standbys: (wanted - connected).max(0),
            series: get(&row, 2)?,
        })
    }

    /// Removes some digests older than `window`. Returns their number.
    pub async fn forget(&self, window: Duration) -> Result<u64, CallError> {
        let row = self
            .committed(self.client.query_one(FORGET, &[&window.as_secs_f64()]))
            .await?;
        Ok(u64::try_from(get::<i64>(&row, 0)?).unwrap_or(0))
    }

    /// The client, for calls from other files.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// The statements of registration.
    pub(super) async fn registry_statements(&self) -> Result<&RegistryStatements, CallError> {
        let prepare = || self.committed(RegistryStatements::prepare(&self.client));
        self.register.get_or_try_init(prepare).await
    }

    /// The statements of level `object`.
    pub(super) async fn logged_statements(&self) -> Result<&LoggedStatements, CallError> {
        let prepare = || self.committed(LoggedStatements::prepare(&self.client));
        self.logged.get_or_try_init(prepare).await
    }

    /// Awaits a call that commits.
    pub(super) async fn committed<T>(
        &self,
        call: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, CallError> {
        let warnings_before = self.warnings.load(Ordering::Acquire);
        let answer = self.answered(call).await?;
        // An interrupted wait for standbys ends with a warning, not an error: the transaction has
        // committed locally, and perhaps not on the standbys.
        if self.level == AckLevel::Replica
            && self.warnings.load(Ordering::Acquire) != warnings_before
        {
            return Err(CallError {
                error: SinkError::Unavailable(
                    "PostgreSQL sent a warning while committing to its standbys".to_owned(),
                ),
                kind: "01000".to_owned(),
                is_session_good: true,
            });
        }
        Ok(answer)
    }

    /// Awaits a call. A session that does not answer in time is cancelled and given up.
    pub(super) async fn answered<T>(
        &self,
        call: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, CallError> {
        match timeout(self.call_timeout, call).await {
            Ok(result) => result.map_err(|error| call_error(&error, self.client.is_closed())),
            Err(_) => {
                // A backend that waits for a standby occupies its connection slot on the server
                // until it is cancelled.
                let _ = timeout(GRACE, self.connector.cancel(&self.client.cancel_token())).await;
                Err(timed_out(format!(
                    "PostgreSQL did not answer within {:?}",
                    self.call_timeout
                )))
            }
        }
    }
}

/// Drives a connection until it ends. Logs and counts its warnings.
async fn drive(mut connection: Driver, warnings: Arc<AtomicU64>) {
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        if let AsyncMessage::Notice(notice) = message {
            tracing::warn!(
                sqlstate = notice.code().code(),
                "PostgreSQL: {}",
                notice.message()
            );
            warnings.fetch_add(1, Ordering::AcqRel);
        }
    }
}

/// Reads a column of a row.
pub(super) fn get<'a, T: tokio_postgres::types::FromSql<'a>>(
    row: &'a Row,
    column: usize,
) -> Result<T, CallError> {
    row.try_get(column)
        .map_err(|error| call_error(&error, false))
}
