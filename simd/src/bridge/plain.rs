//! The kernels that exist once.

#![allow(missing_docs)]

pub(crate) use ffi::*;

#[cxx::bridge(namespace = "lanes::simd")]
mod ffi {
    unsafe extern "C++" {
        include!("lanes-simd/kernels/aggregate.h");
        include!("lanes-simd/kernels/combine.h");
        include!("lanes-simd/kernels/copy.h");
        include!("lanes-simd/kernels/decode.h");
        include!("lanes-simd/kernels/distance.h");
        include!("lanes-simd/kernels/frames.h");
        include!("lanes-simd/kernels/group.h");
        include!("lanes-simd/kernels/stretches.h");
        include!("lanes-simd/kernels/search.h");
        include!("lanes-simd/kernels/select.h");
        include!("lanes-simd/kernels/target.h");

        fn supported_targets() -> i64;
        fn restrict_targets(targets: i64);
        fn target_name(target: i64) -> *const c_char;

        unsafe fn member(codes: *const u32, rows: usize, set: *const u64, out: *mut u64);

        unsafe fn and_words(left: *const u64, right: *const u64, rows: usize, out: *mut u64);
        unsafe fn and_not_words(left: *const u64, right: *const u64, rows: usize, out: *mut u64);
        unsafe fn or_words(left: *const u64, right: *const u64, rows: usize, out: *mut u64);
        unsafe fn not_words(words: *const u64, rows: usize, out: *mut u64);
        unsafe fn count_ones(words: *const u64, rows: usize) -> u64;
        unsafe fn count_ones_and(left: *const u64, right: *const u64, rows: usize) -> u64;

        #[cxx_name = "copy_selected"]
        unsafe fn copy_selected_u16(
            values: *const u16,
            rows: usize,
            selection: *const u64,
            out: *mut u16,
        );
        #[cxx_name = "fill_selected"]
        unsafe fn fill_selected_u16(value: u16, rows: usize, selection: *const u64, out: *mut u16);
        #[cxx_name = "copy_selected"]
        unsafe fn copy_selected_u32(
            values: *const u32,
            rows: usize,
            selection: *const u64,
            out: *mut u32,
        );
        #[cxx_name = "fill_selected"]
        unsafe fn fill_selected_u32(value: u32, rows: usize, selection: *const u64, out: *mut u32);
        #[cxx_name = "copy_selected"]
        unsafe fn copy_selected_u64(
            values: *const u64,
            rows: usize,
            selection: *const u64,
            out: *mut u64,
        );
        #[cxx_name = "fill_selected"]
        unsafe fn fill_selected_u64(value: u64, rows: usize, selection: *const u64, out: *mut u64);
        #[cxx_name = "frame_sums"]
        unsafe fn frame_sums_f32(
            values: *const f32,
            frames: usize,
            width: usize,
            from_zero: bool,
            sums: *mut f32,
        );
        #[cxx_name = "frame_sums"]
        unsafe fn frame_sums_f64(
            values: *const f64,
            frames: usize,
            width: usize,
            from_zero: bool,
            sums: *mut f64,
        );

        unsafe fn sum_split(
            values: *const i64,
            rows: usize,
            selection: *const u64,
            high: *mut i64,
        ) -> u64;
        unsafe fn sum_wide(values: *const f32, rows: usize, selection: *const u64) -> f64;
        unsafe fn sum_squares(values: *const f64, rows: usize, selection: *const u64) -> f64;
        unsafe fn sum_squares_wide(values: *const f32, rows: usize, selection: *const u64) -> f64;
        unsafe fn sum_squared_deviations(
            values: *const f64,
            rows: usize,
            selection: *const u64,
            center: f64,
        ) -> f64;
        unsafe fn sum_products(
            left: *const f64,
            right: *const f64,
            rows: usize,
            selection: *const u64,
        ) -> f64;

        unsafe fn sum_wide_within(
            values: *const f32,
            rows: usize,
            selection: *const u64,
            bound: f32,
            sum: *mut f64,
        ) -> bool;
        unsafe fn weighted_sums_within(
            values: *const f64,
            weights: *const f64,
            rows: usize,
            selection: *const u64,
            bound: f64,
            products_sum: *mut f64,
            weights_sum: *mut f64,
        ) -> bool;

        unsafe fn group_count(
            groups: *const u32,
            rows: usize,
            selection: *const u64,
            counts: *mut u64,
        );
        unsafe fn group_sum_wide(
            groups: *const u32,
            values: *const f32,
            rows: usize,
            selection: *const u64,
            sums: *mut f64,
            counts: *mut u64,
        );
        unsafe fn group_sum_long(
            groups: *const u32,
            values: *const i64,
            rows: usize,
            selection: *const u64,
            sums: *mut u64,
            counts: *mut u64,
        );

        #[cxx_name = "cut_stretches"]
        unsafe fn cut_stretches_u16(
            values: *const u16,
            rows: usize,
            most: usize,
            starts: *mut u32,
        ) -> usize;
        #[cxx_name = "cut_stretches"]
        unsafe fn cut_stretches_u32(
            values: *const u32,
            rows: usize,
            most: usize,
            starts: *mut u32,
        ) -> usize;
        #[cxx_name = "cut_stretches"]
        unsafe fn cut_stretches_u64(
            values: *const u64,
            rows: usize,
            most: usize,
            starts: *mut u32,
        ) -> usize;
        unsafe fn count_within(values: *const i64, rows: usize, low: i64, high: i64) -> usize;
        #[cxx_name = "stretch_sums"]
        unsafe fn stretch_sums_f32(
            values: *const f32,
            selection: *const u64,
            starts: *const u32,
            stretches: usize,
            sums: *mut f32,
        );
        #[cxx_name = "stretch_sums"]
        unsafe fn stretch_sums_f64(
            values: *const f64,
            selection: *const u64,
            starts: *const u32,
            stretches: usize,
            sums: *mut f64,
        );
        unsafe fn stretch_sums_wide(
            values: *const f32,
            selection: *const u64,
            starts: *const u32,
            stretches: usize,
            sums: *mut f64,
        );

        unsafe fn is_sorted(values: *const i64, rows: usize) -> bool;
        unsafe fn count_before(values: *const i64, rows: usize, key: i64, inclusive: bool)
        -> usize;
        unsafe fn merge_positions(
            left: *const i64,
            left_rows: usize,
            right: *const i64,
            right_rows: usize,
            inclusive: bool,
            out: *mut u32,
        );

        #[cxx_name = "unpack_bits"]
        unsafe fn unpack_bits_u32(
            packed: *const u8,
            width: u32,
            rows: usize,
            base: u32,
            out: *mut u32,
        );
        #[cxx_name = "unpack_bits"]
        unsafe fn unpack_bits_u64(
            packed: *const u8,
            width: u32,
            rows: usize,
            base: u64,
            out: *mut u64,
        );
        unsafe fn scale(values: *mut u64, rows: usize, factor: u64, base: u64);
        unsafe fn sum_deltas(values: *mut u64, rows: usize, before: u64);
        unsafe fn sum_deltas_of_deltas(values: *mut u64, rows: usize, before: u64, step: u64);
        unsafe fn decimals_to_doubles(values: *mut u64, rows: usize, divisor: f64);
        unsafe fn unpack_deltas(
            packed: *const u8,
            width: u32,
            rows: usize,
            base: u64,
            before: u64,
            out: *mut u64,
        );
        unsafe fn unpack_decimals(
            packed: *const u8,
            width: u32,
            rows: usize,
            base: u64,
            divisor: f64,
            out: *mut u64,
        );

        unsafe fn dot(left: *const f32, right: *const f32, dimensions: usize) -> f32;
        unsafe fn l2_squared(left: *const f32, right: *const f32, dimensions: usize) -> f32;
        unsafe fn norm_squared(values: *const f32, dimensions: usize) -> f32;
    }
}
