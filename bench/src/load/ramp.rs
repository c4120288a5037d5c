//! The lowest load that reaches 95 % of the peak. Beyond it, more load only adds latency. The peak
//! is where the rate falls, not where it rises slowly: many clients make larger batches, so
//! doubling the load may add a third at one step and double the rate at the next.

/// The share of the peak that counts as reaching it.
pub const PEAK_SHARE: f64 = 0.95;

/// Returns the index of the step with the lowest load whose throughput is at least 95 % of the best
/// one. Steps are (load, throughput) in any order. Returns `None` if there are no steps.
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

/// Whether a climb through ascending loads goes on: its throughput has not been below its best for
/// two steps. A single step may be chance.
pub fn goes_on(steps: &[(f64, f64)]) -> bool {
    let best = steps
        .iter()
        .enumerate()
        .max_by(|(_, left), (_, right)| left.1.total_cmp(&right.1));
    best.is_none_or(|(place, _)| steps.len() - place <= 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_climb_ends_where_the_rate_falls_twice_and_not_where_it_rises_slowly() {
        let rates = |rates: &[f64]| -> Vec<(f64, f64)> {
            let steps = rates.iter().enumerate();
            steps.map(|(place, rate)| (place as f64, *rate)).collect()
        };
        assert!(goes_on(&[]));
        assert!(goes_on(&rates(&[10.0, 20.0, 20.5, 20.6])));
        assert!(goes_on(&rates(&[10.0, 20.0, 19.0])));
        assert!(goes_on(&rates(&[10.0, 20.0, 19.0, 40.0, 39.0])));
        assert!(!goes_on(&rates(&[10.0, 20.0, 19.0, 18.0])));
    }

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
