//! A request with events, from its body to its answer.

use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use bytes::Bytes;
use lanes_wire::BatchError;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout_at;

use super::accumulators::Accumulators;
use super::catalogue::{Catalogue, Found};
use super::event_batch::EventBatch;
use super::format::{Format, Malformed};
use super::{arrow, fit, json};
use crate::clock::{self, Instant};
use crate::deliver::describe::identifier;
use crate::deliver::{DeliverMetrics, Sink};
use crate::http::{HttpMetrics, Refusal};
use crate::model::{
    AckLevel, Budget, Digest, Fault, Outcome, Payload, Pending, Reservation, Room, Table, Target,
};
use crate::quota::Quota;

/// The route, with the name of the table as a parameter.
pub const ROUTE: &str = "/api/v1/events/{table}";
/// The part of the route before the name of the table.
pub const PATH: &str = "/api/v1/events/";
/// The header with the key by which a repeated request is recognised.
pub const KEY_HEADER: &str = "idempotency-key";
/// The maximum bytes of PostgreSQL's names of schemas and tables.
const NAME_BYTES_MAX: usize = 63;
/// The maximum bytes of a key.
const KEY_BYTES_MAX: usize = 256;
/// Schemas that events cannot be written to, whatever privileges the gateway's role has.
const SYSTEM_SCHEMAS: [&str; 4] = ["lanes", "metrics", "pg_catalog", "information_schema"];

/// The memory that decoding JSON or Arrow may take, in multiples of the body ...
const DECODED_TIMES_BODY: usize = 8;
/// ... but at least this many bytes.
const DECODED_BYTES_FLOOR: usize = 64 << 10;
/// The length from which on bodies are decoded on another thread, so that they delay no other
/// request.
const QUICK_BODY_BYTES: usize = 256 << 10;

/// Settings of events.
#[derive(Debug, Clone)]
pub struct EventSettings {
    /// The schema of tables named without one.
    pub schema: String,
    /// The maximum number of rows in one request.
    pub rows_max: usize,
    /// The table of samples, which events cannot be written to: `schema.table`, quoted where SQL
    /// requires it.
    pub samples_table: String,
    /// Whether the first request for a missing table creates it.
    pub create_tables: CreateTables,
}

/// Whether tables are created for their first body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreateTables {
    /// Tables are never created.
    Off,
    /// `CREATE TABLE … USING lanes`.
    Logged,
    /// `CREATE UNLOGGED TABLE … USING lanes`.
    Unlogged,
}

/// The path of events. Each worker has one.
pub struct EventPath<S> {
    /// Settings of events.
    pub settings: EventSettings,
    /// How long a request waits for PostgreSQL after its body has arrived.
    pub ack_timeout: Duration,
    /// The memory of all requests.
    pub budget: Budget,
    /// Metrics of all requests.
    pub http: Arc<HttpMetrics>,
    /// Metrics of delivery, which explain why a request is late.
    pub deliver: Arc<DeliverMetrics>,
    /// Permits to decode a long body: as many as there are processors, shared by all workers.
    pub decoders: Arc<Semaphore>,
    /// Tables by name.
    pub catalogue: Arc<Catalogue<S>>,
    /// The accumulators that requests are sent to.
    pub accumulators: Accumulators<S>,
}

/// A request whose body has arrived.
pub struct EventRequest<'a> {
    /// The table as the path names it: `table` or `schema.table`.
    pub table: &'a str,
    /// The format of the body.
    pub format: Format,
    /// The body as sent.
    pub body: Bytes,
    /// The `Idempotency-Key`, by which a repetition is recognised.
    pub key: Option<&'a [u8]>,
    /// What the body holds of the budget.
    pub reservation: Reservation,
    /// The promise of the answer.
    pub level: AckLevel,
    /// The limits of its user, until its rows are counted.
    pub quota: Option<Quota>,
    /// The time at which the head of the request arrived.
    pub started: Instant,
}

