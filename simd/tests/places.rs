//! Sums of frames, and copies of selected rows, against their naive twins, to the bit, on every
//! target.

mod support;

use lanes_simd::{copy, frames, naive};
use std::ops::Add;
use support::{Fenced, Random, Sample, fenced_selection, on_every_target, pointer, row_counts};

fn sums_of_frames<T>(zero: T)
where
    T: frames::Framed + Sample + Add<Output = T>,
{
    on_every_target(|target| {
        let mut random = Random(11);
        for frames in row_counts() {
            for width in [1, 2, 3, 20, 100] {
                let from_zero = random.below(2) == 0;
                let values = Fenced::new(&random.lane::<T>(frames + width - 1));
                let mut sums = Fenced::filled(zero, frames);
                // SAFETY: there are as many values and sums as the function asks for.
                unsafe { frames::sums(values.ptr(), frames, width, from_zero, sums.mut_ptr()) };
                let start = from_zero.then_some(zero);
                let wanted = naive::frame_sums(values.values(), frames, width, start);
                let bits = |sums: &[T]| sums.iter().map(|sum| sum.shown()).collect::<Vec<u64>>();
                assert_eq!(
                    bits(sums.values()),
                    bits(&wanted),
                    "{target:?} {frames} {width}"
                );
            }
        }
    });
}

#[test]
fn sums_of_frames_are_those_of_a_loop() {
    sums_of_frames::<f32>(0.0);
    sums_of_frames::<f64>(0.0);
}

fn copies<T: copy::Bits + PartialEq + std::fmt::Debug>(of: impl Fn(u64) -> T) {
    on_every_target(|target| {
        let mut random = Random(12);
        for rows in row_counts() {
            for selection in random.selections(rows) {
                let mut lane = || (0..rows).map(|_| of(random.next())).collect::<Vec<T>>();
                let (values, before) = (Fenced::new(&lane()), lane());
                let words = fenced_selection(&selection);
                let message = format!("{target:?} {rows} {selection:?}");
                let mut out = Fenced::new(&before);
                // SAFETY: there are so many values, and a bit for each.
                unsafe { copy::selected(values.ptr(), rows, pointer(&words), out.mut_ptr()) };
                let wanted =
                    naive::copied(&before, selection.as_deref(), |row| values.values()[row]);
                assert_eq!(out.values(), wanted, "{message}");
                let mut out = Fenced::new(&before);
                // SAFETY: as above.
                unsafe { copy::fill(of(7), rows, pointer(&words), out.mut_ptr()) };
                let wanted = naive::copied(&before, selection.as_deref(), |_| of(7));
                assert_eq!(out.values(), wanted, "{message}");
            }
        }
    });
}

#[test]
fn selected_rows_are_copied_and_others_stay() {
    copies::<u16>(|bits| bits as u16);
    copies::<u32>(|bits| bits as u32);
    copies::<u64>(|bits| bits);
}
