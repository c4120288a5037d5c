//! The kernels that exist once for each element type. On the C++ side they are overloads; here each
//! has a name of its own.

#![allow(missing_docs)]

pub(crate) use ffi::*;

#[cxx::bridge(namespace = "lanes::simd")]
mod ffi {
    unsafe extern "C++" {
        include!("lanes-simd/kernels/aggregate.h");
        include!("lanes-simd/kernels/group.h");
        include!("lanes-simd/kernels/stretches.h");
        include!("lanes-simd/kernels/select.h");

        type Comparison = crate::select::Comparison;

        #[cxx_name = "compare"]
        unsafe fn compare_i16(
            values: *const i16,
            rows: usize,
            comparison: Comparison,
            constant: i16,
            out: *mut u64,
        );
        #[cxx_name = "between"]
        unsafe fn between_i16(values: *const i16, rows: usize, low: i16, high: i16, out: *mut u64);
        #[cxx_name = "compare_pairs"]
        unsafe fn compare_pairs_i16(
            left: *const i16,
            right: *const i16,
            rows: usize,
            comparison: Comparison,
            out: *mut u64,
        );
        #[cxx_name = "minimum"]
        unsafe fn minimum_i16(
            values: *const i16,
            rows: usize,
            selection: *const u64,
            out: *mut i16,
        ) -> bool;
        #[cxx_name = "maximum"]
        unsafe fn maximum_i16(
            values: *const i16,
            rows: usize,
            selection: *const u64,
            out: *mut i16,
        ) -> bool;
        #[cxx_name = "sum"]
        unsafe fn sum_i16(values: *const i16, rows: usize, selection: *const u64) -> i64;
        #[cxx_name = "group_sum"]
        unsafe fn group_sum_i16(
            groups: *const u32,
            values: *const i16,
            rows: usize,
            selection: *const u64,
            sums: *mut i64,
            counts: *mut u64,
        );
        #[cxx_name = "group_minimum"]
        unsafe fn group_minimum_i16(
            groups: *const u32,
            values: *const i16,
            rows: usize,
            selection: *const u64,
            best: *mut i16,
        );
        #[cxx_name = "group_maximum"]
        unsafe fn group_maximum_i16(
            groups: *const u32,
            values: *const i16,
            rows: usize,
            selection: *const u64,
            best: *mut i16,
        );
        #[cxx_name = "stretch_minimum"]
        unsafe fn stretch_minimum_i16(
            values: *const i16,
            starts: *const u32,
            groups: *const u32,
            stretches: usize,
            best: *mut i16,
        );
        #[cxx_name = "stretch_maximum"]
        unsafe fn stretch_maximum_i16(
            values: *const i16,
            starts: *const u32,
            groups: *const u32,
            stretches: usize,
            best: *mut i16,
        );

        #[cxx_name = "compare"]
        unsafe fn compare_i32(
            values: *const i32,
            rows: usize,
            comparison: Comparison,
            constant: i32,
            out: *mut u64,
        );
        #[cxx_name = "between"]
        unsafe fn between_i32(values: *const i32, rows: usize, low: i32, high: i32, out: *mut u64);
        #[cxx_name = "compare_pairs"]
        unsafe fn compare_pairs_i32(
            left: *const i32,
            right: *const i32,
            rows: usize,
            comparison: Comparison,
            out: *mut u64,
        );
        #[cxx_name = "minimum"]
        unsafe fn minimum_i32(
            values: *const i32,
            rows: usize,
            selection: *const u64,
            out: *mut i32,
        ) -> bool;
        #[cxx_name = "maximum"]
        unsafe fn maximum_i32(
            values: *const i32,
            rows: usize,
            selection: *const u64,
            out: *mut i32,
        ) -> bool;
        #[cxx_name = "sum"]
        unsafe fn sum_i32(values: *const i32, rows: usize, selection: *const u64) -> i64;
        #[cxx_name = "group_sum"]
        unsafe fn group_sum_i32(
            groups: *const u32,
            values: *const i32,
            rows: usize,
            selection: *const u64,
            sums: *mut i64,
            counts: *mut u64,
        );
        #[cxx_name = "group_minimum"]
        unsafe fn group_minimum_i32(
            groups: *const u32,
            values: *const i32,
            rows: usize,
            selection: *const u64,
            best: *mut i32,
        );
        #[cxx_name = "group_maximum"]
        unsafe fn group_maximum_i32(
            groups: *const u32,
            values: *const i32,
            rows: usize,
            selection: *const u64,
            best: *mut i32,
        );
        #[cxx_name = "stretch_minimum"]
        unsafe fn stretch_minimum_i32(
            values: *const i32,
            starts: *const u32,
            groups: *const u32,
            stretches: usize,
            best: *mut i32,
        );
        #[cxx_name = "stretch_maximum"]
        unsafe fn stretch_maximum_i32(
            values: *const i32,
            starts: *const u32,
            groups: *const u32,
            stretches: usize,
            best: *mut i32,
        );

        #[cxx_name = "compare"]
        unsafe fn compare_i64(
            values: *const i64,
            rows: usize,
            comparison: Comparison,
            constant: i64,
            out: *mut u64,
        );
        #[cxx_name = "between"]
        unsafe fn between_i64(values: *const i64, rows: usize, low: i64, high: i64, out: *mut u64);
        #[cxx_name = "compare_pairs"]
        unsafe fn compare_pairs_i64(
            left: *const i64,
            right: *const i64,
            rows: usize,
            comparison: Comparison,
            out: *mut u64,
        );
        #[cxx_name = "minimum"]
        unsafe fn minimum_i64(
            values: *const i64,
            rows: usize,
            selection: *const u64,
            out: *mut i64,
        ) -> bool;
        #[cxx_name = "maximum"]
        unsafe fn maximum_i64(
            values: *const i64,
            rows: usize,
            selection: *const u64,
            out: *mut i64,
        ) -> bool;
        #[cxx_name = "group_minimum"]
        unsafe fn group_minimum_i64(
            groups: *const u32,
            values: *const i64,
            rows: usize,
            selection: *const u64,
            best: *mut i64,
        );
        #[cxx_name = "group_maximum"]
        unsafe fn group_maximum_i64(
            groups: *const u32,
            values: *const i64,
            rows: usize,
            selection: *const u64,
            best: *mut i64,
        );
        #[cxx_name = "stretch_minimum"]
        unsafe fn stretch_minimum_i64(
            values: *const i64,
            starts: *const u32,
            groups: *const u32,
            stretches: usize,
            best: *mut i64,
        );
        #[cxx_name = "stretch_maximum"]
        unsafe fn stretch_maximum_i64(
            values: *const i64,
            starts: *const u32,
            groups: *const u32,
            stretches: usize,
            best: *mut i64,
        );

        #[cxx_name = "compare"]
        unsafe fn compare_u32(
            values: *const u32,
            rows: usize,
            comparison: Comparison,
            constant: u32,
            out: *mut u64,
        );
        #[cxx_name = "between"]
        unsafe fn between_u32(values: *const u32, rows: usize, low: u32, high: u32, out: *mut u64);
        #[cxx_name = "compare_pairs"]
        unsafe fn compare_pairs_u32(
            left: *const u32,
            right: *const u32,
            rows: usize,
            comparison: Comparison,
            out: *mut u64,
        );
        #[cxx_name = "minimum"]
        unsafe fn minimum_u32(
            values: *const u32,
            rows: usize,
            selection: *const u64,
            out: *mut u32,
        ) -> bool;
        #[cxx_name = "maximum"]
        unsafe fn maximum_u32(
            values: *const u32,
            rows: usize,
            selection: *const u64,
            out: *mut u32,
        ) -> bool;
        #[cxx_name = "sum"]
        unsafe fn sum_u32(values: *const u32, rows: usize, selection: *const u64) -> i64;
        #[cxx_name = "group_sum"]
        unsafe fn group_sum_u32(
            groups: *const u32,
            values: *const u32,
            rows: usize,
            selection: *const u64,
            sums: *mut i64,
            counts: *mut u64,
        );
        #[cxx_name = "group_minimum"]
        unsafe fn group_minimum_u32(
            groups: *const u32,
            values: *const u32,
            rows: usize,
            selection: *const u64,
            best: *mut u32,
        );
        #[cxx_name = "group_maximum"]
        unsafe fn group_maximum_u32(
            groups: *const u32,
            values: *const u32,
            rows: usize,
            selection: *const u64,
            best: *mut u32,
        );
        #[cxx_name = "stretch_minimum"]
        unsafe fn stretch_minimum_u32(
            values: *const u32,
            starts: *const u32,
            groups: *const u32,
            stretches: usize,
            best: *mut u32,
        );
        #[cxx_name = "stretch_maximum"]
        unsafe fn stretch_maximum_u32(
            values: *const u32,
            starts: *const u32,
            groups: *const u32,
            stretches: usize,
            best: *mut u32,
        );

        #[cxx_name = "compare"]
        unsafe fn compare_f32(
            values: *const f32,
            rows: usize,
            comparison: Comparison,
            constant: f32,
            out: *mut u64,
        );
        #[cxx_name = "between"]
        unsafe fn between_f32(values: *const f32, rows: usize, low: f32, high: f32, out: *mut u64);
        #[cxx_name = "compare_pairs"]
        unsafe fn compare_pairs_f32(
            left: *const f32,
            right: *const f32,
            rows: usize,
            comparison: Comparison,
            out: *mut u64,
        );
        #[cxx_name = "minimum"]
        unsafe fn minimum_f32(
            values: *const f32,
            rows: usize,
            selection: *const u64,
            out: *mut f32,
        ) -> bool;
        #[cxx_name = "maximum"]
        unsafe fn maximum_f32(
            values: *const f32,
            rows: usize,
            selection: *const u64,
            out: *mut f32,
        ) -> bool;
        #[cxx_name = "sum"]
        unsafe fn sum_f32(values: *const f32, rows: usize, selection: *const u64) -> f32;
        #[cxx_name = "group_sum"]
        unsafe fn group_sum_f32(
            groups: *const u32,
            values: *const f32,
            rows: usize,
            selection: *const u64,
            sums: *mut f32,
            counts: *mut u64,
        );
        #[cxx_name = "group_minimum"]
        unsafe fn group_minimum_f32(
            groups: *const u32,
            values: *const f32,
            rows: usize,
            selection: *const u64,
            best: *mut f32,
        );
        #[cxx_name = "group_maximum"]
        unsafe fn group_maximum_f32(
            groups: *const u32,
            values: *const f32,
            rows: usize,
            selection: *const u64,
            best: *mut f32,
        );
        #[cxx_name = "stretch_minimum"]
        unsafe fn stretch_minimum_f32(
            values: *const f32,
            starts: *const u32,
            groups: *const u32,
            stretches: usize,
            best: *mut f32,
        );
        #[cxx_name = "stretch_maximum"]
        unsafe fn stretch_maximum_f32(
            values: *const f32,
            starts: *const u32,
            groups: *const u32,
            stretches: usize,
            best: *mut f32,
        );
        #[cxx_name = "sum_within"]
        unsafe fn sum_within_f32(
            values: *const f32,
            rows: usize,
            selection: *const u64,
            bound: f32,
            sum: *mut f32,
        ) -> bool;
        #[cxx_name = "magnitude_within"]
        unsafe fn magnitude_within_f32(values: *const f32, rows: usize, bound: f32) -> bool;

        #[cxx_name = "compare"]
        unsafe fn compare_f64(
            values: *const f64,
            rows: usize,
            comparison: Comparison,
            constant: f64,
            out: *mut u64,
        );
        #[cxx_name = "between"]
        unsafe fn between_f64(values: *const f64, rows: usize, low: f64, high: f64, out: *mut u64);
        #[cxx_name = "compare_pairs"]
        unsafe fn compare_pairs_f64(
            left: *const f64,
            right: *const f64,
            rows: usize,
            comparison: Comparison,
            out: *mut u64,
        );
        #[cxx_name = "minimum"]
        unsafe fn minimum_f64(
            values: *const f64,
            rows: usize,
            selection: *const u64,
            out: *mut f64,
        ) -> bool;
        #[cxx_name = "maximum"]
        unsafe fn maximum_f64(
            values: *const f64,
            rows: usize,
            selection: *const u64,
            out: *mut f64,
        ) -> bool;
        #[cxx_name = "sum"]
        unsafe fn sum_f64(values: *const f64, rows: usize, selection: *const u64) -> f64;
        #[cxx_name = "group_sum"]
        unsafe fn group_sum_f64(
            groups: *const u32,
            values: *const f64,
            rows: usize,
            selection: *const u64,
            sums: *mut f64,
            counts: *mut u64,
        );
        #[cxx_name = "group_minimum"]
        unsafe fn group_minimum_f64(
            groups: *const u32,
            values: *const f64,
            rows: usize,
            selection: *const u64,
            best: *mut f64,
        );
        #[cxx_name = "group_maximum"]
        unsafe fn group_maximum_f64(
            groups: *const u32,
            values: *const f64,
            rows: usize,
            selection: *const u64,
            best: *mut f64,
        );
        #[cxx_name = "stretch_minimum"]
        unsafe fn stretch_minimum_f64(
            values: *const f64,
            starts: *const u32,
            groups: *const u32,
            stretches: usize,
            best: *mut f64,
        );
        #[cxx_name = "stretch_maximum"]
        unsafe fn stretch_maximum_f64(
            values: *const f64,
            starts: *const u32,
            groups: *const u32,
            stretches: usize,
            best: *mut f64,
        );
        #[cxx_name = "sum_within"]
        unsafe fn sum_within_f64(
            values: *const f64,
            rows: usize,
            selection: *const u64,
            bound: f64,
            sum: *mut f64,
        ) -> bool;
        #[cxx_name = "magnitude_within"]
        unsafe fn magnitude_within_f64(values: *const f64, rows: usize, bound: f64) -> bool;
    }
}
