//! Sends one batch until each of its requests has an outcome.
//!
//! ```text
//! work := [all requests]
//!     requests with the same digest and body are merged; requests without a digest are separate;
//!     requests with the same digest and another body go to another group
//! while work: take a group
//!     drop requests that nobody waits for; if none are left: next group
//!     append the group ->
//!       done          -> all are stored
//!       duplicates    -> confirm them at this level and acknowledge them, or refuse another body;
//!                        put the rest back
//!       refused       -> one request: refused. Several: each half alone, down to the refused ones
//!       other registry, outcome unknown -> all are unavailable
//!       table changed -> all get this outcome
//!       unavailable   -> pause, put the group back; after the deadline: all are unavailable
//! ```

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::backoff::Backoff;
use super::metrics::DeliverMetrics;
use super::sink::{Append, Repeated, Sink, SinkError};
use crate::clock::{self, Instant};
use crate::model::{
    AckLevel, Digest, Fault, Outcome, Payload, Pending, Reservation, Stored, Target,
};

/// Sends the batches of one level.
pub struct Sender<S> {
    sink: Arc<S>,
    level: AckLevel,
    metrics: Arc<DeliverMetrics>,
}

/// Requests with the same digest: applied once, answered each.
struct Member<P> {
    digest: Option<Digest>,
    body: Option<Digest>,
    payload: P,
    waiters: Vec<Waiter>,
}

struct Waiter {
    reply: oneshot::Sender<Outcome>,
    deadline: Instant,
    /// Held until the answer is sent.
    _reservation: Reservation,
}

impl<P> Member<P> {
    fn answer(self, outcome: &Outcome) {
        for waiter in self.waiters {
            // A sender that has disconnected repeats the request, and its digest is found.
            let _ = waiter.reply.send(outcome.clone());
        }
    }
}

struct Group<P> {
    members: Vec<Member<P>>,
    target: Target,
    backoff: Backoff,
}

impl<S: Sink> Sender<S> {
    /// Creates a sender for one level.
    pub fn new(sink: Arc<S>, level: AckLevel, metrics: Arc<DeliverMetrics>) -> Self {
        Self {
            sink,
            level,
            metrics,
        }
    }

    /// Records how long a batch waited for a session.
    pub fn note_wait(&self, waited: Duration) {
        self.metrics.session_wait_seconds[self.level.index()].observe(waited.as_secs_f64());
    }

    /// Sends requests to one target. Returns when each has been answered.
    pub async fn send<P: Payload>(&self, requests: Vec<Pending<P>>, joiner: &mut P::Joiner) {
        let Some(target) = requests.first().map(|request| request.target) else {
            return;
        };
        let mut work = join(requests, target);
        while let Some(mut group) = work.pop() {
            drop_abandoned(&mut group.members);
            if group.members.is_empty() {
                continue;
            }
            match self.attempt(&group, joiner).await {
                Ok(rows) => {
                    self.metrics.rows_stored(P::KIND).inc_by(rows as u64);
                    answer(group.members, &Ok(Stored::Now));
                }
                Err(SinkError::Duplicates { applied, reused }) => {
                    let places = (applied.as_slice(), reused.as_slice());
                    self.acknowledge(group, places, &mut work, joiner).await
                }
                Err(SinkError::Refused(reason)) if group.members.len() == 1 => {
                    answer(group.members, &Err(Fault::Refused(reason)));
                }
                Err(SinkError::Refused(_)) => {
                    let second = group.members.split_off(group.members.len() / 2);
                    work.extend([second, group.members].map(|half| group_of(half, target)));
                }
                Err(SinkError::TableChanged(reason)) => {
                    answer(group.members, &Err(Fault::TableChanged(reason)));
                }
                Err(SinkError::Forbidden(reason)) => {
                    answer(group.members, &Err(Fault::Forbidden(reason)));
                }
                Err(error @ (SinkError::OtherRegistry | SinkError::OutcomeUnknown(_))) => {
                    answer(group.members, &Err(Fault::Unavailable(error.to_string())));
                }
                Err(SinkError::Unavailable(reason)) => {
                    self.again_later(group, reason, &mut work).await
                }
            }
        }
    }

