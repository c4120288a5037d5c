//! Lanes as they were encoded once: every later version must still read them.
//!
//! `LANES_WRITE_GOLDEN=1 cargo test -p lanes-columnar golden` writes files that are missing and
//! leaves the others alone: a new encoding gets a new file.
#![cfg(not(miri))]

use super::super::EncodedLane;
use super::{assert_identity, assert_reads};
use crate::kind::{LaneKind, Number};
use crate::test_support::{self, FLOAT8, INT8, TEXT, Value, value};

/// A lane that is kept as a file.
struct Golden {
    name: &'static str,
    kind: LaneKind,
    starts: &'static [u32],
    values: fn() -> Vec<Value>,
    /// The encoding that it is there for.
    encoding: &'static str,
}

macro_rules! golden {
    ($name:literal, $encoding:literal, $kind:expr, $starts:expr, $values:expr) => {
        Golden {
            name: $name,
            kind: $kind,
            starts: &$starts,
            values: || $values,
            encoding: $encoding,
        }
    };
}

const PLAIN_TEXT: LaneKind = LaneKind::Varlena {
    dictionary: false,
    packed: true,
};
const UUID: LaneKind = LaneKind::Fixed {
    width: 16,
    stride: 16,
    number: Number::Opaque,
};
const SINGLE: LaneKind = LaneKind::Fixed {
    width: 4,
    stride: 4,
    number: Number::Float,
};

fn longs(rows: i64, number: impl Fn(i64) -> i64) -> Vec<Value> {
    (0..rows)
        .map(|row| Some(number(row).to_ne_bytes().to_vec()))
        .collect()
}

fn doubles(rows: i64, number: impl Fn(i64) -> f64) -> Vec<Value> {
    (0..rows)
        .map(|row| Some(number(row).to_ne_bytes().to_vec()))
        .collect()
}

/// A number from 0 to below a bound that does not follow from the row's neighbours.
fn noise(row: i64, below: i64) -> i64 {
    let mixed = (row as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33) as i64 % below
}

/// Some rows of a kind, every ninth NULL.
fn some(kind: LaneKind, rows: u32, variety: u32) -> Vec<Value> {
    (0..rows)
        .map(|row| {
            (row % 9 != 4)
                .then(|| value(kind, row * 7 % variety))
                .flatten()
        })
        .collect()
}

const FILES: &[Golden] = &[
    golden!("null", "constant", INT8, [], vec![None; 9]),
    golden!(
        "bool",
        "bitmap",
        LaneKind::Bool,
        [],
        some(LaneKind::Bool, 150, 2)
    ),
    golden!("bytes", "plain", UUID, [], some(UUID, 40, 9)),
    golden!("dictionary", "bit-packed", TEXT, [], some(TEXT, 300, 20)),
    golden!("items", "plain", PLAIN_TEXT, [], some(PLAIN_TEXT, 60, 30)),
    golden!("single", "few", SINGLE, [], some(SINGLE, 200, 50)),
    golden!(
        "dictionary_marked",
        "bit-packed",
        TEXT,
        [],
        some(TEXT, 300, 20)
    ),
    golden!(
        "items_marked",
        "compressed",
        PLAIN_TEXT,
        [],
        some(PLAIN_TEXT, 60, 30)
    ),
    golden!(
        "two_vectors",
        "constant",
        INT8,
        [],
        longs(2100, |row| row / 700)
    ),
    golden!(
        "level",
        "bit-packed",
        INT8,
        [],
        longs(300, |row| noise(row, 1000))
    ),
    golden!(
        "delta",
        "delta",
        INT8,
        [],
        longs(300, |row| row * 100 + noise(row, 16))
    ),
    golden!(
        "delta_of_delta",
        "delta-of-delta",
        INT8,
        [],
        longs(300, |row| row * row * 50 - noise(row, 4))
    ),
    golden!(
        "rising",
        "delta",
        INT8,
        [],
        longs(2048, |row| row * 100 + noise(row, 16))
    ),
    golden!(
        "rising_steps",
        "delta-of-delta",
        INT8,
        [],
        longs(2048, |row| row * row * 50 - noise(row, 4) % 2)
    ),
    golden!(
        "patches",
        "bit-packed",
        INT8,
        [],
        longs(300, |row| noise(row, 16)
            + if row % 77 == 5 { -1_i64 << 60 } else { 0 })
    ),
    golden!(
        "factor",
        "bit-packed",
        INT8,
        [],
        longs(300, |row| 11 + noise(row, 64) * 1000)
    ),
    golden!(
        "few",
        "few",
        INT8,
        [],
        longs(300, |row| [1 << 40, -5, 77 << 20][noise(row, 3) as usize])
    ),
    golden!(
        "pattern",
        "pattern",
        INT8,
        [100, 200],
        longs(280, |row| (row % 100) * 10_000 + noise(row % 100, 5) * 37)
    ),
    golden!(
        "decimal",
        "decimal",
        FLOAT8,
        [],
        doubles(300, |row| noise(row, 64) as f64 / 100.0)
    ),
    golden!(
        "outliers",
        "decimal delta-of-delta",
        FLOAT8,
        [],
        doubles(300, |row| match row % 100 {
            3 => f64::from_bits(0x7ff0_0000_0000_0002),
            4 => -0.0,
            5 => f64::INFINITY,
            _ => (row * 15) as f64 / 10.0,
        })
    ),
    golden!(
        "double",
        "bit-packed",
        FLOAT8,
        [],
        doubles(60, |row| 1.0 / (noise(row, 500) + 3) as f64)
    ),
];

#[test]
fn golden_files_read_as_ever_and_so_does_what_is_written_today() {
    let mut others = Vec::new();
    for golden in FILES {
        let values = (golden.values)();
        let today = assert_identity(golden.kind, &values, golden.starts);
        let kept = test_support::golden(&format!("encoding/golden/{}", golden.name), &today);
        assert_reads(&kept, golden.kind, &values);
        let encodings = EncodedLane::open(&kept, golden.kind).unwrap().encodings();
        if !encodings.iter().any(|(name, _)| *name == golden.encoding) {
            others.push((golden.name, encodings));
        }
    }
    assert!(others.is_empty(), "not what they are there for: {others:?}");
}
