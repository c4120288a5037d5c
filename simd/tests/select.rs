//! Comparisons against their naive twins, on every target.

mod support;

use lanes_simd::{Comparison, Number, naive, select};
use support::{Fenced, Random, Sample, dirty_words, on_every_target, row_counts};

fn compares<T: Number + Sample>() {
    on_every_target(|target| {
        let mut random = Random(1);
        for rows in row_counts() {
            let left = Fenced::new(&random.lane::<T>(rows));
            let right = Fenced::new(&random.lane::<T>(rows));
            for operator in Comparison::ALL {
                for _ in 0..3 {
                    let constant = T::sample(&mut random);
                    let mut out = dirty_words(rows);
                    // SAFETY: the lanes have as many rows, the bitmap as many words.
                    unsafe { select::compare(left.ptr(), rows, operator, constant, out.mut_ptr()) };
                    assert_eq!(
                        out.values(),
                        naive::compare(left.values(), operator, constant),
                        "{target:?} {rows} {operator:?} {constant:?}"
                    );
                }
                let mut out = dirty_words(rows);
                // SAFETY: as above.
                unsafe {
                    select::compare_pairs(left.ptr(), right.ptr(), rows, operator, out.mut_ptr())
                };
                assert_eq!(
                    out.values(),
                    naive::compare_pairs(left.values(), right.values(), operator),
                    "{target:?} {rows} {operator:?}"
                );
            }
            for _ in 0..8 {
                let (low, high) = (T::sample(&mut random), T::sample(&mut random));
                let mut out = dirty_words(rows);
                // SAFETY: as above.
                unsafe { select::between(left.ptr(), rows, low, high, out.mut_ptr()) };
                assert_eq!(
                    out.values(),
                    naive::between(left.values(), low, high),
                    "{target:?} {rows} {low:?} {high:?}"
                );
            }
        }
    });
}

#[test]
fn i16_lanes_compare() {
    compares::<i16>();
}

#[test]
fn i32_lanes_compare() {
    compares::<i32>();
}

#[test]
fn i64_lanes_compare() {
    compares::<i64>();
}

#[test]
fn u32_lanes_compare() {
    compares::<u32>();
}

#[test]
fn f32_lanes_compare() {
    compares::<f32>();
}

#[test]
fn f64_lanes_compare() {
    compares::<f64>();
}

#[test]
fn codes_are_looked_up_in_a_set() {
    on_every_target(|target| {
        let mut random = Random(2);
        for rows in row_counts() {
            for codes_max in [1, 2, 64, 65, 1000] {
                let set = Fenced::new(&random.words(codes_max));
                let codes: Vec<u32> = (0..rows)
                    .map(|_| random.below(codes_max as u64) as u32)
                    .collect();
                let codes = Fenced::new(&codes);
                let mut out = dirty_words(rows);
                // SAFETY: each code has a bit in the set.
                unsafe { select::member(codes.ptr(), rows, set.ptr(), out.mut_ptr()) };
                assert_eq!(
                    out.values(),
                    naive::member(codes.values(), set.values()),
                    "{target:?} {rows} {codes_max}"
                );
            }
        }
    });
}

#[test]
fn operators_commute_and_negate() {
    for operator in Comparison::ALL {
        for (left, right) in [(1, 2), (2, 1), (1, 1)] {
            let holds = naive::holds(left, operator, right);
            assert_eq!(holds, naive::holds(right, operator.commuted(), left));
            assert_eq!(holds, !naive::holds(left, operator.negated(), right));
        }
    }
}
