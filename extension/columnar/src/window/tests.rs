use proptest::prelude::*;

use super::*;
use crate::vector::{Weight, WeightFault};

fn doubles(window: &mut Window, rows: &[(usize, Option<f64>, i64)]) -> Vec<Option<f64>> {
    window.resize(4);
    let mut step = |&(partition, x, time): &(usize, Option<f64>, i64)| {
        let value = window.step(partition, x.map(Number::to_scalar), Some(time));
        value.expect("in range").map(f64::of_scalar)
    };
    rows.iter().map(&mut step).collect()
}

proptest! {
    /// A partition's values are those that it has alone.
    #[test]
    fn partitions_do_not_meet(
        rows in prop::collection::vec((0..4usize, prop::option::of(-1e6..1e6f64), 0..1000i64), 0..60),
    ) {
        for function in [Function::Ema(Ok(0.3)), Function::Delta(NumberType::F64), Function::Rate] {
            let together = doubles(&mut Window::new(function), &rows);
            for partition in 0..4 {
                let alone: Vec<_> = rows.iter().filter(|row| row.0 == partition).copied().collect();
                let expected = doubles(&mut Window::new(function), &alone);
                let found = rows.iter().zip(&together).filter(|(row, _)| row.0 == partition);
                prop_assert!(found.map(|(_, value)| *value).eq(expected));
            }
        }
    }
}

#[test]
fn null_carries_an_average_on_and_is_passed_over_by_differences() {
    let rows = [
        (0, None, 0),
        (0, Some(8.0), 1),
        (0, None, 2),
        (0, Some(4.0), 3),
    ];
    let ema = doubles(&mut Window::new(Function::Ema(Ok(0.5))), &rows);
    assert_eq!(ema, [None, Some(8.0), Some(8.0), Some(6.0)]);
    let delta = doubles(&mut Window::new(Function::Delta(NumberType::F64)), &rows);
    assert_eq!(delta, [None, None, None, Some(-4.0)]);
    let rate = doubles(&mut Window::new(Function::Rate), &rows);
    assert_eq!(rate, [None, None, None, Some(4.0 / 2e-6)]);
}

#[test]
fn a_rate_passes_over_infinite_times() {
    let rows = [
        (0, Some(1.0), i64::MIN),
        (0, Some(2.0), 1_000_000),
        (0, Some(5.0), 3_000_000),
        (0, Some(9.0), i64::MAX),
    ];
    let rate = doubles(&mut Window::new(Function::Rate), &rows);
    assert_eq!(rate, [None, None, Some(1.5), None]);
}

#[test]
fn what_is_out_of_range() {
    let mut delta = Window::new(Function::Delta(NumberType::I32));
    delta.resize(1);
    assert_eq!(delta.step(0, Some(i32::MIN.to_scalar()), None), Ok(None));
    let failure = delta.step(0, Some(1i32.to_scalar()), None);
    assert_eq!(failure, Err(EvaluationError::IntegerOutOfRange(4)));
    let fault = EvaluationError::Weight(Weight::Alpha, WeightFault::Null);
    let mut ema = Window::new(Function::Ema(Err(fault)));
    ema.resize(1);
    assert_eq!(ema.step(0, None, None), Err(fault));
}

#[test]
fn rates() {
    assert_eq!(rate(1.0, 0, 3.0, 2_000_000), Ok(Some(1.0)));
    assert_eq!(rate(5.0, 0, 3.0, 1_000_000), Ok(Some(3.0)));
    assert_eq!(rate(1.0, 5, 3.0, 5), Ok(None));
    assert_eq!(rate(1.0, 5, 3.0, 4), Ok(None));
}
