//! What most of a lane is encoded as, for people to read: one byte that means the same for ever.

use super::format::Class;
use super::lane::EncodedLane;

/// Names by byte. New ones are added at the end; byte 0 stands for what was never noted.
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
/// Vectors of a lane that are looked at, or few more.
const VECTORS_SEEN: usize = 4;
const NULL: u8 = 1;
const DICTIONARY: u8 = 6;

/// What most of a lane is encoded as.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MainEncoding(u8);

impl MainEncoding {
    /// From the byte that [`byte`](Self::byte) gave, perhaps by a later version.
    pub fn of_byte(byte: u8) -> Self {
        MainEncoding(byte)
    }

    /// The byte that means the same for ever.
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
    /// What most of its blocks are encoded as, by the look of a few of its vectors.
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
        // How codes are packed says little beside what they stand for.
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
    use crate::kind::{LaneKind, Number};

    const LONG: LaneKind = LaneKind::Fixed {
        width: 8,
        stride: 8,
        number: Number::Signed,
    };
    const TEXT: LaneKind = LaneKind::Varlena {
        dictionary: true,
        packed: true,
    };

    fn name(column: &Column) -> Option<&'static str> {
        let lane = encode_lane(column, &[]).unwrap();
        let lane = EncodedLane::open(&lane, column.kind()).unwrap();
        let encoding = lane.main_encoding();
        assert_eq!(MainEncoding::of_byte(encoding.byte()), encoding);
        encoding.name()
    }

    #[test]
    fn every_name_that_a_vector_may_have_has_a_byte() {
        let mut column = Column::new(LONG);
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
