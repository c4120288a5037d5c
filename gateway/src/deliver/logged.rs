//! Level `object`: what is appended is also put into the log of object storage, with everything
//! that is needed to read it there. The order of the steps and its guarantees are explained in
//! [`crate::objects::log`].

use bytes::Bytes;
use lanes_wire::BatchView;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};

use super::call_error::{CallError, check_applied, of_table};
use super::connection::{Connection, get};
use super::sink::{Append, NO_LOG, Repeated, SinkError};
use crate::clock;
use crate::model::Target;
use crate::objects::log::{Entry, ObjectLog, Put};
use crate::objects::model::record::{self, Change, Head, RegistryRecord, SeriesRecord};
use crate::objects::source::postgres::DEFINITION;

const APPEND: &str = "SELECT a.placed, a.version, t.oid, a.columns::text[], a.applied, a.reused \
     FROM (SELECT $1::text::regclass::oid) AS t (oid), \
     lanes.append_logged(t.oid::regclass, $2, $3, $4, $5, $6) AS a";
const APPEND_TO_TABLE: &str = "SELECT a.placed, a.version, t.oid, a.columns::text[], a.applied, a.reused \
     FROM (SELECT $1::oid) AS t (oid), lanes.append_logged(t.oid::regclass, $2, $3, $4, $5, $6) AS a";
const PLACED: &str = "SELECT r.placed, lanes.definition_version(c.oid), c.oid, lanes.column_names(c.oid)::text[] FROM lanes.requests r, pg_class c \
     WHERE r.digest = $1 AND c.oid = $2";
const PLACED_SAMPLES: &str = "SELECT r.placed, lanes.definition_version(c.oid), c.oid, lanes.column_names(c.oid)::text[] FROM lanes.requests r, pg_class c \
     WHERE r.digest = $1 AND c.oid = $2::text::regclass::oid";
/// Returns a few thousand series for each of a few dozen registered runs. The limit counts rows,
/// because registration bounds the size of each.
const SERIES_BEYOND: &str = "SELECT first_id, last_id, metric, lanes.label_sets(labels), registered_at::text FROM lanes.series_runs \
     WHERE last_id > $1 ORDER BY first_id LIMIT 100";

/// Runs after the commit, so the position is at or past it.
const WAL_PLACE: &str = "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::int8";

/// The statements of level `object`. They are prepared when first needed.
pub struct LoggedStatements {
    append: Statement,
    append_to_table: Statement,
    placed: Statement,
    placed_samples: Statement,
    series_beyond: Statement,
    definition: Statement,
    wal_place: Statement,
}

impl LoggedStatements {
    /// Prepares all statements.
    ///
    /// # Errors
    /// Returns an error if the server is unavailable, or lacks the functions or the privileges of
    /// `lanes.grant_gateway`.
    pub async fn prepare(client: &Client) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            append: client.prepare(APPEND).await?,
            append_to_table: client.prepare(APPEND_TO_TABLE).await?,
            placed: client.prepare(PLACED).await?,
            placed_samples: client.prepare(PLACED_SAMPLES).await?,
            series_beyond: client.prepare(SERIES_BEYOND).await?,
            definition: client.prepare(DEFINITION).await?,
            wal_place: client.prepare(WAL_PLACE).await?,
        })
    }
}

/// The position of appended rows.
#[derive(Debug, PartialEq, Eq)]
struct Placed {
    target: u32,
    /// The version of the table's definition.
    version: i64,
    /// The names of the table's columns by position; `None` for a dropped column.
    columns: Vec<Option<String>>,
    storage: u64,
    runs: Vec<(u64, u64)>,
}

impl Connection {
    /// Appends a batch as [`Connection::append`] does, and returns once its entry is durable in the
    /// log.
    pub async fn append_logged(
        &self,
        samples: &str,
        append: &Append<'_>,
        log: &ObjectLog,
    ) -> Result<(), CallError> {
        let is_once = match append.target {
            Target::Samples { .. } => true,
            Target::Table { is_once, .. } => is_once,
        };
        let of_target = |error| match append.target {
            Target::Samples { .. } => error,
            Target::Table { .. } => of_table(error, is_once),
        };
        let placed = self.place(samples, append).await.map_err(of_target)?;
        // The rows are committed from here on. If a later step fails, the outcome is unknown to
        // requests without a digest.
        let Some(placed) = placed else {
            return Ok(());
        };
        let logged = self.log(&placed, append.target, append.batch, log).await;
        logged.map_err(|error| match error.error {
            SinkError::Unavailable(reason) if !is_once => CallError {
                error: SinkError::OutcomeUnknown(reason),
                ..error
            },
            _ => error,
        })
    }

