//! Quantiles of latencies, in a histogram with three significant digits.

use hdrhistogram::Histogram;

/// Latencies above this count as this long: ten minutes.
const NANOSECONDS_MAX: u64 = 600_000_000_000;
const DIGITS: u8 = 3;

/// Collects latencies.
#[derive(Debug, Clone)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    /// None yet.
    fn default() -> Latencies {
        Latencies(
            Histogram::new_with_bounds(1, NANOSECONDS_MAX, DIGITS)
                .expect("constants within the crate's bounds"),
        )
    }
}

impl Latencies {
    /// Adds one, in nanoseconds.
    pub fn add(&mut self, nanoseconds: u64) {
        self.0.saturating_record(nanoseconds.max(1));
    }

    /// Adds all of another.
    pub fn add_all(&mut self, other: &Latencies) {
        // Both have the same bounds, so nothing is out of range.
        let _ = self.0.add(&other.0);
    }

    /// The figures.
    pub fn summary(&self) -> Latency {
        let milliseconds = |nanoseconds: u64| nanoseconds as f64 / 1e6;
        let at = |quantile| milliseconds(self.0.value_at_quantile(quantile));
        Latency {
            count: self.0.len(),
            min: milliseconds(self.0.min()),
            mean: self.0.mean() / 1e6,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: milliseconds(self.0.max()),
        }
    }
}

/// Latencies in milliseconds; zeros when there are none.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Latency {
    /// How many.
    pub count: u64,
    /// The shortest.
    pub min: f64,
    /// Their mean.
    pub mean: f64,
    /// Their median.
    pub p50: f64,
    /// Nine of ten are at most so long.
    pub p90: f64,
    /// 99 of 100.
    pub p99: f64,
    /// 999 of 1000.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_a_thousandth() {
        let mut latencies = Latencies::default();
        (1..=10_000u64).for_each(|count| latencies.add(count * 1000));
        let mut other = Latencies::default();
        other.add(3_600_000_000_000);
        latencies.add_all(&other);
        let summary = latencies.summary();
        let close = |value: f64, wanted: f64| (value / wanted - 1.0).abs() < 2e-3;
        assert_eq!(summary.count, 10_001);
        assert!(
            close(summary.p50, 5.0) && close(summary.p99, 9.9) && close(summary.p999, 9.99),
            "{summary:?}"
        );
        assert!(
            close(summary.max, 600_000.0) && close(summary.min, 0.001),
            "{summary:?}"
        );
    }

    #[test]
    fn none_are_zeros() {
        assert_eq!(Latencies::default().summary(), Latency::default());
    }
}
