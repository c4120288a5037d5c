//! Aggregates of the rows within bounds.

use proptest::prelude::*;

use super::rows::{Bounds, RightRow, joined, operand};
use super::series::Random;
use crate::join::joined_column::JoinedColumn;
use crate::join::series::SeriesBuilder;
use crate::join::window::{Window, WindowCall};
use crate::test_support::cases;
use crate::vector::number::{Number, NumberType, Operation, Scalar};
use crate::vector::selection::Selection;
use crate::vector::tests::lanes::{Column, Source, any_rows};
use crate::vector::tests::number_tree::{any_rarity, apply, same};
use crate::vector::tests::truth_tree::order;
use crate::vector::value::Operand;
use crate::vector::{Evaluation, EvaluationError};
use crate::with_number;

/// PostgreSQL's answer for rows that arrive in the order of their times.
pub(super) fn aggregated(
    call: WindowCall,
    types: &[NumberType],
    rows: &[&RightRow],
) -> Evaluation<Option<Scalar>> {
    let present = |column: usize| rows.iter().filter_map(move |row| row.values[column]);
    Ok(match call {
        WindowCall::Rows => Some(Scalar(rows.len() as u64)),
        WindowCall::Count(column) => Some(Scalar(present(column).count() as u64)),
        WindowCall::Sum(column) if types[column].is_float() => {
            let mut values = present(column);
            let first = values.next();
            first
                .map(|first| {
                    values.try_fold(first, |sum, v| apply(types[column], Operation::Add, sum, v))
                })
                .transpose()?
        }
        WindowCall::Sum(column) => {
            let mut sum = None;
            for Scalar(bits) in present(column) {
                let next = i128::from(bits as i64) + sum.unwrap_or(0);
                i64::try_from(next).map_err(|_| EvaluationError::IntegerOutOfRange(8))?;
                sum = Some(next);
            }
            sum.map(|sum| Scalar(sum as u64))
        }
        WindowCall::Average(column) => {
            // `float8_accum`: the number of values, their sum, and the sum of the squares of their
            // distances from the mean.
            let (mut n, mut total, mut squares) = (0.0, 0.0_f64, 0.0_f64);
            for value in present(column) {
                let value = with_number!(types[column], T => T::of_scalar(value).to_f64());
                let before = total;
                n += 1.0;
                total += value;
                if n > 1.0 {
                    let distance = value * n - total;
                    squares += distance * distance / (n * (n - 1.0));
                    if total.is_infinite() || squares.is_infinite() {
                        if before.is_finite() | before.is_nan() && !value.is_infinite() {
                            return Err(EvaluationError::FloatOverflow);
                        }
                        squares = f64::NAN;
                    }
                } else if !value.is_finite() {
                    squares = f64::NAN;
                }
            }
            (n > 0.0).then(|| (total / n).to_scalar())
        }
        WindowCall::Minimum(column) | WindowCall::Maximum(column) => {
            let wanted = if call == WindowCall::Minimum(column) {
                std::cmp::Ordering::Less
            } else {
                std::cmp::Ordering::Greater
            };
            present(column).reduce(|best, value| {
                if order(types[column], best, value) == wanted {
                    best
                } else {
                    value
                }
            })
        }
    })
}

