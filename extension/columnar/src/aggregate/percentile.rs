//! `percentile_cont`, `percentile_disc` and `mode` of numbers.
//!
//! All numbers of a group are kept until there are no more rows. Then the number at the fraction is
//! selected, in time proportional to their count. For `mode` they are sorted.

use std::cmp::Ordering;

use super::accumulator::{Accumulator, Added, Answer, Grouping, Input, each_row};
use crate::interrupt;
use crate::vector::Evaluation;
use crate::vector::number::{Number, Scalar};
use crate::vector::value::Operand;

/// How the number at a fraction of an ordered list is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// Between its neighbours, as a double: `percentile_cont`.
    Continuous,
    /// The first number in order for which at least this fraction of all numbers is not greater:
    /// `percentile_disc`.
    Discrete,
    /// The most frequent number, and of several the first in order, whatever the fraction is: `mode`.
    MostFrequent,
}

/// The fractions of a group's numbers that are chosen. Each is between 0 and 1, or NULL, whose answer is NULL.
#[derive(Clone, PartialEq, Debug)]
pub enum Fractions {
    /// One, whose answer is a number.
    One(Option<f64>),
    /// Any number of them, whose answer is a list.
    Several(Vec<Option<f64>>),
}

impl Fractions {
    fn each(&self) -> &[Option<f64>] {
        match self {
            Fractions::One(fraction) => std::slice::from_ref(fraction),
            Fractions::Several(fractions) => fractions,
        }
    }
}

/// The numbers at fractions of a group's numbers in their order.
pub struct Percentile<T> {
    choice: Choice,
    fractions: Fractions,
    descends: bool,
    /// The numbers of each group, without NULLs.
    numbers: Vec<Vec<T>>,
    kept: usize,
    answers: Vec<Answer>,
    /// The answers of all fractions, group by group, where there are several.
    several: Vec<Answer>,
}

impl<T: Number> Percentile<T> {
    /// No group yet.
    pub fn new(choice: Choice, fractions: Fractions, descends: bool) -> Self {
        Percentile {
            choice,
            fractions,
            descends,
            numbers: Vec::new(),
            kept: 0,
            answers: Vec::new(),
            several: Vec::new(),
        }
    }

    fn order(&self, a: T, b: T) -> Ordering {
        match self.descends {
            true => b.order(a),
            false => a.order(b),
        }
    }

    /// Adds the answer for a group with these numbers. Their order is lost.
    fn answer_group(&mut self, numbers: &mut [T]) {
        let fractions = self.fractions.each().iter();
        let mut answers = fractions.map(|fraction| self.choose(*fraction, numbers));
        let answer = match self.fractions {
            Fractions::One(_) => answers.next().unwrap_or(Answer::Null),
            Fractions::Several(_) => {
                let answers: Vec<_> = answers.collect();
                self.several.extend(answers);
                match numbers.is_empty() {
                    true => Answer::Null,
                    false => Answer::Several,
                }
            }
        };
        self.answers.push(answer);
    }

    /// The answer for some numbers at a fraction. Their order is lost.
    fn choose(&self, fraction: Option<f64>, numbers: &mut [T]) -> Answer {
        if self.choice == Choice::MostFrequent {
            return self.most_frequent(numbers);
        }
        let (Some(fraction), Some(last)) = (fraction, numbers.len().checked_sub(1)) else {
            return Answer::Null;
        };
        let count = numbers.len() as f64;
        let compare = |a: &T, b: &T| self.order(*a, *b);
        match self.choice {
            Choice::Discrete => {
                let place = (fraction * count).ceil() as usize;
                let place = place.saturating_sub(1).min(last);
                let (_, chosen, _) = numbers.select_nth_unstable_by(place, compare);
                Answer::Number(chosen.to_scalar())
            }
            Choice::Continuous => {
                let exact = fraction * (count - 1.0);
                let (lower, upper) = (exact.floor() as usize, exact.ceil() as usize);
                let (_, low, after) = numbers.select_nth_unstable_by(lower.min(last), compare);
                let low = low.to_f64();
                let high = match after.iter().copied().min_by(compare) {
                    Some(next) if upper > lower => next.to_f64(),
                    _ => return Answer::Number(Scalar(low.to_bits())),
                };
                let between = low + (exact - lower as f64) * (high - low);
                Answer::Number(Scalar(between.to_bits()))
            }
            Choice::MostFrequent => Answer::Null,
        }
    }

    /// The most frequent number.
    fn most_frequent(&self, numbers: &mut [T]) -> Answer {
        numbers.sort_unstable_by(|a, b| self.order(*a, *b));
        let equal = numbers.chunk_by(|a, b| self.order(*a, *b) == Ordering::Equal);
        // Of equal maxima, `max_by_key` returns the last one.
        let most = equal.rev().max_by_key(|equal| equal.len());
        most.map_or(Answer::Null, |equal| Answer::Number(equal[0].to_scalar()))
    }
}

impl<T: Number> Accumulator for Percentile<T> {
    fn resize(&mut self, groups: usize) {
        self.numbers.resize_with(groups, Vec::new);
    }

