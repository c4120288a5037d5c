//! A superset of the codes of a dictionary that some rows have.
//!
//! The rows of a vector that are sorted by a text have few codes, but not necessarily neighbouring
//! ones, because a dictionary may begin with items in any order. Beside the least and the greatest
//! code, a zone therefore has a mark for each code, which several codes share.

/// Marks of a zone.
const MARKS: u32 = 192;
const WORD_BITS: u32 = u64::BITS;

/// A superset of the codes of some rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeZone {
    least: u32,
    greatest: u32,
    marks: [u64; (MARKS / WORD_BITS) as usize],
}

impl CodeZone {
    /// No code.
    pub const EMPTY: CodeZone = CodeZone {
        least: u32::MAX,
        greatest: 0,
        marks: [0; 3],
    };

    /// The codes of some rows.
    pub fn of(codes: &[u32]) -> CodeZone {
        let mut zone = CodeZone::EMPTY;
        let mut last = None;
        for &code in codes {
            // In sorted rows a code usually follows itself.
            if last != Some(code) {
                zone.add(code);
                last = Some(code);
            }
        }
        zone
    }

    /// All from one to another.
    pub(crate) fn of_range(codes: std::ops::RangeInclusive<u32>) -> CodeZone {
        let mut zone = CodeZone::EMPTY;
        if codes.end().saturating_sub(*codes.start()) < MARKS {
            codes.for_each(|code| zone.add(code));
            return zone;
        }
        CodeZone {
            least: *codes.start(),
            greatest: *codes.end(),
            marks: [u64::MAX; 3],
        }
    }

    fn add(&mut self, code: u32) {
        self.least = self.least.min(code);
        self.greatest = self.greatest.max(code);
        let mark = code % MARKS;
        self.marks[(mark / WORD_BITS) as usize] |= 1 << (mark % WORD_BITS);
    }

    /// The codes of both zones.
    #[must_use]
    pub fn union(self, other: CodeZone) -> CodeZone {
        let mut marks = self.marks;
        marks.iter_mut().zip(other.marks).for_each(|(a, b)| *a |= b);
        CodeZone {
            least: self.least.min(other.least),
            greatest: self.greatest.max(other.greatest),
            marks,
        }
    }

    /// Whether some row may have the code.
    #[inline]
    pub fn may_have(&self, code: u32) -> bool {
        let mark = code % MARKS;
        (self.least..=self.greatest).contains(&code)
            && self.marks[(mark / WORD_BITS) as usize] >> (mark % WORD_BITS) & 1 == 1
    }

    /// The zone as words.
    pub(crate) fn words(self) -> [u64; 4] {
        let [a, b, c] = self.marks;
        [
            u64::from(self.greatest) << 32 | u64::from(self.least),
            a,
            b,
            c,
        ]
    }

    /// The zone that words stand for.
    pub(crate) fn of_words([ends, a, b, c]: [u64; 4]) -> CodeZone {
        CodeZone {
            least: ends as u32,
            greatest: (ends >> 32) as u32,
            marks: [a, b, c],
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows_have_no_other_codes(
            first in prop::collection::vec(0..700_u32, 0..20), second in prop::collection::vec(500..520_u32, 0..20),
        ) {
            let zone = CodeZone::of(&first).union(CodeZone::of(&second));
            prop_assert_eq!(CodeZone::of_words(zone.words()), zone);
            for code in first.iter().chain(&second) {
                prop_assert!(zone.may_have(*code));
            }
            let all = || first.iter().chain(&second);
            for code in 0..700 {
                let between = all().any(|other| *other <= code) && all().any(|other| *other >= code);
                let shared = all().any(|other| other % MARKS == code % MARKS);
                prop_assert_eq!(zone.may_have(code), between && shared);
            }
        }
    }
}
