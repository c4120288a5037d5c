//! The calls of registration to PostgreSQL, over one session.

use bytes::{BufMut, BytesMut};
use futures_util::TryStreamExt;
use tokio_postgres::types::{Format, IsNull, Kind, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Row, Statement};

use super::call_error::CallError;
use super::connection::{Connection, get};
use super::registration::{RegistryCalls, SeriesRun, StoredHashes, StoredRun};
use crate::series::{LabelSet, SeriesId};

const LAST_ID: &str = "SELECT next_id - 1 FROM lanes.registry";
/// The number of bytes after which no further runs are read: a few thousand series for each of a
/// few dozen runs.
const RUNS_BYTES: usize = 8 << 20;
const RUNS_BEYOND: &str = "SELECT first_id, metric, lanes.label_sets(labels) FROM lanes.series_runs WHERE first_id > $1 ORDER BY first_id LIMIT 300";
/// Returns blocks of a few thousand series each.
const HASHES_BEYOND: &str = "SELECT last_id, seed, hashes FROM lanes.series_hashes WHERE last_id > $1 ORDER BY last_id LIMIT 64";
/// Unpacks runs until they have 20,000 series, which are about 2 MB of label sets.
const RUNS_OF: &str = "SELECT first_id, metric, lanes.label_sets(labels) FROM ( \
         SELECT r.*, sum(r.last_id - r.first_id + 1) OVER (ORDER BY r.first_id) - (r.last_id - r.first_id) AS before FROM lanes.series_runs r \
          WHERE r.first_id IN (SELECT (SELECT max(n.first_id) FROM lanes.series_runs n WHERE n.first_id <= u.id) FROM unnest($1::int4[]) u (id)) \
     ) AS s WHERE before <= 20000 ORDER BY first_id";
const SERIES_OF: &str = "SELECT id, metric, labels FROM lanes.find_series($1)";
const FIND_BEYOND: &str = "WITH wanted AS MATERIALIZED (SELECT * FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS w (metric, labels, place)), \
     there AS MATERIALIZED (SELECT r.metric, u.labels, (r.first_id + u.place - 1)::int4 AS id FROM lanes.series_runs r \
          CROSS JOIN LATERAL unnest(lanes.label_sets(r.labels)) WITH ORDINALITY AS u (labels, place) \
          WHERE r.first_id > $1 AND r.metric = ANY ($2)) \
     SELECT w.place - 1, t.id FROM wanted w JOIN there t ON t.metric = w.metric AND t.labels = w.labels";
const REGISTER: &str = "SELECT lanes.register_series($1, $2)";

/// The statements of registration. They are prepared when first needed, because most sessions never
/// register.
pub struct RegistryStatements {
    last_id: Statement,
    hashes_beyond: Statement,
    runs_of: Statement,
    runs_beyond: Statement,
    series_of: Statement,
    find_beyond: Statement,
    register: Statement,
}

impl RegistryStatements {
    /// Prepares all statements.
    ///
    /// # Errors
    /// Returns an error if the server is unavailable, or lacks the extension or the privileges of
    /// `lanes.grant_gateway`.
    pub async fn prepare(client: &Client) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            last_id: client.prepare(LAST_ID).await?,
            hashes_beyond: client.prepare(HASHES_BEYOND).await?,
            runs_of: client.prepare(RUNS_OF).await?,
            runs_beyond: client.prepare(RUNS_BEYOND).await?,
            series_of: client.prepare(SERIES_OF).await?,
            find_beyond: client.prepare(FIND_BEYOND).await?,
            register: client.prepare(REGISTER).await?,
        })
    }
}

impl RegistryCalls for Connection {
    async fn last_id(&self) -> Result<SeriesId, CallError> {
        let statement = &self.registry_statements().await?.last_id;
        let row = self
            .committed(self.client().query_one(statement, &[]))
            .await?;
        get(&row, 0)
    }

    async fn hashes_beyond(&self, id: SeriesId) -> Result<Vec<StoredHashes>, CallError> {
        let statement = &self.registry_statements().await?.hashes_beyond;
        let rows = self
            .committed(self.client().query(statement, &[&id]))
            .await?;
        let hashes = |row: &Row| {
            Ok(StoredHashes {
                last_id: get(row, 0)?,
                seed: get::<i64>(row, 1)?.cast_unsigned(),
                block: get(row, 2)?,
            })
        };
        rows.iter().map(hashes).collect()
    }

    async fn runs_of(&self, ids: &[SeriesId]) -> Result<Vec<StoredRun>, CallError> {
        let statement = &self.registry_statements().await?.runs_of;
        let rows = self
            .committed(self.client().query(statement, &[&ids]))
            .await?;
        rows.iter().map(stored_run).collect()
    }

