//! Outcomes of batches with a database that misbehaves deliberately.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use lanes_wire::BatchView;
use parking_lot::Mutex;

use super::*;
use crate::deliver::{Health, Registered};
use crate::metrics::Families;
use crate::model::{ColumnKind, InsertPrivilege, Table};
use crate::series::sample_rows::SampleJoiner;
use crate::series::{LabelSet, SampleRows, SeriesId};

/// The behaviour of the next append.
#[derive(Clone, Debug)]
enum Act {
    /// Commits and answers.
    Commit,
    /// Commits, but the answer is lost.
    CommitAndLose,
    /// Closes the session before the answer.
    Lose,
    /// Fails before anything is done.
    Fail,
    /// Never answers.
    Hang,
    /// Reports duplicates that were not sent.
    Nonsense,
}

#[derive(Default)]
struct Database {
    script: Mutex<VecDeque<Act>>,
    /// From digests to the digests of their bodies.
    committed: Mutex<HashMap<Digest, Option<Digest>>>,
    rows: Mutex<Vec<SeriesId>>,
    /// A series whose rows are refused as invalid data.
    poison: Option<SeriesId>,
    confirmed: Mutex<Vec<AckLevel>>,
    /// Digests, and the number of rows of their batches.
    logged: Mutex<Vec<(Digest, usize)>>,
    calls: Mutex<usize>,
}

impl Sink for Database {
    async fn register(&self, _: &[&LabelSet]) -> Result<Registered, SinkError> {
        unreachable!("senders do not register")
    }

    async fn look_up(&self, _: &[&LabelSet]) -> Result<Registered, SinkError> {
        unreachable!("senders do not register")
    }

    async fn append(&self, append: Append<'_>) -> Result<(), SinkError> {
        *self.calls.lock() += 1;
        let act = self.script.lock().pop_front().unwrap_or(Act::Commit);
        match act {
            Act::Fail => return Err(SinkError::Unavailable("away".to_owned())),
            Act::Lose => return Err(SinkError::OutcomeUnknown("lost".to_owned())),
            Act::Hang => std::future::pending().await,
            Act::Nonsense => {
                return Err(SinkError::Duplicates {
                    applied: vec![7],
                    reused: Vec::new(),
                });
            }
            Act::Commit | Act::CommitAndLose => {}
        }
        let view = BatchView::verify(append.batch).expect("batches are legal");
        let series = view.columns()[1].values().arrays::<4>();
        let series: Vec<SeriesId> = series
            .expect("series is int4")
            .iter()
            .map(|bytes| SeriesId::from_le_bytes(*bytes))
            .collect();
        let mut committed = self.committed.lock();
        let (mut applied, mut reused) = (Vec::new(), Vec::new());
        for (place, digest) in append.digests.iter().enumerate() {
            let Some(body) = committed.get(digest) else {
                continue;
            };
            applied.push(place);
            if *body != append.bodies[place] {
                reused.push(place);
            }
        }
        if !applied.is_empty() {
            return Err(SinkError::Duplicates { applied, reused });
        }
        if self.poison.is_some_and(|poison| series.contains(&poison)) {
            return Err(SinkError::Refused("poison".to_owned()));
        }
        let bodies = append.bodies.iter().copied();
        committed.extend(append.digests.iter().copied().zip(bodies));
        self.rows.lock().extend(series);
        match act {
            Act::CommitAndLose => Err(SinkError::Unavailable("connection lost".to_owned())),
            _ => Ok(()),
        }
    }

    async fn describe(&self, _: &str, _: &str) -> Result<Option<Table>, SinkError> {
        unreachable!("senders know their tables")
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
        unreachable!("senders create no tables")
    }

    async fn confirm(&self, level: AckLevel) -> Result<(), SinkError> {
        self.confirmed.lock().push(level);
        Ok(())
    }

    async fn log_again(&self, repeated: Repeated<'_>) -> Result<(), SinkError> {
        let view = BatchView::verify(repeated.batch).expect("batches are legal");
        self.logged.lock().push((repeated.digest, view.rows()));
        Ok(())
    }

    async fn health(&self) -> Result<Health, SinkError> {
        unreachable!("senders do not supervise")
    }

    async fn forget(&self, _: Duration) -> Result<u64, SinkError> {
        unreachable!("senders do not supervise")
    }
}

