//! Safe functions around the kernels. Under Miri, which cannot run the kernels, they call naive
//! twins.

use super::format::SLACK_BYTES;
use super::packed::packed_len;
#[cfg(not(miri))]
use lanes_simd::decode;
#[cfg(miri)]
use lanes_simd::naive;

/// The powers of ten that a block can have. All are exact.
pub(super) const POWERS: [f64; 15] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14,
];

const _: () = assert!(SLACK_BYTES >= lanes_simd::decode::UNPACK_SLACK_BYTES);

/// `out[i] = base + the width bits from bit i * width`. The slack of a lane follows the packed bits
/// in `bits`.
pub(super) fn unpack(bits: &[u8], width: u32, base: u64, out: &mut [u64]) {
    assert!(bits.len() >= packed_len(out.len(), width) + SLACK_BYTES && width <= 64);
    #[cfg(miri)]
    out.copy_from_slice(&naive::unpack_bits(bits, width, out.len(), base));
    #[cfg(not(miri))]
    // SAFETY: as many bytes as the rows need and the slack have just been counted.
    unsafe {
        decode::unpack_bits_u64(bits.as_ptr(), width, out.len(), base, out.as_mut_ptr());
    }
}

/// Unpacks values of at most 32 bits like [`unpack`].
pub(super) fn unpack_narrow(bits: &[u8], width: u32, base: u32, out: &mut [u32]) {
    assert!(bits.len() >= packed_len(out.len(), width) + SLACK_BYTES && width <= 32);
    #[cfg(miri)]
    narrow(
        &naive::unpack_bits(bits, width, out.len(), base.into()),
        out,
    );
    #[cfg(not(miri))]
    // SAFETY: as many bytes as the rows need and the slack have just been counted.
    unsafe {
        decode::unpack_bits_u32(bits.as_ptr(), width, out.len(), base, out.as_mut_ptr());
    }
}

/// Unpacks the value of row `row` like [`unpack`].
pub(super) fn unpack_one(bits: &[u8], width: u32, base: u64, row: usize) -> u64 {
    if width == 0 {
        return base;
    }
    let bit = row * width as usize;
    let whole = bits[bit / 8..]
        .first_chunk()
        .map_or(0, |bytes| u128::from_le_bytes(*bytes));
    base.wrapping_add((whole >> (bit % 8)) as u64 & u64::MAX >> (u64::BITS - width))
}

/// Unpacks values like [`unpack`], and then sums them like [`sum_deltas`].
pub(super) fn unpack_sums(bits: &[u8], width: u32, base: u64, before: u64, out: &mut [u64]) {
    assert!(bits.len() >= packed_len(out.len(), width) + SLACK_BYTES && width <= 64);
    #[cfg(miri)]
    {
        unpack(bits, width, base, out);
        sum_deltas(out, before);
    }
    #[cfg(not(miri))]
    // SAFETY: as many bytes as the rows need and the slack have just been counted.
    unsafe {
        decode::unpack_deltas_u64(
            bits.as_ptr(),
            width,
            out.len(),
            base,
            before,
            out.as_mut_ptr(),
        );
    }
}

/// Unpacks values like [`unpack`], and then converts them like [`decimals_to_f64`].
pub(super) fn unpack_decimals(bits: &[u8], width: u32, base: u64, power: u8, out: &mut [u64]) {
    assert!(bits.len() >= packed_len(out.len(), width) + SLACK_BYTES && width <= 64);
    #[cfg(miri)]
    {
        unpack(bits, width, base, out);
        decimals_to_f64(out, power);
    }
    #[cfg(not(miri))]
    // SAFETY: as many bytes as the rows need and the slack have just been counted.
    unsafe {
        decode::unpack_decimals_f64(
            bits.as_ptr(),
            width,
            out.len(),
            base,
            POWERS[usize::from(power)],
            out.as_mut_ptr(),
        );
    }
}

/// The low halves of as many numbers.
pub(super) fn narrow(numbers: &[u64], out: &mut [u32]) {
    for (out, number) in out.iter_mut().zip(numbers) {
        *out = *number as u32;
    }
}

/// Converts the bits of 8-byte floats to the bits of 4-byte floats.
pub(super) fn narrow_floats(doubles: &[u64], out: &mut [u32]) {
    for (out, double) in out.iter_mut().zip(doubles) {
        *out = (f64::from_bits(*double) as f32).to_bits();
    }
}

/// `out[i] = out[i] * factor + base`.
pub(super) fn scale(out: &mut [u64], factor: u64, base: u64) {
    #[cfg(miri)]
    out.copy_from_slice(&naive::scale(out, factor, base));
    #[cfg(not(miri))]
    // SAFETY: a slice of as many rows.
    unsafe {
        decode::scale_u64(out.as_mut_ptr(), out.len(), factor, base);
    }
}

/// Turns differences into numbers, the first of them to the number `before`.
pub(super) fn sum_deltas(out: &mut [u64], before: u64) {
    #[cfg(miri)]
    out.copy_from_slice(&naive::sum_deltas(out, before));
    #[cfg(not(miri))]
    // SAFETY: a slice of as many rows.
    unsafe {
        decode::sum_deltas_u64(out.as_mut_ptr(), out.len(), before);
    }
}

/// Turns changes of the difference into numbers, the first to the difference `step` that led to the
/// number `before`.
pub(super) fn sum_deltas_of_deltas(out: &mut [u64], before: u64, step: u64) {
    #[cfg(miri)]
    out.copy_from_slice(&naive::sum_deltas_of_deltas(out, before, step));
    #[cfg(not(miri))]
    // SAFETY: a slice of as many rows.
    unsafe {
        decode::sum_deltas_of_deltas_u64(out.as_mut_ptr(), out.len(), before, step);
    }
}

/// `number / 10^power` as a float.
#[inline]
pub(super) fn decimal_to_f64(number: i64, power: u8) -> f64 {
    number as f64 / POWERS[usize::from(power)]
}

/// Turns decimals into the bits of floats of 8 bytes.
pub(super) fn decimals_to_f64(numbers: &mut [u64], power: u8) {
    let divisor = POWERS[usize::from(power)];
    #[cfg(miri)]
    numbers.copy_from_slice(&naive::decimals_to_f64(numbers, divisor));
    #[cfg(not(miri))]
    // SAFETY: a slice of as many rows.
    unsafe {
        decode::decimals_to_f64(numbers.as_mut_ptr(), numbers.len(), divisor);
    }
}

/// Converts the bits of 8-byte floats to the bits of 4-byte floats in place.
pub(super) fn floats_in_place(doubles: &mut [u64]) {
    for double in doubles {
        *double = (f64::from_bits(*double) as f32).to_bits().into();
    }
}
