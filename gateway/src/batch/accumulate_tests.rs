//! Which requests travel together, against a database that takes its time.

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::*;
use crate::batch::pending::Outcome;
use crate::batch::{Digest, Reservation, Rows};
use crate::deliver::{AckLevel, Append, Health, Registered, SinkError};
use crate::observe::Metrics;
use crate::receive::LabelSet;

/// Notes the generation and the requests of each batch.
struct Recorder {
    takes: Duration,
    batches: Mutex<Vec<(u64, usize)>>,
}

impl Sink for Recorder {
    async fn register(&self, _: &[&LabelSet]) -> Result<Registered, SinkError> {
        unreachable!("batches do not register")
    }

    async fn append(&self, append: Append<'_>) -> Result<(), SinkError> {
        self.batches
            .lock()
            .push((append.generation, append.digests.len()));
        sleep(self.takes).await;
        Ok(())
    }

    async fn confirm(&self, _: AckLevel) -> Result<(), SinkError> {
        unreachable!("there are no duplicates")
    }

    async fn health(&self) -> Result<Health, SinkError> {
        unreachable!("batches do not supervise")
    }

    async fn forget(&self, _: Duration) -> Result<u64, SinkError> {
        unreachable!("batches do not supervise")
    }
}

struct Running {
    recorder: Arc<Recorder>,
    requests: mpsc::Sender<Pending>,
    answers: Vec<oneshot::Receiver<Outcome>>,
}

fn start(takes: Duration, rows_max: usize) -> Running {
    let recorder = Arc::new(Recorder {
        takes,
        batches: Mutex::default(),
    });
    let sender = Sender::new(
        Arc::clone(&recorder),
        AckLevel::Wal,
        Arc::new(Metrics::new()),
    );
    let limits = BatchLimits {
        rows_max,
        age_max: Duration::from_millis(5),
        in_flight_max: 1,
    };
    let (requests, received) = mpsc::channel(100);
    tokio::spawn(run(received, Arc::new(sender), limits));
    Running {
        recorder,
        requests,
        answers: Vec::new(),
    }
}

impl Running {
    async fn request(&mut self, generation: u64) {
        let (reply, answer) = oneshot::channel();
        let mut rows = Rows::default();
        rows.push(0, 1, 0.0);
        let number = self.answers.len() as u8;
        let pending = Pending {
            rows,
            digest: Digest([number; 16]),
            generation,
            deadline: clock::now() + Duration::from_secs(60),
            reservation: Reservation::default(),
            reply,
        };
        self.requests.send(pending).await.expect("the task runs");
        self.answers.push(answer);
    }

    /// Ends the input and waits for all answers; the batches that there were.
    async fn finish(self) -> Vec<(u64, usize)> {
        drop(self.requests);
        for answer in self.answers {
            assert!(answer.await.is_ok_and(|outcome| outcome.is_ok()));
        }
        let batches = self.recorder.batches.lock();
        batches.clone()
    }
}

#[tokio::test(start_paused = true)]
async fn requests_within_the_age_travel_together() {
    let mut running = start(Duration::ZERO, 100);
    for _ in 0..3 {
        running.request(0).await;
        sleep(Duration::from_millis(1)).await;
    }
    sleep(Duration::from_millis(10)).await;
    running.request(0).await;
    assert_eq!(running.finish().await, [(0, 3), (0, 1)]);
}

#[tokio::test(start_paused = true)]
async fn while_the_database_is_busy_the_batch_grows_up_to_its_bound() {
    let mut running = start(Duration::from_secs(1), 4);
    running.request(0).await;
    sleep(Duration::from_millis(100)).await;
    for _ in 0..6 {
        running.request(0).await;
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(running.finish().await, [(0, 1), (0, 4), (0, 2)]);
}

#[tokio::test(start_paused = true)]
async fn ids_of_two_registries_never_travel_together() {
    let mut running = start(Duration::ZERO, 100);
    for generation in [0, 0, 1, 1, 0] {
        running.request(generation).await;
    }
    assert_eq!(running.finish().await, [(0, 2), (1, 2), (0, 1)]);
}
