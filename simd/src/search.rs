//! Sorted lanes: where a key is, and how two lanes interleave.

use crate::bridge;

/// Whether no value is less than the one before it.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn is_sorted_i64(values: *const i64, rows: usize) -> bool {
    // SAFETY: this function's contract.
    unsafe { bridge::is_sorted(values, rows) }
}

/// Whether no value of a slice is less than the one before it.
pub fn is_sorted(values: &[i64]) -> bool {
    // SAFETY: as many values as the slice has.
    unsafe { is_sorted_i64(values.as_ptr(), values.len()) }
}

/// The number of values of a sorted lane that are less than `key`, which is the first row that is
/// not, or `rows`. For a lane that is not sorted, some number from 0 to `rows`.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn lower_bound_i64(values: *const i64, rows: usize, key: i64) -> usize {
    // SAFETY: this function's contract.
    unsafe { bridge::count_before(values, rows, key, false) }
}

/// The number of values of a sorted lane that are at most `key`, which is the first row that is
/// greater, or `rows`. For a lane that is not sorted, some number from 0 to `rows`.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn upper_bound_i64(values: *const i64, rows: usize, key: i64) -> usize {
    // SAFETY: this function's contract.
    unsafe { bridge::count_before(values, rows, key, true) }
}

/// For each value of a sorted left lane, the number of values of a sorted right lane that are less
/// than it, or at most it if `inclusive`: the core of an ASOF join. For lanes that are not sorted,
/// some numbers from 0 to `right_rows`.
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
    // SAFETY: this function's contract.
    unsafe { bridge::merge_positions(left, left_rows, right, right_rows, inclusive, out) }
}
