//! `rate`, `increase`, `delta`, `irate` and `idelta`.
//!
//! As in Prometheus, the difference between the last and the first sample of a window is
//! extrapolated to its ends, unless the samples end well before them. Where a counter falls, it
//! has been reset, and the value before it is added. All resets of a series are found in one pass
//! over its values, so a window looks at its first and last sample and at its resets only.

use super::window::Window;
use crate::sample::ABSENT;

/// The places of the samples at which a counter is lower than at the one before.
#[derive(Debug, Default)]
pub(super) struct Resets {
    places: Vec<usize>,
    /// The first reset that the windows have not passed.
    passed: usize,
}

impl Resets {
    /// Finds the resets of a series, reusing memory.
    pub(super) fn find(&mut self, values: &[f64]) {
        self.places.clear();
        self.passed = 0;
        let mut start = 1;
        // Most stretches have no reset; they are compared without branches.
        while start < values.len() {
            let end = (start + 256).min(values.len());
            let (before, after) = (&values[start - 1..end - 1], &values[start..end]);
            let falls = before.iter().zip(after);
            if falls
                .clone()
                .fold(false, |any, (before, after)| any | (after < before))
            {
                let places = falls
                    .enumerate()
                    .filter(|(_, (before, after))| after < before);
                self.places.extend(places.map(|(place, _)| start + place));
            }
            start = end;
        }
    }

    /// The resets of a window, whose first sample cannot be one.
    #[inline(always)]
    fn within(&mut self, first: usize, len: usize) -> &[usize] {
        while self.passed < self.places.len() && self.places[self.passed] <= first {
            self.passed += 1;
        }
        let rest = &self.places[self.passed..];
        match rest.first() {
            Some(place) if *place < first + len => {
                &rest[..rest.partition_point(|place| *place < first + len)]
            }
            _ => &[],
        }
    }
}

/// The extrapolated difference of a window, of a counter if its resets are given; divided by
/// `per_seconds` unless that is 0.
#[inline(always)]
pub(super) fn extrapolated(
    window: &Window<'_>,
    resets: Option<&mut Resets>,
    per_seconds: f64,
) -> f64 {
    let last_place = window.values.len() - 1;
    if last_place == 0 {
        return ABSENT;
    }
    let (first, last) = (window.values[0], window.values[last_place]);
    let is_counter = resets.is_some();
    let mut difference = last - first;
    if let Some(resets) = resets {
        for place in resets.within(window.first, window.values.len()) {
            difference += window.values[place - window.first - 1];
        }
    }
    let (first_time, last_time) = (window.timestamps[0], window.timestamps[last_place]);
    let mut to_start = (first_time - window.start) as f64 / 1000.0;
    let mut to_end = (window.end - last_time) as f64 / 1000.0;
    let sampled = (last_time - first_time) as f64 / 1000.0;
    let average = sampled / last_place as f64;
    let threshold = average * 1.1;
    if to_start >= threshold {
        to_start = average / 2.0;
    }
    // A counter is not extrapolated below zero.
    if is_counter && difference > 0.0 && first >= 0.0 {
        let to_zero = sampled * (first / difference);
        if to_zero < to_start {
            to_start = to_zero;
        }
    }
    if to_end >= threshold {
        to_end = average / 2.0;
    }
    let mut factor = 1.0;
    if sampled != 0.0 {
        factor = (sampled + to_start + to_end) / sampled;
    }
    if per_seconds != 0.0 {
        factor /= per_seconds;
    }
    difference * factor
}

/// The difference of the last two samples; of a counter a second.
#[inline(always)]
pub(super) fn instant(window: &Window<'_>, is_rate: bool) -> f64 {
    let len = window.values.len();
    if len < 2 {
        return ABSENT;
    }
    let (before, last) = (window.values[len - 2], window.values[len - 1]);
    let interval = window.timestamps[len - 1] - window.timestamps[len - 2];
    if interval == 0 {
        return ABSENT;
    }
    if !is_rate {
        return last - before;
    }
    let difference = if last < before { last } else { last - before };
    difference / (interval as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::Resets;

    #[test]
    fn resets_are_found_across_stretches() {
        let mut values: Vec<f64> = (0..1000).map(f64::from).collect();
        for place in [1, 256, 257, 999] {
            values[place] = -1.0 - place as f64;
        }
        let mut resets = Resets::default();
        resets.find(&values);
        assert_eq!(resets.places, [1, 256, 257, 999]);
        assert_eq!(resets.within(0, 257), [1, 256]);
        assert_eq!(resets.within(1, 10), [0; 0]);
        assert_eq!(resets.within(256, 1000), [257, 999]);
    }
}
