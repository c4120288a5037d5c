//! Estimates for many numbers from a sample of a few.

use super::bytes::zigzag;

/// Numbers of a sample.
pub(super) const SAMPLE: usize = 15;

/// A few of the numbers, evenly spread, in order.
pub(super) struct Sample {
    numbers: [i64; SAMPLE],
    count: usize,
}

#[inline(always)]
pub(super) fn sample(numbers: &[i64]) -> Sample {
    let count = numbers.len().min(SAMPLE);
    let mut taken = [i64::MAX; SAMPLE + 1];
    for (index, slot) in taken[..count].iter_mut().enumerate() {
        // By a constant, or not at all: a division would take longer than all the rest.
        let place = match count {
            SAMPLE => index * numbers.len() / SAMPLE,
            _ => index,
        };
        *slot = numbers[place];
    }
    // A sample is sorted without a branch: the rank of each number is the count of the numbers
    // before it.
    let mut ranks = [0_i64; SAMPLE + 1];
    for (index, &other) in taken[..count].iter().enumerate() {
        for (place, (rank, &number)) in ranks.iter_mut().zip(&taken).enumerate() {
            *rank += i64::from((other < number) | ((other == number) & (index < place)));
        }
    }
    let mut sample = Sample {
        numbers: [0; SAMPLE],
        count,
    };
    for (&rank, &number) in ranks[..count].iter().zip(&taken) {
        sample.numbers[rank as usize] = number;
    }
    sample
}

impl Sample {
    #[inline(always)]
    pub(super) fn median(&self) -> i64 {
        self.numbers[self.count / 2]
    }

    /// Bits that most of the numbers need at least above the least of them.
    #[inline(always)]
    pub(super) fn bits_min(&self) -> u32 {
        if self.count < SAMPLE {
            return 0;
        }
        let (low, high) = (
            self.numbers[SAMPLE / 5],
            self.numbers[SAMPLE - 1 - SAMPLE / 5],
        );
        (64 - high.abs_diff(low).leading_zeros()).saturating_sub(2)
    }

    /// An estimate of the fewest bits for so many numbers if numbers far from the median are
    /// patched. It assumes half as many distant numbers as the sample has, because a sample may
    /// miss or exaggerate a few, but not a wide distribution.
    #[inline(always)]
    pub(super) fn patched_bits_min(&self, rows: usize, middle: i64, narrowed: u32) -> usize {
        let mut counts = [0_usize; 65];
        for &number in &self.numbers[..self.count] {
            let bits = 64 - zigzag(number.wrapping_sub(middle)).leading_zeros();
            counts[bits.saturating_sub(narrowed) as usize] += 1;
        }
        let widest = counts.iter().rposition(|&count| count > 0).unwrap_or(0);
        let (mut outside, mut least) = (0, usize::MAX);
        for width in (0..=widest).rev() {
            least = least.min(rows * width + rows * outside / (2 * self.count) * 12);
            if outside > self.count / 2 {
                break;
            }
            outside += counts[width];
        }
        least
    }

    pub(super) fn distinct(&self) -> usize {
        self.numbers[..self.count].chunk_by(|a, b| a == b).count()
    }

    pub(super) fn is_mostly_distinct(&self) -> bool {
        self.distinct() > self.count - self.count / 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_in_order() {
        for numbers in [
            vec![3],
            vec![2, i64::MAX, 2, i64::MIN, 0],
            vec![7; SAMPLE],
            (0..400).map(|number| number * 7_919 % 401).collect(),
        ] {
            let sample = sample(&numbers);
            let mut wanted: Vec<i64> = (0..sample.count)
                .map(|index| numbers[index * numbers.len() / sample.count])
                .collect();
            wanted.sort_unstable();
            assert_eq!(sample.numbers[..sample.count], wanted);
        }
    }

    #[test]
    fn few_far_numbers_are_worth_patches_and_spread_ones_are_not() {
        let spread: Vec<i64> = (0..100).map(|number| number * 37 % 100 * 10).collect();
        let (mut narrow, wide) = (vec![5; 100], sample(&spread));
        narrow[7] = 1_000_000;
        let narrow = sample(&narrow);
        let bits = |sample: &Sample| sample.patched_bits_min(100, sample.median(), 0);
        assert_eq!(bits(&narrow), 0);
        assert!(bits(&wide) >= 100 * 8, "{}", bits(&wide));
    }
}
