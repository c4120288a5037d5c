//! A decompressed request to rows: each sample with the id of its series, where the id is known; label sets to register, where not.
//!
//! What is refused: broken protobuf and text that is not UTF-8 refuse the request, as nothing in it can be trusted. A series or sample
//! that is well-formed but not legal is refused alone, the rest is stored, and the answer is 400 with the first reason: senders do not
//! repeat a request answered with 400, so refusing good series together with a bad one would lose them.

use hashbrown::HashTable;
use thiserror::Error;

use super::decode::{DecodeError, Sample, Scratch, WriteRequest};
use super::label_set::{LabelError, LabelFault, LabelLimits, LabelSet};
use crate::batch::{Rows, SeriesCache, SeriesId};

/// First and last millisecond that both PostgreSQL's timestamptz (from 4714 BC) and microseconds in 64 bits can hold.
pub const TIMESTAMP_MS_RANGE: std::ops::RangeInclusive<i64> =
    -210_866_803_200_000..=i64::MAX / 1000;

/// Why nothing of a request is taken.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum MalformedRequest {
    /// Not a write request.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// Labels are not protobuf or not text.
    #[error(transparent)]
    Label(LabelError),
}

/// Bounds of a request.
#[derive(Debug, Clone, Copy)]
pub struct RequestLimits {
    /// Samples.
    pub samples_max: usize,
    /// Label sets.
    pub label: LabelLimits,
}

/// What of a request is not stored, and why.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// Series refused for their labels.
    pub series: usize,
    /// Samples refused, those of refused series included.
    pub samples: usize,
    /// Native histogram samples, which are not supported.
    pub histograms: usize,
    /// The first reason.
    pub reason: Option<String>,
}

impl Refused {
    fn because(&mut self, reason: impl FnOnce() -> String) {
        if self.reason.is_none() {
            self.reason = Some(reason());
        }
    }

    /// Whether all was taken.
    pub fn is_nothing(&self) -> bool {
        self.series == 0 && self.samples == 0 && self.histograms == 0
    }
}

/// A series that the cache does not know.
#[derive(Debug, PartialEq, Eq)]
pub struct UnknownSeries {
    /// What to register.
    pub label_set: LabelSet,
    /// Its label bytes as sent, where they are not the canonical ones: a second cache key.
    pub alias: Option<Box<[u8]>>,
}

/// A request after decoding.
#[derive(Debug)]
pub struct Resolved {
    /// Rows to append. Until [`Resolved::fill_in`], a row of unknown series `n` has the id `-1 - n`.
    pub rows: Rows,
    /// Series to register first.
    pub unknown: Vec<UnknownSeries>,
    /// The cache generation that the ids belong to.
    pub generation: u64,
    /// [`SeriesCache::registrations`] before the first series was looked up.
    pub registrations: u64,
    /// What is not stored.
    pub refused: Refused,
    /// Exemplars, which are not stored and of which senders expect nothing.
    pub exemplars: usize,
    /// Metadata entries, likewise.
    pub metadata: usize,
}

impl Resolved {
    /// Bytes held until the request is answered.
    pub fn heap_bytes(&self) -> usize {
        let unknown: usize = self
            .unknown
            .iter()
            .map(|series| {
                series.label_set.heap_bytes() + series.alias.as_ref().map_or(0, |alias| alias.len())
            })
            .sum();
        self.rows.heap_bytes() + unknown
    }

    /// Puts the ids of the unknown series, now registered, into the rows.
    pub fn fill_in(&mut self, ids: &[SeriesId]) {
        for series in &mut self.rows.series {
            if *series < 0 {
                *series = ids[(-1 - *series) as usize];
            }
        }
    }
}

/// Most bytes that decompressing and decoding a body of `declared_bytes` hold together, the decompressed body included.
///
/// | what of the body | holds at most |
/// |---|---|
/// | a byte, of whatever | 12 bytes: itself; in labels 3 in the scratch, whose buffers double, 1 each as canonical bytes and as alias, 6 as JSON, of a control character |
/// | a sample, of 2 bytes or more | 80 bytes: 16 in the scratch and 20 in the rows, all doubling |
/// | a series to register, of 17 bytes or more and a sample | 496 bytes: its place in a vector and a table, both doubling, and five allocations |
/// | all labels of one series | 512 bytes each, while looked into |
///
/// A byte is in a sample (1 + 80 / 2 bytes) or in a series (12 + 496 / 17 bytes), hence 42 for each; where samples are bounded lower,
/// 12 for each and the rest for each sample.
pub fn decoding_bytes_max(declared_bytes: usize, limits: &RequestLimits) -> usize {
    const BYTE_BYTES: usize = 12;
    const DENSE_BYTE_BYTES: usize = 42;
    const SAMPLE_AND_SERIES_BYTES: usize = 80 + 496;
    const LABEL_BYTES: usize = 512;
    let dense = declared_bytes.saturating_mul(DENSE_BYTE_BYTES);
    let sparse = declared_bytes
        .saturating_mul(BYTE_BYTES)
        .saturating_add(limits.samples_max.saturating_mul(SAMPLE_AND_SERIES_BYTES));
    let label = limits.label.labels_max.saturating_mul(LABEL_BYTES);
    dense.min(sparse).saturating_add(label)
}

