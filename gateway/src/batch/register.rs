//! Registration of new series in bulk. A single task makes one call at a time, so requests that
//! contain the same new series at the same time cost one call.

use std::sync::Arc;

use hashbrown::HashTable;
use tokio::sync::{mpsc, oneshot};

use super::limited::register_limited;
use crate::clock::{self, Instant};
use crate::deliver::{Backoff, Sink, SinkError};
use crate::model::{Fault, Reservation};
use crate::quota::Quota;
use crate::quota::limits::Limit;
use crate::series::{LabelSet, SeriesCache, SeriesId, SeriesMetrics};

/// The maximum number of label sets in one call: enough to spread the cost of a transaction, and
/// few enough that the following calls do not wait long.
const CALL_LABEL_SETS_MAX: usize = 20_000;
/// The number of label sets from which on no further waiting jobs are added to a round.
const ROUND_LABEL_SETS_MAX: usize = 20_000;

/// A series that the cache does not contain.
#[derive(Debug, PartialEq, Eq)]
pub struct UnknownSeries {
    /// The label set to register.
    pub label_set: LabelSet,
    /// The label bytes as sent, if they are not canonical. They become a second key of the cache.
    pub alias: Option<Box<[u8]>>,
}

impl UnknownSeries {
    /// The bytes of its label sets.
    pub fn heap_bytes(&self) -> usize {
        let alias = self.alias.as_ref().map_or(0, |alias| alias.len());
        self.label_set.heap_bytes() + alias
    }

    /// The label bytes as sent.
    pub fn sent_bytes(&self) -> &[u8] {
        self.alias.as_deref().unwrap_or(&self.label_set.bytes)
    }
}

/// The unknown series of one request.
#[derive(Debug)]
pub struct RegisterJob {
    /// The series to register.
    pub series: Vec<UnknownSeries>,
    /// The cache generation of the request.
    pub generation: u64,
    /// The value of [`SeriesCache::registrations`] before the series were looked up.
    pub registrations: u64,
    /// The time after which nobody waits for the ids.
    pub deadline: Instant,
    /// The limits of the user, if it has limits of series.
    pub quota: Option<Quota>,
    /// The memory of the request, of which `series` is a part. The job holds it because the request
    /// may be abandoned while the job waits.
    pub reservation: Reservation,
    /// Receives the ids.
    pub reply: oneshot::Sender<Result<RegisteredSeries, Fault>>,
}

/// The result of a job.
#[derive(Debug)]
pub struct RegisteredSeries {
    /// The ids, in the order of the job's series; 0 for a series that is refused.
    pub ids: Vec<SeriesId>,
    /// The indexes of refused series in ascending order, and the limits that they exceed.
    pub refused: Vec<(usize, Limit)>,
    /// The reservation of the job.
    pub reservation: Reservation,
}

impl RegisterJob {
    /// Whether a request still waits for the ids.
    fn is_awaited(&self) -> bool {
        !self.reply.is_closed()
    }

    fn answer(self, answer: JobAnswer) {
        let reservation = self.reservation;
        // The series are dropped while the reservation still covers them.
        drop(self.series);
        let registered = answer.map(|Answer { ids, refused }| RegisteredSeries {
            ids,
            refused,
            reservation,
        });
        // An abandoned request needs no ids.
        let _ = self.reply.send(registered);
    }
}

/// Serves jobs until all senders are gone.
pub async fn run<S: Sink>(
    mut jobs: mpsc::Receiver<RegisterJob>,
    sink: Arc<S>,
    cache: Arc<SeriesCache>,
    metrics: Arc<SeriesMetrics>,
) {
    while let Some(job) = jobs.recv().await {
        let mut label_sets = job.series.len();
        let mut round = vec![job];
        while label_sets < ROUND_LABEL_SETS_MAX
            && let Ok(job) = jobs.try_recv()
        {
            if job.is_awaited() {
                label_sets += job.series.len();
                round.push(job);
            }
        }
        round.retain(RegisterJob::is_awaited);
        let (limited, others): (Vec<_>, Vec<_>) =
            round.into_iter().partition(|job| job.quota.is_some());
        if !others.is_empty() {
            serve(others, &*sink, &cache, &metrics).await;
        }
        for mut job in limited {
            if let Some(quota) = job.quota.take() {
                let answer = register_limited(&job, &quota, &*sink, &cache, &metrics);
                let answer = answer.await;
                job.answer(answer);
            }
        }
    }
}

