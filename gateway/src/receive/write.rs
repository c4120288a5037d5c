//! One remote write request, from its body to its answer. The self-scrape comes this way too.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout_at;

use super::decompress::{Decompressor, declared_bytes};
use super::resolve::{Refused, RequestLimits, Resolved, decoding_bytes_max, resolve};
use crate::batch::pending::Outcome;
use crate::batch::register::RegisterJob;
use crate::batch::{Budget, Digest, Fault, Pending, Reservation, Rows, SeriesCache, Target};
use crate::clock::{self, Instant};
use crate::deliver::AckLevel;
use crate::error::Refusal;
use crate::observe::Metrics;

/// The write route; part of each request's digest.
pub const ROUTE: &str = "/api/v1/write";

/// Bounds of what is received.
#[derive(Debug, Clone, Copy)]
pub struct ReceiveLimits {
    /// Bytes of a body as sent.
    pub body_bytes_max: usize,
    /// Bytes of a body once decompressed.
    pub decompressed_bytes_max: usize,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
    /// How long a request waits for PostgreSQL once its body is there.
    pub ack_timeout: Duration,
    /// Samples and labels.
    pub request: RequestLimits,
}

/// The path that requests take; shared by all.
pub struct WritePath {
    /// Bounds.
    pub limits: ReceiveLimits,
    /// Memory of all requests.
    pub budget: Budget,
    /// Known series.
    pub cache: Arc<SeriesCache>,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// To the registration of new series.
    pub register: mpsc::Sender<RegisterJob>,
    /// To the batches, by level.
    pub levels: [mpsc::Sender<Pending<Rows>>; AckLevel::ALL.len()],
}

thread_local! {
    static DECOMPRESSOR: RefCell<Decompressor> = RefCell::default();
}

impl WritePath {
    /// Stores a request. `reservation` is what the body holds of the budget.
    ///
    /// # Errors
    /// The answer to give instead of 204. After `Refusal::Busy` nothing is known, and repeating the request is right; with
    /// `Refusal::BadRequest` all of it that is legal has been stored, unless it is malformed.
    pub async fn receive(
        &self,
        body: Bytes,
        mut reservation: Reservation,
        level: AckLevel,
        started: Instant,
    ) -> Result<(), Refusal> {
        // From now on, not from its head: a body that came slowly is not PostgreSQL's fault.
        let deadline = clock::now() + self.limits.ack_timeout;
        self.metrics.body_bytes.inc_by(body.len() as u64);
        let declared_bytes = declared_bytes(&body, self.limits.decompressed_bytes_max)
            .map_err(|error| Refusal::BadRequest(error.to_string()))?;
        let decoding_bytes = decoding_bytes_max(declared_bytes, &self.limits.request);
        reservation
            .exchange(&self.budget, body.len().saturating_add(decoding_bytes))
            .await
            .map_err(|error| Refusal::Busy(error.to_string()))?;
        let mut resolved = self.resolve(&body)?;
        let digest = digest(&resolved, &body);
        drop(body);
        self.count(&resolved);
        // Less than was taken for decoding, so nothing is waited for.
        reservation
            .resize(&self.budget, resolved.heap_bytes())
            .await
            .map_err(|error| Refusal::Busy(error.to_string()))?;
        if !resolved.unknown.is_empty() {
            reservation = self.register(&mut resolved, reservation, deadline).await?;
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
                deadline,
                reservation,
                reply,
            };
            hand_over(&self.levels[level.index()], pending, answer, deadline)
                .await?
                .map_err(refusal_of_fault)?;
            self.metrics.ack_seconds[level.index()].observe((clock::now() - started).as_secs_f64());
        }
        if refused.is_nothing() {
            Ok(())
        } else {
            Err(Refusal::BadRequest(refusal_text(&refused, stored)))
        }
    }

    fn resolve(&self, body: &[u8]) -> Result<Resolved, Refusal> {
        DECOMPRESSOR.with_borrow_mut(|decompressor| {
            let decompressed = decompressor
                .decompress(body, self.limits.decompressed_bytes_max)
                .map_err(|error| Refusal::BadRequest(error.to_string()))?;
            self.metrics
                .decompressed_bytes
                .inc_by(decompressed.len() as u64);
            let resolved = resolve(decompressed, &self.limits.request, &self.cache)
                .map_err(|error| Refusal::BadRequest(error.to_string()));
            decompressor.trim();
            resolved
        })
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

    /// Registers what is unknown; gives the reservation back, of which the label sets are no part any more.
    async fn register(
        &self,
        resolved: &mut Resolved,
        reservation: Reservation,
        deadline: Instant,
    ) -> Result<Reservation, Refusal> {
        let (reply, answer) = oneshot::channel();
        let series = std::mem::take(&mut resolved.unknown);
        let job = RegisterJob {
            series,
            generation: resolved.generation,
            registrations: resolved.registrations,
            deadline,
            reservation,
            reply,
        };
        let mut registered = hand_over(&self.register, job, answer, deadline)
            .await?
            .map_err(refusal_of_fault)?;
        resolved.fill_in(&registered.ids);
        let rest = registered
            .reservation
            .resize(&self.budget, resolved.heap_bytes());
        rest.await
            .map_err(|error| Refusal::Busy(error.to_string()))?;
        Ok(registered.reservation)
    }
}

