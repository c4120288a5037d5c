//! Aggregations against the obvious ones.

use super::extreme::{End, Extreme};
use super::sum::{IntegerShape, IntegerSums};
use super::{Aggregate, Aggregation, Answer, Argument, Key, KeyValue};
use crate::aggregate::accumulator::Count;
use crate::lane::{Lane, LaneData};
use crate::vector::frame::Frame;
use crate::vector::number::{NumberType, Scalar};
use crate::vector::selection::Selection;
use crate::vector::value::Value;

fn lane<T>(values: &[T]) -> Lane {
    Lane {
        data: LaneData::Fixed {
            values: values.as_ptr().cast(),
            stride: size_of::<T>() as u32,
        },
        validity: std::ptr::null(),
    }
}

#[test]
fn groups_appear_in_order_and_sum_what_is_selected() {
    let (keys, values) = ([7i64, 3, 7, 3, 9], [1i32, 2, 3, 4, 5]);
    let lanes = [lane(&keys), lane(&values)];
    let frame = Frame {
        lanes: &lanes,
        dictionaries: &[],
        place: 0,
        rows: 5,
        scalars: &[],
        bounds: &[],
    };
    let number = |attribute| Argument::Number(Value::Column(NumberType::I32, attribute));
    let aggregates = vec![
        Aggregate {
            filter: None,
            argument: Argument::Nothing,
            accumulator: Box::new(Count::default()),
        },
        Aggregate {
            filter: None,
            argument: number(1),
            accumulator: Box::new(IntegerSums::<i32>::new(IntegerShape::Sum)),
        },
        Aggregate {
            filter: None,
            argument: number(1),
            accumulator: Box::new(Extreme::<i32>::new(End::Maximum)),
        },
    ];
    let keys = vec![Key::Number(Value::Column(NumberType::I64, 0))];
    let mut aggregation = Aggregation::new(keys, aggregates);
    aggregation.add(&frame, &Selection::first(4)).unwrap();
    assert_eq!(aggregation.groups(), 2, "nobody selected the row of key 9");
    assert_eq!(aggregation.key(0, 0), KeyValue::Number(Scalar(7)));
    assert_eq!(aggregation.key(1, 0), KeyValue::Number(Scalar(3)));
    assert_eq!(aggregation.answer(0, 0), Answer::Count(2));
    assert_eq!(aggregation.answer(0, 1), Answer::Integer(4));
    assert_eq!(aggregation.answer(1, 2), Answer::Number(Scalar(4)));
}