/// All aggregates of columns of these types.
pub(super) fn calls(types: &[NumberType]) -> Vec<WindowCall> {
    let mut calls = vec![WindowCall::Rows];
    for (column, number) in types.iter().enumerate() {
        calls.extend([
            WindowCall::Count(column),
            WindowCall::Sum(column),
            WindowCall::Minimum(column),
            WindowCall::Maximum(column),
        ]);
        if number.is_float() {
            calls.push(WindowCall::Average(column));
        }
    }
    calls
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn it_is_the_oracles(
        seed in any::<u64>(),
        right in prop::collection::vec(any_rows(), 0..3),
        left in prop::collection::vec(1..60_usize, 1..4),
        keys in prop_oneof![Just(1_usize), 1..8_usize],
        rarity in any_rarity(),
    ) {
        let mut source = Source(seed);
        let random = Random::new(&mut source, &right, keys, rarity);
        let types = &random.types;
        let calls = calls(types);
        let mut window = Window::new(&random.series, calls.clone());
        let mut answers: Vec<_> = calls.iter().map(|call| JoinedColumn::new(call.number(types))).collect();
        for rows in left {
            let variety = [3, 60, 6000][source.below(3) as usize];
            let lower = (!source.one_in(5)).then(|| Bounds::random(&mut source, rows, variety));
            let upper = (!source.one_in(5)).then(|| Bounds::random(&mut source, rows, variety));
            let ids: Vec<_> = (0..rows).map(|_| source.below(keys as u64 + 2) as u32).collect();
            let selection = source.selection(rows);
            let matching = selection.and(&source.selection(rows));
            let (low, high) = (lower.as_ref().map(Bounds::bound), upper.as_ref().map(Bounds::bound));
            let ids_of = (&ids[..], rows);
            let outcome = window.aggregate(
                &random.series, ids_of, low.as_ref(), high.as_ref(), &selection, &matching, &mut answers,
            );
            let mut expected: Evaluation<()> = Ok(());
            let mut all = Vec::new();
            selection.for_each(|row| {
                let within = |right: &&&RightRow| {
                    matching.contains(row)
                        && lower.as_ref().is_none_or(|lower| lower.below(row, right.time))
                        && upper.as_ref().is_none_or(|upper| upper.above(row, right.time))
                };
                let rows = random.of_key(ids[row]);
                let rows: Vec<_> = rows.iter().filter(within).copied().collect();
                for call in &calls {
                    match aggregated(*call, types, &rows) {
                        Ok(answer) => all.push((row, answer)),
                        Err(failure) => expected = expected.and(Err(failure)),
                    }
                }
            });
            prop_assert_eq!(outcome, expected);
            if expected.is_err() {
                return Ok(());
            }
            for ((row, expected), index) in all.into_iter().zip((0..calls.len()).cycle()) {
                let found = joined(answers[index].number(), &answers[index].operand(), row);
                let agrees = match (found, expected) {
                    (Some(a), Some(b)) => same(answers[index].number(), a, b),
                    (a, b) => a == b,
                };
                prop_assert!(agrees, "row {} {:?}: {:?}, not {:?}", row, calls[index], found, expected);
            }
        }
    }
}

#[test]
fn an_argument_fails_only_within_a_window() {
    let mut source = Source(1);
    let time = |time: i64| Some(Scalar(time as u64));
    let values = Column::numbers(
        NumberType::I64,
        &[time(10), time(20), time(30)],
        &mut source,
    );
    let mut builder = SeriesBuilder::new(&[NumberType::I64], usize::MAX);
    let (times, all) = ((NumberType::I64, operand(&values)), Selection::first(3));
    builder
        .add(&[0; 3], times, &[operand(&values)], &all, 3)
        .unwrap();
    builder.fail(0, &[(1, EvaluationError::DivisionByZero)], &all);
    let series = builder.finish(1);
    let mut outcomes = Vec::new();
    for call in [WindowCall::Rows, WindowCall::Count(0), WindowCall::Sum(0)] {
        for (from, to) in [(25, 35), (0, 15), (15, 25)] {
            let bound = |time: i64| crate::join::cursor::Bound {
                number: NumberType::I64,
                times: Operand::Same(Scalar(time as u64)),
                inclusive: true,
            };
            let mut answers = [JoinedColumn::new(NumberType::I64)];
            let one = Selection::first(1);
            let outcome = Window::new(&series, vec![call]).aggregate(
                &series,
                (&[0], 1),
                Some(&bound(from)),
                Some(&bound(to)),
                &one,
                &one,
                &mut answers,
            );
            outcomes.push(outcome.map(|()| joined(NumberType::I64, &answers[0].operand(), 0)));
        }
    }
    let (failed, one) = (Err(EvaluationError::DivisionByZero), Ok(time(1)));
    let sums = [Ok(time(30)), Ok(time(10)), failed];
    assert_eq!(outcomes[..3], [one; 3]);
    assert_eq!(outcomes[3..6], [one, one, failed]);
    assert_eq!(outcomes[6..], sums);
}
