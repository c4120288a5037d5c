//! One session with PostgreSQL, set up and with its statements prepared.
//!
//! A trap that this file avoids: with autocommit the server sends a statement's result *before* it commits. Only `ReadyForQuery` says
//! that the commit is done, and [`tokio_postgres::Client::query_one`] returns no earlier than that.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::OnceCell;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, NoTls, Row, Statement};

use super::ack_level::AckLevel;
use super::describe::{self, DESCRIBE};
use super::registration;
use super::registry::Registry;
use super::registry_calls::RegistryStatements;
use super::sink::{Append, Health, SinkError};
use crate::batch::{SeriesCache, SeriesId, Target};
use crate::events::Table;
use crate::receive::LabelSet;

/// Raised by `lanes.append_once` when digests are there already.
const DUPLICATE_REQUESTS: &str = "LN001";
/// Between the server's statement timeout and the moment the gateway gives a session up.
const GRACE: Duration = Duration::from_secs(2);

const APPEND: &str = "SELECT lanes.append_once($1::text::regclass, $2, $3), current_setting('synchronous_standby_names') <> ''";
const APPEND_TO_TABLE: &str = "SELECT lanes.append($1::oid::regclass, $2), current_setting('synchronous_standby_names') <> ''";
const APPEND_TO_TABLE_ONCE: &str = "SELECT lanes.append_once($1::oid::regclass, $2, $3), current_setting('synchronous_standby_names') <> ''";
const HEALTH: &str = "SELECT lanes.registry_identity(), current_setting('synchronous_standby_names') <> '', \
                      (SELECT next_id::int8 - 1 FROM lanes.registry)";
const FORGET: &str = "SELECT lanes.forget_requests(make_interval(secs => $1))";
/// Writes a few bytes of log in a transaction of its own, so that its commit flushes (and replicates) all commits before it.
const CONFIRM: &str = "SELECT pg_logical_emit_message(true, 'lanes-gateway', ''), current_setting('synchronous_standby_names') <> ''";

/// What went wrong in a session, and whether the session is still good.
#[derive(Debug)]
pub struct CallError {
    /// What.
    pub error: SinkError,
    /// For metrics: the SQLSTATE, or `connection` or `timeout`.
    pub kind: String,
    /// Whether the session may be used again.
    pub is_session_good: bool,
}

/// An open session.
pub struct Connection {
    client: Client,
    append: Statement,
    register: OnceCell<RegistryStatements>,
    cache: Arc<SeriesCache>,
    append_to_table: Statement,
    append_to_table_once: Statement,
    level: AckLevel,
    generation: u64,
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
    /// Opens and prepares a session that commits at `level`.
    ///
    /// # Errors
    /// The server is away, refuses the login, or is not a primary with the extension `lanes` and the grants of `lanes.grant_gateway`.
    pub async fn open(
        config: &tokio_postgres::Config,
        level: AckLevel,
        registry: &Registry,
        connect_timeout: Duration,
        statement_timeout: Duration,
    ) -> Result<Self, CallError> {
        let opening = Self::open_unbounded(config, level, registry, statement_timeout);
        match timeout(connect_timeout, opening).await {
            Ok(opened) => opened,
            Err(_) => Err(timed_out(format!(
                "no session with PostgreSQL within {connect_timeout:?}"
            ))),
        }
    }

