//! Samples shaped as node_exporter's, for benchmarks of encodings and of sealing, and the processor
//! time that work on them takes.

use lanes_columnar::Column;
use lanes_columnar::kind::{LaneKind, Number};
use std::time::{Duration, Instant};

const PAGE: &str = include_str!("page.txt");
const SCRAPE_MICROSECONDS: i64 = 10_000_000;

/// A timestamp, a number of 64 bits.
pub const LONG: LaneKind = LaneKind::Fixed {
    width: 8,
    stride: 8,
    number: Number::Signed,
};
/// A value.
pub const DOUBLE: LaneKind = LaneKind::Fixed {
    width: 8,
    stride: 8,
    number: Number::Float,
};

/// Series, time, bits of the value.
pub type Row = [u64; 3];

/// The samples of so many scrapes of as many machines with the page's series, sorted. Scrapes are
/// late by up to so many milliseconds.
pub fn samples(targets: usize, scrapes: usize, late_ms: u64) -> Vec<Row> {
    let mut random = Random(7);
    let mut rows = Vec::new();
    let mut series = 1_000;
    for _ in 0..targets {
        let speed = 0.25 + 1.5 * random.unit();
        let begin = 1_763_700_000_000_000 + random.below(10_000) as i64 * 1_000;
        let times: Vec<i64> = (0..scrapes as i64)
            .map(|scrape| {
                begin + scrape * SCRAPE_MICROSECONDS + random.below(late_ms + 1) as i64 * 1_000
            })
            .collect();
        for line in PAGE.lines() {
            let values = values(line, scrapes, speed, &mut random);
            rows.extend(
                times
                    .iter()
                    .zip(values)
                    .map(|(&time, value)| [series, time as u64, value.to_bits()]),
            );
            series += 1;
        }
    }
    rows
}

/// The values of one series.
fn values(line: &str, scrapes: usize, speed: f64, random: &mut Random) -> Vec<f64> {
    let mut words = line.split(' ');
    let mut next = || words.next().unwrap_or_default();
    let (captured, decimals, movement, step) = (next(), next(), next(), next());
    let captured: f64 = captured.parse().unwrap_or_default();
    let step: f64 = step.parse().unwrap_or_default();
    let scale = decimals.parse().ok().map(|decimals| 10_f64.powi(decimals));
    let rounded = |value: f64| scale.map_or(value, |scale| (value * scale).round() / scale);
    let home = captured * speed;
    let mut value = if movement == "still" {
        captured
    } else {
        rounded(home)
    };
    let seconds = SCRAPE_MICROSECONDS as f64 / 1e6;
    let mut values = Vec::with_capacity(scrapes);
    for _ in 0..scrapes {
        values.push(value);
        value = match movement {
            "grows" => rounded(value + rounded(step * speed * seconds * 2.0 * random.unit())),
            "walks" => {
                let moved = value + step * (2.0 * random.unit() - 1.0) - (value - home) * 0.05;
                rounded(if captured >= 0.0 {
                    moved.max(0.0)
                } else {
                    moved
                })
            }
            _ => value,
        };
    }
    values
}

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// One lane of rows as a column.
pub fn column(rows: &[Row], lane: usize, kind: LaneKind) -> Column {
    let mut column = Column::new(kind);
    let bytes: Vec<u8> = rows
        .iter()
        .flat_map(|row| row[lane].to_ne_bytes())
        .collect();
    column.extend_fixed(&bytes, None, rows.len());
    column
}

/// Nanoseconds of the processor, the median of the runs that fit into 300 ms.
pub fn median(mut run: impl FnMut()) -> f64 {
    run();
    let mut times = Vec::new();
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(300) || times.len() < 5 {
        let start = processor_time();
        run();
        times.push(processor_time() - start);
    }
    times.sort_unstable();
    times[times.len() / 2] as f64
}

/// The CPU time of this thread in nanoseconds, without the time of other threads.
fn processor_time() -> i64 {
    // SAFETY: a structure of integers, for which zeros are good, is filled in.
    unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time);
        time.tv_sec * 1_000_000_000 + time.tv_nsec
    }
}
