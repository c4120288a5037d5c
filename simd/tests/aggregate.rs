//! Aggregates against their naive twins, to the bit, on every target.

mod support;

use lanes_simd::{Float, Number, aggregate, naive};
use std::cmp::Ordering;
use std::fmt::Debug;
use std::ops::Neg;
use support::{Fenced, Random, Sample, fenced_selection, on_every_target, pointer, row_counts};

/// Runs `check(kernel's answer for the lane and selection, the twin's)` on every target, row count
/// and selection.
fn agree<T: Sample, R: PartialEq + Debug>(
    kernel: impl Fn(*const T, usize, *const u64) -> R,
    twin: impl Fn(&[T], Option<&[u64]>) -> R,
) {
    on_every_target(|target| {
        let mut random = Random(6);
        for rows in row_counts() {
            for selection in random.selections(rows) {
                let values = Fenced::new(&random.lane::<T>(rows));
                let words = fenced_selection(&selection);
                let answer = kernel(values.ptr(), rows, pointer(&words));
                assert_eq!(
                    answer,
                    twin(values.values(), selection.as_deref()),
                    "{target:?} {rows} {selection:?}"
                );
            }
        }
    });
}

fn integers_sum<T: Number + Sample + Into<i128>>()
where
    T::Sum: Into<i128>,
{
    agree::<T, i128>(
        // SAFETY: `agree` passes lanes of equally many rows, here and below.
        |values, rows, selection| unsafe { aggregate::sum(values, rows, selection) }.into(),
        naive::sum_integers,
    );
}

fn extremes<T: Number + Sample>() {
    agree::<T, _>(
        // SAFETY: as above.
        |values, rows, selection| unsafe {
            [
                aggregate::minimum(values, rows, selection),
                aggregate::maximum(values, rows, selection),
            ]
            .map(|best| best.map(T::bits))
        },
        |values, selection| {
            [Ordering::Less, Ordering::Greater]
                .map(|wanted| naive::extreme(values, selection, wanted).map(T::bits))
        },
    );
}

#[test]
fn i16_lanes() {
    integers_sum::<i16>();
    extremes::<i16>();
}

#[test]
fn i32_lanes() {
    integers_sum::<i32>();
    extremes::<i32>();
}

#[test]
fn i64_lanes() {
    integers_sum::<i64>();
    extremes::<i64>();
}

#[test]
fn u32_lanes() {
    integers_sum::<u32>();
    extremes::<u32>();
}

#[test]
fn f32_lanes() {
    // SAFETY: as above.
    agree::<f32, _>(
        |v, rows, s| unsafe { aggregate::sum(v, rows, s) }.shown(),
        |v, s| naive::sum_floats(v, s).shown(),
    );
    extremes::<f32>();
}

#[test]
fn f64_lanes() {
    // SAFETY: as above.
    agree::<f64, _>(
        |v, rows, s| unsafe { aggregate::sum(v, rows, s) }.shown(),
        |v, s| naive::sum_floats(v, s).shown(),
    );
    extremes::<f64>();
}

fn mapped<T: Copy>(values: &[T], map: impl Fn(T) -> f64) -> Vec<f64> {
    values.iter().map(|&value| map(value)).collect()
}

#[test]
fn floats_are_summed_as_doubles() {
    agree::<f32, _>(
        // SAFETY: as above.
        |v, rows, s| unsafe { aggregate::sum_wide(v, rows, s) }.shown(),
        |v, s| naive::sum_floats(&mapped(v, f64::from), s).shown(),
    );
    agree::<f32, _>(
        // SAFETY: as above.
        |v, rows, s| unsafe { aggregate::sum_squares_f32(v, rows, s) }.shown(),
        |v, s| naive::sum_floats(&mapped(v, |x| f64::from(x) * f64::from(x)), s).shown(),
    );
}

