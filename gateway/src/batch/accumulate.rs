//! Requests of one level of acknowledgement, brought together by rows and age.
//!
//! A batch leaves at once when none is on its way, so that a lone request waits for nothing. While others are on their way it grows, until
//! one of them is back, it has `rows_max` rows, or its first request has waited `age_max`; so batches get larger as load grows. After a
//! batch of many requests the next one lets the time that three such take go by, `age_max` at most: an append has a price of its own, which
//! a busy database pays for fewer and larger ones. Each batch
//! takes a slot, of which there are as many as sessions; while all are taken the batch goes on growing up to `rows_max`, then the channel
//! fills, requests wait in their handlers, and the memory budget turns newcomers away. Slots go to batches in the order in which these
//! were ready to leave.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{sleep_until, timeout, timeout_at};

use crate::clock;
use crate::deliver::{Sender, Sink};
use crate::model::{Budget, Payload, Pending, Reservation, Target};

/// A joiner that holds more bytes than this is not kept for the next batch.
pub const JOINER_BYTES_MAX: usize = 2 << 20;
/// The bytes that the kept joiners of all accumulators may hold together. A joiner that does not
/// fit is not kept.
pub const JOINERS_BYTES_MAX: usize = 32 << 20;
/// The number of requests that may wait in one channel. The budget bounds their memory.
pub const QUEUE_REQUESTS_MAX: usize = 1024;

/// How long batches on their way are waited for when everything ends; nobody waits for an answer as long as that.
const END_PATIENCE: Duration = Duration::from_secs(60);

/// A batch of as many requests has company to expect.
const BUSY_REQUESTS: usize = 16;
/// Between two batches of many requests, in times that the last one took.
const REST: u32 = 3;

/// When a batch leaves.
#[derive(Debug, Clone, Copy)]
pub struct BatchLimits {
    /// Rows after which nothing is added; one request may hold more.
    pub rows_max: usize,
    /// How long the first request waits for company while other batches are on their way.
    pub age_max: Duration,
    /// Batches of one accumulator on their way at once; 1 or more.
    pub in_flight_max: usize,
}

/// Brings requests together, for as long as there are senders and, with `idle_max`, requests.
pub struct Accumulator<S> {
    /// Where batches go.
    pub sender: Arc<Sender<S>>,
    /// When they leave.
    pub limits: BatchLimits,
    /// Whether others share the slots, so that some are left to them: beside a batch on its way another one leaves only while these
    /// take no more than half of what others have left. However many accumulators wait for a database that does not answer them, each next
    /// one finds a slot while there are as many as that.
    pub leaves_room: bool,
    /// Memory of what is kept from batch to batch; shared by all accumulators of the gateway.
    pub joiners: Budget,
    /// Batches on their way; shared by the accumulators of a level, those of samples apart from those of tables.
    pub slots: Arc<Semaphore>,
}

