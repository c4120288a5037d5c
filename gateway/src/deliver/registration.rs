//! Label sets to ids: registered series are looked up, new ones are registered.
//!
//! ```text
//! catch up: add to the index what others have registered since:
//!     hashes where the database stores them, then label sets
//! candidates := ids from the index for each label set
//! confirm them in the database, which has the labels;
//!     also look there for series that the index had no room for
//! the rest is new if nothing has been registered meanwhile: register it after the last known id
//!     -> otherwise begin again
//! ```
//!
//! The database decides the last step under its lock (`lanes.register_series`), so gateways that
//! register the same series at the same time get the same id. A call whose outcome is unknown is
//! harmless: the next one catches up with whatever it did.

use lanes_labels::hash_block;
use xxhash_rust::xxh3::xxh3_64;

use super::call_error::CallError;
use super::sink::SinkError;
use crate::series::label_json::bytes_of_stored;
use crate::series::{LabelSet, SeriesCache, SeriesId, SeriesIndex};

/// New series of one metric. They get consecutive ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesRun<'a> {
    /// The metric.
    pub metric: &'a str,
    /// The canonical labels of each series, as JSON.
    pub labels: Vec<&'a str>,
}

/// Registered series, as stored in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRun {
    /// The id of the first series.
    pub first_id: SeriesId,
    /// The metric.
    pub metric: String,
    /// The canonical labels of each series, as JSON.
    pub labels: Vec<String>,
}

/// Hashes of series, as stored in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredHashes {
    /// The last id that they cover.
    pub last_id: SeriesId,
    /// The seed of the hashes.
    pub seed: u64,
    /// A block in the format of [`lanes_labels::hash_block`].
    pub block: Vec<u8>,
}

/// The calls of registration to a database.
pub trait RegistryCalls {
    /// Returns the last assigned id.
    fn last_id(&self) -> impl Future<Output = Result<SeriesId, CallError>> + Send;

    /// Returns some hashes of series beyond `id`, in order of ids and without gaps; nothing if
    /// there are no more.
    fn hashes_beyond(
        &self,
        id: SeriesId,
    ) -> impl Future<Output = Result<Vec<StoredHashes>, CallError>> + Send;

    /// Returns the whole runs that contain the first of `ids`, which are in order. The number of
    /// series is bounded.
    fn runs_of(
        &self,
        ids: &[SeriesId],
    ) -> impl Future<Output = Result<Vec<StoredRun>, CallError>> + Send;

    /// Returns some runs that begin beyond `id`, in order of ids; nothing if there are no more.
    fn runs_beyond(
        &self,
        id: SeriesId,
    ) -> impl Future<Output = Result<Vec<StoredRun>, CallError>> + Send;

    /// Returns the id, metric and labels of those `ids` that exist.
    fn series_of(
        &self,
        ids: &[SeriesId],
    ) -> impl Future<Output = Result<Vec<(SeriesId, String, String)>, CallError>> + Send;

    /// Returns the indexes and ids of those `wanted` that are registered with ids beyond `id`.
    fn find_beyond(
        &self,
        id: SeriesId,
        wanted: &[&LabelSet],
    ) -> impl Future<Output = Result<Vec<(usize, SeriesId)>, CallError>> + Send;

    /// Registers runs if no ids beyond `known_to` have been assigned. Returns the first new id.
    fn register_runs(
        &self,
        known_to: SeriesId,
        runs: &[SeriesRun<'_>],
    ) -> impl Future<Output = Result<Option<SeriesId>, CallError>> + Send;
}

/// The maximum number of series in one run. A run is read whole, even for one of its series.
const RUN_SERIES_MAX: usize = 256;
/// The maximum bytes of the labels in one run, unless a single series has more. See
/// [`RegistryCalls::runs_beyond`].
const RUN_BYTES_MAX: usize = 1 << 20;
/// The maximum number of new metrics in one call. Each creates a view, and the views of one
/// transaction use up PostgreSQL's lock table.
const CALL_METRICS_MAX: usize = 1000;
/// The maximum number of series confirmed in one call.
const CONFIRMED_MAX: usize = 10_000;
/// How many series the index must lack before hashes are read. Fewer series are read as quickly by
/// their label sets, and are rarely hashed yet.
const HASHED_MIN: SeriesId = 1000;
/// How often other gateways may register first before the sender is asked to repeat the request.
const ATTEMPTS_MAX: usize = 20;

/// The treatment of label sets that are not registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unregistered {
    /// Unknown label sets are registered.
    Register,
    /// Unknown label sets get the id 0.
    Leave,
}