    /// Puts a request that was appended before into the log.
    pub async fn log_again(
        &self,
        samples: &str,
        repeated: &Repeated<'_>,
        log: &ObjectLog,
    ) -> Result<(), CallError> {
        let statements = self.logged_statements().await?;
        let digest = repeated.digest.0.as_slice();
        let client = self.client();
        let call = async |statement, parameters: &[&(dyn ToSql + Sync)]| {
            self.answered(client.query_opt(statement, parameters)).await
        };
        let row = match &repeated.target {
            Target::Samples { .. } => {
                call(&statements.placed_samples, &[&digest, &samples]).await?
            }
            Target::Table { oid, .. } => call(&statements.placed, &[&digest, oid]).await?,
        };
        let Some(row) = row else {
            return Err(failed(
                "the rows stored by the earlier request no longer exist",
                false,
            ));
        };
        let Some(numbers) = get::<Option<Vec<i64>>>(&row, 0)? else {
            return Err(failed(
                "the request was stored before at a weaker level of acknowledgement than \"object\"; repeating it does not change that",
                true,
            ));
        };
        let [skip, count, rest @ ..] = numbers.as_slice() else {
            return Err(failed(
                "lanes.requests contains no position of the rows",
                false,
            ));
        };
        let Some(whole) = placed(rest, &row)? else {
            return Ok(());
        };
        let own = Placed {
            runs: rows_within(&whole.runs, *skip as u64, *count as u64),
            ..whole
        };
        self.log(&own, repeated.target, repeated.batch, log).await
    }

    async fn place(&self, samples: &str, append: &Append<'_>) -> Result<Option<Placed>, CallError> {
        let statements = self.logged_statements().await?;
        let (digests, bodies) = append.digest_bytes();
        // A batch has fewer rows than this.
        let number = |rows: usize| i32::try_from(rows).unwrap_or(i32::MAX);
        let (skips, counts): (Vec<i32>, Vec<i32>) = append
            .places
            .iter()
            .map(|&(skip, count)| (number(skip), number(count)))
            .unzip();
        let (batch, client) = (append.batch, self.client());
        let call = async |statement, table: &(dyn ToSql + Sync)| {
            let parameters = [table, &batch, &digests, &bodies, &skips, &counts];
            self.committed(client.query_one(statement, &parameters))
                .await
        };
        let row = match &append.target {
            Target::Samples { .. } => call(&statements.append, &samples).await?,
            Target::Table { oid, .. } => call(&statements.append_to_table, oid).await?,
        };
        check_applied(get(&row, 4)?, get(&row, 5)?)?;
        let numbers: Vec<i64> = get(&row, 0)?;
        placed(&numbers, &row)
    }

    /// Puts an entry, together with everything that is needed to read it and that the store lacks.
    async fn log(
        &self,
        placed: &Placed,
        target: Target,
        batch: &[u8],
        log: &ObjectLog,
    ) -> Result<(), CallError> {
        let Some((scope, epoch, timeline)) = parts_of_identity(self.identity()) else {
            return Err(failed(
                "could not parse the result of lanes.registry_identity",
                false,
            ));
        };
        let mut put = Put::default();
        if matches!(target, Target::Samples { .. }) {
            let last = last_series(batch);
            self.series_to(last, scope, epoch, log, &mut put).await?;
        }
        let is_known = || log.knows_table(scope, placed.target, placed.version);
        let mut _defining = None;
        if !is_known() {
            // Held until the definition is put.
            _defining = Some(log.defining(scope, placed.target).await);
        }
        if !is_known() {
            self.put_definition(placed.target, scope, &mut put).await?;
        }
        let place = self
            .answered(
                self.client()
                    .query_one(&self.logged_statements().await?.wal_place, &[]),
            )
            .await?;
        let wal_place: i64 = get(&place, 0)?;
        let head = Head {
            target: placed.target,
            storage: placed.storage,
            runs: placed.runs.clone(),
            bytes: batch.len() as u64,
            logged_ms: clock::unix_ms(),
            columns: places_of(batch, &placed.columns)
                .ok_or_else(|| failed("columns of the request no longer exist", true))?,
            timeline,
            wal_place: wal_place as u64,
        };
        let first_row = placed.runs.first().map_or(0, |run| run.0);
        let name = record::head_name(scope, placed.storage, first_row, timeline);
        let entry: Bytes = Entry::encode(&head, batch);
        put.changes.extend([
            Change::put(record::entry_name(&name), entry),
            Change::document(name.clone(), &head),
        ]);
        put.entry = Some((name, head));
        log.put(put).await.map_err(|error| failed(&error, false))
    }

    /// Adds the definition of a table to `put`.
    async fn put_definition(
        &self,
        target: u32,
        scope: &str,
        put: &mut Put,
    ) -> Result<(), CallError> {
        let statement = &self.logged_statements().await?.definition;
        let parameters: [&(dyn ToSql + Sync); 1] = [&target];
        let row = self
            .answered(self.client().query_one(statement, &parameters))
            .await?;
        let definition: Option<String> = get(&row, 0)?;
        let Some(definition) = definition else {
            return Err(failed("the table no longer exists", false));
        };
        put.changes
            .extend(record::definition_changes(scope, target, definition));
        put.table = Some((scope.to_owned(), target, get(&row, 1)?));
        Ok(())
    }

