//! The checks of safe reading, and that it finds what the join finds.

use super::rows::joined;
use crate::join::cursor::Bound;
use crate::join::joined_column::JoinedColumn;
use crate::join::keys::{JoinKeys, Side};
use crate::join::reading::{Reading, RightVector};
use crate::join::window::WindowCall;
use crate::vector::frame::Frame;
use crate::vector::number::{NumberType, Scalar};
use crate::vector::selection::Selection;
use crate::vector::value::Operand;

fn operand(values: &[i64]) -> Operand {
    Operand::Each {
        values: values.as_ptr().cast(),
        validity: std::ptr::null(),
    }
}

fn bound(number: NumberType, times: Operand) -> Bound {
    Bound {
        number,
        times,
        inclusive: true,
    }
}

/// Enters a vector of the left side, all of whose rows match.
fn enter_left(reading: &mut Reading, lower: Option<&[i64]>, upper: &[i64]) -> bool {
    let mut keys = JoinKeys::new(Vec::new());
    let frame = Frame::of_nulls(upper.len(), &[]);
    let (all, mut matching) = (Selection::first(upper.len()), Selection::first(upper.len()));
    let lower = lower.map(|lower| bound(NumberType::I64, operand(lower)));
    let upper = bound(NumberType::I64, operand(upper));
    let bounds = (lower.as_ref(), Some(&upper));
    let entered = reading.enter_left(&frame, bounds, &mut keys, &all, &mut matching);
    entered.unwrap()
}

/// Enters a vector of the right side, of which so many rows are selected.
fn enter_right(
    reading: &mut Reading,
    times: &[i64],
    selected: usize,
    window: Option<Vec<Operand>>,
) -> bool {
    let mut keys = JoinKeys::new(Vec::new());
    let frame = Frame::of_nulls(times.len(), &[]);
    let mut selection = Selection::first(selected);
    let ids = keys.assign(Side::Right, &frame, &mut selection).unwrap();
    let vector = RightVector {
        ids,
        number: NumberType::I64,
        times: operand(times),
        selection,
        rows: times.len(),
        place: 0,
    };
    reading.enter_right(&vector, window)
}

#[test]
fn the_latest_row_of_either_window_is_found() {
    let mut reading = Reading::latest(true, &[NumberType::I64]);
    let mut found = [JoinedColumn::new(NumberType::I64)];
    let upper = [2, 4, 9];
    assert!(enter_left(&mut reading, None, &upper));
    for (times, values) in [([1, 3], [10, 30]), ([5, 10], [50, 100])] {
        reading.advance(&mut found).unwrap();
        assert!(!reading.is_left_done());
        reading.leave_window();
        assert!(reading.has_left_window());
        let window = Some(vec![operand(&values)]);
        assert!(enter_right(&mut reading, &times, 2, window));
        assert!(!reading.has_left_window());
        reading.advance(&mut found).unwrap();
        reading.leave_window();
    }
    reading.finish_left(&mut found).unwrap();
    for (row, value) in [10, 30, 50].into_iter().enumerate() {
        let answer = joined(NumberType::I64, &found[0].operand(), row);
        assert_eq!(answer, Some(Scalar(value)), "row {row}");
    }
}

#[test]
fn times_out_of_order_are_not_read() {
    let mut reading = Reading::latest(true, &[]);
    assert!(!enter_left(&mut reading, None, &[1, 3, 2]));
    assert!(enter_left(&mut reading, None, &[2, 3]));
    assert!(!enter_left(&mut reading, None, &[1]));
    assert!(enter_right(&mut reading, &[4, 5], 2, Some(Vec::new())));
    assert!(!enter_right(&mut reading, &[4, 6], 2, None));
}

#[test]
fn a_window_needs_a_lower_bound_in_order() {
    let calls = vec![WindowCall::Rows];
    let mut reading = Reading::windows((true, true), calls, Vec::new());
    assert!(!enter_left(&mut reading, None, &[1, 2]));
    assert!(!enter_left(&mut reading, Some(&[1, 0]), &[1, 2]));
    assert!(enter_left(&mut reading, Some(&[1, 1]), &[2, 3]));
}

#[test]
fn only_times_of_64_bits_a_row_are_read() {
    let mut keys = JoinKeys::new(Vec::new());
    let (frame, all) = (Frame::of_nulls(1, &[]), Selection::first(1));
    let mut reading = Reading::latest(true, &[]);
    for (number, times) in [
        (NumberType::I64, Operand::Same(Scalar(1))),
        (NumberType::I64, Operand::Null),
        (NumberType::I32, operand(&[1])),
    ] {
        let (upper, mut matching) = (bound(number, times), all);
        let bounds = (None, Some(&upper));
        let entered = reading.enter_left(&frame, bounds, &mut keys, &all, &mut matching);
        assert_eq!(entered, Ok(false));
    }
}

#[test]
#[should_panic(expected = "a window without columns")]
fn a_window_that_was_left_is_not_read() {
    let mut reading = Reading::latest(true, &[]);
    reading.leave_window();
    enter_right(&mut reading, &[1], 1, None);
}

#[test]
#[should_panic(expected = "a row past the vector")]
fn no_row_past_the_vector_is_read() {
    let mut reading = Reading::latest(true, &[]);
    enter_right(&mut reading, &[1], 2, Some(Vec::new()));
}
