//! A token bucket. It may go into debt: a request larger than what is left is admitted whole, and
//! the next ones wait until the debt is paid. So the mean is kept, and no request is too large.

use std::time::Duration;

use crate::clock::Instant;

/// How fast a bucket fills, and how much it holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// Tokens for each second.
    pub per_second: f64,
    /// The tokens of a full bucket.
    pub capacity: f64,
}

/// A bucket. It is full at first.
#[derive(Debug, Default)]
pub struct Bucket {
    /// The tokens at a time; `None` until the bucket is first used.
    filled: Option<(f64, Instant)>,
}

impl Bucket {
    /// Returns how long the bucket lacks a token; `None` if it has one.
    pub fn lacks(&mut self, rate: Rate, now: Instant) -> Option<Duration> {
        let tokens = self.fill(rate, now);
        let missing = 1.0 - *tokens;
        (missing > 0.0).then(|| {
            // The greatest wait is longer than anybody waits, and does not overflow.
            let seconds = (missing / rate.per_second).clamp(0.0, 1e9);
            Duration::from_secs_f64(seconds)
        })
    }

    /// Takes tokens, if there is at least one.
    ///
    /// # Errors
    /// Returns how long the bucket lacks a token.
    pub fn take(&mut self, amount: usize, rate: Rate, now: Instant) -> Result<(), Duration> {
        if let Some(wait) = self.lacks(rate, now) {
            return Err(wait);
        }
        *self.fill(rate, now) -= amount as f64;
        Ok(())
    }

    /// Adds the tokens of the time that has passed. Returns the tokens.
    fn fill(&mut self, rate: Rate, now: Instant) -> &mut f64 {
        let (tokens, at) = self.filled.get_or_insert((rate.capacity, now));
        let passed = now.saturating_duration_since(*at).as_secs_f64();
        *tokens = (*tokens + passed * rate.per_second).min(rate.capacity);
        // A time before the last one, as threads may have it, changes nothing.
        *at = now.max(*at);
        tokens
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    const RATE: Rate = Rate {
        per_second: 10.0,
        capacity: 100.0,
    };

    fn seconds(number: f64) -> Duration {
        Duration::from_secs_f64(number)
    }

    #[test]
    fn a_full_bucket_admits_its_capacity_and_then_the_rate() {
        let (mut bucket, start) = (Bucket::default(), clock::now());
        for _ in 0..100 {
            assert_eq!(bucket.take(1, RATE, start), Ok(()));
        }
        assert_eq!(bucket.take(1, RATE, start), Err(seconds(0.1)));
        assert_eq!(bucket.lacks(RATE, start), Some(seconds(0.1)));
        let later = start + seconds(0.1);
        assert_eq!(bucket.take(1, RATE, later), Ok(()));
        assert_eq!(bucket.take(1, RATE, later), Err(seconds(0.1)));
        // It never holds more than its capacity.
        let much_later = start + seconds(1e6);
        assert_eq!(bucket.take(100, RATE, much_later), Ok(()));
        assert_eq!(bucket.take(1, RATE, much_later), Err(seconds(0.1)));
    }

    #[test]
    fn a_large_request_is_admitted_and_paid_by_the_next_ones() {
        let (mut bucket, start) = (Bucket::default(), clock::now());
        assert_eq!(bucket.take(1100, RATE, start), Ok(()));
        assert_eq!(bucket.take(1, RATE, start), Err(seconds(100.1)));
        assert_eq!(
            bucket.take(0, RATE, start + seconds(100.0)),
            Err(seconds(0.1))
        );
        assert_eq!(bucket.take(1, RATE, start + seconds(100.1)), Ok(()));
    }

    #[test]
    fn a_lower_limit_holds_at_once_and_time_never_goes_back() {
        let (mut bucket, start) = (Bucket::default(), clock::now());
        assert_eq!(bucket.take(50, RATE, start + seconds(1.0)), Ok(()));
        assert_eq!(bucket.take(50, RATE, start), Ok(()));
        assert_eq!(bucket.take(1, RATE, start), Err(seconds(0.1)));
        let (mut bucket, low) = (
            Bucket::default(),
            Rate {
                per_second: 1.0,
                capacity: 2.0,
            },
        );
        assert_eq!(bucket.take(1, RATE, start), Ok(()));
        assert_eq!(bucket.take(2, low, start), Ok(()));
        assert_eq!(bucket.take(1, low, start), Err(seconds(1.0)));
    }
}
