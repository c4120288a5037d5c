//! Functions `…_over_time`, and others that go over all samples of a window.

use super::go::{KahanSum, quantile};
use super::window::Window;
use crate::sample::ABSENT;

/// The sum.
fn sum(values: &[f64]) -> f64 {
    let mut sum = KahanSum::default();
    values.iter().for_each(|value| sum.add(*value));
    if sum.sum.is_infinite() {
        sum.sum
    } else {
        sum.total()
    }
}

/// The number of windows that are summed together.
const SUMMED_TOGETHER: usize = 4;

/// A statistic that the sum of a window's samples yields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Summary {
    Sum,
    Average,
}

impl Summary {
    /// Writes the summary of each window.
    ///
    /// An addition waits for the one before it in the same window. So several windows are summed
    /// side by side, each in the order of its samples. Sums that are not finite are made again one
    /// by one, as Prometheus makes them.
    pub(super) fn write(self, values: &[f64], windows: &[(usize, usize)], row: &mut [f64]) {
        let mut groups = windows.chunks_exact(SUMMED_TOGETHER);
        let mut outs = row.chunks_exact_mut(SUMMED_TOGETHER);
        for (group, out) in groups.by_ref().zip(outs.by_ref()) {
            let window = |place: usize| &values[group[place].0..group[place].1];
            out.copy_from_slice(&self.together(std::array::from_fn(window)));
        }
        for ((first, end), out) in groups.remainder().iter().zip(outs.into_remainder()) {
            *out = self.alone(&values[*first..*end]);
        }
    }

    fn together(self, windows: [&[f64]; SUMMED_TOGETHER]) -> [f64; SUMMED_TOGETHER] {
        let shortest = windows.iter().map(|window| window.len()).min();
        let shortest = shortest.unwrap_or_default();
        if shortest == 0 {
            return windows.map(|window| self.alone(window));
        }
        // An average begins with its first value, so that one of negative zeros is negative.
        let begun = match self {
            Summary::Sum => 0,
            Summary::Average => 1,
        };
        let mut sums = match self {
            Summary::Sum => [0.0; SUMMED_TOGETHER],
            Summary::Average => windows.map(|window| window[0]),
        };
        let mut lost = [0.0; SUMMED_TOGETHER];
        let common = windows.map(|window| &window[..shortest]);
        for place in begun..shortest {
            let values = common.map(|window| window[place]);
            for lane in 0..SUMMED_TOGETHER {
                let (sum, value) = (sums[lane], values[lane]);
                let total = sum + value;
                let is_larger = sum.abs() >= value.abs();
                let large = if is_larger { sum } else { value };
                let small = if is_larger { value } else { sum };
                lost[lane] += (large - total) + small;
                sums[lane] = total;
            }
        }
        std::array::from_fn(|lane| {
            let mut sum = KahanSum {
                sum: sums[lane],
                lost: lost[lane],
            };
            let rest = windows[lane][shortest..].iter();
            rest.for_each(|value| sum.add(*value));
            match (sum.sum.is_finite(), self) {
                (false, _) => self.alone(windows[lane]),
                (true, Summary::Sum) => sum.total(),
                (true, Summary::Average) => {
                    let count = windows[lane].len() as f64;
                    sum.sum / count + sum.lost / count
                }
            }
        })
    }

    fn alone(self, window: &[f64]) -> f64 {
        match self {
            _ if window.is_empty() => ABSENT,
            Summary::Sum => sum(window),
            Summary::Average => average(window),
        }
    }
}

/// A mean that is the quotient of a sum as long as the sum does not overflow, and is updated by
/// each value from then on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mean {
    pub(super) sum: KahanSum,
    pub(super) count: f64,
    pub(super) is_incremental: bool,
}

impl Mean {
    /// The mean of one value.
    pub(super) fn of(value: f64) -> Mean {
        Mean {
            sum: KahanSum {
                sum: value,
                lost: 0.0,
            },
            count: 1.0,
            is_incremental: false,
        }
    }

    /// Takes another value in.
    #[inline(always)]
    pub(super) fn add(&mut self, value: f64) {
        self.count += 1.0;
        if !self.is_incremental {
            let mut sum = self.sum;
            sum.add(value);
            if !sum.sum.is_infinite() {
                self.sum = sum;
                return;
            }
            self.is_incremental = true;
            self.sum.sum /= self.count - 1.0;
            self.sum.lost /= self.count - 1.0;
        }
        let kept = (self.count - 1.0) / self.count;
        self.sum.sum *= kept;
        self.sum.lost *= kept;
        self.sum.add(value / self.count);
    }

    /// The mean.
    pub(super) fn value(&self) -> f64 {
        match self.is_incremental {
            true => self.sum.total(),
            false => self.sum.sum / self.count + self.sum.lost / self.count,
        }
    }
}

/// The mean.
fn average(values: &[f64]) -> f64 {
    let mut mean = Mean::of(values[0]);
    values[1..].iter().for_each(|value| mean.add(*value));
    mean.value()
}

