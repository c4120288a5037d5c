//! Sorted lanes and distances, on every target.

mod support;

use lanes_simd::{distance, naive, search};
use support::{Fenced, Random, Sample, on_every_target, row_counts};

fn sorted_lane(random: &mut Random, rows: usize) -> Vec<i64> {
    let distinct = 1 + random.below(2 * rows as u64 + 1);
    let extremes = random.below(2) == 0;
    let mut lane: Vec<i64> = (0..rows)
        .map(|_| {
            if extremes {
                i64::sample(random)
            } else {
                random.below(distinct) as i64
            }
        })
        .collect();
    lane.sort_unstable();
    lane
}

#[test]
fn order_is_noticed() {
    on_every_target(|target| {
        let mut random = Random(11);
        for rows in row_counts() {
            let mut lane = sorted_lane(&mut random, rows);
            for swap in [false, true] {
                if swap && rows > 1 {
                    let row = random.below(rows as u64 - 1) as usize;
                    lane.swap(row, row + 1);
                }
                let fenced = Fenced::new(&lane);
                // SAFETY: a lane of as many rows, here and below.
                let sorted = unsafe { search::is_sorted_i64(fenced.ptr(), rows) };
                assert_eq!(sorted, lane.is_sorted(), "{target:?} {rows} {lane:?}");
            }
        }
    });
}

#[test]
fn keys_are_found() {
    on_every_target(|target| {
        let mut random = Random(12);
        for rows in row_counts() {
            let lane = Fenced::new(&sorted_lane(&mut random, rows));
            for _ in 0..20 {
                let key = match random.below(2) {
                    0 if rows > 0 => lane.values()[random.below(rows as u64) as usize],
                    _ => i64::sample(&mut random),
                };
                // SAFETY: as above.
                let found = unsafe {
                    (
                        search::lower_bound_i64(lane.ptr(), rows, key),
                        search::upper_bound_i64(lane.ptr(), rows, key),
                    )
                };
                let expected = (
                    lane.values().partition_point(|&v| v < key),
                    lane.values().partition_point(|&v| v <= key),
                );
                assert_eq!(found, expected, "{target:?} {rows} {key}");
            }
        }
    });
}

#[test]
fn lanes_merge() {
    on_every_target(|target| {
        let mut random = Random(13);
        for left_rows in row_counts() {
            for right_rows in [
                0,
                1,
                5,
                left_rows,
                2 * left_rows + 3,
                40 * left_rows.min(50) + 40,
            ] {
                let left = Fenced::new(&sorted_lane(&mut random, left_rows));
                let right = Fenced::new(&sorted_lane(&mut random, right_rows));
                for inclusive in [false, true] {
                    let mut out = Fenced::filled(u32::MAX, left_rows);
                    // SAFETY: lanes of as many rows.
                    unsafe {
                        search::merge_positions_i64(
                            left.ptr(),
                            left_rows,
                            right.ptr(),
                            right_rows,
                            inclusive,
                            out.mut_ptr(),
                        );
                    }
                    let expected: Vec<u32> = match left_rows {
                        0..200 => naive::merge_positions(left.values(), right.values(), inclusive),
                        // The twin is quadratic.
                        _ => left
                            .values()
                            .iter()
                            .map(|&key| {
                                right
                                    .values()
                                    .partition_point(|&v| v < key || inclusive && v == key)
                                    as u32
                            })
                            .collect(),
                    };
                    assert_eq!(
                        out.values(),
                        expected,
                        "{target:?} {left_rows} {right_rows} {inclusive}"
                    );
                }
            }
        }
    });
}

#[test]
fn lanes_that_are_not_sorted_merge_to_anything_in_range() {
    on_every_target(|target| {
        let mut random = Random(14);
        for rows in row_counts() {
            let left = Fenced::new(&random.lane::<i64>(rows));
            let right = Fenced::new(&random.lane::<i64>(rows));
            let mut out = Fenced::filled(u32::MAX, rows);
            // SAFETY: lanes of as many rows.
            unsafe {
                search::merge_positions_i64(
                    left.ptr(),
                    rows,
                    right.ptr(),
                    rows,
                    true,
                    out.mut_ptr(),
                )
            };
            assert!(
                out.values()
                    .iter()
                    .all(|&position| position as usize <= rows),
                "{target:?} {rows}"
            );
        }
    });
}

#[test]
fn distances_are_the_same_everywhere() {
    on_every_target(|target| {
        let mut random = Random(17);
        for dimensions in row_counts() {
            let left = Fenced::new(&random.lane::<f32>(dimensions));
            let right = Fenced::new(&random.lane::<f32>(dimensions));
            let sum = |of: fn(f32, f32) -> f32, left: &[f32], right: &[f32]| {
                let terms: Vec<f32> = left
                    .iter()
                    .zip(right)
                    .map(|(&left, &right)| of(left, right))
                    .collect();
                naive::sum_floats(&terms, None)
            };
            let (l, r) = (left.values(), right.values());
            let dot = |left, right| sum(|left, right| left * right, left, right);
            let expected = [
                dot(l, r),
                sum(|left, right| (left - right) * (left - right), l, r),
                (1.0 - (f64::from(dot(l, r))
                    / (f64::from(dot(l, l)) * f64::from(dot(r, r))).sqrt())
                .clamp(-1.0, 1.0)) as f32,
            ];
            // SAFETY: vectors of as many dimensions.
            let answers = unsafe {
                [
                    distance::dot_f32(left.ptr(), right.ptr(), dimensions),
                    distance::l2_squared_f32(left.ptr(), right.ptr(), dimensions),
                    distance::cosine_f32(left.ptr(), right.ptr(), dimensions),
                ]
            };
            assert_eq!(
                answers.map(Sample::shown),
                expected.map(Sample::shown),
                "{target:?} {dimensions}"
            );
        }
    });
}

#[test]
fn known_distances() {
    let (x, y) = ([1.0_f32, 0.0], [0.0_f32, 2.0]);
    // SAFETY: vectors of two dimensions.
    unsafe {
        assert_eq!(distance::cosine_f32(x.as_ptr(), x.as_ptr(), 2), 0.0);
        assert_eq!(distance::cosine_f32(x.as_ptr(), y.as_ptr(), 2), 1.0);
        assert_eq!(distance::l2_squared_f32(x.as_ptr(), y.as_ptr(), 2), 5.0);
        assert!(distance::cosine_f32(x.as_ptr(), [0.0; 2].as_ptr(), 2).is_nan());
    }
}
