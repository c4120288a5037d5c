//! Random predicates against a twin that computes a row at a time.

use std::cmp::Ordering;

use lanes_simd::Comparison;
use proptest::prelude::*;

use super::bytes16_column::bytes16;
use super::external_values;
use super::lanes::{
    ABSENT, ATTRIBUTES, BOOL, BYTES16, CODED, Cell, PLAIN, Source, TRUTH_SCALAR, TYPES, TestLanes,
    any_rows, text,
};
use super::number_tree::{NumberTree, any_number, any_rarity};
use crate::bytes16::Bytes16;
use crate::test_support::cases;
use crate::vector::Evaluation;
use crate::vector::members::Members;
use crate::vector::number::{Number, NumberType, Scalar};
use crate::vector::predicate::{Bytes16Predicate, Predicate, TextPredicate};
use crate::vector::text::OneOf;

/// A predicate, from which both the engine's and the twin's answer come.
#[derive(Clone, Debug)]
pub(crate) enum TruthTree {
    Bool(usize),
    Scalar(usize),
    Compare(Comparison, NumberTree, NumberTree),
    Member(NumberTree, Vec<usize>),
    NotMember(NumberTree, Vec<usize>),
    Text(usize, Vec<Vec<u8>>),
    Bytes16(usize, Comparison, [u8; 16]),
    /// Whether it is one of some values, a NULL perhaps among them.
    OneOf(usize, Vec<[u8; 16]>, bool),
    Asked(usize, u64),
    ColumnIsNull(usize),
    IsNull(NumberTree),
    IsTrue(Box<TruthTree>),
    IsFalse(Box<TruthTree>),
    IsUnknown(Box<TruthTree>),
    Not(Box<TruthTree>),
    And(Vec<TruthTree>),
    Or(Vec<TruthTree>),
}

use TruthTree as Tree;

impl Tree {
    pub(crate) fn build(&self) -> Predicate {
        let boxed = |tree: &Tree| Box::new(tree.build());
        let all = |trees: &[Tree]| trees.iter().map(Tree::build).collect();
        match self {
            Tree::Bool(attribute) => Predicate::Bool(*attribute),
            Tree::Scalar(index) => Predicate::Scalar(*index),
            Tree::Compare(operator, a, b) => Predicate::Compare(*operator, a.build(), b.build()),
            Tree::Member(value, list) => {
                Predicate::Member(value.build(), Members::new(list.clone()))
            }
            Tree::NotMember(value, list) => {
                Predicate::NotMember(value.build(), Members::new(list.clone()))
            }
            Tree::Text(attribute, payloads) => {
                let payloads = payloads.iter().map(|p| p.clone().into()).collect();
                Predicate::Text(TextPredicate::new(
                    *attribute,
                    Box::new(OneOf::new(payloads)),
                ))
            }
            Tree::Bytes16(attribute, operator, value) => Predicate::Bytes16(
                Bytes16Predicate::compare(*attribute, *operator, Bytes16::of(*value)),
            ),
            Tree::OneOf(attribute, values, has_null) => {
                let values = values.iter().copied().map(Bytes16::of).collect();
                Predicate::Bytes16(Bytes16Predicate::one_of(*attribute, values, *has_null))
            }
            Tree::Asked(attribute, salt) => external_values::of_window(*attribute, *salt),
            Tree::ColumnIsNull(attribute) => Predicate::ColumnIsNull(*attribute),
            Tree::IsNull(value) => Predicate::IsNull(value.build()),
            Tree::IsTrue(inner) => Predicate::IsTrue(boxed(inner)),
            Tree::IsFalse(inner) => Predicate::IsFalse(boxed(inner)),
            Tree::IsUnknown(inner) => Predicate::IsUnknown(boxed(inner)),
            Tree::Not(inner) => Predicate::Not(boxed(inner)),
            Tree::And(parts) => Predicate::And(all(parts)),
            Tree::Or(parts) => Predicate::Or(all(parts)),
        }
    }

