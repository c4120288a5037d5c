//! An accumulator for each table, columns and level in use, opened by the first request and ended by a minute without.

use std::time::Duration;

use hashbrown::HashMap;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::event_batch::EventBatch;
use crate::batch::QUEUE_REQUESTS_MAX;
use crate::batch::accumulate::Accumulator;
use crate::deliver::Sink;
use crate::model::{AckLevel, Pending, Target};

const IDLE_MAX: Duration = Duration::from_secs(60);
/// Accumulators open at once. Past it one of them closes: its requests are served, and the next one opens it again.
const OPEN_MAX: usize = 256;

type Requests = mpsc::Sender<Pending<EventBatch>>;

/// Those of one worker.
pub struct Accumulators<S> {
    /// What a new one is made of, by level.
    new: Box<dyn Fn(AckLevel) -> Accumulator<S> + Send + Sync>,
    open: Mutex<HashMap<(Target, AckLevel), Requests>>,
}

impl<S: Sink> Accumulators<S> {
    /// None is open yet.
    pub fn new(new: impl Fn(AckLevel) -> Accumulator<S> + Send + Sync + 'static) -> Self {
        Self {
            new: Box::new(new),
            open: Mutex::default(),
        }
    }

    /// Hands a request to its accumulator. Must be called on a runtime.
    pub async fn send(&self, pending: Pending<EventBatch>, level: AckLevel) {
        if let Some(pending) = self.try_send(pending, level) {
            // Rare, and large: it has a place of its own.
            Box::pin(self.send_in_turn(pending, level)).await;
        }
    }

    /// The request back, if its accumulator is not open or takes none just now.
    fn try_send(
        &self,
        pending: Pending<EventBatch>,
        level: AckLevel,
    ) -> Option<Pending<EventBatch>> {
        let open = self.open.lock();
        let Some(requests) = open.get(&(pending.target, level)) else {
            return Some(pending);
        };
        match requests.try_send(pending) {
            Ok(()) => None,
            Err(TrySendError::Full(back) | TrySendError::Closed(back)) => Some(back),
        }
    }

    async fn send_in_turn(&self, mut pending: Pending<EventBatch>, level: AckLevel) {
        loop {
            let requests = self.open(pending.target, level);
            match requests.send(pending).await {
                Ok(()) => return,
                // It ended a moment ago.
                Err(mpsc::error::SendError(back)) => {
                    pending = back;
                    self.forget_closed();
                }
            }
        }
    }

    fn open(&self, target: Target, level: AckLevel) -> Requests {
        let mut open = self.open.lock();
        if let Some(requests) = open.get(&(target, level)) {
            return requests.clone();
        }
        open.retain(|_, requests| !requests.is_closed());
        if open.len() >= OPEN_MAX
            && let Some(any) = open.keys().next().copied()
        {
            open.remove(&any);
        }
        let (requests, received) = mpsc::channel(QUEUE_REQUESTS_MAX);
        tokio::spawn((self.new)(level).run(received, Some(IDLE_MAX)));
        open.insert((target, level), requests.clone());
        requests
    }

    fn forget_closed(&self) {
        self.open.lock().retain(|_, requests| !requests.is_closed());
    }
}