/// Returns the ids of distinct label sets, in their order. Label sets read on the way are added to
/// `cache` while it has room.
///
/// # Errors
/// Returns an error of a call. Series registered until then remain, and the next attempt finds
/// them.
pub async fn ids(
    calls: &impl RegistryCalls,
    index: &mut SeriesIndex,
    generation: u64,
    label_sets: &[&LabelSet],
    cache: &SeriesCache,
    unregistered: Unregistered,
) -> Result<Vec<SeriesId>, CallError> {
    index.begin(generation);
    let mut ids: Vec<SeriesId> = vec![0; label_sets.len()];
    let mut unknown = by_metric(label_sets);
    for _ in 0..ATTEMPTS_MAX {
        // This comes before the runs are read: everything committed by now is then read with them.
        let last_id = calls.last_id().await?;
        catch_up(calls, index, cache, generation, last_id).await?;
        find(calls, index, cache, label_sets, &mut unknown, &mut ids).await?;
        if unregistered == Unregistered::Leave
            || register_new(calls, index, label_sets, &mut unknown, &mut ids).await?
        {
            return Ok(ids);
        }
    }
    Err(CallError {
        error: SinkError::Unavailable(
            "other gateways register series continuously; send the request again".to_owned(),
        ),
        kind: "registration".to_owned(),
        is_session_good: true,
    })
}

/// Returns the indexes of the label sets, grouped by metric, and in their order within a metric.
fn by_metric(label_sets: &[&LabelSet]) -> Vec<usize> {
    // Sorting by hash is quicker than by name. Metrics with the same hash are only split into more
    // runs.
    let mut places: Vec<(u64, usize)> = label_sets
        .iter()
        .enumerate()
        .map(|(place, set)| (xxh3_64(set.metric.as_bytes()), place))
        .collect();
    places.sort_unstable();
    places.into_iter().map(|(_, place)| place).collect()
}

async fn catch_up(
    calls: &impl RegistryCalls,
    index: &mut SeriesIndex,
    cache: &SeriesCache,
    generation: u64,
    last_id: SeriesId,
) -> Result<(), CallError> {
    if last_id < index.known_to() {
        // The counter is behind ids that were in use: a backup was restored together with the
        // identity that it was taken under.
        tracing::warn!(
            last_id,
            known_to = index.known_to(),
            "the registry's last series id has decreased; all cached series ids are dropped"
        );
        cache.begin_generation();
        return Err(CallError {
            error: SinkError::OtherRegistry,
            kind: "registry".to_owned(),
            is_session_good: false,
        });
    }
    // Log this only at the start, and not when other gateways register series later.
    let is_first = index.known_to() == 0;
    if is_first && last_id > 0 || last_id - index.known_to() >= HASHED_MIN {
        take_hashes(calls, index).await?;
    }
    let mut by_label_sets = 0;
    while index.known_to() < last_id {
        let runs = calls.runs_beyond(index.known_to()).await?;
        if runs.is_empty() {
            break;
        }
        for run in &runs {
            index.extend(
                run.first_id,
                &run.metric,
                run.labels.iter().map(String::as_str),
            );
            if is_first {
                remember(cache, generation, run);
            }
            by_label_sets += run.labels.len();
        }
    }
    if is_first && last_id > 0 {
        tracing::info!(last_id, by_label_sets, "all registered series are indexed");
    }
    index.advance(last_id);
    cache.note_index_bytes(index.bytes());
    Ok(())
}

/// Reads the hashes that the database stores of series beyond the known ones. The index stops where
/// the first unusable block begins, and continues there with label sets.
async fn take_hashes(calls: &impl RegistryCalls, index: &mut SeriesIndex) -> Result<(), CallError> {
    loop {
        let blocks = calls.hashes_beyond(index.known_to()).await?;
        if blocks.is_empty() {
            return Ok(());
        }
        for block in blocks {
            let spans = match hash_block::spans(&block.block, block.seed) {
                Ok(spans) if index.takes_seed(block.seed) => spans,
                Ok(_) => return Ok(()),
                Err(failure) => {
                    let last_id = block.last_id;
                    tracing::warn!(
                        last_id,
                        "lanes.series_hashes cannot be used, so label sets are read instead ({failure}); after TRUNCATE \
                         lanes.series_hashes it is made anew"
                    );
                    return Ok(());
                }
            };
            let known_to = index.known_to();
            for span in spans {
                let Ok(first_id) = SeriesId::try_from(span.first_id) else {
                    return Ok(());
                };
                // A block may have grown since the previous one was read.
                let known = usize::try_from(known_to - first_id + 1).unwrap_or(0);
                let hashes = span.hashes();
                if known < hashes.len() {
                    let first_id = first_id.max(known_to + 1);
                    index.extend_hashes(first_id, hashes.skip(known));
                }
            }
            index.advance(block.last_id);
        }
    }
}

/// Adds the series of a run to the cache.
fn remember(cache: &SeriesCache, generation: u64, run: &StoredRun) {
    for (id, labels) in (run.first_id..).zip(&run.labels) {
        if let Some(bytes) = bytes_of_stored(&run.metric, labels) {
            cache.insert(generation, &bytes, id);
        }
    }
}

