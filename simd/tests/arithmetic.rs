//! Arithmetic, to the bit, on every target.

mod support;

use lanes_simd::{Arithmetic, Float, arithmetic, naive};
use std::ops::{Add, Div, Mul, Sub};
use support::{Fenced, Random, Sample, on_every_target, row_counts};

fn computes<T>()
where
    T: Float + Sample + Add<Output = T> + Sub<Output = T> + Mul<Output = T> + Div<Output = T>,
{
    let shown = |values: &[T]| {
        values
            .iter()
            .map(|&value| value.shown())
            .collect::<Vec<u64>>()
    };
    on_every_target(|target| {
        let mut random = Random(10);
        for rows in row_counts() {
            for operator in Arithmetic::ALL {
                let left = Fenced::new(&random.lane::<T>(rows));
                let mut right = Fenced::new(&random.lane::<T>(rows));
                let constant = T::sample(&mut random);
                let expected = |operands: &dyn Fn(usize) -> (T, T)| {
                    let answers: Vec<T> = (0..rows)
                        .map(|row| {
                            let (left, right) = operands(row);
                            naive::arithmetic(left, operator, right)
                        })
                        .collect();
                    shown(&answers)
                };
                let mut out = Fenced::filled(T::LEAST, rows);

                // SAFETY: all lanes have as many rows, here and below.
                unsafe {
                    arithmetic::arithmetic_constant(
                        left.ptr(),
                        constant,
                        rows,
                        operator,
                        out.mut_ptr(),
                    )
                };
                let answer = expected(&|row| (left.values()[row], constant));
                assert_eq!(
                    shown(out.values()),
                    answer,
                    "{target:?} {rows} {operator:?} {constant:?}"
                );

                // SAFETY: as above.
                unsafe {
                    arithmetic::constant_arithmetic(
                        constant,
                        left.ptr(),
                        rows,
                        operator,
                        out.mut_ptr(),
                    )
                };
                let answer = expected(&|row| (constant, left.values()[row]));
                assert_eq!(
                    shown(out.values()),
                    answer,
                    "{target:?} {rows} {constant:?} {operator:?}"
                );

                let answer = expected(&|row| (left.values()[row], right.values()[row]));
                // SAFETY: as above.
                unsafe {
                    arithmetic::arithmetic(left.ptr(), right.ptr(), rows, operator, out.mut_ptr())
                };
                assert_eq!(
                    shown(out.values()),
                    answer,
                    "{target:?} {rows} {operator:?}"
                );
                // SAFETY: as above; the output may be an input.
                unsafe {
                    arithmetic::arithmetic(left.ptr(), right.ptr(), rows, operator, right.mut_ptr())
                };
                assert_eq!(
                    shown(right.values()),
                    answer,
                    "{target:?} {rows} {operator:?} in place"
                );
            }
        }
    });
}

#[test]
fn f32_lanes_compute() {
    computes::<f32>();
}

#[test]
fn f64_lanes_compute() {
    computes::<f64>();
}