    async fn open_unbounded(
        config: &tokio_postgres::Config,
        level: AckLevel,
        registry: &Registry,
        statement_timeout: Duration,
    ) -> Result<Self, CallError> {
        let (client, mut connection) = config
            .connect(NoTls)
            .await
            .map_err(|error| call_error(&error, true))?;
        let warnings = Arc::new(AtomicU64::new(0));
        let driver = tokio::spawn({
            let warnings = Arc::clone(&warnings);
            async move {
                while let Some(Ok(message)) =
                    poll_fn(|context| connection.poll_message(context)).await
                {
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
        });
        // From here on an early return drops the client, which ends the driver.
        let set_up = format!(
            "SET search_path = pg_catalog; SET synchronous_commit = {}; SET statement_timeout = {}; SET lock_timeout = {}; \
             SET default_transaction_isolation = 'read committed'; SET default_transaction_read_only = off; \
             SET client_min_messages = warning",
            level.synchronous_commit(),
            statement_timeout.as_millis(),
            // A locked table gives its session back in time for another attempt; 0 would be no bound at all.
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
            append,
            register: OnceCell::new(),
            cache: Arc::clone(registry.cache()),
            append_to_table,
            append_to_table_once,
            level,
            generation,
            call_timeout,
            warnings,
            driver,
        })
    }

    /// The registry generation behind this session.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether the server has hung up.
    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Appends a batch and its digests, samples to the table of this name; returns when that is committed at the session's level.
    pub async fn append(&self, samples: &str, append: &Append<'_>) -> Result<(), CallError> {
        let appended = self.append_at_level(samples, append).await;
        match append.target {
            Target::Samples { .. } => appended,
            Target::Table { is_once, .. } => appended.map_err(|error| of_table(error, is_once)),
        }
    }

    async fn append_at_level(&self, samples: &str, append: &Append<'_>) -> Result<(), CallError> {
        let batch = &append.batch;
        let digests: Vec<&[u8]> = append
            .digests
            .iter()
            .map(|digest| digest.0.as_slice())
            .collect();
        let call = async |statement, parameters: &[&(dyn ToSql + Sync)]| {
            self.committed(self.client.query_one(statement, parameters))
                .await
        };
        let row = match &append.target {
            Target::Samples { .. } => call(&self.append, &[&samples, batch, &digests]).await?,
            Target::Table { oid, is_once, .. } => {
                if *is_once {
                    call(&self.append_to_table_once, &[oid, batch, &digests]).await?
                } else {
                    call(&self.append_to_table, &[oid, batch]).await?
                }
            }
        };
        self.has_standbys(&row)
    }

    /// What is committed at level `replica` without a standby to wait for is committed here alone; the second column tells.
    fn has_standbys(&self, row: &Row) -> Result<(), CallError> {
        if self.level == AckLevel::Replica && !get::<bool>(row, 1)? {
            return Err(no_standbys());
        }
        Ok(())
    }

    /// The table of this schema and name.
    pub async fn describe(&self, schema: &str, table: &str) -> Result<Option<Table>, CallError> {
        let names: [&(dyn ToSql + Sync); 2] = [&schema, &table];
        let rows = self.answered(self.client.query(DESCRIBE, &names)).await?;
        describe::table(&rows)
    }

    /// Runs a statement that defines something.
    pub async fn define(&self, statement: &str) -> Result<(), CallError> {
        self.answered(self.client.batch_execute(statement))
            .await
            .map_err(of_definition)
    }

    /// Makes all that is committed by now as sure as this session's own commits.
    pub async fn confirm(&self) -> Result<(), CallError> {
        let row = self.committed(self.client.query_one(CONFIRM, &[])).await?;
        self.has_standbys(&row)
    }

    /// Ids of distinct label sets; those that are new are registered.
    pub async fn register(&self, label_sets: &[&LabelSet]) -> Result<Vec<SeriesId>, CallError> {
        if self.generation != self.cache.generation() {
            // A session of the past: it goes, and the next one is of the present.
            return Err(CallError {
                error: SinkError::OtherRegistry,
                kind: "registry".to_owned(),
                is_session_good: false,
            });
        }
        let index = self.cache.index();
        let mut index = index.lock().await;
        registration::register(self, &mut index, self.generation, label_sets, &self.cache)
            .await
            .map_err(of_registration)
    }

    /// Whether the server takes batches.
    pub async fn health(&self, registry: &Registry) -> Result<Health, CallError> {
        let row = self.committed(self.client.query_one(HEALTH, &[])).await?;
        registry.observe(get(&row, 0)?);
        Ok(Health {
            has_standbys: get(&row, 1)?,
            series: get(&row, 2)?,
        })
    }

    /// Forgets some digests older than `window`.
    pub async fn forget(&self, window: Duration) -> Result<u64, CallError> {
        let row = self
            .committed(self.client.query_one(FORGET, &[&window.as_secs_f64()]))
            .await?;
        Ok(u64::try_from(get::<i64>(&row, 0)?).unwrap_or(0))
    }

    /// The client, for calls that are made elsewhere.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// The statements of registration.
    pub(super) async fn registry_statements(&self) -> Result<&RegistryStatements, CallError> {
        let prepare = || self.committed(RegistryStatements::prepare(&self.client));
        self.register.get_or_try_init(prepare).await
    }

    /// Awaits a call that commits.
    pub(super) async fn committed<T>(
        &self,
        call: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, CallError> {
        let warnings_before = self.warnings.load(Ordering::Acquire);
        let answer = self.answered(call).await?;
        // A wait for standbys that is interrupted ends in a warning, not an error: committed here, perhaps not there.
        if self.level == AckLevel::Replica
            && self.warnings.load(Ordering::Acquire) != warnings_before
        {
            return Err(CallError {
                error: SinkError::Unavailable(
                    "PostgreSQL warned while committing to its standbys".to_owned(),
                ),
                kind: "01000".to_owned(),
                is_session_good: true,
            });
        }
        Ok(answer)
    }

    /// Awaits a call. A session that does not answer in time is cancelled and given up.
    async fn answered<T>(
        &self,
        call: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, CallError> {
        match timeout(self.call_timeout, call).await {
            Ok(result) => result.map_err(|error| call_error(&error, self.client.is_closed())),
            Err(_) => {
                // A backend that waits for a standby holds its slot on the server until someone tells it to stop.
                let _ = timeout(GRACE, self.client.cancel_token().cancel_query(NoTls)).await;
                Err(timed_out(format!(
                    "PostgreSQL gave no answer within {:?}",
                    self.call_timeout
                )))
            }
        }
    }
}

/// What an error means of a statement that creates what a sender has named.
fn of_definition(error: CallError) -> CallError {
    let SinkError::Unavailable(reason) = error.error else {
        return error;
    };
    let error_of = match error.kind.as_str() {
        "42501" => SinkError::Forbidden(reason),
        // There is no such schema.
        "3F000" => SinkError::TableChanged(reason),
        kind if kind.starts_with("42") => SinkError::Refused(reason),
        _ => SinkError::Unavailable(reason),
    };
    CallError {
        error: error_of,
        ..error
    }
}

/// What registration gets wrong an operator can mend, in the registry: nothing of it is the sender's data.
fn of_registration(error: CallError) -> CallError {
    match error.error {
        SinkError::Refused(reason)
            if matches!(error.kind.get(..2), Some("23" | "54")) || error.kind == "22003" =>
        {
            CallError {
                error: SinkError::Unavailable(reason),
                ..error
            }
        }
        _ => error,
    }
}

/// What an error means when the target is a table that the sender has named: there the sender can mend what in the table of samples an
/// operator must.
fn of_table(error: CallError, is_once: bool) -> CallError {
    let SinkError::Unavailable(reason) = error.error else {
        return error;
    };
    let error_of = match error.kind.as_str() {
        // Undefined table, undefined column, other type, generated column, NULL where none may be: described before a change.
        "42P01" | "42703" | "42804" | "428C9" => SinkError::TableChanged(reason),
        "42501" => SinkError::Forbidden(reason),
        // Row-level security, rules, kinds of table.
        "0A000" | "42809" => SinkError::Refused(reason),
        // The session was lost, or the commit is done here and not known to be on the standbys.
        "connection" | "timeout" | "01000" | "no_standbys" | "57P01" | "57P02" if !is_once => {
            SinkError::OutcomeUnknown(reason)
        }
        _ => SinkError::Unavailable(reason),
    };
    CallError {
        error: error_of,
        ..error
    }
}

/// Level `replica` without anything to replicate to.
pub fn no_standbys() -> CallError {
    CallError {
        error: SinkError::Unavailable(NO_STANDBYS.to_owned()),
        kind: "no_standbys".to_owned(),
        is_session_good: true,
    }
}

/// What is said of level `replica` where there is no standby.
pub const NO_STANDBYS: &str = "acknowledgement level \"replica\" cannot be kept: synchronous_standby_names of PostgreSQL is empty";

/// A column of a row.
pub(super) fn get<'a, T: tokio_postgres::types::FromSql<'a>>(
    row: &'a Row,
    column: usize,
) -> Result<T, CallError> {
    row.try_get(column)
        .map_err(|error| call_error(&error, false))
}

fn timed_out(reason: String) -> CallError {
    CallError {
        error: SinkError::Unavailable(reason),
        kind: "timeout".to_owned(),
        is_session_good: false,
    }
}

fn call_error(error: &tokio_postgres::Error, is_closed: bool) -> CallError {
    let Some(database_error) = error.as_db_error() else {
        let reason = match std::error::Error::source(error) {
            Some(source) => format!("PostgreSQL: {error}: {source}"),
            None => format!("PostgreSQL: {error}"),
        };
        return CallError {
            error: SinkError::Unavailable(reason),
            kind: "connection".to_owned(),
            is_session_good: false,
        };
    };
    let code = database_error.code();
    CallError {
        error: sink_error(code, database_error.message(), database_error.detail()),
        kind: code.code().to_owned(),
        is_session_good: !is_closed,
    }
}

/// What an SQLSTATE means to a sender. Only data that can never be stored is refused; all that an operator can mend is worth a retry.
fn sink_error(code: &SqlState, message: &str, detail: Option<&str>) -> SinkError {
    let reason = format!("PostgreSQL: {message} (SQLSTATE {})", code.code());
    if code.code() == DUPLICATE_REQUESTS {
        return match detail.and_then(places) {
            Some(places) => SinkError::Duplicates(places),
            None => SinkError::Unavailable(reason),
        };
    }
    match code.code().get(..2) {
        // Data exception, constraint violated, check option violated, a program limit passed.
        Some("22" | "23" | "44" | "54") => SinkError::Refused(reason),
        _ => SinkError::Unavailable(reason),
    }
}

/// `1,4` to 0 and 3.
fn places(detail: &str) -> Option<Vec<usize>> {
    detail
        .split(',')
        .map(|place| place.trim().parse::<usize>().ok()?.checked_sub(1))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_committed_is_not_appended_again_without_a_digest() {
        let unavailable = |kind: &str| CallError {
            error: SinkError::Unavailable("text".to_owned()),
            kind: kind.to_owned(),
            is_session_good: true,
        };
        for after_commit in [
            no_standbys(),
            timed_out("text".to_owned()),
            unavailable("connection"),
            unavailable("01000"),
            unavailable("57P01"),
            unavailable("57P02"),
        ] {
            let kind = after_commit.kind.clone();
            let error = of_table(after_commit, false).error;
            assert!(matches!(error, SinkError::OutcomeUnknown(_)), "{kind}");
            let error = of_table(unavailable(&kind), true).error;
            assert!(matches!(error, SinkError::Unavailable(_)), "{kind}");
        }
        for before_commit in ["53300", "40P01", "55P03", "57014"] {
            let error = of_table(unavailable(before_commit), false).error;
            assert!(
                matches!(error, SinkError::Unavailable(_)),
                "{before_commit}"
            );
        }
    }

    #[test]
    fn definitions_and_registrations_fail_in_their_own_ways() {
        let call_error = |code: &str| CallError {
            error: sink_error(&SqlState::from_code(code), "text", None),
            kind: code.to_owned(),
            is_session_good: true,
        };
        for (code, expected) in [
            ("42501", "Forbidden"),
            ("3F000", "TableChanged"),
            ("42704", "Refused"),
            ("53300", "Unavailable"),
        ] {
            let error = format!("{:?}", of_definition(call_error(code)).error);
            assert!(error.starts_with(expected), "{code}: {error}");
        }
        for (code, expected) in [
            ("23505", "Unavailable"),
            ("54000", "Unavailable"),
            ("22003", "Unavailable"),
            ("22021", "Refused"),
        ] {
            let error = format!("{:?}", of_registration(call_error(code)).error);
            assert!(error.starts_with(expected), "{code}: {error}");
        }
        let forbidden = of_table(call_error("42501"), false).error;
        assert!(matches!(forbidden, SinkError::Forbidden(_)));
    }

    #[test]
    fn sqlstates_mean_retry_or_refusal() {
        let error = |code: &str, detail| sink_error(&SqlState::from_code(code), "text", detail);
        assert_eq!(
            error("LN001", Some("1,4, 7")),
            SinkError::Duplicates(vec![0, 3, 6])
        );
        for detail in [None, Some(""), Some("0"), Some("1,x")] {
            assert!(
                matches!(error("LN001", detail), SinkError::Unavailable(_)),
                "{detail:?}"
            );
        }
        for code in ["22P04", "23514", "44000", "54000"] {
            assert!(matches!(error(code, None), SinkError::Refused(_)), "{code}");
        }
        for code in [
            "57P01", "53300", "40P01", "42501", "42P01", "25006", "08006", "XX000", "0A000",
        ] {
            assert!(
                matches!(error(code, None), SinkError::Unavailable(_)),
                "{code}"
            );
        }
    }
}
