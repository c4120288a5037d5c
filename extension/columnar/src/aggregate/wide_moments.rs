//! Variances of integers of 64 bits: exact sums, and exact sums of squares, which 128 bits may not hold.

use super::accumulator::{Accumulator, Added, Answer, Grouping, Input, each_row};
use crate::vector::Evaluation;

/// Count, sum and sum of squares of each group.
#[derive(Default)]
pub struct WideMoments {
    states: Vec<State>,
}

#[derive(Clone, Copy, Default)]
struct State {
    count: u64,
    /// The sum of 2^64 numbers fits.
    sum: i128,
    squares: u128,
    /// How often `squares` has overflowed.
    carried: u64,
}

impl State {
    #[inline]
    fn add(&mut self, value: i64) {
        self.count += 1;
        self.sum += i128::from(value);
        let size = u128::from(value.unsigned_abs());
        let (squares, is_carried) = self.squares.overflowing_add(size * size);
        self.squares = squares;
        self.carried += u64::from(is_carried);
    }
}

impl Accumulator for WideMoments {
    fn resize(&mut self, groups: usize) {
        self.states.resize(groups, State::default());
    }

    fn add(&mut self, grouping: &Grouping<'_>, added: Added<'_>) -> Evaluation<()> {
        let Input::Number(operand) = *added.input else {
            return Ok(());
        };
        each_row(grouping, added.selection, |row, group| {
            // SAFETY: the operand has an integer of 64 bits for each row of the vector.
            self.states[group].add(unsafe { operand.get::<i64>(row) });
            Ok(())
        })
    }

    fn answer(&self, group: usize) -> Answer {
        let state = self.states[group];
        match state.count {
            0 => Answer::Null,
            count => Answer::WideMoments {
                count,
                sum: state.sum,
                squares: [
                    state.squares as u64,
                    (state.squares >> 64) as u64,
                    state.carried,
                ],
            },
        }
    }

    fn clear(&mut self) {
        self.states = Vec::new();
    }

    fn bytes(&self) -> usize {
        self.states.capacity() * size_of::<State>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::selection::Selection;
    use crate::vector::value::Operand;

    #[test]
    fn squares_are_added_beyond_128_bits() {
        let numbers = [i64::MIN, 3, i64::MIN, i64::MIN, i64::MIN, -2];
        let input = Input::Number(Operand::Each {
            values: numbers.as_ptr().cast(),
            validity: std::ptr::null(),
        });
        let added = Added {
            input: &input,
            selection: &Selection::first(numbers.len()),
            rows: numbers.len(),
        };
        let mut moments = WideMoments::default();
        moments.resize(2);
        moments.add(&Grouping::One(1), added).unwrap();
        assert_eq!(moments.answer(0), Answer::Null);
        // Four times 2^126 is 2^128.
        let expected = Answer::WideMoments {
            count: 6,
            sum: 4 * i128::from(i64::MIN) + 1,
            squares: [13, 0, 1],
        };
        assert_eq!(moments.answer(1), expected);
    }
}
