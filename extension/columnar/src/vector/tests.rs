//! Expressions against the obvious ones.

use super::EvaluationError;
use super::frame::Frame;
use super::number::{Number, NumberType, Operation};
use super::selection::Selection;
use super::value::Value;
use crate::lane::{Lane, LaneData};

#[test]
fn only_selected_rows_overflow() {
    let values = [1i32, i32::MAX, 3];
    let lanes = [Lane {
        data: LaneData::Fixed {
            values: values.as_ptr().cast(),
            stride: 4,
        },
        validity: std::ptr::null(),
    }];
    let scalars = [Some(1i32.to_scalar())];
    let frame = Frame {
        lanes: &lanes,
        dictionaries: &[],
        place: 0,
        rows: 3,
        scalars: &scalars,
        bounds: &[],
    };
    let mut sum = Value::arithmetic(
        NumberType::I32,
        Operation::Add,
        Value::Column(NumberType::I32, 0),
        Value::Scalar(NumberType::I32, 0),
    );
    let error = sum.evaluate(&frame, &Selection::first(3)).unwrap_err();
    assert_eq!(error, EvaluationError::IntegerOutOfRange(4));
    let mut without = Selection::first(3);
    without.words[0] &= !0b10;
    let operand = sum.evaluate(&frame, &without).unwrap();
    // SAFETY: the operand has three integers.
    let results = unsafe { [operand.get::<i32>(0), operand.get::<i32>(2)] };
    assert_eq!(results, [2, 4]);
}