    /// PostgreSQL's truth value for a row.
    pub(crate) fn row(&self, lanes: &TestLanes, row: usize) -> Evaluation<Option<bool>> {
        Ok(match self {
            Tree::Bool(attribute) => match lanes.cell(*attribute, row) {
                Cell::Truth(truth) => Some(*truth),
                _ => None,
            },
            Tree::Scalar(index) => lanes.scalars[*index].map(|scalar| scalar.0 != 0),
            Tree::Compare(operator, a, b) => {
                let number = a.number();
                let (a, b) = (a.row(lanes, row)?, b.row(lanes, row)?);
                match (a, b) {
                    (Some(a), Some(b)) => Some(holds(*operator, order(number, a, b))),
                    _ => None,
                }
            }
            Tree::Member(value, list) => member(value, list, lanes, row)?,
            Tree::NotMember(value, list) => member(value, list, lanes, row)?.map(|found| !found),
            Tree::Text(attribute, payloads) => match lanes.cell(*attribute, row) {
                Cell::Text(payload) => Some(payloads.contains(payload)),
                _ => None,
            },
            Tree::Bytes16(attribute, operator, value) => match lanes.cell(*attribute, row) {
                Cell::Bytes16(bytes) => Some(holds(*operator, bytes.cmp(value))),
                _ => None,
            },
            Tree::OneOf(attribute, values, has_null) => match lanes.cell(*attribute, row) {
                Cell::Bytes16(bytes) if values.contains(bytes) => Some(true),
                Cell::Bytes16(_) if !has_null => Some(false),
                _ => None,
            },
            Tree::Asked(attribute, salt) => {
                external_values::row(lanes.cell(*attribute, row), *attribute, *salt)
            }
            Tree::ColumnIsNull(attribute) => Some(*lanes.cell(*attribute, row) == Cell::Null),
            Tree::IsNull(value) => Some(value.row(lanes, row)?.is_none()),
            Tree::IsTrue(inner) => Some(inner.row(lanes, row)? == Some(true)),
            Tree::IsFalse(inner) => Some(inner.row(lanes, row)? == Some(false)),
            Tree::IsUnknown(inner) => Some(inner.row(lanes, row)?.is_none()),
            Tree::Not(inner) => inner.row(lanes, row)?.map(|truth| !truth),
            Tree::And(parts) => until(parts, false, lanes, row)?,
            Tree::Or(parts) => until(parts, true, lanes, row)?,
        })
    }
}

/// From left to right until one decides; what comes after it is not computed.
fn until(parts: &[Tree], decides: bool, lanes: &TestLanes, row: usize) -> Evaluation<Option<bool>> {
    let mut unknown = false;
    for part in parts {
        match part.row(lanes, row)? {
            Some(truth) if truth == decides => return Ok(Some(decides)),
            Some(_) => {}
            None => unknown = true,
        }
    }
    Ok(if unknown { None } else { Some(!decides) })
}

/// `= ANY`. Of an empty list nothing is a member, not even NULL.
fn member(
    value: &NumberTree,
    list: &[usize],
    lanes: &TestLanes,
    row: usize,
) -> Evaluation<Option<bool>> {
    let found = value.row(lanes, row)?;
    if list.is_empty() {
        return Ok(Some(false));
    }
    let Some(found) = found else {
        return Ok(None);
    };
    let wanted = || list.iter().map(|index| lanes.scalars[*index]);
    Ok(
        if wanted()
            .flatten()
            .any(|w| order(value.number(), found, w).is_eq())
        {
            Some(true)
        } else if wanted().any(|w| w.is_none()) {
            None
        } else {
            Some(false)
        },
    )
}

/// PostgreSQL's order of two numbers.
pub(crate) fn order(number: NumberType, a: Scalar, b: Scalar) -> Ordering {
    let float = match number {
        NumberType::F32 => |s| f64::from(f32::of_scalar(s)),
        NumberType::F64 => f64::of_scalar,
        _ => return (a.0 as i64).cmp(&(b.0 as i64)),
    };
    let (a, b) = (float(a), float(b));
    match (a.is_nan(), b.is_nan()) {
        (false, false) if a < b => Ordering::Less,
        (false, false) if a > b => Ordering::Greater,
        (a, b) => a.cmp(&b),
    }
}

