//! Least squares: `deriv` and `predict_linear`.

use super::go::KahanSum;
use super::window::Window;

/// The slope a second, and the value at a time, of the line through samples.
pub(super) fn line(window: &Window<'_>, at: i64) -> (f64, f64) {
    let first = window.values[0];
    if window.values.iter().all(|value| *value == first) {
        return match first.is_infinite() {
            true => (f64::NAN, f64::NAN),
            false => (0.0, first),
        };
    }
    let mut sums = [KahanSum::default(); 4];
    for (time, value) in window.timestamps.iter().zip(window.values) {
        let x = (time - at) as f64 / 1000.0;
        for (sum, term) in sums.iter_mut().zip([x, *value, x * value, x * x]) {
            sum.add(term);
        }
    }
    let [x, y, xy, xx] = sums.map(|sum| sum.total());
    let count = window.values.len() as f64;
    let covariance = xy - x * y / count;
    let variance = xx - x * x / count;
    let slope = covariance / variance;
    (slope, y / count - slope * x / count)
}
