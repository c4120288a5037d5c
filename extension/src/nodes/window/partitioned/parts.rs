//! Partitions that are computed one part after the other, because all rows do not fit into memory.
//!
//! ```text
//! rows read so far take too much memory ──► count the rows of each partition, to the end of the table
//! order partitions by their keys; cut that order into parts that fit
//! for each part: read the table again, and keep the rows of its partitions
//! ```

use std::ops::Range;

/// The parts.
pub struct Parts {
    /// The place of each partition in the order of the keys.
    pub ranks: Vec<u32>,
    /// The places after each part.
    ends: Vec<u32>,
    /// How many parts were begun.
    begun: usize,
}

impl Parts {
    /// Cuts partitions with so many rows each into parts of at most `rows_max` rows; `None` if one of them has more.
    pub fn of(ranks: Vec<u32>, counts: &[u32], rows_max: usize) -> Option<Parts> {
        let mut by_rank = vec![0; ranks.len()];
        for (rank, count) in ranks.iter().zip(counts) {
            by_rank[*rank as usize] = *count as usize;
        }
        let (mut ends, mut rows) = (Vec::new(), 0);
        for (rank, count) in by_rank.iter().enumerate() {
            if *count > rows_max {
                return None;
            }
            if rows + count > rows_max {
                ends.push(rank as u32);
                rows = 0;
            }
            rows += count;
        }
        ends.push(ranks.len() as u32);
        Some(Parts {
            ranks,
            ends,
            begun: 0,
        })
    }

    /// How many parts there are.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// Goes on to the next part; false if there is none.
    pub fn advance(&mut self) -> bool {
        let has_more = self.begun < self.ends.len();
        self.begun += usize::from(has_more);
        has_more
    }

    /// The places of the current part.
    pub fn range(&self) -> Range<u32> {
        let start = match self.begun {
            0 | 1 => 0,
            begun => self.ends[begun - 2],
        };
        start..self.ends[self.begun.max(1) - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_the_partitions_that_fit() {
        let ranges = |counts: &[u32], rows_max| {
            let ranks = vec![2, 0, 1, 3];
            let mut parts = Parts::of(ranks, counts, rows_max)?;
            let mut ranges = Vec::new();
            while parts.advance() {
                ranges.push(parts.range());
            }
            Some(ranges)
        };
        // By rank: 20, 30, 10, 40.
        let counts = [10, 20, 30, 40];
        assert_eq!(ranges(&counts, 40), Some(vec![0..1, 1..3, 3..4]));
        assert_eq!(ranges(&counts, 60), Some(vec![0..3, 3..4]));
        assert_eq!(ranges(&counts, 100).map(|ranges| ranges.len()), Some(1));
        assert_eq!(ranges(&counts, 39), None);
    }
}
