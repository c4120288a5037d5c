//! `lanes.histogram`: how many numbers are in each of some buckets of equal width, below them, and above them.

use super::accumulator::{Accumulator, Added, Answer, Grouping, Input, each_row};
use crate::vector::Evaluation;

/// States up to this number of bytes are small enough for many groups.
const SMALL_BYTES: usize = 512;

/// The buckets of a histogram, which divide the numbers from `low` to below `high`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct Buckets {
    low: f64,
    high: f64,
    count: u32,
}

impl Buckets {
    /// The buckets; `None` unless `low` is below `high`, both are finite, and there is a bucket.
    pub fn new(low: f64, high: f64, count: i32) -> Option<Buckets> {
        let count = u32::try_from(count).ok().filter(|count| *count > 0)?;
        let is_range = low.is_finite() && high.is_finite() && low < high;
        is_range.then_some(Buckets { low, high, count })
    }

    /// The number of places of a histogram: one below the buckets, the buckets, and one above them.
    pub fn places(&self) -> usize {
        self.count as usize + 2
    }

    /// The place of a number. NaN is above all others, as in PostgreSQL's order.
    #[inline]
    pub fn place(&self, x: f64) -> usize {
        let count = self.count as usize;
        if x < self.low {
            return 0;
        }
        if x >= self.high || x.is_nan() {
            return count + 1;
        }
        let mut share = (x - self.low) / (self.high - self.low);
        if (self.high - self.low).is_infinite() {
            share = (x / 2.0 - self.low / 2.0) / (self.high / 2.0 - self.low / 2.0);
        }
        // A number just below `high` may be rounded up to it.
        ((f64::from(self.count) * share) as usize).min(count - 1) + 1
    }
}

/// A histogram for each group.
pub struct Histogram {
    buckets: Buckets,
    /// The counts of all places, group by group.
    counts: Vec<u32>,
}

impl Histogram {
    /// States without groups. The input is [`Input::Number`] of a double.
    pub fn new(buckets: Buckets) -> Histogram {
        Histogram {
            buckets,
            counts: Vec::new(),
        }
    }
}

impl Accumulator for Histogram {
    fn resize(&mut self, groups: usize) {
        self.counts.resize(groups * self.buckets.places(), 0);
    }

    fn add(&mut self, grouping: &Grouping<'_>, added: Added<'_>) -> Evaluation<()> {
        let Input::Number(operand) = *added.input else {
            return Ok(());
        };
        let (buckets, counts) = (self.buckets, &mut self.counts);
        each_row(grouping, added.selection, |row, group| {
            // SAFETY: the operand has a double for each row of the vector.
            let place = buckets.place(unsafe { operand.get::<f64>(row) });
            let count = &mut counts[group * buckets.places() + place];
            *count = count.saturating_add(1);
            Ok(())
        })
    }

    fn answer(&self, group: usize) -> Answer {
        match self.list(group).iter().any(|count| *count > 0) {
            true => Answer::List,
            false => Answer::Null,
        }
    }

    fn list(&self, group: usize) -> &[u32] {
        let places = self.buckets.places();
        &self.counts[group * places..(group + 1) * places]
    }

    fn clear(&mut self) {
        self.counts = Vec::new();
    }

    fn can_wait(&self) -> bool {
        self.buckets.places() * size_of::<u32>() <= SMALL_BYTES
    }

    fn bytes(&self) -> usize {
        self.counts.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn edges_belong_to_the_bucket_above() {
        let buckets = Buckets::new(0.0, 10.0, 5).expect("legal");
        let places = [
            f64::NEG_INFINITY,
            -0.1,
            -0.0,
            1.9,
            2.0,
            9.9,
            10.0,
            f64::INFINITY,
            f64::NAN,
        ]
        .map(|x| buckets.place(x));
        assert_eq!(places, [0, 0, 1, 1, 2, 5, 6, 6, 6]);
    }

    #[test]
    fn illegal_buckets() {
        assert_eq!(Buckets::new(1.0, 1.0, 5), None);
        assert_eq!(Buckets::new(0.0, f64::NAN, 5), None);
        assert_eq!(Buckets::new(f64::NEG_INFINITY, 0.0, 5), None);
        assert_eq!(Buckets::new(0.0, 1.0, 0), None);
        assert_eq!(Buckets::new(0.0, 1.0, -1), None);
    }

    proptest! {
        /// Every number has a place, and places ascend with numbers.
        #[test]
        fn places_are_in_order(low: f64, high: f64, count in 1..50, x: f64, y: f64) {
            let Some(buckets) = Buckets::new(low, high, count) else {
                return Ok(());
            };
            let (x, y) = if x <= y { (x, y) } else { (y, x) };
            prop_assert!(buckets.place(x) <= buckets.place(y));
            prop_assert!(buckets.place(y) < buckets.places());
        }
    }
}
