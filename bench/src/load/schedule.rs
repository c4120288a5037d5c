//! The due time of each request, in nanoseconds since the start.
//!
//! A worker of an open loop owns every `workers`-th number, beginning with its own. Due times
//! depend on the numbers alone: no event during the run can move or drop one.

/// One worker's share of an open loop.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    worker: u64,
    workers: u64,
    nanoseconds_apart: f64,
    /// Numbers whose due time is not before this end are not sent.
    end: u64,
}

impl Schedule {
    /// Creates the share of one of several workers of `per_second` requests in all, until `end`
    /// nanoseconds.
    pub fn new(worker: usize, workers: usize, per_second: f64, end: u64) -> Schedule {
        Schedule {
            worker: worker as u64,
            workers: workers as u64,
            nanoseconds_apart: 1e9 / per_second,
            end,
        }
    }

    /// Returns the number of this worker's `index`-th request.
    pub fn number(&self, index: u64) -> u64 {
        self.worker + index * self.workers
    }

    /// Returns the due time of this worker's `index`-th request, or `None` if it is past the end.
    pub fn time(&self, index: u64) -> Option<u64> {
        let time = (self.number(index) as f64 * self.nanoseconds_apart) as u64;
        (time < self.end).then_some(time)
    }

    /// Returns how many of this worker's requests are due at `now`.
    pub fn due(&self, now: u64) -> u64 {
        let now = now.min(self.end.saturating_sub(1)) as f64;
        let guess = (now / self.nanoseconds_apart - self.worker as f64) / self.workers as f64;
        // Rounding may put the guess one off the place where the due times, which decide, pass
        // `now`.
        let mut count = guess.max(0.0) as u64;
        while self.time(count).is_some_and(|time| time as f64 <= now) {
            count += 1;
        }
        while count > 0 && self.time(count - 1).is_none_or(|time| time as f64 > now) {
            count -= 1;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn workers_share_the_numbers_without_gaps() {
        let shares: Vec<Schedule> = (0..3)
            .map(|worker| Schedule::new(worker, 3, 1000.0, SECOND))
            .collect();
        let mut numbers: Vec<u64> = shares
            .iter()
            .flat_map(|share| (0..share.due(SECOND)).map(|index| share.number(index)))
            .collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..1000).collect::<Vec<u64>>());
    }

    #[test]
    fn due_times_are_evenly_spaced_and_end() {
        let schedule = Schedule::new(1, 2, 10.0, SECOND);
        assert_eq!(schedule.time(0), Some(SECOND / 10));
        assert_eq!(schedule.time(1), Some(3 * SECOND / 10));
        assert_eq!(schedule.time(4), Some(9 * SECOND / 10));
        assert_eq!(schedule.time(5), None);
    }

    #[test]
    fn due_counts_agree_with_due_times_at_uneven_rates() {
        let schedule = Schedule::new(2, 7, 333.3, 20 * SECOND);
        for index in 0..900 {
            let Some(time) = schedule.time(index) else {
                break;
            };
            assert_eq!(schedule.due(time), index + 1, "at {time}");
            assert_eq!(schedule.due(time - 1), index, "before {time}");
        }
        assert_eq!(schedule.due(0), 0);
        assert_eq!(schedule.due(u64::MAX), schedule.due(20 * SECOND));
    }
}
