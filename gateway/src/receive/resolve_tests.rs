//! The decoder, compared with prost, which decodes with generated code, and tested with hostile
//! bytes.

use proptest::prelude::*;
use prost::Message;

use super::*;
use crate::model::{Budget, Reservation};
use crate::receive::fuzz::exercise;
use crate::series::label_set::{LabelOrder, canonical_bytes};
use crate::series::protobuf::put_delimited;

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct PlainSample {
    #[prost(double, tag = "1")]
    value: f64,
    #[prost(int64, tag = "2")]
    timestamp: i64,
}

#[derive(Clone, PartialEq, Message)]
struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<PlainSample>,
    #[prost(bytes = "vec", repeated, tag = "3")]
    exemplars: Vec<Vec<u8>>,
    #[prost(bytes = "vec", repeated, tag = "4")]
    histograms: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct Request {
    #[prost(message, repeated, tag = "1")]
    timeseries: Vec<TimeSeries>,
    #[prost(bytes = "vec", repeated, tag = "3")]
    metadata: Vec<Vec<u8>>,
}

fn limits() -> RequestLimits {
    let label = LabelLimits {
        labels_max: 20,
        name_bytes_max: 100,
        value_bytes_max: 100,
        order: LabelOrder::Refuse,
    };
    RequestLimits {
        samples_max: 1000,
        label,
    }
}

fn cache() -> SeriesCache {
    SeriesCache::new(1 << 20, 1)
}

fn resolve_all(
    body: &[u8],
    limits: &RequestLimits,
    cache: &SeriesCache,
) -> Result<Resolved, MalformedRequest> {
    resolve(body, limits, cache, &mut Room::boundless())
}

fn series(labels: &[(&str, &str)], samples: &[(f64, i64)]) -> TimeSeries {
    TimeSeries {
        labels: labels
            .iter()
            .map(|(name, value)| Label {
                name: (*name).into(),
                value: (*value).into(),
            })
            .collect(),
        samples: samples
            .iter()
            .map(|&(value, timestamp)| PlainSample { value, timestamp })
            .collect(),
        exemplars: Vec::new(),
        histograms: Vec::new(),
    }
}

fn request(timeseries: Vec<TimeSeries>) -> Vec<u8> {
    Request {
        timeseries,
        metadata: Vec::new(),
    }
    .encode_to_vec()
}

#[test]
fn known_series_get_their_id_and_unknown_ones_a_provisional_id() {
    let cache = cache();
    cache.insert(0, &canonical_bytes(&[("__name__", "up"), ("job", "a")]), 42);
    let body = request(vec![
        series(
            &[("__name__", "up"), ("job", "a")],
            &[(1.0, 1000), (0.0, 2000)],
        ),
        series(&[("__name__", "new")], &[(5.0, 3000)]),
        series(&[("__name__", "other")], &[(6.0, 1)]),
        series(&[("__name__", "new")], &[(7.0, 4000)]),
    ]);
    let mut resolved = resolve_all(&body, &limits(), &cache).unwrap();
    assert_eq!(resolved.rows.series, [42, 42, -1, -2, -1]);
    assert_eq!(
        resolved.rows.timestamps_us,
        [1_000_000, 2_000_000, 3_000_000, 1000, 4_000_000]
    );
    assert_eq!(resolved.rows.values, [1.0, 0.0, 5.0, 6.0, 7.0]);
    let metrics: Vec<&str> = resolved
        .unknown
        .iter()
        .map(|series| series.label_set.metric.as_str())
        .collect();
    assert_eq!(metrics, ["new", "other"]);
    resolved.fill_in(&[8, 9]);
    assert_eq!(resolved.rows.series, [42, 42, 8, 9, 8]);
}

#[test]
fn every_bit_of_a_nan_survives() {
    for bits in [
        0x7ff0_0000_0000_0002,
        0x7ff8_0000_0000_0001,
        0xfff0_dead_beef_0001,
    ] {
        let body = request(vec![series(
            &[("__name__", "up")],
            &[(f64::from_bits(bits), 1)],
        )]);
        let resolved = resolve_all(&body, &limits(), &cache()).unwrap();
        assert_eq!(resolved.rows.values[0].to_bits(), bits);
    }
}

