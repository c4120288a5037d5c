//! `timestamp + interval`, at the limits of time.

use proptest::prelude::*;

use super::lanes::{Column, Source, TestLanes};
use crate::test_support::cases;
use crate::vector::EvaluationError::TimestampOutOfRange;
use crate::vector::number::{Number, NumberType, Scalar};
use crate::vector::selection::Selection;
use crate::vector::tests::number_tree::operand_number;
use crate::vector::value::{Operand, Value};
use crate::vector::{Evaluation, frame::Frame};

/// PostgreSQL's first timestamp, 4714-11-24 BC, and the first that is none, 294277-01-01, in
/// microseconds from 2000-01-01.
const FIRST: i64 = -211_813_488_000_000_000;
const END: i64 = 9_223_371_331_200_000_000;

/// PostgreSQL's result.
fn shifted(time: i64, by: i64) -> Evaluation<i64> {
    if [i64::MIN, i64::MAX].contains(&time) {
        return Ok(time);
    }
    let shifted = i128::from(time) + i128::from(by);
    if (i128::from(FIRST)..i128::from(END)).contains(&shifted) {
        Ok(shifted as i64)
    } else {
        Err(TimestampOutOfRange)
    }
}

fn any_time() -> impl Strategy<Value = i64> {
    prop_oneof![
        6 => -1000..1000_i64,
        1 => Just(i64::MIN),
        1 => Just(i64::MAX),
        1 => FIRST..FIRST + 3,
        1 => END - 3..END,
    ]
}

fn any_shift() -> impl Strategy<Value = i64> {
    prop_oneof![3 => -3..3_i64, 1 => any::<i64>(), 1 => Just(i64::MIN), 1 => Just(i64::MAX)]
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn each_row_is_shifted(
        times in prop::collection::vec(prop::option::weighted(0.9, any_time()), 1..150),
        by in any_shift(),
        seed in any::<u64>(),
    ) {
        let mut source = Source(seed);
        let scalars: Vec<_> = times.iter().map(|time| time.map(Number::to_scalar)).collect();
        let mut lanes = TestLanes::of(vec![Column::numbers(NumberType::I64, &scalars, &mut source)]);
        lanes.scalars = vec![Some(by.to_scalar())];
        let selection = source.selection(times.len());
        let mut value = Value::shift(Value::Column(NumberType::I64, 0), 0);
        let found = lanes.with_frame(|frame| value.evaluate(frame, &selection));
        let wanted = |row: &usize| times[*row].filter(|_| selection.contains(*row)).is_some();
        let rows: Vec<_> = (0..times.len()).filter(wanted).collect();
        let expected: Evaluation<Vec<i64>> = rows.iter().map(|row| shifted(times[*row].unwrap(), by)).collect();
        match (found, expected) {
            (Ok(operand), Ok(expected)) => {
                let valid = operand.valid(&selection);
                let found: Vec<_> = rows.iter().map(|row| operand_number(NumberType::I64, &operand, *row).0 as i64).collect();
                prop_assert_eq!(found, expected);
                selection.for_each(|row| assert_eq!(valid.contains(row), times[row].is_some()));
            }
            (found, expected) => prop_assert_eq!(found.err(), expected.err()),
        }
    }

    #[test]
    fn a_time_of_the_whole_scan_is_shifted(time in prop::option::weighted(0.8, any_time()), by in prop::option::weighted(0.8, any_shift())) {
        let mut value = Value::shift(Value::Scalar(NumberType::I64, 0), 1);
        let scalars = [time, by].map(|scalar| scalar.map(Number::to_scalar));
        let mut evaluate = |selection: Selection| {
            let lanes = TestLanes { scalars: scalars.to_vec(), ..TestLanes::of(vec![Column::absent(3, &mut Source(1))]) };
            lanes.with_frame(|frame: &Frame<'_>| value.evaluate(frame, &selection))
        };
        prop_assert!(evaluate(Selection::NONE).is_ok(), "no row, no error");
        match (time, by, evaluate(Selection::first(3))) {
            (Some(time), Some(by), Ok(Operand::Same(Scalar(found)))) => prop_assert_eq!(Ok(found as i64), shifted(time, by)),
            (Some(time), Some(by), Err(failure)) => prop_assert_eq!(Err(failure), shifted(time, by)),
            (_, _, found) => prop_assert!((time.is_none() || by.is_none()) && matches!(found, Ok(Operand::Null))),
        }
    }
}
