//! Casts at the limits of their types.

use lanes_simd::Comparison;

use super::lanes::{Column, Source, TYPES, TestLanes, integer_range};
use super::number_tree::convert;
use super::truth_tree::order;
use crate::vector::Evaluation;
use crate::vector::EvaluationError::{FloatOverflow, FloatUnderflow, IntegerOutOfRange};
use crate::vector::number::{Number, NumberType, Scalar};
use crate::vector::predicate::{Predicate, holds};
use crate::vector::selection::Selection;
use crate::vector::value::{Operand, Value};
use crate::with_number;

/// A cast by the engine: of a lane, and of a scalar.
fn engine(from: NumberType, to: NumberType, scalar: Scalar) -> [Evaluation<Scalar>; 2] {
    let mut lanes = TestLanes::of(vec![Column::numbers(from, &[Some(scalar)], &mut Source(3))]);
    lanes.scalars = vec![Some(scalar)];
    [Value::Column(from, 0), Value::Scalar(from, 0)].map(|value| {
        let mut value = Value::convert(to, value);
        lanes.with_frame(|frame| {
            let operand: Operand = value.evaluate(frame, &Selection::first(1))?;
            // SAFETY: the operand has one number of the type.
            Ok(with_number!(to, T => unsafe { operand.get::<T>(0) }.to_scalar()))
        })
    })
}

#[test]
fn known_results() {
    use NumberType::{F32, F64, I16, I32, I64};
    let int = |v: i64| Scalar(v as u64);
    let f = |v: f64| v.to_scalar();
    let known = [
        (F64, I32, f(0.5), Ok(int(0))),
        (F64, I32, f(1.5), Ok(int(2))),
        (F64, I32, f(2.5), Ok(int(2))),
        (F64, I32, f(-2.5), Ok(int(-2))),
        (F64, I16, f(32767.4), Ok(int(32767))),
        (F64, I16, f(32767.5), Err(IntegerOutOfRange(2))),
        (F64, I16, f(-32768.5), Ok(int(-32768))),
        (F64, I32, f(2147483647.5), Err(IntegerOutOfRange(4))),
        (F64, I64, f(-9223372036854775808.0), Ok(int(i64::MIN))),
        (
            F64,
            I64,
            f(9223372036854775808.0),
            Err(IntegerOutOfRange(8)),
        ),
        (F64, I64, f(f64::NAN), Err(IntegerOutOfRange(8))),
        (F64, F32, f(1e39), Err(FloatOverflow)),
        (F64, F32, f(1e-60), Err(FloatUnderflow)),
        (F64, F32, f(f64::INFINITY), Ok(f32::INFINITY.to_scalar())),
        (F32, I64, 9.3e18f32.to_scalar(), Err(IntegerOutOfRange(8))),
        (I64, F32, int(16_777_217), Ok(16_777_216f32.to_scalar())),
        (I64, F64, int(i64::MAX), Ok(f(9223372036854775807.0))),
        (I64, I32, int(-2147483649), Err(IntegerOutOfRange(4))),
        (I16, I64, int(-5), Ok(int(-5))),
    ];
    for (from, to, scalar, expected) in known {
        assert_eq!(
            convert(from, to, scalar),
            expected,
            "the twin, {scalar:?} to {to:?}"
        );
        for found in engine(from, to, scalar) {
            assert_eq!(found, expected, "{from:?} {scalar:?} to {to:?}");
        }
    }
}

#[test]
fn all_casts_near_all_limits() {
    let mut points: Vec<f64> = vec![0.0, 1e15, 1e300, f64::MAX, 1e-300, f64::MIN_POSITIVE];
    for number in TYPES {
        if !number.is_float() {
            let (least, greatest) = integer_range(number);
            points.extend([least as f64, greatest as f64]);
        }
    }
    points.extend([
        f64::from(f32::MAX),
        f64::from(f32::MIN_POSITIVE),
        16_777_216.0,
    ]);
    for point in points {
        for step in [
            -1.5, -1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 1.5,
        ] {
            for value in [point + step, -(point + step), (point + step).next_up()] {
                for from in TYPES {
                    let scalar = match from {
                        NumberType::F64 => value.to_scalar(),
                        NumberType::F32 => (value as f32).to_scalar(),
                        NumberType::I64 => (value as i64).to_scalar(),
                        NumberType::I32 => (value as i32).to_scalar(),
                        NumberType::I16 => (value as i16).to_scalar(),
                    };
                    for to in TYPES {
                        let expected = convert(from, to, scalar);
                        for found in engine(from, to, scalar) {
                            assert_eq!(found, expected, "{value} of {from:?} to {to:?}");
                        }
                    }
                }
            }
        }
    }
}

/// Numbers of a type near the limits of all types.
fn limits(number: NumberType) -> Vec<Scalar> {
    let floats = [
        0.0,
        -0.0,
        0.5,
        -1.0,
        1e-60,
        3.0,
        32_767.0,
        32_768.0,
        16_777_217.0,
        2_147_483_647.0,
        1e39,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ];
    let integers = [
        0,
        1,
        -1,
        3,
        32_767,
        32_768,
        -32_769,
        16_777_217,
        2_147_483_647,
        -2_147_483_649,
        i64::MAX,
    ];
    match number {
        NumberType::F64 => floats.map(Number::to_scalar).to_vec(),
        NumberType::F32 => floats.map(|float| (float as f32).to_scalar()).to_vec(),
        integer => {
            let (least, greatest) = integer_range(integer);
            let fits = integers
                .into_iter()
                .filter(|i| (least..=greatest).contains(i));
            fits.map(Number::to_scalar).collect()
        }
    }
}

#[test]
fn converted_columns_compare_with_constants_as_their_conversions_do() {
    for (from, to) in TYPES.iter().flat_map(|from| TYPES.map(|to| (*from, to))) {
        let fits = |scalar: &Scalar| convert(from, to, *scalar).is_ok();
        let values: Vec<_> = limits(from).into_iter().filter(fits).map(Some).collect();
        let mut lanes = TestLanes::of(vec![Column::numbers(from, &values, &mut Source(4))]);
        for constant in limits(to) {
            lanes.scalars = vec![Some(constant)];
            for (operator, flipped) in Comparison::ALL
                .into_iter()
                .flat_map(|o| [(o, false), (o, true)])
            {
                let (column, scalar) = (
                    Value::convert(to, Value::Column(from, 0)),
                    Value::Scalar(to, 0),
                );
                let mut compare = if flipped {
                    Predicate::Compare(operator, scalar, column)
                } else {
                    Predicate::Compare(operator, column, scalar)
                };
                let all = Selection::first(values.len());
                let truth = lanes.with_frame(|frame| {
                    let mut narrowed = all;
                    compare.narrow(frame, &mut narrowed).map(|()| narrowed)
                });
                let known = lanes.with_frame(|frame| compare.evaluate(frame, &all));
                for (row, value) in values.iter().enumerate() {
                    let converted = convert(from, to, value.unwrap()).unwrap();
                    let order = order(to, converted, constant);
                    let wanted = holds(operator, if flipped { order.reverse() } else { order });
                    let found = (
                        truth.unwrap().contains(row),
                        known.unwrap().yes.contains(row),
                    );
                    assert_eq!(
                        found,
                        (wanted, wanted),
                        "{from:?} {value:?} {operator:?} {to:?} {constant:?} {flipped}"
                    );
                }
            }
        }
    }
}
