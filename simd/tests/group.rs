//! Grouped aggregates against their naive twins, to the bit, on every target.

mod support;

use lanes_simd::{Number, group, naive};
use std::cmp::Ordering;
use support::{Fenced, Random, Sample, fenced_selection, on_every_target, pointer, row_counts};

const GROUPS: usize = 7;

/// Rows of random groups, of long runs of one, and of one group only.
fn group_lanes(random: &mut Random, rows: usize) -> Vec<Vec<u32>> {
    let run = 50 + random.below(100) as usize;
    vec![
        (0..rows)
            .map(|_| random.below(GROUPS as u64) as u32)
            .collect(),
        (0..rows).map(|row| (row / run % GROUPS) as u32).collect(),
        vec![3; rows],
    ]
}

/// Calls `check(message, groups, values, selection as given, selection as the kernels take it)` on
/// every target.
fn on_group_lanes<T: Sample>(
    check: impl Fn(&str, &Fenced<u32>, &Fenced<T>, Option<&[u64]>, *const u64),
) {
    on_every_target(|target| {
        let mut random = Random(9);
        for rows in row_counts() {
            for groups in group_lanes(&mut random, rows) {
                let groups = Fenced::new(&groups);
                for selection in random.selections(rows) {
                    let values = Fenced::new(&random.lane::<T>(rows));
                    let words = fenced_selection(&selection);
                    let message = format!("{target:?} {rows} {selection:?}");
                    check(
                        &message,
                        &groups,
                        &values,
                        selection.as_deref(),
                        pointer(&words),
                    );
                }
            }
        }
    });
}

fn counts(groups: &[u32], selection: Option<&[u64]>) -> Vec<u64> {
    let mut counts = vec![100; GROUPS];
    for row in (0..groups.len()).filter(|&row| naive::is_selected(selection, row)) {
        counts[groups[row] as usize] += 1;
    }
    counts
}

fn extremes<T: Number + Sample>() {
    on_group_lanes::<T>(|message, groups, values, selection, words| {
        for (wanted, begin) in [(Ordering::Less, T::GREATEST), (Ordering::Greater, T::LEAST)] {
            let mut expected = [begin; GROUPS];
            for row in (0..values.values().len()).filter(|&row| naive::is_selected(selection, row))
            {
                let best = &mut expected[groups.values()[row] as usize];
                *best = naive::better(*best, values.values()[row], wanted);
            }
            let mut best = Fenced::filled(begin, GROUPS);
            let rows = values.values().len();
            // SAFETY: lanes of as many rows, and an element for every group.
            unsafe {
                match wanted {
                    Ordering::Less => group::group_minimum(
                        groups.ptr(),
                        values.ptr(),
                        rows,
                        words,
                        best.mut_ptr(),
                    ),
                    _ => group::group_maximum(
                        groups.ptr(),
                        values.ptr(),
                        rows,
                        words,
                        best.mut_ptr(),
                    ),
                }
            }
            let bits = |best: &[T]| best.iter().map(|&value| value.bits()).collect::<Vec<u64>>();
            assert_eq!(bits(best.values()), bits(&expected), "{message} {wanted:?}");
        }
    });
}

fn integers<T: Number + Sample + Into<i128>>()
where
    T::Sum: TryFrom<i128> + Into<i128> + Default,
{
    extremes::<T>();
    on_group_lanes::<T>(|message, groups, values, selection, words| {
        let rows = values.values().len();
        let mut expected = [0_i128; GROUPS];
        for row in (0..rows).filter(|&row| naive::is_selected(selection, row)) {
            expected[groups.values()[row] as usize] += values.values()[row].into();
        }
        let mut sums = Fenced::filled(T::Sum::default(), GROUPS);
        let mut counted = Fenced::filled(100, GROUPS);
        // SAFETY: lanes of as many rows, and an element for every group.
        unsafe {
            group::group_sum(
                groups.ptr(),
                values.ptr(),
                rows,
                words,
                sums.mut_ptr(),
                counted.mut_ptr(),
            )
        };
        assert_eq!(
            sums.values()
                .iter()
                .map(|&sum| sum.into())
                .collect::<Vec<i128>>(),
            expected,
            "{message}"
        );
        assert_eq!(
            counted.values(),
            counts(groups.values(), selection),
            "{message}"
        );
    });
}

/// The sums of floats by the naive twin, in its order, of values given as the type they are summed
/// in.
fn float_sums<S: naive::Addend>(groups: &[u32], values: &[S], selection: Option<&[u64]>) -> Vec<S> {
    let mut sums = vec![S::default(); GROUPS];
    for (first, rows) in naive::group_steps(groups, selection) {
        sums[groups[first] as usize] += if rows == 1 {
            values[first]
        } else {
            naive::sum_floats(&values[first..first + rows], None)
        };
    }
    sums
}

type GroupSum<T, S> = unsafe fn(*const u32, *const T, usize, *const u64, *mut S, *mut u64);

fn floats<T: Number + Sample, S: Sample + naive::Addend + From<T>>(kernel: GroupSum<T, S>) {
    on_group_lanes::<T>(|message, groups, values, selection, words| {
        let wide: Vec<S> = values
            .values()
            .iter()
            .map(|&value| S::from(value))
            .collect();
        let expected = float_sums(groups.values(), &wide, selection);
        let mut sums = Fenced::filled(S::default(), GROUPS);
        let mut counted = Fenced::filled(100, GROUPS);
        // SAFETY: lanes of as many rows, and an element for every group.
        unsafe {
            kernel(
                groups.ptr(),
                values.ptr(),
                wide.len(),
                words,
                sums.mut_ptr(),
                counted.mut_ptr(),
            )
        };
        let shown = |sums: &[S]| sums.iter().map(|&sum| sum.shown()).collect::<Vec<u64>>();
        assert_eq!(shown(sums.values()), shown(&expected), "{message}");
        assert_eq!(
            counted.values(),
            counts(groups.values(), selection),
            "{message}"
        );
    });
}

#[test]
fn rows_are_counted() {
    on_group_lanes::<i16>(|message, groups, _, selection, words| {
        let mut counted = Fenced::filled(100, GROUPS);
        // SAFETY: a lane of as many rows, and an element for every group.
        unsafe {
            group::group_count(
                groups.ptr(),
                groups.values().len(),
                words,
                counted.mut_ptr(),
            )
        };
        assert_eq!(
            counted.values(),
            counts(groups.values(), selection),
            "{message}"
        );
    });
}

#[test]
fn i16_lanes() {
    integers::<i16>();
}

#[test]
fn i32_lanes() {
    integers::<i32>();
}

#[test]
fn i64_lanes() {
    integers::<i64>();
}

#[test]
fn u32_lanes() {
    integers::<u32>();
}

#[test]
fn f32_lanes() {
    extremes::<f32>();
    floats::<f32, f32>(group::group_sum::<f32>);
    floats::<f32, f64>(group::group_sum_wide);
}

#[test]
fn f64_lanes() {
    extremes::<f64>();
    floats::<f64, f64>(group::group_sum::<f64>);
}