impl<S: Sink> EventPath<S> {
    /// Stores a request.
    ///
    /// # Errors
    /// Returns the answer that replaces a 204. After `Refusal::Busy` the request may be stored or
    /// not; its sender should repeat it with its `Idempotency-Key`. After all other answers nothing
    /// of it is stored.
    pub async fn receive(&self, request: EventRequest<'_>) -> Result<(), Refusal> {
        self.http.body_bytes.inc_by(request.body.len() as u64);
        // The time counts from now and not from the head of the request, because a slow body is not
        // PostgreSQL's fault.
        let deadline = clock::now() + self.ack_timeout;
        // The timeout includes the description of the table and the wait for a permit to decode.
        let level = request.level;
        match timeout_at(deadline, self.receive_until(request, deadline)).await {
            Ok(result) => result,
            Err(_) => Err(Refusal::Busy(self.deliver.late_reason(level))),
        }
    }

    async fn receive_until(
        &self,
        mut request: EventRequest<'_>,
        deadline: Instant,
    ) -> Result<(), Refusal> {
        // If this generation passes before the append, nothing is applied.
        let generation = self.catalogue.generation();
        let mut table = self.find_or_create(&mut request).await?;
        let mut is_second_attempt = false;
        loop {
            let batch = match self.decode(&mut request, &table).await {
                Ok(batch) => batch,
                // The body is malformed regardless of the table, or does not fit the current
                // description.
                Err(Unfit {
                    refusal,
                    is_of_table,
                }) if !is_of_table || is_second_attempt => {
                    return Err(refusal);
                }
                Err(_) => {
                    // The table may have changed since it was described.
                    is_second_attempt = true;
                    table = self.find_again(&request, request.started).await?;
                    continue;
                }
            };
            if batch.rows() == 0 {
                return Ok(());
            }
            if let Some(quota) = request.quota.take() {
                quota.take(batch.rows())?;
            }
            let outcome = self.append(&mut request, &table, generation, batch, deadline);
            match outcome.await? {
                Ok(_) => {
                    self.http.ack_seconds[request.level.index()]
                        .observe((clock::now() - request.started).as_secs_f64());
                    return Ok(());
                }
                Err(Fault::Unavailable(reason)) => return Err(Refusal::Busy(reason)),
                Err(Fault::Refused(reason)) => return Err(Refusal::BadRequest(reason)),
                Err(fault @ Fault::KeyReused) => {
                    return Err(Refusal::Unprocessable(fault.to_string()));
                }
                Err(Fault::TableChanged(reason)) if is_second_attempt => {
                    return Err(Refusal::BadRequest(reason));
                }
                Err(Fault::Forbidden(reason)) if is_second_attempt => {
                    return Err(Refusal::Forbidden(reason));
                }
                Err(Fault::TableChanged(_) | Fault::Forbidden(_)) => {
                    is_second_attempt = true;
                    table = self.find_again(&request, clock::now()).await?;
                }
            }
        }
    }

    /// Sends a batch to its accumulator, and waits for its outcome.
    async fn append(
        &self,
        request: &mut EventRequest<'_>,
        table: &Table,
        generation: u64,
        batch: EventBatch,
        deadline: Instant,
    ) -> Result<Outcome, Refusal> {
        let (reply, answer) = oneshot::channel::<Outcome>();
        let digest = request.key.map(|key| digest(table, key));
        let pending = Pending {
            target: Target::Table {
                generation,
                oid: table.oid,
                shape: batch.shape(),
                is_once: digest.is_some(),
            },
            payload: batch,
            digest,
            body: digest.map(|_| Digest::of("", &request.body)),
            deadline,
            reservation: std::mem::take(&mut request.reservation),
            reply,
        };
        self.accumulators.send(pending, request.level).await;
        let stopping = |_| Refusal::Busy("the gateway is stopping".to_owned());
        answer.await.map_err(stopping)
    }

    /// Decodes the body into a batch that fits the table. Memory is taken before it is used.
    /// Afterwards the reservation covers the batch and the body, which lives until the answer
    /// because it may be decoded again.
    async fn decode(
        &self,
        request: &mut EventRequest<'_>,
        table: &Arc<Table>,
    ) -> Result<EventBatch, Unfit> {
        let body_bytes = request.body.len();
        let is_quick = request.format == Format::FlatBuffers && body_bytes <= QUICK_BODY_BYTES;
        if is_quick && request.reservation.shrink(body_bytes) {
            return fitting(request.body.clone(), table, self.settings.rows_max);
        }
        // This path has a larger future, so it is boxed.
        Box::pin(self.decode_in_turn(request, table)).await
    }

