//! The lowest load that reaches 95 % of the peak: past it, more load buys latency and nothing else.

/// The share of the peak that counts as reaching it.
pub const PEAK_SHARE: f64 = 0.95;

/// The index of the step with the lowest load whose throughput is at least 95 % of the best one's. Steps are (load, throughput) in any
/// order; `None` when there are none.
pub fn lowest_at_peak(steps: &[(f64, f64)]) -> Option<usize> {
    let peak = steps
        .iter()
        .map(|(_, throughput)| *throughput)
        .fold(f64::NEG_INFINITY, f64::max);
    let reaches = steps
        .iter()
        .enumerate()
        .filter(|(_, (_, throughput))| *throughput >= PEAK_SHARE * peak);
    reaches
        .min_by(|(_, left), (_, right)| left.0.total_cmp(&right.0))
        .map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_knee_is_found() {
        let steps = [
            (1.0, 10.0),
            (2.0, 20.0),
            (4.0, 39.0),
            (8.0, 40.0),
            (16.0, 36.0),
        ];
        assert_eq!(lowest_at_peak(&steps), Some(2));
        assert_eq!(lowest_at_peak(&[(8.0, 40.0), (4.0, 37.0)]), Some(0));
        assert_eq!(lowest_at_peak(&[]), None);
    }
}
