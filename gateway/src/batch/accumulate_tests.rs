//! Which requests share a batch, with a database that takes some time.

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::*;
use crate::deliver::{Append, DeliverMetrics, Health, Registered, SinkError};
use crate::metrics::Families;
use crate::model::{AckLevel, ColumnKind, Digest, InsertPrivilege, Outcome, Reservation, Table};
use crate::series::{LabelSet, SampleRows};

/// Records the generation and the number of requests of each batch.
struct Recorder {
    takes: Duration,
    batches: Mutex<Vec<(u64, usize)>>,
}

impl Sink for Recorder {
    async fn register(&self, _: &[&LabelSet]) -> Result<Registered, SinkError> {
        unreachable!("batches do not register")
    }

    async fn look_up(&self, _: &[&LabelSet]) -> Result<Registered, SinkError> {
        unreachable!("batches do not register")
    }

    async fn append(&self, append: Append<'_>) -> Result<(), SinkError> {
        let Target::Samples { generation } = append.target else {
            unreachable!("only samples are sent")
        };
        self.batches.lock().push((generation, append.digests.len()));
        sleep(self.takes).await;
        Ok(())
    }

    async fn describe(&self, _: &str, _: &str) -> Result<Option<Table>, SinkError> {
        unreachable!("batches know their tables")
    }

    async fn may_insert(&self, _: &str, _: &str) -> Result<InsertPrivilege, SinkError> {
        unreachable!("privileges are asked for before")
    }

    async fn create(
        &self,
        _: &str,
        _: &str,
        _: &[(&str, ColumnKind)],
        _: bool,
    ) -> Result<(), SinkError> {
        unreachable!("batches create no tables")
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
    requests: mpsc::Sender<Pending<SampleRows>>,
    answers: Vec<oneshot::Receiver<Outcome>>,
}

fn start(takes: Duration, rows_max: usize, in_flight_max: usize) -> Running {
    let slots = Arc::new(Semaphore::new(in_flight_max));
    start_on(takes, rows_max, in_flight_max, slots, false)
}

fn start_on(
    takes: Duration,
    rows_max: usize,
    in_flight_max: usize,
    slots: Arc<Semaphore>,
    leaves_room: bool,
) -> Running {
    let recorder = Arc::new(Recorder {
        takes,
        batches: Mutex::default(),
    });
    let sender = Sender::new(
        Arc::clone(&recorder),
        AckLevel::Wal,
        Arc::new(DeliverMetrics::new(&Families::new())),
    );
    let limits = BatchLimits {
        rows_max,
        age_max: Duration::from_millis(5),
        in_flight_max,
    };
    let (requests, received) = mpsc::channel(100);
    let accumulator = Accumulator {
        sender: Arc::new(sender),
        limits,
        leaves_room,
        joiners: Budget::new(1 << 20, Duration::ZERO),
        slots,
    };
    tokio::spawn(accumulator.run(received, None));
    Running {
        recorder,
        requests,
        answers: Vec::new(),
    }
}

impl Running {
    async fn request(&mut self, generation: u64) {
        let (reply, answer) = oneshot::channel();
        let mut rows = SampleRows::default();
        rows.push(0, 1, 0.0);
        let number = self.answers.len() as u8;
        let pending = Pending {
            payload: rows,
            digest: Some(Digest([number; 16])),
            body: None,
            target: Target::Samples { generation },
            deadline: clock::now() + Duration::from_secs(60),
            reservation: Reservation::default(),
            reply,
        };
        self.requests.send(pending).await.expect("the task runs");
        self.answers.push(answer);
    }

