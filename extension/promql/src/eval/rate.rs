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

/// Where the samples of a window lie: milliseconds from its start to the first one, from the last
/// one to its end, and between the two, and the number of samples.
type Layout = (i64, i64, i64, usize);

/// Extrapolates differences of windows.
///
/// Windows of regular samples lie alike, so what follows from their layout alone is kept from one
/// to the next: seven divisions a window become none as a rule. Each number is the one that the
/// divisions yield.
#[derive(Debug)]
pub(super) struct Extrapolation {
    is_counter: bool,
    /// Seconds that the difference is divided by; 0 for none.
    per_seconds: f64,
    layout: Layout,
    /// Seconds of the layout, those to the start and end as far as they are extrapolated.
    to_start: f64,
    to_end: f64,
    sampled: f64,
    /// What the difference is multiplied by.
    factor: f64,
}

impl Extrapolation {
    pub(super) fn new(is_counter: bool, per_seconds: f64) -> Extrapolation {
        Extrapolation {
            is_counter,
            per_seconds,
            layout: (0, 0, 0, 0),
            to_start: 0.0,
            to_end: 0.0,
            sampled: 0.0,
            factor: 1.0,
        }
    }

    /// The extrapolated difference of a window; of a counter with its resets.
    #[inline(always)]
    pub(super) fn of(&mut self, window: &Window<'_>, resets: &mut Resets) -> f64 {
        let last_place = window.values.len() - 1;
        if last_place == 0 {
            return ABSENT;
        }
        let (first, last) = (window.values[0], window.values[last_place]);
        let mut difference = last - first;
        if self.is_counter {
            for place in resets.within(window.first, window.values.len()) {
                difference += window.values[place - window.first - 1];
            }
        }
        let (first_time, last_time) = (window.timestamps[0], window.timestamps[last_place]);
        let (before, after) = (first_time - window.start, window.end - last_time);
        let layout = (before, after, last_time - first_time, last_place);
        if layout != self.layout {
            self.lay_out(layout);
        }
        let mut factor = self.factor;
        // A counter is not extrapolated below zero. If it starts at no less than it grows by, it
        // was zero no later than all that is sampled before its first sample.
        let is_far_from_zero = first >= difference && self.sampled >= self.to_start;
        if self.is_counter && difference > 0.0 && first >= 0.0 && !is_far_from_zero {
            let to_zero = self.sampled * (first / difference);
            if to_zero < self.to_start {
                factor = self.factor(to_zero);
            }
        }
        difference * factor
    }

    #[inline(never)]
    fn lay_out(&mut self, layout: Layout) {
        let (before, after, between, intervals) = layout;
        self.layout = layout;
        self.sampled = between as f64 / 1000.0;
        let average = self.sampled / intervals as f64;
        let threshold = average * 1.1;
        // Samples that end well before an end of the window are extrapolated by half an interval.
        let reach = |millis: i64| match millis as f64 / 1000.0 {
            seconds if seconds >= threshold => average / 2.0,
            seconds => seconds,
        };
        (self.to_start, self.to_end) = (reach(before), reach(after));
        self.factor = self.factor(self.to_start);
    }

    fn factor(&self, to_start: f64) -> f64 {
        let factor = match self.sampled {
            0.0 => 1.0,
            sampled => (sampled + to_start + self.to_end) / sampled,
        };
        match self.per_seconds {
            0.0 => factor,
            seconds => factor / seconds,
        }
    }
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