    async fn decode_in_turn(
        &self,
        request: &mut EventRequest<'_>,
        table: &Arc<Table>,
    ) -> Result<EventBatch, Unfit> {
        let rows_max = self.settings.rows_max;
        let body_bytes = request.body.len();
        let bytes_max = body_bytes
            .saturating_mul(DECODED_TIMES_BODY)
            .clamp(DECODED_BYTES_FLOOR, lanes_wire::limits::BATCH_BYTES_MAX);
        let (format, body, table) = (request.format, request.body.clone(), Arc::clone(table));
        let decode = move |room: &mut Room| {
            let mut batch = Vec::new();
            let decoded = match format {
                Format::FlatBuffers => return fitting(body, &table, rows_max),
                Format::Arrow => {
                    arrow::decode(&body, &table, rows_max, bytes_max, room, &mut batch)
                }
                _ => json::decode(&body, &table, rows_max, bytes_max, room, &mut batch),
            };
            decoded?;
            // The slice has exactly the bytes that are accounted for.
            fitting(batch.into_boxed_slice().into(), &table, rows_max)
        };
        let batch = self.decode_with(request, decode).await?;
        let made_bytes = match format {
            Format::FlatBuffers => 0,
            _ => batch.bytes(),
        };
        request
            .reservation
            .resize(&self.budget, body_bytes + made_bytes)
            .map_err(|error| Unfit::busy(&error))?;
        Ok(batch)
    }

    /// Decodes the body of a request, whose reservation grows as needed. A long body is decoded on
    /// another thread. This continues even if the request is abandoned, so the task holds the
    /// reservation itself.
    pub(super) async fn decode_with<T: Send + 'static>(
        &self,
        request: &mut EventRequest<'_>,
        decode: impl FnOnce(&mut Room) -> Result<T, Unfit> + Send + 'static,
    ) -> Result<T, Unfit> {
        let body_bytes = request.body.len();
        // The permit comes before the memory: a request that waits for a permit holds only its
        // body.
        let turn = match body_bytes <= QUICK_BODY_BYTES {
            true => None,
            false => {
                let turn = Arc::clone(&self.decoders).acquire_owned().await;
                Some(turn.map_err(|error| Unfit::busy(&error))?)
            }
        };
        // The reservation covers all of it, unless an earlier attempt has used it up.
        let held = std::mem::take(&mut request.reservation);
        let room = Room::new(held, &self.budget, body_bytes);
        let mut room = room.map_err(|error| Unfit::busy(&error))?;
        let (result, room) = match turn {
            None => (decode(&mut room), room),
            Some(turn) => {
                let decoding = tokio::task::spawn_blocking(move || {
                    let result = decode(&mut room);
                    drop(turn);
                    (result, room)
                });
                decoding.await.map_err(|error| Unfit::busy(&error))?
            }
        };
        request.reservation = room.into_reservation();
        result
    }

    async fn find_or_create(&self, request: &mut EventRequest<'_>) -> Result<Arc<Table>, Refusal> {
        let (schema, name) = self.schema_and_name(request.table);
        // This is by far the most frequent case.
        if let Some(found) = self.catalogue.known(schema, name, None, request.started) {
            return open(found);
        }
        // This path is rare and its future is large, so it is boxed.
        Box::pin(self.find_first_or_create(request)).await
    }

    /// Splits a path into schema and name. A path without a schema names a table in the default
    /// schema.
    pub(super) fn schema_and_name<'a>(&'a self, path: &'a str) -> (&'a str, &'a str) {
        path.split_once('.')
            .unwrap_or((self.settings.schema.as_str(), path))
    }

    /// Returns `schema.table` of a path, both quoted.
    pub fn quoted_name(&self, path: &str) -> String {
        let (schema, name) = self.schema_and_name(path);
        format!("{}.{}", identifier(schema), identifier(name))
    }

    /// Describes the table again. This path is rare and its future is large, so it is boxed.
    async fn find_again(
        &self,
        request: &EventRequest<'_>,
        not_before: Instant,
    ) -> Result<Arc<Table>, Refusal> {
        Box::pin(self.find(request.table, Some(not_before))).await
    }

    /// Returns the table of this path, described after `not_before`.
    pub(super) async fn find(
        &self,
        path: &str,
        not_before: Option<Instant>,
    ) -> Result<Arc<Table>, Refusal> {
        let (schema, name) = self.schema_and_name(path);
        if SYSTEM_SCHEMAS.contains(&schema) {
            return Err(Refusal::Forbidden(format!(
                "events cannot be written to schema {schema:?}"
            )));
        }
        if [schema, name].into_iter().any(|name| !is_name(name)) {
            return Err(Refusal::NotFound(format!(
                "the name of a schema or table must have 1 to {NAME_BYTES_MAX} bytes without NUL"
            )));
        }
        let found = self.catalogue.find(schema, name, not_before).await;
        match found.map_err(|error| Refusal::Busy(error.to_string()))? {
            None => Err(Refusal::NotFound(format!(
                "table {schema}.{name} does not exist; create it, and GRANT INSERT on it to the gateway's role"
            ))),
            Some(found) => open(found),
        }
    }
}