async fn serve<S: Sink>(
    mut round: Vec<RegisterJob>,
    sink: &S,
    cache: &SeriesCache,
    metrics: &SeriesMetrics,
) {
    match register_round(&round, sink, cache, metrics).await {
        Ok(ids) => {
            for (job, ids) in round.into_iter().zip(ids) {
                job.answer(ids);
            }
        }
        // The label sets of at least one job are refused. Each job is retried alone to find out
        // which.
        Err(Fault::Refused(_)) if round.len() > 1 => {
            for job in round {
                let alone = vec![job];
                match register_round(&alone, sink, cache, metrics).await {
                    Ok(ids) => {
                        for (job, ids) in alone.into_iter().zip(ids) {
                            job.answer(ids);
                        }
                    }
                    Err(fault) => alone
                        .into_iter()
                        .for_each(|job| job.answer(Err(fault.clone()))),
                }
            }
        }
        Err(fault) => round
            .drain(..)
            .for_each(|job| job.answer(Err(fault.clone()))),
    }
}

/// The ids of a job's series, and the series that are refused.
pub(super) struct Answer {
    pub(super) ids: Vec<SeriesId>,
    pub(super) refused: Vec<(usize, Limit)>,
}

type JobAnswer = Result<Answer, Fault>;

/// The distinct label sets of a round.
#[derive(Default)]
pub(super) struct WantedSets<'a> {
    pub(super) sets: Vec<&'a LabelSet>,
    /// Hashes, and indexes into `sets`.
    places: HashTable<(u64, usize)>,
}

impl<'a> WantedSets<'a> {
    /// Returns the index of a label set with this hash, and adds the label set if it is missing.
    fn place(&mut self, set: &'a LabelSet, hash: u64) -> usize {
        let sets = &self.sets;
        let found = self
            .places
            .find(hash, |(_, place)| sets[*place].bytes == set.bytes);
        if let Some((_, place)) = found {
            return *place;
        }
        let place = self.sets.len();
        self.sets.push(set);
        self.places
            .insert_unique(hash, (hash, place), |(hash, _)| *hash);
        place
    }
}

/// The source of the id of a series in a round.
#[derive(Clone, Copy)]
pub(super) enum Source {
    /// The cache: an earlier job has registered the series.
    Cache(SeriesId),
    /// The database: the index among the wanted label sets.
    Wanted(usize),
}

impl Source {
    /// Returns the index among the wanted label sets.
    pub(super) fn wanted(self) -> Option<usize> {
        match self {
            Self::Cache(_) => None,
            Self::Wanted(place) => Some(place),
        }
    }
}

/// Returns the sources of the ids of all jobs, and the label sets that the database is asked for.
pub(super) fn sources<'a>(
    round: &'a [RegisterJob],
    cache: &SeriesCache,
) -> (WantedSets<'a>, Vec<Source>) {
    let generation = cache.generation();
    let registrations = cache.registrations();
    let mut wanted = WantedSets::default();
    let mut sources: Vec<Source> = Vec::new();
    for job in round {
        // If nothing has been registered since the request looked its series up, the cache still
        // does not contain them.
        let is_late = job.registrations != registrations;
        for series in &job.series {
            let known = match is_late {
                true => cache.find(generation, &series.label_set.bytes),
                false => None,
            };
            sources.push(match known {
                Some(id) => Source::Cache(id),
                None => {
                    let label_set = &series.label_set;
                    Source::Wanted(wanted.place(label_set, cache.hash(&label_set.bytes)))
                }
            });
        }
    }
    (wanted, sources)
}

