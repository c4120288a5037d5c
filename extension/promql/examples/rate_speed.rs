//! Measures `sum by (x) (rate(m[5m]))` over 10,000 series of a day, against a plain sum of the
//! same values in the same run.
//!
//! ```text
//! cargo run --release -p lanes-promql --example rate_speed [SERIES]
//! ```

use lanes_promql::source::{Samples, Selection, SeriesSink, Source};
use lanes_promql::{Engine, Error, Labels, Options, Value};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Milliseconds between two samples.
const INTERVAL: i64 = 10_000;

/// Samples of a day.
const SAMPLES: usize = 8640;

/// Series with values of their own and times that they share.
struct Counters {
    timestamps: Vec<i64>,
    labels: Vec<Labels>,
    values: Vec<f64>,
}

impl Counters {
    fn new(series: usize) -> Counters {
        let labels = |number: usize| {
            Labels::from_pairs([
                ("__name__", "requests_total".to_owned()),
                ("instance", format!("host-{number}:9100")),
                ("job", "node".to_owned()),
                ("x", format!("group-{}", number % 20)),
            ])
        };
        let mut state = 42_u64;
        let mut values = Vec::with_capacity(series * SAMPLES);
        for _ in 0..series {
            let mut counter = 0.0;
            for _ in 0..SAMPLES {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let random = state >> 33;
                // A counter restarts about twice a day.
                counter = if random.is_multiple_of(4096) {
                    0.0
                } else {
                    counter + (random % 100) as f64
                };
                values.push(counter);
            }
        }
        Counters {
            timestamps: (0..SAMPLES as i64).map(|place| place * INTERVAL).collect(),
            labels: (0..series).map(labels).collect(),
            values,
        }
    }
}

impl Source for Counters {
    fn read(&self, selection: &Selection<'_>, each: SeriesSink<'_>) -> Result<(), Error> {
        let rows = self.labels.iter().zip(self.values.chunks_exact(SAMPLES));
        for (labels, values) in rows.filter(|(labels, _)| selection.matches(labels)) {
            let samples = Samples {
                timestamps: &self.timestamps,
                values,
            };
            each(labels, samples)?;
        }
        Ok(())
    }
}

/// The shortest of several runs.
fn best(runs: usize, mut run: impl FnMut()) -> Duration {
    let times = (0..runs).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed()
    });
    times.min().unwrap_or_default()
}

fn main() -> Result<(), Error> {
    let series = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(10_000);
    let counters = Counters::new(series);
    let samples = counters.values.len() as f64;
    let report = |name: &str, time: Duration| {
        let seconds = time.as_secs_f64();
        println!(
            "{name:<44} {seconds:>8.3} s {:>9.1} M samples/s",
            samples / seconds / 1e6
        );
    };
    let sum = best(3, || {
        black_box(black_box(&counters.values).iter().sum::<f64>());
    });
    report("a plain sum", sum);
    let lanes = best(3, || {
        let mut lanes = [0.0; 16];
        for chunk in black_box(&counters.values).chunks_exact(16) {
            lanes
                .iter_mut()
                .zip(chunk)
                .for_each(|(lane, value)| *lane += value);
        }
        black_box(lanes);
    });
    report("a plain sum in 16 lanes (memory speed)", lanes);
    let engine = Engine::new(&counters, Options::default());
    let end = SAMPLES as i64 * INTERVAL;
    for query in [
        "sum by (x) (rate(requests_total[5m]))",
        "sum(rate(requests_total[5m]))",
        "max by (x) (requests_total)",
        "sum by (x) (avg_over_time(requests_total[5m]))",
        "sum by (x) (rate(requests_total[1h]))",
    ] {
        let mut peak = 0;
        let mut failure = None;
        let time = best(3, || match engine.range(query, 0, end, 60_000) {
            Ok(answer) => {
                peak = answer.statistics.held_bytes_peak;
                let is_matrix = matches!(&answer.value, Value::Matrix(rows) if !rows.is_empty());
                assert!(is_matrix, "{query} has no answer");
            }
            Err(error) => failure = Some(error),
        });
        if let Some(error) = failure {
            return Err(error);
        }
        report(query, time);
        println!(
            "{:>44} {:.1} MiB held",
            "",
            peak as f64 / f64::from(1 << 20)
        );
    }
    Ok(())
}
