//! Correlation, covariance and linear regression of pairs of doubles, by the six numbers that PostgreSQL's
//! `float8_regr_accum` keeps; and how many pairs there are.
//!
//! The algorithm is that of Youngs and Cramer ("Some results relevant to choice of sum and sum-of-product algorithms",
//! 1971), for two variables. Rows are added one by one in their order, so that the numbers are those of PostgreSQL to
//! the bit.

use super::accumulator::{Accumulator, Added, Answer, Grouping, Input, add_counts, each_row};
use crate::vector::{Evaluation, EvaluationError};

/// Pairs of `y` and `x`, in this order. A row with a NULL in either does not count.
#[derive(Default)]
pub struct Pairs {
    states: Vec<PairMoments>,
}

/// The number of pairs, whose sums do not matter.
#[derive(Default)]
pub struct PairCount {
    counts: Vec<u64>,
}

impl Accumulator for PairCount {
    fn resize(&mut self, groups: usize) {
        self.counts.resize(groups, 0);
    }

    fn add(&mut self, grouping: &Grouping<'_>, added: Added<'_>) -> Evaluation<()> {
        let Input::Pair(y, x) = *added.input else {
            return Ok(());
        };
        let (mut with_y, mut with_both) = (None, None);
        let counted = x.valid_in(y.valid_in(added.selection, &mut with_y), &mut with_both);
        add_counts(&mut self.counts, grouping, counted, added.rows);
        Ok(())
    }

    fn answer(&self, group: usize) -> Answer {
        Answer::Count(self.counts[group])
    }

    fn clear(&mut self) {
        self.counts = Vec::new();
    }

    fn bytes(&self) -> usize {
        self.counts.capacity() * size_of::<u64>()
    }
}

/// The numbers that `float8_regr_accum` keeps, in its order.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct PairMoments {
    /// The number of pairs.
    pub count: f64,
    /// The sum of `x`.
    pub sum_x: f64,
    /// The sum of squares of differences of `x` from its mean.
    pub squares_x: f64,
    /// The sum of `y`.
    pub sum_y: f64,
    /// The sum of squares of differences of `y` from its mean.
    pub squares_y: f64,
    /// The sum of products of both differences.
    pub products: f64,
}

impl PairMoments {
    /// Adds a pair, with PostgreSQL's checks.
    #[inline(always)]
    fn accumulate(&mut self, y: f64, x: f64) -> Evaluation<()> {
        let before = *self;
        self.count += 1.0;
        self.sum_x += x;
        self.sum_y += y;
        if before.count > 0.0 {
            let (of_x, of_y) = (x * self.count - self.sum_x, y * self.count - self.sum_y);
            let scale = 1.0 / (self.count * before.count);
            self.squares_x += of_x * of_x * scale;
            self.squares_y += of_y * of_y * scale;
            self.products += of_x * of_y * scale;
            // A sum of finite numbers is NaN only if one of these is infinite or NaN too.
            let all = self.sum_x + self.squares_x + self.sum_y + self.squares_y + self.products;
            if !all.is_finite() {
                return self.check(&before, y, x);
            }
        } else {
            if !x.is_finite() {
                (self.squares_x, self.products) = (f64::NAN, f64::NAN);
            }
            if !y.is_finite() {
                (self.squares_y, self.products) = (f64::NAN, f64::NAN);
            }
        }
        Ok(())
    }

    /// Refuses infinite sums of finite numbers. Sums of squares of infinite numbers are NaN.
    #[cold]
    fn check(&mut self, before: &PairMoments, y: f64, x: f64) -> Evaluation<()> {
        let is_finite_x = !before.sum_x.is_infinite() && !x.is_infinite();
        let is_finite_y = !before.sum_y.is_infinite() && !y.is_infinite();
        let is_great_x = self.sum_x.is_infinite() || self.squares_x.is_infinite();
        let is_great_y = self.sum_y.is_infinite() || self.squares_y.is_infinite();
        if is_great_x && is_finite_x
            || is_great_y && is_finite_y
            || self.products.is_infinite() && is_finite_x && is_finite_y
        {
            return Err(EvaluationError::FloatOverflow);
        }
        for sum in [&mut self.squares_x, &mut self.squares_y, &mut self.products] {
            if sum.is_infinite() {
                *sum = f64::NAN;
            }
        }
        Ok(())
    }
}

impl Accumulator for Pairs {
    fn resize(&mut self, groups: usize) {
        self.states.resize(groups, PairMoments::default());
    }

    fn add(&mut self, grouping: &Grouping<'_>, added: Added<'_>) -> Evaluation<()> {
        let Input::Pair(y, x) = *added.input else {
            return Ok(());
        };
        let (mut with_y, mut with_both) = (None, None);
        let counted = x.valid_in(y.valid_in(added.selection, &mut with_y), &mut with_both);
        let states = &mut self.states[..];
        each_row(grouping, counted, |row, group| {
            // SAFETY: the operands have a double for each row of the vector.
            let (y, x) = unsafe { (y.get::<f64>(row), x.get::<f64>(row)) };
            states[group].accumulate(y, x)
        })
    }

    fn answer(&self, group: usize) -> Answer {
        match self.states[group] {
            moments if moments.count > 0.0 => Answer::PairMoments(moments),
            _ => Answer::Null,
        }
    }

    fn clear(&mut self) {
        self.states = Vec::new();
    }

    fn bytes(&self) -> usize {
        self.states.capacity() * size_of::<PairMoments>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(pairs: &[(f64, f64)]) -> Evaluation<PairMoments> {
        let mut moments = PairMoments::default();
        for (y, x) in pairs {
            moments.accumulate(*y, *x)?;
        }
        Ok(moments)
    }

    #[test]
    fn the_sums_are_those_of_the_definition() {
        let pairs = [(1.0, 2.0), (3.0, 1.0), (-2.0, 5.0), (0.5, 0.5)];
        let found = moments(&pairs).unwrap();
        let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / 4.0;
        let (y, x) = (mean(|pair| pair.0), mean(|pair| pair.1));
        let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
            pairs.iter().map(|pair| of(pair.0 - y, pair.1 - x)).sum()
        };
        let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert_eq!((found.count, found.sum_y, found.sum_x), (4.0, 2.5, 8.5));
        assert!(near(found.squares_y, sum(&|y, _| y * y)));
        assert!(near(found.squares_x, sum(&|_, x| x * x)));
        assert!(near(found.products, sum(&|y, x| y * x)));
    }

    #[test]
    fn infinite_numbers_make_nan_and_finite_ones_an_error() {
        let found = moments(&[(f64::INFINITY, 1.0), (1.0, 2.0)]).unwrap();
        assert!(found.squares_y.is_nan() && found.products.is_nan());
        assert_eq!(found.squares_x, 0.5);
        let found = moments(&[(1.0, 1.0), (1.0, f64::NEG_INFINITY)]).unwrap();
        assert!(found.squares_x.is_nan() && found.squares_y == 0.0);
        for pairs in [
            [(1e200, 1.0), (-1e200, 1.0)],
            [(1.0, f64::MAX), (1.0, f64::MAX)],
            [(1e154, 1e154), (-1e154, -1e155)],
        ] {
            assert_eq!(moments(&pairs), Err(EvaluationError::FloatOverflow));
        }
    }
}