fn holds(operator: Comparison, order: Ordering) -> bool {
    let (less, equal) = (order == Ordering::Less, order == Ordering::Equal);
    match operator {
        Comparison::Equal => equal,
        Comparison::NotEqual => !equal,
        Comparison::Less => less,
        Comparison::LessOrEqual => less || equal,
        Comparison::Greater => !less && !equal,
        Comparison::GreaterOrEqual => !less,
    }
}

fn any_leaf() -> impl Strategy<Value = Tree> {
    let number = || (0..5_usize, 0..2_u32).prop_flat_map(|(t, depth)| any_number(TYPES[t], depth));
    let pair = (0..5_usize).prop_flat_map(|t| (any_number(TYPES[t], 1), any_number(TYPES[t], 1)));
    let operator = || (0..6_usize).prop_map(|k| Comparison::ALL[k]);
    let any_bytes16 = || (0..24_u64).prop_map(bytes16);
    let bytes16_columns = || prop_oneof![Just(BYTES16), Just(BYTES16 + 1), Just(ABSENT)];
    let list = || {
        // Long enough to be compared, or to be looked up.
        let lengths = prop_oneof![0..4_usize, 9..12_usize];
        let places = lengths.prop_flat_map(|length| prop::collection::vec(0..4_usize, length));
        (0..5_usize, places).prop_flat_map(|(t, list)| {
            let list: Vec<_> = list.into_iter().map(|k| t * 4 + k).collect();
            (any_number(TYPES[t], 1), Just(list))
        })
    };
    let payloads = prop::collection::vec((0..75_u32).prop_map(|n| text(n % 20 * n / 20)), 0..6);
    let texts = prop_oneof![3 => Just(CODED), 3 => Just(PLAIN), 1 => Just(ABSENT)];
    prop_oneof![
        2 => prop_oneof![Just(BOOL), Just(BOOL + 1), Just(ABSENT)].prop_map(Tree::Bool),
        1 => (0..3_usize).prop_map(|k| Tree::Scalar(TRUTH_SCALAR + k)),
        6 => (operator(), pair).prop_map(|(operator, (a, b))| Tree::Compare(operator, a, b)),
        2 => list().prop_map(|(value, list)| Tree::Member(value, list)),
        2 => list().prop_map(|(value, list)| Tree::NotMember(value, list)),
        4 => (texts, payloads).prop_map(|(attribute, payloads)| Tree::Text(attribute, payloads)),
        3 => (bytes16_columns(), operator(), any_bytes16()).prop_map(|(a, o, v)| Tree::Bytes16(a, o, v)),
        3 => (bytes16_columns(), prop::collection::vec(any_bytes16(), 0..5), any::<bool>())
            .prop_map(|(attribute, values, has_null)| Tree::OneOf(attribute, values, has_null)),
        2 => (0..ATTRIBUTES, any::<u64>()).prop_map(|(attribute, salt)| Tree::Asked(attribute, salt)),
        1 => (0..ATTRIBUTES).prop_map(Tree::ColumnIsNull),
        1 => number().prop_map(Tree::IsNull),
    ]
}

pub(crate) fn any_truth() -> impl Strategy<Value = Tree> {
    any_leaf().prop_recursive(3, 12, 3, |inner| {
        let boxed = || inner.clone().prop_map(Box::new);
        let parts = || prop::collection::vec(inner.clone(), 0..4);
        prop_oneof![
            1 => boxed().prop_map(Tree::IsTrue),
            1 => boxed().prop_map(Tree::IsFalse),
            1 => boxed().prop_map(Tree::IsUnknown),
            2 => boxed().prop_map(Tree::Not),
            3 => parts().prop_map(Tree::And),
            3 => parts().prop_map(Tree::Or),
        ]
    })
}

