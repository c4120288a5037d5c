//! Stretches of rows against their naive twins, to the bit, on every target.

mod support;

use lanes_simd::{Float, Number, naive, stretches};
use std::cmp::Ordering;
use support::{Fenced, Random, Sample, fenced_selection, on_every_target, pointer, row_counts};

/// Where stretches of random lengths begin, and where the last one ends; some are empty.
fn starts(random: &mut Random, rows: usize) -> Vec<u32> {
    let longest = 1 + random.below(3 * rows as u64 / 2 + 2);
    let mut starts = vec![0];
    let mut next = 0;
    while next < rows as u64 {
        next = (next + random.below(longest + 1)).min(rows as u64);
        starts.push(next as u32);
    }
    starts
}

/// Values that change where a stretch begins, most of them at least.
fn lane_of<T>(random: &mut Random, starts: &[u32], value: impl Fn(u64) -> T) -> Vec<T>
where
    T: Copy,
{
    let mut lane = Vec::new();
    for pair in starts.windows(2) {
        let own = value(random.below(3).wrapping_mul(0x8000_0000_0000_0001));
        lane.extend((pair[0]..pair[1]).map(|_| own));
    }
    lane
}

fn cuts<T: stretches::Bits + PartialEq + std::fmt::Debug>(value: impl Fn(u64) -> T) {
    on_every_target(|target| {
        let mut random = Random(21);
        for rows in row_counts() {
            for _ in 0..4 {
                let starts = starts(&mut random, rows);
                let lane = Fenced::new(&lane_of(&mut random, &starts, &value));
                let expected = naive::cut(lane.values());
                for most in [expected.len(), expected.len().saturating_sub(1), rows, 0] {
                    let mut found = Fenced::filled(u32::MAX, most);
                    // SAFETY: a lane of as many rows, and room for `most` starts.
                    let count = unsafe { stretches::cut(lane.ptr(), rows, most, found.mut_ptr()) };
                    let message = format!("{target:?} {rows} {most} {expected:?}");
                    let fits = expected.len() <= most;
                    assert_eq!(count, fits.then_some(expected.len()), "{message}");
                    if fits {
                        assert_eq!(found.values()[..expected.len()], expected, "{message}");
                    }
                }
            }
        }
    });
}

#[test]
fn rows_are_cut_where_values_change() {
    cuts(|value| value as u16);
    cuts(|value| value as u32);
    cuts(|value| value);
    cuts(|value| (u128::from(value) << 64 | 1).to_ne_bytes());
    cuts(|value| u128::from(value).to_ne_bytes());
}

#[test]
fn values_are_counted_up_to_the_first_beyond() {
    on_every_target(|target| {
        let mut random = Random(22);
        for rows in row_counts() {
            for beyond in [0, rows / 2, rows.saturating_sub(1), rows] {
                let (low, high) = match random.below(3) {
                    0 => (i64::MIN, i64::MAX - 1),
                    1 => (-5, -5),
                    _ => (-3, 1_000_000),
                };
                let width = high.wrapping_sub(low) as u64;
                let mut lane: Vec<i64> = (0..rows)
                    .map(|_| low.wrapping_add((random.next() % (width + 1)) as i64))
                    .collect();
                if beyond < rows {
                    let below = low.checked_sub(1).filter(|_| random.below(2) == 0);
                    lane[beyond] = below.unwrap_or(high + 1);
                }
                let lane = Fenced::new(&lane);
                // SAFETY: a lane of as many rows.
                let found = unsafe { stretches::count_within(lane.ptr(), rows, low, high) };
                assert_eq!(found, beyond.min(rows), "{target:?} {rows} {low} {high}");
            }
        }
    });
}

