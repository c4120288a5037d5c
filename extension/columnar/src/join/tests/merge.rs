//! The latest row, while both sides come in the order of their times.

use proptest::prelude::*;

use super::rows::{given, number, numbers, operand};
use crate::join::given::Given;
use crate::join::merge::Merge;
use crate::test_support::cases;
use crate::vector::number::{NumberType, Scalar};
use crate::vector::selection::Selection;
use crate::vector::tests::number_tree::same;
use crate::vector::tests::window::{Column, Source, TYPES};

/// A vector of either side.
struct Rows {
    ids: Vec<u32>,
    times: Vec<i64>,
    selection: Selection,
}

/// Rows whose times go on from one; ids grow with time, so that keys appear late.
fn rows(source: &mut Source, time: &mut i64, rows: usize, keys: u64, known: u64) -> Rows {
    let step = [1, 2, 30][source.below(3) as usize];
    let times = (0..rows).map(|_| {
        *time = time.saturating_add(source.below(step) as i64);
        if source.one_in(400) {
            *time = i64::MAX;
        }
        *time
    });
    Rows {
        times: times.collect(),
        ids: (0..rows)
            .map(|_| source.below(keys.min(known) + 1) as u32)
            .collect(),
        selection: source.selection(rows),
    }
}

/// A window of the right side: its vectors with their places, and the columns over all of them.
struct RightWindow {
    vectors: Vec<(usize, Rows)>,
    columns: Vec<Column>,
}

fn right_windows(
    source: &mut Source,
    sizes: &[Vec<usize>],
    types: &[NumberType],
    keys: u64,
) -> Vec<RightWindow> {
    let mut time = if source.one_in(3) { i64::MIN } else { -50 };
    let mut windows = Vec::new();
    for sizes in sizes {
        let mut place = 0;
        let mut vectors = Vec::new();
        for size in sizes {
            // A vector that was left out may lie between two.
            place += if source.one_in(4) { 70 } else { 0 };
            let known = windows.len() as u64 * 3 + 1;
            vectors.push((place, rows(source, &mut time, *size, keys, known)));
            place += size;
        }
        let columns = types.iter().map(|t| numbers(source, *t, place, 5));
        windows.push(RightWindow {
            columns: columns.collect(),
            vectors,
        });
    }
    windows
}

/// All rows of the right side that count: id, time, columns.
fn oracle(windows: &[RightWindow]) -> Vec<(u32, i64, Vec<Option<Scalar>>)> {
    let mut all = Vec::new();
    for window in windows {
        for (place, rows) in &window.vectors {
            rows.selection.for_each(|row| {
                let values = window.columns.iter().map(|c| number(c, place + row));
                all.push((rows.ids[row], rows.times[row], values.collect()));
            });
        }
    }
    all
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn it_is_the_oracles(
        seed in any::<u64>(),
        sizes in prop::collection::vec(prop::collection::vec(prop_oneof![5 => 1..40_usize, 1 => 1..400_usize], 1..4), 0..5),
        left in prop::collection::vec(prop_oneof![15 => 1..60_usize, 4 => 1..400_usize, 1 => Just(2048_usize)], 1..4),
        keys in prop_oneof![Just(0_u64), 1..6_u64, 200..300_u64],
        inclusive in any::<bool>(),
    ) {
        let mut source = Source(seed);
        let types: Vec<_> = (0..source.below(4)).map(|_| TYPES[source.below(5) as usize]).collect();
        let mut windows = right_windows(&mut source, &sizes, &types, keys);
        let right = oracle(&windows);
        let mut merge = Merge::new(inclusive, &types);
        let mut found: Vec<_> = types.iter().map(|number| Given::new(*number)).collect();
        // Reading order: the last is next.
        windows.reverse();
        windows.iter_mut().for_each(|window| window.vectors.reverse());
        let mut under_way: Option<RightWindow> = None;
        // The right vector that was entered stays readable, as its window does.
        let mut entered: Vec<Rows> = Vec::new();
        let mut cells = 0;
        let mut time = if source.one_in(3) { i64::MIN } else { -60 };
        for size in left {
            let known = source.below(20);
            let rows = rows(&mut source, &mut time, size, keys + 2, known);
            // SAFETY: the times are sorted, and stay until the next vector.
            unsafe { merge.enter_left(rows.times.as_ptr(), &rows.ids, &rows.selection, size) };
            cells = cells.max(rows.ids.iter().max().map_or(0, |id| *id as usize + 1));
            merge.make_cells(cells);
            loop {
                // SAFETY: what was entered is still there.
                unsafe { merge.advance(&mut found) };
                if merge.is_left_done() {
                    break;
                }
                let window_is_done = under_way.as_ref().is_none_or(|window| window.vectors.is_empty());
                if window_is_done || source.one_in(5) {
                    merge.leave_window();
                }
                if window_is_done {
                    under_way = windows.pop();
                    if let Some(window) = &under_way {
                        merge.enter_window(window.columns.iter().map(operand));
                    }
                }
                let Some(window) = &mut under_way else {
                    // SAFETY: as above.
                    unsafe { merge.finish_left(&mut found) };
                    break;
                };
                let Some((place, vector)) = window.vectors.pop() else {
                    continue;
                };
                cells = cells.max(vector.ids.iter().max().map_or(0, |id| *id as usize + 1));
                entered.push(vector);
                let vector = &entered[entered.len() - 1];
                // SAFETY: the times are sorted, and stay.
                unsafe {
                    merge.enter_right(vector.times.as_ptr(), &vector.ids, &vector.selection, vector.times.len(), place);
                }
                merge.make_cells(cells);
            }
            let nearest = |row: usize| {
                let candidates = right.iter().filter(|(id, time, _)| {
                    *id == rows.ids[row] && (*time < rows.times[row] || inclusive && *time == rows.times[row])
                });
                candidates.last().filter(|_| rows.selection.contains(row))
            };
            let matched = merge.found();
            for row in 0..size {
                let nearest = nearest(row);
                prop_assert_eq!(matched.contains(row), nearest.is_some(), "row {}", row);
                for (index, column) in found.iter().enumerate() {
                    let value = given(column.number(), &column.operand(), row);
                    let expected = nearest.and_then(|(_, _, values)| values[index]);
                    let agrees = match (value, expected) {
                        (Some(a), Some(b)) => same(column.number(), a, b),
                        (a, b) => a == b,
                    };
                    prop_assert!(agrees, "row {} column {}: {:?}, not {:?}", row, index, value, expected);
                }
            }
        }
    }
}