    fn add(&mut self, grouping: &Grouping<'_>, added: Added<'_>) -> Evaluation<()> {
        let Input::Number(operand) = *added.input else {
            return Ok(());
        };
        let (selection, rows) = (added.selection, added.rows);
        self.kept += selection.count();
        if let (Grouping::One(group), Operand::Each { values, .. }) = (grouping, operand)
            && selection.is_full(rows)
        {
            // SAFETY: the operand has a `T` for each row of the vector.
            let values = unsafe { std::slice::from_raw_parts(values.cast::<T>(), rows) };
            self.numbers[*group as usize].extend_from_slice(values);
            return Ok(());
        }
        each_row(grouping, selection, |row, group| {
            // SAFETY: as above.
            self.numbers[group].push(unsafe { operand.get::<T>(row) });
            Ok(())
        })
    }

    fn finish(&mut self) {
        for mut numbers in std::mem::take(&mut self.numbers) {
            interrupt::check();
            self.answer_group(&mut numbers);
        }
    }

    fn answer(&self, group: usize) -> Answer {
        self.answers[group]
    }

    fn several(&self, group: usize) -> &[Answer] {
        let count = self.fractions.each().len();
        &self.several[group * count..(group + 1) * count]
    }

    fn clear(&mut self) {
        (self.numbers, self.kept) = (Vec::new(), 0);
        (self.answers, self.several) = (Vec::new(), Vec::new());
    }

    fn can_wait(&self) -> bool {
        false
    }

    fn bytes(&self) -> usize {
        // A list that grows has room for up to as many numbers again.
        let states = size_of::<Vec<T>>() + (1 + self.fractions.each().len()) * size_of::<Answer>();
        self.kept * 2 * size_of::<T>() + self.numbers.len().max(self.answers.len()) * states
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition, over a sorted list.
    fn expected(choice: Choice, fraction: f64, sorted: &[f64]) -> f64 {
        let count = sorted.len();
        if choice == Choice::Discrete {
            let reached = |place: usize| (place + 1) as f64 >= fraction * count as f64;
            return sorted[(0..count).find(|place| reached(*place)).unwrap()];
        }
        let exact = fraction * (count - 1) as f64;
        let (low, high) = (
            sorted[exact.floor() as usize],
            sorted[exact.ceil() as usize],
        );
        if exact.floor() == exact.ceil() {
            return low;
        }
        low + (exact - exact.floor()) * (high - low)
    }

    proptest! {
        #[test]
        fn what_is_chosen_is_what_stands_there_in_order(
            numbers in prop::collection::vec(-50i32..50, 1..40),
            fraction in prop_oneof![Just(0.0), Just(1.0), Just(0.5), 0.0..1.0f64],
            descends: bool,
        ) {
            let mut numbers: Vec<f64> = numbers.into_iter().map(f64::from).collect();
            for choice in [Choice::Continuous, Choice::Discrete] {
                let percentile = Percentile::<f64>::new(choice, Fractions::One(None), descends);
                let answer = percentile.choose(Some(fraction), &mut numbers.clone());
                numbers.sort_by(|a, b| percentile.order(*a, *b));
                let wanted = expected(choice, fraction, &numbers);
                prop_assert_eq!(answer, Answer::Number(wanted.to_scalar()));
            }
        }
    }

    #[test]
    fn the_most_frequent_number_is_the_first_of_several() {
        let mode = |descends, numbers: &[i32]| {
            let mode = Percentile::new(Choice::MostFrequent, Fractions::One(None), descends);
            mode.choose(None, &mut numbers.to_vec())
        };
        let numbers = [5, 3, 9, 3, 5, 1];
        assert_eq!(mode(false, &numbers), Answer::Number(3.to_scalar()));
        assert_eq!(mode(true, &numbers), Answer::Number(5.to_scalar()));
        assert_eq!(mode(false, &[]), Answer::Null);
    }

    #[test]
    fn nothing_and_no_fraction_are_null() {
        let one = Fractions::One(Some(0.5));
        let percentile = Percentile::<f64>::new(Choice::Continuous, one, false);
        assert_eq!(percentile.choose(Some(0.5), &mut []), Answer::Null);
        let percentile = Percentile::<i32>::new(Choice::Discrete, Fractions::One(None), false);
        assert_eq!(percentile.choose(None, &mut [1, 2]), Answer::Null);
    }

    #[test]
    fn several_fractions_have_several_answers_unless_there_are_no_numbers() {
        let fractions = vec![Some(1.0), None, Some(0.0)];
        let mut percentile =
            Percentile::<f64>::new(Choice::Continuous, Fractions::Several(fractions), false);
        percentile.numbers = vec![vec![3.0, 1.0, 2.0], vec![]];
        percentile.finish();
        assert_eq!(percentile.answer(0), Answer::Several);
        let [least, greatest] = [1.0f64, 3.0].map(|number| Answer::Number(number.to_scalar()));
        assert_eq!(percentile.several(0), [greatest, Answer::Null, least]);
        assert_eq!(percentile.answer(1), Answer::Null);
    }

    #[test]
    fn nan_is_the_greatest() {
        let numbers = [f64::NAN, 1.0, f64::INFINITY];
        let of =
            |descends| Percentile::<f64>::new(Choice::Discrete, Fractions::One(None), descends);
        let Answer::Number(last) = of(false).choose(Some(1.0), &mut numbers.clone()) else {
            panic!("a number");
        };
        assert!(f64::from_bits(last.0).is_nan());
        let least = of(true).choose(Some(1.0), &mut numbers.clone());
        assert_eq!(least, Answer::Number(1.0f64.to_scalar()));
    }
}
