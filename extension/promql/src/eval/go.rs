//! Arithmetic that has to round and order as Go's does.

/// Go's `math.Max`: infinity wins over NaN, NaN over numbers, and 0 over -0.
pub(crate) fn max(a: f64, b: f64) -> f64 {
    if a == f64::INFINITY || b == f64::INFINITY {
        return f64::INFINITY;
    }
    if a.is_nan() || b.is_nan() {
        return f64::NAN;
    }
    if a == 0.0 && b == 0.0 {
        return if a.is_sign_negative() { b } else { a };
    }
    if a > b { a } else { b }
}

/// Go's `math.Min`: negative infinity wins over NaN, NaN over numbers.
pub(crate) fn min(a: f64, b: f64) -> f64 {
    -max(-a, -b)
}

/// A sum with the part of it that rounding has taken (Kahan's, as improved by Neumaier).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct KahanSum {
    pub(crate) sum: f64,
    pub(crate) lost: f64,
}

impl KahanSum {
    /// Adds a number.
    #[inline(always)]
    pub(crate) fn add(&mut self, value: f64) {
        let total = self.sum + value;
        // Branches that are guessed right are faster here than selections in one long chain.
        if total.is_infinite() {
            self.lost = 0.0;
        } else if self.sum.abs() >= value.abs() {
            self.lost += (self.sum - total) + value;
        } else {
            self.lost += (value - total) + self.sum;
        }
        self.sum = total;
    }

    /// The sum.
    pub(crate) fn total(&self) -> f64 {
        self.sum + self.lost
    }
}

/// A heap as Go's `container/heap` keeps it, so that of equal elements the same ones stay.
/// `less` orders elements; the least one is at the front.
pub(crate) struct Heap<'h, T> {
    pub(crate) items: &'h mut Vec<T>,
}

impl<T> Heap<'_, T> {
    pub(crate) fn push(&mut self, item: T, less: impl Fn(&T, &T) -> bool) {
        self.items.push(item);
        let mut child = self.items.len() - 1;
        while child > 0 {
            let parent = (child - 1) / 2;
            if !less(&self.items[child], &self.items[parent]) {
                break;
            }
            self.items.swap(child, parent);
            child = parent;
        }
    }

    /// Replaces the least element.
    pub(crate) fn replace_least(&mut self, item: T, less: impl Fn(&T, &T) -> bool) {
        self.items[0] = item;
        let (mut parent, len) = (0, self.items.len());
        loop {
            let mut child = 2 * parent + 1;
            if child >= len {
                break;
            }
            if child + 1 < len && less(&self.items[child + 1], &self.items[child]) {
                child += 1;
            }
            if !less(&self.items[child], &self.items[parent]) {
                break;
            }
            self.items.swap(parent, child);
            parent = child;
        }
    }
}

/// The quantile of values, which are sorted for it: NaN first, as in Prometheus.
pub(crate) fn quantile(quantile: f64, values: &mut [f64]) -> f64 {
    if values.is_empty() || quantile.is_nan() {
        return f64::NAN;
    }
    if quantile < 0.0 {
        return f64::NEG_INFINITY;
    }
    if quantile > 1.0 {
        return f64::INFINITY;
    }
    let by_value = |a: &f64, b: &f64| match (a.is_nan(), b.is_nan()) {
        (true, true) => std::cmp::Ordering::Equal,
        (true, false) => std::cmp::Ordering::Less,
        (false, true) => std::cmp::Ordering::Greater,
        (false, false) => a.total_cmp(b),
    };
    values.sort_unstable_by(by_value);
    let last = values.len() - 1;
    let rank = quantile * last as f64;
    let lower = rank.floor().max(0.0) as usize;
    let upper = (lower + 1).min(last);
    let weight = rank - rank.floor();
    if weight == 0.0 {
        return values[lower];
    }
    values[lower] * (1.0 - weight) + values[upper] * weight
}

#[cfg(test)]
mod tests {
    use super::{KahanSum, max, min, quantile};

    #[test]
    fn sums_keep_what_rounding_takes() {
        let mut sum = KahanSum::default();
        for value in [1.0, 1e100, 1.0, -1e100] {
            sum.add(value);
        }
        assert_eq!(sum.total(), 2.0);
    }

    #[test]
    fn extremes_and_quantiles_treat_nan_as_go_does() {
        assert!(max(f64::NAN, 1.0).is_nan() && min(1.0, f64::NAN).is_nan());
        assert_eq!(max(f64::NAN, f64::INFINITY), f64::INFINITY);
        for (a, b) in [(0.0, -0.0), (-0.0, 0.0)] {
            assert!(max(a, b).is_sign_positive() && min(a, b).is_sign_negative());
        }
        assert_eq!(quantile(0.5, &mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(quantile(0.25, &mut [1.0, 2.0]), 1.25);
        assert!(quantile(0.0, &mut [1.0, f64::NAN]).is_nan());
        assert_eq!(quantile(1.5, &mut [1.0]), f64::INFINITY);
    }
}
