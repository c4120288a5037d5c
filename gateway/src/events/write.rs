//! One request with events, from its body to its answer.

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
use crate::deliver::{DeliverMetrics, Sink};
use crate::http::{HttpMetrics, Refusal};
use crate::model::{
    AckLevel, Budget, Digest, Fault, Outcome, Pending, Reservation, Room, Table, Target,
};

/// The route, with the table's name for a parameter.
pub const ROUTE: &str = "/api/v1/events/{table}";
/// The part of the route before the table's name.
pub const PATH: &str = "/api/v1/events/";
/// The header by which a request is recognised when it comes again.
pub const KEY_HEADER: &str = "idempotency-key";
/// Of PostgreSQL's names of schemas and tables.
const NAME_BYTES_MAX: usize = 63;
/// Longer keys are refused.
const KEY_BYTES_MAX: usize = 256;
/// Schemas that no events go into, whatever the gateway's role may do there.
const SYSTEM_SCHEMAS: [&str; 4] = ["lanes", "metrics", "pg_catalog", "information_schema"];

/// Decoding JSON or Arrow may take this many times the body's bytes ...
const DECODED_TIMES_BODY: usize = 8;
/// ... or this many bytes, if that is more.
const DECODED_BYTES_FLOOR: usize = 64 << 10;
/// Longer bodies are decoded where they hold up no other request.
const QUICK_BODY_BYTES: usize = 256 << 10;

/// What events need to know.
#[derive(Debug, Clone)]
pub struct EventSettings {
    /// The schema of tables named without one.
    pub schema: String,
    /// Rows of one request.
    pub rows_max: usize,
    /// The table of samples, which events do not go into: `schema.table`, quoted where SQL wants it.
    pub samples_table: String,
    /// Whether the first request for a table that does not exist creates it.
    pub create_tables: CreateTables,
}

/// Whether tables are created by the first batch for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreateTables {
    /// Never.
    Off,
    /// `CREATE TABLE … USING lanes`.
    Logged,
    /// `CREATE UNLOGGED TABLE … USING lanes`.
    Unlogged,
}

/// The path that events take; one for each worker.
pub struct EventPath<S> {
    /// Settings of events alone.
    pub settings: EventSettings,
    /// How long a request waits for PostgreSQL after its body has arrived.
    pub ack_timeout: Duration,
    /// Memory of all requests.
    pub budget: Budget,
    /// Metrics of all requests.
    pub http: Arc<HttpMetrics>,
    /// Metrics of delivery, which explain why a request is late.
    pub deliver: Arc<DeliverMetrics>,
    /// Turns to decode long bodies, as many as there are processors; shared by all workers.
    pub decoders: Arc<Semaphore>,
    /// Tables by name.
    pub catalogue: Arc<Catalogue<S>>,
    /// To the batches.
    pub accumulators: Accumulators<S>,
}

/// A request whose body has arrived.
pub struct EventRequest<'a> {
    /// The table as the path names it: `table`, or `schema.table`.
    pub table: &'a str,
    /// How the body is written.
    pub format: Format,
    /// As sent.
    pub body: Bytes,
    /// What its sender recognises it by when it comes again: its `Idempotency-Key`.
    pub key: Option<&'a [u8]>,
    /// What the body holds of the budget.
    pub reservation: Reservation,
    /// What the answer promises.
    pub level: AckLevel,
    /// When its head came.
    pub started: Instant,
}

