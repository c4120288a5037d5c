//! Remote write 1.0's `WriteRequest`, read in place.
//!
//! ```text
//! WriteRequest { 1: repeated TimeSeries, 3: repeated MetricMetadata }
//! TimeSeries   { 1: repeated Label, 2: repeated Sample, 3: repeated Exemplar, 4: repeated Histogram }
//! Label        { 1: string name, 2: string value }
//! Sample       { 1: double value, 2: int64 timestamp in ms }
//! ```
//! A series' labels are handed on as the raw bytes of its Label messages, keys and lengths included. Senders write them side by side,
//! so these are one slice of the body and serve as the cache key of a known series; only unknown ones are ever looked into. Labels that
//! lie apart (legal protobuf, seen from no known sender) are brought together in the scratch.

use std::ops::Range;

use thiserror::Error;

use crate::series::protobuf::{DELIMITED, FIXED64, ProtobufError, Reader, VARINT};

/// Why a body is not a write request that is taken.
#[derive(Debug, Error, PartialEq, Eq, Clone, Copy)]
pub enum DecodeError {
    /// Not protobuf.
    #[error(transparent)]
    Protobuf(#[from] ProtobufError),
    /// More samples than one request may hold; the bound keeps memory in proportion to what is sent.
    #[error("request holds more than {samples_max} samples (receive.samples_max)")]
    TooManySamples {
        /// The bound.
        samples_max: usize,
    },
}

/// One sample as sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Milliseconds since the Unix epoch.
    pub timestamp_ms: i64,
    /// The bits of the float: a stale marker is a NaN of particular bits, which must survive.
    pub value_bits: u64,
}

/// Buffers that outlive a series, so that a request allocates at most once. Series read one after another are in them side by side, until
/// they are cleared.
#[derive(Debug, Default)]
pub struct Scratch {
    samples: Vec<Sample>,
    labels: Vec<u8>,
}

impl Scratch {
    /// Forgets the series read so far.
    pub fn clear(&mut self) {
        self.samples.clear();
        self.labels.clear();
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        self.samples.capacity() * size_of::<Sample>() + self.labels.capacity()
    }
}

/// One series of a request; its samples, and labels that lay apart, are in the scratch that it was read with.
#[derive(Debug, Clone)]
pub struct Series<'a> {
    labels: Labels<'a>,
    samples: Range<usize>,
    /// Exemplars, counted and left.
    pub exemplars: usize,
    /// Native histograms, counted and left.
    pub histograms: usize,
}

#[derive(Debug, Clone)]
enum Labels<'a> {
    /// Side by side in the message.
    Sent(&'a [u8]),
    /// Brought together.
    Gathered(Range<usize>),
}

impl<'a> Series<'a> {
    /// Its Label messages, field keys and lengths included, in the order sent; not looked into yet.
    pub fn label_bytes<'s>(&self, scratch: &'s Scratch) -> &'s [u8]
    where
        'a: 's,
    {
        match &self.labels {
            Labels::Sent(bytes) => bytes,
            Labels::Gathered(place) => &scratch.labels[place.clone()],
        }
    }

    /// Its samples in the order sent.
    pub fn samples<'s>(&self, scratch: &'s Scratch) -> &'s [Sample] {
        &scratch.samples[self.samples.clone()]
    }
}

/// A request being read; [`WriteRequest::next_message`] goes through it once.
#[derive(Debug)]
pub struct WriteRequest<'a> {
    reader: Reader<'a>,
    samples_max: usize,
    samples_left: usize,
    metadata: usize,
}

impl<'a> WriteRequest<'a> {
    /// Reads `body`, which is already decompressed, and refuses more than `samples_max` samples.
    pub fn new(body: &'a [u8], samples_max: usize) -> Self {
        Self {
            reader: Reader::new(body),
            samples_max,
            samples_left: samples_max,
            metadata: 0,
        }
    }

    /// Metadata entries met so far.
    pub fn metadata(&self) -> usize {
        self.metadata
    }