/// Why a body cannot become a batch for the table.
pub(super) struct Unfit {
    /// The answer.
    pub(super) refusal: Refusal,
    /// Whether another table might accept the body, and so this one after a change.
    is_of_table: bool,
}

impl From<BatchError> for Unfit {
    fn from(error: BatchError) -> Self {
        Self::body(&error)
    }
}

impl From<Malformed> for Unfit {
    fn from(error: Malformed) -> Self {
        match error {
            Malformed::Overloaded(overloaded) => Self::busy(&overloaded),
            malformed => Self {
                is_of_table: malformed.is_of_table(),
                ..Self::body(&malformed)
            },
        }
    }
}

impl Unfit {
    /// Returns the refusal of a malformed body.
    pub(super) fn body(error: &impl ToString) -> Self {
        Self {
            refusal: Refusal::BadRequest(error.to_string()),
            is_of_table: false,
        }
    }

    fn busy(error: &impl ToString) -> Self {
        Self {
            refusal: Refusal::Busy(error.to_string()),
            is_of_table: false,
        }
    }
}

/// Whether PostgreSQL may have a schema or table with this name. It truncates longer ones.
fn is_name(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.contains('\0')
}

/// Returns the table if it accepts events.
fn open(found: Found) -> Result<Arc<Table>, Refusal> {
    Err(Refusal::Forbidden(match found {
        Found::Open(table) => return Ok(table),
        Found::Denied(table) => format!(
            "permission denied for table {}; GRANT INSERT on it to the gateway's role",
            table.name
        ),
        Found::Samples => {
            "events cannot be written to the table of samples (postgres.table)".to_owned()
        }
    }))
}

/// Refuses a request with too many rows.
pub(super) fn check_rows(rows: usize, rows_max: usize) -> Result<(), Unfit> {
    if rows > rows_max {
        return Err(Unfit::body(&format!(
            "the request has {rows} rows, but only {rows_max} are allowed (events.rows_max)"
        )));
    }
    Ok(())
}

/// Verifies a batch and checks that it fits the table and does not have too many rows.
fn fitting(bytes: Bytes, table: &Table, rows_max: usize) -> Result<EventBatch, Unfit> {
    EventBatch::verify(bytes, |view| {
        check_rows(view.rows(), rows_max)?;
        fit::check(view, table).map_err(|misfit| Unfit {
            is_of_table: true,
            ..Unfit::body(&misfit)
        })
    })
}

/// Returns the key of a request, if it has one.
///
/// # Errors
/// Returns an error if the key is empty, too long, or present twice.
pub fn key(headers: &HeaderMap) -> Result<Option<&[u8]>, Refusal> {
    let mut keys = headers.get_all(KEY_HEADER).iter();
    let Some(key) = keys.next() else {
        return Ok(None);
    };
    if keys.next().is_some() || key.is_empty() || key.len() > KEY_BYTES_MAX {
        return Err(Refusal::BadRequest(format!(
            "header Idempotency-Key must be present once and have 1 to {KEY_BYTES_MAX} bytes"
        )));
    }
    Ok(Some(key.as_bytes()))
}

/// Returns the digest of a key and the table that was found, however the path named it. Keys of two
/// tables differ, even if one table was created in place of the other.
fn digest(table: &Table, key: &[u8]) -> Digest {
    Digest::of(&format!("/api/v1/events/{}/{}", table.oid, table.name), key)
}
