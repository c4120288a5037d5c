//! One answer over the selected rows of a lane.
//!
//! Sums of floats are the same on every CPU, because the order of addition is fixed: row `i` is
//! added to stripe `i % 16` (of the rows of one call, rows that are not selected keep their place),
//! then stripe `j + 8` to stripe `j`, `j + 4` to `j`, `j + 2` to `j` and `j + 1` to `j`. Nothing is
//! fused. The sum of no rows is -0, which changes no sum that it is added to. Which NaN a sum is
//! (sign, payload) is not fixed.

use crate::bridge;
use crate::number::{Float, Number};

/// The sum: exact for integers, see above for floats.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn sum<T: Number>(values: *const T, rows: usize, selection: *const u64) -> T::Sum {
    // SAFETY: this function's contract.
    unsafe { T::sum(values, rows, selection) }
}

/// The sum of floats as doubles.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn sum_wide(values: *const f32, rows: usize, selection: *const u64) -> f64 {
    // SAFETY: this function's contract.
    unsafe { bridge::sum_wide(values, rows, selection) }
}

/// The sum of the values' squares.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn sum_squares_f64(values: *const f64, rows: usize, selection: *const u64) -> f64 {
    // SAFETY: this function's contract.
    unsafe { bridge::sum_squares(values, rows, selection) }
}

/// The sum of the squares of floats, as doubles.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn sum_squares_f32(values: *const f32, rows: usize, selection: *const u64) -> f64 {
    // SAFETY: this function's contract.
    unsafe { bridge::sum_squares_wide(values, rows, selection) }
}

/// The sum of `(value - center)²`: variances that do not cancel, if `center` is near the mean.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn sum_squared_deviations_f64(
    values: *const f64,
    rows: usize,
    selection: *const u64,
    center: f64,
) -> f64 {
    // SAFETY: this function's contract.
    unsafe { bridge::sum_squared_deviations(values, rows, selection, center) }
}

/// The sum of `left[i] * right[i]`.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn sum_products_f64(
    left: *const f64,
    right: *const f64,
    rows: usize,
    selection: *const u64,
) -> f64 {
    // SAFETY: this function's contract.
    unsafe { bridge::sum_products(left, right, rows, selection) }
}

/// The sum, in the same order, if all `|value| <= bound`, selected or not; a NaN is not.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn sum_within<T: Float>(
    values: *const T,
    rows: usize,
    selection: *const u64,
    bound: T,
) -> Option<T> {
    // SAFETY: this function's contract.
    unsafe { T::sum_within(values, rows, selection, bound) }
}

/// As [`sum_within`], summed as doubles.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn sum_wide_within(
    values: *const f32,
    rows: usize,
    selection: *const u64,
    bound: f32,
) -> Option<f64> {
    let mut sum = 0.0;
    // SAFETY: this function's contract.
    unsafe { bridge::sum_wide_within(values, rows, selection, bound, &mut sum) }.then_some(sum)
}

/// The sums of `values[i] * weights[i]` and of `weights[i]`, if all values and weights, selected or
/// not, are within the bound, and no selected product is zero but of zeros.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn weighted_sums_within(
    values: *const f64,
    weights: *const f64,
    rows: usize,
    selection: *const u64,
    bound: f64,
) -> Option<(f64, f64)> {
    let (mut products, mut total) = (0.0, 0.0);
    // SAFETY: this function's contract.
    unsafe {
        bridge::weighted_sums_within(
            values,
            weights,
            rows,
            selection,
            bound,
            &mut products,
            &mut total,
        )
    }
    .then_some((products, total))
}

/// The least value. Of equal values that differ in bits (zeros, NaNs) the last, as in PostgreSQL.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn minimum<T: Number>(
    values: *const T,
    rows: usize,
    selection: *const u64,
) -> Option<T> {
    // SAFETY: this function's contract.
    unsafe { T::minimum(values, rows, selection) }
}

/// The greatest value. Of equal values that differ in bits (zeros, NaNs) the last, as in
/// PostgreSQL.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn maximum<T: Number>(
    values: *const T,
    rows: usize,
    selection: *const u64,
) -> Option<T> {
    // SAFETY: this function's contract.
    unsafe { T::maximum(values, rows, selection) }
}

/// Whether all `|value| <= bound`, so that sums of them cannot overflow. False if there is a NaN.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn magnitude_within<T: Float>(values: *const T, rows: usize, bound: T) -> bool {
    // SAFETY: this function's contract.
    unsafe { T::magnitude_within(values, rows, bound) }
}
