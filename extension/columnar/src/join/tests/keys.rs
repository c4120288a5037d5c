//! Which rows of both sides have equal keys.

use std::collections::HashMap;

use proptest::prelude::*;

use super::rows::numbers;
use crate::aggregate::Key;
use crate::aggregate::key::{Bucket, Buckets};
use crate::join::keys::{JoinKey, JoinKeys, Side};
use crate::test_support::cases;
use crate::vector::number::{Number, NumberType, Scalar};
use crate::vector::predicate::Predicate;
use crate::vector::tests::dictionaries::{Step, Walk, any_steps};
use crate::vector::tests::lanes::{Cell, Column, Source, TYPES, TestLanes};
use crate::vector::value::Value;
use crate::with_number;

/// Attributes: a column of each number type, in their order, then these.
const TEXT: usize = 5;
const TRUTH: usize = 6;
const TIME: usize = 7;

/// An equality. Integers of any two widths are equal if their numbers are.
#[derive(Clone, Copy, Debug)]
enum Equality {
    Text,
    Truth,
    Integers(usize, usize),
    Floats(usize),
    /// The left side's times, cut into buckets, and the right side's integer of 64 bits.
    Cut,
}

/// Times cut into tens.
struct Tens;

impl Buckets for Tens {
    fn bucket(&mut self, time: i64) -> Bucket {
        let value = time.div_euclid(10);
        Bucket {
            value,
            first: value * 10,
            last: value * 10 + 9,
        }
    }
}

impl Equality {
    fn attribute(self, side: Side) -> usize {
        match (self, side) {
            (Equality::Text, _) => TEXT,
            (Equality::Truth, _) => TRUTH,
            (Equality::Integers(left, _), Side::Left) => left,
            (Equality::Integers(_, right), Side::Right) => right,
            (Equality::Floats(both), _) => both,
            (Equality::Cut, Side::Left) => TIME,
            (Equality::Cut, Side::Right) => 2,
        }
    }

    fn key(self, side: Side) -> Key {
        let attribute = self.attribute(side);
        match self {
            Equality::Text => Key::Text(attribute),
            Equality::Truth => Key::Truth(Predicate::Bool(attribute)),
            Equality::Cut if side == Side::Left => {
                Key::Bucket(Value::Column(NumberType::I64, attribute), Box::new(Tens))
            }
            _ => Key::Number(Value::Column(TYPES[attribute], attribute)),
        }
    }

    /// A text by which equal keys are known; none for NULL.
    fn canonical(self, side: Side, lanes: &TestLanes, row: usize) -> Option<String> {
        let attribute = self.attribute(side);
        match (self, lanes.cell(attribute, row)) {
            (_, Cell::Null) => None,
            (Equality::Floats(_), Cell::Number(scalar)) => {
                let value = with_number!(TYPES[attribute], T => T::of_scalar(*scalar).to_f64());
                // Adding zero makes of -0 what equals it.
                Some(if value.is_nan() {
                    "NaN".into()
                } else {
                    format!("{:?}", value + 0.0)
                })
            }
            (Equality::Cut, Cell::Number(Scalar(time))) if side == Side::Left => {
                Some((*time as i64).div_euclid(10).to_string())
            }
            (_, Cell::Number(Scalar(bits))) => Some((*bits as i64).to_string()),
            (_, other) => Some(format!("{other:?}")),
        }
    }
}

fn any_equality() -> impl Strategy<Value = Equality> {
    prop_oneof![
        3 => Just(Equality::Text),
        1 => Just(Equality::Truth),
        3 => (0..3_usize, 0..3_usize).prop_map(|(left, right)| Equality::Integers(left, right)),
        2 => (3..5_usize).prop_map(Equality::Floats),
        2 => Just(Equality::Cut),
    ]
}

/// A vector with all columns.
fn vector(source: &mut Source, text: Column, rows: usize) -> TestLanes {
    let mut columns: Vec<_> = TYPES
        .iter()
        .map(|number| numbers(source, *number, rows, 6))
        .collect();
    columns.push(text);
    let truths: Vec<_> = (0..rows)
        .map(|_| (!source.one_in(4)).then(|| source.one_in(2)))
        .collect();
    columns.push(Column::truths(&truths, source));
    let mut time = source.below(60) as i64 - 40;
    let nulls = source.one_in(2);
    let step = [1, 2, 20][source.below(3) as usize];
    let times: Vec<_> = (0..rows)
        .map(|_| {
            time += source.below(step) as i64;
            (!(nulls && source.one_in(4))).then_some(time.to_scalar())
        })
        .collect();
    columns.push(Column::numbers(NumberType::I64, &times, source));
    let mut lanes = TestLanes::of(columns);
    if source.one_in(2) {
        lanes.zones = vec![None; TIME + 1];
        lanes.zones[TIME] = Some(lanes.zone(TIME));
    }
    lanes
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn equal_keys_have_one_id(
        seed in any::<u64>(),
        equalities in prop::collection::vec((any_equality(), any::<bool>()), 0..4),
        steps in prop::collection::vec(any_steps(), 2),
        rows in prop_oneof![4 => 1..120_usize, 1 => Just(2048_usize)],
    ) {
        let mut source = Source(seed);
        let mut keys = JoinKeys::new(equalities.iter().map(|(equality, nulls_match)| JoinKey {
            left: equality.key(Side::Left),
            right: equality.key(Side::Right),
            nulls_match: *nulls_match,
        }).collect());
        prop_assert_eq!(keys.is_empty(), !equalities.is_empty());
        let (mut by_key, mut by_id) = (HashMap::new(), HashMap::new());
        let mut sides = [(Side::Left, Walk::new(), steps[0].clone()), (Side::Right, Walk::new(), steps[1].clone())];
        while sides.iter().any(|(_, _, steps)| !steps.is_empty()) {
            let side = &mut sides[source.below(2) as usize];
            let step: Step = match side.2.pop() {
                Some(step) => step,
                None => continue,
            };
            let text = side.1.column(step, rows, &mut source);
            let (side, lanes) = (side.0, vector(&mut source, text, rows));
            let selection = source.selection(rows);
            let mut left = selection;
            let ids = lanes.with_frame(|frame| keys.assign(side, frame, &mut left).map(|ids| ids.to_vec())).unwrap();
            for (row, id) in ids.iter().enumerate().take(rows) {
                let key: Vec<_> = equalities.iter().map(|(equality, _)| equality.canonical(side, &lanes, row)).collect();
                let matches = key.iter().zip(&equalities).all(|(key, (_, nulls_match))| key.is_some() || *nulls_match);
                prop_assert_eq!(left.contains(row), matches && selection.contains(row), "{:?} row {}", side, row);
                if left.contains(row) {
                    prop_assert!((*id as usize) < keys.len());
                    prop_assert_eq!(*by_key.entry(key.clone()).or_insert(*id), *id);
                    prop_assert_eq!(by_id.entry(*id).or_insert(key.clone()), &key);
                }
            }
        }
    }
}
