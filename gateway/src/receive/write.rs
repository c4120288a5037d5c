//! A remote write request, from its body to its answer. The self-scrape uses this path too.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout_at;

use super::decompress::{Decompressor, declared_bytes};
use super::metrics::ReceiveMetrics;
use super::resolve::{MalformedRequest, Refused, RequestLimits, Resolved, resolve};
use crate::batch::register::RegisterJob;
use crate::clock::{self, Instant};
use crate::deliver::DeliverMetrics;
use crate::http::{HttpMetrics, Refusal};
use crate::model::{
    AckLevel, Budget, Digest, Fault, Outcome, Overloaded, Pending, Reservation, Room, Target,
};
use crate::quota::Quota;
use crate::series::{SampleRows, SeriesCache};

/// The route of remote write. It is part of each request's digest.
pub const ROUTE: &str = "/api/v1/write";

/// The memory that a request is expected to hold until it is answered, in multiples of its body:
/// its rows, which were compressed.
pub const TIMES_BODY: usize = 3;

/// Limits of received requests.
#[derive(Debug, Clone, Copy)]
pub struct ReceiveLimits {
    /// The maximum bytes of a body as sent.
    pub body_bytes_max: usize,
    /// The maximum bytes of a body after decompression.
    pub decompressed_bytes_max: usize,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
    /// How long a request waits for PostgreSQL after its body has arrived.
    pub ack_timeout: Duration,
    /// Limits of samples and labels.
    pub request: RequestLimits,
}

/// The path of remote write requests, shared by all requests of a worker.
pub struct WritePath {
    /// Limits of requests.
    pub limits: ReceiveLimits,
    /// The memory of all requests.
    pub budget: Budget,
    /// Known series.
    pub cache: Arc<SeriesCache>,
    /// Metrics of remote write.
    pub metrics: Arc<ReceiveMetrics>,
    /// Metrics of all requests.
    pub http: Arc<HttpMetrics>,
    /// Metrics of delivery, which explain why a request is late.
    pub deliver: Arc<DeliverMetrics>,
    /// The queue of series to register.
    pub register: mpsc::Sender<RegisterJob>,
    /// The queues of batches, by level.
    pub levels: [mpsc::Sender<Pending<SampleRows>>; AckLevel::ALL.len()],
}

thread_local! {
    static DECOMPRESSOR: RefCell<Decompressor> = RefCell::default();
}

impl WritePath {
    /// Stores a request. `reservation` is what its body holds of the budget.
    ///
    /// # Errors
    /// Returns the answer that replaces a 204. After `Refusal::Busy` the outcome is unknown, and
    /// the sender should repeat the request. With `Refusal::BadRequest` all valid parts have been
    /// stored, unless the request is malformed.
    pub async fn receive(
        &self,
        body: Bytes,
        reservation: Reservation,
        level: AckLevel,
        quota: Option<Quota>,
        started: Instant,
    ) -> Result<(), Refusal> {
        // The time counts from now and not from the head of the request, because a slow body is not
        // PostgreSQL's fault.
        let deadline = clock::now() + self.limits.ack_timeout;
        self.http.body_bytes.inc_by(body.len() as u64);
        let (mut resolved, mut reservation) = self.decode(&body, reservation)?;
        take_quota(quota.as_ref(), &resolved)?;
        let mut digest = digest(&resolved, &body);
        drop(body);
        self.count(&resolved);
        reservation
            .resize(&self.budget, resolved.heap_bytes())
            .map_err(busy)?;
        if !resolved.unknown.is_empty() {
            let decoded = resolved.rows.len();
            reservation = self
                .register(&mut resolved, reservation, quota, deadline)
                .await?;
            if resolved.rows.len() < decoded {
                digest = Digest::of(&partial_route(&resolved), &digest.0);
            }
        }
        let Resolved {
            rows,
            refused,
            generation,
            ..
        } = resolved;
        let stored = rows.len();
        if stored > 0 {
            let (reply, answer) = oneshot::channel::<Outcome>();
            let pending = Pending {
                payload: rows,
                target: Target::Samples { generation },
                digest: Some(digest),
                // The digest is that of the body itself.
                body: None,
                deadline,
                reservation,
                reply,
            };
            let late = || self.late(level);
            hand_over(&self.levels[level.index()], pending, answer, deadline, late)
                .await?
                .map_err(refusal_of_fault)?;
            self.http.ack_seconds[level.index()].observe((clock::now() - started).as_secs_f64());
        }
        if refused.is_nothing() {
            Ok(())
        } else {
            Err(Refusal::BadRequest(refusal_text(&refused, stored)))
        }
    }

    /// Decodes a body and looks up its series. Returns its rows, and what they hold of the budget.
    fn decode(
        &self,
        body: &[u8],
        reservation: Reservation,
    ) -> Result<(Resolved, Reservation), Refusal> {
        let declared_bytes = declared_bytes(body, self.limits.decompressed_bytes_max)
            .map_err(|error| Refusal::BadRequest(error.to_string()))?;
        let base_bytes = body.len() + declared_bytes;
        let mut room = Room::new(reservation, &self.budget, base_bytes).map_err(busy)?;
        let resolved = self.resolve(body, &mut room)?;
        Ok((resolved, room.into_reservation()))
    }