#[test]
fn illegal_series_and_samples_are_refused_alone() {
    let body = request(vec![
        series(&[("__name__", "good")], &[(1.0, 1)]),
        series(&[("job", "nameless")], &[(1.0, 1), (1.0, 2)]),
        series(
            &[("__name__", "late")],
            &[
                (1.0, *TIMESTAMP_MS_RANGE.end()),
                (1.0, i64::MAX),
                (1.0, i64::MIN),
            ],
        ),
    ]);
    let resolved = resolve_all(&body, &limits(), &cache()).unwrap();
    assert_eq!(resolved.rows.len(), 2);
    assert_eq!((resolved.refused.series, resolved.refused.samples), (1, 4));
    assert!(resolved.refused.reason.unwrap().contains("__name__"));
}

#[test]
fn histograms_are_refused_by_name_and_the_rest_is_counted() {
    let mut one = series(&[("__name__", "up")], &[(1.0, 1)]);
    one.histograms.push(vec![1, 2, 3]);
    one.exemplars.push(Vec::new());
    let body = Request {
        timeseries: vec![one],
        metadata: vec![vec![8, 1]],
    }
    .encode_to_vec();
    let resolved = resolve_all(&body, &limits(), &cache()).unwrap();
    assert_eq!(
        (
            resolved.rows.len(),
            resolved.refused.histograms,
            resolved.exemplars,
            resolved.metadata
        ),
        (1, 1, 1, 1)
    );
    assert!(
        resolved
            .refused
            .reason
            .unwrap()
            .contains("native histograms are not supported")
    );
}

#[test]
fn nothing_is_registered_for_series_without_samples() {
    let body = request(vec![series(&[("__name__", "up")], &[])]);
    let resolved = resolve_all(&body, &limits(), &cache()).unwrap();
    assert!(
        resolved.unknown.is_empty() && resolved.rows.is_empty() && resolved.refused.is_nothing()
    );
    assert!(
        resolve_all(b"", &limits(), &cache())
            .unwrap()
            .rows
            .is_empty()
    );
}

#[test]
fn samples_are_bounded_across_series() {
    let one = series(&[("__name__", "up")], &[(1.0, 1), (1.0, 2)]);
    let few = RequestLimits {
        samples_max: 3,
        ..limits()
    };
    let error = resolve_all(&request(vec![one.clone(), one]), &few, &cache()).unwrap_err();
    assert_eq!(
        error,
        MalformedRequest::Decode(DecodeError::TooManySamples { samples_max: 3 })
    );
}

#[test]
fn text_that_is_not_utf8_refuses_the_request() {
    let mut labels = canonical_bytes(&[("__name__", "up")]);
    put_delimited(&mut labels, 1, b"\x0a\x01a\x12\x01\xff");
    put_delimited(&mut labels, 2, b"");
    let mut body = request(vec![series(&[("__name__", "good")], &[(1.0, 1)])]);
    put_delimited(&mut body, 1, &labels);
    assert_eq!(
        resolve_all(&body, &limits(), &cache()).unwrap_err(),
        MalformedRequest::Label(LabelError::NotUtf8 { part: "value" })
    );
}

#[test]
fn labels_that_are_not_contiguous_are_gathered() {
    let labels = canonical_bytes(&[("__name__", "up"), ("job", "a")]);
    let name_bytes = canonical_bytes(&[("__name__", "up")]).len();
    let mut message = labels[..name_bytes].to_vec();
    put_delimited(&mut message, 2, b"\x10\x01");
    message.extend_from_slice(&labels[name_bytes..]);
    put_delimited(&mut message, 2, b"\x10\x02");
    let mut body = Vec::new();
    put_delimited(&mut body, 1, &message);
    let cache = cache();
    cache.insert(0, &labels, 3);
    let resolved = resolve_all(&body, &limits(), &cache).unwrap();
    assert_eq!(resolved.rows.series, [3, 3]);
    assert_eq!(resolved.rows.timestamps_us, [1000, 2000]);
}

