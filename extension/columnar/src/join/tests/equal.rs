//! The rows of a small side with the keys of a left row, and the zones that rule them out.

use proptest::prelude::*;

use super::rows::numbers;
use crate::LaneKind;
use crate::aggregate::Key;
use crate::bytes16::Bytes16;
use crate::join::equal::{EqualJoin, SmallKey};
use crate::test_support::cases;
use crate::vector::number::{NumberType, Scalar};
use crate::vector::selection::Selection;
use crate::vector::tests::bytes16_column::bytes16;
use crate::vector::tests::dictionaries::{Walk, any_steps};
use crate::vector::tests::lanes::{Cell, Column, Source, TYPES, TestLanes, item};
use crate::vector::value::Value;
use crate::zone_map::{Bound, Zone};

/// Attributes: columns of the five types of numbers, then these.
const TEXT: usize = 5;
const BYTES16: usize = 6;

fn key(attribute: usize) -> Key {
    match attribute {
        TEXT => Key::Text(TEXT),
        BYTES16 => Key::Bytes16(BYTES16),
        number => Key::Number(Value::Column(TYPES[number], number)),
    }
}

/// A vector with all columns; its numbers are of so many values.
fn vector(source: &mut Source, text: Column, rows: usize, variety: u64) -> TestLanes {
    let mut columns: Vec<_> = (0..TEXT)
        .map(|number| numbers(source, TYPES[number], rows, variety))
        .collect();
    columns.push(text);
    let values: Vec<_> = (0..rows)
        .map(|_| (!source.one_in(4)).then(|| bytes16(source.below(variety))))
        .collect();
    columns.push(Column::bytes16(&values, source));
    TestLanes::of(columns)
}

/// A float as it compares: all NaNs are one, and so are both zeros.
fn float(attribute: usize, scalar: Scalar) -> f64 {
    match TYPES[attribute] {
        NumberType::F32 => f64::from(f32::from_bits(scalar.0 as u32)),
        _ => f64::from_bits(scalar.0),
    }
}

/// Whether PostgreSQL takes two values of an attribute for equal.
fn equal(attribute: usize, a: &Cell, b: &Cell) -> bool {
    match (a, b) {
        (Cell::Number(a), Cell::Number(b)) if attribute < TEXT && TYPES[attribute].is_float() => {
            let (a, b) = (float(attribute, *a), float(attribute, *b));
            a == b || a.is_nan() && b.is_nan()
        }
        (Cell::Null, _) | (_, Cell::Null) => false,
        _ => a == b,
    }
}