    async fn runs_beyond(&self, id: SeriesId) -> Result<Vec<StoredRun>, CallError> {
        let statement = &self.registry_statements().await?.runs_beyond;
        let read = async {
            let mut stream = std::pin::pin!(self.client().query_raw(statement, [id]).await?);
            let (mut rows, mut bytes) = (Vec::new(), 0);
            while bytes < RUNS_BYTES
                && let Some(row) = stream.try_next().await?
            {
                bytes += row.raw_size_bytes();
                rows.push(row);
            }
            // Further rows are dropped as they arrive.
            Ok(rows)
        };
        let rows = self.committed(read).await?;
        rows.iter().map(stored_run).collect()
    }

    async fn series_of(
        &self,
        ids: &[SeriesId],
    ) -> Result<Vec<(SeriesId, String, String)>, CallError> {
        let statement = &self.registry_statements().await?.series_of;
        let rows = self
            .committed(self.client().query(statement, &[&ids]))
            .await?;
        let series = |row: &Row| Ok((get(row, 0)?, get(row, 1)?, get(row, 2)?));
        rows.iter().map(series).collect()
    }

    async fn find_beyond(
        &self,
        id: SeriesId,
        wanted: &[&LabelSet],
    ) -> Result<Vec<(usize, SeriesId)>, CallError> {
        let statement = &self.registry_statements().await?.find_beyond;
        let metrics: Vec<&str> = wanted.iter().map(|set| set.metric.as_str()).collect();
        let labels: Vec<&str> = wanted.iter().map(|set| set.labels_json.as_str()).collect();
        let rows = self
            .committed(self.client().query(statement, &[&id, &metrics, &labels]))
            .await?;
        let found = |row: &Row| {
            let place: i64 = get(row, 0)?;
            Ok((usize::try_from(place).unwrap_or(usize::MAX), get(row, 1)?))
        };
        rows.iter().map(found).collect()
    }

    async fn register_runs(
        &self,
        known_to: SeriesId,
        runs: &[SeriesRun<'_>],
    ) -> Result<Option<SeriesId>, CallError> {
        let statement = &self.registry_statements().await?.register;
        let runs = Runs(runs);
        let row = self
            .committed(self.client().query_one(statement, &[&known_to, &runs]))
            .await?;
        get(&row, 0)
    }
}

fn stored_run(row: &Row) -> Result<StoredRun, CallError> {
    Ok(StoredRun {
        first_id: get(row, 0)?,
        metric: get(row, 1)?,
        labels: get(row, 2)?,
    })
}

/// Runs as `lanes.series_run[]`, in PostgreSQL's binary format:
///
/// ```text
/// array              dimensions i32, has NULLs i32, element type u32,
///                    (length i32, lower bound i32) for each dimension, then the elements
/// record             fields i32, then (type u32, field) for each
/// element and field  length i32, then the bytes
/// ```
#[derive(Debug)]
struct Runs<'a>(&'a [SeriesRun<'a>]);

impl ToSql for Runs<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        let Kind::Array(run_type) = ty.kind() else {
            return Err("not an array type".into());
        };
        let bytes = |run: &SeriesRun<'_>| {
            run.labels
                .iter()
                .map(|labels| labels.len() + 4)
                .sum::<usize>()
                + run.metric.len()
                + 64
        };
        out.reserve(self.0.iter().map(bytes).sum());
        put_array_head(out, self.0.len(), run_type.oid())?;
        for run in self.0 {
            put_sized(out, |out| {
                out.put_i32(2);
                out.put_u32(Type::TEXT.oid());
                put_text(out, run.metric)?;
                out.put_u32(Type::TEXT_ARRAY.oid());
                put_sized(out, |out| {
                    put_array_head(out, run.labels.len(), Type::TEXT.oid())?;
                    run.labels
                        .iter()
                        .try_for_each(|labels| put_text(out, labels))
                })
            })?;
        }
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        matches!(ty.kind(), Kind::Array(member) if member.name() == "series_run")
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Binary
    }

    to_sql_checked!();
}

type Put = Result<(), std::num::TryFromIntError>;

fn put_array_head(out: &mut BytesMut, elements: usize, element_type: u32) -> Put {
    out.put_i32(1);
    out.put_i32(0);
    out.put_u32(element_type);
    out.put_i32(i32::try_from(elements)?);
    out.put_i32(1);
    Ok(())
}

fn put_text(out: &mut BytesMut, text: &str) -> Put {
    out.put_i32(i32::try_from(text.len())?);
    out.put_slice(text.as_bytes());
    Ok(())
}

/// Appends the length of what `put` appends, and then that.
fn put_sized(out: &mut BytesMut, put: impl FnOnce(&mut BytesMut) -> Put) -> Put {
    let start = out.len();
    out.put_i32(0);
    put(out)?;
    let length = i32::try_from(out.len() - start - 4)?;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}
