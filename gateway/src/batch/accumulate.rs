//! The accumulator joins requests of one level of acknowledgement into batches, by rows and age.
//!
//! A batch is sent at once if no other is in flight, so that a lone request does not wait. While
//! others are in flight it grows until one of them returns, it has `rows_max` rows, or its first
//! request has waited `age_max`. Batches therefore get larger as load grows.
//!
//! After a batch of many requests, the accumulator rests for three times the duration of that
//! batch, but at most `age_max`. Each append has a fixed cost, so a busy database is better served
//! with fewer, larger batches.
//!
//! Each batch needs a slot; there are as many slots as sessions. While all slots are taken, the
//! batch grows up to `rows_max`. Then the channel fills, requests wait in their handlers, and the
//! memory budget refuses new requests. Batches get slots in the order in which they became ready.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{sleep_until, timeout, timeout_at};

use crate::clock::{self, Instant};
use crate::deliver::{Sender, Sink};
use crate::model::{Budget, Payload, Pending, Reservation, Target};

/// A joiner that holds more bytes than this is not kept for the next batch.
pub const JOINER_BYTES_MAX: usize = 2 << 20;
/// The bytes that the kept joiners of all accumulators may hold together. A joiner that does not
/// fit is not kept.
pub const JOINERS_BYTES_MAX: usize = 32 << 20;
/// The number of requests that may wait in one channel. The budget bounds their memory.
pub const QUEUE_REQUESTS_MAX: usize = 1024;

/// How long the accumulator waits for batches in flight when it ends. No request waits this long
/// for an answer.
const END_TIMEOUT: Duration = Duration::from_secs(60);

/// The number of requests from which on a batch is followed by a rest.
const BUSY_REQUESTS: usize = 16;
/// The length of a rest after a batch of many requests, in multiples of the duration of that batch.
const REST_DURATIONS: u32 = 3;

/// When a batch is sent.
#[derive(Debug, Clone, Copy)]
pub struct BatchLimits {
    /// The number of rows after which no request is added. A single request may have more.
    pub rows_max: usize,
    /// How long the first request waits for others while batches are in flight.
    pub age_max: Duration,
    /// The maximum number of batches of one accumulator in flight; at least 1.
    pub in_flight_max: usize,
}

/// An accumulator. It runs while there are senders and, with `idle_max`, requests.
pub struct Accumulator<S> {
    /// Sends the batches.
    pub sender: Arc<Sender<S>>,
    /// When batches are sent.
    pub limits: BatchLimits,
    /// Whether the accumulator leaves slots to others that share them. If it has a batch in flight,
    /// it sends another one only while its batches take at most half of the slots that others
    /// leave. So even if many accumulators wait for a database that does not answer them, the next
    /// one finds a slot.
    pub leaves_room: bool,
    /// The memory of the joiners that are kept from batch to batch. All accumulators of the gateway
    /// share it.
    pub joiners: Budget,
    /// Permits for batches in flight. The accumulators of a level share them, separately for
    /// samples and for tables.
    pub slots: Arc<Semaphore>,
}

impl<S: Sink> Accumulator<S> {
    /// Joins and sends requests until all senders are gone or no request has arrived for
    /// `idle_max`. Then waits for the batches in flight.
    pub async fn run<P: Payload>(
        self,
        mut requests: mpsc::Receiver<Pending<P>>,
        idle_max: Option<Duration>,
    ) {
        let mut in_flight = InFlight::default();
        let mut next = None;
        loop {
            let first = match next.take() {
                Some(first) => Some(first),
                None => first_request(&mut requests, idle_max).await,
            };
            let Some(first) = first else { break };
            let mut batch = Batch::of(first);
            let ready = self.fill(&mut batch, &mut next, &mut requests, &mut in_flight);
            let Some(slot) = ready.await else { break };
            self.send(batch, slot, &mut in_flight);
        }
        // Requests that still wait for an answer are served before the task ends.
        let _ = timeout_at(clock::now() + END_TIMEOUT, in_flight.batches.join_all()).await;
    }

    /// Adds requests to a batch until it may be sent and has a slot. A request that does not belong
    /// to the batch is left in `next`.
    async fn fill<P: Payload>(
        &self,
        batch: &mut Batch<P>,
        next: &mut Option<Pending<P>>,
        requests: &mut mpsc::Receiver<Pending<P>>,
        in_flight: &mut InFlight<P::Joiner>,
    ) -> Option<OwnedSemaphorePermit> {
        let aged = sleep_until(clock::now() + self.limits.age_max);
        tokio::pin!(aged);
        in_flight.collect();
        let rest = |took: Duration| (REST_DURATIONS * took).min(self.limits.age_max);
        let rested = match in_flight.rest_from {
            Some(from) => from + rest(in_flight.took),
            None => clock::now(),
        };
        let rested = sleep_until(rested);
        tokio::pin!(rested);
        let mut is_rested = in_flight.rest_from.is_none();
        // The future is created once for each batch: a new one would queue behind all others.
        let slot = Arc::clone(&self.slots).acquire_owned();
        tokio::pin!(slot);
        let (mut is_old, mut is_last) = (false, false);
        let mut ready_at = None;
        let slot = loop {
            let is_full = batch.rows >= self.limits.rows_max || next.is_some() || is_last;
            let sent = in_flight.batches.len();
            // Once true this stays true, because the batch may already be queued for a slot.
            let may_leave = ready_at.is_some()
                || (is_full || is_old || (is_rested && sent == 0))
                    && sent < self.in_flight_max(sent);
            if may_leave && ready_at.is_none() {
                ready_at = Some(clock::now());
            }
            tokio::select! {
                biased;
                received = requests.recv(), if !is_full => match received {
                    Some(pending) if pending.target == batch.target => batch.add(pending),
                    Some(pending) => *next = Some(pending),
                    None => is_last = true,
                },
                Some(sent) = in_flight.batches.join_next() => {
                    in_flight.note(sent);
                    // The rest begins anew, based on the duration of the returned batch.
                    if let Some(from) = in_flight.rest_from {
                        rested.as_mut().reset(from + rest(in_flight.took));
                        is_rested = false;
                    }
                }
                slot = &mut slot, if may_leave => break slot,
                () = &mut rested, if !is_rested => is_rested = true,
                () = &mut aged, if !is_old => is_old = true,
            }
        };
        let waited = ready_at.map_or(Duration::ZERO, |ready_at| clock::now() - ready_at);
        // The semaphore is never closed.
        let slot = slot.ok()?;
        self.sender.note_wait(waited);
        Some(slot)
    }

