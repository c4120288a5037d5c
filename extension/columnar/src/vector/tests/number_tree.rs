//! Random numeric expressions against a twin that computes a row at a time.

use proptest::prelude::*;

use super::lanes::{ABSENT, Source, TYPES, TestLanes, any_rows, integer_range};
use crate::test_support::cases;
use crate::vector::number::{Number, NumberType, Operation, Scalar};
use crate::vector::value::{Operand, Rounding, Value};
use crate::vector::{Evaluation, EvaluationError};
use crate::with_number;

/// An expression, from which both the engine's and the twin's answer come.
#[derive(Clone, Debug)]
pub(crate) enum NumberTree {
    Column(NumberType, usize),
    Scalar(NumberType, usize),
    Arithmetic(NumberType, Operation, Box<(NumberTree, NumberTree)>),
    Convert(NumberType, Box<NumberTree>),
    Round(Rounding, Box<NumberTree>),
    Absolute(Box<NumberTree>),
}

impl NumberTree {
    pub(crate) fn number(&self) -> NumberType {
        match self {
            NumberTree::Column(number, _)
            | NumberTree::Scalar(number, _)
            | NumberTree::Arithmetic(number, ..)
            | NumberTree::Convert(number, _) => *number,
            NumberTree::Round(..) => NumberType::F64,
            NumberTree::Absolute(inner) => inner.number(),
        }
    }

    /// The engine's expression.
    pub(crate) fn build(&self) -> Value {
        match self {
            NumberTree::Column(number, attribute) => Value::Column(*number, *attribute),
            NumberTree::Scalar(number, index) => Value::Scalar(*number, *index),
            NumberTree::Arithmetic(number, operation, sides) => {
                Value::arithmetic(*number, *operation, sides.0.build(), sides.1.build())
            }
            NumberTree::Convert(to, inner) => Value::convert(*to, inner.build()),
            NumberTree::Round(rounding, inner) => Value::round(*rounding, inner.build()),
            NumberTree::Absolute(inner) => Value::absolute(inner.build()),
        }
    }

    /// PostgreSQL's number for a row. All arguments are computed before a NULL among them is
    /// noticed.
    pub(crate) fn row(&self, lanes: &TestLanes, row: usize) -> Evaluation<Option<Scalar>> {
        Ok(match self {
            NumberTree::Column(_, attribute) => lanes.number(*attribute, row),
            NumberTree::Scalar(_, index) => lanes.scalars[*index],
            NumberTree::Arithmetic(number, operation, sides) => {
                let (a, b) = (sides.0.row(lanes, row)?, sides.1.row(lanes, row)?);
                match (a, b) {
                    (Some(a), Some(b)) => Some(apply(*number, *operation, a, b)?),
                    _ => None,
                }
            }
            NumberTree::Convert(to, inner) => match inner.row(lanes, row)? {
                Some(scalar) => Some(convert(inner.number(), *to, scalar)?),
                None => None,
            },
            NumberTree::Round(rounding, inner) => {
                let rounded = |value: f64| match rounding {
                    Rounding::Floor => value.floor(),
                    Rounding::Ceiling => value.ceil(),
                };
                let value = inner.row(lanes, row)?.map(f64::of_scalar);
                value.map(|value| rounded(value).to_scalar())
            }
            NumberTree::Absolute(inner) => match inner.row(lanes, row)? {
                Some(scalar) => Some(absolute(inner.number(), scalar)?),
                None => None,
            },
        })
    }
}

/// `abs`, as PostgreSQL's functions spell it out.
fn absolute(number: NumberType, scalar: Scalar) -> Evaluation<Scalar> {
    match number {
        NumberType::F32 => Ok(f32::of_scalar(scalar).abs().to_scalar()),
        NumberType::F64 => Ok(f64::of_scalar(scalar).abs().to_scalar()),
        integer => in_range(integer, i128::from(scalar.0 as i64).abs()),
    }
}

