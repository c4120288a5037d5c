//! The growth of a figure over the rows of a long run.

/// Returns the growth of a figure from the first to the last point `(time, figure)`, along the
/// least-squares line and relative to the figure's mean. Returns `None` for fewer than two times,
/// or if the figures are zero.
pub fn growth(points: &[(f64, f64)]) -> Option<f64> {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (time, figure) = (mean(|point| point.0), mean(|point| point.1));
    let spread: f64 = points.iter().map(|point| (point.0 - time).powi(2)).sum();
    if spread <= 0.0 || figure == 0.0 {
        return None;
    }
    let together: f64 = points
        .iter()
        .map(|point| (point.0 - time) * (point.1 - figure))
        .sum();
    let (first, last) = points
        .iter()
        .fold((f64::MAX, f64::MIN), |(first, last), point| {
            (first.min(point.0), last.max(point.0))
        });
    Some(together / spread * (last - first) / figure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_that_of_the_fitted_line() {
        let flat = [(1.0, 5.0), (2.0, 5.0), (3.0, 5.0)];
        let doubled = [(10.0, 100.0), (20.0, 150.0), (30.0, 200.0)];
        let noisy = [(0.0, 9.0), (1.0, 11.0), (2.0, 11.0), (3.0, 9.0)];
        assert_eq!(growth(&flat), Some(0.0));
        assert!((growth(&doubled).unwrap() - 100.0 / 150.0).abs() < 1e-12);
        assert!(growth(&noisy).unwrap().abs() < 1e-12);
        assert_eq!(growth(&[(1.0, 2.0)]), None);
        assert_eq!(growth(&[]), None);
        assert_eq!(growth(&[(1.0, 0.0), (2.0, 0.0)]), None);
    }
}
