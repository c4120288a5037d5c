//! Answers of type `SAMPLES`, decoded by prost.

use std::time::Duration;

use prost::Message as _;

use super::super::test_support::Label;
use super::*;

#[derive(Clone, PartialEq, prost::Message)]
struct Response {
    #[prost(message, repeated, tag = "1")]
    results: Vec<QueryResult>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct QueryResult {
    #[prost(message, repeated, tag = "1")]
    series: Vec<TimeSeries>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<WireSample>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct WireSample {
    #[prost(double, tag = "1")]
    value: f64,
    #[prost(int64, tag = "2")]
    timestamp: i64,
}

fn limits(samples_max: usize, bytes_max: usize) -> SampleLimits {
    SampleLimits {
        samples_max,
        bytes_max,
        budget: Budget::new(bytes_max, Duration::ZERO),
    }
}

/// Writes a series of a query: samples at 0, 1, 2 and so on.
fn write(writer: &mut SamplesWriter, query: usize, values: &[f64]) -> Result<(), Failure> {
    writer.begin(SeriesHead::new(query, &["n", &values.len().to_string()]))?;
    for (time, value) in (0..).zip(values) {
        let value = *value;
        writer.sample(Sample { time, value })?;
    }
    writer.end()
}

fn response(writer: SamplesWriter, queries: usize) -> Response {
    let (pieces, _) = writer.finish(queries).unwrap();
    let plain = snap::raw::Decoder::new().decompress_vec(&pieces.concat());
    Response::decode(&*plain.unwrap()).unwrap()
}

#[test]
fn each_query_has_a_result() {
    let mut writer = SamplesWriter::new(limits(100_000, 64 << 20));
    let long: Vec<f64> = (0..20_000).map(f64::from).collect();
    let stale = f64::from_bits(0x7ff0_0000_0000_0002);
    write(&mut writer, 1, &[-0.0, stale]).unwrap();
    write(&mut writer, 1, &long).unwrap();
    write(&mut writer, 3, &[1.0]).unwrap();
    let results = response(writer, 5).results;
    let lengths: Vec<Vec<usize>> = results
        .iter()
        .map(|result| result.series.iter().map(|one| one.samples.len()).collect())
        .collect();
    assert_eq!(lengths, [vec![], vec![2, 20_000], vec![], vec![1], vec![]]);
    let series = &results[1].series;
    assert_eq!(
        (&*series[0].labels[0].name, &*series[0].labels[0].value),
        ("n", "2")
    );
    let bits = series[0].samples.iter().map(|one| one.value.to_bits());
    assert!(bits.eq([(-0.0f64).to_bits(), stale.to_bits()]));
    let values = series[1].samples.iter().map(|one| one.value);
    assert!(values.eq(long));
    let times = series[1].samples.iter().map(|one| one.timestamp);
    assert!(times.eq(0..20_000));
}

#[test]
fn negative_times_are_written() {
    let mut writer = SamplesWriter::new(limits(10, 1 << 20));
    writer.begin(SeriesHead::new(0, &[])).unwrap();
    let (time, value) = (-1, 1.0);
    writer.sample(Sample { time, value }).unwrap();
    writer.end().unwrap();
    let series = &response(writer, 1).results[0].series[0];
    assert_eq!(series.samples[0].timestamp, -1);
}

#[test]
fn the_number_of_samples_is_limited() {
    let mut writer = SamplesWriter::new(limits(3, 1 << 20));
    write(&mut writer, 0, &[1.0, 2.0]).unwrap();
    let refused = write(&mut writer, 1, &[1.0, 2.0]).unwrap_err();
    assert_eq!(refused.kind, Kind::BadData);
    let expected = "exceeded sample limit (3) (query.read_samples_max); ask for fewer";
    assert!(refused.text.starts_with(expected), "{refused}");
}

#[test]
fn the_memory_of_answers_is_limited() {
    // Values without a pattern, which are not compressed.
    let values: Vec<f64> = (1..200_000u64)
        .map(|number| f64::from_bits(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 2))
        .collect();
    let limits = limits(1_000_000, 2 << 20);
    let mut alone = SamplesWriter::new(limits.clone());
    let refused = write(&mut alone, 0, &values).unwrap_err();
    assert_eq!(refused.kind, Kind::BadData);
    assert!(refused.text.contains("query.read_bytes_max"), "{refused}");
    drop(alone);
    assert_eq!(limits.budget.pending_bytes(), 0);

    // Two that are each short enough share the memory.
    let half = &values[..100_000];
    let mut first = SamplesWriter::new(limits.clone());
    write(&mut first, 0, half).unwrap();
    let (pieces, memory) = first.finish(1).unwrap();
    let bytes: usize = pieces.iter().map(Bytes::len).sum();
    assert!(memory.bytes() >= bytes && bytes > 1 << 20);
    let mut second = SamplesWriter::new(limits.clone());
    let refused = write(&mut second, 0, half).unwrap_err();
    assert_eq!(refused.kind, Kind::Unavailable);
    drop((second, memory));
    let mut third = SamplesWriter::new(limits);
    write(&mut third, 0, half).unwrap();
}
