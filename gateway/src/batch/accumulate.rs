//! Requests of one level of acknowledgement, brought together by rows and age.
//!
//! A batch leaves when it has `rows_max` rows or its first request has waited `age_max`, and a slot is free. There are as many slots as
//! connections: while all are busy the batch goes on growing, so batches get larger as load grows, and beyond `rows_max` the channel
//! fills, requests wait in their handlers, and the memory budget turns newcomers away.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};
use tokio::time::{sleep_until, timeout_at};

use super::pending::Pending;
use crate::clock;
use crate::deliver::{Sender, Sink};

/// When a batch leaves.
#[derive(Debug, Clone, Copy)]
pub struct BatchLimits {
    /// Rows after which nothing is added; one request may hold more.
    pub rows_max: usize,
    /// How long the first request waits for company.
    pub age_max: Duration,
    /// Batches on their way at once.
    pub in_flight_max: usize,
}

/// Serves requests until all senders are gone, then waits for the batches on their way.
pub async fn run<S: Sink>(
    mut requests: mpsc::Receiver<Pending>,
    sender: Arc<Sender<S>>,
    limits: BatchLimits,
) {
    let slots = Arc::new(Semaphore::new(limits.in_flight_max));
    let mut next: Option<Pending> = None;
    loop {
        let first = match next.take() {
            Some(first) => first,
            None => match requests.recv().await {
                Some(first) => first,
                None => break,
            },
        };
        let mut batch = Batch::of(first);
        let leaves_at = clock::now() + limits.age_max;
        let aged = sleep_until(leaves_at);
        tokio::pin!(aged);
        let mut old_enough = false;
        let slot = loop {
            let is_full = batch.rows >= limits.rows_max || next.is_some();
            tokio::select! {
                biased;
                received = requests.recv(), if !is_full => match received {
                    Some(pending) if pending.generation == batch.generation => batch.add(pending),
                    // Ids of another registry: they do not travel together.
                    Some(pending) => next = Some(pending),
                    None => break slots.clone().acquire_owned().await,
                },
                slot = slots.clone().acquire_owned(), if is_full || old_enough => break slot,
                () = &mut aged, if !old_enough => old_enough = true,
            }
        };
        let Ok(slot) = slot else { break };
        let sender = Arc::clone(&sender);
        tokio::spawn(async move {
            sender.send(batch.requests).await;
            drop(slot);
        });
    }
    // Whoever still waits for an answer is served before this ends; nobody waits beyond a deadline.
    let all = u32::try_from(limits.in_flight_max).unwrap_or(u32::MAX);
    let _ = timeout_at(
        clock::now() + Duration::from_secs(60),
        slots.acquire_many(all),
    )
    .await;
}

struct Batch {
    requests: Vec<Pending>,
    rows: usize,
    generation: u64,
}

impl Batch {
    fn of(first: Pending) -> Self {
        Self {
            rows: first.rows.len(),
            generation: first.generation,
            requests: vec![first],
        }
    }

    fn add(&mut self, pending: Pending) {
        self.rows += pending.rows.len();
        self.requests.push(pending);
    }
}

#[cfg(test)]
#[path = "accumulate_tests.rs"]
mod tests;