impl<S: Sink> EventPath<S> {
    /// Stores a request.
    ///
    /// # Errors
    /// The answer to give instead of 204. After `Refusal::Busy` it may be stored or not: repeating it with its `Idempotency-Key` is right.
    /// After all others nothing of it is stored.
    pub async fn receive(&self, request: EventRequest<'_>) -> Result<(), Refusal> {
        self.http.body_bytes.inc_by(request.body.len() as u64);
        // From now on, not from its head: a body that came slowly is not PostgreSQL's fault.
        let deadline = clock::now() + self.ack_timeout;
        // Its table is asked for in that time too, and its turn to be decoded comes in it.
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
        // Should it pass before the append, nothing is applied.
        let generation = self.catalogue.generation();
        let mut table = self.find_or_create(&mut request).await?;
        let mut is_second_attempt = false;
        loop {
            let batch = match self.decode(&mut request, &table).await {
                Ok(batch) => batch,
                // Wrong by itself, whatever the table is, or against the table as it is now.
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
            let rows = crate::model::Payload::rows(&batch);
            if rows == 0 {
                return Ok(());
            }
            let (reply, answer) = oneshot::channel::<Outcome>();
            let digest = request.key.map(|key| digest(&table, key));
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
            let Ok(outcome) = answer.await else {
                return Err(Refusal::Busy("the gateway is stopping".to_owned()));
            };
            match outcome {
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

    /// The body as a batch that fits the table; memory is taken before it is needed. Afterwards the reservation covers the body, which
    /// lives until the answer as it may be decoded again, and the batch.
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
        // Larger, and so it has a place of its own.
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
            // No larger than it is counted.
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

    /// Reads the body of a request, whose reservation grows with it; a long body on a thread of its own. That goes on when nobody waits for
    /// it any more, so it keeps what it holds of the budget itself.
    pub(super) async fn decode_with<T: Send + 'static>(
        &self,
        request: &mut EventRequest<'_>,
        decode: impl FnOnce(&mut Room) -> Result<T, Unfit> + Send + 'static,
    ) -> Result<T, Unfit> {
        let body_bytes = request.body.len();
        // Before memory is taken: who waits for a turn holds the body alone.
        let turn = match body_bytes <= QUICK_BODY_BYTES {
            true => None,
            false => {
                let turn = Arc::clone(&self.decoders).acquire_owned().await;
                Some(turn.map_err(|error| Unfit::busy(&error))?)
            }
        };
        // All of it is held already, unless an earlier attempt has given it away.
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
        // Nearly always.
        if let Some(found) = self.catalogue.known(schema, name, None, request.started) {
            return open(found);
        }
        // Rare, and large: it has a place of its own.
        Box::pin(self.find_first_or_create(request)).await
    }

    /// What a path names: `schema.table`, or a table of the schema of tables named without one.
    pub(super) fn schema_and_name<'a>(&'a self, path: &'a str) -> (&'a str, &'a str) {
        path.split_once('.')
            .unwrap_or((self.settings.schema.as_str(), path))
    }

    /// The table as it is now. Rare, and large: it has a place of its own.
    async fn find_again(
        &self,
        request: &EventRequest<'_>,
        not_before: Instant,
    ) -> Result<Arc<Table>, Refusal> {
        Box::pin(self.find(request.table, Some(not_before))).await
    }

    /// The table of this path, described after `not_before`.
    pub(super) async fn find(
        &self,
        path: &str,
        not_before: Option<Instant>,
    ) -> Result<Arc<Table>, Refusal> {
        let (schema, name) = self.schema_and_name(path);
        if SYSTEM_SCHEMAS.contains(&schema) {
            return Err(Refusal::Forbidden(format!(
                "events do not go into schema {schema:?}"
            )));
        }
        if [schema, name].into_iter().any(|name| !is_name(name)) {
            return Err(Refusal::NotFound(format!(
                "a schema or table has a name of 1 to {NAME_BYTES_MAX} bytes without NUL"
            )));
        }
        let found = self.catalogue.find(schema, name, not_before).await;
        match found.map_err(|error| Refusal::Busy(error.to_string()))? {
            None => Err(Refusal::NotFound(format!(
                "there is no table {schema}.{name}; create it, and GRANT INSERT on it to the gateway's role"
            ))),
            Some(found) => open(found),
        }
    }
}

/// Why a body is no batch for the table.
pub(super) struct Unfit {
    /// The answer.
    pub(super) refusal: Refusal,
    /// Whether another table might take it, and so this one after a change.
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
    /// Wrong by itself.
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

/// Whether PostgreSQL may have a schema or table of this name; longer ones it would cut.
fn is_name(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.contains('\0')
}

/// The table, if it takes events.
fn open(found: Found) -> Result<Arc<Table>, Refusal> {
    Err(Refusal::Forbidden(match found {
        Found::Open(table) => return Ok(table),
        Found::Denied(table) => format!(
            "the gateway's role may not insert into {}; GRANT INSERT on it",
            table.name
        ),
        Found::Samples => "events do not go into the table of samples (postgres.table)".to_owned(),
    }))
}

/// Refuses a request of too many rows.
pub(super) fn check_rows(rows: usize, rows_max: usize) -> Result<(), Unfit> {
    if rows > rows_max {
        return Err(Unfit::body(&format!(
            "{rows} rows are more than {rows_max} (events.rows_max)"
        )));
    }
    Ok(())
}

/// A batch that has the table's columns and not too many rows.
fn fitting(bytes: Bytes, table: &Table, rows_max: usize) -> Result<EventBatch, Unfit> {
    EventBatch::verify(bytes, |view| {
        check_rows(view.rows(), rows_max)?;
        fit::check(view, table).map_err(|misfit| Unfit {
            is_of_table: true,
            ..Unfit::body(&misfit)
        })
    })
}

/// The key that a request carries, if it does.
///
/// # Errors
/// A key that is empty, too long, or there twice.
pub fn key(headers: &HeaderMap) -> Result<Option<&[u8]>, Refusal> {
    let mut keys = headers.get_all(KEY_HEADER).iter();
    let Some(key) = keys.next() else {
        return Ok(None);
    };
    if keys.next().is_some() || key.is_empty() || key.len() > KEY_BYTES_MAX {
        return Err(Refusal::BadRequest(format!(
            "header Idempotency-Key must come once and have 1 to {KEY_BYTES_MAX} bytes"
        )));
    }
    Ok(Some(key.as_bytes()))
}

/// The digest of a key: of the table as it was found, however the path named it. Keys of two tables are two keys, and so are those of a
/// table and of another one created in its place.
fn digest(table: &Table, key: &[u8]) -> Digest {
    Digest::of(&format!("/api/v1/events/{}/{}", table.oid, table.name), key)
}
