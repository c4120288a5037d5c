//! Quantiles of latencies, in a histogram with three significant digits.

use hdrhistogram::Histogram;

/// The greatest latency that is recorded: ten minutes. Longer ones count as this long.
const NANOSECONDS_MAX: u64 = 600_000_000_000;
const DIGITS: u8 = 3;

/// A collection of latencies.
#[derive(Debug, Clone)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    /// Creates an empty collection.
    fn default() -> Latencies {
        Latencies(
            Histogram::new_with_bounds(1, NANOSECONDS_MAX, DIGITS)
                .expect("constants within the crate's bounds"),
        )
    }
}

impl Latencies {
    /// Adds a latency in nanoseconds.
    pub fn add(&mut self, nanoseconds: u64) {
        self.0.saturating_record(nanoseconds.max(1));
    }

    /// Adds all latencies of another collection.
    pub fn add_all(&mut self, other: &Latencies) {
        // Both have the same bounds, so no value is out of range.
        let _ = self.0.add(&other.0);
    }

    /// Returns the quantiles.
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

/// Latencies in milliseconds. All are zero if there are none.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Latency {
    /// The number of latencies.
    pub count: u64,
    /// The shortest latency.
    pub min: f64,
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// The 90th percentile.
    pub p90: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The 99.9th percentile.
    pub p999: f64,
    /// The longest latency.
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
    fn an_empty_collection_has_zero_quantiles() {
        assert_eq!(Latencies::default().summary(), Latency::default());
    }
}
