//! Samples of series: reads of the source, the latest sample of each step, and smoothed ones.

use super::window::{WindowShape, Windows};
use super::{Evaluator, Row, Sink, extended};
use crate::ast::Extension;
use crate::error::{Error, LimitError};
use crate::grid::Grid;
use crate::labels::Labels;
use crate::plan::SelectorNode;
use crate::profile::Part;
use crate::sample::{ABSENT, is_stale, ordinary};
use crate::source::{Samples, Selection, SeriesSink};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Series that several selectors need, by the place of their read.
pub(super) type SharedReads = RefCell<HashMap<usize, Rc<Vec<HeldSeries>>>>;

/// A series that is held.
pub(super) struct HeldSeries {
    labels: Labels,
    timestamps: Vec<i64>,
    values: Vec<f64>,
}

impl Evaluator<'_> {
    /// Hands on the series of a read, from memory if it is shared and has been read.
    pub(super) fn read(&self, place: usize, each: SeriesSink<'_>) -> Result<(), Error> {
        if self.plan.reads[place].uses < 2 {
            return self.read_source(place, each);
        }
        let held = self.shared.borrow().get(&place).cloned();
        let held = match held {
            Some(held) => held,
            None => {
                let held = Rc::new(self.hold_read(place)?);
                self.shared.borrow_mut().insert(place, held.clone());
                held
            }
        };
        for series in held.iter() {
            let samples = Samples {
                timestamps: &series.timestamps,
                values: &series.values,
            };
            self.work(1)?;
            each(&series.labels, samples)?;
        }
        Ok(())
    }

    fn hold_read(&self, place: usize) -> Result<Vec<HeldSeries>, Error> {
        let mut held = Vec::new();
        self.read_source(place, &mut |labels, samples| {
            let bytes = size_of_val(samples.timestamps) + size_of_val(samples.values);
            self.hold(labels.bytes() + bytes)?;
            held.push(HeldSeries {
                labels: labels.clone(),
                timestamps: samples.timestamps.to_vec(),
                values: samples.values.to_vec(),
            });
            Ok(())
        })?;
        Ok(held)
    }

    fn read_source(&self, place: usize, each: SeriesSink<'_>) -> Result<(), Error> {
        let read = &self.plan.reads[place];
        let selection = Selection {
            matchers: &read.matchers,
            start: read.start,
            end: read.end,
        };
        let Some(profile) = self.profile else {
            return self.read_selection(&selection, each);
        };
        let part = Part::Read(place);
        let before = self.source.counters();
        let result = profile.within(part, |around| {
            self.read_selection(&selection, &mut |labels, samples| {
                profile.count_series(part, samples.values.len());
                profile.outside(around, || each(labels, samples))
            })
        });
        profile.count_source(part, &before, &self.source.counters());
        result
    }

    /// Hands on the series of a selection and counts them against the limits.
    pub(super) fn read_selection(
        &self,
        selection: &Selection<'_>,
        each: SeriesSink<'_>,
    ) -> Result<(), Error> {
        (self.interrupt)()?;
        let (counts, limits) = (&self.counts, &self.options.limits);
        self.source.read(selection, &mut |labels, samples| {
            counts.series.set(counts.series.get() + 1);
            counts
                .samples
                .set(counts.samples.get() + samples.values.len() as u64);
            if counts.series.get() > limits.series_max {
                return Err(LimitError::Series(limits.series_max).into());
            }
            if counts.samples.get() > limits.samples_max {
                return Err(LimitError::Samples(limits.samples_max).into());
            }
            self.work(samples.values.len() / 4 + 100)?;
            each(labels, samples)
        })
    }

    /// A row of the latest samples of each series.
    pub(super) fn latest(
        &self,
        selector: &SelectorNode,
        grid: Grid,
        sink: Sink<'_>,
    ) -> Result<(), Error> {
        self.latest_mapped(selector, grid, sink, |_, value| ordinary(value))
    }

    /// A row of each series, of a function of the time and value of the latest samples.
    pub(super) fn latest_mapped(
        &self,
        selector: &SelectorNode,
        grid: Grid,
        sink: Sink<'_>,
        function: impl Fn(i64, f64) -> f64,
    ) -> Result<(), Error> {
        let mut row = vec![ABSENT; grid.count];
        let mut windows = Windows::default();
        let shape = WindowShape {
            grid,
            time: selector.time,
            range: self.options.lookback_delta,
            before: 0,
            after: 0,
        };
        self.read(selector.read, &mut |labels, samples| {
            let mut is_empty = true;
            if selector.extension == Some(Extension::Smoothed) {
                is_empty = self.smoothed(selector, grid, samples, &mut row, &mut windows)?;
            } else {
                let columns = (samples.timestamps, samples.values);
                shape.map(self, columns, &mut row, &mut windows, |window| {
                    let last = window.values.len() - 1;
                    if is_stale(window.values[last]) {
                        return ABSENT;
                    }
                    is_empty = false;
                    function(window.timestamps[last], window.values[last])
                })?;
            }
            if is_empty {
                return Ok(());
            }
            sink(Row {
                labels,
                drops_name: false,
                values: &mut row,
            })
        })
    }

    /// Writes the row of a series whose values are interpolated between samples.
    fn smoothed(
        &self,
        selector: &SelectorNode,
        grid: Grid,
        samples: Samples<'_>,
        row: &mut [f64],
        windows: &mut Windows,
    ) -> Result<bool, Error> {
        let lookback = self.options.lookback_delta;
        let shape = WindowShape {
            grid,
            time: selector.time,
            range: 0,
            before: lookback,
            after: lookback,
        };
        let mut is_empty = true;
        let mut fresh = FreshSamples::default();
        shape.map(self, fresh.of(samples), row, windows, |window| {
            let value = extended::smoothed_value(&window);
            is_empty &= crate::sample::is_absent(value);
            value
        })?;
        Ok(is_empty)
    }
}

/// Samples without stale markers: ranges do not see them.
#[derive(Debug, Default)]
pub(super) struct FreshSamples {
    timestamps: Vec<i64>,
    values: Vec<f64>,
}

impl FreshSamples {
    /// The samples without stale markers; the columns themselves if they have none.
    pub(super) fn of<'s>(&'s mut self, samples: Samples<'s>) -> (&'s [i64], &'s [f64]) {
        let stale = |values: &[f64]| {
            values
                .iter()
                .fold(false, |any, value| any | is_stale(*value))
        };
        if !samples.values.chunks(256).any(stale) {
            return (samples.timestamps, samples.values);
        }
        self.timestamps.clear();
        self.values.clear();
        let pairs = samples.timestamps.iter().zip(samples.values);
        for (time, value) in pairs.filter(|(_, value)| !is_stale(**value)) {
            self.timestamps.push(*time);
            self.values.push(*value);
        }
        (&self.timestamps, &self.values)
    }
}
