//! `bit_and`, `bit_or` and `bit_xor` of integers.

use std::marker::PhantomData;

use super::accumulator::{Accumulator, Added, Answer, Grouping, Input, each_number};
use crate::vector::Evaluation;
use crate::vector::number::{Number, Scalar};
use crate::vector::selection::Selection;
use crate::vector::value::Operand;

/// How bits are combined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BitOperation {
    /// `&`
    And,
    /// `|`
    Or,
    /// `#`
    Xor,
}

/// The combined bits of each group.
pub struct Bits<T> {
    operation: BitOperation,
    /// Integers of 64 bits, which have the same low bits as those of `T`, and whether the group has a number.
    states: Vec<(u64, bool)>,
    number: PhantomData<T>,
}

impl<T> Bits<T> {
    /// States without groups.
    pub fn new(operation: BitOperation) -> Self {
        Bits {
            operation,
            states: Vec::new(),
            number: PhantomData,
        }
    }
}

impl<T: Number> Bits<T> {
    /// Combines the numbers of some rows with their groups.
    fn combine(
        &mut self,
        grouping: &Grouping<'_>,
        operand: Operand,
        selection: &Selection,
        operation: impl Fn(u64, u64) -> u64,
    ) -> Evaluation<()> {
        let states = &mut self.states[..];
        // SAFETY: the operand has a `T` for each row of the vector.
        unsafe {
            each_number::<T>(grouping, operand, selection, |number, group| {
                let (state, has_number) = &mut states[group];
                (*state, *has_number) = (operation(*state, number.to_scalar().0), true);
                Ok(())
            })
        }
    }
}

impl<T: Number> Accumulator for Bits<T> {
    fn resize(&mut self, groups: usize) {
        let neutral = match self.operation {
            BitOperation::And => u64::MAX,
            BitOperation::Or | BitOperation::Xor => 0,
        };
        self.states.resize(groups, (neutral, false));
    }

    fn add(&mut self, grouping: &Grouping<'_>, added: Added<'_>) -> Evaluation<()> {
        let Input::Number(operand) = *added.input else {
            return Ok(());
        };
        let selection = added.selection;
        match self.operation {
            BitOperation::And => self.combine(grouping, operand, selection, |a, b| a & b),
            BitOperation::Or => self.combine(grouping, operand, selection, |a, b| a | b),
            BitOperation::Xor => self.combine(grouping, operand, selection, |a, b| a ^ b),
        }
    }

    fn answer(&self, group: usize) -> Answer {
        match self.states[group] {
            (bits, true) => Answer::Number(Scalar(bits)),
            (_, false) => Answer::Null,
        }
    }

    fn clear(&mut self) {
        self.states = Vec::new();
    }

    fn bytes(&self) -> usize {
        self.states.capacity() * size_of::<(u64, bool)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn combined(operation: BitOperation, numbers: &[i16]) -> Answer {
        let mut bits = Bits::<i16>::new(operation);
        bits.resize(2);
        let input = Input::Number(Operand::Each {
            values: numbers.as_ptr().cast(),
            validity: std::ptr::null(),
        });
        let added = Added {
            input: &input,
            selection: &Selection::first(numbers.len()),
            rows: numbers.len(),
        };
        bits.add(&Grouping::One(1), added).unwrap();
        assert_eq!(bits.answer(0), Answer::Null);
        bits.answer(1)
    }

    #[test]
    fn bits_are_those_of_the_numbers_own_width() {
        let numbers = [0b1110_i16, 0b0111, -1, i16::MIN | 0b0110];
        let number = |value: i16| Answer::Number(value.to_scalar());
        assert_eq!(combined(BitOperation::And, &numbers), number(0b0110));
        assert_eq!(combined(BitOperation::Or, &numbers), number(-1));
        let xor = numbers.into_iter().fold(0, |a, b| a ^ b);
        assert_eq!(combined(BitOperation::Xor, &numbers), number(xor));
        assert_eq!(combined(BitOperation::And, &[-8, -2]), number(-8));
    }
}
