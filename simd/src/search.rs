//! Sorted lanes: where a key is, and how two lanes interleave.

use crate::bridge;

/// Whether no value is less than the one before it.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn is_sorted_i64(values: *const i64, rows: usize) -> bool {
    // SAFETY: the caller's promise.
    unsafe { bridge::is_sorted(values, rows) }
}

/// How many values of a sorted lane are less than `key`: the first row that is not, or `rows`. Of a lane that is not sorted,
/// some number from 0 to `rows`.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn lower_bound_i64(values: *const i64, rows: usize, key: i64) -> usize {
    // SAFETY: the caller's promise.
    unsafe { bridge::count_before(values, rows, key, false) }
}

/// How many values of a sorted lane are at most `key`: the first row that is greater, or `rows`. Of a lane that is not sorted,
/// some number from 0 to `rows`.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn upper_bound_i64(values: *const i64, rows: usize, key: i64) -> usize {
    // SAFETY: the caller's promise.
    unsafe { bridge::count_before(values, rows, key, true) }
}

/// For each value of a sorted left lane, how many values of a sorted right lane are less than it, or if `inclusive` at most
/// it: the heart of an ASOF join. Of lanes that are not sorted, some numbers from 0 to `right_rows`.
///
/// # Safety
/// As for the [crate](crate#safety); `out` has `left_rows` elements.
pub unsafe fn merge_positions_i64(
    left: *const i64,
    left_rows: usize,
    right: *const i64,
    right_rows: usize,
    inclusive: bool,
    out: *mut u32,
) {
    // SAFETY: the caller's promise.
    unsafe { bridge::merge_positions(left, left_rows, right, right_rows, inclusive, out) }
}
