//! Reads the samples of series into columns.
//!
//! The samples come from a statement on `lanes.samples`. If its plan is a scan of this extension, which it is unless
//! row-level security adds conditions that the scan does not cover, the samples are copied from vectors: a stretch of
//! rows of one series at a time. Any other plan returns row by row.

use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::selection::Selection;
use pgrx::pg_sys::BuiltinOid::{INT4ARRAYOID, INT4OID, TIMESTAMPTZOID};
use pgrx::prelude::*;

use super::columns::SeriesColumns;
use super::times;
use crate::joins::by_key::vector_child::{ColumnSource, VectorChild};
use crate::nodes::hash_join::column_child;
use crate::nodes::scan::state::counters_of;
use crate::pg::exec::child::Child;
use crate::pg::statement::{OwnedArgument, Statement};
use crate::vectors::counters::Counters;

/// The samples of single series in a range of times. The scan searches sealed rows for the ids when it starts, so its
/// plan does not depend on them.
static OF_SERIES: Statement = Statement::reading(
    c"
    SELECT series, ts, value FROM lanes.samples
     WHERE series OPERATOR(pg_catalog.=) ANY ($3)
       AND ts OPERATOR(pg_catalog.>=) $1 AND ts OPERATOR(pg_catalog.<=) $2",
    &[TIMESTAMPTZOID, TIMESTAMPTZOID, INT4ARRAYOID],
)
.planned_once();

/// The samples of all series between two ids in a range of times.
static OF_RANGE: Statement = Statement::reading(
    c"
    SELECT series, ts, value FROM lanes.samples
     WHERE series OPERATOR(pg_catalog.>=) $3 AND series OPERATOR(pg_catalog.<=) $4
       AND ts OPERATOR(pg_catalog.>=) $1 AND ts OPERATOR(pg_catalog.<=) $2",
    &[TIMESTAMPTZOID, TIMESTAMPTZOID, INT4OID, INT4OID],
)
.planned_once();

/// The bytes of a row of `lanes.samples`: its time, series and value.
pub const ROW_BYTES: u64 = 20;

/// A range of ids is read as a whole if at least this share of its ids is requested. The samples of the others are
/// skipped, which takes less time than a search for each id.
const IDS_PER_REQUESTED: usize = 2;

/// The samples of some series. The next read uses the memory again.
#[derive(Debug, Default)]
pub struct SamplesRead {
    /// The ids, ascending.
    ids: Vec<i32>,
    /// The samples of each of these series.
    columns: SeriesColumns,
    /// The place of the series of the sample that was read last.
    last: usize,
    /// The largest number of samples that may be read.
    samples_max: usize,
    /// What the scan did.
    counters: Counters,
}

impl SamplesRead {
    /// Reads the samples of series from a first time up to a last one, in milliseconds. Returns whether these are not
    /// more than the largest number of samples; otherwise some are missing. The ids are ascending.
    pub fn read(
        &mut self,
        ids: impl Iterator<Item = u32>,
        start: i64,
        end: i64,
        samples_max: usize,
    ) -> bool {
        self.ids.clear();
        self.ids.extend(ids.map(|id| id as i32));
        self.columns.restart(self.ids.len());
        (self.last, self.samples_max) = (0, samples_max);
        self.counters = Counters::default();
        let (Some(first), Some(last)) = (self.ids.first().copied(), self.ids.last().copied())
        else {
            return true;
        };
        let times = [
            pg_sys::Datum::from(times::stored_of(start)),
            pg_sys::Datum::from(times::stored_of(end).saturating_add(999)),
        ];
        let span = last.abs_diff(first) as usize + 1;
        let is_complete = if span <= IDS_PER_REQUESTED * self.ids.len() {
            let bounds = [first, last].map(pg_sys::Datum::from);
            OF_RANGE.with_plan(&[times, bounds].concat(), |plan| self.read_plan(plan))
        } else if let Some(ids) = OwnedArgument::of(self.ids.clone()) {
            let arguments = [times[0], times[1], ids.datum()];
            OF_SERIES.with_plan(&arguments, |plan| self.read_plan(plan))
        } else {
            true
        };
        self.columns.finish();
        is_complete
    }

    /// The samples of each series that was requested.
    pub fn columns(&self) -> &SeriesColumns {
        &self.columns
    }

    /// What the scan of the samples did.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Reads a plan that returns series, times and values. Returns whether all of it was read.
    fn read_plan(&mut self, plan: Child) -> bool {
        if let Some((mut child, _)) = column_child::open(plan)
            && let [
                ColumnSource::Attribute(series),
                ColumnSource::Attribute(ts),
                ColumnSource::Attribute(value),
            ] = *child.sources()
        {
            let is_complete = self.read_vectors(child.as_mut(), [series, ts, value]);
            self.counters = counters_of(plan);
            return is_complete;
        }
        self.read_rows(plan)
    }