#[test]
fn squares_and_products_are_rounded_before_they_are_added() {
    agree::<f64, _>(
        // SAFETY: as above.
        |v, rows, s| unsafe { aggregate::sum_squares_f64(v, rows, s) }.shown(),
        |v, s| naive::sum_floats(&mapped(v, |x| x * x), s).shown(),
    );
    agree::<f64, _>(
        // SAFETY: as above.
        |v, rows, s| unsafe { aggregate::sum_squared_deviations_f64(v, rows, s, 0.3) }.shown(),
        |v, s| naive::sum_floats(&mapped(v, |x| (x - 0.3) * (x - 0.3)), s).shown(),
    );
    let mut random = Random(7);
    let other: Vec<f64> = random.lane(2049);
    agree::<f64, _>(
        |v, rows, s| {
            let other = Fenced::new(&other[..rows]);
            // SAFETY: as above, and the other lane has as many rows.
            unsafe { aggregate::sum_products_f64(v, other.ptr(), rows, s) }.shown()
        },
        |v, s| {
            let products: Vec<f64> = v
                .iter()
                .zip(&other)
                .map(|(left, right)| left * right)
                .collect();
            naive::sum_floats(&products, s).shown()
        },
    );
}

#[test]
fn no_rows_sum_to_what_changes_no_sum() {
    on_every_target(|_| {
        // SAFETY: no rows.
        let sum = unsafe { aggregate::sum([0.0_f64; 0].as_ptr(), 0, std::ptr::null()) };
        assert_eq!(sum.to_bits(), (-0.0_f64).to_bits());
    });
}

#[test]
fn shorts_do_not_overflow_their_lanes() {
    on_every_target(|target| {
        for value in [i16::MIN, i16::MAX] {
            let rows = 600_000;
            let values = vec![value; rows];
            // SAFETY: a lane of as many rows.
            let sum = unsafe { aggregate::sum(values.as_ptr(), rows, std::ptr::null()) };
            assert_eq!(sum, i64::from(value) * rows as i64, "{target:?}");
        }
    });
}

fn magnitudes<T: Float + Sample + Neg<Output = T>>(bounds: [T; 4]) {
    on_every_target(|target| {
        let mut random = Random(8);
        for rows in row_counts() {
            for bound in bounds {
                let mut lane: Vec<T> = (0..rows)
                    .map(|_| bounds[random.below(2) as usize])
                    .collect();
                if rows > 0 && random.below(2) == 0 {
                    lane[random.below(rows as u64) as usize] = T::sample(&mut random);
                }
                let lane = Fenced::new(&lane);
                // SAFETY: a lane of as many rows.
                let within = unsafe { aggregate::magnitude_within(lane.ptr(), rows, bound) };
                let expected = lane.values().iter().all(|&x| x <= bound && -x <= bound);
                assert_eq!(
                    within,
                    expected,
                    "{target:?} {rows} {bound:?} {:?}",
                    lane.values()
                );
            }
        }
    });
}

#[test]
fn magnitudes_are_bounded() {
    magnitudes::<f32>([0.5, -2.0, 2.0, f32::MAX]);
    magnitudes::<f64>([0.5, -2.0, 2.0, f64::MAX]);
}

/// Ordinary numbers, seldom with a special one or two among them; all ordinary ones are within
/// [`WITHIN`].
fn mostly_ordinary<T: Sample>(random: &mut Random, rows: usize) -> Vec<T> {
    let mut lane: Vec<T> = (0..rows).map(|_| T::ordinary(random)).collect();
    for _ in 0..random.below(3) {
        if rows > 0 {
            lane[random.below(rows as u64) as usize] = T::sample(random);
        }
    }
    lane
}

const WITHIN: f64 = 1000.0;

