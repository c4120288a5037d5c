//! The answer of type `SAMPLES`: one message with all series, compressed as one block of snappy.
//!
//! ```text
//! ReadResponse { 1: repeated QueryResult }
//! QueryResult  { 1: repeated TimeSeries }
//! TimeSeries   { 1: repeated Label, 2: repeated Sample }
//! Sample       { 1: double value, 2: int64 timestamp in ms }
//! ```
//! Snappy's block begins with its length, so the answer is complete before its first byte is sent.

use std::mem::take;

use bytes::Bytes;

use super::super::failure::{Failure, Kind};
use super::message::Message;
use super::series::{Sample, SeriesHead, SeriesWriter};
use crate::model::{Budget, Reservation};
use crate::series::protobuf::{DELIMITED, FIXED64, VARINT, put_varint, varint_bytes};

/// Fields of the messages.
const RESULT: u32 = 1;
const SERIES: u32 = 1;
const SAMPLE: u8 = 2;
const VALUE: u8 = 1;
const TIMESTAMP: u8 = 2;

/// The bytes by which a reservation grows.
const STEP_BYTES: usize = 1 << 20;

/// How long an answer may be.
#[derive(Clone)]
pub struct SampleLimits {
    /// The maximum number of samples.
    pub samples_max: usize,
    /// The maximum bytes of this answer, compressed.
    pub bytes_max: usize,
    /// The memory of all such answers.
    pub budget: Budget,
}

/// Writes the answer.
pub struct SamplesWriter {
    limits: SampleLimits,
    reservation: Reservation,
    samples: usize,
    response: Message,
    /// The result of the query at `query`.
    result: Message,
    query: usize,
    series: Message,
}

impl SamplesWriter {
    /// Begins an answer.
    pub fn new(limits: SampleLimits) -> Self {
        Self {
            limits,
            reservation: Reservation::default(),
            samples: 0,
            response: Message::default(),
            result: Message::default(),
            query: 0,
            series: Message::default(),
        }
    }

    /// Returns the pieces of the answer to this number of queries, and the memory that they take.
    ///
    /// # Errors
    /// Returns a failure if the answer is too long for snappy.
    pub fn finish(mut self, queries: usize) -> Result<(Vec<Bytes>, Reservation), Failure> {
        self.end_results(queries);
        self.cover()?;
        match u32::try_from(self.response.bytes()) {
            Ok(_) => Ok((self.response.finish(), self.reservation)),
            Err(_) => Err(Failure::bad_data(format!(
                "the answer is longer than 4 GiB; {REMEDY}"
            ))),
        }
    }

    /// Ends the results of the queries before `query`.
    fn end_results(&mut self, query: usize) {
        while self.query < query {
            self.response.nest(RESULT, take(&mut self.result));
            self.query += 1;
        }
    }

    /// Takes memory for what is held.
    fn cover(&mut self) -> Result<(), Failure> {
        let parts = [&self.response, &self.result, &self.series];
        let held_bytes: usize = parts.into_iter().map(Message::held_bytes).sum();
        if held_bytes <= self.reservation.bytes() {
            return Ok(());
        }
        if held_bytes > self.limits.bytes_max {
            return Err(Failure::bad_data(format!(
                "the answer takes more than {} bytes (query.read_bytes_max); {REMEDY}",
                self.limits.bytes_max
            )));
        }
        let wanted = held_bytes.saturating_add(STEP_BYTES);
        let wanted = wanted.min(self.limits.bytes_max);
        let grown = self.reservation.grow(&self.limits.budget, wanted);
        grown.map_err(|_| {
            Failure::new(
                Kind::Unavailable,
                format!("answers to remote reads take all of their memory (query.read_bytes_max); {REMEDY}"),
            )
        })
    }
}

/// The advice to a client whose answer is too long.
const REMEDY: &str = "ask for fewer series or a shorter time, or accept STREAMED_XOR_CHUNKS, which has no such limit";

impl SeriesWriter for SamplesWriter {
    fn begin(&mut self, head: SeriesHead) -> Result<(), Failure> {
        self.end_results(head.query);
        self.series.extend(&head.labels);
        Ok(())
    }

    fn sample(&mut self, sample: Sample) -> Result<(), Failure> {
        if self.samples == self.limits.samples_max {
            return Err(Failure::bad_data(format!(
                "exceeded sample limit ({}) (query.read_samples_max); {REMEDY}",
                self.limits.samples_max
            )));
        }
        self.samples += 1;
        let time = sample.time as u64;
        let length = 1 + 8 + 1 + varint_bytes(time);
        self.series.write(|out| {
            out.extend([SAMPLE << 3 | DELIMITED, length as u8, VALUE << 3 | FIXED64]);
            out.extend(sample.value.to_bits().to_le_bytes());
            out.push(TIMESTAMP << 3 | VARINT);
            put_varint(out, time);
        });
        self.cover()
    }

    fn end(&mut self) -> Result<(), Failure> {
        self.result.nest(SERIES, take(&mut self.series));
        Ok(())
    }
}

#[cfg(test)]
#[path = "samples_tests.rs"]
mod tests;
