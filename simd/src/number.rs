//! The element types of the lanes that the kernels know, and which kernel each has.

use crate::bridge;
use crate::select::Comparison;
use std::fmt::Debug;

mod sealed {
    pub trait Sealed {}
}

/// A fixed-width number in a lane. Its functions are the kernels for the type, documented where the
/// generic function of the same name is: [`crate::select`], [`crate::aggregate`], [`crate::group`],
/// [`crate::stretches`].
#[allow(missing_docs, clippy::missing_safety_doc)]
pub trait Number:
    sealed::Sealed + Copy + PartialOrd + PartialEq + Debug + Send + Sync + 'static
{
    /// The type of sums, wide enough that the integers of any lane do not overflow.
    type Sum: Copy + PartialEq + Debug;

    /// No value is less, in PostgreSQL's order. Where [`crate::group::group_maximum`] begins.
    const LEAST: Self;
    /// No value is greater, in PostgreSQL's order: of floats, NaN. Where
    /// [`crate::group::group_minimum`] begins.
    const GREATEST: Self;

    unsafe fn compare(
        values: *const Self,
        rows: usize,
        operator: Comparison,
        constant: Self,
        out: *mut u64,
    );
    unsafe fn between(values: *const Self, rows: usize, low: Self, high: Self, out: *mut u64);
    unsafe fn compare_pairs(
        left: *const Self,
        right: *const Self,
        rows: usize,
        operator: Comparison,
        out: *mut u64,
    );
    unsafe fn sum(values: *const Self, rows: usize, selection: *const u64) -> Self::Sum;
    unsafe fn minimum(values: *const Self, rows: usize, selection: *const u64) -> Option<Self>;
    unsafe fn maximum(values: *const Self, rows: usize, selection: *const u64) -> Option<Self>;
    unsafe fn group_sum(
        groups: *const u32,
        values: *const Self,
        rows: usize,
        selection: *const u64,
        sums: *mut Self::Sum,
        counts: *mut u64,
    );
    unsafe fn group_minimum(
        groups: *const u32,
        values: *const Self,
        rows: usize,
        selection: *const u64,
        best: *mut Self,
    );
    unsafe fn group_maximum(
        groups: *const u32,
        values: *const Self,
        rows: usize,
        selection: *const u64,
        best: *mut Self,
    );
    unsafe fn stretch_minimum(
        values: *const Self,
        starts: *const u32,
        groups: *const u32,
        stretches: usize,
        best: *mut Self,
    );
    unsafe fn stretch_maximum(
        values: *const Self,
        starts: *const u32,
        groups: *const u32,
        stretches: usize,
        best: *mut Self,
    );
}

/// A float in a lane; see [`crate::aggregate::magnitude_within`].
#[allow(missing_docs, clippy::missing_safety_doc)]
pub trait Float: Number {
    unsafe fn magnitude_within(values: *const Self, rows: usize, bound: Self) -> bool;
    unsafe fn sum_within(
        values: *const Self,
        rows: usize,
        selection: *const u64,
        bound: Self,
    ) -> Option<Self>;
    unsafe fn stretch_sums(
        values: *const Self,
        selection: *const u64,
        starts: *const u32,
        stretches: usize,
        sums: *mut Self,
    );
}

macro_rules! number {
    ($type:ident, $sum:ident, $least:expr, $greatest:expr, $compare:ident, $between:ident, $compare_pairs:ident, $sum_of:path,
     $minimum:ident, $maximum:ident, $group_sum:path, $group_minimum:ident, $group_maximum:ident,
     $stretch_minimum:ident, $stretch_maximum:ident) => {
        impl sealed::Sealed for $type {}

        impl Number for $type {
            type Sum = $sum;
            const LEAST: $type = $least;
            const GREATEST: $type = $greatest;

            unsafe fn compare(
                values: *const $type,
                rows: usize,
                operator: Comparison,
                constant: $type,
                out: *mut u64,
            ) {
                // SAFETY: this function's contract.
                unsafe { bridge::$compare(values, rows, operator, constant, out) }
            }
            unsafe fn between(
                values: *const $type,
                rows: usize,
                low: $type,
                high: $type,
                out: *mut u64,
            ) {
                // SAFETY: this function's contract.
                unsafe { bridge::$between(values, rows, low, high, out) }
            }
            unsafe fn compare_pairs(
                left: *const $type,
                right: *const $type,
                rows: usize,
                operator: Comparison,
                out: *mut u64,
            ) {
                // SAFETY: this function's contract.
                unsafe { bridge::$compare_pairs(left, right, rows, operator, out) }
            }
            unsafe fn sum(values: *const $type, rows: usize, selection: *const u64) -> $sum {
                // SAFETY: this function's contract.
                unsafe { $sum_of(values, rows, selection) }
            }
            unsafe fn minimum(
                values: *const $type,
                rows: usize,
                selection: *const u64,
            ) -> Option<$type> {
                let mut least = $greatest;
                // SAFETY: this function's contract.
                unsafe { bridge::$minimum(values, rows, selection, &raw mut least) }
                    .then_some(least)
            }
            unsafe fn maximum(
                values: *const $type,
                rows: usize,
                selection: *const u64,
            ) -> Option<$type> {
                let mut greatest = $least;
                // SAFETY: this function's contract.
                unsafe { bridge::$maximum(values, rows, selection, &raw mut greatest) }
                    .then_some(greatest)
            }
            unsafe fn group_sum(
                groups: *const u32,
                values: *const $type,
                rows: usize,
                selection: *const u64,
                sums: *mut $sum,
                counts: *mut u64,
            ) {
                // SAFETY: this function's contract.
                unsafe { $group_sum(groups, values, rows, selection, sums, counts) }
            }
            unsafe fn group_minimum(
                groups: *const u32,
                values: *const $type,
                rows: usize,
                selection: *const u64,
                best: *mut $type,
            ) {
                // SAFETY: this function's contract.
                unsafe { bridge::$group_minimum(groups, values, rows, selection, best) }
            }
            unsafe fn group_maximum(
                groups: *const u32,
                values: *const $type,
                rows: usize,
                selection: *const u64,
                best: *mut $type,
            ) {
                // SAFETY: this function's contract.
                unsafe { bridge::$group_maximum(groups, values, rows, selection, best) }
            }
            unsafe fn stretch_minimum(
                values: *const $type,
                starts: *const u32,
                groups: *const u32,
                stretches: usize,
                best: *mut $type,
            ) {
                // SAFETY: this function's contract.
                unsafe { bridge::$stretch_minimum(values, starts, groups, stretches, best) }
            }
            unsafe fn stretch_maximum(
                values: *const $type,
                starts: *const u32,
                groups: *const u32,
                stretches: usize,
                best: *mut $type,
            ) {
                // SAFETY: this function's contract.
                unsafe { bridge::$stretch_maximum(values, starts, groups, stretches, best) }
            }
        }
    };
}

