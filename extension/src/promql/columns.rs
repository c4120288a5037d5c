//! The samples of several series, as columns of times and values.
//!
//! Series that are scraped together have equal times. A series therefore begins with the times of another one, the
//! *leader*, and has times of its own only from the moment on at which they differ:
//!
//! ```text
//! series     times               values
//! 0          10 20 30 40         a b c d
//! 1          those of series 0   e f g h
//! 2          those of series 0   i j          the first two times of series 0
//! 3          11 21 31 41         k l m n
//! ```
//! Invariants: a leader has times of its own, and at least as many samples as each series that follows it. While
//! samples are added, times are those that PostgreSQL stores. Once the columns are finished, they are milliseconds
//! since 1970.

use lanes_promql::sample::precedence;
use lanes_promql::source::Samples;

use super::times;

/// The bytes of a sample in a column of times and a column of values.
pub const SAMPLE_BYTES: usize = 16;

/// The samples of one series.
#[derive(Debug, Default)]
struct Column {
    /// The times, unless a leader has them.
    times: Vec<i64>,
    values: Vec<f64>,
    /// The series that has the times.
    leader: Option<usize>,
}

/// The samples of several series, each by its place.
#[derive(Debug, Default)]
pub struct SeriesColumns {
    /// The columns of the series in use, and possibly further columns, which are empty.
    columns: Vec<Column>,
    /// The series in use.
    series: usize,
    /// The series that got times of its own last, and so may lead the next ones.
    leader: Option<usize>,
    /// The number of samples.
    samples: usize,
}

impl SeriesColumns {
    /// Removes all samples, and makes room for so many series. The memory of the columns is kept.
    pub fn restart(&mut self, series: usize) {
        for column in &mut self.columns {
            column.times.clear();
            column.values.clear();
            column.leader = None;
        }
        if self.columns.len() < series {
            self.columns.resize_with(series, Column::default);
        }
        (self.series, self.leader, self.samples) = (series, None, 0);
    }

    /// Adds samples to a series: as many times, as PostgreSQL stores them, as values.
    pub fn add(&mut self, place: usize, times: &[i64], values: &[f64]) {
        let before = self.columns[place].values.len();
        let leader = match before {
            0 => self.leader,
            _ => self.columns[place].leader,
        };
        let has_these = |leader: usize| {
            let of_leader = &self.columns[leader].times;
            leader != place && of_leader.get(before..before + times.len()) == Some(times)
        };
        let follows = leader.filter(|leader| has_these(*leader));
        if follows.is_none() {
            self.leave_leader(place);
            self.columns[place].times.extend_from_slice(times);
            if before == 0 {
                self.leader = Some(place);
            }
        }
        let column = &mut self.columns[place];
        column.leader = follows;
        column.values.extend_from_slice(values);
        self.samples += values.len();
    }

    /// Gives a series the times of its samples as its own.
    fn leave_leader(&mut self, place: usize) {
        let Some(leader) = self.columns[place].leader.take() else {
            return;
        };
        let mut times = std::mem::take(&mut self.columns[place].times);
        let samples = self.columns[place].values.len();
        times.extend_from_slice(&self.columns[leader].times[..samples]);
        self.columns[place].times = times;
    }

    /// Brings the samples of each series into the order of their times in milliseconds, and leaves one of each time.
    pub fn finish(&mut self) {
        let mut is_disordered = vec![false; self.series];
        for (column, is_disordered) in self.columns.iter_mut().zip(&mut is_disordered) {
            times::to_millis(&mut column.times);
            // Without a branch for each pair, most of which are in order.
            let pairs = column.times.iter().zip(column.times.iter().skip(1));
            *is_disordered = pairs.fold(false, |any, (one, next)| any | (one >= next));
        }
        for place in 0..self.series {
            // Sorting changes the times of a leader, so the series that follow it need theirs before.
            if self.columns[place]
                .leader
                .is_some_and(|leader| is_disordered[leader])
            {
                self.leave_leader(place);
                is_disordered[place] = true;
            }
        }
        let columns = self.columns.iter_mut().zip(is_disordered);
        columns
            .filter(|(_, is_disordered)| *is_disordered)
            .for_each(|(column, _)| column.put_in_order());
    }

