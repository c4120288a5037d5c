//! A decompressed request to rows: each sample with the id of its series, where the id is known; label sets to register, where not.
//!
//! What is refused: broken protobuf and text that is not UTF-8 refuse the request, as nothing in it can be trusted. A series or sample
//! that is well-formed but not legal is refused alone, the rest is stored, and the answer is 400 with the first reason: senders do not
//! repeat a request answered with 400, so refusing good series together with a bad one would lose them.

use std::array;

use hashbrown::HashTable;
use thiserror::Error;

use super::decode::{DecodeError, Sample, Scratch, Series, WriteRequest};
use crate::batch::UnknownSeries;
use crate::model::{Overloaded, Room};
use crate::series::cache::GROUP_KEYS;
use crate::series::label_set::{LabelError, LabelFault, LabelLimits, LabelSet};
use crate::series::sample_rows::TIMESTAMP_MS_RANGE;
use crate::series::{SampleRows, SeriesCache, SeriesId};

/// Why nothing of a request is taken.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum MalformedRequest {
    /// Not a write request.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// Labels are not protobuf or not text.
    #[error(transparent)]
    Label(LabelError),
    /// There is no room to decode it now; another time there may be.
    #[error(transparent)]
    Overloaded(#[from] Overloaded),
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

/// A request after decoding.
#[derive(Debug)]
pub struct Resolved {
    /// SampleRows to append. Until [`Resolved::fill_in`], a row of unknown series `n` has the id `-1 - n`.
    pub rows: SampleRows,
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
        let unknown: usize = self.unknown.iter().map(UnknownSeries::heap_bytes).sum();
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

/// Most bytes that decoding a series' message of `message_bytes` adds.
///
/// | what of the message | adds at most |
/// |---|---|
/// | a byte, of whatever | 11 bytes: in labels 3 in the scratch, whose buffers double, 1 each as canonical bytes and as alias, 6 as JSON, of a control character |
/// | a sample, of 2 bytes or more | 80 bytes: 16 in the scratch and 20 in the rows, all doubling |
/// | a series to register, of 17 bytes or more and a sample | 496 bytes: its place in a vector and a table, both doubling, and five allocations |
/// | all labels of the series | 512 bytes each, while looked into |
///
/// A byte is in a sample (80 / 2 bytes) or in a series (11 + 496 / 17 bytes), hence 41 for each. Of several series read together, the same
/// goes for all their bytes; they are looked into one after another.
fn decoding_bytes_max(message_bytes: usize, limits: &RequestLimits) -> usize {
    const BYTE_BYTES: usize = 41;
    const LABEL_BYTES: usize = 512;
    // A label has 2 bytes or more.
    let labels = limits.label.labels_max.min(message_bytes / 2);
    message_bytes
        .saturating_mul(BYTE_BYTES)
        .saturating_add(labels.saturating_mul(LABEL_BYTES))
}

/// Series are read and looked up in groups of at most this many bytes of messages, or of one series.
const GROUP_BYTES: usize = 4 << 10;

/// What decoding has come to hold.
#[derive(Default)]
struct Held {
    /// Label sets to register.
    label_bytes: usize,
}

impl Held {
    /// Its bytes; what doubles counts three times, as old and new are there while it is copied.
    fn bytes(&self, resolved: &Resolved, places: &UnknownPlaces, scratch: &Scratch) -> usize {
        let doubling = resolved.rows.heap_bytes()
            + resolved.unknown.capacity() * size_of::<UnknownSeries>()
            + places.table.allocation_size()
            + scratch.heap_bytes();
        3 * doubling + self.label_bytes
    }
}

/// Decodes `body` and looks its series up. What that holds, the body aside, has `room` made for it series by series: before one is
/// decoded, as much as it could take.
///
/// # Errors
/// [`MalformedRequest`]: nothing of it may be stored.
pub fn resolve(
    body: &[u8],
    limits: &RequestLimits,
    cache: &SeriesCache,
    room: &mut Room,
) -> Result<Resolved, MalformedRequest> {
    let mut resolved = Resolved {
        rows: SampleRows::default(),
        unknown: Vec::new(),
        generation: cache.generation(),
        registrations: cache.registrations(),
        refused: Refused::default(),
        exemplars: 0,
        metadata: 0,
    };
    let mut unknown_places = UnknownPlaces::default();
    let mut scratch = Scratch::default();
    let mut held = Held::default();
    let mut request = WriteRequest::new(body, limits.samples_max);
    let mut group: Vec<Series<'_>> = Vec::with_capacity(GROUP_KEYS);
    let mut next = request.next_message()?;
    while next.is_some() {
        scratch.clear();
        group.clear();
        let mut group_bytes = 0;
        while let Some(message) = next
            && (group.is_empty() || group_bytes + message.len() <= GROUP_BYTES)
            && group.len() < GROUP_KEYS
        {
            group_bytes += message.len();
            let held_bytes = held.bytes(&resolved, &unknown_places, &scratch);
            room.cover(held_bytes.saturating_add(decoding_bytes_max(group_bytes, limits)))?;
            group.push(request.series(message, &mut scratch)?);
            next = request.next_message()?;
        }
        let keys: [&[u8]; GROUP_KEYS] = array::from_fn(|place| {
            group
                .get(place)
                .map_or(&[][..], |s| s.label_bytes(&scratch))
        });
        let known = cache.find_all(resolved.generation, &keys[..group.len()]);
        for (series, known) in group.iter().zip(known) {
            let (label_bytes, samples) = (series.label_bytes(&scratch), series.samples(&scratch));
            resolved.exemplars += series.exemplars;
            let id = match known {
                Some(id) => id,
                None => match look_into(
                    label_bytes,
                    has_legal_sample(samples),
                    limits,
                    cache,
                    &mut resolved,
                    &mut unknown_places,
                    &mut held,
                ) {
                    Ok(id) => id,
                    Err(LabelError::Refused(fault)) => {
                        let refused = samples.len() + series.histograms;
                        refuse_series(&mut resolved.refused, refused, &fault);
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
            push_samples(&mut resolved, id, samples);
        }
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
    held: &mut Held,
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
    let series = UnknownSeries {
        label_set,
        alias: (!is_canonical).then(|| label_bytes.into()),
    };
    held.label_bytes += series.heap_bytes();
    resolved.unknown.push(series);
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
