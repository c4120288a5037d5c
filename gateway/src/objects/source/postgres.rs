//! PostgreSQL as a [`Source`], with a session that has the claim, one that waits for requested
//! segments, one for answers, and one that queries the backlog.

use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt;
use tokio::sync::Mutex;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row};

use super::session::Session;
use super::{
    Backlog, Definition, DueSegment, Identity, LocalRows, PartRows, Primary, Source, SourceError,
};
use crate::connect::Connector;
use crate::objects::model::History;

const SUPPORTS: &str = "SELECT to_regprocedure('lanes.offload_list(integer)') IS NOT NULL \
                        AND to_regprocedure('lanes.recall_wait(interval)') IS NOT NULL \
                        AND to_regprocedure('lanes.data_directory_id()') IS NOT NULL \
                        AND to_regprocedure('lanes.object_scope()') IS NOT NULL";
/// Advisory locks are local to a database. These numbers are used by lanes only.
const CLAIM: &str = "SELECT pg_try_advisory_lock(1818324581, 1935828847)";
const DUE: &str =
    "SELECT target::oid, part, first_row, rows, bytes, key FROM lanes.offload_list($1)";
/// Lists everything that is due.
const BACKLOG: &str = "SELECT coalesce(sum(rows), 0)::int8, coalesce(sum(bytes), 0)::int8 FROM lanes.offload_list(2147483647)";
const IMAGE: &str = "SELECT lanes.segment_image($1::oid::regclass, $2, $3)";
const COMMIT: &str = "SELECT lanes.offload_commit($1::oid::regclass, $2)";
const PART_ROWS: &str = "SELECT storage_id, first_row, end_row, coalesce(lanes.column_types($1), '{}'), \
                         (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::int8 \
                         FROM lanes.part_rows($1::oid::regclass, $2)";
/// Returns the definition of a table, and its version.
pub const DEFINITION: &str = "SELECT lanes.table_definition(c.oid)::text, lanes.definition_version(c.oid) FROM pg_class c WHERE c.oid = $1";
const DEFINITION_VERSIONS: &str = "SELECT c.oid, lanes.definition_version(c.oid) FROM pg_class c WHERE c.oid = ANY ($1) AND c.relkind = 'r'";
const LOCAL_ROWS: &str = "SELECT target, storage_id, first_row, end_row FROM lanes.local_rows()";
const HISTORY: &str = "SELECT timeline, file FROM lanes.timeline_history()";
const REMOTE_KEYS: &str = "SELECT key FROM lanes.remote_keys() AS key";
const IDENTITY: &str =
    "SELECT lanes.object_scope(), lanes.data_directory_id(), pg_is_in_recovery()";
/// Fails on a standby.
const WAL_FLUSHED: &str = "SELECT (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::int8";
/// A wait within a SELECT would hold a snapshot, and keep rows from being sealed.
const WAIT: &str = "CALL lanes.recall_wait(make_interval(secs => $1))";
const WANTED: &str = "SELECT key FROM lanes.recall_next('0') WHERE key IS NOT NULL";
const SUPPLY: &str = "SELECT lanes.recall_supply($1, $2)";
const FAIL: &str = "SELECT lanes.recall_fail($1, $2)";

/// The database of the gateway's configuration.
pub struct PostgresSource {
    connection: Connector,
    connect_timeout: Duration,
    /// The session that has the claim; `None` while this gateway does not have it.
    work: Mutex<Option<Session>>,
    waits: Mutex<Option<Session>>,
    answers: Mutex<Option<Session>>,
    looks: Mutex<Option<Session>>,
}

impl PostgresSource {
    /// Creates a source without opening a session.
    pub fn new(connection: Connector, connect_timeout: Duration) -> Self {
        Self {
            connection: connection.named("lanes-gateway objects"),
            connect_timeout,
            work: Mutex::default(),
            waits: Mutex::default(),
            answers: Mutex::default(),
            looks: Mutex::default(),
        }
    }

    async fn open(&self) -> Result<Session, SourceError> {
        Session::open(&self.connection, self.connect_timeout).await
    }

