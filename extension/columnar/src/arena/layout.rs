//! How the columns of a segment are laid out, as a word in each column's head.
//!
//! | bits | meaning |
//! |---|---|
//! | 0-1 | 0 absent, 1 bool, 2 fixed, 3 varlena |
//! | 2 | varlena: may have a dictionary |
//! | 3 | varlena: packed |
//! | 4-5 | fixed: 0 opaque, 1 signed, 2 float, 3 bytes16 |
//! | 16-31 | fixed: width |
//! | 32-47 | fixed: stride |
//! | 63 | varlena: this segment has a dictionary |

use crate::kind::{LaneKind, Number};

const CODED: u64 = 1 << 63;

/// The layout of one column of one segment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) kind: LaneKind,
    /// Whether rows hold codes, and not offsets of items.
    pub(super) coded: bool,
}

impl Layout {
    pub(super) fn word(self) -> u64 {
        let kind = match self.kind {
            LaneKind::Absent => 0,
            LaneKind::Bool => 1,
            LaneKind::Fixed {
                width,
                stride,
                number,
            } => {
                let number = match number {
                    Number::Opaque => 0,
                    Number::Signed => 1,
                    Number::Float => 2,
                    Number::Bytes16 => 3,
                };
                2 | number << 4 | u64::from(width) << 16 | u64::from(stride) << 32
            }
            LaneKind::Varlena { dictionary, packed } => {
                3 | u64::from(dictionary) << 2 | u64::from(packed) << 3
            }
        };
        kind | if self.coded { CODED } else { 0 }
    }

    #[inline]
    pub(super) fn of_word(word: u64) -> Self {
        let kind = match word & 0b11 {
            0 => LaneKind::Absent,
            1 => LaneKind::Bool,
            2 => LaneKind::Fixed {
                width: (word >> 16) as u16,
                stride: (word >> 32) as u16,
                number: match word >> 4 & 0b11 {
                    1 => Number::Signed,
                    2 => Number::Float,
                    3 => Number::Bytes16,
                    _ => Number::Opaque,
                },
            },
            _ => LaneKind::Varlena {
                dictionary: word & 1 << 2 != 0,
                packed: word & 1 << 3 != 0,
            },
        };
        Layout {
            kind,
            coded: word & CODED != 0,
        }
    }

    /// Bytes of the lane of a segment of `rows_max` rows, a multiple of 64.
    pub(super) fn lane_bytes(self, rows_max: u32) -> u64 {
        let rows = u64::from(rows_max);
        match self.kind {
            LaneKind::Absent => 0,
            LaneKind::Bool => rows / 8,
            LaneKind::Fixed { stride, .. } => rows * u64::from(stride),
            LaneKind::Varlena { .. } if self.coded => rows * size_of::<u32>() as u64,
            LaneKind::Varlena { .. } => rows * size_of::<u64>() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{any_kind, cases};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(cases(50))]

        #[test]
        fn a_word_tells_the_whole_layout(kind in any_kind(), coded in any::<bool>()) {
            let layout = Layout { kind, coded };
            prop_assert!(Layout::of_word(layout.word()) == layout);
        }
    }
}
