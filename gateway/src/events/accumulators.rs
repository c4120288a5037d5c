//! The accumulators of events: one for each table, set of columns and level in use. The first
//! request opens it, and a minute without requests ends it.

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
/// The maximum number of open accumulators. Beyond it one of them closes: its requests are served,
/// and the next request opens it again.
const OPEN_MAX: usize = 256;

type Requests = mpsc::Sender<Pending<EventBatch>>;

/// The accumulators of one worker.
pub struct Accumulators<S> {
    /// Creates an accumulator for a level.
    new: Box<dyn Fn(AckLevel) -> Accumulator<S> + Send + Sync>,
    open: Mutex<HashMap<(Target, AckLevel), Requests>>,
}

impl<S: Sink> Accumulators<S> {
    /// Creates an empty set.
    pub fn new(new: impl Fn(AckLevel) -> Accumulator<S> + Send + Sync + 'static) -> Self {
        Self {
            new: Box::new(new),
            open: Mutex::default(),
        }
    }

    /// Sends a request to its accumulator. Must be called on a runtime.
    pub async fn send(&self, pending: Pending<EventBatch>, level: AckLevel) {
        if let Some(pending) = self.try_send(pending, level) {
            // This path is rare and its future is large, so it is boxed.
            Box::pin(self.send_in_turn(pending, level)).await;
        }
    }

    /// Tries to send a request at once. Returns it if its accumulator is not open or its queue is
    /// full.
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
                // The accumulator has ended in the meantime.
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