fn request(number: u8) -> (Pending<SampleRows>, oneshot::Receiver<Outcome>) {
    let (reply, answer) = oneshot::channel();
    let mut rows = SampleRows::default();
    rows.push(i64::from(number), SeriesId::from(number), 0.0);
    let deadline = clock::now() + Duration::from_secs(10);
    let digest = Digest([number; 16]);
    (
        Pending {
            payload: rows,
            digest: Some(digest),
            body: None,
            target: Target::Samples { generation: 0 },
            deadline,
            reservation: Reservation::default(),
            reply,
        },
        answer,
    )
}

/// Sends requests with these numbers in one batch. Returns their outcomes in order.
async fn send(database: &Arc<Database>, numbers: &[u8]) -> Vec<Outcome> {
    send_at(AckLevel::Wal, database, numbers).await
}

async fn send_at(level: AckLevel, database: &Arc<Database>, numbers: &[u8]) -> Vec<Outcome> {
    let (requests, answers): (Vec<_>, Vec<_>) =
        numbers.iter().map(|number| request(*number)).unzip();
    let sender = Sender::new(
        Arc::clone(database),
        level,
        Arc::new(DeliverMetrics::new(&Families::new())),
    );
    sender.send(requests, &mut SampleJoiner::default()).await;
    let mut outcomes = Vec::new();
    for answer in answers {
        outcomes.push(answer.await.expect("every request is answered"));
    }
    outcomes
}

fn scripted(acts: &[Act]) -> Arc<Database> {
    Arc::new(Database {
        script: Mutex::new(acts.iter().cloned().collect()),
        ..Database::default()
    })
}

fn sorted_rows(database: &Database) -> Vec<SeriesId> {
    let mut rows = database.rows.lock().clone();
    rows.sort_unstable();
    rows
}

