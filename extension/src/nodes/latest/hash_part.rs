//! A part of all groups: those whose keys have a hash with certain last bits.

use lanes_columnar::limits::VECTOR_ROWS;
use lanes_columnar::vector::selection::Selection;

/// The part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HashPart {
    /// How many bits are certain, and which ones.
    bits: u32,
    last: u64,
}

/// Groups that are found in one pass, whatever memory they take: each pass has to get on.
const GROUPS_MIN: usize = 256;
/// Groups that have more bits in common are not told apart.
const BITS_MAX: u32 = 48;

impl HashPart {
    /// All groups.
    pub const ALL: HashPart = HashPart { bits: 0, last: 0 };

    /// Whether it is worth while to halve a part with so many groups.
    pub fn can_halve(self, groups: usize) -> bool {
        groups >= GROUPS_MIN && self.bits < BITS_MAX
    }

    /// The two halves of a part.
    pub fn halves(self) -> [HashPart; 2] {
        let bits = self.bits + 1;
        [self.last, self.last | 1 << self.bits].map(|last| HashPart { bits, last })
    }

    /// Leaves the selected rows whose hashes are in the part.
    pub fn narrow(self, hashes: &[u64; VECTOR_ROWS], selection: &mut Selection) {
        let mask = (1 << self.bits) - 1;
        let mut rows = Selection::NONE;
        selection.for_each(|row| {
            let is_in_part = hashes[row] & mask == self.last;
            rows.words[row / 64] |= u64::from(is_in_part) << (row % 64);
        });
        *selection = rows;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_halves_have_each_row_once() {
        let mut hashes = Box::new([0; VECTOR_ROWS]);
        for (row, hash) in hashes.iter_mut().enumerate() {
            *hash = (row as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        let mut parts = vec![HashPart::ALL];
        for _ in 0..3 {
            parts = parts.into_iter().flat_map(HashPart::halves).collect();
        }
        let mut found = Selection::NONE;
        for part in parts {
            let mut rows = Selection::first(VECTOR_ROWS);
            part.narrow(&hashes, &mut rows);
            assert!(rows.and(&found).is_empty() && rows.count() > VECTOR_ROWS / 16);
            found = found.or(&rows);
        }
        assert_eq!(found.count(), VECTOR_ROWS);
    }
}
