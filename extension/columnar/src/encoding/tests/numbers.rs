//! Numbers of every distribution that metrics and ticks have.

use proptest::prelude::*;

use super::assert_identity;
use crate::kind::{LaneKind, Number};
use crate::limits::VECTOR_ROWS;
use crate::test_support::{FLOAT8, INT8, Value, cases};

const ROWS: usize = if cfg!(miri) { 70 } else { VECTOR_ROWS + 117 };

fn longs(numbers: impl IntoIterator<Item = i64>) -> Vec<Value> {
    let value = |number: i64| Some(number.to_ne_bytes().to_vec());
    numbers.into_iter().map(value).collect()
}

fn doubles(numbers: impl IntoIterator<Item = f64>) -> Vec<Value> {
    let value = |number: f64| Some(number.to_ne_bytes().to_vec());
    numbers.into_iter().map(value).collect()
}

/// A number of any length in bits.
fn any_long() -> impl Strategy<Value = i64> {
    (any::<i64>(), 0..64_u32).prop_map(|(number, shift)| number >> shift)
}

/// How a lane goes on from number to number.
fn any_walk() -> impl Strategy<Value = Vec<i64>> {
    let steps = prop::collection::vec((any_long(), 0..100_u8), 1..ROWS);
    (
        any_long(),
        any_long(),
        1..100_000_i64,
        0..100_u8,
        0..4_u8,
        steps,
    )
        .prop_map(|(first, step, factor, calm, order, steps)| {
            let (mut number, mut step) = (first, step);
            let next = |(change, luck): (i64, u8)| {
                let change = if luck < calm { change % 16 } else { change };
                let change = change.wrapping_mul(factor);
                match order {
                    0 => number = first.wrapping_add(change),
                    1 => number = number.wrapping_add(change),
                    2 => number = number.wrapping_add(step).wrapping_add(change % 3),
                    _ => {
                        step = step.wrapping_add(change);
                        number = number.wrapping_add(step);
                    }
                }
                number
            };
            steps.into_iter().map(next).collect()
        })
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn any_walk_comes_back(walk in any_walk()) {
        assert_identity(INT8, &longs(walk.iter().copied()), &[]);
        let narrow = |width: u16| {
            let kind = LaneKind::Fixed { width, stride: width, number: if width == 1 { Number::Opaque } else { Number::Signed } };
            let value = |number: &i64| Some(number.to_ne_bytes()[..width.into()].to_vec());
            assert_identity(kind, &walk.iter().map(value).collect::<Vec<_>>(), &[]);
        };
        narrow(4);
        narrow(2);
        narrow(1);
    }

    #[test]
    fn any_decimals_come_back(walk in any_walk(), power in 0..19_i32, narrow in any::<bool>()) {
        let decimal = |&number: &i64| number as f64 / 10_f64.powi(power);
        if narrow {
            let kind = LaneKind::Fixed { width: 4, stride: 4, number: Number::Float };
            let value = |number| Some((decimal(number) as f32).to_ne_bytes().to_vec());
            assert_identity(kind, &walk.iter().map(value).collect::<Vec<_>>(), &[]);
        } else {
            assert_identity(FLOAT8, &doubles(walk.iter().map(decimal)), &[]);
        }
    }

    #[test]
    fn any_bits_of_floats_come_back(bits in prop::collection::vec(any::<u64>(), 0..ROWS), specials in prop::collection::vec(0..8_usize, 0..ROWS)) {
        let special = [0x7ff0_0000_0000_0002, f64::NAN.to_bits(), (-f64::NAN).to_bits(), (-0.0_f64).to_bits(), 0, 1,
            f64::INFINITY.to_bits(), f64::NEG_INFINITY.to_bits()];
        let mixed = bits.iter().zip(&specials).map(|(&bits, &index)| f64::from_bits(if bits % 2 == 0 { special[index] } else { bits }));
        assert_identity(FLOAT8, &doubles(mixed), &[]);
        // Few specials among decimals are outliers.
        let decimals = (0_u32..).zip(&bits).map(|(row, &bits)| if bits % 40 == 0 { f64::from_bits(special[specials.first().copied().unwrap_or(0)]) } else { f64::from(row) / 10.0 });
        assert_identity(FLOAT8, &doubles(decimals), &[]);
    }
}

fn bits_per_row(values: &[Value], kind: LaneKind, starts: &[u32]) -> f64 {
    assert_identity(kind, values, starts).len() as f64 * 8.0 / values.len() as f64
}

/// Rows for which the head of a lane is small.
const MANY: i64 = if cfg!(miri) { 300 } else { 16_384 };

#[test]
fn regular_numbers_take_few_bits() {
    let tick = |row: i64| row * 10_000_000;
    let scrape = bits_per_row(&longs((0..MANY).map(tick)), INT8, &[]);
    assert!(scrape < 0.5, "a time every ten seconds: {scrape}");
    // Milliseconds in microseconds: the factor is found.
    let jitter = |row: i64| tick(row) + (row * 7919 % 13) * 1_000;
    let jittered = bits_per_row(&longs((0..MANY).map(jitter)), INT8, &[]);
    assert!(jittered < 7.0, "with milliseconds of jitter: {jittered}");
    let steps = |row: i64| ((row * 31 % 16) + 4000) as f64 / 10.0;
    let steps = bits_per_row(&doubles((0..MANY).map(steps)), FLOAT8, &[]);
    assert!(steps < 5.0, "tenths: {steps}");
    let counter = |row: i64| (row * 1000 + row * row % 512) as f64;
    let counter = bits_per_row(&doubles((0..MANY).map(counter)), FLOAT8, &[]);
    assert!(counter < 11.5, "a counter: {counter}");
    let reset = |row: i64| (row % 5_000 * 16 + 1_000_000) as f64;
    let reset = bits_per_row(&doubles((0..MANY).map(reset)), FLOAT8, &[]);
    assert!(reset < 0.7, "a counter that is reset: {reset}");
    let states = |row: i64| [3.25e11, 7.0, -1.5, 1e-3][(row * row % 7 % 4) as usize];
    let states = bits_per_row(&doubles((0..MANY).map(states)), FLOAT8, &[]);
    assert!(states < 3.5, "few distinct floats: {states}");
}
