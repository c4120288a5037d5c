//! The kernels behind safe functions.

use super::block::packed_len;
use super::format::SLACK_BYTES;

/// The powers of ten that a block can have. All are exact.
pub(super) const POWERS: [f64; 15] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14,
];

/// `out[i] = base + the width bits from bit i * width`. `bits` has the slack of a lane behind the packed bits.
pub(super) fn unpack(bits: &[u8], width: u32, base: u64, out: &mut [u64]) {
    assert!(bits.len() >= packed_len(out.len(), width) + SLACK_BYTES && width <= 64);
    if width == 0 {
        out.fill(base);
        return;
    }
    let mask = u64::MAX >> (64 - width);
    for (index, out) in out.iter_mut().enumerate() {
        let bit = index * width as usize;
        let mut whole = [0; 16];
        whole.copy_from_slice(&bits[bit / 8..bit / 8 + 16]);
        *out = base.wrapping_add((u128::from_le_bytes(whole) >> (bit % 8)) as u64 & mask);
    }
}

/// `out[i] = out[i] * factor + base`.
pub(super) fn scale(out: &mut [u64], factor: u64, base: u64) {
    for out in out {
        *out = out.wrapping_mul(factor).wrapping_add(base);
    }
}

/// Turns differences into numbers, the first of them to the number `before`.
pub(super) fn sum_deltas(out: &mut [u64], before: u64) {
    let mut number = before;
    for out in out {
        number = number.wrapping_add(*out);
        *out = number;
    }
}

/// Turns changes of the difference into numbers, the first to the difference `step` that led to the number `before`.
pub(super) fn sum_deltas_of_deltas(out: &mut [u64], before: u64, step: u64) {
    let (mut number, mut step) = (before, step);
    for out in out {
        step = step.wrapping_add(*out);
        number = number.wrapping_add(step);
        *out = number;
    }
}

/// `number / 10^power` as a float; the bits of it.
#[inline]
pub(super) fn decimal_to_f64(number: i64, power: u8) -> f64 {
    number as f64 / POWERS[usize::from(power)]
}

/// Turns decimals into the bits of floats of 8 bytes.
pub(super) fn decimals_to_f64(numbers: &mut [u64], power: u8) {
    for number in numbers {
        *number = decimal_to_f64(*number as i64, power).to_bits();
    }
}

/// Turns decimals into the bits of floats of 4 bytes.
pub(super) fn decimals_to_f32(numbers: &mut [u64], power: u8) {
    for number in numbers {
        *number = u64::from((decimal_to_f64(*number as i64, power) as f32).to_bits());
    }
}
