//! Medians and percentiles of measured times.

/// Times of one query on one system, in ascending order.
#[derive(Debug, Clone, PartialEq)]
pub struct Times {
    ascending: Vec<f64>,
}

impl Times {
    /// Takes times in any order. Returns `None` if there are none.
    pub fn new(mut times: Vec<f64>) -> Option<Times> {
        if times.is_empty() {
            return None;
        }
        times.sort_by(f64::total_cmp);
        Some(Times { ascending: times })
    }

    /// Returns the number of executions.
    pub fn count(&self) -> usize {
        self.ascending.len()
    }

    /// Returns the median. With an even number of times it is the mean of the two in the middle.
    pub fn median(&self) -> f64 {
        let middle = self.ascending.len() / 2;
        if self.ascending.len() % 2 == 1 {
            self.ascending[middle]
        } else {
            (self.ascending[middle - 1] + self.ascending[middle]) / 2.0
        }
    }

    /// Returns the smallest time that at least 99 of 100 executions do not exceed (nearest rank).
    /// With fewer than 100 it is the slowest one.
    pub fn p99(&self) -> f64 {
        let rank = (self.ascending.len() * 99).div_ceil(100);
        self.ascending[rank - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_computed_by_nearest_rank() {
        let times = Times::new((1..=200).rev().map(f64::from).collect()).unwrap();
        assert_eq!(
            (times.median(), times.p99(), times.count()),
            (100.5, 198.0, 200)
        );
        let few = Times::new(vec![3.0, 1.0, 2.0]).unwrap();
        assert_eq!((few.median(), few.p99()), (2.0, 3.0));
        let one = Times::new(vec![7.0]).unwrap();
        assert_eq!((one.median(), one.p99()), (7.0, 7.0));
        assert_eq!(Times::new(Vec::new()), None);
    }
}
