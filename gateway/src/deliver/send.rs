//! One batch, until each of its requests has an outcome.
//!
//! ```text
//! work := [all requests, those with one digest joined]
//! while work: take a group
//!     drop requests that nobody awaits any more; none left: next group
//!     append the group ->
//!       done          -> all stored
//!       duplicates    -> make them sure at this level, acknowledge them, put the rest back
//!       refused       -> one request: refused. Several: each alone, so that only the guilty one is
//!       registry gone -> all unavailable
//!       unavailable   -> pause, put the group back; after the deadline: all unavailable
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::ack_level::AckLevel;
use super::backoff::Backoff;
use super::sink::{Append, Sink, SinkError};
use crate::batch::encode::encode;
use crate::batch::pending::{Outcome, Stored};
use crate::batch::{Digest, Fault, Pending, Reservation, Rows};
use crate::clock::{self, Instant};
use crate::observe::Metrics;

/// Sends the batches of one level.
pub struct Sender<S> {
    sink: Arc<S>,
    level: AckLevel,
    metrics: Arc<Metrics>,
}

/// Requests with one digest: applied once, answered each.
struct Member {
    digest: Digest,
    rows: Rows,
    waiters: Vec<Waiter>,
}

struct Waiter {
    reply: oneshot::Sender<Outcome>,
    deadline: Instant,
    /// Held until the answer is given.
    _reservation: Reservation,
}

impl Member {
    fn answer(self, outcome: &Outcome) {
        for waiter in self.waiters {
            // A sender that has gone away asks again, and its digest is found.
            let _ = waiter.reply.send(outcome.clone());
        }
    }
}

struct Group {
    members: Vec<Member>,
    generation: u64,
    backoff: Backoff,
}

impl<S: Sink> Sender<S> {
    /// A sender for one level.
    pub fn new(sink: Arc<S>, level: AckLevel, metrics: Arc<Metrics>) -> Self {
        Self {
            sink,
            level,
            metrics,
        }
    }

    /// Sends requests of one generation; returns when each is answered.
    pub async fn send(&self, requests: Vec<Pending>) {
        let Some(generation) = requests.first().map(|request| request.generation) else {
            return;
        };
        let mut work = vec![self.group(join(requests), generation)];
        let (mut rows, mut batch) = (Rows::default(), Vec::new());
        while let Some(mut group) = work.pop() {
            drop_abandoned(&mut group.members);
            if group.members.is_empty() {
                continue;
            }
            rows.clear();
            group
                .members
                .iter()
                .for_each(|member| rows.extend(&member.rows));
            match self.attempt(&group, &rows, &mut batch).await {
                Ok(()) => {
                    self.metrics.samples_stored.inc_by(rows.len() as u64);
                    self.answer(group.members, &Ok(Stored::Now));
                }
                Err(SinkError::Duplicates(places)) => {
                    self.acknowledge(group, &places, &mut work).await
                }
                Err(SinkError::Refused(reason)) if group.members.len() == 1 => {
                    self.answer(group.members, &Err(Fault::Refused(reason)));
                }
                Err(SinkError::Refused(_)) => {
                    work.extend(
                        group
                            .members
                            .into_iter()
                            .map(|member| self.group(vec![member], generation)),
                    );
                }
                Err(error @ SinkError::OtherRegistry) => {
                    self.answer(group.members, &Err(Fault::Unavailable(error.to_string())));
                }
                Err(SinkError::Unavailable(reason)) => {
                    self.again_later(group, reason, &mut work).await
                }
            }
        }
    }

    async fn attempt(
        &self,
        group: &Group,
        rows: &Rows,
        batch: &mut Vec<u8>,
    ) -> Result<(), SinkError> {
        encode(rows, batch).map_err(|error| SinkError::Refused(error.to_string()))?;
        let digests: Vec<Digest> = group.members.iter().map(|member| member.digest).collect();
        self.metrics.batch_rows.observe(rows.len() as f64);
        self.metrics.batch_bytes.observe(batch.len() as f64);
        let append = Append {
            level: self.level,
            generation: group.generation,
            batch,
            digests: &digests,
        };
        let started = clock::now();
        let result = self.sink.append(append).await;
        self.metrics.append_seconds[self.level.index()]
            .observe((clock::now() - started).as_secs_f64());
        result
    }

    /// Duplicates were committed at a level that is not known here, so they are made as sure as was asked for.
    async fn acknowledge(&self, mut group: Group, places: &[usize], work: &mut Vec<Group>) {
        if !places.iter().any(|place| *place < group.members.len()) {
            let reason = "the database reports duplicates that are not in the batch".to_owned();
            return self.again_later(group, reason, work).await;
        }
        match self.sink.confirm(self.level).await {
            Ok(()) => {
                let mut rest = Vec::new();
                for (place, member) in group.members.into_iter().enumerate() {
                    if places.contains(&place) {
                        self.metrics.requests_repeated.inc();
                        self.answer(vec![member], &Ok(Stored::Before));
                    } else {
                        rest.push(member);
                    }
                }
                group.members = rest;
                work.push(group);
            }
            Err(error) => self.again_later(group, error.to_string(), work).await,
        }
    }

    async fn again_later(&self, mut group: Group, reason: String, work: &mut Vec<Group>) {
        if group.backoff.wait().await {
            work.push(group);
        } else {
            self.answer(group.members, &Err(Fault::Unavailable(reason)));
        }
    }

    fn answer(&self, members: Vec<Member>, outcome: &Outcome) {
        members
            .into_iter()
            .for_each(|member| member.answer(outcome));
    }

    fn group(&self, members: Vec<Member>, generation: u64) -> Group {
        let deadline = members
            .iter()
            .flat_map(|member| &member.waiters)
            .map(|waiter| waiter.deadline)
            .max();
        Group {
            members,
            generation,
            backoff: Backoff::new(deadline.unwrap_or_else(clock::now)),
        }
    }
}

fn join(requests: Vec<Pending>) -> Vec<Member> {
    let mut places: HashMap<Digest, usize> = HashMap::with_capacity(requests.len());
    let mut members: Vec<Member> = Vec::with_capacity(requests.len());
    for request in requests {
        let waiter = Waiter {
            reply: request.reply,
            deadline: request.deadline,
            _reservation: request.reservation,
        };
        match places.get(&request.digest) {
            Some(&place) => members[place].waiters.push(waiter),
            None => {
                places.insert(request.digest, members.len());
                members.push(Member {
                    digest: request.digest,
                    rows: request.rows,
                    waiters: vec![waiter],
                });
            }
        }
    }
    members
}

/// A request whose waiters are all gone is dropped rather than sent: nothing was promised, and its sender will ask again.
fn drop_abandoned(members: &mut Vec<Member>) {
    members.retain(|member| {
        member
            .waiters
            .iter()
            .any(|waiter| !waiter.reply.is_closed())
    });
}

#[cfg(test)]
#[path = "send_tests.rs"]
mod tests;
