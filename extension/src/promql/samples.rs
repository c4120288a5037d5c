//! Reads the samples of series into columns.

use std::cmp::Ordering;
use std::collections::HashMap;

use pgrx::pg_sys::BuiltinOid::{INT4ARRAYOID, TIMESTAMPTZOID};
use pgrx::prelude::*;

use super::times;
use crate::pg::statement::{OwnedArgument, Statement};

/// The samples of series in a range of times. The plan is made for the ids, so the scan searches sealed rows for them.
static SAMPLES: Statement = Statement::reading(
    c"
    SELECT series, ts, value FROM lanes.samples
     WHERE series OPERATOR(pg_catalog.=) ANY ($1)
       AND ts OPERATOR(pg_catalog.>=) $2 AND ts OPERATOR(pg_catalog.<=) $3",
    &[INT4ARRAYOID, TIMESTAMPTZOID, TIMESTAMPTZOID],
)
.planned_with_values();

/// The samples of one series: two columns of one length.
#[derive(Debug, Default)]
pub struct SeriesColumns {
    /// Milliseconds since 1970.
    pub timestamps: Vec<i64>,
    /// The values.
    pub values: Vec<f64>,
}

impl SeriesColumns {
    /// Brings the samples into the order of their times, and leaves one of each time.
    fn put_in_order(&mut self) {
        if self.timestamps.is_sorted_by(|a, b| a < b) {
            return;
        }
        let times = self.timestamps.iter().copied();
        let mut samples: Vec<(i64, f64)> = times.zip(self.values.iter().copied()).collect();
        samples.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| precedence(b.1, a.1)));
        samples.dedup_by_key(|sample| sample.0);
        (self.timestamps, self.values) = samples.into_iter().unzip();
    }
}

/// Which of two samples of one time counts: the greater one. A number is greater than a NaN.
fn precedence(a: f64, b: f64) -> Ordering {
    let is_number = |value: f64| !value.is_nan();
    is_number(a)
        .cmp(&is_number(b))
        .then_with(|| a.total_cmp(&b))
}

/// The samples of some series, in the order in which the series are requested.
#[derive(Debug, Default)]
pub struct SamplesBatch {
    /// The columns of each series.
    pub series: Vec<SeriesColumns>,
    /// The number of samples.
    pub samples: usize,
}

impl SamplesBatch {
    /// Reads the samples of series from a first time up to a last one, in milliseconds. Returns `None` if there are more
    /// than the largest number of samples.
    pub fn read(ids: &[u32], start: i64, end: i64, samples_max: usize) -> Option<SamplesBatch> {
        let mut batch = SamplesBatch::default();
        batch.series.resize_with(ids.len(), SeriesColumns::default);
        let argument = OwnedArgument::of(ids.iter().map(|id| *id as i32).collect::<Vec<i32>>())?;
        let arguments = [
            argument.datum(),
            pg_sys::Datum::from(times::stored_of(start)),
            pg_sys::Datum::from(times::stored_of(end).saturating_add(999)),
        ];
        let places: HashMap<i32, usize> = ids.iter().map(|id| *id as i32).zip(0..).collect();
        // Rows of one series mostly follow each other.
        let mut current = (i32::MIN, usize::MAX);
        let mut is_complete = true;
        SAMPLES.each_slot(&arguments, |values, _| {
            let series = values[0].value() as i32;
            if series != current.0 {
                match places.get(&series) {
                    Some(place) => current = (series, *place),
                    None => return true,
                }
            }
            let columns = &mut batch.series[current.1];
            let time = times::millis_of(values[1].value() as i64);
            columns.timestamps.push(time);
            columns
                .values
                .push(f64::from_bits(values[2].value() as u64));
            batch.samples += 1;
            is_complete = batch.samples <= samples_max;
            is_complete
        });
        batch
            .series
            .iter_mut()
            .for_each(SeriesColumns::put_in_order);
        is_complete.then_some(batch)
    }
}
