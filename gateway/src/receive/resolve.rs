//! A decompressed request to rows. Each sample gets the id of its series if it is known; the label
//! sets of unknown series are collected to be registered.
//!
//! Malformed protobuf and text that is not UTF-8 refuse the whole request, because nothing in it
//! can be trusted. A series or sample that is well-formed but not valid is refused alone. The rest
//! is stored, and the answer is 400 with the first reason. Senders do not repeat a request answered
//! with 400, so refusing valid series together with an invalid one would lose them.

use std::array;

use hashbrown::HashTable;
use thiserror::Error;

use super::decode::{DecodeError, Sample, Scratch, Series, WriteRequest};
use crate::batch::UnknownSeries;
use crate::model::{Overloaded, Room};
use crate::quota::limits::Limit;
use crate::series::cache::GROUP_KEYS;
use crate::series::label_set::{LabelError, LabelFault, LabelLimits, LabelSet};
use crate::series::sample_rows::TIMESTAMP_MS_RANGE;
use crate::series::{SampleRows, SeriesCache, SeriesId};

/// Why nothing of a request is stored.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum MalformedRequest {
    /// The body is not a write request.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// Labels are not protobuf or not text.
    #[error(transparent)]
    Label(LabelError),
    /// There is no room to decode the request now. There may be later.
    #[error(transparent)]
    Overloaded(#[from] Overloaded),
}

/// Limits of a request.
#[derive(Debug, Clone, Copy)]
pub struct RequestLimits {
    /// The maximum number of samples.
    pub samples_max: usize,
    /// Limits of label sets.
    pub label: LabelLimits,
}

/// The part of a request that is not stored, and the reason.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// The number of series refused because of their labels or a limit of their user.
    pub series: usize,
    /// The number of samples refused, including those of refused series.
    pub samples: usize,
    /// The number of native histogram samples, which are not supported.
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

    /// Whether everything was accepted.
    pub fn is_nothing(&self) -> bool {
        self.series == 0 && self.samples == 0 && self.histograms == 0
    }
}

/// A decoded request.
#[derive(Debug)]
pub struct Resolved {
    /// The rows to append. Before [`Resolved::fill_in`], a row of unknown series `n` has the id `-1
    /// - n`.
    pub rows: SampleRows,
    /// The series to register first.
    pub unknown: Vec<UnknownSeries>,
    /// The cache generation that the ids belong to.
    pub generation: u64,
    /// The value of [`SeriesCache::registrations`] before the first series was looked up.
    pub registrations: u64,
    /// What is not stored.
    pub refused: Refused,
    /// The number of exemplars. They are not stored, and senders do not expect it.
    pub exemplars: usize,
    /// The number of metadata entries. They are not stored, and senders do not expect it.
    pub metadata: usize,
}

impl Resolved {
    /// Creates a request without rows, whose series are looked up in `cache` from now on.
    fn empty(cache: &SeriesCache) -> Self {
        Self {
            rows: SampleRows::default(),
            unknown: Vec::new(),
            generation: cache.generation(),
            registrations: cache.registrations(),
            refused: Refused::default(),
            exemplars: 0,
            metadata: 0,
        }
    }

    /// The bytes held until the request is answered.
    pub fn heap_bytes(&self) -> usize {
        let unknown: usize = self.unknown.iter().map(UnknownSeries::heap_bytes).sum();
        self.rows.heap_bytes() + unknown
    }

    /// Removes unknown series that exceed a limit, by their index in ascending order. `reason` is
    /// called with the limit and the number of samples of each.
    pub fn refuse(
        &mut self,
        series: &[(usize, Limit)],
        mut reason: impl FnMut(Limit, usize) -> String,
    ) {
        let place = |id: SeriesId| {
            let unknown = usize::try_from(-1 - id).ok()?;
            series
                .binary_search_by_key(&unknown, |(index, _)| *index)
                .ok()
        };
        let mut samples = vec![0; series.len()];
        self.rows.retain(|id| match place(id) {
            Some(place) => {
                samples[place] += 1;
                false
            }
            None => true,
        });
        for ((_, limit), samples) in series.iter().zip(samples) {
            let reason = reason(*limit, samples);
            self.refused.series += 1;
            self.refused.samples += samples;
            self.refused.because(|| reason);
        }
    }

    /// Replaces the provisional ids of unknown series by their registered ids.
    pub fn fill_in(&mut self, ids: &[SeriesId]) {
        for series in &mut self.rows.series {
            if *series < 0 {
                *series = ids[(-1 - *series) as usize];
            }
        }
    }
}