/// Of the body alone, where all of it is taken. Where some is refused, of the number of rows that are not too: a body sent again after
/// an operator has raised a limit brings more than before, and is another request.
fn digest(resolved: &Resolved, body: &[u8]) -> Digest {
    if resolved.refused.is_nothing() {
        Digest::of(ROUTE, body)
    } else {
        Digest::of(&format!("{ROUTE}/{}", resolved.rows.len()), body)
    }
}

/// Sends a job to its task and awaits the answer, until the deadline.
async fn hand_over<J, A>(
    queue: &mpsc::Sender<J>,
    job: J,
    answer: oneshot::Receiver<A>,
    deadline: Instant,
) -> Result<A, Refusal> {
    let answered = timeout_at(deadline, async {
        queue.send(job).await.ok()?;
        answer.await.ok()
    });
    match answered.await {
        Ok(Some(answer)) => Ok(answer),
        Ok(None) => Err(Refusal::Busy("the gateway is stopping".to_owned())),
        Err(_) => Err(Refusal::Busy(
            "PostgreSQL has not confirmed the request in time (ack.timeout)".to_owned(),
        )),
    }
}

fn refusal_of_fault(fault: Fault) -> Refusal {
    match fault {
        // The table of samples is the operator's to mend.
        Fault::Unavailable(reason) | Fault::TableChanged(reason) | Fault::Forbidden(reason) => {
            Refusal::Busy(reason)
        }
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
    let reason = reason.as_deref().unwrap_or("not told");
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
mod tests {
    use super::*;
    use crate::batch::pending::Stored;
    use crate::receive::label_set::{LabelLimits, LabelOrder, canonical_bytes};
    use crate::receive::protobuf::put_delimited;

    const REQUESTS: usize = 8;
    const SAMPLES: usize = 10_000;

    const LIMITS: ReceiveLimits = ReceiveLimits {
        body_bytes_max: 1 << 20,
        decompressed_bytes_max: 1 << 20,
        body_timeout: Duration::from_secs(1),
        ack_timeout: Duration::from_secs(3600),
        request: RequestLimits {
            samples_max: SAMPLES,
            label: LabelLimits {
                labels_max: 4,
                name_bytes_max: 8,
                value_bytes_max: 16,
                order: LabelOrder::Refuse,
            },
        },
    };

    /// A known series and as many samples as are allowed, of two bytes each; its length once decompressed.
    fn dense_body(cache: &SeriesCache) -> (Bytes, usize) {
        let mut series = canonical_bytes(&[("__name__", "up")]);
        cache.insert(cache.generation(), &series, 1);
        series.extend_from_slice(&[0x12, 0x00].repeat(SAMPLES));
        let mut request = Vec::new();
        put_delimited(&mut request, 1, &series);
        let body = snap::raw::Encoder::new().compress_vec(&request).unwrap();
        assert!(
            body.len() * 15 < request.len(),
            "{} bytes are too many",
            body.len()
        );
        (body.into(), request.len())
    }

    struct Fixture {
        path: Arc<WritePath>,
        batches: mpsc::Receiver<Pending<Rows>>,
        body: Bytes,
        declared_bytes: usize,
        room_bytes: usize,
    }

    /// A path with room to decode one body.
    fn fixture() -> Fixture {
        let cache = Arc::new(SeriesCache::new(1 << 20, 0));
        let (body, declared_bytes) = dense_body(&cache);
        let room_bytes = (body.len() + decoding_bytes_max(declared_bytes, &LIMITS.request))
            .next_multiple_of(1024);
        let (batch, batches) = mpsc::channel(REQUESTS);
        let path = WritePath {
            limits: LIMITS,
            budget: Budget::new(room_bytes, Duration::from_secs(1)),
            cache,
            metrics: Arc::new(Metrics::new()),
            register: mpsc::channel(1).0,
            levels: AckLevel::ALL.map(|_| batch.clone()),
        };
        Fixture {
            path: Arc::new(path),
            batches,
            body,
            declared_bytes,
            room_bytes,
        }
    }

    /// Sends all requests, each holding what reading its body took, until none can go on.
    async fn send(fixture: &Fixture) -> Vec<tokio::task::JoinHandle<Result<(), Refusal>>> {
        let mut sent = Vec::new();
        for _ in 0..REQUESTS {
            let (path, body) = (Arc::clone(&fixture.path), fixture.body.clone());
            let mut reservation = Reservation::default();
            reservation.resize(&path.budget, body.len()).await.unwrap();
            sent.push((path, body, reservation));
        }
        let requests = sent
            .into_iter()
            .map(|(path, body, reservation)| {
                tokio::spawn(async move {
                    path.receive(body, reservation, AckLevel::Wal, clock::now())
                        .await
                })
            })
            .collect();
        for _ in 0..10 * REQUESTS {
            tokio::task::yield_now().await;
        }
        requests
    }

    #[tokio::test(start_paused = true)]
    async fn compressible_bodies_are_decoded_as_there_is_room() {
        let mut fixture = fixture();
        let (path, room_bytes) = (Arc::clone(&fixture.path), fixture.room_bytes);
        let mut other = Reservation::default();
        other.resize(&path.budget, 1).await.unwrap();
        let requests = send(&fixture).await;
        let decompressed = || path.metrics.decompressed_bytes.get() as usize;
        assert_eq!(decompressed(), 0, "there is no room for any yet");
        drop(other);
        for number in 1..=REQUESTS {
            let pending = fixture.batches.recv().await.unwrap();
            for _ in 0..10 * REQUESTS {
                tokio::task::yield_now().await;
            }
            assert_eq!(
                decompressed(),
                number * fixture.declared_bytes,
                "the next ones wait for the room of this one"
            );
            assert!(pending.payload.heap_bytes() <= room_bytes);
            assert!(path.budget.pending_bytes() <= room_bytes);
            assert_eq!(pending.payload.len(), SAMPLES);
            pending.reply.send(Ok(Stored::Now)).unwrap();
        }
        for request in requests {
            assert_eq!(request.await.unwrap(), Ok(()), "none starved another");
        }
        assert_eq!(path.budget.pending_bytes(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn without_room_nothing_is_decompressed_or_kept() {
        let fixture = fixture();
        let path = Arc::clone(&fixture.path);
        let mut other = Reservation::default();
        other.resize(&path.budget, 1).await.unwrap();
        let held_bytes = path.budget.pending_bytes();
        for request in send(&fixture).await {
            assert!(matches!(request.await.unwrap(), Err(Refusal::Busy(_))));
        }
        assert_eq!(path.metrics.decompressed_bytes.get(), 0);
        assert_eq!(path.budget.pending_bytes(), held_bytes);
    }
}
