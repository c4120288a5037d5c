//! Stretches: consecutive rows that belong together, for instance the rows of one key in a table
//! that is sorted by it.
//!
//! Stretches are described by their starts: stretch `k` is rows `starts[k]..starts[k + 1]`, so
//! there is one more start than there are stretches, and the last start is the number of rows.

use crate::bridge;
use crate::number::{Float, Number};

/// Bits that values are compared by.
pub trait Bits: Copy {
    /// See [`cut`].
    ///
    /// # Safety
    /// As there.
    unsafe fn cut(values: *const Self, rows: usize, most: usize, starts: *mut u32) -> usize;
}

macro_rules! bits {
    ($type:ty, $cut:ident) => {
        impl Bits for $type {
            unsafe fn cut(
                values: *const Self,
                rows: usize,
                most: usize,
                starts: *mut u32,
            ) -> usize {
                // SAFETY: this function's contract.
                unsafe { bridge::$cut(values, rows, most, starts) }
            }
        }
    };
}
bits!(u16, cut_stretches_u16);
bits!(u32, cut_stretches_u32);
bits!(u64, cut_stretches_u64);

impl Bits for [u8; 16] {
    unsafe fn cut(values: *const Self, rows: usize, most: usize, starts: *mut u32) -> usize {
        let mut stretches = 0;
        let mut last = None;
        for row in 0..rows {
            // SAFETY: this function's contract; bytes have no alignment.
            let value = u128::from_ne_bytes(unsafe { *values.add(row) });
            if last != Some(value) {
                if stretches == most {
                    return most + 1;
                }
                // SAFETY: there is memory for `most` starts.
                unsafe { *starts.add(stretches) = row as u32 };
                stretches += 1;
            }
            last = Some(value);
        }
        stretches
    }
}

/// Cuts rows wherever a value differs from the value before. Returns the number of stretches and
/// writes their starts, without the end of the last one. Returns `None` if there are more than
/// `most`.
///
/// # Safety
/// As for the [crate](crate#safety); `starts` has `most` elements.
pub unsafe fn cut<T: Bits>(
    values: *const T,
    rows: usize,
    most: usize,
    starts: *mut u32,
) -> Option<usize> {
    // SAFETY: this function's contract.
    let stretches = unsafe { T::cut(values, rows, most, starts) };
    (stretches <= most).then_some(stretches)
}

/// The number of values before the first that is less than `low` or greater than `high`.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn count_within(values: *const i64, rows: usize, low: i64, high: i64) -> usize {
    // SAFETY: this function's contract.
    unsafe { bridge::count_within(values, rows, low, high) }
}

/// The sum of the selected rows of each stretch. Row `i` of the lane, not of the stretch, is added
/// to stripe `i % 16`, otherwise as in [`crate::aggregate`].
///
/// # Safety
/// As for the [crate](crate#safety): there are `stretches + 1` starts that do not decrease,
/// `starts[stretches]` values, and `stretches` sums.
pub unsafe fn sums<T: Float>(
    values: *const T,
    selection: *const u64,
    starts: *const u32,
    stretches: usize,
    sums: *mut T,
) {
    // SAFETY: this function's contract.
    unsafe { T::stretch_sums(values, selection, starts, stretches, sums) }
}

/// As [`sums`], floats summed as doubles.
///
/// # Safety
/// As there.
pub unsafe fn sums_wide(
    values: *const f32,
    selection: *const u64,
    starts: *const u32,
    stretches: usize,
    sums: *mut f64,
) {
    // SAFETY: this function's contract.
    unsafe { bridge::stretch_sums_wide(values, selection, starts, stretches, sums) }
}

/// Replaces `best[groups[k]]` by the least of itself and the values of stretch `k`, as
/// [`crate::group::group_minimum`] does. It is fast for short stretches.
///
/// # Safety
/// As for the [crate](crate#safety): there are `stretches + 1` starts that do not decrease,
/// `starts[stretches]` values, `stretches` groups, and an element of `best` for each group.
pub unsafe fn minimum<T: Number>(
    values: *const T,
    starts: *const u32,
    groups: *const u32,
    stretches: usize,
    best: *mut T,
) {
    // SAFETY: this function's contract.
    unsafe { T::stretch_minimum(values, starts, groups, stretches, best) }
}

/// `best[groups[k]]` becomes the greatest of itself and the values of stretch `k`. Otherwise as
/// [`minimum`].
///
/// # Safety
/// As there.
pub unsafe fn maximum<T: Number>(
    values: *const T,
    starts: *const u32,
    groups: *const u32,
    stretches: usize,
    best: *mut T,
) {
    // SAFETY: this function's contract.
    unsafe { T::stretch_maximum(values, starts, groups, stretches, best) }
}
