//! Samples from a seed: counters with resets, gauges, flags, special values and histograms of
//! several targets.
//!
//! The scrapes of a target are irregular, some are missing, and some targets pause for longer than
//! the look-back. Some series begin or end in the middle, with a stale marker or without one.

use lanes_support::remote_write::Series;
use lanes_support::seed::Random;
use rand::RngExt;
use rand::seq::IndexedRandom;

/// The length of time with samples, in milliseconds.
pub const LENGTH: i64 = 2 * HOUR;
/// The bits of a stale marker.
const STALE_BITS: u64 = 0x7ff0_0000_0000_0002;
const SECOND: i64 = 1000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;

/// Times at which samples may begin, in seconds since 1970: before midnight at the end of a year
/// and of a leap February, on a Sunday, and an ordinary hour.
const STARTS: [i64; 5] = [
    1_704_063_600, // 2023-12-31 23:00
    1_709_161_200, // 2024-02-28 23:00
    1_709_245_200, // 2024-02-29 22:20
    1_743_294_600, // 2025-03-30 00:30
    1_760_000_000, // 2025-10-09 08:53:20
];

/// A scraped target: its job, its instance, and how it is scraped.
struct Target {
    job: &'static str,
    instance: &'static str,
    interval: i64,
    jitter: i64,
}

const TARGETS: [Target; 6] = [
    target("api", "a:9100", 15 * SECOND, 900),
    target("api", "b:9100", 15 * SECOND, 900),
    target("api", "c:9100", 15 * SECOND, 5),
    target("web", "a:9100", 30 * SECOND, 10_000),
    target("web", "b:9100", 30 * SECOND, 10_000),
    target("büro", "süd:1", MINUTE, 0),
];

const fn target(job: &'static str, instance: &'static str, interval: i64, jitter: i64) -> Target {
    Target {
        job,
        instance,
        interval,
        jitter,
    }
}

/// The values of a series.
#[derive(Clone, Copy)]
enum Shape {
    /// A counter that grows by up to so much, and rarely starts again.
    Counter(f64),
    /// A walk around a number.
    Gauge(f64),
    /// Whole numbers below a number, with many ties.
    Whole(u32),
    /// NaN, infinities, zeros of both signs, tiny and huge numbers.
    Special,
    /// Always 1.
    Constant,
}

/// Series with samples, in the order in which they are created.
pub struct Samples {
    /// The time of the first possible sample, in milliseconds since 1970.
    pub start: i64,
    /// The series.
    pub series: Vec<Series>,
}

/// Makes the samples of all targets. Unless they may be aligned, no sample is at a whole second.
pub fn generate(random: &mut Random, may_be_aligned: bool) -> Samples {
    let start = STARTS.choose(random).unwrap_or(&STARTS[0]) * SECOND;
    let mut series = Vec::new();
    for target in &TARGETS {
        let times = scrapes(random, target, start, may_be_aligned);
        for (metric, labels, shape) in series_of(random, target) {
            let values = values(random, shape, times.len());
            let samples = times.iter().copied().zip(values).collect();
            series.push(named(target, metric, &labels, cut(random, samples)));
        }
        series.extend(histogram(random, target, &times));
    }
    series.retain(|series| !series.samples.is_empty());
    Samples { start, series }
}

/// The times at which a target is scraped.
fn scrapes(random: &mut Random, target: &Target, start: i64, may_be_aligned: bool) -> Vec<i64> {
    let pause_start = start + random.random_range(0..LENGTH);
    let pause = pause_start..pause_start + random.random_range(6 * MINUTE..14 * MINUTE);
    let pauses = random.random_bool(0.6);
    let mut times: Vec<i64> = Vec::new();
    for scrape in 0..LENGTH / target.interval {
        let jitter = match target.jitter {
            0 => 0,
            jitter => random.random_range(0..jitter),
        };
        let mut time = start + scrape * target.interval + jitter;
        if !may_be_aligned {
            // Neither evaluations nor edges of ranges are at such a millisecond.
            time += 71 - time % 100;
        }
        let is_missing = random.random_bool(0.03) || pauses && pause.contains(&time);
        if !is_missing && times.last().is_none_or(|last| *last < time) {
            times.push(time);
        }
    }
    times
}

type Labels = Vec<(&'static str, &'static str)>;