    /// The number of samples that were added.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// The samples of each series.
    pub fn series(&self) -> impl Iterator<Item = Samples<'_>> {
        self.columns[..self.series].iter().map(|column| {
            let times = match column.leader {
                Some(leader) => &self.columns[leader].times,
                None => &column.times,
            };
            Samples {
                timestamps: &times[..column.values.len()],
                values: &column.values,
            }
        })
    }

    /// The bytes of memory that the columns take, filled or not.
    pub fn allocated_bytes(&self) -> usize {
        let capacity = |column: &Column| 8 * (column.times.capacity() + column.values.capacity());
        self.columns.iter().map(capacity).sum()
    }
}

impl Column {
    fn put_in_order(&mut self) {
        let times = self.times.iter().copied();
        let mut samples: Vec<(i64, f64)> = times.zip(self.values.iter().copied()).collect();
        samples.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| precedence(b.1, a.1)));
        samples.dedup_by_key(|sample| sample.0);
        self.times.clear();
        self.values.clear();
        self.times.extend(samples.iter().map(|sample| sample.0));
        self.values.extend(samples.iter().map(|sample| sample.1));
    }
}

#[cfg(test)]
impl SeriesColumns {
    /// Columns that take so many bytes.
    pub fn with_capacity(bytes: usize) -> SeriesColumns {
        let column = Column {
            values: Vec::with_capacity(bytes / 8 + 1),
            ..Column::default()
        };
        SeriesColumns {
            columns: vec![column],
            ..SeriesColumns::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stored(millis: &[i64]) -> Vec<i64> {
        millis
            .iter()
            .map(|millis| times::stored_of(*millis) + 250)
            .collect()
    }

    /// The columns of series to which samples were added at these times, piece by piece.
    fn columns(series: usize, added: &[(usize, Vec<i64>)]) -> SeriesColumns {
        let mut columns = SeriesColumns::default();
        columns.restart(series);
        for (place, times) in added {
            let values: Vec<f64> = times
                .iter()
                .map(|time| (time + *place as i64) as f64)
                .collect();
            columns.add(*place, &stored(times), &values);
        }
        columns.finish();
        columns
    }

    fn samples(columns: &SeriesColumns) -> Vec<(Vec<i64>, Vec<f64>)> {
        let series = columns.series();
        series
            .map(|samples| (samples.timestamps.to_vec(), samples.values.to_vec()))
            .collect()
    }

    #[test]
    fn samples_of_one_time_are_one() {
        let stale = f64::from_bits(0x7ff0_0000_0000_0002);
        let mut columns = SeriesColumns::default();
        columns.restart(1);
        columns.add(0, &stored(&[3, 1]), &[7.0, 1.0]);
        columns.add(0, &stored(&[2, 1, 3, 3]), &[f64::NAN, 2.0, stale, -8.0]);
        columns.finish();
        let (times, values) = &samples(&columns)[0];
        assert_eq!(times, &[1, 2, 3]);
        assert_eq!(values[0], 2.0);
        assert!(values[1].is_nan());
        assert_eq!(values[2], 7.0);
    }

    #[test]
    fn equal_times_are_stored_once() {
        let together = columns(3, &[(0, vec![1, 2]), (1, vec![1, 2]), (2, vec![1])]);
        assert_eq!(
            together
                .columns
                .iter()
                .filter(|column| !column.times.is_empty())
                .count(),
            1
        );
        assert_eq!(samples(&together)[2], (vec![1], vec![3.0]));
    }

    proptest! {
        #[test]
        fn each_series_has_the_samples_that_were_added_to_it(
            added in prop::collection::vec((0_usize..4, prop::collection::vec(0_i64..6, 0..4)), 0..16),
        ) {
            let mut expected: Vec<Vec<i64>> = vec![Vec::new(); 4];
            for (place, times) in &added {
                expected[*place].extend(times);
            }
            for (place, (times, values)) in samples(&columns(4, &added)).into_iter().enumerate() {
                expected[place].sort_unstable();
                expected[place].dedup();
                let of_times = times.iter().map(|time| (time + place as i64) as f64);
                prop_assert_eq!(values, of_times.collect::<Vec<_>>());
                prop_assert_eq!(&times, &expected[place]);
            }
        }
    }
}
