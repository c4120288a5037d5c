//! The series and names of metrics that a user has, and whether it may add another series.
//!
//! A user's series are those of which it has sent samples on this day (UTC), since the gateway's
//! start. PostgreSQL knows the series, but not who sent them. Counting by day lets
//! series that are no longer sent, as those of replaced containers, make room for others.
//!
//! A user's names of metrics are those of series that it was the first to send since the gateway's
//! start. After a restart every series is sent again, so both counts fill up again soon.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use super::bucket::Bucket;
use super::limits::{Limit, Limits};
use crate::clock::Instant;
use crate::series::SeriesId;

/// The series and metric names of a user. Each set is bounded by its limit.
#[derive(Debug, Default)]
pub struct Holdings {
    /// The day of `series`, counted from 1970.
    day: i64,
    series: HashSet<SeriesId>,
    /// Hashes of names, with a key that no sender knows.
    names: HashSet<u64>,
    key: RandomState,
    new_series: Bucket,
}

/// The time of a request.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// For rates.
    pub now: Instant,
    /// The day in UTC, counted from 1970.
    pub day: i64,
}

impl Holdings {
    /// The numbers of series and names.
    pub fn counts(&self) -> (usize, usize) {
        (self.series.len(), self.names.len())
    }

    /// Adds registered series of which samples are sent.
    pub fn note_series(
        &mut self,
        ids: impl Iterator<Item = SeriesId>,
        limits: &Limits,
        moment: Moment,
    ) {
        self.begin_day(moment.day);
        let mut last = None;
        for id in ids {
            if self.is_full(limits) {
                return;
            }
            if last.replace(id) != Some(id) {
                self.series.insert(id);
            }
        }
    }

    /// Adds the name of a registered series.
    pub fn note_name(&mut self, name: &str, limits: &Limits) {
        if (self.names.len() as u64) < limits[Limit::MetricNames] {
            self.names.insert(self.key.hash_one(name));
        }
    }

    /// Admits a series that is not registered. `admitted` others have been admitted and have no id
    /// yet.
    ///
    /// # Errors
    /// Returns the limit that the series would exceed. Nothing is counted in this case.
    pub fn admit(
        &mut self,
        name: &str,
        admitted: usize,
        limits: &Limits,
        moment: Moment,
    ) -> Result<(), Limit> {
        self.begin_day(moment.day);
        let series = (self.series.len() + admitted) as u64;
        if limits[Limit::Series] > 0 && series >= limits[Limit::Series] {
            return Err(Limit::Series);
        }
        let name = self.key.hash_one(name);
        let is_named = limits[Limit::MetricNames] == 0 || self.names.contains(&name);
        if !is_named && self.names.len() as u64 >= limits[Limit::MetricNames] {
            return Err(Limit::MetricNames);
        }
        if let Some(rate) = limits.new_series() {
            let taken = self.new_series.take(1, rate, moment.now);
            taken.map_err(|_| Limit::NewSeries)?;
        }
        if !is_named {
            self.names.insert(name);
        }
        Ok(())
    }

    fn begin_day(&mut self, day: i64) {
        if self.day != day {
            self.day = day;
            self.series = HashSet::default();
        }
    }

    fn is_full(&self, limits: &Limits) -> bool {
        self.series.len() as u64 >= limits[Limit::Series]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use std::time::Duration;

    fn moment(day: i64) -> Moment {
        Moment {
            now: clock::now(),
            day,
        }
    }

    #[test]
    fn series_are_counted_by_day_and_registered_ones_are_never_refused() {
        let (mut holdings, today) = (Holdings::default(), moment(1));
        let limits = Limits::default().with(Limit::Series, 3);
        holdings.note_series([1, 1, 2, 1].into_iter(), &limits, today);
        assert_eq!(holdings.counts(), (2, 0));
        assert_eq!(holdings.admit("a", 0, &limits, today), Ok(()));
        assert_eq!(holdings.admit("a", 1, &limits, today), Err(Limit::Series));
        // Others that are registered are stored, and need no memory.
        holdings.note_series(3..1000, &limits, today);
        assert_eq!(holdings.counts(), (3, 0));
        assert_eq!(holdings.admit("a", 0, &limits, today), Err(Limit::Series));
        assert_eq!(holdings.admit("a", 0, &limits, moment(2)), Ok(()));
        assert_eq!(holdings.counts(), (0, 0), "another day");
    }

    #[test]
    fn further_names_are_refused_and_known_ones_are_not() {
        let (mut holdings, today) = (Holdings::default(), moment(1));
        let limits = Limits::default().with(Limit::MetricNames, 2);
        holdings.note_name("old", &limits);
        assert_eq!(holdings.admit("a", 0, &limits, today), Ok(()));
        assert_eq!(
            holdings.admit("b", 0, &limits, today),
            Err(Limit::MetricNames)
        );
        for known in ["a", "old"] {
            assert_eq!(holdings.admit(known, 9, &limits, moment(2)), Ok(()));
        }
        holdings.note_name("c", &limits);
        assert_eq!(holdings.counts(), (0, 2));
    }

    #[test]
    fn new_series_are_admitted_at_their_rate() {
        let (mut holdings, start) = (Holdings::default(), moment(1));
        let limits = Limits::default()
            .with(Limit::NewSeries, 6)
            .with(Limit::MetricNames, 1);
        for nth in 0..6 {
            assert_eq!(holdings.admit("a", nth, &limits, start), Ok(()));
            // A series that another limit refuses takes no token.
            assert_eq!(
                holdings.admit("b", nth, &limits, start),
                Err(Limit::MetricNames)
            );
        }
        assert_eq!(
            holdings.admit("a", 0, &limits, start),
            Err(Limit::NewSeries)
        );
        let later = Moment {
            now: start.now + Duration::from_secs(10),
            ..start
        };
        assert_eq!(holdings.admit("a", 0, &limits, later), Ok(()));
        assert_eq!(
            holdings.admit("a", 0, &limits, later),
            Err(Limit::NewSeries)
        );
    }
}