    /// Appends a group. Returns the number of rows.
    async fn attempt<P: Payload>(
        &self,
        group: &Group<P>,
        joiner: &mut P::Joiner,
    ) -> Result<usize, SinkError> {
        let payloads: Vec<&P> = group.members.iter().map(|member| &member.payload).collect();
        let batch =
            P::encode(&payloads, joiner).map_err(|error| SinkError::Refused(error.to_string()))?;
        let mut rows = 0;
        let (mut digests, mut bodies, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for member in &group.members {
            let own = member.payload.rows();
            if let Some(digest) = member.digest {
                digests.push(digest);
                bodies.push(member.body);
                places.push((rows, own));
            }
            rows += own;
        }
        drop(payloads);
        self.metrics.batch_rows.observe(rows as f64);
        self.metrics.batch_bytes.observe(batch.len() as f64);
        let append = Append {
            level: self.level,
            target: group.target,
            batch,
            digests: &digests,
            bodies: &bodies,
            places: &places,
        };
        let started = clock::now();
        let result = self.sink.append(append).await;
        self.metrics.append_seconds[self.level.index()]
            .observe((clock::now() - started).as_secs_f64());
        result.map(|()| rows)
    }

    /// Acknowledges duplicates. They were committed at an unknown level, so they are confirmed at
    /// this level first. `applied`, and its subset `reused` whose requests had another body then,
    /// are indexes among the members with a digest.
    async fn acknowledge<P: Payload>(
        &self,
        mut group: Group<P>,
        (applied, reused): (&[usize], &[usize]),
        work: &mut Vec<Group<P>>,
        joiner: &mut P::Joiner,
    ) {
        let digests = group
            .members
            .iter()
            .filter(|member| member.digest.is_some())
            .count();
        if !applied.iter().any(|place| *place < digests) {
            let reason = "the database reports duplicates that are not in the batch".to_owned();
            return self.again_later(group, reason, work).await;
        }
        match self.sink.confirm(self.level).await {
            Ok(()) => {
                let mut rest = Vec::new();
                let mut place = 0;
                for member in group.members {
                    let has_digest = member.digest.is_some();
                    let is_repeated = has_digest && applied.contains(&place);
                    let is_reused = has_digest && reused.contains(&place);
                    place += usize::from(has_digest);
                    if is_reused {
                        answer(vec![member], &Err(Fault::KeyReused));
                    } else if is_repeated {
                        if let Err(error) = self.log_again(&member, group.target, joiner).await {
                            // The error concerns this member only: each of the others is logged
                            // separately.
                            answer(vec![member], &Err(fault(error)));
                            continue;
                        }
                        self.metrics.requests_repeated.inc();
                        answer(vec![member], &Ok(Stored::Before));
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

    /// Level `object` requires more of a duplicate than that its digest exists: it must be in the
    /// log.
    async fn log_again<P: Payload>(
        &self,
        member: &Member<P>,
        target: Target,
        joiner: &mut P::Joiner,
    ) -> Result<(), SinkError> {
        let (AckLevel::Object, Some(digest)) = (self.level, member.digest) else {
            return Ok(());
        };
        let batch = P::encode(&[&member.payload], joiner)
            .map_err(|error| SinkError::Refused(error.to_string()))?;
        let repeated = Repeated {
            target,
            digest,
            batch,
        };
        self.sink.log_again(repeated).await
    }

    async fn again_later<P: Payload>(
        &self,
        mut group: Group<P>,
        reason: String,
        work: &mut Vec<Group<P>>,
    ) {
        if group.backoff.wait().await {
            work.push(group);
        } else {
            answer(group.members, &Err(Fault::Unavailable(reason)));
        }
    }
}

fn fault(error: SinkError) -> Fault {
    match error {
        SinkError::Refused(reason) => Fault::Refused(reason),
        SinkError::Forbidden(reason) => Fault::Forbidden(reason),
        SinkError::TableChanged(reason) => Fault::TableChanged(reason),
        error => Fault::Unavailable(error.to_string()),
    }
}

fn answer<P>(members: Vec<Member<P>>, outcome: &Outcome) {
    members
        .into_iter()
        .for_each(|member| member.answer(outcome));
}

fn group_of<P>(members: Vec<Member<P>>, target: Target) -> Group<P> {
    let deadline = members
        .iter()
        .flat_map(|member| &member.waiters)
        .map(|waiter| waiter.deadline)
        .max();
    Group {
        members,
        target,
        backoff: Backoff::new(deadline.unwrap_or_else(clock::now)),
    }
}

/// Arranges requests in groups. The last group is sent first.
fn join<P>(mut requests: Vec<Pending<P>>, target: Target) -> Vec<Group<P>> {
    let mut groups = Vec::new();
    while !requests.is_empty() {
        let (members, others) = join_equal(requests);
        groups.push(group_of(members, target));
        requests = others;
    }
    groups.reverse();
    groups
}

/// Merges requests into members of one group. Also returns the requests whose digest occurs in the
/// group with another body.
fn join_equal<P>(requests: Vec<Pending<P>>) -> (Vec<Member<P>>, Vec<Pending<P>>) {
    let mut places: HashMap<Digest, usize> = HashMap::new();
    let mut members: Vec<Member<P>> = Vec::with_capacity(requests.len());
    let mut others = Vec::new();
    for request in requests {
        let known = request.digest.and_then(|digest| places.get(&digest));
        if known.is_some_and(|&place| members[place].body != request.body) {
            others.push(request);
            continue;
        }
        let waiter = Waiter {
            reply: request.reply,
            deadline: request.deadline,
            _reservation: request.reservation,
        };
        match known {
            Some(&place) => members[place].waiters.push(waiter),
            None => {
                if let Some(digest) = request.digest {
                    places.insert(digest, members.len());
                }
                members.push(Member {
                    digest: request.digest,
                    body: request.body,
                    payload: request.payload,
                    waiters: vec![waiter],
                });
            }
        }
    }
    (members, others)
}

/// Drops requests that nobody waits for. Nothing was promised, and their senders will repeat them.
fn drop_abandoned<P>(members: &mut Vec<Member<P>>) {
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