fn small_key<'a>(attribute: usize, cell: &Cell, room: &'a mut Vec<u8>) -> SmallKey<'a> {
    match cell {
        Cell::Number(scalar) if TYPES[attribute].is_float() => {
            SmallKey::Float(float(attribute, *scalar))
        }
        Cell::Number(Scalar(bits)) => SmallKey::Integer(*bits as i64),
        Cell::Text(payload) => {
            *room = item(payload);
            SmallKey::Text(room)
        }
        Cell::Bytes16(bytes) => SmallKey::Bytes16(Bytes16::of(*bytes)),
        _ => SmallKey::Null,
    }
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn left_rows_find_all_rows_with_their_keys_in_order(
        seed in any::<u64>(),
        keys in prop::collection::vec(0..=BYTES16, 1..4),
        steps in any_steps(),
        small_rows in 0..60_usize,
        variety in prop_oneof![Just(6_u64), Just(100)],
        rows in prop_oneof![4 => 1..120_usize, 1 => Just(2048_usize)],
    ) {
        let mut source = Source(seed);
        let mut join = EqualJoin::new(keys.iter().map(|attribute| key(*attribute)).collect());
        if source.one_in(2) {
            // Earlier rows are forgotten.
            let earlier: Vec<_> = keys.iter().map(|key| match *key {
                TEXT => SmallKey::Text(b"\x07ab"),
                BYTES16 => SmallKey::Bytes16(Bytes16::of([1; 16])),
                number if TYPES[number].is_float() => SmallKey::Float(1.0),
                _ => SmallKey::Integer(1),
            }).collect();
            join.push(&earlier);
            join.finish(usize::MAX);
            join.clear();
        }
        let mut walk = Walk::new();
        let mut steps = steps;
        let Some(step) = steps.pop() else { return Ok(()) };
        let text = walk.column(step, small_rows.max(1), &mut source);
        let small = vector(&mut source, text, small_rows.max(1), variety);
        for row in 0..small_rows {
            let mut room = vec![Vec::new(); keys.len()];
            let values: Vec<_> = keys.iter().zip(&mut room).map(|(key, room)| small_key(*key, small.cell(*key, row), room)).collect();
            prop_assert_eq!(join.push(&values) as usize, row);
        }
        join.finish(usize::MAX);
        for step in steps {
            let text = walk.column(step, rows, &mut source);
            let lanes = vector(&mut source, text, rows, variety);
            let selection = source.selection(rows);
            let mut left = selection;
            lanes.with_frame(|frame| join.find(frame, &mut left)).unwrap();
            let mut found = vec![Vec::new(); rows];
            while !left.is_empty() {
                left.for_each(|row| found[row].push(join.found().rows()[row]));
                join.find_next(&mut left);
            }
            for (row, found) in found.iter().enumerate() {
                let expected: Vec<u32> = (0..small_rows).filter(|small_row| {
                    selection.contains(row) && keys.iter().all(|key| equal(*key, lanes.cell(*key, row), small.cell(*key, *small_row)))
                }).map(|row| row as u32).collect();
                prop_assert_eq!(found, &expected, "row {}", row);
            }
        }
    }

    #[test]
    fn vectors_of_the_small_side_are_taken_as_their_rows_are(
        seed in any::<u64>(),
        keys in prop::collection::vec(0..=BYTES16, 1..4),
        steps in any_steps(),
        variety in prop_oneof![Just(6_u64), Just(100)],
        rows in prop_oneof![4 => 1..120_usize, 1 => Just(2048_usize)],
        keys_alone in any::<bool>(),
        batches in 1..3_usize,
    ) {
        let mut source = Source(seed);
        let own_keys = || keys.iter().map(|attribute| key(*attribute)).collect();
        let (mut by_rows, mut by_vectors) = (EqualJoin::new(own_keys()), EqualJoin::new(own_keys()));
        by_vectors.take_vectors(own_keys());
        let mut walk = Walk::new();
        let windows: Vec<_> = steps.into_iter().map(|step| {
            let text = walk.column(step, rows, &mut source);
            vector(&mut source, text, rows, variety)
        }).collect();
        let Some((left, small)) = windows.split_first() else { return Ok(()) };
        for _ in 0..batches {
            by_rows.clear();
            by_vectors.clear();
            for lanes in small {
                let mut selection = source.selection(rows);
                for row in 0..rows {
                    let mut room = vec![Vec::new(); keys.len()];
                    let values: Vec<_> = keys.iter().zip(&mut room).map(|(key, room)| small_key(*key, lanes.cell(*key, row), room)).collect();
                    if values.iter().any(|value| matches!(value, SmallKey::Null)) {
                        selection.remove(row);
                    }
                    if selection.contains(row) {
                        match keys_alone {
                            true => by_rows.push_key(&values),
                            false => drop(by_rows.push(&values)),
                        }
                    }
                }
                lanes.with_frame(|frame| by_vectors.push_vector(frame, &selection, keys_alone)).unwrap();
            }
            by_rows.finish(usize::MAX);
            by_vectors.finish(0);
            prop_assert_eq!(by_rows.rows(), by_vectors.rows());
            let mut expected: Selection = source.selection(rows);
            let mut found = expected;
            left.with_frame(|frame| by_rows.find(frame, &mut expected)).unwrap();
            left.with_frame(|frame| by_vectors.find(frame, &mut found)).unwrap();
            loop {
                prop_assert_eq!(found, expected);
                expected.for_each(|row| assert_eq!(by_vectors.found().rows()[row], by_rows.found().rows()[row], "row {row}"));
                if expected.is_empty() {
                    break;
                }
                by_rows.find_next(&mut expected);
                by_vectors.find_next(&mut found);
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
        join.finish(usize::MAX);
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

    #[test]
    fn zones_rule_out_no_row_that_has_one_of_the_keys(
        seed in any::<u64>(),
        attribute in prop_oneof![0..TEXT, Just(BYTES16)],
        small_rows in 1..30_usize,
        rows in 1..6_usize,
        variety in prop_oneof![Just(6_u64), Just(100)],
    ) {
        let mut source = Source(seed);
        let side = |source: &mut Source, rows| {
            let text = Column::absent(rows, source);
            vector(source, text, rows, variety)
        };
        let small = side(&mut source, small_rows);
        let lanes = side(&mut source, rows);
        let mut join = EqualJoin::new(vec![key(attribute)]);
        for row in 0..small_rows {
            join.push(&[small_key(attribute, small.cell(attribute, row), &mut Vec::new())]);
        }
        join.finish(usize::MAX);
        let has_any = (0..rows).any(|row| (0..small_rows).any(|small_row| {
            equal(attribute, lanes.cell(attribute, row), small.cell(attribute, small_row))
        }));
        if let Some(set) = join.key_set(0) {
            prop_assert!(!has_any || !set.is_ruled_out(&lanes.zone(attribute)));
        }
    }
}

#[test]
fn zones_rule_out_floats_and_bytes_that_are_none_of_the_keys() {
    let zone = |minimum, maximum| Zone {
        minimum,
        maximum,
        non_null: 1,
        ..Zone::empty(LaneKind::Bool)
    };
    let mut floats = EqualJoin::new(vec![Key::Number(Value::Column(NumberType::F64, 0))]);
    for float in [-2.5, -0.0, 7.0] {
        floats.push(&[SmallKey::Float(float)]);
    }
    floats.finish(usize::MAX);
    let set = floats.key_set(0).unwrap();
    let is_out =
        |least, greatest| set.is_ruled_out(&zone(Bound::Float(least), Bound::Float(greatest)));
    assert!(is_out(-2.4, -0.1) && is_out(0.1, 6.9) && is_out(7.1, f64::NAN));
    assert!(!is_out(0.0, 1.0) && !is_out(-9.0, -2.5) && !is_out(f64::NEG_INFINITY, f64::NAN));
    let mut nan = EqualJoin::new(vec![Key::Number(Value::Column(NumberType::F32, 0))]);
    nan.push(&[SmallKey::Float(f64::NAN)]);
    nan.finish(usize::MAX);
    let set = nan.key_set(0).unwrap();
    assert!(set.is_ruled_out(&zone(Bound::Float(0.0), Bound::Float(f64::INFINITY))));
    assert!(!set.is_ruled_out(&zone(Bound::Float(0.0), Bound::Float(-f64::NAN))));
    let mut bytes = EqualJoin::new(vec![Key::Bytes16(0)]);
    bytes.push(&[SmallKey::Bytes16(Bytes16::of([9; 16]))]);
    bytes.finish(usize::MAX);
    let set = bytes.key_set(0).unwrap();
    let of = |byte| Bound::Signed(Bytes16::of([byte; 16]).prefix());
    assert!(set.is_ruled_out(&zone(of(10), of(200))) && set.is_ruled_out(&zone(of(0), of(8))));
    assert!(!set.is_ruled_out(&zone(of(9), of(9))) && !set.is_ruled_out(&zone(of(0), of(200))));
}