/// The series of a target besides its histogram.
fn series_of(random: &mut Random, target: &Target) -> Vec<(&'static str, Labels, Shape)> {
    let mut all: Vec<(&'static str, Labels, Shape)> = vec![
        ("up", vec![], Shape::Whole(2)),
        ("memory_bytes", vec![], Shape::Gauge(3e9)),
        ("specials", vec![], Shape::Special),
    ];
    for mode in ["idle", "user", "system"] {
        all.push((
            "cpu_seconds_total",
            vec![("mode", mode)],
            Shape::Counter(15.0),
        ));
    }
    for code in ["200", "404", "500"] {
        for method in ["GET", "POST"] {
            let labels = vec![("code", code), ("method", method)];
            all.push(("requests_total", labels, Shape::Counter(100.0)));
        }
    }
    for room in ["Küche", "寝室", "🏠 \"attic\"\\"] {
        all.push(("temperature", vec![("room", room)], Shape::Gauge(20.0)));
    }
    for queue in ["in", "out"] {
        all.push(("queue_length", vec![("queue", queue)], Shape::Whole(4)));
    }
    let version = ["1.0", "1.1", "2.0-rc.1"].choose(random).unwrap_or(&"1.0");
    all.push(("target_info", vec![("version", *version)], Shape::Constant));
    if target.job == "web" {
        all.push(("only_web", vec![("a-b.c", "ü")], Shape::Gauge(0.0)));
    }
    all
}

fn named(
    target: &Target,
    metric: &str,
    labels: &[(&str, &str)],
    samples: Vec<(i64, f64)>,
) -> Series {
    let mut labels = labels.to_vec();
    labels.extend([("job", target.job), ("instance", target.instance)]);
    labels.sort_unstable();
    Series::new(metric, &labels, samples)
}

fn values(random: &mut Random, shape: Shape, count: usize) -> Vec<f64> {
    let mut current = match shape {
        Shape::Gauge(middle) => middle,
        _ => 0.0,
    };
    let resets = random.random_bool(0.5);
    let is_whole = random.random_bool(0.3);
    let mut next = || match shape {
        Shape::Constant => 1.0,
        Shape::Whole(end) => f64::from(random.random_range(0..end)),
        Shape::Special => special(random),
        Shape::Counter(step) => {
            if resets && random.random_bool(0.02) {
                current = 0.0;
            }
            let growth = random.random_range(0.0..step);
            // A counter that stands still is common.
            let growth = if random.random_bool(0.2) { 0.0 } else { growth };
            current += if is_whole { growth.round() } else { growth };
            current
        }
        Shape::Gauge(middle) => {
            let width = middle.abs().max(1.0) / 20.0;
            current += random.random_range(-width..width);
            current
        }
    };
    (0..count).map(|_| next()).collect()
}

fn special(random: &mut Random) -> f64 {
    const VALUES: [f64; 12] = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        0.0,
        -0.0,
        1.0,
        -1.5,
        1e-300,
        -1e300,
        4.2e17,
        1e21,
        0.1,
    ];
    // Most values are ordinary: otherwise each sum would be NaN.
    match random.random_bool(0.9) {
        true => f64::from(random.random_range(-50..50)) / 4.0,
        false => *VALUES.choose(random).unwrap_or(&0.0),
    }
}

/// Ends or begins a series in the middle, or pauses it; a stale marker may mark its end.
fn cut(random: &mut Random, mut samples: Vec<(i64, f64)>) -> Vec<(i64, f64)> {
    if samples.len() < 10 {
        return samples;
    }
    let place = random.random_range(1..samples.len() - 1);
    let stale = f64::from_bits(STALE_BITS);
    match random.random_range(0..20) {
        0 | 1 => drop(samples.drain(..place)),
        2 => samples.truncate(place),
        3 => {
            samples.truncate(place);
            samples[place - 1].1 = stale;
        }
        4 | 5 => samples[place].1 = stale,
        6 | 7 => {
            // A pause that begins with a stale marker.
            samples[place].1 = stale;
            let length = random.random_range(1..60).min(samples.len() - place - 1);
            samples.drain(place + 1..place + 1 + length);
        }
        _ => {}
    }
    samples
}

