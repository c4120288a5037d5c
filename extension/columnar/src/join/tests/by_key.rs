//! The matches of left rows while both sides are read by key and time.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::rows::{joined, number, numbers, operand};
use crate::join::by_key::{Ascending, ByKey, Step};
use crate::join::joined_column::JoinedColumn;
use crate::limits::VECTOR_ROWS;
use crate::test_support::cases;
use crate::vector::number::NumberType;
use crate::vector::selection::Selection;
use crate::vector::tests::lanes::{Column, Source, TYPES};
use crate::vector::tests::number_tree::same;

/// A vector of either side; the columns of the right one begin `place` rows earlier.
struct Rows {
    ids: Vec<u32>,
    times: Vec<i64>,
    selection: Selection,
    place: usize,
    columns: Vec<Column>,
}

/// Keys in another order than that of their ids.
fn order(a: u32, b: u32) -> Ordering {
    let rank = |id: u32| (id * 7 + 3) % 11;
    rank(a).cmp(&rank(b))
}

/// Rows of some keys in order, those of a key by time; `disorder` exchanges two of them now and
/// then.
fn side(source: &mut Source, longest: u64, disorder: bool, types: &[NumberType]) -> Vec<Rows> {
    let mut keys: Vec<u32> = (0..11).filter(|_| !source.one_in(3)).collect();
    keys.sort_by(|a, b| order(*a, *b));
    let mut rows = Vec::new();
    for key in keys {
        let mut time = source.below(40) as i64 - 20;
        for _ in 0..source.below(longest) + 1 {
            time += source.below(3) as i64;
            rows.push((key, time));
        }
    }
    if disorder && source.one_in(2) && rows.len() > 1 {
        let at = source.below(rows.len() as u64 - 1) as usize;
        rows.swap(at, at + 1);
    }
    let mut vectors = Vec::new();
    while !rows.is_empty() {
        let most = rows.len().min(VECTOR_ROWS) as u64;
        let count = match source.below(3) {
            0 => most as usize,
            1 => 1 + source.below(most.min(60)) as usize,
            _ => 1 + source.below(most) as usize,
        };
        let place = source.below(3) as usize * 64;
        let taken: Vec<_> = rows.drain(..count).collect();
        let all_selected = source.one_in(2);
        let selection = if all_selected {
            Selection::first(count)
        } else {
            source.selection(count)
        };
        // Rows that do not count may have anything.
        let garbage = |row: usize| !selection.contains(row) && row.is_multiple_of(3);
        let rows = taken.iter().enumerate();
        vectors.push(Rows {
            ids: rows
                .clone()
                .map(|(row, (id, _))| if garbage(row) { 10 - id } else { *id })
                .collect(),
            times: rows
                .map(|(row, (_, time))| if garbage(row) { 999 } else { *time })
                .collect(),
            selection,
            place,
            columns: types
                .iter()
                .map(|number| numbers(source, *number, place + count, 5))
                .collect(),
        });
    }
    vectors
}

/// Rows that count, with the vector and the row in it.
fn counted(vectors: &[Rows]) -> Vec<(u32, i64, usize, usize)> {
    let mut all = Vec::new();
    for (index, rows) in vectors.iter().enumerate() {
        rows.selection
            .for_each(|row| all.push((rows.ids[row], rows.times[row], index, row)));
    }
    all
}

fn ascends(vectors: &[Rows]) -> bool {
    let all = counted(vectors);
    all.is_sorted_by(|a, b| order(a.0, b.0).is_le())
}

fn seems_to_ascend(vectors: &[Rows]) -> bool {
    let mut ascending = Ascending::new();
    vectors.iter().all(|rows| {
        ascending.enter(&rows.ids, &rows.selection, rows.ids.len()) && ascending.holds(order)
    })
}

proptest! {
    #![proptest_config(cases(800))]

    #[test]
    fn the_latest_row_of_the_key_is_the_oracles(
        seed in any::<u64>(), longest in prop_oneof![Just(3_u64), Just(30), Just(300)],
        inclusive in any::<bool>(), disorder in any::<bool>(),
    ) {
        let mut source = Source(seed);
        let types: Vec<_> = (0..source.below(3)).map(|_| TYPES[source.below(5) as usize]).collect();
        let right = side(&mut source, longest, disorder, &types);
        let left = side(&mut source, longest, disorder, &[]);
        let is_long = longest > 100;
        if is_long {
            prop_assert_eq!(seems_to_ascend(&right), ascends(&right));
        }
        if !seems_to_ascend(&right) {
            return Ok(());
        }
        let mut all: Vec<Vec<_>> = vec![Vec::new(); 11];
        for row in counted(&right) {
            all[row.0 as usize].push(row);
        }
        let mut reading = ByKey::new(inclusive, &types);
        let mut found: Vec<_> = types.iter().map(|number| JoinedColumn::new(*number)).collect();
        let mut unread = right.iter();
        for rows in &left {
            let matching = rows.selection.and(&source.selection(rows.ids.len()));
            let count = rows.ids.len();
            // SAFETY: whatever is entered stays.
            let step = unsafe {
                if !reading.begin_left(rows.times.as_ptr(), &rows.ids, &matching, count, &mut found) {
                    return Ok(());
                }
                loop {
                    match reading.advance(&mut found, order) {
                        Step::RightDone => {}
                        step => break step,
                    }
                    let Some(vector) = unread.next() else {
                        reading.end_right();
                        continue;
                    };
                    let columns = vector.columns.iter().map(operand).collect();
                    let (times, ids) = (vector.times.as_ptr(), &vector.ids);
                    let entered = reading.begin_right(
                        times, ids, &vector.selection, ids.len(), (vector.place, columns),
                    );
                    if !entered {
                        return Ok(());
                    }
                }
            };
            if step == Step::OutOfOrder {
                prop_assert!(disorder, "nothing is out of order");
                return Ok(());
            }
            let matched = reading.found();
            for row in 0..count {
                let time = rows.times[row];
                let of_key = all.get(rows.ids[row] as usize).filter(|_| matching.contains(row));
                let latest = of_key.and_then(|rights| {
                    let within = |time_of: i64| time_of < time || inclusive && time_of == time;
                    rights.iter().rfind(|right| within(right.1))
                });
                prop_assert_eq!(matched.contains(row), latest.is_some(), "row {}", row);
                for (index, column) in found.iter().enumerate() {
                    let expected = latest.and_then(|(_, _, vector, row)| {
                        number(&right[*vector].columns[index], right[*vector].place + row)
                    });
                    let answer = joined(column.number(), &column.operand(), row);
                    let agrees = match (answer, expected) {
                        (Some(a), Some(b)) => same(column.number(), a, b),
                        (a, b) => a == b,
                    };
                    prop_assert!(agrees, "row {}: {:?}, not {:?}", row, answer, expected);
                }
            }
        }
    }
}
