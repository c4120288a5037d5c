//! The answer of type `STREAMED_XOR_CHUNKS`: frames, each with chunks of one series.
//!
//! | part of a frame | bytes |
//! |---|---|
//! | length of the message | a varint |
//! | checksum of the message: CRC-32C | 4, big-endian |
//! | the message, `ChunkedReadResponse` | as its length says |
//!
//! ```text
//! ChunkedReadResponse { 1: repeated ChunkedSeries, 2: int64 query_index }
//! ChunkedSeries       { 1: repeated Label, 2: repeated Chunk }
//! Chunk               { 1: int64 min_time_ms, 2: int64 max_time_ms, 3: Encoding (XOR = 1), 4: bytes data }
//! ```
//! A series that is longer than a frame continues in the next one, which repeats the labels.

use crc_fast::{CrcAlgorithm, checksum};

use super::super::failure::Failure;
use super::series::{Sample, SeriesHead, SeriesWriter};
use super::xor::{Chunk, XorChunk};
use crate::series::protobuf::{DELIMITED, VARINT, put_delimited, put_key, put_varint};

/// The maximum length of the chunks and labels of a frame, as in Prometheus.
const FRAME_BYTES_MAX: usize = 1 << 20;

/// Fields of the messages.
const SERIES: u32 = 1;
const QUERY_INDEX: u32 = 2;
const CHUNK: u32 = 2;
const MIN_TIME: u32 = 1;
const MAX_TIME: u32 = 2;
const ENCODING: u32 = 3;
const DATA: u32 = 4;
/// The encoding of XOR chunks.
const XOR: u64 = 1;

/// Writes frames.
#[derive(Debug, Default)]
pub struct FramesWriter {
    /// The frames that were not taken yet.
    frames: Vec<u8>,
    head: SeriesHead,
    /// The complete chunks of the next frame, as fields of a series.
    chunks: Vec<u8>,
    chunk: XorChunk,
}

impl FramesWriter {
    /// The bytes of the frames that were not taken yet.
    pub fn bytes(&self) -> usize {
        self.frames.len()
    }

    /// Takes the frames written so far.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.frames)
    }

    fn end_chunk(&mut self) {
        if self.chunk.is_empty() {
            return;
        }
        let mut field = Vec::new();
        put_delimited(&mut field, CHUNK, &message(&self.chunk.take()));
        let bytes = self.head.labels.len() + self.chunks.len() + field.len();
        if bytes > FRAME_BYTES_MAX {
            self.end_frame();
        }
        self.chunks.extend(field);
    }

    fn end_frame(&mut self) {
        if self.chunks.is_empty() {
            return;
        }
        let labels = &self.head.labels;
        let mut response = Vec::with_capacity(labels.len() + self.chunks.len() + 24);
        put_key(&mut response, SERIES, DELIMITED);
        put_varint(&mut response, (labels.len() + self.chunks.len()) as u64);
        response.extend_from_slice(labels);
        response.append(&mut self.chunks);
        put_number(&mut response, QUERY_INDEX, self.head.query as u64);
        put_varint(&mut self.frames, response.len() as u64);
        let checksum = checksum(CrcAlgorithm::Crc32Iscsi, &response) as u32;
        self.frames.extend(checksum.to_be_bytes());
        self.frames.append(&mut response);
    }
}

impl SeriesWriter for FramesWriter {
    fn begin(&mut self, head: SeriesHead) -> Result<(), Failure> {
        self.head = head;
        Ok(())
    }

    fn sample(&mut self, sample: Sample) -> Result<(), Failure> {
        if self.chunk.is_full() {
            self.end_chunk();
        }
        self.chunk.push(sample.time, sample.value);
        Ok(())
    }

    fn end(&mut self) -> Result<(), Failure> {
        self.end_chunk();
        self.end_frame();
        Ok(())
    }
}

fn message(chunk: &Chunk) -> Vec<u8> {
    let mut message = Vec::with_capacity(chunk.bytes.len() + 32);
    put_number(&mut message, MIN_TIME, chunk.times.0 as u64);
    put_number(&mut message, MAX_TIME, chunk.times.1 as u64);
    put_number(&mut message, ENCODING, XOR);
    put_delimited(&mut message, DATA, &chunk.bytes);
    message
}

fn put_number(out: &mut Vec<u8>, field: u32, number: u64) {
    put_key(out, field, VARINT);
    put_varint(out, number);
}

#[cfg(test)]
#[path = "frames_tests.rs"]
mod tests;