/// Registers the label sets of all jobs. Returns an answer for each job, or a fault of the whole
/// round.
async fn register_round<S: Sink>(
    round: &[RegisterJob],
    sink: &S,
    cache: &SeriesCache,
    metrics: &SeriesMetrics,
) -> Result<Vec<JobAnswer>, Fault> {
    let generation = cache.generation();
    let (wanted, sources) = sources(round, cache);
    let deadline = round
        .iter()
        .map(|job| job.deadline)
        .max()
        .unwrap_or_else(clock::now);
    let ids = register(&wanted.sets, generation, deadline, sink, cache, metrics).await?;
    let mut sources = &sources[..];
    let answers = round.iter().map(|job| {
        // The sources are consumed whatever the answer is.
        let (of_job, others) = sources.split_at(job.series.len());
        sources = others;
        answer_of(job, of_job, &ids, cache, generation)
    });
    Ok(answers.collect())
}

/// Returns the answer to a job from the ids of the wanted label sets, of which 0 is none.
pub(super) fn answer_of(
    job: &RegisterJob,
    sources: &[Source],
    ids: &[SeriesId],
    cache: &SeriesCache,
    generation: u64,
) -> JobAnswer {
    if job.generation != generation {
        return Err(registry_changed());
    }
    let mut answer = Vec::with_capacity(job.series.len());
    for (series, source) in job.series.iter().zip(sources) {
        let id = match source {
            Source::Cache(id) => *id,
            Source::Wanted(place) => ids[*place],
        };
        if let Some(alias) = &series.alias
            && id != 0
        {
            cache.insert(generation, alias, id);
        }
        answer.push(id);
    }
    Ok(Answer {
        ids: answer,
        refused: Vec::new(),
    })
}

/// Registers distinct label sets, and adds them to the cache. Returns their ids.
pub(super) async fn register<S: Sink>(
    label_sets: &[&LabelSet],
    generation: u64,
    deadline: Instant,
    sink: &S,
    cache: &SeriesCache,
    metrics: &SeriesMetrics,
) -> Result<Vec<SeriesId>, Fault> {
    let call = Call::Register(metrics);
    call_all(call, label_sets, generation, deadline, sink, cache).await
}

/// A question to the database about label sets.
#[derive(Clone, Copy)]
pub(super) enum Call<'a> {
    /// The ids of label sets, of which others are registered and counted.
    Register(&'a SeriesMetrics),
    /// The ids of label sets; 0 for those that are not registered.
    LookUp,
}

/// Makes the calls for distinct label sets, and adds what is registered to the cache. Returns their
/// ids.
pub(super) async fn call_all<S: Sink>(
    call: Call<'_>,
    label_sets: &[&LabelSet],
    generation: u64,
    deadline: Instant,
    sink: &S,
    cache: &SeriesCache,
) -> Result<Vec<SeriesId>, Fault> {
    let mut ids: Vec<SeriesId> = Vec::with_capacity(label_sets.len());
    for some in label_sets.chunks(CALL_LABEL_SETS_MAX) {
        let found = call_until(call, some, sink, deadline).await?;
        if found.generation != generation {
            return Err(registry_changed());
        }
        if let Call::Register(metrics) = call {
            metrics.registered.inc_by(some.len() as u64);
        }
        for (label_set, id) in some.iter().zip(&found.ids).filter(|(_, id)| **id != 0) {
            cache.insert(generation, &label_set.bytes, *id);
        }
        ids.extend(found.ids);
        cache.note_registration();
    }
    Ok(ids)
}

pub(super) fn registry_changed() -> Fault {
    Fault::Unavailable("the series registry has changed; send the request again".to_owned())
}

async fn call_until<S: Sink>(
    call: Call<'_>,
    label_sets: &[&LabelSet],
    sink: &S,
    deadline: Instant,
) -> Result<crate::deliver::Registered, Fault> {
    let mut backoff = Backoff::new(deadline);
    loop {
        let found = match call {
            Call::Register(_) => sink.register(label_sets).await,
            Call::LookUp => sink.look_up(label_sets).await,
        };
        match found {
            Ok(found) if found.ids.len() == label_sets.len() => return Ok(found),
            Ok(found) => {
                let (wanted, received) = (label_sets.len(), found.ids.len());
                return Err(Fault::Unavailable(format!(
                    "requested {wanted} series ids, received {received}"
                )));
            }
            Err(SinkError::Refused(reason)) => return Err(Fault::Refused(reason)),
            Err(error) => {
                if !backoff.wait().await {
                    return Err(Fault::Unavailable(error.to_string()));
                }
            }
        }
    }
}