/// Moves registered series from `unknown` to `ids`.
async fn find(
    calls: &impl RegistryCalls,
    index: &SeriesIndex,
    cache: &SeriesCache,
    label_sets: &[&LabelSet],
    unknown: &mut Vec<usize>,
    ids: &mut [SeriesId],
) -> Result<(), CallError> {
    let mut candidates: Vec<(SeriesId, usize)> = Vec::new();
    for place in &*unknown {
        let set = label_sets[*place];
        let found = index.candidates(&set.metric, &set.labels_json);
        candidates.extend(found.map(|id| (id, *place)));
    }
    candidates.sort_unstable();
    let confirm = |id: SeriesId, metric: &str, labels: &str, ids: &mut [SeriesId]| {
        let first = candidates.partition_point(|(candidate, _)| *candidate < id);
        let of_id = candidates[first..].iter();
        for (_, place) in of_id.take_while(|(other, _)| *other == id) {
            let set = label_sets[*place];
            if set.metric == metric && set.labels_json == labels {
                ids[*place] = id;
            }
        }
    };
    let mut asked: Vec<SeriesId> = candidates.iter().map(|(id, _)| *id).collect();
    asked.dedup();
    let mut asked = &asked[..];
    if !asked.is_empty() && cache.has_room() {
        // Series that were registered together are mostly sent together: after a start, the next
        // requests need the others.
        let some = &asked[..asked.len().min(CONFIRMED_MAX)];
        for run in calls.runs_of(some).await? {
            for (id, labels) in (run.first_id..).zip(&run.labels) {
                confirm(id, &run.metric, labels, ids);
            }
            remember(cache, index.generation(), &run);
            let end = run.first_id + run.labels.len() as SeriesId;
            asked = &asked[asked.partition_point(|id| *id < end)..];
        }
    }
    for some in asked.chunks(CONFIRMED_MAX) {
        for (id, metric, labels) in calls.series_of(some).await? {
            confirm(id, &metric, &labels, ids);
        }
    }
    unknown.retain(|place| ids[*place] == 0);
    if index.indexed_to() < index.known_to() && !unknown.is_empty() {
        let wanted: Vec<&LabelSet> = unknown.iter().map(|place| label_sets[*place]).collect();
        for (nth, id) in calls.find_beyond(index.indexed_to(), &wanted).await? {
            if let Some(place) = unknown.get(nth) {
                ids[*place] = id;
            }
        }
        unknown.retain(|place| ids[*place] == 0);
    }
    Ok(())
}

/// Registers `unknown`, which is ordered by metric. Returns `false` if another gateway registered
/// series first.
async fn register_new(
    calls: &impl RegistryCalls,
    index: &mut SeriesIndex,
    label_sets: &[&LabelSet],
    unknown: &mut Vec<usize>,
    ids: &mut [SeriesId],
) -> Result<bool, CallError> {
    while !unknown.is_empty() {
        let (runs, series) = runs_of_call(label_sets, unknown);
        let Some(first_id) = calls.register_runs(index.known_to(), &runs).await? else {
            return Ok(false);
        };
        let mut id = first_id;
        for run in &runs {
            index.extend(id, run.metric, run.labels.iter().copied());
            // The database has counted them in 32 bits.
            id += run.labels.len() as SeriesId;
        }
        for (id, place) in (first_id..id).zip(unknown.drain(..series)) {
            ids[place] = id;
        }
    }
    Ok(true)
}

/// Returns runs of as many label sets from the front as one call accepts, and the number of these
/// label sets.
fn runs_of_call<'a>(label_sets: &[&'a LabelSet], places: &[usize]) -> (Vec<SeriesRun<'a>>, usize) {
    let mut runs: Vec<SeriesRun<'a>> = Vec::new();
    let (mut metrics, mut run_bytes) = (0, 0);
    for (nth, place) in places.iter().enumerate() {
        let set = label_sets[*place];
        let same_metric = runs.last().is_some_and(|run| run.metric == set.metric);
        run_bytes += set.labels_json.len();
        match runs.last_mut() {
            Some(run)
                if same_metric
                    && run.labels.len() < RUN_SERIES_MAX
                    && run_bytes <= RUN_BYTES_MAX =>
            {
                run.labels.push(&set.labels_json);
                continue;
            }
            _ => {}
        }
        metrics += usize::from(!same_metric);
        if metrics > CALL_METRICS_MAX {
            return (runs, nth);
        }
        run_bytes = set.labels_json.len();
        runs.push(SeriesRun {
            metric: &set.metric,
            labels: vec![&set.labels_json],
        });
    }
    (runs, places.len())
}

#[cfg(test)]
#[path = "registration_tests.rs"]
mod tests;