#[tokio::test(start_paused = true)]
async fn requests_travel_together() {
    let database = scripted(&[]);
    assert_eq!(send(&database, &[1, 2, 3]).await, vec![Ok(Stored::Now); 3]);
    assert_eq!(
        (sorted_rows(&database), *database.calls.lock()),
        (vec![1, 2, 3], 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_commit_whose_answer_is_lost_is_applied_once() {
    let database = scripted(&[Act::Fail, Act::CommitAndLose]);
    assert_eq!(send(&database, &[1, 2]).await, vec![Ok(Stored::Before); 2]);
    assert_eq!(sorted_rows(&database), [1, 2]);
    assert_eq!(
        *database.confirmed.lock(),
        [AckLevel::Wal],
        "a duplicate is confirmed before it is acknowledged"
    );
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_is_logged_before_it_is_acknowledged_at_level_object() {
    let database = scripted(&[Act::CommitAndLose]);
    let outcomes = send_at(AckLevel::Object, &database, &[1, 2]).await;
    assert_eq!(outcomes, vec![Ok(Stored::Before); 2]);
    assert_eq!(sorted_rows(&database), [1, 2]);
    let mut logged = database.logged.lock().clone();
    logged.sort();
    assert_eq!(logged, [(Digest([1; 16]), 1), (Digest([2; 16]), 1)]);
}

#[tokio::test(start_paused = true)]
async fn requests_repeated_by_their_sender_are_applied_once() {
    let database = scripted(&[]);
    send(&database, &[1, 2]).await;
    let outcomes = send(&database, &[3, 2, 4, 1]).await;
    assert_eq!(
        outcomes,
        [
            Ok(Stored::Now),
            Ok(Stored::Before),
            Ok(Stored::Now),
            Ok(Stored::Before)
        ]
    );
    assert_eq!(sorted_rows(&database), [1, 2, 3, 4]);
}

#[tokio::test(start_paused = true)]
async fn one_request_twice_in_a_batch_is_applied_once_and_answered_twice() {
    let database = scripted(&[]);
    assert_eq!(send(&database, &[5, 5, 6]).await, vec![Ok(Stored::Now); 3]);
    assert_eq!(sorted_rows(&database), [5, 6]);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_comes_with_another_body_is_refused() {
    let database = scripted(&[]);
    let keyed = |number: u8, body: u8| {
        let (mut pending, answer) = request(number);
        pending.digest = Some(Digest([7; 16]));
        pending.body = Some(Digest([body; 16]));
        (pending, answer)
    };
    // The requests come in one batch, and one after the other.
    for requests in [
        vec![keyed(1, 1), keyed(2, 2), keyed(3, 1), request(4)],
        vec![keyed(5, 2), keyed(6, 1), request(8)],
    ] {
        let (requests, answers): (Vec<_>, Vec<_>) = requests.into_iter().unzip();
        let sender = Sender::new(
            Arc::clone(&database),
            AckLevel::Wal,
            Arc::new(DeliverMetrics::new(&Families::new())),
        );
        let bodies: Vec<Option<Digest>> = requests.iter().map(|request| request.body).collect();
        sender.send(requests, &mut SampleJoiner::default()).await;
        for (body, answer) in bodies.into_iter().zip(answers) {
            let outcome = answer.await.expect("every request is answered");
            let is_refused = outcome == Err(Fault::KeyReused);
            assert_eq!(is_refused, body == Some(Digest([2; 16])), "{body:?}");
            assert_eq!(is_refused, outcome.is_err(), "{outcome:?}");
        }
    }
    assert_eq!(sorted_rows(&database), [1, 4, 8]);
}

#[tokio::test(start_paused = true)]
async fn only_the_refused_request_fails() {
    let database = Arc::new(Database {
        poison: Some(2),
        ..Database::default()
    });
    let outcomes = send(&database, &[1, 2, 3]).await;
    assert_eq!(
        outcomes,
        [
            Ok(Stored::Now),
            Err(Fault::Refused("poison".to_owned())),
            Ok(Stored::Now)
        ]
    );
    assert_eq!(sorted_rows(&database), [1, 3]);
}

#[tokio::test(start_paused = true)]
async fn an_unavailable_database_is_reported_at_the_deadline() {
    let database = scripted(&vec![Act::Fail; 100]);
    let started = clock::now();
    assert_eq!(
        send(&database, &[1]).await,
        [Err(Fault::Unavailable("away".to_owned()))]
    );
    assert_eq!(clock::now() - started, Duration::from_secs(10));
    assert!(sorted_rows(&database).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_request_that_nobody_waits_for_is_not_sent() {
    let database = scripted(&[]);
    let (gone, answer) = request(1);
    drop(answer);
    let (here, answer) = request(2);
    Sender::new(
        Arc::clone(&database),
        AckLevel::Wal,
        Arc::new(DeliverMetrics::new(&Families::new())),
    )
    .send(vec![gone, here], &mut SampleJoiner::default())
    .await;
    assert_eq!(answer.await.unwrap(), Ok(Stored::Now));
    assert_eq!(sorted_rows(&database), [2]);
}

#[tokio::test(start_paused = true)]
async fn while_one_call_hangs_nothing_is_acknowledged() {
    let database = scripted(&[Act::Hang]);
    let (pending, answer) = request(1);
    let sender = Sender::new(
        Arc::clone(&database),
        AckLevel::Wal,
        Arc::new(DeliverMetrics::new(&Families::new())),
    );
    let sending = tokio::spawn(async move {
        sender
            .send(vec![pending], &mut SampleJoiner::default())
            .await
    });
    assert!(
        tokio::time::timeout(Duration::from_secs(60), answer)
            .await
            .is_err()
    );
    sending.abort();
}

#[tokio::test(start_paused = true)]
async fn duplicates_that_were_not_sent_are_an_error_with_pauses() {
    let database = scripted(&[Act::Nonsense, Act::Nonsense]);
    let started = clock::now();
    assert_eq!(send(&database, &[1]).await, [Ok(Stored::Now)]);
    assert!(clock::now() - started >= Duration::from_millis(150));
}

/// The requests have no digest.
#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_is_reported_and_not_retried() {
    let database = scripted(&[Act::Lose]);
    let (mut pending, answer) = request(1);
    pending.digest = None;
    pending.target = Target::Table {
        generation: 0,
        oid: 1,
        shape: 1,
        is_once: false,
    };
    let sender = Sender::new(
        Arc::clone(&database),
        AckLevel::Wal,
        Arc::new(DeliverMetrics::new(&Families::new())),
    );
    sender
        .send(vec![pending], &mut SampleJoiner::default())
        .await;
    assert!(matches!(answer.await, Ok(Err(Fault::Unavailable(_)))));
    assert_eq!(*database.calls.lock(), 1);
}

#[tokio::test(start_paused = true)]
async fn one_refused_request_costs_the_others_few_attempts() {
    let database = Arc::new(Database {
        poison: Some(37),
        ..Database::default()
    });
    let numbers: Vec<u8> = (0..64).collect();
    let outcomes = send(&database, &numbers).await;
    let refused = outcomes.iter().filter(|outcome| outcome.is_err()).count();
    assert_eq!((refused, sorted_rows(&database).len()), (1, 63));
    assert_eq!(
        *database.calls.lock(),
        13,
        "halves, and halves of the half with the refused request"
    );
}
