//! Frames, decoded by prost and by the decoder of the chunks' tests.

use prost::Message as _;

use super::super::test_support::Label;
use super::super::xor::tests::decoded;
use super::*;

#[derive(Clone, PartialEq, prost::Message)]
struct Response {
    #[prost(message, repeated, tag = "1")]
    series: Vec<ChunkedSeries>,
    #[prost(int64, tag = "2")]
    query: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ChunkedSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    chunks: Vec<WireChunk>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct WireChunk {
    #[prost(int64, tag = "1")]
    min_time: i64,
    #[prost(int64, tag = "2")]
    max_time: i64,
    #[prost(int32, tag = "3")]
    encoding: i32,
    #[prost(bytes = "vec", tag = "4")]
    data: Vec<u8>,
}

/// CRC-32C bit by bit.
fn crc_32c(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            let is_odd = crc & 1 != 0;
            crc = crc >> 1 ^ if is_odd { 0x82f6_3b78 } else { 0 };
        }
    }
    !crc
}

/// Returns the messages of frames whose checksums are right.
fn messages(frames: &[u8]) -> Vec<Response> {
    let mut rest = frames;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let length = prost::encoding::decode_varint(&mut rest).unwrap() as usize;
        let (checksum, after) = rest.split_first_chunk().unwrap();
        let (message, after) = after.split_at(length);
        assert!(length < FRAME_BYTES_MAX + 100, "{length}");
        assert_eq!(u32::from_be_bytes(*checksum), crc_32c(message));
        found.push(Response::decode(message).unwrap());
        rest = after;
    }
    found
}

fn write(writer: &mut FramesWriter, query: usize, name: &str, samples: i64) {
    writer.begin(SeriesHead::new(query, &["n", name])).unwrap();
    for time in 0..samples {
        let value = f64::from_bits((time as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        writer.sample(Sample { time, value }).unwrap();
    }
    writer.end().unwrap();
}

#[test]
fn the_checksum_of_the_test_is_that_of_the_standard() {
    assert_eq!(crc_32c(b"123456789"), 0xe306_9283);
}

#[test]
fn chunks_have_at_most_120_samples() {
    let mut writer = FramesWriter::default();
    write(&mut writer, 0, "a", 1);
    write(&mut writer, 0, "b", 120);
    write(&mut writer, 2, "c", 241);
    let bytes = writer.bytes();
    let frames = writer.take();
    assert_eq!((frames.len(), writer.bytes()), (bytes, 0));
    let messages = messages(&frames);
    let shape: Vec<_> = messages
        .iter()
        .map(|one| {
            let series = &one.series[0];
            let chunks = series.chunks.iter();
            let chunks = chunks.map(|chunk| {
                assert_eq!(chunk.encoding, 1);
                let samples = decoded(&chunk.data);
                let times = (samples[0].0, samples[samples.len() - 1].0);
                assert_eq!((chunk.min_time, chunk.max_time), times);
                samples.len()
            });
            (
                one.query,
                &*series.labels[0].value,
                chunks.collect::<Vec<_>>(),
            )
        })
        .collect();
    let expected = [
        (0, "a", vec![1]),
        (0, "b", vec![120]),
        (2, "c", vec![120, 120, 1]),
    ];
    assert_eq!(shape, expected);
}

#[test]
fn a_long_series_continues_in_the_next_frame() {
    let mut writer = FramesWriter::default();
    write(&mut writer, 1, "a", 300_000);
    let messages = messages(&writer.take());
    assert!(messages.len() >= 3, "{}", messages.len());
    let mut times = 0..300_000;
    for message in &messages {
        assert_eq!((message.query, message.series.len()), (1, 1));
        assert_eq!(message.series[0].labels[0].value, "a");
        for chunk in &message.series[0].chunks {
            let found = decoded(&chunk.data).into_iter();
            assert!(found.map(|(time, _)| time).eq(times.by_ref().take(120)));
        }
    }
    assert_eq!(times.next(), None);
}