fn sums<T: Float + Sample + naive::Addend>() {
    on_every_target(|target| {
        let mut random = Random(23);
        for rows in row_counts() {
            let starts = Fenced::new(&starts(&mut random, rows));
            let count = starts.values().len() - 1;
            for selection in random.selections(rows) {
                let values = Fenced::new(&random.lane::<T>(rows));
                let words = fenced_selection(&selection);
                let mut found = Fenced::filled(T::default(), count);
                // SAFETY: values up to the last start, a selection of them, and a sum for each
                // stretch.
                unsafe {
                    stretches::sums(
                        values.ptr(),
                        pointer(&words),
                        starts.ptr(),
                        count,
                        found.mut_ptr(),
                    );
                }
                let expected =
                    naive::stretch_sums(values.values(), selection.as_deref(), starts.values());
                let shown = |sums: &[T]| sums.iter().map(|sum| sum.shown()).collect::<Vec<_>>();
                assert_eq!(
                    shown(found.values()),
                    shown(&expected),
                    "{target:?} {rows} {:?} {selection:?}",
                    starts.values()
                );
            }
        }
    });
}

#[test]
fn runs_are_summed_in_stripes_of_the_lane() {
    sums::<f32>();
    sums::<f64>();
}

#[test]
fn reals_are_summed_as_doubles() {
    on_every_target(|target| {
        let mut random = Random(24);
        for rows in row_counts() {
            let starts = Fenced::new(&starts(&mut random, rows));
            let count = starts.values().len() - 1;
            let values = Fenced::new(&random.lane::<f32>(rows));
            let mut found = Fenced::filled(0_f64, count);
            // SAFETY: values up to the last start, and a sum for each stretch.
            unsafe {
                stretches::sums_wide(
                    values.ptr(),
                    std::ptr::null(),
                    starts.ptr(),
                    count,
                    found.mut_ptr(),
                );
            }
            let wide: Vec<f64> = values.values().iter().map(|v| f64::from(*v)).collect();
            let expected = naive::stretch_sums(&wide, None, starts.values());
            let shown = |sums: &[f64]| sums.iter().map(|sum| sum.shown()).collect::<Vec<_>>();
            assert_eq!(shown(found.values()), shown(&expected), "{target:?} {rows}");
        }
    });
}

fn extremes<T: Number + Sample>() {
    const GROUPS: usize = 5;
    on_every_target(|target| {
        let mut random = Random(25);
        for rows in row_counts() {
            let starts = Fenced::new(&starts(&mut random, rows));
            let count = starts.values().len() - 1;
            let groups: Vec<u32> = (0..count)
                .map(|_| random.below(GROUPS as u64) as u32)
                .collect();
            let groups = Fenced::new(&groups);
            let values = Fenced::new(&random.lane::<T>(rows));
            for (wanted, begin) in [(Ordering::Less, T::GREATEST), (Ordering::Greater, T::LEAST)] {
                let mut expected = [begin; GROUPS];
                for (group, stretch) in groups.values().iter().zip(starts.values().windows(2)) {
                    let best = &mut expected[*group as usize];
                    for value in &values.values()[stretch[0] as usize..stretch[1] as usize] {
                        *best = naive::better(*best, *value, wanted);
                    }
                }
                let mut best = Fenced::filled(begin, GROUPS);
                let (lane, starts, groups) = (values.ptr(), starts.ptr(), groups.ptr());
                // SAFETY: values up to the last start, a group for each stretch, an element for
                // each group.
                unsafe {
                    match wanted {
                        Ordering::Less => {
                            stretches::minimum(lane, starts, groups, count, best.mut_ptr());
                        }
                        _ => stretches::maximum(lane, starts, groups, count, best.mut_ptr()),
                    }
                }
                let bits = |best: &[T]| best.iter().map(|value| value.bits()).collect::<Vec<_>>();
                assert_eq!(
                    bits(best.values()),
                    bits(&expected),
                    "{target:?} {rows} {wanted:?}"
                );
            }
        }
    });
}

#[test]
fn runs_offer_their_extremes_to_groups() {
    extremes::<i16>();
    extremes::<i32>();
    extremes::<i64>();
    extremes::<u32>();
    extremes::<f32>();
    extremes::<f64>();
}