    /// Makes a call in the session that has the claim.
    async fn claimed<R>(
        &self,
        call: impl AsyncFnOnce(&Client) -> Result<R, Error>,
    ) -> Result<R, SourceError> {
        let mut place = self.work.lock().await;
        let Some(session) = place.as_ref() else {
            return Err(SourceError::Lost(
                "this gateway does not have the claim".to_owned(),
            ));
        };
        let result = session.call(call).await;
        forget_if_lost(&mut place, &result);
        result
    }

    /// Makes a call in a session, which is opened if there is none.
    async fn any<R>(
        &self,
        place: &Mutex<Option<Session>>,
        call: impl AsyncFnOnce(&Client) -> Result<R, Error>,
    ) -> Result<R, SourceError> {
        let mut place = place.lock().await;
        let session = match place.take() {
            Some(session) if !session.is_closed() => session,
            _ => self.open().await?,
        };
        // The session is put back only after the call ends. A call that is dropped takes its
        // session with it.
        let result = session.call(call).await;
        *place = Some(session);
        forget_if_lost(&mut place, &result);
        result
    }
}

fn forget_if_lost<R>(place: &mut Option<Session>, result: &Result<R, SourceError>) {
    if matches!(result, Err(SourceError::Lost(_))) || place.as_ref().is_some_and(Session::is_closed)
    {
        *place = None;
    }
}

async fn identity(client: &Client) -> Result<Identity, Error> {
    let row = client.query_one(IDENTITY, &[]).await?;
    let is_standby: bool = row.try_get(2)?;
    let primary = match is_standby {
        true => None,
        false => {
            let place = client.query_one(WAL_FLUSHED, &[]).await?;
            Some(Primary {
                history: history(client).await?,
                wal_place: place.try_get::<_, i64>(0)? as u64,
            })
        }
    };
    Ok(Identity {
        scope: row.try_get(0)?,
        directory: row.try_get(1)?,
        primary,
    })
}

async fn history(client: &Client) -> Result<History, Error> {
    let row = client.query_one(HISTORY, &[]).await?;
    let file: Option<String> = row.try_get(1)?;
    Ok(History::read(row.try_get::<_, u32>(0)?, file.as_deref()))
}

impl Source for PostgresSource {
    async fn supports(&self) -> Result<(), SourceError> {
        let has_functions: bool = self
            .any(&self.answers, async |client| {
                client.query_one(SUPPORTS, &[]).await?.try_get(0)
            })
            .await?;
        if has_functions {
            Ok(())
        } else {
            Err(SourceError::Unsupported(
                "the database's extension lanes lacks the functions to offload segments".to_owned(),
            ))
        }
    }

    async fn identity(&self) -> Result<Identity, SourceError> {
        self.any(&self.answers, identity).await
    }

    async fn claimed_identity(&self) -> Result<Identity, SourceError> {
        self.claimed(identity).await
    }

    async fn claim(&self) -> Result<bool, SourceError> {
        let mut place = self.work.lock().await;
        if place.as_ref().is_some_and(|session| !session.is_closed()) {
            return Ok(true);
        }
        *place = None;
        let session = self.open().await?;
        let is_ours: bool = session
            .call(async |client| client.query_one(CLAIM, &[]).await?.try_get(0))
            .await?;
        if is_ours {
            *place = Some(session);
        }
        Ok(is_ours)
    }

    async fn release(&self) {
        for place in [&self.work, &self.waits, &self.answers, &self.looks] {
            *place.lock().await = None;
        }
    }

    async fn due(&self, wanted: i32) -> Result<Vec<DueSegment>, SourceError> {
        let segment = |row: &Row| {
            Ok(DueSegment {
                target: row.try_get(0)?,
                part: row.try_get(1)?,
                first_row: row.try_get(2)?,
                rows: row.try_get(3)?,
                bytes: row.try_get(4)?,
                key: row.try_get(5)?,
            })
        };
        self.claimed(async |client| {
            let rows = client.query(DUE, &[&wanted]).await?;
            rows.iter().map(segment).collect()
        })
        .await
    }

    async fn backlog(&self) -> Result<Backlog, SourceError> {
        self.any(&self.looks, async |client| {
            let row = client.query_one(BACKLOG, &[]).await?;
            Ok(Backlog {
                rows: row.try_get::<_, i64>(0)? as u64,
                bytes: row.try_get::<_, i64>(1)? as u64,
            })
        })
        .await
    }