    /// Reads a plan that returns vectors.
    fn read_vectors(&mut self, child: &mut dyn VectorChild, attributes: [usize; 3]) -> bool {
        while let Some(rows) = child.next_rows(&mut []) {
            let columns = VectorColumns::of(&child.frame(&rows), attributes);
            self.add_vector(&columns, &rows.selection);
            if self.columns.samples() > self.samples_max {
                return false;
            }
        }
        true
    }

    /// Reads a plan row by row.
    fn read_rows(&mut self, plan: Child) -> bool {
        loop {
            let slot = plan.next_row_guarded();
            if slot.is_empty() {
                return true;
            }
            slot.read_all();
            self.counters.rows += 1;
            let columns = [0, 1, 2].map(|column| slot.value(column));
            let [Some(series), Some(ts), Some(value)] = columns else {
                continue;
            };
            if let Some(place) = self.place_of(series.value() as i32) {
                let value = f64::from_bits(value.value() as u64);
                self.columns.add(place, &[ts.value() as i64], &[value]);
            }
            if self.columns.samples() > self.samples_max {
                return false;
            }
        }
    }

    /// Adds the selected rows of a vector, a stretch of rows of one series at a time.
    fn add_vector(&mut self, columns: &VectorColumns<'_>, selection: &Selection) {
        for stretch in selection.stretches() {
            let mut from = stretch.start;
            while from < stretch.end {
                let series = columns.series[from];
                let to = end_of_series(&columns.series[..stretch.end], from);
                if let Some(place) = self.place_of(series) {
                    let (times, values) =
                        (&columns.timestamps[from..to], &columns.values[from..to]);
                    self.columns.add(place, times, values);
                }
                from = to;
            }
        }
    }

    /// The place of a series among the ids, if it was requested. Samples of one series mostly follow each other, and
    /// those of the next one come after them.
    fn place_of(&mut self, series: i32) -> Option<usize> {
        let next = self.last + 1;
        if self.ids.get(self.last) == Some(&series) {
        } else if self.ids.get(next) == Some(&series) {
            self.last = next;
        } else {
            self.last = self.search(series)?;
        }
        Some(self.last)
    }

    fn search(&self, series: i32) -> Option<usize> {
        // If all ids of a range are requested, the place is known without a search.
        let from_first = series.checked_sub(*self.ids.first()?)?;
        let guess = usize::try_from(from_first).ok()?;
        match self.ids.get(guess) {
            Some(id) if *id == series => Some(guess),
            _ => self.ids.binary_search(&series).ok(),
        }
    }
}

/// The columns of a vector of samples.
struct VectorColumns<'a> {
    series: &'a [i32],
    timestamps: &'a [i64],
    values: &'a [f64],
}

impl<'a> VectorColumns<'a> {
    /// The columns of the attributes series, time and value, whose types the statements fix. None of them is NULL.
    fn of(frame: &Frame<'a>, [series, ts, value]: [usize; 3]) -> VectorColumns<'a> {
        VectorColumns {
            series: frame.values(series).unwrap_or_default(),
            timestamps: frame.values(ts).unwrap_or_default(),
            values: frame.values(value).unwrap_or_default(),
        }
    }
}

/// The place after the rows from `from` on that are of one series.
fn end_of_series(series: &[i32], from: usize) -> usize {
    /// Rows that are compared without a branch for each.
    const BLOCK: usize = 32;
    let first = series[from];
    let is_first = |other: &&i32| **other == first;
    let mut to = from;
    for block in series[from..].chunks(BLOCK) {
        if !block.iter().fold(true, |all, other| all & is_first(&other)) {
            return to + block.iter().take_while(is_first).count();
        }
        to += block.len();
    }
    to
}

#[cfg(test)]
impl SamplesRead {
    /// A read whose columns are these.
    pub fn with_columns(columns: SeriesColumns) -> SamplesRead {
        SamplesRead {
            columns,
            ..SamplesRead::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_ends_where_the_series_ends() {
        for length in [1, 2, 31, 32, 33, 64, 100] {
            let mut series = vec![7; length];
            assert_eq!(end_of_series(&series, 0), length);
            series.extend([8, 7, 7]);
            for from in 0..length {
                assert_eq!(end_of_series(&series, from), length);
            }
            assert_eq!(end_of_series(&series, length), length + 1);
        }
    }
}
