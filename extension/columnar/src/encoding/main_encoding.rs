//! The encoding of most of a lane, for people to read: one byte whose meaning never changes.

use super::format::Class;
use super::lane::EncodedLane;

/// The names by byte. New names are added at the end. Byte 0 means that the encoding was not
/// recorded.
const NAMES: [&str; 15] = [
    "",
    "null",
    "constant",
    "bitmap",
    "plain",
    "compressed",
    "dictionary",
    "bit-packed",
    "delta",
    "delta-of-delta",
    "few",
    "pattern",
    "decimal",
    "decimal delta",
    "decimal delta-of-delta",
];
/// About the number of vectors of a lane that are inspected.
const VECTORS_SEEN: usize = 4;
const NULL: u8 = 1;
const DICTIONARY: u8 = 6;

/// The encoding of most of a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MainEncoding(u8);

impl MainEncoding {
    /// The encoding of a [byte](Self::byte), which a later version may have written.
    pub fn of_byte(byte: u8) -> Self {
        MainEncoding(byte)
    }

    /// The stored byte, whose meaning never changes.
    pub fn byte(self) -> u8 {
        self.0
    }

    /// Its name; `None` if it was not noted, or is of a later version.
    pub fn name(self) -> Option<&'static str> {
        let name = NAMES.get(usize::from(self.0)).copied();
        name.filter(|name| !name.is_empty())
    }
}

impl EncodedLane<'_> {
    /// The encoding of most of the lane's blocks, from a few of its vectors.
    pub fn main_encoding(&self) -> MainEncoding {
        if self.is_null() {
            return MainEncoding(NULL);
        }
        let mut counts = [0; NAMES.len()];
        for vector in (0..self.vectors()).step_by((self.vectors() / VECTORS_SEEN).max(1)) {
            for name in self.vector_encodings(vector) {
                let place = NAMES.iter().position(|known| *known == name);
                counts[place.unwrap_or_default()] += 1;
            }
        }
        let most = (0..NAMES.len()).max_by_key(|&place| counts[place]);
        let most = most.unwrap_or_default();
        // For codes, the dictionary matters more than how the codes are packed.
        if self.header.class == Class::Dictionary && NAMES[most] != "constant" {
            return MainEncoding(DICTIONARY);
        }
        MainEncoding(most as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Column;
    use crate::encoding::encode_lane;
    use crate::test_support::{INT8, TEXT};

    fn name(column: &Column) -> Option<&'static str> {
        let lane = encode_lane(column, &[]).unwrap();
        let lane = EncodedLane::open(&lane, column.kind()).unwrap();
        let encoding = lane.main_encoding();
        assert_eq!(MainEncoding::of_byte(encoding.byte()), encoding);
        encoding.name()
    }

    #[test]
    fn every_name_that_a_vector_may_have_has_a_byte() {
        let mut column = Column::new(INT8);
        column.push_null();
        assert_eq!(name(&column), Some("null"));
        column.clear();
        for row in 0..5_000_i64 {
            column.push_fixed(&(row * 1_000 + row % 3).to_le_bytes());
        }
        assert!(name(&column).is_some_and(|name| name.contains("delta")));
        let mut text = Column::new(TEXT);
        for row in 0..5_000 {
            text.push_item([b"a".as_slice(), b"bc", b"def"][row * row % 3]);
        }
        assert_eq!(name(&text), Some("dictionary"));
        text.clear();
        (0..5_000).for_each(|_| text.push_item(b"same"));
        assert_eq!(name(&text), Some("constant"));
    }

    #[test]
    fn what_is_not_known_has_no_name() {
        assert_eq!(MainEncoding::default().name(), None);
        assert_eq!(MainEncoding::of_byte(200).name(), None);
    }
}
