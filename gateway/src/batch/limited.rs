//! Registration of the series of a user that has limits. It first looks up which series are
//! registered: these are always stored, and only others count as new.
//!
//! Each such job is served alone, so that its limits see the series of the jobs before.

use super::register::{
    Answer, Call, RegisterJob, WantedSets, answer_of, call_all, register, registry_changed, sources,
};
use crate::deliver::Sink;
use crate::model::Fault;
use crate::quota::Quota;
use crate::series::{LabelSet, SeriesCache, SeriesMetrics};

/// Registers the series that the limits of a job allow.
///
/// # Errors
/// Returns the fault of a call.
pub(super) async fn register_limited<S: Sink>(
    job: &RegisterJob,
    quota: &Quota,
    sink: &S,
    cache: &SeriesCache,
    metrics: &SeriesMetrics,
) -> Result<Answer, Fault> {
    let generation = cache.generation();
    let (WantedSets { sets, .. }, sources) = sources(std::slice::from_ref(job), cache);
    let deadline = job.deadline;
    let mut ids = call_all(Call::LookUp, &sets, generation, deadline, sink, cache).await?;
    if job.generation != generation {
        return Err(registry_changed());
    }
    let refused = quota.admit(&sets, &ids);
    let is_refused = |place: &usize| {
        let found = refused.binary_search_by_key(place, |(place, _)| *place);
        found.is_ok()
    };
    let new: Vec<usize> = (0..sets.len())
        .filter(|place| ids[*place] == 0 && !is_refused(place))
        .collect();
    let new_sets: Vec<&LabelSet> = new.iter().map(|place| sets[*place]).collect();
    let new_ids = register(&new_sets, generation, deadline, sink, cache, metrics).await?;
    for (place, id) in new.into_iter().zip(new_ids) {
        ids[place] = id;
    }
    quota.note_series(ids.iter().copied().filter(|id| *id != 0));
    let mut answer = answer_of(job, &sources, &ids, cache, generation)?;
    answer.refused = sources
        .iter()
        .enumerate()
        .filter_map(|(series, source)| {
            let place = source.wanted()?;
            let found = refused.binary_search_by_key(&place, |(place, _)| *place);
            Some((series, refused.get(found.ok()?)?.1))
        })
        .collect();
    Ok(answer)
}