impl<S: Sink> Accumulator<S> {
    /// Serves requests until all senders are gone, or none has come for `idle_max`; then waits for the batches on their way.
    pub async fn run<P: Payload>(
        self,
        mut requests: mpsc::Receiver<Pending<P>>,
        idle_max: Option<Duration>,
    ) {
        let mut on_their_way = JoinSet::new();
        let mut next = None;
        let mut took = Duration::ZERO;
        let mut rest_from = None;
        // Of a batch that is back, for the next one.
        let mut kept = None;
        loop {
            let first = match next.take() {
                Some(first) => Some(first),
                None => first_request(&mut requests, idle_max).await,
            };
            let Some(first) = first else { break };
            let mut batch = Batch::of(first);
            let aged = sleep_until(clock::now() + self.limits.age_max);
            tokio::pin!(aged);
            // Those that came back while nothing waited.
            while let Some(sent) = on_their_way.try_join_next() {
                note(sent, &mut took, &mut kept);
            }
            let rest = |took: Duration| (REST * took).min(self.limits.age_max);
            let rested = sleep_until(rest_from.map_or_else(clock::now, |from| from + rest(took)));
            tokio::pin!(rested);
            let mut is_rested = rest_from.is_none();
            // One for the batch: a new one would stand behind all others in the slots' queue.
            let slot = Arc::clone(&self.slots).acquire_owned();
            tokio::pin!(slot);
            let (mut is_old, mut is_last) = (false, false);
            let mut ready_at = None;
            let slot = loop {
                let is_full = batch.rows >= self.limits.rows_max || next.is_some() || is_last;
                // Once true it stays so, as the batch may stand in the slots' queue then.
                let may_leave = ready_at.is_some()
                    || (is_full || is_old || (is_rested && on_their_way.is_empty()))
                        && on_their_way.len() < self.in_flight_max(on_their_way.len());
                if may_leave && ready_at.is_none() {
                    ready_at = Some(clock::now());
                }
                tokio::select! {
                    biased;
                    received = requests.recv(), if !is_full => match received {
                        Some(pending) if pending.target == batch.target => batch.add(pending),
                        Some(pending) => next = Some(pending),
                        None => is_last = true,
                    },
                    Some(sent) = on_their_way.join_next() => {
                        note(sent, &mut took, &mut kept);
                        // Nothing may have left for being rested while that was on its way.
                        if let Some(from) = rest_from {
                            rested.as_mut().reset(from + rest(took));
                            is_rested = false;
                        }
                    }
                    slot = &mut slot, if may_leave => break slot,
                    () = &mut rested, if !is_rested => is_rested = true,
                    () = &mut aged, if !is_old => is_old = true,
                }
            };
            // The slots are never closed.
            let Ok(slot) = slot else { break };
            let waited = ready_at.map_or(Duration::ZERO, |ready_at| clock::now() - ready_at);
            let sender = Arc::clone(&self.sender);
            sender.note_wait(waited);
            let left_at = clock::now();
            rest_from = (batch.requests.len() >= BUSY_REQUESTS).then_some(left_at);
            let mut joiner: Kept<P::Joiner> = kept.take().unwrap_or_default();
            let joiners = self.joiners.clone();
            on_their_way.spawn(async move {
                sender.send(batch.requests, &mut joiner.joiner).await;
                drop(slot);
                let took = clock::now() - left_at;
                let bytes = P::joiner_bytes(&joiner.joiner);
                (took, joiner.if_it_may_be(bytes, &joiners))
            });
        }
        // Whoever still waits for an answer is served before this ends.
        let _ = timeout_at(clock::now() + END_PATIENCE, on_their_way.join_all()).await;
    }

    /// Batches that may be on their way at once, where so many are.
    fn in_flight_max(&self, on_their_way: usize) -> usize {
        if !self.leaves_room {
            return self.limits.in_flight_max;
        }
        let not_taken_by_others = on_their_way + self.slots.available_permits();
        (not_taken_by_others / 2).clamp(1, self.limits.in_flight_max)
    }
}

/// What brings the next batch together, and the memory that it is counted with.
#[derive(Default)]
struct Kept<J> {
    joiner: J,
    reservation: Reservation,
}

impl<J> Kept<J> {
    /// Kept, with what it has come to hold, unless that is much or there is no room for it.
    fn if_it_may_be(mut self, bytes: usize, joiners: &Budget) -> Option<Self> {
        let has_room = bytes <= JOINER_BYTES_MAX && self.reservation.resize(joiners, bytes).is_ok();
        has_room.then_some(self)
    }
}

/// Takes note of a batch that is back: how long it took, and what it leaves to the next one. Of one whose task failed, nothing is known.
fn note<J>(
    sent: Result<(Duration, Option<Kept<J>>), JoinError>,
    took: &mut Duration,
    kept: &mut Option<Kept<J>>,
) {
    match sent {
        Ok((duration, joiner)) => {
            *took = duration;
            *kept = joiner.or(kept.take());
        }
        Err(_) => *took = Duration::ZERO,
    }
}

/// The next request; `None` when there will be none.
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
            // What was sent before the channel closed is served; who comes later finds it closed and opens another.
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