    /// Ends the input and waits for all answers. Returns the batches.
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
async fn a_lone_request_is_sent_at_once() {
    let mut running = start(Duration::from_millis(1), 100, 2);
    for _ in 0..3 {
        let before = clock::now();
        running.request(0).await;
        let answer = running.answers.last_mut().expect("one was sent");
        assert!(answer.await.is_ok_and(|outcome| outcome.is_ok()));
        running.answers.pop();
        assert_eq!(clock::now() - before, Duration::from_millis(1));
    }
    assert_eq!(running.finish().await, [(0, 1), (0, 1), (0, 1)]);
}

#[tokio::test(start_paused = true)]
async fn requests_within_the_age_share_a_batch_while_another_is_in_flight() {
    let mut running = start(Duration::from_millis(100), 100, 2);
    for _ in 0..4 {
        running.request(0).await;
        sleep(Duration::from_millis(1)).await;
    }
    sleep(Duration::from_millis(10)).await;
    running.request(0).await;
    assert_eq!(running.finish().await, [(0, 1), (0, 3), (0, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_sent_when_another_returns() {
    let mut running = start(Duration::from_millis(2), 100, 2);
    for _ in 0..3 {
        running.request(0).await;
        sleep(Duration::from_micros(900)).await;
    }
    // The second and the third request arrived before the first batch returned at 2 ms, well below
    // their maximum age.
    sleep(Duration::from_millis(1)).await;
    running.request(0).await;
    assert_eq!(running.finish().await, [(0, 1), (0, 2), (0, 1)]);
}

#[tokio::test(start_paused = true)]
async fn after_many_requests_the_next_batch_waits_for_more_of_them() {
    let mut running = start(Duration::from_millis(1), 1000, 2);
    running.request(0).await;
    sleep(Duration::from_micros(100)).await;
    for _ in 0..BUSY_REQUESTS {
        running.request(0).await;
    }
    // These were sent when the first batch returned, and have returned now.
    sleep(Duration::from_micros(2_000)).await;
    running.request(0).await;
    sleep(Duration::from_micros(500)).await;
    running.request(0).await;
    sleep(Duration::from_millis(10)).await;
    running.request(0).await;
    assert_eq!(
        running.finish().await,
        [(0, 1), (0, BUSY_REQUESTS), (0, 2), (0, 1)]
    );
}

/// The length of a rest is learned from the batch before it, whether that batch returns before or
/// after the next request arrives.
#[tokio::test(start_paused = true)]
async fn the_rest_depends_on_the_batch_before() {
    for first_after in [1, 3] {
        let mut running = start(Duration::from_millis(2), 1000, 2);
        for _ in 0..=BUSY_REQUESTS {
            running.request(0).await;
        }
        sleep(Duration::from_millis(first_after)).await;
        running.request(0).await;
        sleep(Duration::from_millis(4 - first_after)).await;
        running.request(0).await;
        assert_eq!(
            running.finish().await,
            [(0, BUSY_REQUESTS + 1), (0, 2)],
            "{first_after}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn while_the_database_is_busy_the_batch_grows_up_to_its_bound() {
    let mut running = start(Duration::from_secs(1), 4, 1);
    running.request(0).await;
    sleep(Duration::from_millis(100)).await;
    for _ in 0..6 {
        running.request(0).await;
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(running.finish().await, [(0, 1), (0, 4), (0, 2)]);
}

#[tokio::test(start_paused = true)]
async fn a_batch_keeps_its_place_in_the_queue_while_it_grows() {
    let slots = Arc::new(Semaphore::new(1));
    let mut running = start_on(Duration::from_millis(1), 100, 1, Arc::clone(&slots), false);
    let held = Arc::clone(&slots).acquire_owned().await.unwrap();
    running.request(0).await;
    sleep(Duration::from_millis(1)).await;
    let recorder = Arc::clone(&running.recorder);
    let other = tokio::spawn(async move {
        let _slot = slots.acquire_owned().await.unwrap();
        recorder.batches.lock().clone()
    });
    sleep(Duration::from_millis(1)).await;
    running.request(0).await;
    sleep(Duration::from_millis(1)).await;
    drop(held);
    assert_eq!(other.await.unwrap(), [(0, 2)], "first come, first served");
    assert_eq!(running.finish().await, [(0, 2)]);
}

#[tokio::test(start_paused = true)]
async fn accumulators_whose_batches_do_not_return_leave_slots_to_others() {
    for (slots_max, left) in [(3, [2, 1, 0]), (5, [3, 2, 1]), (9, [5, 3, 2])] {
        let slots = Arc::new(Semaphore::new(slots_max));
        let mut stuck = Vec::new();
        for left in left {
            let mut running = start_on(Duration::MAX, 1, slots_max, Arc::clone(&slots), true);
            for _ in 0..20 {
                running.request(0).await;
            }
            sleep(Duration::from_millis(100)).await;
            assert_eq!(slots.available_permits(), left, "of {slots_max}");
            stuck.push(running);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn ids_of_two_registries_never_share_a_batch() {
    let mut running = start(Duration::from_millis(1), 100, 1);
    running.request(0).await;
    sleep(Duration::from_micros(100)).await;
    for generation in [0, 0, 1, 1, 0] {
        running.request(generation).await;
    }
    assert_eq!(running.finish().await, [(0, 1), (0, 2), (1, 2), (0, 1)]);
}

#[tokio::test(start_paused = true)]
async fn an_idle_accumulator_ends_and_loses_nothing() {
    let recorder = Arc::new(Recorder {
        takes: Duration::ZERO,
        batches: Mutex::default(),
    });
    let sender = Sender::new(
        recorder,
        AckLevel::Wal,
        Arc::new(DeliverMetrics::new(&Families::new())),
    );
    let limits = BatchLimits {
        rows_max: 10,
        age_max: Duration::ZERO,
        in_flight_max: 1,
    };
    let accumulator = Accumulator {
        sender: Arc::new(sender),
        limits,
        leaves_room: false,
        joiners: Budget::new(1 << 20, Duration::ZERO),
        slots: Arc::new(Semaphore::new(1)),
    };
    let (requests, received) = mpsc::channel::<Pending<SampleRows>>(1);
    let running = tokio::spawn(accumulator.run(received, Some(Duration::from_secs(60))));
    sleep(Duration::from_secs(59)).await;
    assert!(!requests.is_closed());
    running.await.unwrap();
    assert!(requests.is_closed());
}

#[test]
fn joiners_are_kept_while_there_is_room_for_all_of_them() {
    let joiners = Budget::new(2 * JOINER_BYTES_MAX, Duration::ZERO);
    let joiner = || KeptJoiner::<u8>::default();
    let first = joiner().kept_within(JOINER_BYTES_MAX, &joiners).unwrap();
    assert!(
        joiner()
            .kept_within(JOINER_BYTES_MAX + 1, &joiners)
            .is_none()
    );
    let second = joiner().kept_within(JOINER_BYTES_MAX / 2, &joiners);
    assert!(joiner().kept_within(JOINER_BYTES_MAX, &joiners).is_none());
    // Growth is accounted for, and dropped joiners are no longer accounted for.
    let first = first.kept_within(1024, &joiners).unwrap();
    assert_eq!(joiners.pending_bytes(), 1024 + JOINER_BYTES_MAX / 2);
    drop((first, second));
    assert_eq!(joiners.pending_bytes(), 0);
}