/// An operator, as PostgreSQL's functions spell it out.
pub(crate) fn apply(
    number: NumberType,
    operation: Operation,
    a: Scalar,
    b: Scalar,
) -> Evaluation<Scalar> {
    macro_rules! float {
        ($type:ty) => {{
            let (a, b) = (<$type>::of_scalar(a), <$type>::of_scalar(b));
            let result = match operation {
                Operation::Add => a + b,
                Operation::Subtract => a - b,
                Operation::Multiply => a * b,
                _ if b == 0.0 && !a.is_nan() => return Err(EvaluationError::DivisionByZero),
                _ => a / b,
            };
            let dividing = operation == Operation::Divide;
            if result.is_infinite() && !a.is_infinite() && (dividing || !b.is_infinite()) {
                return Err(EvaluationError::FloatOverflow);
            }
            if operation == Operation::Multiply && result == 0.0 && a != 0.0 && b != 0.0 {
                return Err(EvaluationError::FloatUnderflow);
            }
            if dividing && result == 0.0 && a != 0.0 && !b.is_infinite() {
                return Err(EvaluationError::FloatUnderflow);
            }
            Ok(result.to_scalar())
        }};
    }
    match number {
        NumberType::F32 => float!(f32),
        NumberType::F64 => float!(f64),
        integer => {
            let (a, b) = (i128::from(a.0 as i64), i128::from(b.0 as i64));
            let result = match operation {
                Operation::Add => a + b,
                Operation::Subtract => a - b,
                Operation::Multiply => a * b,
                _ if b == 0 => return Err(EvaluationError::DivisionByZero),
                Operation::Divide => a / b,
                Operation::Modulo => a % b,
            };
            in_range(integer, result)
        }
    }
}

fn in_range(integer: NumberType, value: i128) -> Evaluation<Scalar> {
    let (least, greatest) = integer_range(integer);
    if (i128::from(least)..=i128::from(greatest)).contains(&value) {
        Ok(Scalar(value as i64 as u64))
    } else {
        Err(EvaluationError::IntegerOutOfRange(integer.width() as u8))
    }
}

/// A cast, as PostgreSQL's functions spell it out.
pub(crate) fn convert(from: NumberType, to: NumberType, scalar: Scalar) -> Evaluation<Scalar> {
    let float = match from {
        NumberType::F32 => f64::from(f32::of_scalar(scalar)),
        NumberType::F64 => f64::of_scalar(scalar),
        _ => {
            let value = scalar.0 as i64;
            return match to {
                NumberType::F32 => Ok((value as f32).to_scalar()),
                NumberType::F64 => Ok((value as f64).to_scalar()),
                _ => in_range(to, i128::from(value)),
            };
        }
    };
    match to {
        NumberType::F64 => Ok(float.to_scalar()),
        NumberType::F32 => {
            let narrow = float as f32;
            if narrow.is_infinite() && !float.is_infinite() {
                Err(EvaluationError::FloatOverflow)
            } else if narrow == 0.0 && float != 0.0 {
                Err(EvaluationError::FloatUnderflow)
            } else {
                Ok(narrow.to_scalar())
            }
        }
        integer if !float.is_finite() => {
            Err(EvaluationError::IntegerOutOfRange(integer.width() as u8))
        }
        integer => {
            let below = float.floor();
            let up = match float - below {
                0.5 => below % 2.0 != 0.0,
                rest => rest > 0.5,
            };
            in_range(integer, below as i128 + i128::from(up))
        }
    }
}

/// Whether two numbers are equal in their bits. All NaNs are equal.
pub(crate) fn same(number: NumberType, a: Scalar, b: Scalar) -> bool {
    let nan = |scalar| with_number!(number, T => T::of_scalar(scalar).to_f64().is_nan());
    a == b || (nan(a) && nan(b))
}