/// The maximum bytes that decoding the message of a series with `message_bytes` adds.
///
/// | part of the message | adds at most |
/// |---|---|
/// | any byte | 11 bytes: in labels, 3 in the scratch, whose buffers double, 1 each in the canonical bytes and the alias, and 6 in the JSON of a control character |
/// | a sample of at least 2 bytes | 80 bytes: 16 in the scratch and 20 in the rows, all doubling |
/// | a series to register, of at least 17 bytes and a sample | 496 bytes: its elements in a vector and a table, both doubling, and five allocations |
/// | the labels of the series | 512 bytes each while they are parsed |
///
/// Each byte belongs to a sample (80 / 2 bytes) or to a series (11 + 496 / 17 bytes), which makes
/// at most 41 for each. For several series read together, the bound holds for the sum of their
/// bytes, because they are parsed one after another.
fn decoding_bytes_max(message_bytes: usize, limits: &RequestLimits) -> usize {
    const BYTE_BYTES: usize = 41;
    const LABEL_BYTES: usize = 512;
    // A label has at least 2 bytes.
    let labels = limits.label.labels_max.min(message_bytes / 2);
    message_bytes
        .saturating_mul(BYTE_BYTES)
        .saturating_add(labels.saturating_mul(LABEL_BYTES))
}

/// The maximum bytes of messages in a group that is read and looked up together. A group may also
/// be a single longer series.
const GROUP_BYTES: usize = 4 << 10;

/// What decoding holds so far.
#[derive(Default)]
struct HeldBytes {
    /// The bytes of label sets to register.
    label_bytes: usize,
}

impl HeldBytes {
    /// Returns the bytes held. Buffers that double count three times, because the old and the new
    /// buffer exist while one is copied.
    fn bytes(&self, resolved: &Resolved, places: &UnknownPlaces, scratch: &Scratch) -> usize {
        let doubling = resolved.rows.heap_bytes()
            + resolved.unknown.capacity() * size_of::<UnknownSeries>()
            + places.table.allocation_size()
            + scratch.heap_bytes();
        3 * doubling + self.label_bytes
    }
}

/// Decodes `body` and looks up its series. Before a group of series is decoded, `room` is grown by
/// the maximum that it could take.
///
/// # Errors
/// Returns a [`MalformedRequest`] if nothing of the request may be stored.
pub fn resolve(
    body: &[u8],
    limits: &RequestLimits,
    cache: &SeriesCache,
    room: &mut Room,
) -> Result<Resolved, MalformedRequest> {
    let mut resolved = Resolved::empty(cache);
    let mut unknown_places = UnknownPlaces::default();
    let (mut scratch, mut held) = (Scratch::default(), HeldBytes::default());
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
            let series = request.series(message, &mut scratch)?;
            resolved.exemplars += series.exemplars;
            group.push(series);
            next = request.next_message()?;
        }
        let keys = keys_of(&group, &scratch);
        let known = cache.find_all(resolved.generation, &keys[..group.len()]);
        for (series, known) in group.iter().zip(known) {
            let samples = series.samples(&scratch);
            let id = match known {
                Some(id) => id,
                None => match look_into(
                    series.label_bytes(&scratch),
                    has_legal_sample(samples),
                    limits,
                    cache,
                    &mut resolved,
                    &mut unknown_places,
                    &mut held,
                ) {
                    Ok(id) => id,
                    Err(LabelError::Refused(fault)) => {
                        refuse_series(&mut resolved.refused, series, samples, &fault);
                        continue;
                    }
                    Err(malformed) => return Err(MalformedRequest::Label(malformed)),
                },
            };
            if series.histograms > 0 {
                refuse_histograms(&mut resolved.refused, series.histograms);
            }
            push_samples(&mut resolved, id, samples);
        }
    }
    resolved.metadata = request.metadata();
    Ok(resolved)
}

/// Returns the label bytes of a group of series. The rest of the array is empty.
#[inline]
fn keys_of<'s>(group: &'s [Series<'_>], scratch: &'s Scratch) -> [&'s [u8]; GROUP_KEYS] {
    array::from_fn(|index| match group.get(index) {
        Some(series) => series.label_bytes(scratch),
        None => &[][..],
    })
}

/// The label bytes of unknown series in this request, to their index in `Resolved::unknown`.
/// Prometheus repeats the labels for each sample of a series.
#[derive(Default)]
struct UnknownPlaces {
    /// The hash of the label bytes as sent, and the index.
    table: HashTable<(u64, usize)>,
}

/// Returns the provisional id of an unknown series.
fn provisional_id(place: usize) -> SeriesId {
    // There is at most one unknown series for each sample, and the number of samples is far smaller
    // than this.
    -1 - SeriesId::try_from(place).unwrap_or(SeriesId::MAX - 1)
}

fn look_into(
    label_bytes: &[u8],
    is_of_consequence: bool,
    limits: &RequestLimits,
    cache: &SeriesCache,
    resolved: &mut Resolved,
    places: &mut UnknownPlaces,
    held: &mut HeldBytes,
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
        // The series is valid but has no sample to store, so it is not registered.
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

fn refuse_series(
    refused: &mut Refused,
    series: &Series<'_>,
    samples: &[Sample],
    fault: &LabelFault,
) {
    refused.series += 1;
    refused.samples += samples.len() + series.histograms;
    refused.because(|| fault.to_string());
}

fn refuse_histograms(refused: &mut Refused, histograms: usize) {
    refused.histograms += histograms;
    refused.because(|| "native histograms are not supported".to_owned());
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
                    "timestamp {} ms is out of range for PostgreSQL's timestamptz",
                    sample.timestamp_ms
                )
            });
        }
    }
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
