//! The matches of left rows while both sides are read side by side, in the order of their times.

use proptest::prelude::*;

use super::rows::{RightRow, joined, number, numbers, operand};
use super::window::{aggregated, calls};
use crate::join::joined_column::JoinedColumn;
use crate::join::merge::Merge;
use crate::join::side_by_side::{LeftTimes, SideBySide};
use crate::join::sliding::Sliding;
use crate::join::window::WindowCall;
use crate::test_support::cases;
use crate::vector::Evaluation;
use crate::vector::number::{NumberType, Scalar};
use crate::vector::selection::Selection;
use crate::vector::tests::lanes::{Column, Source, TYPES};
use crate::vector::tests::number_tree::same;

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

/// All rows of the right side that count.
fn oracle(windows: &[RightWindow]) -> Vec<RightRow> {
    let mut all = Vec::new();
    for window in windows {
        for (place, rows) in &window.vectors {
            rows.selection.for_each(|row| {
                let values = window.columns.iter().map(|c| number(c, place + row));
                all.push(RightRow {
                    id: rows.ids[row],
                    time: rows.times[row],
                    values: values.collect(),
                });
            });
        }
    }
    all
}

/// The right side as it is read.
struct Reader {
    /// The last is next, in each of them too.
    windows: Vec<RightWindow>,
    under_way: Option<RightWindow>,
    /// Vectors stay readable.
    entered: Vec<Rows>,
    keys: usize,
}

impl Reader {
    fn new(mut windows: Vec<RightWindow>) -> Reader {
        windows.reverse();
        let each = windows.iter_mut();
        each.for_each(|window| window.vectors.reverse());
        Reader {
            windows,
            under_way: None,
            entered: Vec::new(),
            keys: 0,
        }
    }

    fn meet(&mut self, ids: &[u32]) {
        let greatest = ids.iter().max().map_or(0, |id| *id as usize + 1);
        self.keys = self.keys.max(greatest);
    }

    /// Finds the matches of the rows of a left vector.
    fn find(
        &mut self,
        reading: &mut dyn SideBySide,
        left: &Rows,
        lower: Option<&[i64]>,
        matching: &Selection,
        found: &mut [JoinedColumn],
        source: &mut Source,
    ) -> Evaluation<()> {
        let times = LeftTimes {
            lower: lower.map_or(std::ptr::null(), <[i64]>::as_ptr),
            upper: left.times.as_ptr(),
        };
        let rows = left.times.len();
        self.meet(&left.ids);
        // SAFETY: times are sorted; whatever is entered stays until the next of its kind.
        unsafe {
            reading.enter_left(times, &left.ids, &left.selection, matching, rows);
            reading.make_room(self.keys);
            loop {
                reading.advance(found)?;
                if reading.is_left_done() {
                    return Ok(());
                }
                let window = self.under_way.as_ref();
                let is_done = window.is_none_or(|window| window.vectors.is_empty());
                // A window may be left before its end.
                let leaves = is_done || source.one_in(5);
                if leaves {
                    reading.leave_window();
                }
                if is_done {
                    self.under_way = self.windows.pop();
                }
                let Some(window) = &mut self.under_way else {
                    return reading.finish_left(found);
                };
                if leaves {
                    reading.enter_window(window.columns.iter().map(operand).collect());
                }
                let Some((place, vector)) = window.vectors.pop() else {
                    continue;
                };
                self.meet(&vector.ids);
                let rows = vector.times.len();
                let (times, ids) = (vector.times.as_ptr(), &vector.ids);
                reading.enter_right(times, ids, &vector.selection, rows, place);
                reading.make_room(self.keys);
                self.entered.push(vector);
            }
        }
    }
}

/// Sizes of the vectors of the right side's windows.
fn any_windows() -> impl Strategy<Value = Vec<Vec<usize>>> {
    let size = prop_oneof![5 => 1..40_usize, 1 => 1..400_usize];
    prop::collection::vec(prop::collection::vec(size, 1..4), 0..5)
}

/// Sizes of the vectors of the left side.
fn any_left() -> impl Strategy<Value = Vec<usize>> {
    let size = prop_oneof![15 => 1..60_usize, 4 => 1..400_usize, 1 => Just(2048_usize)];
    prop::collection::vec(size, 1..4)
}

fn any_keys() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0_u64), 1..6_u64, 200..300_u64]
}

fn agrees(
    column: &JoinedColumn,
    row: usize,
    expected: Option<Scalar>,
) -> Result<(), TestCaseError> {
    let found = joined(column.number(), &column.operand(), row);
    let agrees = match (found, expected) {
        (Some(a), Some(b)) => same(column.number(), a, b),
        (a, b) => a == b,
    };
    prop_assert!(agrees, "row {}: {:?}, not {:?}", row, found, expected);
    Ok(())
}