number!(
    i16,
    i64,
    i16::MIN,
    i16::MAX,
    compare_i16,
    between_i16,
    compare_pairs_i16,
    bridge::sum_i16,
    minimum_i16,
    maximum_i16,
    bridge::group_sum_i16,
    group_minimum_i16,
    group_maximum_i16,
    stretch_minimum_i16,
    stretch_maximum_i16
);
number!(
    i32,
    i64,
    i32::MIN,
    i32::MAX,
    compare_i32,
    between_i32,
    compare_pairs_i32,
    bridge::sum_i32,
    minimum_i32,
    maximum_i32,
    bridge::group_sum_i32,
    group_minimum_i32,
    group_maximum_i32,
    stretch_minimum_i32,
    stretch_maximum_i32
);
number!(
    i64,
    i128,
    i64::MIN,
    i64::MAX,
    compare_i64,
    between_i64,
    compare_pairs_i64,
    sum_long,
    minimum_i64,
    maximum_i64,
    group_sum_long,
    group_minimum_i64,
    group_maximum_i64,
    stretch_minimum_i64,
    stretch_maximum_i64
);
number!(
    u32,
    i64,
    u32::MIN,
    u32::MAX,
    compare_u32,
    between_u32,
    compare_pairs_u32,
    bridge::sum_u32,
    minimum_u32,
    maximum_u32,
    bridge::group_sum_u32,
    group_minimum_u32,
    group_maximum_u32,
    stretch_minimum_u32,
    stretch_maximum_u32
);
number!(
    f32,
    f32,
    f32::NEG_INFINITY,
    f32::NAN,
    compare_f32,
    between_f32,
    compare_pairs_f32,
    bridge::sum_f32,
    minimum_f32,
    maximum_f32,
    bridge::group_sum_f32,
    group_minimum_f32,
    group_maximum_f32,
    stretch_minimum_f32,
    stretch_maximum_f32
);
number!(
    f64,
    f64,
    f64::NEG_INFINITY,
    f64::NAN,
    compare_f64,
    between_f64,
    compare_pairs_f64,
    bridge::sum_f64,
    minimum_f64,
    maximum_f64,
    bridge::group_sum_f64,
    group_minimum_f64,
    group_maximum_f64,
    stretch_minimum_f64,
    stretch_maximum_f64
);

/// C++ has no standard 128-bit integer: the kernel returns the sum as two overlapping halves.
unsafe fn sum_long(values: *const i64, rows: usize, selection: *const u64) -> i128 {
    let mut high = 0;
    // SAFETY: this function's contract.
    let low = unsafe { bridge::sum_split(values, rows, selection, &raw mut high) };
    (i128::from(high) << 32) + i128::from(low)
}

unsafe fn group_sum_long(
    groups: *const u32,
    values: *const i64,
    rows: usize,
    selection: *const u64,
    sums: *mut i128,
    counts: *mut u64,
) {
    // SAFETY: this function's contract; an i128 is two words, aligned to 16 bytes, the low one
    // first on little-endian machines, which is all that the kernels support.
    unsafe { bridge::group_sum_long(groups, values, rows, selection, sums.cast(), counts) }
}

const _: () = assert!(cfg!(target_endian = "little") && align_of::<i128>() == 16);

macro_rules! float {
    ($type:ident, $magnitude_within:ident, $sum_within:ident, $stretch_sums:ident) => {
        impl Float for $type {
            unsafe fn magnitude_within(values: *const $type, rows: usize, bound: $type) -> bool {
                // SAFETY: this function's contract.
                unsafe { bridge::$magnitude_within(values, rows, bound) }
            }
            unsafe fn sum_within(
                values: *const $type,
                rows: usize,
                selection: *const u64,
                bound: $type,
            ) -> Option<$type> {
                let mut sum = 0.0;
                // SAFETY: this function's contract.
                unsafe { bridge::$sum_within(values, rows, selection, bound, &mut sum) }
                    .then_some(sum)
            }
            unsafe fn stretch_sums(
                values: *const $type,
                selection: *const u64,
                starts: *const u32,
                stretches: usize,
                sums: *mut $type,
            ) {
                // SAFETY: this function's contract.
                unsafe { bridge::$stretch_sums(values, selection, starts, stretches, sums) }
            }
        }
    };
}

float!(f32, magnitude_within_f32, sum_within_f32, stretch_sums_f32);
float!(f64, magnitude_within_f64, sum_within_f64, stretch_sums_f64);
