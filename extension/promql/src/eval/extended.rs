//! Anchored and smoothed ranges: the values at the ends of a range are those of the samples
//! before them, or are interpolated between the samples around them.

use super::window::Window;
use crate::ast::Extension;
use crate::sample::{ABSENT, ordinary};

/// The value at a time on the line between two samples. A counter that falls begins at zero.
fn interpolate(before: (i64, f64), after: (i64, f64), time: i64, is_counter: bool) -> f64 {
    let start = if is_counter && after.1 < before.1 {
        0.0
    } else {
        before.1
    };
    start + (after.1 - start) * (time - before.0) as f64 / (after.0 - before.0) as f64
}

fn sample(window: &Window<'_>, place: usize) -> (i64, f64) {
    (window.timestamps[place], window.values[place])
}

/// The value of a smoothed selector at the end of a window that reaches beyond it.
pub(super) fn smoothed_value(window: &Window<'_>) -> f64 {
    let time = window.end;
    let next = window.timestamps.partition_point(|at| *at < time);
    let value = match (next.checked_sub(1), window.timestamps.get(next)) {
        (_, Some(at)) if *at == time => window.values[next],
        (None, _) => return ABSENT,
        (Some(before), Some(_)) => {
            interpolate(sample(window, before), sample(window, next), time, false)
        }
        (Some(before), None) => window.values[before],
    };
    ordinary(value)
}

/// The samples that take part: the first one at or before the start of the range, if there is
/// one, and the last one; of a smoothed range the first one at or after its end.
fn ends(window: &Window<'_>, is_smoothed: bool) -> Option<(usize, usize)> {
    let mut last = window.values.len() - 1;
    let times = &window.timestamps[..last];
    let first = times
        .partition_point(|at| *at <= window.start)
        .saturating_sub(1);
    if is_smoothed {
        last = times.partition_point(|at| *at < window.end);
    }
    let outside = window.timestamps[last] <= window.start
        || is_smoothed && window.timestamps[first] > window.end;
    (!outside).then_some((first, last))
}

fn left_value(window: &Window<'_>, first: usize, is_smoothed: bool, is_counter: bool) -> f64 {
    let sampled = sample(window, first);
    match sampled.0 < window.start && is_smoothed {
        true => interpolate(sampled, sample(window, first + 1), window.start, is_counter),
        false => sampled.1,
    }
}

fn right_value(window: &Window<'_>, last: usize, is_smoothed: bool, is_counter: bool) -> f64 {
    let sampled = sample(window, last);
    if sampled.0 <= window.end || last == 0 {
        return sampled.1;
    }
    let before = sample(window, last - 1);
    match is_smoothed {
        true => interpolate(before, sampled, window.end, is_counter),
        false => before.1,
    }
}

/// The difference of the values at the ends of a range, with the resets of a counter between
/// them; divided by `per_seconds` unless that is 0.
pub(super) fn difference(
    window: &Window<'_>,
    extension: Extension,
    is_counter: bool,
    per_seconds: f64,
) -> f64 {
    let is_smoothed = extension == Extension::Smoothed;
    let Some((mut first, last)) = ends(window, is_smoothed) else {
        return ABSENT;
    };
    let left = left_value(window, first, is_smoothed, is_counter);
    let right = right_value(window, last, is_smoothed, is_counter);
    let mut result = right - left;
    if is_counter {
        first += usize::from(window.timestamps[first] <= window.start);
        let end = last + usize::from(window.timestamps[last] < window.end);
        let mut correction = 0.0;
        let mut before = left;
        for value in window
            .values
            .get(first..end)
            .unwrap_or_default()
            .iter()
            .chain([&right])
        {
            if *value < before {
                correction += before;
            }
            before = *value;
        }
        result += correction;
    }
    if per_seconds != 0.0 {
        result /= per_seconds;
    }
    result
}

/// The samples of an anchored range: the one at or before its start and all after it.
pub(super) fn anchored<'w>(window: &Window<'w>) -> Option<&'w [f64]> {
    let after = window.timestamps.partition_point(|at| *at <= window.start);
    let first = after.saturating_sub(1);
    (after < window.values.len()).then(|| &window.values[first..])
}

/// The samples of a range that is the result of a query, with those at its ends.
pub(super) fn extended_samples(window: &Window<'_>, extension: Extension) -> Vec<(i64, f64)> {
    let is_smoothed = extension == Extension::Smoothed;
    let mut last = window.values.len() - 1;
    let times = &window.timestamps[..last];
    let first = times
        .partition_point(|at| *at <= window.start)
        .saturating_sub(1);
    if is_smoothed {
        last = times.partition_point(|at| *at < window.end);
    }
    if window.timestamps[last] <= window.start {
        return Vec::new();
    }
    let mut samples = vec![(window.start, left_value(window, first, is_smoothed, false))];
    let inner = (first..=last).map(|place| sample(window, place));
    samples.extend(inner.filter(|(at, _)| *at > window.start && *at < window.end));
    samples.push((window.end, right_value(window, last, is_smoothed, false)));
    samples
}
