//! The algebra of bitmaps, and counting. `out` may be one of the inputs.

use crate::bridge;

/// The rows in both.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn and(left: *const u64, right: *const u64, rows: usize, out: *mut u64) {
    // SAFETY: this function's contract.
    unsafe { bridge::and_words(left, right, rows, out) }
}

/// The rows of `left` that are not in `right`.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn and_not(left: *const u64, right: *const u64, rows: usize, out: *mut u64) {
    // SAFETY: this function's contract.
    unsafe { bridge::and_not_words(left, right, rows, out) }
}

/// The rows in either.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn or(left: *const u64, right: *const u64, rows: usize, out: *mut u64) {
    // SAFETY: this function's contract.
    unsafe { bridge::or_words(left, right, rows, out) }
}

/// The rows that are not in `words`.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn not(words: *const u64, rows: usize, out: *mut u64) {
    // SAFETY: this function's contract.
    unsafe { bridge::not_words(words, rows, out) }
}

/// The number of rows in `words`.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn count_ones(words: *const u64, rows: usize) -> u64 {
    // SAFETY: this function's contract.
    unsafe { bridge::count_ones(words, rows) }
}

/// The number of rows in both bitmaps.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn count_ones_and(left: *const u64, right: *const u64, rows: usize) -> u64 {
    // SAFETY: this function's contract.
    unsafe { bridge::count_ones_and(left, right, rows) }
}

/// The first row in `words`.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn first_set(words: *const u64, rows: usize) -> Option<usize> {
    for index in 0..rows.div_ceil(64) {
        // SAFETY: this function's contract; the word is one of the bitmap's.
        let word = unsafe { *words.add(index) };
        if word != 0 {
            let row = index * 64 + word.trailing_zeros() as usize;
            return (row < rows).then_some(row);
        }
    }
    None
}

/// The last row in `words`.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn last_set(words: *const u64, rows: usize) -> Option<usize> {
    let mut existing = if rows.is_multiple_of(64) {
        u64::MAX
    } else {
        (1 << (rows % 64)) - 1
    };
    for index in (0..rows.div_ceil(64)).rev() {
        // SAFETY: this function's contract; the word is one of the bitmap's.
        let word = unsafe { *words.add(index) } & existing;
        if word != 0 {
            return Some(index * 64 + word.ilog2() as usize);
        }
        existing = u64::MAX;
    }
    None
}
