//! Distances of vectors of floats, summed as floats in the order of [`crate::aggregate`], the same
//! on every CPU.

use crate::bridge;

/// The dot product. Of no dimensions, -0.
///
/// # Safety
/// As for the [crate](crate#safety), a dimension being a row.
pub unsafe fn dot_f32(left: *const f32, right: *const f32, dimensions: usize) -> f32 {
    // SAFETY: this function's contract.
    unsafe { bridge::dot(left, right, dimensions) }
}

/// The square of the Euclidean distance.
///
/// # Safety
/// As for the [crate](crate#safety), a dimension being a row.
pub unsafe fn l2_squared_f32(left: *const f32, right: *const f32, dimensions: usize) -> f32 {
    // SAFETY: this function's contract.
    unsafe { bridge::l2_squared(left, right, dimensions) }
}

/// The cosine distance, 1 minus the cosine of the angle: from 0 (the same direction) to 2. NaN if a
/// vector has no length.
///
/// # Safety
/// As for the [crate](crate#safety), a dimension being a row.
pub unsafe fn cosine_f32(left: *const f32, right: *const f32, dimensions: usize) -> f32 {
    // SAFETY: this function's contract.
    let (dot, left, right) = unsafe {
        (
            bridge::dot(left, right, dimensions),
            bridge::norm_squared(left, dimensions),
            bridge::norm_squared(right, dimensions),
        )
    };
    cosine_distance(dot, left, right)
}

/// From the dot product and the squares of the lengths. In doubles, whose product of two squares of
/// floats cannot overflow.
pub(crate) fn cosine_distance(dot: f32, left_squared: f32, right_squared: f32) -> f32 {
    let lengths = (f64::from(left_squared) * f64::from(right_squared)).sqrt();
    (1.0 - (f64::from(dot) / lengths).clamp(-1.0, 1.0)) as f32
}
