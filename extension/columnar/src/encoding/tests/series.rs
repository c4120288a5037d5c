//! Lanes of rows that are sorted by series and time.

use super::super::{EncodedLane, encode_lane, key_starts};
use super::assert_reads;
use crate::limits::VECTOR_ROWS;
use crate::test_support::{FLOAT8, INT8, Value, build};

const SERIES: i64 = if cfg!(miri) { 4 } else { 30 };
const SAMPLES: i64 = if cfg!(miri) { 40 } else { 360 };

/// Series, time and value of each row, from some row of the first series to some row of the last.
struct Samples {
    series: Vec<Value>,
    times: Vec<Value>,
    values: Vec<Value>,
}

fn samples() -> Samples {
    let mut all = Samples {
        series: Vec::new(),
        times: Vec::new(),
        values: Vec::new(),
    };
    for row in SAMPLES / 3..SERIES * SAMPLES - SAMPLES / 4 {
        let (series, sample) = (row / SAMPLES, row % SAMPLES);
        let jitter = (sample * 7919 % 11) * 1_000;
        let time = 1_700_000_000_000_000 + sample * 10_000_000 + jitter;
        let value = match series % 3 {
            0 => 4096.0,
            1 => (sample * sample % 97) as f64 / 100.0,
            _ => (series * 1_000_000 + sample * 150 + sample % 7) as f64,
        };
        all.series.push(Some((40 + series).to_ne_bytes().to_vec()));
        all.times.push(Some(time.to_ne_bytes().to_vec()));
        all.values.push(Some(value.to_ne_bytes().to_vec()));
    }
    all
}

#[test]
fn series_are_runs_times_are_patterns_and_each_series_has_its_own_decimals() {
    let samples = samples();
    let series = build(INT8, &samples.series);
    let starts = key_starts(&[&series]);
    assert_eq!(starts.len(), SERIES as usize - 1);
    let rows = series.rows() as f64;

    let bytes = encode_lane(&series, &starts).unwrap();
    assert_reads(&bytes, INT8, &samples.series);
    assert!(
        (bytes.len() as f64) < 0.1 * rows || cfg!(miri),
        "{}",
        bytes.len()
    );
    let lane = EncodedLane::open(&bytes, INT8).unwrap();
    assert_eq!(lane.encodings()[0].0, "constant");
    let runs = lane.repeats(0).unwrap().count();
    assert!(
        runs > 1 && runs <= VECTOR_ROWS / SAMPLES as usize + 2,
        "{runs}"
    );
    // The starts do not matter where runs can be seen.
    let unaided = encode_lane(&series, &[]).unwrap();
    assert_reads(&unaided, INT8, &samples.series);
    assert!(unaided.len() < bytes.len() + 100, "{}", unaided.len());

    let times = encode_lane(&build(INT8, &samples.times), &starts).unwrap();
    assert_reads(&times, INT8, &samples.times);
    assert!(
        (times.len() as f64) < 0.1 * rows || cfg!(miri),
        "{}",
        times.len()
    );
    let encodings = EncodedLane::open(&times, INT8).unwrap().encodings();
    assert_eq!(encodings[0].0, "pattern");

    let values = encode_lane(&build(FLOAT8, &samples.values), &starts).unwrap();
    assert_reads(&values, FLOAT8, &samples.values);
    assert!(
        (values.len() as f64) < 0.65 * rows || cfg!(miri),
        "{}",
        values.len()
    );
}

#[test]
fn a_whole_vector_of_rising_times_tells_its_first_and_last() {
    let rows = VECTOR_ROWS as i64 + 100;
    // Neither equal steps nor equal changes of them.
    let noise = |row: i64| (row * 7919 % 1_000) + (row * row * 31 % 977);
    let times = |step: i64| move |row: i64| row * 2_000 + row * row * step + noise(row);
    for step in [0, 40] {
        let time = times(step);
        let values: Vec<Value> = (0..rows)
            .map(|row| Some(time(row).to_ne_bytes().to_vec()))
            .collect();
        let bytes = encode_lane(&build(INT8, &values), &[]).unwrap();
        assert_reads(&bytes, INT8, &values);
        let lane = EncodedLane::open(&bytes, INT8).unwrap();
        let zone = lane.zone(0).expect("of a rising block");
        assert_eq!(zone.minimum.signed(), Some(time(0)));
        assert_eq!(zone.maximum.signed(), Some(time(VECTOR_ROWS as i64 - 1)));
        let zone = lane.zone(1).expect("of a short block");
        assert!(zone.maximum.signed() >= Some(time(rows - 1)), "{zone:?}");
    }
}

#[test]
fn starts_that_make_no_sense_are_ignored() {
    let samples = samples();
    let column = build(FLOAT8, &samples.values);
    for starts in [&[5, 3, u32::MAX, 0][..], &[0; 9], &[u32::MAX]] {
        let bytes = encode_lane(&column, starts).unwrap();
        assert_reads(&bytes, FLOAT8, &samples.values);
    }
}

#[test]
fn a_vector_of_one_row_may_be_the_end_of_a_pattern() {
    let samples = if cfg!(miri) { 1 } else { 683 };
    let rows = 3 * samples;
    assert!(rows % VECTOR_ROWS == 1 || cfg!(miri));
    let time = |sample: usize| 1_000 * sample + sample * 7919 % 11;
    let times: Vec<Value> = (0..rows)
        .map(|row| Some(time(row % samples).to_ne_bytes().to_vec()))
        .collect();
    let starts: Vec<u32> = (0..rows as u32).step_by(samples).skip(1).collect();
    let bytes = encode_lane(&build(INT8, &times), &starts).unwrap();
    assert_reads(&bytes, INT8, &times);
}

#[test]
fn short_pieces_share_a_block_where_that_is_smaller() {
    const PIECE: usize = 8;
    let rows = if cfg!(miri) { 64 } else { 4 * VECTOR_ROWS };
    let number = |row: usize| Some((row * 7919 % 13 % 5).to_ne_bytes().to_vec());
    let numbers: Vec<Value> = (0..rows).map(number).collect();
    let starts: Vec<u32> = (0..rows as u32).step_by(PIECE).skip(1).collect();
    let bytes = encode_lane(&build(INT8, &numbers), &starts).unwrap();
    assert_reads(&bytes, INT8, &numbers);
    assert!(bytes.len() * 2 < rows || cfg!(miri), "{}", bytes.len());
}

#[test]
fn keys_of_short_pieces_are_steps() {
    let rows = if cfg!(miri) {
        96
    } else {
        2 * VECTOR_ROWS + 100
    };
    // Steps of 1, which are packed; some large ones, which are patches; some back and some of 0.
    for (piece, step) in [(8, 1), (33, 1), (33, 1_000_003), (8, -5), (12, 0)] {
        let number = |row: usize| match row / piece {
            key if key % 17 == 16 => 40,
            key => 70_000 + step * key as i64,
        };
        let numbers: Vec<Value> = (0..rows)
            .map(|row| Some(number(row).to_ne_bytes().to_vec()))
            .collect();
        let starts: Vec<u32> = (0..rows as u32).step_by(piece).skip(1).collect();
        let bytes = encode_lane(&build(INT8, &numbers), &starts).unwrap();
        assert_reads(&bytes, INT8, &numbers);
        let a_piece = bytes.len() as f64 / starts.len() as f64;
        assert!(
            a_piece < 6.5 || cfg!(miri),
            "{piece} rows, {step}: {a_piece}"
        );
    }
}