/// The memory depends on the windows, not on the rows that pass through them, even for a key
/// without left rows.
#[test]
fn a_window_that_moves_takes_no_more_memory_the_longer_it_moves() {
    const ROWS: usize = 100;
    let mut source = Source(7);
    let types = [NumberType::F64];
    let calls = vec![WindowCall::Rows, WindowCall::Minimum(0)];
    let vector = |number: usize, keys: usize| Rows {
        ids: (0..ROWS).map(|row| (row % keys) as u32).collect(),
        times: (0..ROWS).map(|row| (number * ROWS + row) as i64).collect(),
        selection: Selection::first(ROWS),
    };
    let windows = (0..400).map(|number| RightWindow {
        vectors: vec![(0, vector(number, 5))],
        columns: vec![numbers(&mut source, NumberType::F64, ROWS, 5)],
    });
    let mut reader = Reader::new(windows.collect());
    let mut sliding = Sliding::new(true, true, calls.clone(), types.to_vec());
    let mut found: Vec<_> = calls
        .iter()
        .map(|call| JoinedColumn::new(call.number(&types)))
        .collect();
    let mut bytes = Vec::new();
    for number in 0..400 {
        let left = vector(number, 3);
        let lower: Vec<i64> = left.times.iter().map(|time| time - 60).collect();
        let all = left.selection;
        reader
            .find(
                &mut sliding,
                &left,
                Some(&lower),
                &all,
                &mut found,
                &mut source,
            )
            .unwrap();
        bytes.push(sliding.bytes());
    }
    assert_eq!(bytes[399], bytes[20], "{bytes:?}");
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn the_latest_row_is_the_oracles(
        seed in any::<u64>(),
        sizes in any_windows(),
        left in any_left(),
        keys in any_keys(),
        inclusive in any::<bool>(),
    ) {
        let mut source = Source(seed);
        let types: Vec<_> = (0..source.below(4)).map(|_| TYPES[source.below(5) as usize]).collect();
        let windows = right_windows(&mut source, &sizes, &types, keys);
        let right = oracle(&windows);
        let mut merge = Merge::new(inclusive, &types);
        let mut found: Vec<_> = types.iter().map(|number| JoinedColumn::new(*number)).collect();
        let mut reader = Reader::new(windows);
        let mut time = if source.one_in(3) { i64::MIN } else { -60 };
        for size in left {
            let known = source.below(20);
            let rows = rows(&mut source, &mut time, size, keys + 2, known);
            let matching = rows.selection.and(&source.selection(size));
            reader.find(&mut merge, &rows, None, &matching, &mut found, &mut source).unwrap();
            let matched = merge.found().unwrap();
            for row in 0..size {
                let latest = right.iter().rfind(|right| {
                    let within = right.time < rows.times[row] || inclusive && right.time == rows.times[row];
                    matching.contains(row) && right.id == rows.ids[row] && within
                });
                prop_assert_eq!(matched.contains(row), latest.is_some(), "row {}", row);
                for (index, column) in found.iter().enumerate() {
                    agrees(column, row, latest.and_then(|latest| latest.values[index]))?;
                }
            }
        }
    }

    #[test]
    fn aggregates_are_the_oracles(
        seed in any::<u64>(),
        sizes in any_windows(),
        left in any_left(),
        keys in any_keys(),
        (lower_inclusive, upper_inclusive) in any::<(bool, bool)>(),
    ) {
        let mut source = Source(seed);
        let types: Vec<_> = (0..source.below(3)).map(|_| TYPES[source.below(5) as usize]).collect();
        let windows = right_windows(&mut source, &sizes, &types, keys);
        let right = oracle(&windows);
        let calls = calls(&types);
        let mut sliding = Sliding::new(lower_inclusive, upper_inclusive, calls.clone(), types.clone());
        let mut found: Vec<_> = calls.iter().map(|call| JoinedColumn::new(call.number(&types))).collect();
        let mut reader = Reader::new(windows);
        let (mut time, mut lowest) = (-60, i64::MIN);
        for size in left {
            let known = source.below(20);
            let rows = rows(&mut source, &mut time, size, keys + 2, known);
            let matching = rows.selection.and(&source.selection(size));
            // Never decreasing, before the upper bound or after it.
            let width = source.below(60) as i64 - 5;
            let lower: Vec<_> = rows.times.iter().map(|time| {
                lowest = lowest.max(time.saturating_sub(width));
                lowest
            }).collect();
            let outcome = reader.find(&mut sliding, &rows, Some(&lower), &matching, &mut found, &mut source);
            let mut expected = Ok(());
            let mut all = Vec::new();
            rows.selection.for_each(|row| {
                let (low, high) = (lower[row], rows.times[row]);
                let within: Vec<_> = right.iter().filter(|right| {
                    matching.contains(row) && right.id == rows.ids[row]
                        && (right.time > low || lower_inclusive && right.time == low)
                        && (right.time < high || upper_inclusive && right.time == high)
                }).collect();
                for (call, column) in calls.iter().zip(&found) {
                    match aggregated(*call, &types, &within) {
                        Ok(answer) => all.push((row, column, answer)),
                        Err(failure) => expected = expected.and(Err(failure)),
                    }
                }
            });
            prop_assert_eq!(outcome, expected);
            if expected.is_err() {
                return Ok(());
            }
            for (row, column, expected) in all {
                agrees(column, row, expected)?;
            }
        }
    }
}
