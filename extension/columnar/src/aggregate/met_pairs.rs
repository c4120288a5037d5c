//! Which pairs of ids were met before.
//!
//! Ids are dense. While most combinations occur, or there are not many, there is a bit for each: a row of bits for each
//! left id. If few of many combinations occur, pairs have ids.

use super::pairs::Pairs;

/// There may be so many bits for each pair that was met, fewer than a table of hashed pairs takes, and 4 MiB.
const BITS_A_PAIR: usize = 128;
const BITS_MIN: usize = 32 << 20;

/// The pairs that were met.
pub(super) enum MetPairs {
    /// As bits.
    Bits(PairBits),
    /// In a table.
    Table(Pairs),
}

impl Default for MetPairs {
    fn default() -> MetPairs {
        MetPairs::Bits(PairBits::default())
    }
}

impl MetPairs {
    /// Whether a pair was not met before. From now on it was.
    #[inline]
    pub(super) fn is_new(&mut self, left: u32, right: u32) -> bool {
        if let MetPairs::Bits(bits) = self
            && let Some(is_new) = bits.set(left, right)
        {
            return is_new;
        }
        self.is_new_beyond(left, right)
    }

    /// For a pair that has no bit yet.
    #[inline(never)]
    fn is_new_beyond(&mut self, left: u32, right: u32) -> bool {
        if let MetPairs::Bits(bits) = self {
            if bits.make_room(left, right) {
                return bits.set(left, right) == Some(true);
            }
            let mut pairs = Pairs::default();
            bits.pairs().for_each(|(left, right)| {
                pairs.id(left, right);
            });
            *self = MetPairs::Table(pairs);
        }
        let MetPairs::Table(pairs) = self else {
            unreachable!("bits without room for a pair became a table");
        };
        let met = pairs.len();
        pairs.id(left, right);
        pairs.len() > met
    }

    /// The number of pairs.
    pub(super) fn len(&self) -> usize {
        match self {
            MetPairs::Bits(bits) => bits.met,
            MetPairs::Table(pairs) => pairs.len(),
        }
    }

    /// Whether most combinations of the ids do not occur.
    pub(super) fn is_hashed(&self) -> bool {
        match self {
            MetPairs::Bits(_) => false,
            MetPairs::Table(pairs) => pairs.is_hashed(),
        }
    }

    /// The pairs, in no order.
    pub(super) fn into_pairs(self) -> Vec<(u32, u32)> {
        match self {
            MetPairs::Bits(bits) => bits.pairs().collect(),
            MetPairs::Table(pairs) => pairs.pairs(0..pairs.len()).to_vec(),
        }
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        match self {
            MetPairs::Bits(bits) => bits.words.capacity() * size_of::<u64>(),
            MetPairs::Table(pairs) => pairs.bytes(),
        }
    }
}

/// A row of bits for each left id.
#[derive(Default)]
pub(super) struct PairBits {
    /// A row has so many bits to the power of two. There are whole words for each row.
    shift: u32,
    words: Vec<u64>,
    /// The number of bits that are set.
    met: usize,
}

/// The least length of a row: a word.
const SHIFT_MIN: u32 = 6;

impl PairBits {
    /// Sets the bit of a pair. `Some(true)`: it was not set. `None`: the pair has none.
    #[inline]
    fn set(&mut self, left: u32, right: u32) -> Option<bool> {
        if u64::from(right) >> self.shift != 0 {
            return None;
        }
        let word = ((left as usize) << self.shift | right as usize) >> SHIFT_MIN;
        let (word, bit) = (self.words.get_mut(word)?, right % u64::BITS);
        let is_new = *word >> bit & 1 == 0;
        *word |= 1 << bit;
        self.met += usize::from(is_new);
        Some(is_new)
    }

    /// Makes a bit for a pair; false if there would be too many.
    fn make_room(&mut self, left: u32, right: u32) -> bool {
        let wider = u32::BITS - right.leading_zeros();
        let shift = wider.max(self.shift).max(SHIFT_MIN);
        let rows = (left as usize + 1).max(self.words.len() << SHIFT_MIN >> self.shift);
        let most = BITS_A_PAIR * self.met + BITS_MIN;
        if rows > most >> shift {
            return false;
        }
        let words_a_row = 1 << (shift - SHIFT_MIN);
        if shift > self.shift && !self.words.is_empty() {
            let mut words = vec![0; rows * words_a_row];
            let before = self.words.chunks(1 << (self.shift - SHIFT_MIN));
            for (row, of_row) in words.chunks_mut(words_a_row).zip(before) {
                row[..of_row.len()].copy_from_slice(of_row);
            }
            self.words = words;
        } else {
            // The vector grows by doubling.
            self.words.resize(rows * words_a_row, 0);
        }
        self.shift = shift;
        true
    }

    /// The pairs whose bits are set.
    fn pairs(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let bits = move |(place, word): (usize, &u64)| {
            let (first, mut rest) = (place << SHIFT_MIN, *word);
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
                rest &= rest - 1;
                Some(first | bit)
            })
        };
        let mask = (1 << self.shift) - 1;
        let places = self.words.iter().enumerate().flat_map(bits);
        places.map(move |place| ((place >> self.shift) as u32, (place & mask) as u32))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Asks for pairs and compares each answer with a set.
    fn check(asked: impl IntoIterator<Item = (u32, u32)>) -> MetPairs {
        let (mut pairs, mut expected) = (MetPairs::default(), BTreeSet::new());
        for (left, right) in asked {
            let is_new = expected.insert((left, right));
            assert_eq!(pairs.is_new(left, right), is_new, "{left} {right}");
            assert_eq!(pairs.len(), expected.len());
        }
        pairs
    }

    #[test]
    fn many_combinations_have_bits_and_few_of_many_a_table() {
        let pairs = check((0..500).flat_map(|left| (0..700).map(move |right| (right, left))));
        assert!(matches!(pairs, MetPairs::Bits(_)));
        assert!(pairs.bytes() < 1 << 18);
        let pairs = check((0..20_000).map(|id| (id, id)));
        assert!(matches!(pairs, MetPairs::Table(_)) && pairs.is_hashed());
        let pairs = check([
            (u32::MAX - 1, 0),
            (0, u32::MAX - 1),
            (u32::MAX - 1, 0),
            (0, 0),
        ]);
        assert_eq!(pairs.into_pairs().len(), 3);
    }

    proptest! {
        #[test]
        fn pairs_are_those_of_a_set(
            lefts in 1_u32..20_000,
            rights in 1_u32..20_000,
            asked in prop::collection::vec((any::<u32>(), any::<u32>()), 0..3_000),
        ) {
            let asked: Vec<_> = asked.iter().map(|(a, b)| (a % lefts, b % rights)).collect();
            let mut found = check(asked.iter().copied()).into_pairs();
            found.sort_unstable();
            let expected: BTreeSet<_> = asked.into_iter().collect();
            prop_assert_eq!(found, Vec::from_iter(expected));
        }
    }
}