/// The number of a row of an operand.
pub(crate) fn operand_number(number: NumberType, operand: &Operand, row: usize) -> Scalar {
    // SAFETY: the row is a row of the vector, and the operand is of its own type.
    with_number!(number, T => unsafe { operand.get::<T>(row) }.to_scalar())
}

/// Any expression of a type over a random window.
pub(crate) fn any_number(number: NumberType, depth: u32) -> BoxedStrategy<NumberTree> {
    let index = TYPES.iter().position(|t| *t == number).unwrap();
    let leaf = prop_oneof![
        8 => (0..2_usize).prop_map(move |k| NumberTree::Column(number, index * 2 + k)),
        4 => (0..4_usize).prop_map(move |k| NumberTree::Scalar(number, index * 4 + k)),
        1 => Just(NumberTree::Column(number, ABSENT)),
    ];
    if depth == 0 {
        return leaf.boxed();
    }
    let last = if number.is_float() { 4_usize } else { 5 };
    let operation = (0..last).prop_map(|k| {
        use Operation::{Add, Divide, Modulo, Multiply, Subtract};
        [Add, Subtract, Multiply, Divide, Modulo][k]
    });
    let sides = (any_number(number, depth - 1), any_number(number, depth - 1));
    let converted = (0..5_usize).prop_flat_map(move |from| any_number(TYPES[from], depth - 1));
    let rounding = prop_oneof![Just(Rounding::Floor), Just(Rounding::Ceiling)];
    let rounded = (rounding, any_number(NumberType::F64, depth - 1));
    let is_double = u32::from(number == NumberType::F64);
    prop_oneof![
        2 => leaf,
        is_double => rounded.prop_map(|(rounding, inner)| {
            NumberTree::Round(rounding, Box::new(inner))
        }),
        4 => (operation, sides).prop_map(move |(operation, sides)| {
            NumberTree::Arithmetic(number, operation, Box::new(sides))
        }),
        2 => converted.prop_map(move |inner| NumberTree::Convert(number, Box::new(inner))),
        1 => any_number(number, depth - 1).prop_map(|inner| NumberTree::Absolute(Box::new(inner))),
    ]
    .boxed()
}

/// How rare extremes are in a window.
pub(crate) fn any_rarity() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0_u64), Just(3), Just(100), Just(2000)]
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn expressions_agree_with_the_twin(
        tree in (0..5_usize, 0..3_u32).prop_flat_map(|(t, depth)| any_number(TYPES[t], depth)),
        seed in any::<u64>(), rows in any_rows(), rarity in any_rarity(),
    ) {
        let lanes = TestLanes::random(seed, rows, rarity);
        let mut source = Source(!seed);
        let number = tree.number();
        let mut value = tree.build();
        // The buffers are used again for other rows.
        for _ in 0..2 {
            let selection = source.selection(rows);
            let expected: Vec<_> = (0..rows)
                .map(|row| selection.contains(row).then(|| tree.row(&lanes, row)))
                .collect();
            let errors: Vec<_> = expected.iter().flatten().filter_map(|r| r.err()).collect();
            lanes.with_frame(|frame| {
                match value.evaluate(frame, &selection) {
                    Err(error) => prop_assert!(errors.contains(&error), "{error} not in {errors:?}"),
                    Ok(operand) => {
                        prop_assert!(errors.is_empty(), "missed {:?}", errors[0]);
                        let valid = operand.valid(&selection);
                        for (row, expected) in expected.iter().enumerate() {
                            let Some(Ok(expected)) = expected else {
                                prop_assert!(!valid.contains(row));
                                continue;
                            };
                            prop_assert_eq!(valid.contains(row), expected.is_some(), "NULL of row {}", row);
                            if let Some(expected) = expected {
                                let found = operand_number(number, &operand, row);
                                prop_assert!(same(number, found, *expected), "row {row}: {found:?}, not {expected:?}");
                            }
                        }
                    }
                }
                Ok(())
            })?;
        }
    }
}