fn any_series() -> impl Strategy<Value = TimeSeries> {
    let label =
        ("[a-c_]{0,3}|__name__", "[x-zü]{0,3}").prop_map(|(name, value)| Label { name, value });
    let timestamp = prop_oneof![
        Just(i64::MIN),
        Just(i64::MAX),
        Just(0),
        any::<i64>(),
        -1000i64..2_000_000_000_000
    ];
    let sample = (any::<u64>(), timestamp).prop_map(|(bits, timestamp)| PlainSample {
        value: f64::from_bits(bits),
        timestamp,
    });
    let name = "[m-p]{1,2}".prop_map(|value| Label {
        name: "__name__".into(),
        value,
    });
    (
        proptest::option::weighted(0.9, name),
        proptest::collection::vec(label, 0..4),
        proptest::collection::vec(sample, 0..4),
        any::<bool>(),
    )
        .prop_map(|(name, labels, samples, is_tidy)| {
            let mut labels: Vec<Label> = name.into_iter().chain(labels).collect();
            if is_tidy {
                labels.sort_by(|left, right| left.name.cmp(&right.name));
                labels.dedup_by(|left, right| left.name == right.name);
            }
            TimeSeries {
                labels,
                samples,
                exemplars: Vec::new(),
                histograms: Vec::new(),
            }
        })
}

/// The content of a request, computed as simply as possible.
fn expected(request: &Request) -> Vec<(String, i64, u64)> {
    let mut rows = Vec::new();
    for series in &request.timeseries {
        let names: Vec<&str> = series
            .labels
            .iter()
            .map(|label| label.name.as_str())
            .collect();
        let is_ascending = names.windows(2).all(|pair| pair[0] < pair[1]);
        let has_metric = series
            .labels
            .iter()
            .any(|label| label.name == "__name__" && !label.value.is_empty());
        if !is_ascending || !has_metric || names.contains(&"") {
            continue;
        }
        let key: Vec<String> = series
            .labels
            .iter()
            .filter(|label| !label.value.is_empty())
            .map(|label| format!("{}={}", label.name, label.value))
            .collect();
        for sample in &series.samples {
            if TIMESTAMP_MS_RANGE.contains(&sample.timestamp) {
                rows.push((
                    key.join(","),
                    sample.timestamp * 1000,
                    sample.value.to_bits(),
                ));
            }
        }
    }
    rows
}

fn found(resolved: &Resolved) -> Vec<(String, i64, u64)> {
    let keys: Vec<String> = resolved
        .unknown
        .iter()
        .map(|series| {
            let set = Request::decode(&*wrapped(&series.label_set.bytes)).unwrap();
            let labels = &set.timeseries[0].labels;
            labels
                .iter()
                .map(|label| format!("{}={}", label.name, label.value))
                .collect::<Vec<_>>()
                .join(",")
        })
        .collect();
    let rows = &resolved.rows;
    (0..rows.len())
        .map(|row| {
            (
                keys[(-1 - rows.series[row]) as usize].clone(),
                rows.timestamps_us[row],
                rows.values[row].to_bits(),
            )
        })
        .collect()
}

fn wrapped(label_bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    put_delimited(&mut body, 1, label_bytes);
    body
}

