//! Aggregates that take the distinct values of a group in their order, as PostgreSQL passes them to an aggregate with
//! `DISTINCT`. The values have codes, and the pairs of groups and codes are kept until there are no more rows.

use super::accumulator::{Accumulator, Added, Answer, Grouping, Input, each_row};
use crate::vector::Evaluation;

/// What takes the values.
pub trait ValueTaker {
    /// Makes room for so many groups.
    fn resize(&mut self, groups: usize);

    /// The codes of all values in the order of the values.
    fn ordered_codes(&mut self) -> Vec<u32>;

    /// Takes values of a group, by their codes, in order. The values of a group come one call after the other.
    fn take(&mut self, group: usize, codes: &[u32]);

    /// The result for a group.
    fn answer(&self, group: usize) -> Answer;

    /// Removes all groups and values.
    fn clear(&mut self);

    /// Bytes of memory, but for those that values in groups will take.
    fn bytes(&self) -> usize;

    /// Bytes that a value takes in the state of its group, on average.
    fn bytes_taken(&self) -> usize;
}

/// Values of a group that are handed over at a time.
const TAKEN: usize = 64;

/// An aggregate of distinct values. The rows that are added have the codes of values as their argument, a number of 64
/// bits, and each code once in a group.
pub struct DistinctValues<T> {
    taker: T,
    /// The group in the upper half, the code in the lower half.
    pairs: Vec<u64>,
}

impl<T: ValueTaker> DistinctValues<T> {
    /// No group yet.
    pub fn new(taker: T) -> DistinctValues<T> {
        DistinctValues {
            taker,
            pairs: Vec::new(),
        }
    }
}

impl<T: ValueTaker> Accumulator for DistinctValues<T> {
    fn resize(&mut self, groups: usize) {
        self.taker.resize(groups);
    }

    fn add(&mut self, grouping: &Grouping<'_>, added: Added<'_>) -> Evaluation<()> {
        let Input::Number(codes) = *added.input else {
            return Ok(());
        };
        each_row(grouping, added.selection, |row, group| {
            // SAFETY: the codes are numbers of 64 bits, and no selected row is NULL.
            let code = unsafe { codes.get::<i64>(row) } as u32;
            self.pairs.push((group as u64) << 32 | u64::from(code));
            Ok(())
        })
    }

    fn finish(&mut self) {
        let mut pairs = std::mem::take(&mut self.pairs);
        if pairs.is_empty() {
            return;
        }
        let ordered = self.taker.ordered_codes();
        let mut ranks = vec![0; ordered.len()];
        for (rank, code) in (0_u32..).zip(&ordered) {
            ranks[*code as usize] = rank;
        }
        for pair in &mut pairs {
            *pair = *pair >> 32 << 32 | u64::from(ranks[*pair as u32 as usize]);
        }
        pairs.sort_unstable();
        let mut codes = [0; TAKEN];
        for of_group in pairs.chunk_by(|a, b| a >> 32 == b >> 32) {
            for some in of_group.chunks(TAKEN) {
                for (code, pair) in codes.iter_mut().zip(some) {
                    *code = ordered[*pair as u32 as usize];
                }
                let group = (some[0] >> 32) as usize;
                self.taker.take(group, &codes[..some.len()]);
            }
        }
    }

    fn answer(&self, group: usize) -> Answer {
        self.taker.answer(group)
    }

    fn clear(&mut self) {
        self.pairs = Vec::new();
        self.taker.clear();
    }

    fn can_wait(&self) -> bool {
        false
    }

    fn bytes(&self) -> usize {
        // The states of groups are made at the end, when it is too late to find that they need too much memory.
        let of_states = self.pairs.len() * self.taker.bytes_taken();
        self.pairs.capacity() * size_of::<u64>() + of_states + self.taker.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::distinct::Distinct;
    use crate::aggregate::key::Key;
    use crate::aggregate::{Aggregate, Aggregation};
    use crate::column::Column;
    use crate::test_support::INT8;
    use crate::vector::frame::Frame;
    use crate::vector::number::NumberType;
    use crate::vector::selection::Selection;
    use crate::vector::value::Value;

    /// Takes codes whose order is that of their remainders by ten, and answers with the digits of a group.
    #[derive(Default)]
    struct Digits(Vec<u64>);

    impl ValueTaker for Digits {
        fn resize(&mut self, groups: usize) {
            self.0.resize(groups, 0);
        }

        fn ordered_codes(&mut self) -> Vec<u32> {
            vec![3, 1, 0, 2]
        }

        fn take(&mut self, group: usize, codes: &[u32]) {
            let digits = codes
                .iter()
                .fold(0, |digits, code| digits * 10 + u64::from(*code));
            self.0[group] = digits;
        }

        fn answer(&self, group: usize) -> Answer {
            Answer::Count(self.0[group])
        }

        fn clear(&mut self) {
            self.0.clear();
        }

        fn bytes(&self) -> usize {
            0
        }

        fn bytes_taken(&self) -> usize {
            0
        }
    }

    #[test]
    fn each_value_is_taken_once_in_order() {
        let rows = [
            (7, 0),
            (8, 2),
            (7, 3),
            (7, 0),
            (8, 1),
            (7, 2),
            (8, 2),
            (9, 1),
        ];
        let column = |values: &[i64]| {
            let mut column = Column::new(INT8);
            values
                .iter()
                .for_each(|value| column.push_fixed(&value.to_ne_bytes()));
            column
        };
        let columns = [
            column(&rows.map(|(group, _)| group)),
            column(&rows.map(|(_, code)| code)),
        ];
        let lanes = columns.each_ref().map(Column::lane);
        let number = |attribute| Value::Column(NumberType::I64, attribute);
        let aggregate = Aggregate {
            filter: None,
            argument: crate::aggregate::Argument::Distinct(Distinct::of_codes(number(1))),
            accumulator: Box::new(DistinctValues::new(Digits::default())),
        };
        let mut aggregation = Aggregation::new(vec![Key::Number(number(0))], vec![aggregate]);
        let frame = Frame {
            lanes: &lanes,
            ..Frame::of_nulls(rows.len(), &[])
        };
        aggregation
            .add(&frame, &Selection::first(rows.len()))
            .unwrap();
        aggregation.finish();
        let answers: Vec<_> = (0..3).map(|group| aggregation.answer(group, 0)).collect();
        assert_eq!(
            answers,
            [Answer::Count(302), Answer::Count(12), Answer::Count(1)]
        );
    }
}