    /// Decompresses a body and looks up its series.
    fn resolve(&self, body: &[u8], room: &mut Room) -> Result<Resolved, Refusal> {
        DECOMPRESSOR.with_borrow_mut(|decompressor| {
            let decompressed = decompressor
                .decompress(body, self.limits.decompressed_bytes_max)
                .map_err(|error| Refusal::BadRequest(error.to_string()))?;
            self.metrics
                .decompressed_bytes
                .inc_by(decompressed.len() as u64);
            let resolved = resolve(decompressed, &self.limits.request, &self.cache, room);
            let resolved = resolved.map_err(|error| match error {
                MalformedRequest::Overloaded(overloaded) => busy(overloaded),
                malformed => Refusal::BadRequest(malformed.to_string()),
            });
            decompressor.trim();
            resolved
        })
    }

    fn late(&self, level: AckLevel) -> Refusal {
        Refusal::Busy(self.deliver.late_reason(level))
    }

    fn count(&self, resolved: &Resolved) {
        self.metrics
            .samples_received
            .inc_by(resolved.rows.len() as u64);
        self.metrics
            .exemplars_ignored
            .inc_by(resolved.exemplars as u64);
        self.metrics
            .metadata_ignored
            .inc_by(resolved.metadata as u64);
        let refused = &resolved.refused;
        for (reason, samples) in [
            ("invalid", refused.samples),
            ("native_histogram", refused.histograms),
        ] {
            if samples > 0 {
                self.metrics
                    .samples_refused
                    .with_label_values(&[reason])
                    .inc_by(samples as u64);
            }
        }
    }

    /// Registers the unknown series. Returns the reservation, which no longer covers the label
    /// sets.
    async fn register(
        &self,
        resolved: &mut Resolved,
        reservation: Reservation,
        quota: Option<Quota>,
        deadline: Instant,
    ) -> Result<Reservation, Refusal> {
        let (reply, answer) = oneshot::channel();
        let series = std::mem::take(&mut resolved.unknown);
        let job = RegisterJob {
            series,
            generation: resolved.generation,
            registrations: resolved.registrations,
            deadline,
            quota: quota.clone().filter(Quota::has_series),
            reservation,
            reply,
        };
        // Registrations commit at this level.
        let late = || self.late(AckLevel::Wal);
        let mut registered = hand_over(&self.register, job, answer, deadline, late)
            .await?
            .map_err(refusal_of_fault)?;
        if let Some(quota) = quota {
            resolved.refuse(&registered.refused, |limit, samples| {
                quota.refuse(limit, samples)
            });
        }
        resolved.fill_in(&registered.ids);
        let held_bytes = resolved.heap_bytes();
        let rest = registered.reservation.resize(&self.budget, held_bytes);
        rest.map_err(busy)?;
        Ok(registered.reservation)
    }
}

/// Takes the samples of a request from the user's quota, if there is one, and notes which known
/// series they are of.
fn take_quota(quota: Option<&Quota>, resolved: &Resolved) -> Result<(), Refusal> {
    let Some(quota) = quota else { return Ok(()) };
    quota.take(resolved.rows.len())?;
    // Ids of unknown series are negative.
    let known = resolved.rows.series.iter().filter(|id| **id > 0);
    quota.note_series(known.copied());
    Ok(())
}

fn busy(overloaded: Overloaded) -> Refusal {
    Refusal::Busy(overloaded.to_string())
}

/// Returns the digest of the body alone if all of it is accepted. If a part is refused, the digest
/// also covers the number of accepted rows. A body sent again after an operator has raised a limit
/// has more rows than before, and therefore counts as another request.
fn digest(resolved: &Resolved, body: &[u8]) -> Digest {
    if resolved.refused.is_nothing() {
        Digest::of(ROUTE, body)
    } else {
        Digest::of(&partial_route(resolved), body)
    }
}

/// Returns what stands for the route in the digest of a request of which a part is refused.
fn partial_route(resolved: &Resolved) -> String {
    format!("{ROUTE}/{}", resolved.rows.len())
}

/// Sends a job to its task and waits for the answer until the deadline.
async fn hand_over<J, A>(
    queue: &mpsc::Sender<J>,
    job: J,
    answer: oneshot::Receiver<A>,
    deadline: Instant,
    late: impl FnOnce() -> Refusal,
) -> Result<A, Refusal> {
    let answered = timeout_at(deadline, async {
        queue.send(job).await.ok()?;
        answer.await.ok()
    });
    match answered.await {
        Ok(Some(answer)) => Ok(answer),
        Ok(None) => Err(Refusal::Busy("the gateway is stopping".to_owned())),
        Err(_) => Err(late()),
    }
}

fn refusal_of_fault(fault: Fault) -> Refusal {
    match fault {
        // The table of samples is the operator's to repair.
        Fault::Unavailable(reason) | Fault::TableChanged(reason) | Fault::Forbidden(reason) => {
            Refusal::Busy(reason)
        }
        Fault::KeyReused => Refusal::Unprocessable(fault.to_string()),
        Fault::Refused(reason) => Refusal::BadRequest(reason),
    }
}

fn refusal_text(refused: &Refused, stored: usize) -> String {
    let Refused {
        series,
        samples,
        histograms,
        reason,
    } = refused;
    let reason = reason.as_deref().unwrap_or("unknown");
    let mut parts = Vec::new();
    for (number, noun) in [
        (series, "series"),
        (samples, "samples"),
        (histograms, "native histogram samples"),
    ] {
        if *number > 0 {
            parts.push(format!("{number} {noun}"));
        }
    }
    format!(
        "refused {}, stored {stored} samples; first reason: {reason}",
        parts.join(", ")
    )
}

#[cfg(test)]
#[path = "write_tests.rs"]
mod tests;
