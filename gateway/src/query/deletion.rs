//! `admin/tsdb`: samples deleted by selectors and times. The other routes of it are refused by name.
//!
//! A deletion has a connection of its own, which is open for as long as it runs. One runs at a time,
//! so that deletions take no session of queries or writes, and a second one is refused at once. It
//! goes on when its client goes away, as in Prometheus: `query.timeout` bounds its time.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::answer::Answer;
use super::failure::{Failure, Kind};
use super::form::Form;
use super::metrics::QueryMetrics;
use super::parameters::{self, Time};
use super::selectors;
use super::settings::QuerySettings;
use crate::clock;
use crate::connect::Connector;
use crate::deliver::describe::identifier;

/// The time between the server's own timeout and the moment at which a connection is given up.
const GRACE: Duration = Duration::from_secs(5);

/// The first statements of the connection.
const SET_UP: &str = "SET search_path = pg_catalog; SET jit = off; SET client_min_messages = warning; \
     BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

/// A sample counts in the millisecond in which it is, so the end is exclusive.
const DELETE: &str = "DELETE FROM lanes.samples AS m \
     WHERE m.series = ANY (ARRAY (SELECT DISTINCT i.id FROM pg_catalog.unnest($1::pg_catalog.text[]) AS s (selector) \
                                  CROSS JOIN LATERAL lanes.series_ids(s.selector) AS i (id))) \
       AND m.ts >= $2 AND m.ts < $3";

/// The samples to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    selectors: Vec<String>,
    /// The first time.
    pub first: SystemTime,
    /// The time before which the samples are.
    pub until: SystemTime,
}

impl Selection {
    /// Reads the parameters; `None` if no sample can have these times.
    ///
    /// # Errors
    /// Returns a failure in Prometheus's words if a parameter is wrong.
    pub fn parse(form: &Form) -> Result<Option<Self>, Failure> {
        if form.all("match[]").next().is_none() {
            return Err(Failure::bad_data("no match[] parameter provided"));
        }
        let start = parameters::optional_time(form, "start")?;
        let end = parameters::optional_time(form, "end")?;
        let selectors = selectors::all(form).map_err(|text| Failure::invalid("match[]", text))?;
        let (start, end) = (start.unwrap_or(Time::FIRST), end.unwrap_or(Time::LAST));
        let times = parameters::first_and_until(start.0, end.0);
        Ok(times.map(|(first, until)| Self {
            selectors,
            first,
            until,
        }))
    }
}

/// Deletions, one at a time.
pub struct Deletions {
    connector: Connector,
    connect_timeout: Duration,
    timeout: Duration,
    is_on: bool,
    place: Arc<Semaphore>,
    runtime: Handle,
    metrics: Arc<QueryMetrics>,
}

impl Deletions {
    /// Prepares deletions, whose connections live on the current runtime.
    ///
    /// # Panics
    /// Panics outside of a runtime.
    pub fn new(connector: Connector, settings: &QuerySettings, metrics: Arc<QueryMetrics>) -> Self {
        Self {
            connector: connector.named("lanes-gateway admin"),
            connect_timeout: settings.connect_timeout,
            timeout: settings.timeout,
            is_on: settings.admin_api,
            place: Arc::new(Semaphore::new(1)),
            runtime: Handle::current(),
            metrics,
        }
    }

    /// Answers `delete_series`, as a role; with `None` as the role of the login.
    ///
    /// # Errors
    /// Returns a failure if the admin API is off, a parameter is wrong, another deletion runs, or
    /// the samples cannot be deleted. No sample is deleted then, unless the connection breaks while
    /// PostgreSQL commits.
    pub async fn delete_series(
        &self,
        role: Option<Arc<str>>,
        form: &Form,
    ) -> Result<Answer, Failure> {
        self.require_on()?;
        let Some(selection) = Selection::parse(form)? else {
            return Ok(Answer::Nothing);
        };
        let Ok(place) = Arc::clone(&self.place).try_acquire_owned() else {
            return Err(Failure::unavailable(
                "another deletion runs; repeat the request when it has ended",
            ));
        };
        let deletion = Deletion {
            connector: self.connector.clone(),
            connect_timeout: self.connect_timeout,
            timeout: self.timeout,
            role,
            selection,
            _place: place,
        };
        let metrics = Arc::clone(&self.metrics);
        let deleting = self.runtime.spawn(async move {
            let samples = deletion.run().await?;
            metrics.samples_deleted.inc_by(samples);
            tracing::info!(
                "{samples} samples were deleted through the admin API, as role {:?}",
                deletion.role.as_deref().unwrap_or("of query.connection")
            );
            Ok(Answer::Nothing)
        });
        let ended = deleting.await;
        ended.unwrap_or_else(|_| Err(Failure::unavailable("the gateway is stopping")))
    }

    /// Answers `clean_tombstones`.
    ///
    /// # Errors
    /// Returns always a failure, which says what to do instead.
    pub fn clean_tombstones(&self) -> Result<Answer, Failure> {
        self.require_on()?;
        Err(Failure::new(
            Kind::Execution,
            "tombstones are cleaned by VACUUM, which autovacuum runs by itself; to have their space at once, run \
                VACUUM lanes.samples as its owner",
        ))
    }