    /// Puts the series up to `last` that the store lacks. The last of them are added to `put`.
    async fn series_to(
        &self,
        last: i32,
        scope: &str,
        epoch: &str,
        log: &ObjectLog,
        put: &mut Put,
    ) -> Result<(), CallError> {
        let mut known = log.last_series(scope, epoch);
        while known < last {
            let statement = &self.logged_statements().await?.series_beyond;
            let beyond: [&(dyn ToSql + Sync); 1] = [&known];
            let rows = self
                .answered(self.client().query(statement, &beyond))
                .await?;
            for row in &rows {
                let series = SeriesRecord {
                    first_id: get(row, 0)?,
                    last_id: get(row, 1)?,
                    metric: get(row, 2)?,
                    labels: get(row, 3)?,
                    registered_at: get(row, 4)?,
                };
                known = series.last_id;
                let name = record::series_name(scope, epoch, series.first_id);
                put.changes.push(Change::document(name, &series));
            }
            if rows.is_empty() {
                return Err(failed(
                    "the registry lacks series whose ids were assigned",
                    false,
                ));
            }
            let registry = RegistryRecord {
                epoch: epoch.to_owned(),
                last_id: known,
            };
            let name = record::registry_name(scope);
            put.changes.push(Change::document(name, &registry));
            put.registry = Some((scope.to_owned(), registry));
            if known < last {
                let put = std::mem::take(put);
                log.put(put).await.map_err(|error| failed(&error, false))?;
            }
        }
        Ok(())
    }
}

/// Parses the result of `lanes.append_placed`: the storage id, then the first row and the number of
/// rows of each run. Returns `None` if there were no rows.
fn placed(numbers: &[i64], row: &Row) -> Result<Option<Placed>, CallError> {
    let [storage, runs @ ..] = numbers else {
        return Ok(None);
    };
    Ok(Some(Placed {
        target: get(row, 2)?,
        version: get(row, 1)?,
        columns: get(row, 3)?,
        storage: *storage as u64,
        runs: runs
            .chunks_exact(2)
            .map(|run| (run[0] as u64, run[1] as u64))
            .collect(),
    }))
}

/// Returns the positions, from 1 on, of a batch's columns among those of its table; `None` if the
/// table lacks one of them.
fn places_of(batch: &[u8], columns: &[Option<String>]) -> Option<Vec<u16>> {
    // The batch was verified when it was appended.
    let view = BatchView::verify(batch).ok()?;
    let place = |name: &str| {
        let index = columns.iter().position(|c| c.as_deref() == Some(name))?;
        u16::try_from(index + 1).ok()
    };
    view.columns().iter().map(|c| place(c.name())).collect()
}

/// Returns `count` rows of the runs, after skipping the first `skip` rows.
fn rows_within(runs: &[(u64, u64)], mut skip: u64, mut count: u64) -> Vec<(u64, u64)> {
    let mut within = Vec::new();
    for &(first, rows) in runs {
        let before = skip.min(rows);
        let here = count.min(rows - before);
        if here > 0 {
            within.push((first + before, here));
        }
        skip -= before;
        count -= here;
    }
    within
}

/// Splits the result of `lanes.registry_identity` into `<system id>/<database>`, the epoch of the
/// registry and the timeline. A session has one timeline: sessions of a standby end, or fail,
/// before the standby is promoted.
fn parts_of_identity(identity: &str) -> Option<(&str, &str, u32)> {
    let (rest, timeline) = identity.rsplit_once('/')?;
    let (scope, epoch) = rest.rsplit_once('/')?;
    Some((scope, epoch, u32::from_str_radix(timeline, 16).ok()?))
}

/// Returns the last series id of a batch of samples.
fn last_series(batch: &[u8]) -> i32 {
    // The batch was verified when it was appended.
    let view = BatchView::verify(batch).ok();
    let ids = view
        .as_ref()
        .and_then(|view| view.column("series")?.values().arrays::<4>());
    let ids = ids.into_iter().flatten().map(|id| i32::from_le_bytes(*id));
    ids.max().unwrap_or(0)
}

fn failed(reason: &(impl ToString + ?Sized), is_final: bool) -> CallError {
    let reason = reason.to_string();
    CallError {
        error: if is_final {
            SinkError::Refused(reason)
        } else {
            SinkError::Unavailable(reason)
        },
        kind: "object_log".to_owned(),
        is_session_good: true,
    }
}

/// Returns the error for a gateway without a log.
pub fn no_log() -> SinkError {
    SinkError::Unavailable(NO_LOG.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_one_request_are_found_in_the_runs_of_its_batch() {
        let runs = [(100, 10), (500, 10)];
        for (skip, count, expected) in [
            (0, 20, &[(100, 10), (500, 10)][..]),
            (0, 3, &[(100, 3)]),
            (8, 4, &[(108, 2), (500, 2)]),
            (10, 1, &[(500, 1)]),
            (19, 1, &[(509, 1)]),
            (5, 0, &[]),
        ] {
            assert_eq!(rows_within(&runs, skip, count), expected, "{skip} {count}");
        }
    }

    #[test]
    fn an_identity_contains_scope_epoch_and_timeline() {
        assert_eq!(
            parts_of_identity("7/5/e-1/0000000A"),
            Some(("7/5", "e-1", 10))
        );
        assert_eq!(parts_of_identity("7"), None);
    }
}
