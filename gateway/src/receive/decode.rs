//! A reader of remote write 1.0's `WriteRequest`, without copying.
//!
//! ```text
//! WriteRequest { 1: repeated TimeSeries, 3: repeated MetricMetadata }
//! TimeSeries   { 1: repeated Label, 2: repeated Sample, 3: repeated Exemplar, 4: repeated Histogram }
//! Label        { 1: string name, 2: string value }
//! Sample       { 1: double value, 2: int64 timestamp in ms }
//! ```
//! The labels of a series are returned as the raw bytes of its Label messages, including keys and
//! lengths. Senders write them contiguously, so they are one slice of the body, which serves as the
//! cache key of a known series. Only the labels of unknown series are parsed. Labels that are not
//! contiguous (valid protobuf that no known sender writes) are gathered in the scratch.

use std::ops::Range;

use thiserror::Error;

use crate::series::protobuf::{DELIMITED, FIXED64, ProtobufError, Reader, VARINT};

/// Why a body is not an acceptable write request.
#[derive(Debug, Error, PartialEq, Eq, Clone, Copy)]
pub enum DecodeError {
    /// The body is not protobuf.
    #[error(transparent)]
    Protobuf(#[from] ProtobufError),
    /// The request has more samples than allowed. The limit keeps memory in proportion to what is
    /// sent.
    #[error("request holds more than {samples_max} samples (receive.samples_max)")]
    TooManySamples {
        /// The limit.
        samples_max: usize,
    },
}

/// A sample as sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Milliseconds since the Unix epoch.
    pub timestamp_ms: i64,
    /// The bits of the value. A stale marker is a NaN with particular bits, which must be
    /// preserved.
    pub value_bits: u64,
}

/// Buffers that are reused, so that a request allocates at most once. The series of one group share
/// them until they are cleared.
#[derive(Debug, Default)]
pub struct Scratch {
    samples: Vec<Sample>,
    labels: Vec<u8>,
}

impl Scratch {
    /// Drops the series read so far.
    pub fn clear(&mut self) {
        self.samples.clear();
        self.labels.clear();
    }

    /// The bytes held.
    pub fn heap_bytes(&self) -> usize {
        self.samples.capacity() * size_of::<Sample>() + self.labels.capacity()
    }
}

/// A series of a request. Its samples and gathered labels are in the scratch that it was read with.
#[derive(Debug, Clone)]
pub struct Series<'a> {
    labels: Labels<'a>,
    samples: Range<usize>,
    /// The number of exemplars, which are skipped.
    pub exemplars: usize,
    /// The number of native histograms, which are skipped.
    pub histograms: usize,
}

#[derive(Debug, Clone)]
enum Labels<'a> {
    /// The labels are contiguous in the message.
    Sent(&'a [u8]),
    /// The labels were gathered in the scratch.
    Gathered(Range<usize>),
}

impl<'a> Series<'a> {
    /// Returns the Label messages, including field keys and lengths, in the order sent. They are
    /// not parsed yet.
    pub fn label_bytes<'s>(&self, scratch: &'s Scratch) -> &'s [u8]
    where
        'a: 's,
    {
        match &self.labels {
            Labels::Sent(bytes) => bytes,
            Labels::Gathered(place) => &scratch.labels[place.clone()],
        }
    }

    /// Returns the samples in the order sent.
    pub fn samples<'s>(&self, scratch: &'s Scratch) -> &'s [Sample] {
        &scratch.samples[self.samples.clone()]
    }
}

/// A request that is being read. [`WriteRequest::next_message`] reads it once from front to back.
#[derive(Debug)]
pub struct WriteRequest<'a> {
    reader: Reader<'a>,
    samples_max: usize,
    samples_left: usize,
    metadata: usize,
}

impl<'a> WriteRequest<'a> {
    /// Creates a reader of `body`, which is already decompressed. More than `samples_max` samples
    /// are refused.
    pub fn new(body: &'a [u8], samples_max: usize) -> Self {
        Self {
            reader: Reader::new(body),
            samples_max,
            samples_left: samples_max,
            metadata: 0,
        }
    }

    /// The number of metadata entries found so far.
    pub fn metadata(&self) -> usize {
        self.metadata
    }

    /// Returns the message of the next series, not parsed yet; `None` at the end.
    ///
    /// # Errors
    /// Returns a [`DecodeError`]. The rest of the body cannot be read in this case.
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

    #[inline]
    fn count_sample(&mut self) -> Result<(), DecodeError> {
        if self.samples_left == 0 {
            return Err(DecodeError::TooManySamples {
                samples_max: self.samples_max,
            });
        }
        self.samples_left -= 1;
        Ok(())
    }

    /// Reads the series of a message into the scratch, after those that it contains already.
    ///
    /// # Errors
    /// Returns a [`DecodeError`]. The rest of the body cannot be read in this case.
    pub fn series(
        &mut self,
        message: &'a [u8],
        scratch: &mut Scratch,
    ) -> Result<Series<'a>, DecodeError> {
        let Scratch { samples, labels } = scratch;
        let (samples_start, labels_start) = (samples.len(), labels.len());
        let mut reader = Reader::new(message);
        // The first range [start, end) of labels. Later ranges are appended to `labels`, after a
        // copy of the first.
        let mut contiguous: Option<Range<usize>> = None;
        let (mut exemplars, mut histograms) = (0, 0);
        loop {
            let field_start = message.len() - reader.rest().len();
            let Some(key) = reader.key()? else { break };
            match (key.field, key.wire_type) {
                (1, DELIMITED) => {
                    reader.delimited()?;
                    let field = field_start..message.len() - reader.rest().len();
                    match &mut contiguous {
                        None => contiguous = Some(field),
                        Some(labels_so_far)
                            if labels_so_far.end == field_start && labels.len() == labels_start =>
                        {
                            labels_so_far.end = field.end;
                        }
                        Some(first) => {
                            if labels.len() == labels_start {
                                labels.extend_from_slice(&message[first.clone()]);
                            }
                            labels.extend_from_slice(&message[field]);
                        }
                    }
                }
                (2, DELIMITED) => {
                    let sample = sample(reader.delimited()?)?;
                    self.count_sample()?;
                    samples.push(sample);
                }
                (3 | 4, DELIMITED) => {
                    reader.delimited()?;
                    exemplars += usize::from(key.field == 3);
                    histograms += usize::from(key.field == 4);
                }
                (1..=4, _) => return Err(key.mismatch().into()),
                (_, wire_type) => reader.skip(wire_type)?,
            }
        }
        let labels = match contiguous {
            _ if labels.len() > labels_start => Labels::Gathered(labels_start..labels.len()),
            Some(range) => Labels::Sent(&message[range]),
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
    // All known senders write the value before the timestamp.
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
