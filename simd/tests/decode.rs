//! Packed bits, differences and decimals, on every target.

mod support;

use lanes_simd::{decode, naive};
use support::{Fenced, Random, Sample, on_every_target, row_counts};

/// Random bytes for as many bits, and the slack behind them: to the end of what can be read.
fn packed(random: &mut Random, bits: usize) -> Fenced<u8> {
    let bytes = bits.div_ceil(8) + decode::UNPACK_SLACK_BYTES;
    Fenced::new(&(0..bytes).map(|_| random.next() as u8).collect::<Vec<_>>())
}

fn words(random: &mut Random, rows: usize) -> Fenced<u64> {
    let lane = random.lane::<i64>(rows);
    Fenced::new(&lane.iter().map(|&value| value as u64).collect::<Vec<_>>())
}

#[test]
fn bits_are_unpacked() {
    on_every_target(|target| {
        let mut random = Random(15);
        for rows in row_counts() {
            for width in 0..=64 {
                let packed = packed(&mut random, rows * width as usize);
                let base = random.next();
                let mut out = Fenced::filled(0, rows);
                // SAFETY: as many bytes as the rows need, and the slack.
                unsafe { decode::unpack_bits_u64(packed.ptr(), width, rows, base, out.mut_ptr()) };
                let expected = naive::unpack_bits(packed.values(), width, rows, base);
                assert_eq!(out.values(), expected, "{target:?} {rows} {width}");
                if width <= 32 {
                    let base = base as u32;
                    let mut out = Fenced::filled(0, rows);
                    // SAFETY: as above.
                    unsafe {
                        decode::unpack_bits_u32(packed.ptr(), width, rows, base, out.mut_ptr());
                    }
                    let expected: Vec<u32> = expected.iter().map(|&value| value as u32).collect();
                    assert_eq!(out.values(), expected, "{target:?} {rows} {width}");
                }
            }
        }
    });
}

#[test]
fn bits_become_sums_and_decimals_in_one_pass() {
    on_every_target(|target| {
        let mut random = Random(17);
        for rows in row_counts() {
            for width in 0..=64 {
                let packed = packed(&mut random, rows * width as usize);
                let (base, before) = (random.next(), random.next());
                let numbers = naive::unpack_bits(packed.values(), width, rows, base);
                let mut out = Fenced::filled(0, rows);
                let (bits, to) = (packed.ptr(), out.mut_ptr());
                // SAFETY: as many bytes as the rows need, and the slack; here and below.
                unsafe { decode::unpack_deltas_u64(bits, width, rows, base, before, to) };
                let expected = naive::sum_deltas(&numbers, before);
                assert_eq!(out.values(), expected, "{target:?} {rows} {width}");
                let divisor = 10_f64.powi(random.below(15) as i32);
                let to = out.mut_ptr();
                // SAFETY: as above.
                unsafe { decode::unpack_decimals_f64(bits, width, rows, base, divisor, to) };
                let expected = naive::decimals_to_f64(&numbers, divisor);
                assert_eq!(
                    out.values(),
                    expected,
                    "{target:?} {rows} {width} {divisor}"
                );
            }
        }
    });
}

#[test]
fn numbers_are_scaled_and_summed() {
    on_every_target(|target| {
        let mut random = Random(16);
        for rows in row_counts() {
            let (first, second) = (i64::sample(&mut random) as u64, random.next());
            let lane = words(&mut random, rows);
            let check = |name, expected: Vec<u64>, kernel: &dyn Fn(*mut u64)| {
                let mut found = Fenced::new(lane.values());
                kernel(found.mut_ptr());
                assert_eq!(found.values(), expected, "{name} {target:?} {rows}");
            };
            let scaled = naive::scale(lane.values(), first, second);
            check("scale", scaled, &|out| {
                // SAFETY: a lane of as many rows, here and below.
                unsafe { decode::scale_u64(out, rows, first, second) }
            });
            let summed = naive::sum_deltas(lane.values(), first);
            check("deltas", summed, &|out| {
                // SAFETY: as above.
                unsafe { decode::sum_deltas_u64(out, rows, first) }
            });
            let summed = naive::sum_deltas_of_deltas(lane.values(), first, second);
            check("deltas of deltas", summed, &|out| {
                // SAFETY: as above.
                unsafe { decode::sum_deltas_of_deltas_u64(out, rows, first, second) }
            });
        }
    });
}

#[test]
fn decimals_become_the_nearest_doubles() {
    on_every_target(|target| {
        let mut random = Random(18);
        for rows in row_counts() {
            for power in 0..15 {
                let divisor = 10_f64.powi(power);
                // Numbers of any length, so that some are rounded and some are not.
                let shift = random.below(64);
                let shifted = |&value: &u64| ((value as i64) >> shift) as u64;
                let lane: Vec<u64> = words(&mut random, rows)
                    .values()
                    .iter()
                    .map(shifted)
                    .collect();
                let mut found = Fenced::new(&lane);
                // SAFETY: a lane of as many rows.
                unsafe { decode::decimals_to_f64(found.mut_ptr(), rows, divisor) };
                let expected = naive::decimals_to_f64(&lane, divisor);
                assert_eq!(found.values(), expected, "{target:?} {rows} {power}");
            }
        }
    });
}

/// Numbers whose quotients lie as near to the middle of two doubles as they can: n / 5^k = m / 2^t
/// - r / (5^k 2^t), where m has 54 bits and is odd, and r is small.
#[test]
fn decimals_near_the_middle_of_two_doubles_are_rounded_as_a_division_does() {
    const MIDDLE: u64 = 1 << 53;
    let mut random = Random(19);
    let mut lanes = Vec::new();
    for power in 1..15 {
        let five = 5_u64.pow(power);
        // Newton's iteration doubles the right bits; an odd number is its own inverse in three.
        let inverse = (0..5).fold(five, |inverse, _| {
            inverse.wrapping_mul(2_u64.wrapping_sub(five.wrapping_mul(inverse)))
        });
        let least = u64::from(64 - five.leading_zeros()) + 1;
        let mut lane = Vec::new();
        while lane.len() < 40_000 {
            let t = least + random.below(54 - least);
            let rest = random.below(16) as i64 * 2 - 15;
            // Modulo 2^t, m is r over 5^k.
            let mask = (1 << t) - 1;
            let low = inverse.wrapping_mul(rest as u64).wrapping_sub(MIDDLE) & mask;
            let middle = MIDDLE + (low | random.next() & (MIDDLE - 1) & !mask);
            let product = i128::from(middle) * i128::from(five) - i128::from(rest);
            assert_eq!(product & i128::from(mask), 0);
            let number = (product >> t) as i64;
            assert!(number < 1 << 53, "it is a double itself");
            lane.extend([number as u64, -number as u64]);
        }
        lanes.push((10_f64.powi(power as i32), lane));
    }
    on_every_target(|target| {
        for (divisor, lane) in &lanes {
            let mut found = lane.clone();
            // SAFETY: a lane of as many rows.
            unsafe { decode::decimals_to_f64(found.as_mut_ptr(), found.len(), *divisor) };
            let expected = naive::decimals_to_f64(lane, *divisor);
            assert!(found == expected, "{target:?} {divisor}");
        }
    });
}