    /// The next series' message, not looked into yet, or `None` at the end.
    ///
    /// # Errors
    /// [`DecodeError`]; the rest of the body cannot be read then.
    pub fn next_message(&mut self) -> Result<Option<&'a [u8]>, DecodeError> {
        while let Some(key) = self.reader.key()? {
            match (key.field, key.wire_type) {
                (1, DELIMITED) => return Ok(Some(self.reader.delimited()?)),
                (3, DELIMITED) => {
                    self.reader.delimited()?;
                    self.metadata += 1;
                }
                (1 | 3, _) => return Err(key.mismatch().into()),
                (_, wire_type) => self.reader.skip(wire_type)?,
            }
        }
        Ok(None)
    }

    /// The series of a message, read into the scratch beside those that are there.
    ///
    /// # Errors
    /// [`DecodeError`]; the rest of the body cannot be read then.
    pub fn series(
        &mut self,
        message: &'a [u8],
        scratch: &mut Scratch,
    ) -> Result<Series<'a>, DecodeError> {
        let Scratch { samples, labels } = scratch;
        let (samples_start, labels_start) = (samples.len(), labels.len());
        let mut reader = Reader::new(message);
        // [start, end) of the first stretch of labels; later stretches go to `labels`, after a copy of the first.
        let mut stretch: Option<(usize, usize)> = None;
        let (mut exemplars, mut histograms) = (0, 0);
        loop {
            let field_start = message.len() - reader.rest().len();
            let Some(key) = reader.key()? else { break };
            match (key.field, key.wire_type) {
                (1, DELIMITED) => {
                    reader.delimited()?;
                    let field_end = message.len() - reader.rest().len();
                    match &mut stretch {
                        None => stretch = Some((field_start, field_end)),
                        Some((_, end)) if *end == field_start && labels.len() == labels_start => {
                            *end = field_end
                        }
                        Some((start, end)) => {
                            if labels.len() == labels_start {
                                labels.extend_from_slice(&message[*start..*end]);
                            }
                            labels.extend_from_slice(&message[field_start..field_end]);
                        }
                    }
                }
                (2, DELIMITED) => {
                    let sample = sample(reader.delimited()?)?;
                    if self.samples_left == 0 {
                        return Err(DecodeError::TooManySamples {
                            samples_max: self.samples_max,
                        });
                    }
                    self.samples_left -= 1;
                    samples.push(sample);
                }
                (3, DELIMITED) => {
                    reader.delimited()?;
                    exemplars += 1;
                }
                (4, DELIMITED) => {
                    reader.delimited()?;
                    histograms += 1;
                }
                (1..=4, _) => return Err(key.mismatch().into()),
                (_, wire_type) => reader.skip(wire_type)?,
            }
        }
        let labels = match stretch {
            _ if labels.len() > labels_start => Labels::Gathered(labels_start..labels.len()),
            Some((start, end)) => Labels::Sent(&message[start..end]),
            None => Labels::Sent(&[]),
        };
        Ok(Series {
            labels,
            samples: samples_start..samples.len(),
            exemplars,
            histograms,
        })
    }
}

#[inline]
fn sample(message: &[u8]) -> Result<Sample, ProtobufError> {
    // What every sender writes: value, then timestamp.
    if let [0x09, b0, b1, b2, b3, b4, b5, b6, b7, 0x10, rest @ ..] = message {
        let mut reader = Reader::new(rest);
        let timestamp = reader.varint()?;
        if reader.is_empty() {
            let value_bits = u64::from_le_bytes([*b0, *b1, *b2, *b3, *b4, *b5, *b6, *b7]);
            return Ok(Sample {
                timestamp_ms: timestamp as i64,
                value_bits,
            });
        }
    }
    sample_any_order(message)
}

fn sample_any_order(message: &[u8]) -> Result<Sample, ProtobufError> {
    let mut sample = Sample {
        timestamp_ms: 0,
        value_bits: 0,
    };
    let mut reader = Reader::new(message);
    while let Some(key) = reader.key()? {
        match (key.field, key.wire_type) {
            (1, FIXED64) => sample.value_bits = reader.fixed64()?,
            (2, VARINT) => sample.timestamp_ms = reader.varint()? as i64,
            (1 | 2, _) => return Err(key.mismatch()),
            (_, wire_type) => reader.skip(wire_type)?,
        }
    }
    Ok(sample)
}