/// A classic histogram: cumulative buckets, the sum and the number of observations.
fn histogram(random: &mut Random, target: &Target, times: &[i64]) -> Vec<Series> {
    const BOUNDS: [(&str, f64); 5] = [
        ("0.1", 0.1),
        ("0.5", 0.5),
        ("1.0", 1.0),
        ("5", 5.0),
        ("+Inf", f64::INFINITY),
    ];
    let mut counts = [0.0; BOUNDS.len()];
    let mut sum = 0.0;
    let mut buckets = vec![Vec::new(); BOUNDS.len()];
    let (mut sums, mut totals) = (Vec::new(), Vec::new());
    for time in times {
        if random.random_bool(0.005) {
            (counts, sum) = ([0.0; BOUNDS.len()], 0.0);
        }
        for _ in 0..random.random_range(0..8) {
            let observed: f64 = random.random_range(0.0_f64..2.0).powi(3);
            sum += observed;
            for (count, (_, bound)) in counts.iter_mut().zip(&BOUNDS) {
                *count += f64::from(u8::from(observed <= *bound));
            }
        }
        for (bucket, count) in buckets.iter_mut().zip(counts) {
            bucket.push((*time, count));
        }
        sums.push((*time, sum));
        totals.push((*time, counts[BOUNDS.len() - 1]));
    }
    let labels = [("path", "/x")];
    let mut series = Vec::new();
    for ((bound, _), samples) in BOUNDS.iter().zip(buckets) {
        // One target lacks its last bucket, so that it has no quantiles.
        if *bound == "+Inf" && target.instance == "c:9100" {
            continue;
        }
        let labels = [labels[0], ("le", bound)];
        series.push(named(target, "latency_seconds_bucket", &labels, samples));
    }
    series.push(named(target, "latency_seconds_sum", &labels, sums));
    series.push(named(target, "latency_seconds_count", &labels, totals));
    series
}

/// Splits series into requests in the order of time. A series is created by a request of its own,
/// so that all stores create the series in one order.
pub fn requests(samples: &Samples) -> Vec<Vec<Series>> {
    let mut requests = Vec::new();
    let mut places = vec![0; samples.series.len()];
    let last = samples
        .series
        .iter()
        .filter_map(|series| series.samples.last());
    let last = last.map(|(time, _)| *time).max().unwrap_or(samples.start);
    let mut from = samples.start;
    while from <= last {
        let to = from + 2 * MINUTE;
        let mut together = Vec::new();
        for (series, place) in samples.series.iter().zip(&mut places) {
            let rest = &series.samples[*place..];
            let count = rest.partition_point(|(time, _)| *time < to);
            if count == 0 {
                continue;
            }
            let part = Series {
                labels: series.labels.clone(),
                samples: rest[..count].to_vec(),
            };
            if *place == 0 {
                requests.push(vec![part]);
            } else {
                together.push(part);
            }
            *place += count;
        }
        if !together.is_empty() {
            requests.push(together);
        }
        from = to;
    }
    requests
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn requests_hold_each_sample_once_and_in_the_order_of_time() {
        let samples = generate(&mut Random::seed_from_u64(1), true);
        let count = |series: &[Series]| series.iter().map(|one| one.samples.len()).sum::<usize>();
        let requests = requests(&samples);
        let sent: usize = requests.iter().map(|request| count(request)).sum();
        assert_eq!(sent, count(&samples.series));
        assert!(sent > 10_000, "{sent}");
        for series in &samples.series {
            assert!(series.labels.is_sorted(), "{:?}", series.labels);
            assert!(series.samples.is_sorted_by(|a, b| a.0 < b.0));
            let parts = requests.iter().flatten();
            let parts = parts.filter(|part| part.labels == series.labels);
            let times = parts.flat_map(|part| part.samples.iter().map(|(time, _)| *time));
            assert!(times.eq(series.samples.iter().map(|(time, _)| *time)));
        }
    }

    #[test]
    fn samples_follow_the_seed_and_contain_what_they_should() {
        let make = |seed| generate(&mut Random::seed_from_u64(seed), false).series;
        let bits = |series: &[Series]| -> Vec<(i64, u64)> {
            let samples = series.iter().flat_map(|one| &one.samples);
            samples
                .map(|(time, value)| (*time, value.to_bits()))
                .collect()
        };
        assert_eq!(bits(&make(1)), bits(&make(1)));
        assert_ne!(bits(&make(1)), bits(&make(2)));
        let all: Vec<_> = (1..5).flat_map(|seed| bits(&make(seed))).collect();
        assert!(all.iter().all(|(time, _)| time % 100 == 71));
        for wanted in [STALE_BITS, f64::NAN.to_bits(), f64::INFINITY.to_bits()] {
            assert!(all.iter().any(|(_, bits)| *bits == wanted), "{wanted:x}");
        }
        let has_gap = |series: &Series| {
            let pairs = series.samples.windows(2);
            pairs
                .into_iter()
                .any(|pair| pair[1].0 - pair[0].0 > 5 * MINUTE)
        };
        assert!(make(1).iter().chain(&make(2)).any(has_gap));
    }
}