/// The place of the sample that a comparison prefers to all before it; NaN loses against numbers.
#[inline(always)]
pub(super) fn extreme(values: &[f64], wins: impl Fn(f64, f64) -> bool) -> usize {
    let mut best = 0;
    for (place, value) in values.iter().enumerate() {
        if wins(*value, values[best]) || values[best].is_nan() {
            best = place;
        }
    }
    best
}

/// The variance.
pub(super) fn variance(values: &[f64]) -> f64 {
    let mut count = 0.0;
    let (mut mean, mut squares) = (KahanSum::default(), KahanSum::default());
    for value in values {
        count += 1.0;
        let delta = value - mean.total();
        mean.add(delta / count);
        squares.add(delta * (value - mean.total()));
    }
    squares.total() / count
}

/// The median of the distances from the median.
pub(super) fn median_deviation(values: &[f64], buffer: &mut Vec<f64>) -> f64 {
    if values.iter().any(|value| value.is_nan()) {
        return f64::NAN;
    }
    buffer.clear();
    buffer.extend_from_slice(values);
    let median = quantile(0.5, buffer);
    buffer
        .iter_mut()
        .for_each(|value| *value = (*value - median).abs());
    quantile(0.5, buffer)
}

/// How often neighbours differ.
pub(super) fn changes(values: &[f64]) -> f64 {
    let differ = |pair: &&[f64]| pair[0] != pair[1] && !(pair[0].is_nan() && pair[1].is_nan());
    values.windows(2).filter(differ).count() as f64
}

/// How often a value is lower than the one before.
pub(super) fn resets(values: &[f64]) -> f64 {
    values.windows(2).filter(|pair| pair[1] < pair[0]).count() as f64
}

/// The value that double exponential smoothing has in the end.
pub(super) fn double_exponential_smoothing(values: &[f64], factor: f64, trend_factor: f64) -> f64 {
    if values.len() < 2 {
        return ABSENT;
    }
    let (mut before, mut smoothed) = (0.0, values[0]);
    let mut trend = values[1] - values[0];
    for (place, value) in values.iter().enumerate().skip(1) {
        if place > 1 {
            trend = trend_factor * (smoothed - before) + (1.0 - trend_factor) * trend;
        }
        let next = factor * value + (1.0 - factor) * (smoothed + trend);
        (before, smoothed) = (smoothed, next);
    }
    smoothed
}

/// How the area between two samples is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quadrature {
    Left,
    Right,
    Trapezoidal,
}

/// The area below the samples, in units of value times seconds; NaN counts as zero.
pub(super) fn integral(window: &Window<'_>, quadrature: Quadrature) -> f64 {
    let or_zero = |value: f64| if value.is_nan() { 0.0 } else { value };
    let mut sum = KahanSum::default();
    let pairs = window.values.windows(2).zip(window.timestamps.windows(2));
    for (values, times) in pairs {
        let (before, after) = (or_zero(values[0]), or_zero(values[1]));
        let height = match quadrature {
            Quadrature::Left => KahanSum {
                sum: before,
                lost: 0.0,
            },
            Quadrature::Right => KahanSum {
                sum: after,
                lost: 0.0,
            },
            Quadrature::Trapezoidal => midpoint(before, after),
        };
        if height.sum != 0.0 || height.lost != 0.0 {
            let seconds = (times[1] - times[0]) as f64 / 1000.0;
            sum.lost += height.lost * seconds;
            sum.add(height.sum * seconds);
        }
    }
    if sum.sum.is_infinite() {
        sum.sum
    } else {
        sum.total()
    }
}

fn midpoint(before: f64, after: f64) -> KahanSum {
    let sum_of = |first: f64, second: f64| {
        let mut sum = KahanSum {
            sum: first,
            lost: 0.0,
        };
        sum.add(second);
        sum
    };
    let sum = sum_of(before, after);
    if sum.sum.is_infinite() && before.is_finite() && after.is_finite() {
        return sum_of(before / 2.0, after / 2.0);
    }
    KahanSum {
        sum: sum.sum / 2.0,
        lost: sum.lost / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::Summary;
    use proptest::prelude::*;

    /// A value of a sample, some of which are no ordinary numbers.
    fn value() -> impl Strategy<Value = f64> {
        let odd = [
            0.0,
            -0.0,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::MAX,
            1e-300,
            1e16,
        ];
        prop_oneof![6 => -1e3..1e3, 1 => prop::sample::select(odd.to_vec())]
    }

    proptest! {
        #[test]
        fn windows_that_are_summed_together_have_their_own_sums(
            values in prop::collection::vec(value(), 40),
            windows in prop::collection::vec((0_usize..40, 0_usize..12), 0..12),
        ) {
            let windows: Vec<_> = windows
                .iter()
                .map(|(first, len)| (*first, (first + len).min(40)))
                .collect();
            for summary in [Summary::Sum, Summary::Average] {
                let mut row = vec![1.0; windows.len()];
                summary.write(&values, &windows, &mut row);
                for ((first, end), found) in windows.iter().zip(&row) {
                    let expected = summary.alone(&values[*first..*end]);
                    prop_assert_eq!(found.to_bits(), expected.to_bits());
                }
            }
        }
    }
}
