//! Numbers out of packed bits, differences and decimals. Integer arithmetic wraps.
//!
//! Packed values follow each other without gaps: value `i` is the `width` bits from bit `i *
//! width`, the lowest bit of byte 0 being bit 0, and is added to the frame of reference `base`.
//! Bytes need no alignment.

use crate::bridge;

/// Bytes after the packed ones that may be read.
pub const UNPACK_SLACK_BYTES: usize = 16;

/// Unpacks `rows` values; a width above 32 counts as 32.
///
/// # Safety
/// As for the [crate](crate#safety); `packed` has `(rows * width).div_ceil(8)` bytes and
/// [`UNPACK_SLACK_BYTES`] readable ones after them.
pub unsafe fn unpack_bits_u32(
    packed: *const u8,
    width: u32,
    rows: usize,
    base: u32,
    out: *mut u32,
) {
    // SAFETY: this function's contract.
    unsafe { bridge::unpack_bits_u32(packed, width, rows, base, out) }
}

/// Unpacks `rows` values; a width above 64 counts as 64.
///
/// # Safety
/// As for [`unpack_bits_u32`].
pub unsafe fn unpack_bits_u64(
    packed: *const u8,
    width: u32,
    rows: usize,
    base: u64,
    out: *mut u64,
) {
    // SAFETY: this function's contract.
    unsafe { bridge::unpack_bits_u64(packed, width, rows, base, out) }
}

/// Each value becomes itself times `factor` plus `base`.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn scale_u64(values: *mut u64, rows: usize, factor: u64, base: u64) {
    // SAFETY: this function's contract.
    unsafe { bridge::scale(values, rows, factor, base) }
}

/// Differences become numbers: each is `before` and the differences up to its own.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn sum_deltas_u64(values: *mut u64, rows: usize, before: u64) {
    // SAFETY: this function's contract.
    unsafe { bridge::sum_deltas(values, rows, before) }
}

/// Changes of the difference become numbers: the differences are `step` and the changes up to each
/// one's own, the numbers `before` and the differences up to each one's own.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn sum_deltas_of_deltas_u64(values: *mut u64, rows: usize, before: u64, step: u64) {
    // SAFETY: this function's contract.
    unsafe { bridge::sum_deltas_of_deltas(values, rows, before, step) }
}

/// [`unpack_bits_u64`], then [`sum_deltas_u64`], in one pass.
///
/// # Safety
/// As for [`unpack_bits_u32`].
pub unsafe fn unpack_deltas_u64(
    packed: *const u8,
    width: u32,
    rows: usize,
    base: u64,
    before: u64,
    out: *mut u64,
) {
    // SAFETY: this function's contract.
    unsafe { bridge::unpack_deltas(packed, width, rows, base, before, out) }
}

/// [`unpack_bits_u64`], then [`decimals_to_f64`], in one pass.
///
/// # Safety
/// As for [`unpack_bits_u32`].
pub unsafe fn unpack_decimals_f64(
    packed: *const u8,
    width: u32,
    rows: usize,
    base: u64,
    divisor: f64,
    out: *mut u64,
) {
    // SAFETY: this function's contract.
    unsafe { bridge::unpack_decimals(packed, width, rows, base, divisor, out) }
}

/// Each value, a signed integer, becomes the bits of the double nearest to it, divided by
/// `divisor`: a power of ten up to 10^14, of others the last bit may be wrong.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn decimals_to_f64(values: *mut u64, rows: usize, divisor: f64) {
    // SAFETY: this function's contract.
    unsafe { bridge::decimals_to_doubles(values, rows, divisor) }
}
