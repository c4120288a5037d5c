//! An answer for each group: row `i` belongs to group `groups[i]`, accumulators are indexed by
//! group.
//!
//! Accumulators are added to, so the caller initialises them and may go on with the next rows of a
//! lane. Rows are added in row order, except that a block of 64 rows (counted from the first row of
//! the call), all selected and all of one group, is summed first, floats in the order of
//! [`crate::aggregate`], and its sum is added: sorted lanes and long time buckets are summed at
//! nearly the speed of a plain sum. The order depends on the rows alone, never on the CPU.

use crate::bridge;
use crate::number::Number;

/// `counts[g]` grows by the number of rows of group `g`.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn group_count(
    groups: *const u32,
    rows: usize,
    selection: *const u64,
    counts: *mut u64,
) {
    // SAFETY: this function's contract.
    unsafe { bridge::group_count(groups, rows, selection, counts) }
}

/// `sums[g]` grows by the values of group `g` and, unless `counts` is null, `counts[g]` by their
/// number. Integer sums wrap, which takes 2^31 rows or more.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn group_sum<T: Number>(
    groups: *const u32,
    values: *const T,
    rows: usize,
    selection: *const u64,
    sums: *mut T::Sum,
    counts: *mut u64,
) {
    // SAFETY: this function's contract.
    unsafe { T::group_sum(groups, values, rows, selection, sums, counts) }
}

/// As [`group_sum`], floats summed as doubles.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn group_sum_wide(
    groups: *const u32,
    values: *const f32,
    rows: usize,
    selection: *const u64,
    sums: *mut f64,
    counts: *mut u64,
) {
    // SAFETY: this function's contract.
    unsafe { bridge::group_sum_wide(groups, values, rows, selection, sums, counts) }
}

/// Replaces `best[g]` by the least of itself and the values of group `g`. Begin with
/// [`Number::GREATEST`]. A value replaces an equal one, so the last of zeros and of NaNs remains,
/// as in PostgreSQL. [`group_count`] counts the rows of each group.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn group_minimum<T: Number>(
    groups: *const u32,
    values: *const T,
    rows: usize,
    selection: *const u64,
    best: *mut T,
) {
    // SAFETY: this function's contract.
    unsafe { T::group_minimum(groups, values, rows, selection, best) }
}

/// `best[g]` becomes the greatest of itself and the values of group `g`; begin with
/// [`Number::LEAST`]. Otherwise as [`group_minimum`].
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn group_maximum<T: Number>(
    groups: *const u32,
    values: *const T,
    rows: usize,
    selection: *const u64,
    best: *mut T,
) {
    // SAFETY: this function's contract.
    unsafe { T::group_maximum(groups, values, rows, selection, best) }
}