fn sums_within<T: Float + Sample + Into<f64>, S>(
    bound: T,
    kernel: impl Fn(*const T, usize, *const u64, T) -> Option<S>,
    shown: impl Fn(S) -> u64,
    twin: impl Fn(&[T], Option<&[u64]>) -> S,
) {
    on_every_target(|target| {
        let mut random = Random(9);
        for rows in row_counts() {
            for selection in random.selections(rows) {
                let values = Fenced::new(&mostly_ordinary::<T>(&mut random, rows));
                let words = fenced_selection(&selection);
                let answer = kernel(values.ptr(), rows, pointer(&words), bound).map(&shown);
                let mut all = values.values().iter();
                let expected = all
                    .all(|&x| x.into().abs() <= WITHIN)
                    .then(|| shown(twin(values.values(), selection.as_deref())));
                assert_eq!(answer, expected, "{target:?} {rows} {selection:?}");
            }
        }
    });
}

#[test]
fn sums_know_whether_all_is_within_a_bound() {
    sums_within(
        WITHIN as f32,
        // SAFETY: `sums_within` passes lanes of equally many rows, here and below.
        |v, rows, s, bound| unsafe { aggregate::sum_within(v, rows, s, bound) },
        f32::shown,
        naive::sum_floats,
    );
    sums_within(
        WITHIN,
        // SAFETY: as above.
        |v, rows, s, bound| unsafe { aggregate::sum_within(v, rows, s, bound) },
        f64::shown,
        naive::sum_floats,
    );
    sums_within(
        WITHIN as f32,
        // SAFETY: as above.
        |v, rows, s, bound| unsafe { aggregate::sum_wide_within(v, rows, s, bound) },
        f64::shown,
        |v, s| naive::sum_floats(&mapped(v, f64::from), s),
    );
}

#[test]
fn weighted_sums_know_what_is_great_or_vanishes() {
    let selected = |selection: &Option<Vec<u64>>, row: usize| {
        let words = selection.as_deref();
        words.is_none_or(|words| words[row / 64] >> (row % 64) & 1 == 1)
    };
    on_every_target(|target| {
        let mut random = Random(10);
        let (mut good, mut vanished) = (0, 0);
        for rows in row_counts() {
            for selection in random.selections(rows) {
                let mut lanes = [(); 2].map(|()| mostly_ordinary::<f64>(&mut random, rows));
                for _ in 0..random.below(4) {
                    if rows > 0 {
                        let (lane, row) = (random.below(2), random.below(rows as u64) as usize);
                        let small = [0.0, -0.0, 1e-200, f64::from_bits(1)];
                        lanes[lane as usize][row] = small[random.below(4) as usize];
                        lanes[1 - lane as usize][row] = small[random.below(4) as usize];
                    }
                }
                let [values, weights] = lanes.map(|lane| Fenced::new(&lane));
                let words = fenced_selection(&selection);
                // SAFETY: lanes of as many rows.
                let answer = unsafe {
                    let (v, w) = (values.ptr(), weights.ptr());
                    aggregate::weighted_sums_within(v, w, rows, pointer(&words), WITHIN)
                };
                let pairs = || values.values().iter().zip(weights.values());
                let is_great = pairs().any(|(v, w)| {
                    // A NaN is great as well.
                    !(v.abs() <= WITHIN && w.abs() <= WITHIN)
                });
                let vanishes = pairs().enumerate().any(|(row, (&v, &w))| {
                    selected(&selection, row) && v * w == 0.0 && v != 0.0 && w != 0.0
                });
                let products: Vec<f64> = pairs().map(|(v, w)| v * w).collect();
                let expected = (!is_great && !vanishes).then(|| {
                    [&products[..], weights.values()]
                        .map(|lane| naive::sum_floats(lane, selection.as_deref()).shown())
                });
                let answer = answer.map(|(products, total)| [products, total].map(f64::shown));
                assert_eq!(answer, expected, "{target:?} {rows} {selection:?}");
                good += usize::from(expected.is_some());
                vanished += usize::from(vanishes && !is_great);
            }
        }
        assert!(good > 0 && vanished > 0, "{good} {vanished}");
    });
}
