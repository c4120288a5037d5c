//! Values out of packed bits and deltas. Arithmetic wraps.
//!
//! Packed values follow each other without gaps: value `i` is the `width` bits from bit `i * width`, the lowest bit of word 0
//! being bit 0, and is added to the frame of reference `base`.

use crate::bridge;

/// Unpacks `rows` values; a width above 32 counts as 32.
///
/// # Safety
/// As for the [crate](crate#safety); `packed` has `(rows * width).div_ceil(64)` words.
pub unsafe fn unpack_bits_u32(
    packed: *const u64,
    width: u32,
    rows: usize,
    base: u32,
    out: *mut u32,
) {
    // SAFETY: the caller's promise.
    unsafe { bridge::unpack_bits_u32(packed, width, rows, base, out) }
}

/// Unpacks `rows` values; a width above 64 counts as 64.
///
/// # Safety
/// As for the [crate](crate#safety); `packed` has `(rows * width).div_ceil(64)` words.
pub unsafe fn unpack_bits_u64(
    packed: *const u64,
    width: u32,
    rows: usize,
    base: u64,
    out: *mut u64,
) {
    // SAFETY: the caller's promise.
    unsafe { bridge::unpack_bits_u64(packed, width, rows, base, out) }
}

/// `out[i]` is `base` and the deltas up to the `i`-th. `out` may be `deltas`.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn delta_decode_i64(deltas: *const i64, rows: usize, base: i64, out: *mut i64) {
    // SAFETY: the caller's promise.
    unsafe { bridge::delta_decode(deltas, rows, base, out) }
}
