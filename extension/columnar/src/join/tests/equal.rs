//! Which rows of a small side have the keys of a left row, and which zones rule them out.

use proptest::prelude::*;

use super::rows::numbers;
use crate::LaneKind;
use crate::aggregate::Key;
use crate::join::equal::{EqualJoin, SmallKey};
use crate::test_support::cases;
use crate::vector::number::{NumberType, Scalar};
use crate::vector::tests::dictionaries::{Walk, any_steps};
use crate::vector::tests::window::{Cell, Column, Source, TYPES, Window, item};
use crate::vector::value::Value;
use crate::zone_map::{Bound, Zone};

/// Attributes: columns of the three integer types, then this.
const TEXT: usize = 3;

fn key(attribute: usize) -> Key {
    match attribute {
        TEXT => Key::Text(TEXT),
        number => Key::Number(Value::Column(TYPES[number], number)),
    }
}

/// A vector with all columns; its numbers are of so many values.
fn vector(source: &mut Source, text: Column, rows: usize, variety: u64) -> Window {
    let mut columns: Vec<_> = (0..TEXT)
        .map(|number| numbers(source, TYPES[number], rows, variety))
        .collect();
    columns.push(text);
    Window::of(columns)
}

fn small_key(cell: &Cell) -> (Option<i64>, Vec<u8>) {
    match cell {
        Cell::Number(Scalar(bits)) => (Some(*bits as i64), Vec::new()),
        Cell::Text(payload) => (None, item(payload)),
        _ => (None, Vec::new()),
    }
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn left_rows_find_all_rows_with_their_keys_in_order(
        seed in any::<u64>(),
        keys in prop::collection::vec(0..=TEXT, 1..4),
        steps in any_steps(),
        small_rows in 0..60_usize,
        variety in prop_oneof![Just(6_u64), Just(100)],
        rows in prop_oneof![4 => 1..120_usize, 1 => Just(2048_usize)],
    ) {
        let mut source = Source(seed);
        let mut join = EqualJoin::new(keys.iter().map(|attribute| key(*attribute)).collect());
        if source.one_in(2) {
            // What was there before is forgotten.
            let earlier: Vec<_> = keys.iter().map(|key| match *key {
                TEXT => SmallKey::Text(b"\x07ab"),
                _ => SmallKey::Integer(1),
            }).collect();
            join.push(&earlier);
            join.finish();
            join.clear();
        }
        let mut walk = Walk::new();
        let mut steps = steps;
        let Some(step) = steps.pop() else { return Ok(()) };
        let text = walk.column(step, small_rows.max(1), &mut source);
        let small = vector(&mut source, text, small_rows.max(1), variety);
        for row in 0..small_rows {
            let cells: Vec<_> = keys.iter().map(|key| small_key(small.cell(*key, row))).collect();
            let values: Vec<_> = cells.iter().map(|(integer, text)| match integer {
                Some(integer) => SmallKey::Integer(*integer),
                None if text.is_empty() => SmallKey::Null,
                None => SmallKey::Text(text),
            }).collect();
            prop_assert_eq!(join.push(&values) as usize, row);
        }
        join.finish();
        let is_null = |window: &Window, row| keys.iter().any(|key| matches!(window.cell(*key, row), Cell::Null));
        for step in steps {
            let text = walk.column(step, rows, &mut source);
            let window = vector(&mut source, text, rows, variety);
            let selection = source.selection(rows);
            let mut left = selection;
            window.with_frame(|frame| join.find(frame, &mut left)).unwrap();
            let mut found = vec![Vec::new(); rows];
            while !left.is_empty() {
                left.for_each(|row| found[row].push(join.found()[row]));
                join.find_next(&mut left);
            }
            for (row, found) in found.iter().enumerate() {
                let expected: Vec<u32> = (0..small_rows).filter(|small_row| {
                    selection.contains(row) && !is_null(&window, row) && !is_null(&small, *small_row) && keys.iter().all(|key| {
                        small_key(window.cell(*key, row)) == small_key(small.cell(*key, *small_row))
                    })
                }).map(|row| row as u32).collect();
                prop_assert_eq!(found, &expected, "row {}", row);
            }
        }
    }

    #[test]
    fn zones_rule_out_what_has_none_of_the_keys(
        integers in prop::collection::vec(-40..40_i64, 1..12),
        minimum in -50..50_i64,
        length in 0..20_i64,
    ) {
        let mut join = EqualJoin::new(vec![Key::Number(Value::Column(NumberType::I64, 0))]);
        for integer in &integers {
            join.push(&[SmallKey::Integer(*integer)]);
        }
        join.finish();
        let zone = Zone {
            minimum: Bound::Signed(minimum),
            maximum: Bound::Signed(minimum + length),
            non_null: 1,
            ..Zone::empty(LaneKind::Bool)
        };
        let set = join.key_set(0).unwrap();
        let has_any = integers.iter().any(|integer| (minimum..=minimum + length).contains(integer));
        prop_assert_eq!(set.is_ruled_out(&zone), !has_any);
        let empty = Zone { non_null: 0, ..zone };
        let unknown = Zone { minimum: Bound::Unknown, ..zone };
        prop_assert!(set.is_ruled_out(&empty));
        prop_assert!(!set.is_ruled_out(&unknown));
    }
}