/// Decodes `body` and looks its series up.
///
/// # Errors
/// [`MalformedRequest`]: nothing of it may be stored.
pub fn resolve(
    body: &[u8],
    limits: &RequestLimits,
    cache: &SeriesCache,
) -> Result<Resolved, MalformedRequest> {
    let mut resolved = Resolved {
        rows: Rows::default(),
        unknown: Vec::new(),
        generation: cache.generation(),
        registrations: cache.registrations(),
        refused: Refused::default(),
        exemplars: 0,
        metadata: 0,
    };
    let mut unknown_places = UnknownPlaces::default();
    let mut scratch = Scratch::default();
    let mut request = WriteRequest::new(body, limits.samples_max);
    while let Some(series) = request.next_series(&mut scratch)? {
        resolved.exemplars += series.exemplars;
        let id = match cache.find(resolved.generation, series.label_bytes) {
            Some(id) => id,
            None => match look_into(
                series.label_bytes,
                has_legal_sample(series.samples),
                limits,
                cache,
                &mut resolved,
                &mut unknown_places,
            ) {
                Ok(id) => id,
                Err(LabelError::Refused(fault)) => {
                    refuse_series(
                        &mut resolved.refused,
                        series.samples.len() + series.histograms,
                        &fault,
                    );
                    continue;
                }
                Err(malformed) => return Err(MalformedRequest::Label(malformed)),
            },
        };
        if series.histograms > 0 {
            resolved.refused.histograms += series.histograms;
            resolved
                .refused
                .because(|| "native histograms are not supported".to_owned());
        }
        push_samples(&mut resolved, id, series.samples);
    }
    resolved.metadata = request.metadata();
    Ok(resolved)
}

/// Label bytes met in this request that the cache does not know, to their place in `Resolved::unknown`: Prometheus repeats the labels
/// for each sample of a series.
#[derive(Default)]
struct UnknownPlaces {
    /// Hash of the label bytes as sent, and place.
    table: HashTable<(u64, usize)>,
}

impl UnknownSeries {
    /// Its label bytes as sent.
    fn sent_bytes(&self) -> &[u8] {
        self.alias.as_deref().unwrap_or(&self.label_set.bytes)
    }
}

/// What a row of an unknown series has for an id.
fn provisional_id(place: usize) -> SeriesId {
    // At most one unknown series a sample, and samples are bounded far below this.
    -1 - SeriesId::try_from(place).unwrap_or(SeriesId::MAX - 1)
}

fn look_into(
    label_bytes: &[u8],
    is_of_consequence: bool,
    limits: &RequestLimits,
    cache: &SeriesCache,
    resolved: &mut Resolved,
    places: &mut UnknownPlaces,
) -> Result<SeriesId, LabelError> {
    let hash = cache.hash(label_bytes);
    let unknown = &resolved.unknown;
    let found = places.table.find(hash, |(_, place)| {
        unknown[*place].sent_bytes() == label_bytes
    });
    if let Some((_, place)) = found {
        return Ok(provisional_id(*place));
    }
    let label_set = LabelSet::parse(label_bytes, &limits.label)?;
    let is_canonical = *label_set.bytes == *label_bytes;
    if !is_canonical && let Some(id) = cache.find(resolved.generation, &label_set.bytes) {
        cache.insert(resolved.generation, label_bytes, id);
        return Ok(id);
    }
    if !is_of_consequence {
        // Legal and of no consequence: nothing is registered for it.
        return Ok(0);
    }
    let place = resolved.unknown.len();
    resolved.unknown.push(UnknownSeries {
        label_set,
        alias: (!is_canonical).then(|| label_bytes.into()),
    });
    places
        .table
        .insert_unique(hash, (hash, place), |(hash, _)| *hash);
    Ok(provisional_id(place))
}

fn refuse_series(refused: &mut Refused, samples: usize, fault: &LabelFault) {
    refused.series += 1;
    refused.samples += samples;
    refused.because(|| fault.to_string());
}

fn has_legal_sample(samples: &[Sample]) -> bool {
    samples
        .iter()
        .any(|sample| TIMESTAMP_MS_RANGE.contains(&sample.timestamp_ms))
}

fn push_samples(resolved: &mut Resolved, id: SeriesId, samples: &[Sample]) {
    for sample in samples {
        if TIMESTAMP_MS_RANGE.contains(&sample.timestamp_ms) {
            resolved.rows.push(
                sample.timestamp_ms * 1000,
                id,
                f64::from_bits(sample.value_bits),
            );
        } else {
            resolved.refused.samples += 1;
            resolved.refused.because(|| {
                format!(
                    "timestamp {} ms is outside of what PostgreSQL's timestamptz holds",
                    sample.timestamp_ms
                )
            });
        }
    }
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