    async fn image(&self, segment: &DueSegment) -> Result<Bytes, SourceError> {
        let which: [&(dyn ToSql + Sync); 3] = [&segment.target, &segment.part, &segment.first_row];
        let image: Vec<u8> = self
            .claimed(async |client| client.query_one(IMAGE, &which).await?.try_get(0))
            .await?;
        Ok(Bytes::from(image))
    }

    async fn commit(&self, target: u32, part: i64) -> Result<bool, SourceError> {
        // With autocommit, the answer is complete only after the commit.
        self.claimed(async |client| {
            client
                .query_one(COMMIT, &[&target, &part])
                .await?
                .try_get(0)
        })
        .await
    }

    async fn part_rows(&self, target: u32, part: i64) -> Result<Option<PartRows>, SourceError> {
        self.claimed(async |client| {
            let Some(row) = client.query_opt(PART_ROWS, &[&target, &part]).await? else {
                return Ok(None);
            };
            Ok(Some(PartRows {
                storage: row.try_get::<_, i64>(0)? as u64,
                first_row: row.try_get::<_, i64>(1)? as u64,
                end_row: row.try_get::<_, i64>(2)? as u64,
                types: row.try_get(3)?,
                wal_place: row.try_get::<_, i64>(4)? as u64,
            }))
        })
        .await
    }

    async fn definition(&self, target: u32) -> Result<Option<Definition>, SourceError> {
        self.claimed(async |client| {
            let Some(row) = client.query_opt(DEFINITION, &[&target]).await? else {
                return Ok(None);
            };
            let json: Option<String> = row.try_get(0)?;
            let version = row.try_get(1)?;
            Ok(json.map(|json| Definition { json, version }))
        })
        .await
    }

    async fn definition_versions(&self, targets: &[u32]) -> Result<Vec<(u32, i64)>, SourceError> {
        self.claimed(async |client| {
            let rows = client.query(DEFINITION_VERSIONS, &[&targets]).await?;
            let version = |row: &Row| Ok((row.try_get(0)?, row.try_get(1)?));
            rows.iter().map(version).collect()
        })
        .await
    }

    async fn local_rows(&self) -> Result<Vec<LocalRows>, SourceError> {
        let local = |row: &Row| {
            Ok(LocalRows {
                target: row.try_get(0)?,
                storage: row.try_get::<_, i64>(1)? as u64,
                first_row: row.try_get::<_, i64>(2)? as u64,
                end_row: row.try_get::<_, i64>(3)? as u64,
            })
        };
        self.claimed(async |client| {
            let rows = client.query(LOCAL_ROWS, &[]).await?;
            rows.iter().map(local).collect()
        })
        .await
    }

    async fn history(&self) -> Result<History, SourceError> {
        self.claimed(history).await
    }

    async fn remote_keys(&self, each: &mut (dyn FnMut(&str) + Send)) -> Result<(), SourceError> {
        self.claimed(async |client| {
            let none: [&(dyn ToSql + Sync); 0] = [];
            let mut rows = std::pin::pin!(client.query_raw(REMOTE_KEYS, none).await?);
            while let Some(row) = rows.try_next().await? {
                each(row.try_get(0)?);
            }
            Ok(())
        })
        .await
    }

    async fn scope(&self) -> Result<String, SourceError> {
        let database = self.claimed(identity).await?;
        Ok(database.scope)
    }

    async fn wanted(&self, wait: Duration) -> Result<Vec<String>, SourceError> {
        let seconds = wait.as_secs_f64();
        self.any(&self.waits, async |client| {
            client.execute(WAIT, &[&seconds]).await?;
            let rows = client.query(WANTED, &[]).await?;
            rows.iter().map(|row| row.try_get(0)).collect()
        })
        .await
    }

    async fn supply(&self, key: &str, image: &[u8]) -> Result<(), SourceError> {
        self.any(&self.answers, async |client| {
            client.execute(SUPPLY, &[&key, &image]).await
        })
        .await
        .map(drop)
    }

    async fn fail(&self, key: &str, reason: &str) -> Result<(), SourceError> {
        self.any(&self.answers, async |client| {
            client.execute(FAIL, &[&key, &reason]).await
        })
        .await
        .map(drop)
    }
}