proptest! {
    #[test]
    fn requests_encoded_by_prost_are_decoded_equally(timeseries in proptest::collection::vec(any_series(), 0..6)) {
        let request = Request { timeseries, metadata: Vec::new() };
        let body = request.encode_to_vec();
        let resolved = resolve_all(&body, &limits(), &cache()).unwrap();
        prop_assert_eq!(found(&resolved), expected(&request));
        exercise(&body);
    }

    #[test]
    fn damaged_requests_do_no_harm(
        timeseries in proptest::collection::vec(any_series(), 1..4),
        damages in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut body = Request { timeseries, metadata: Vec::new() }.encode_to_vec();
        if body.is_empty() { body.push(0); }
        for (place, byte) in damages {
            let place = place.index(body.len());
            body[place] = byte;
        }
        exercise(&body);
        exercise(&body[..cut.index(body.len())]);
        // Whatever the decoder accepts, prost accepts too, with the same content.
        if let Ok(resolved) = resolve_all(&body, &limits(), &cache()) && resolved.refused.is_nothing() {
            match Request::decode(&*body) {
                Ok(request) => prop_assert_eq!(found(&resolved), expected(&request)),
                // Labels of series without samples are the only part that is not always parsed.
                Err(error) => prop_assert!(false, "prost refuses: {}", error),
            }
        }
    }

    #[test]
    fn any_bytes_do_no_harm(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        exercise(&body);
        exercise(&snap::raw::Encoder::new().compress_vec(&body).unwrap());
    }
}

#[test]
fn decoding_stays_within_its_bound() {
    let dense_samples = {
        let mut series = canonical_bytes(&[("__name__", "up")]);
        series.extend_from_slice(&[0x12, 0x00].repeat(1000));
        let mut body = Vec::new();
        put_delimited(&mut body, 1, &series);
        body
    };
    let short_series = {
        let mut body = Vec::new();
        for number in 0..1000u32 {
            let name = char::from_u32(0x100 + number).unwrap().to_string();
            let mut series = canonical_bytes(&[("__name__", &name)]);
            series.extend_from_slice(&[0x12, 0x00]);
            put_delimited(&mut body, 1, &series);
        }
        body
    };
    let escaped_labels = {
        let value = "\u{1}".repeat(100);
        let mut series = canonical_bytes(&[("__name__", "up"), ("a", &value), ("b", &value)]);
        series.extend_from_slice(&[0x12, 0x00]);
        let mut body = Vec::new();
        put_delimited(&mut body, 1, &series);
        body
    };
    for body in [dense_samples, short_series, escaped_labels] {
        let budget = Budget::new(1 << 24, std::time::Duration::ZERO);
        let mut room = Room::new(Reservation::default(), &budget, 0).unwrap();
        let resolved = resolve(&body, &limits(), &cache(), &mut room).unwrap();
        assert!(resolved.refused.is_nothing(), "{:?}", resolved.refused);
        let (held_bytes, covered_bytes) = (resolved.heap_bytes(), budget.pending_bytes());
        assert!(
            held_bytes <= covered_bytes,
            "{held_bytes} bytes are held of {covered_bytes}"
        );
        // Without room, nothing is decoded.
        let none = Budget::new(1, std::time::Duration::ZERO);
        let mut other = Reservation::default();
        other.grow(&none, 1).unwrap();
        let mut room = Room::new(Reservation::default(), &none, 0).unwrap();
        assert_eq!(
            resolve(&body, &limits(), &cache(), &mut room).unwrap_err(),
            MalformedRequest::Overloaded(Overloaded)
        );
    }
}

#[test]
fn a_scrape_of_known_series_takes_little_more_than_its_rows() {
    let cache = cache();
    let mut all = Vec::new();
    for number in 0..1000 {
        let number = number.to_string();
        let labels = [
            ("__name__", "node_cpu_seconds_total"),
            ("cpu", number.as_str()),
            ("instance", "a"),
            ("mode", "idle"),
        ];
        cache.insert(0, &canonical_bytes(&labels), 7);
        all.push(series(&labels, &[(1.0, 1_700_000_000_000)]));
    }
    let body = request(all);
    let budget = Budget::new(1 << 24, std::time::Duration::ZERO);
    let mut room = Room::new(Reservation::default(), &budget, 0).unwrap();
    let resolved = resolve(&body, &limits(), &cache, &mut room).unwrap();
    assert_eq!(resolved.rows.len(), 1000);
    let taken = budget.pending_bytes();
    assert!(taken <= 3 * body.len(), "{taken} for {}", body.len());
}
