//! `rate`, `increase`, `delta`, `irate` and `idelta`.
//!
//! As in Prometheus, the difference between the last and the first sample of a window is
//! extrapolated to its ends, unless the samples end well before them. Where a counter falls, it
//! has been reset, and the value before it is added. All resets of a series are found in one pass
//! over its values, so a window looks at its first and last sample and at its resets only.

use super::window::{Window, WindowShape, Windows};
use crate::sample::{ABSENT, is_absent};

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

    /// Whether the counter is never reset.
    fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The resets of a window, whose first sample cannot be one.
    #[inline(always)]
    fn within(&mut self, first: usize, end: usize) -> &[usize] {
        while self.passed < self.places.len() && self.places[self.passed] <= first {
            self.passed += 1;
        }
        let rest = &self.places[self.passed..];
        match rest.first() {
            Some(place) if *place < end => &rest[..rest.partition_point(|place| *place < end)],
            _ => &[],
        }
    }
}

/// Where the samples of a window lie: milliseconds from its start to the first one, from the last
/// one to its end, and between the two, and the number of samples less one.
type Spacing = (i64, i64, i64, usize);

/// The factors of extrapolation that follow from the spacing of a window's samples.
#[derive(Debug, Clone, Copy)]
struct Layout {
    /// Seconds to the start and to the end of the window, as far as they are extrapolated.
    to_start: f64,
    to_end: f64,
    /// Seconds between the first and the last sample.
    sampled: f64,
    /// The factor of the difference; [`ABSENT`] if the window has less than two samples.
    factor: f64,
}

/// Extrapolates differences of windows.
///
/// Series that are sampled together share their windows, and with these the layouts. Windows of
/// regular samples have one spacing, so within a series the layout is kept from one step to the
/// next: seven divisions a window become none as a rule. Each number is the one that the divisions
/// yield.
#[derive(Debug)]
pub(super) struct Extrapolation {
    is_counter: bool,
    /// Seconds that the difference is divided by; 0 for none.
    per_seconds: f64,
    /// The layout of each step's window.
    layouts: Vec<Layout>,
    /// [`Windows::generation`] of these windows.
    generation: u64,
}

impl Extrapolation {
    pub(super) fn new(is_counter: bool, per_seconds: f64) -> Extrapolation {
        Extrapolation {
            is_counter,
            per_seconds,
            layouts: Vec::new(),
            generation: 0,
        }
    }

    /// Writes the extrapolated difference of each window; of a counter with its resets.
    pub(super) fn write(
        &mut self,
        shape: &WindowShape,
        windows: &Windows,
        (timestamps, values): (&[i64], &[f64]),
        resets: &mut Resets,
        row: &mut [f64],
    ) {
        if self.generation != windows.generation() {
            self.generation = windows.generation();
            self.lay_out(shape, windows, timestamps);
        }
        let has_resets = self.is_counter && !resets.is_empty();
        let windows = windows.places().iter().zip(&self.layouts);
        for (out, ((first, end), layout)) in row.iter_mut().zip(windows) {
            if is_absent(layout.factor) {
                *out = ABSENT;
                continue;
            }
            let (first, end) = (*first, *end);
            let mut difference = values[end - 1] - values[first];
            if has_resets {
                let places = resets.within(first, end).iter();
                difference = places.fold(difference, |sum, place| sum + values[place - 1]);
            }
            *out = difference * self.factor_of(layout, values[first], difference);
        }
    }

    /// The factor of a difference.
    #[inline(always)]
    fn factor_of(&self, layout: &Layout, first: f64, difference: f64) -> f64 {
        // A counter is not extrapolated below zero. If it starts at no less than it grows by, it
        // was zero no later than all that is sampled before its first sample.
        let is_far_from_zero = first >= difference && layout.sampled >= layout.to_start;
        if self.is_counter && difference > 0.0 && first >= 0.0 && !is_far_from_zero {
            let to_zero = layout.sampled * (first / difference);
            if to_zero < layout.to_start {
                return self.factor(layout.sampled, to_zero, layout.to_end);
            }
        }
        layout.factor
    }

    #[inline(never)]
    fn lay_out(&mut self, shape: &WindowShape, windows: &Windows, timestamps: &[i64]) {
        let mut layouts = std::mem::take(&mut self.layouts);
        layouts.clear();
        let mut last = ((0, 0, 0, 0), self.layout((0, 0, 0, 0)));
        layouts.extend(windows.places().iter().enumerate().map(|(step, window)| {
            let (first, end) = *window;
            if end - first < 2 {
                return Layout {
                    factor: ABSENT,
                    ..last.1
                };
            }
            let (start_time, end_time) = shape.range_of(step);
            let (first_time, last_time) = (timestamps[first], timestamps[end - 1]);
            let spacing = (
                first_time - start_time,
                end_time - last_time,
                last_time - first_time,
                end - first - 1,
            );
            if spacing != last.0 {
                last = (spacing, self.layout(spacing));
            }
            last.1
        }));
        self.layouts = layouts;
    }

    fn layout(&self, (before, after, between, intervals): Spacing) -> Layout {
        let sampled = between as f64 / 1000.0;
        let average = sampled / intervals as f64;
        let threshold = average * 1.1;
        // Samples that end well before an end of the window are extrapolated by half an interval.
        let reach = |millis: i64| match millis as f64 / 1000.0 {
            seconds if seconds >= threshold => average / 2.0,
            seconds => seconds,
        };
        let (to_start, to_end) = (reach(before), reach(after));
        Layout {
            to_start,
            to_end,
            sampled,
            factor: self.factor(sampled, to_start, to_end),
        }
    }

    fn factor(&self, sampled: f64, to_start: f64, to_end: f64) -> f64 {
        let factor = match sampled {
            0.0 => 1.0,
            sampled => (sampled + to_start + to_end) / sampled,
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
        assert_eq!(resets.within(1, 11), [0; 0]);
        assert_eq!(resets.within(256, 1256), [257, 999]);
    }
}