    /// Answers `snapshot`.
    ///
    /// # Errors
    /// Returns always a failure, which says what to do instead.
    pub fn snapshot(&self) -> Result<Answer, Failure> {
        self.require_on()?;
        Err(Failure::new(
            Kind::Execution,
            "snapshots are not taken by the gateway; back up the cluster by pg_basebackup, or the database by pg_dump",
        ))
    }

    fn require_on(&self) -> Result<(), Failure> {
        match self.is_on {
            true => Ok(()),
            false => Err(Failure::unavailable(
                "admin APIs disabled: set query.admin_api (LANES_GATEWAY_QUERY_ADMIN_API) to true",
            )),
        }
    }
}

/// A deletion that runs.
struct Deletion {
    connector: Connector,
    connect_timeout: Duration,
    timeout: Duration,
    role: Option<Arc<str>>,
    selection: Selection,
    _place: OwnedSemaphorePermit,
}

impl Deletion {
    /// Deletes the samples, and returns their number.
    async fn run(&self) -> Result<u64, Failure> {
        let connecting = timeout(self.connect_timeout, self.connector.connect());
        let (client, connection) = match connecting.await {
            Ok(Ok(connected)) => connected,
            Ok(Err(error)) => return Err(self.failure(&error, false)),
            Err(_) => {
                return Err(Failure::unavailable(format!(
                    "could not open a session with PostgreSQL within {:?} (postgres.connect_timeout)",
                    self.connect_timeout
                )));
            }
        };
        // The connection ends with the client. Until then, statements end with its error.
        tokio::spawn(connection);
        let deleting = timeout(self.timeout + GRACE, self.delete(&client));
        deleting.await.unwrap_or_else(|_| Err(self.late()))
    }

    async fn delete(&self, client: &Client) -> Result<u64, Failure> {
        let started = clock::now();
        let failure = |error: tokio_postgres::Error| {
            let is_late = clock::now() - started >= self.timeout;
            self.failure(&error, is_late)
        };
        client.batch_execute(SET_UP).await.map_err(failure)?;
        if let Some(role) = &self.role {
            let set_role = format!("SET LOCAL ROLE {}", identifier(role));
            let taken = client.batch_execute(&set_role).await;
            taken.map_err(|error| Failure::of_role(&error, role))?;
        }
        // 0 would mean no limit.
        let millis = self.timeout.as_millis().max(1);
        let limit = format!("SET LOCAL statement_timeout = {millis}");
        client.batch_execute(&limit).await.map_err(failure)?;
        let Selection {
            selectors,
            first,
            until,
        } = &self.selection;
        let deleted = client.execute(DELETE, &[selectors, first, until]).await;
        let deleted = deleted.map_err(failure)?;
        client.batch_execute("COMMIT").await.map_err(failure)?;
        Ok(deleted)
    }

    fn failure(&self, error: &tokio_postgres::Error, is_late: bool) -> Failure {
        match error.code() {
            Some(code) if *code == SqlState::QUERY_CANCELED && is_late => self.late(),
            Some(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
                let role = match &self.role {
                    Some(role) => identifier(role),
                    None => "the role of query.connection".to_owned(),
                };
                let message = error.as_db_error().map_or("", |error| error.message());
                Failure::new(
                    Kind::Forbidden,
                    format!(
                        "{message}; to let {role} delete, call lanes.grant_reader for it and GRANT DELETE ON \
                            lanes.samples to it"
                    ),
                )
            }
            _ => Failure::of_database(error, false, self.role.as_deref()),
        }
    }

    fn late(&self) -> Failure {
        Failure::new(
            Kind::Timeout,
            format!(
                "the deletion took longer than {:?} (query.timeout), and nothing was deleted; delete a shorter time, \
                    or run lanes.delete_series in SQL",
                self.timeout
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    fn selection(pairs: &str) -> Result<Option<Selection>, String> {
        Selection::parse(&Form::parse(b"", pairs)).map_err(|failure| failure.text)
    }

    #[test]
    fn both_ends_are_deleted() {
        let at = |millis| UNIX_EPOCH + Duration::from_millis(millis);
        let expected = Selection {
            selectors: vec![r#"{"__name__"="up"}"#.to_owned()],
            first: at(1000),
            until: at(2001),
        };
        assert_eq!(selection("match[]=up&start=1&end=2"), Ok(Some(expected)));
        assert_eq!(selection("match[]=up&start=2&end=1"), Ok(None));
        let all = selection("match[]=up").unwrap().unwrap();
        assert_eq!(Some(all.first), Time::FIRST.system_time());
        assert_eq!(Some(all.until), Time::LAST.system_time());
    }

    #[test]
    fn wrong_parameters_are_refused_in_the_words_of_prometheus() {
        for (pairs, expected) in [
            ("start=1", "no match[] parameter provided"),
            (
                "match[]=up&start=x",
                r#"invalid parameter "start": invalid time value for 'start': cannot parse "x" to a valid timestamp"#,
            ),
            (
                "match[]=%7Ba=''%7D",
                r#"invalid parameter "match[]": match[] must contain at least one non-empty matcher"#,
            ),
        ] {
            assert_eq!(selection(pairs), Err(expected.to_owned()));
        }
    }
}
