//! Operators at the limits of their types, and which rows may fail.

use super::lanes::{Column, Source, TYPES, TestLanes, integer_range};
use super::number_tree::apply;
use crate::vector::EvaluationError::{
    DivisionByZero, FloatOverflow, FloatUnderflow, IntegerOutOfRange,
};
use crate::vector::number::{Number, NumberType, Operation, Scalar};
use crate::vector::selection::Selection;
use crate::vector::value::Value;
use crate::vector::{Evaluation, EvaluationError};
use crate::with_number;

const OPERATIONS: [Operation; 5] = [
    Operation::Add,
    Operation::Subtract,
    Operation::Multiply,
    Operation::Divide,
    Operation::Modulo,
];

/// An operator on two numbers, by the engine, through lanes of one row.
fn engine(number: NumberType, operation: Operation, a: Scalar, b: Scalar) -> Evaluation<Scalar> {
    let mut source = Source(7);
    let mut column = |scalar| Column::numbers(number, &[Some(scalar)], &mut source);
    let lanes = TestLanes::of(vec![column(a), column(b)]);
    let sides = [Value::Column(number, 0), Value::Column(number, 1)];
    let [left, right] = sides;
    let mut value = Value::arithmetic(number, operation, left, right);
    lanes.with_frame(|frame| {
        let operand = value.evaluate(frame, &Selection::first(1))?;
        // SAFETY: the operand has one number of the type.
        Ok(with_number!(number, T => unsafe { operand.get::<T>(0) }.to_scalar()))
    })
}

#[test]
fn known_results() {
    let int = |v: i64| Scalar(v as u64);
    let known: [(NumberType, Operation, Scalar, Scalar, Evaluation<Scalar>); 16] = {
        use NumberType::{F32, F64, I16, I32, I64};
        use Operation::{Add, Divide, Modulo, Multiply, Subtract};
        let f = |v: f64| v.to_scalar();
        let g = |v: f32| v.to_scalar();
        [
            (I16, Add, int(32767), int(1), Err(IntegerOutOfRange(2))),
            (
                I32,
                Subtract,
                int(i32::MIN.into()),
                int(1),
                Err(IntegerOutOfRange(4)),
            ),
            (
                I64,
                Multiply,
                int(i64::MIN),
                int(-1),
                Err(IntegerOutOfRange(8)),
            ),
            (
                I64,
                Divide,
                int(i64::MIN),
                int(-1),
                Err(IntegerOutOfRange(8)),
            ),
            (I64, Modulo, int(i64::MIN), int(-1), Ok(int(0))),
            (I32, Divide, int(-7), int(2), Ok(int(-3))),
            (I32, Modulo, int(-7), int(2), Ok(int(-1))),
            (I16, Divide, int(1), int(0), Err(DivisionByZero)),
            (F64, Multiply, f(1e200), f(1e200), Err(FloatOverflow)),
            (F64, Multiply, f(1e-200), f(1e-200), Err(FloatUnderflow)),
            (F64, Divide, f(1.0), f(f64::INFINITY), Ok(f(0.0))),
            (F64, Divide, f(f64::INFINITY), f(0.0), Err(DivisionByZero)),
            (F64, Divide, f(1e-300), f(1e300), Err(FloatUnderflow)),
            (F64, Add, f(f64::INFINITY), f(1.0), Ok(f(f64::INFINITY))),
            (F32, Add, g(f32::MAX), g(f32::MAX), Err(FloatOverflow)),
            (F32, Multiply, g(-0.0), g(5.0), Ok(g(-0.0))),
        ]
    };
    for (number, operation, a, b, expected) in known {
        assert_eq!(
            engine(number, operation, a, b),
            expected,
            "{number:?} {operation:?} {a:?} {b:?}"
        );
        assert_eq!(apply(number, operation, a, b), expected, "the twin");
    }
    let nan = engine(
        NumberType::F64,
        Operation::Divide,
        f64::NAN.to_scalar(),
        0.0.to_scalar(),
    );
    assert!(f64::of_scalar(nan.unwrap()).is_nan(), "NaN / 0 is no error");
}

#[test]
fn all_operators_on_all_pairs_of_small_and_extreme_integers() {
    for number in &TYPES[..3] {
        let (least, greatest) = integer_range(*number);
        let values = [
            least,
            least + 1,
            least / 2,
            -2,
            -1,
            0,
            1,
            2,
            greatest / 2,
            greatest - 1,
            greatest,
        ];
        for (a, b) in values.iter().flat_map(|a| values.map(|b| (*a, b))) {
            for operation in OPERATIONS {
                let (a, b) = (Scalar(a as u64), Scalar(b as u64));
                let expected = apply(*number, operation, a, b);
                assert_eq!(
                    engine(*number, operation, a, b),
                    expected,
                    "{number:?} {a:?} {operation:?} {b:?}"
                );
            }
        }
    }
}

#[test]
fn only_selected_rows_with_operands_fail() {
    let mut source = Source(1);
    let number = NumberType::I32;
    let values = [1, i32::MAX, 3, i32::MAX].map(|v| Some(v.to_scalar()));
    let others = [Some(1i32), Some(1), Some(1), None].map(|v| v.map(Number::to_scalar));
    let lanes = TestLanes::of(vec![
        Column::numbers(number, &values, &mut source),
        Column::numbers(number, &others, &mut source),
    ]);
    let [left, right] = [Value::Column(number, 0), Value::Column(number, 1)];
    let mut sum = Value::arithmetic(number, Operation::Add, left, right);
    lanes.with_frame(|frame| {
        let error = sum.evaluate(frame, &Selection::first(4)).unwrap_err();
        assert_eq!(error, EvaluationError::IntegerOutOfRange(4));
        let mut without = Selection::first(4);
        without.words[0] &= !0b10;
        let operand = sum.evaluate(frame, &without).unwrap();
        // SAFETY: the operand has four integers.
        let results = unsafe { [operand.get::<i32>(0), operand.get::<i32>(2)] };
        assert_eq!(results, [2, 4]);
        assert!(!operand.valid(&without).contains(3));
    });
}
