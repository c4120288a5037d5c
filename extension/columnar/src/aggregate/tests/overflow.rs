//! Sums at the limits of their types, where the quick way must not be taken.

use super::wanted::{Kept, Wanted};
use crate::aggregate::extreme::End;
use crate::aggregate::sum::IntegerResult;
use crate::aggregate::{Aggregation, Answer, Key};
use crate::vector::number::{Number, NumberType, Scalar};
use crate::vector::selection::Selection;
use crate::vector::tests::lanes::{Column, Source, TestLanes};
use crate::vector::tests::number_tree::NumberTree;
use crate::vector::value::Value;
use crate::vector::{Evaluation, EvaluationError};

/// A window of two columns of doubles, and a key that is 1 throughout.
fn doubles(values: &[(f64, f64)]) -> TestLanes {
    let mut source = Source(2);
    let column = |of: fn(&(f64, f64)) -> f64, source: &mut Source| {
        let scalars: Vec<_> = values.iter().map(|v| Some(of(v).to_scalar())).collect();
        Column::numbers(NumberType::F64, &scalars, source)
    };
    let (a, b) = (column(|v| v.0, &mut source), column(|v| v.1, &mut source));
    let ones = vec![Some(Scalar(1)); values.len()];
    TestLanes::of(vec![
        a,
        b,
        Column::numbers(NumberType::I64, &ones, &mut source),
    ])
}

/// The answers of the engine, with and without a key, and of the twin after these vectors.
fn both(wanted: &Wanted, windows: &[TestLanes]) -> [Evaluation<Answer>; 3] {
    let engine = |keys: Vec<Key>| {
        let mut aggregation = Aggregation::new(keys, vec![wanted.build(None)]);
        for lanes in windows {
            let all = Selection::first(lanes.rows);
            lanes.with_frame(|frame| aggregation.add(frame, &all))?;
        }
        Ok(aggregation.answer(0, 0))
    };
    let twin = || {
        let mut kept = Kept::default();
        for lanes in windows {
            (0..lanes.rows).try_for_each(|row| kept.add(wanted, lanes, row))?;
        }
        Ok(kept.answer(wanted))
    };
    let key = Key::Number(Value::Column(NumberType::I64, 2));
    [engine(Vec::new()), engine(vec![key]), twin()]
}

fn first() -> NumberTree {
    NumberTree::Column(NumberType::F64, 0)
}

/// Only whether there is an error matters: an average's sum of squares means nothing.
fn errors(answers: [Evaluation<Answer>; 3]) -> [Option<EvaluationError>; 3] {
    answers.map(Result::err)
}

#[test]
fn averages_overflow_where_squares_do() {
    let moderate = || doubles(&[(1.0, 1.0); 100]);
    let average = Wanted::Moments(false, first());
    let overflow = [Some(EvaluationError::FloatOverflow); 3];
    let pair = [doubles(&[(1e200, 1.0), (-1e200, 1.0)])];
    assert_eq!(errors(both(&average, &pair)), overflow);
    let before = [moderate(), doubles(&[(1e200, 1.0)])];
    assert_eq!(errors(both(&average, &before)), overflow);
    let after = [doubles(&[(1e200, 1.0)]), moderate()];
    assert_eq!(errors(both(&average, &after)), overflow);
    let infinite = [doubles(&[(f64::INFINITY, 1.0)]), moderate()];
    assert_eq!(errors(both(&average, &infinite)), [None; 3]);
}

#[test]
fn sums_overflow_where_an_addition_does() {
    let sum = Wanted::FloatSum(first());
    let great = [doubles(&[(f64::MAX, 1.0), (f64::MAX, 1.0)])];
    assert_eq!(
        errors(both(&sum, &great)),
        [Some(EvaluationError::FloatOverflow); 3]
    );
    let back = [
        doubles(&[(f64::MAX, 1.0), (-f64::MAX, 1.0), (5.0, 1.0)]),
        doubles(&[(2.0, 1.0)]),
    ];
    assert_eq!(both(&sum, &back), [Ok(Answer::Number(7.0.to_scalar())); 3]);
    let infinite = [doubles(&[(f64::INFINITY, 1.0), (f64::MAX, 1.0)])];
    assert_eq!(
        both(&sum, &infinite),
        [Ok(Answer::Number(f64::INFINITY.to_scalar())); 3]
    );
    let zeros = [doubles(&[(-0.0, 1.0); 70])];
    assert_eq!(
        both(&sum, &zeros),
        [Ok(Answer::Number((-0.0).to_scalar())); 3]
    );
}

#[test]
fn a_weighted_average_keeps_signs_and_reports_what_vanishes() {
    let weighted = Wanted::Weighted(first(), NumberTree::Column(NumberType::F64, 1));
    let underflow = [Some(EvaluationError::FloatUnderflow); 3];
    for (price, volume) in [(1e-200, 1e-200), (-1e-200, 1e-200), (1e-200, -1e-200)] {
        let tiny = [doubles(&[(2.0, 3.0), (price, volume)])];
        assert_eq!(errors(both(&weighted, &tiny)), underflow);
    }
    let small = [doubles(&[
        (0.0, 1e-200),
        (-2.0, 0.0),
        (1e-100, 1e-100),
        (2.0, 3.0),
    ])];
    assert_eq!(errors(both(&weighted, &small)), [None; 3]);
    let zeros = both(&weighted, &[doubles(&[(-0.0, 3.0)])]);
    for answer in zeros {
        let Ok(Answer::Quotient(zero, 3.0)) = answer else {
            panic!("{answer:?}");
        };
        assert!(zero == 0.0 && zero.is_sign_negative());
    }
    let great = [doubles(&[(1e200, 1e200)])];
    let overflow = [Some(EvaluationError::FloatOverflow); 3];
    assert_eq!(errors(both(&weighted, &great)), overflow);
    let nothing = [doubles(&[(1.0, 2.0), (1.0, -2.0)])];
    assert_eq!(both(&weighted, &nothing), [Ok(Answer::Null); 3]);
}

#[test]
fn integers_do_not_wrap() {
    let extremes = vec![Some(Scalar(i64::MIN as u64)); 2048];
    let column = || Column::numbers(NumberType::I64, &extremes, &mut Source(1));
    let lanes = TestLanes::of(vec![column(), column(), column()]);
    let tree = || NumberTree::Column(NumberType::I64, 0);
    let total = i128::from(i64::MIN) * 2048;
    let sum = Wanted::Integers(IntegerResult::Sum, tree());
    let windows = [lanes];
    assert_eq!(both(&sum, &windows), [Ok(Answer::Integer(total)); 3]);
    let average = Wanted::Integers(IntegerResult::Average, tree());
    let expected = Answer::Average {
        count: 2048,
        sum: total,
    };
    assert_eq!(both(&average, &windows), [Ok(expected); 3]);
    let least = Wanted::Extreme(End::Minimum, tree());
    assert_eq!(
        both(&least, &windows),
        [Ok(Answer::Number(Scalar(i64::MIN as u64))); 3]
    );

    let moments = Wanted::Integers(IntegerResult::Moments, tree());
    let mut aggregation = Aggregation::new(Vec::new(), vec![moments.build(None)]);
    let all = Selection::first(2048);
    let added = windows[0].with_frame(|frame| aggregation.add(frame, &all));
    assert_eq!(
        added,
        Err(EvaluationError::IntegerOutOfRange(16)),
        "squares past 128 bits"
    );
}
