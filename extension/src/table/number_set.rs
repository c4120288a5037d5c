//! A set of entry numbers.

/// The entry numbers, below an end, that an index has: a bit for each number.
pub struct NumberSet {
    words: Vec<u64>,
}

impl NumberSet {
    /// An empty set; `None`: there is no memory for it.
    pub fn new(end: u64) -> Option<NumberSet> {
        let count = end.div_ceil(u64::from(u64::BITS)) as usize;
        let mut words = Vec::new();
        words.try_reserve_exact(count).ok()?;
        words.resize(count, 0);
        Some(NumberSet { words })
    }

    /// Adds a number. Numbers past the end belong to rows that were inserted later, and are left
    /// out.
    pub fn insert(&mut self, number: u64) {
        if let Some(word) = self.words.get_mut(Self::word(number)) {
            *word |= Self::bit(number);
        }
    }

    /// Whether the set has a number.
    pub fn contains(&self, number: u64) -> bool {
        let word = self.words.get(Self::word(number));
        word.is_some_and(|word| word & Self::bit(number) != 0)
    }

    fn word(number: u64) -> usize {
        (number / u64::from(u64::BITS)) as usize
    }

    fn bit(number: u64) -> u64 {
        1 << (number % u64::from(u64::BITS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_past_the_end_are_left_out() {
        let mut set = NumberSet::new(65).unwrap();
        for number in [0, 64, 1 << 40] {
            set.insert(number);
        }
        assert!(set.contains(0) && set.contains(64));
        assert!(!set.contains(1) && !set.contains(1 << 40));
    }
}