proptest! {
    #![proptest_config(cases(800))]

    #[test]
    fn predicates_agree_with_the_twin(
        tree in any_truth(), seed in any::<u64>(), rows in any_rows(), rarity in any_rarity(),
    ) {
        let lanes = TestLanes::random(seed, rows, rarity);
        let mut predicate = tree.build();
        let mut source = Source(!seed);
        for _ in 0..2 {
            let selection = source.selection(rows);
            let expected: Vec<_> = (0..rows)
                .map(|row| selection.contains(row).then(|| tree.row(&lanes, row)))
                .collect();
            let errors: Vec<_> = expected.iter().flatten().filter_map(|r| r.err()).collect();
            match lanes.with_frame(|frame| predicate.evaluate(frame, &selection)) {
                Err(error) => prop_assert!(errors.contains(&error), "{error} not in {errors:?}"),
                Ok(truth) => {
                    let zone = |attribute| Some(lanes.zone(attribute));
                    if rows > 0 && predicate.is_contradicted(&zone) {
                        prop_assert!(predicate.may_be_contradicted());
                        prop_assert!(truth.yes.is_empty(), "a zone rules out rows that pass");
                    }
                    prop_assert!(errors.is_empty(), "missed {:?}", errors[0]);
                    let outside = truth.yes.or(&truth.no).and_not(&selection);
                    prop_assert!(outside.is_empty(), "rows that nobody selected: {outside:?}");
                    for (row, expected) in expected.iter().enumerate() {
                        if let Some(Ok(expected)) = expected {
                            let found = match (truth.yes.contains(row), truth.no.contains(row)) {
                                (true, false) => Some(true),
                                (false, true) => Some(false),
                                (false, false) => None,
                                (true, true) => panic!("row {row} is both"),
                            };
                            prop_assert_eq!(found, *expected, "row {}", row);
                        }
                    }
                }
            }
        }
    }
}

/// Vectors of a table that is sorted by a column of 16 bytes.
#[test]
fn zones_rule_out_vectors_that_have_none_of_the_values() {
    let mut source = Source(5);
    let values: Vec<_> = (100..140).map(|n| Some(bytes16(n))).collect();
    let mut sorted = values.clone();
    sorted.sort();
    let lanes = TestLanes::of(vec![super::lanes::Column::bytes16(&sorted, &mut source)]);
    let zone = |attribute| Some(lanes.zone(attribute));
    let (least, greatest) = (sorted[0].unwrap(), sorted[39].unwrap());
    let is_out = |tree: Tree| tree.build().is_contradicted(&zone);
    let beyond = [[0_u8; 16], [0xff; 16]];
    for value in beyond {
        assert!(value < least || value > greatest);
        let (low, high) = (value < least, value > greatest);
        assert!(is_out(Tree::Bytes16(0, Comparison::Equal, value)));
        assert_eq!(is_out(Tree::Bytes16(0, Comparison::Less, value)), low);
        assert_eq!(
            is_out(Tree::Bytes16(0, Comparison::GreaterOrEqual, value)),
            high
        );
        assert!(!is_out(Tree::Bytes16(0, Comparison::NotEqual, value)));
        let other = Tree::Bool(0);
        let equal = || Tree::Bytes16(0, Comparison::Equal, value);
        assert!(is_out(Tree::And(vec![other.clone(), equal()])));
        assert!(
            !is_out(Tree::Or(vec![other, equal()])) && is_out(Tree::Or(vec![equal(), equal()]))
        );
        assert!(!is_out(Tree::Not(Box::new(equal()))));
    }
    assert!(is_out(Tree::OneOf(0, beyond.to_vec(), true)));
    assert!(is_out(Tree::OneOf(0, Vec::new(), false)));
    assert!(!is_out(Tree::OneOf(0, vec![beyond[0], least], false)));
    assert!(!is_out(Tree::OneOf(0, vec![greatest, beyond[1]], false)));
}