    /// Sends a batch on a task of its own, which holds the slot until the batch returns.
    fn send<P: Payload>(
        &self,
        batch: Batch<P>,
        slot: OwnedSemaphorePermit,
        in_flight: &mut InFlight<P::Joiner>,
    ) {
        let sender = Arc::clone(&self.sender);
        let left_at = clock::now();
        in_flight.rest_from = (batch.requests.len() >= BUSY_REQUESTS).then_some(left_at);
        let mut joiner: KeptJoiner<P::Joiner> = in_flight.kept.take().unwrap_or_default();
        let joiners = self.joiners.clone();
        in_flight.batches.spawn(async move {
            sender.send(batch.requests, &mut joiner.joiner).await;
            drop(slot);
            let took = clock::now() - left_at;
            let bytes = P::joiner_bytes(&joiner.joiner);
            (took, joiner.kept_within(bytes, &joiners))
        });
    }

    /// The maximum number of batches in flight, given the current number.
    fn in_flight_max(&self, in_flight: usize) -> usize {
        if !self.leaves_room {
            return self.limits.in_flight_max;
        }
        let not_taken_by_others = in_flight + self.slots.available_permits();
        (not_taken_by_others / 2).clamp(1, self.limits.in_flight_max)
    }
}

/// A joiner to be reused, and the memory that it is accounted with.
#[derive(Default)]
struct KeptJoiner<J> {
    joiner: J,
    reservation: Reservation,
}

impl<J> KeptJoiner<J> {
    /// Returns the joiner, accounted with `bytes`, unless it is too large or there is no room for
    /// it.
    fn kept_within(mut self, bytes: usize, joiners: &Budget) -> Option<Self> {
        let has_room = bytes <= JOINER_BYTES_MAX && self.reservation.resize(joiners, bytes).is_ok();
        has_room.then_some(self)
    }
}

/// The batches in flight, and what is known of those that have returned.
struct InFlight<J> {
    batches: JoinSet<(Duration, Option<KeptJoiner<J>>)>,
    /// The duration of the batch that returned last.
    took: Duration,
    /// The joiner of a batch that has returned, for the next batch.
    kept: Option<KeptJoiner<J>>,
    /// When the last batch was sent, if it had many requests: the start of a rest.
    rest_from: Option<Instant>,
}

impl<J> Default for InFlight<J> {
    fn default() -> Self {
        Self {
            batches: JoinSet::new(),
            took: Duration::ZERO,
            kept: None,
            rest_from: None,
        }
    }
}

impl<J: Send + 'static> InFlight<J> {
    /// Records the batches that returned while no request waited.
    fn collect(&mut self) {
        while let Some(sent) = self.batches.try_join_next() {
            self.note(sent);
        }
    }

    /// Records a returned batch: its duration, and its joiner for the next batch. Nothing is known
    /// about a batch whose task failed.
    fn note(&mut self, sent: Result<(Duration, Option<KeptJoiner<J>>), JoinError>) {
        match sent {
            Ok((duration, joiner)) => {
                self.took = duration;
                self.kept = joiner.or(self.kept.take());
            }
            Err(_) => self.took = Duration::ZERO,
        }
    }
}

/// Returns the next request; `None` if there are no more.
async fn first_request<P>(
    requests: &mut mpsc::Receiver<Pending<P>>,
    idle_max: Option<Duration>,
) -> Option<Pending<P>> {
    let Some(idle_max) = idle_max else {
        return requests.recv().await;
    };
    match timeout(idle_max, requests.recv()).await {
        Ok(received) => received,
        Err(_) => {
            // Requests sent before the channel closed are served. Later senders find it closed and
            // open another one.
            requests.close();
            requests.recv().await
        }
    }
}

struct Batch<P> {
    requests: Vec<Pending<P>>,
    rows: usize,
    target: Target,
}

impl<P: Payload> Batch<P> {
    fn of(first: Pending<P>) -> Self {
        Self {
            rows: first.payload.rows(),
            target: first.target,
            requests: vec![first],
        }
    }

    fn add(&mut self, pending: Pending<P>) {
        self.rows += pending.payload.rows();
        self.requests.push(pending);
    }
}

#[cfg(test)]
#[path = "accumulate_tests.rs"]
mod tests;
