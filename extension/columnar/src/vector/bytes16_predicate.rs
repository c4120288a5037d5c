//! A test on a column of 16 bytes: uuids.

use lanes_simd::Comparison;

use super::frame::Frame;
use super::predicate::{Truth, holds};
use super::selection::Selection;
use crate::bytes16::Bytes16;
use crate::lane::LaneData;
use crate::zone_map::Zone;

/// A test on a column of 16 bytes.
pub struct Bytes16Predicate {
    attribute: usize,
    test: Bytes16Test,
    /// Whether NULL is one of the values, so that a miss is NULL.
    has_null: bool,
}

/// The comparison of a value.
enum Bytes16Test {
    /// This one.
    Compare(Comparison, Bytes16),
    /// Equality with one of these values, which ascend.
    OneOf(Vec<Bytes16>),
}

impl Bytes16Predicate {
    /// An attribute compared with a value.
    pub fn compare(
        attribute: usize,
        comparison: Comparison,
        value: Bytes16,
    ) -> Box<Bytes16Predicate> {
        let test = Bytes16Test::Compare(comparison, value);
        Box::new(Bytes16Predicate {
            attribute,
            test,
            has_null: false,
        })
    }

    /// Tests whether an attribute is one of some values, in any order. If NULL is among them, a
    /// miss is NULL.
    pub fn one_of(
        attribute: usize,
        mut values: Vec<Bytes16>,
        has_null: bool,
    ) -> Box<Bytes16Predicate> {
        values.sort_unstable();
        values.dedup();
        let test = match values[..] {
            [value] => Bytes16Test::Compare(Comparison::Equal, value),
            _ => Bytes16Test::OneOf(values),
        };
        Box::new(Bytes16Predicate {
            attribute,
            test,
            has_null,
        })
    }

    /// The column that is tested.
    pub(super) fn attribute(&self) -> usize {
        self.attribute
    }

    /// Whether a zone of the column proves that the test holds for none of its rows.
    pub(super) fn is_ruled_out(&self, zone: &Zone) -> bool {
        match &self.test {
            Bytes16Test::Compare(comparison, value) => value.is_ruled_out(*comparison, zone),
            Bytes16Test::OneOf(values) => {
                if zone.non_null == 0 || values.is_empty() {
                    return true;
                }
                let (Some(least), Some(greatest)) = (zone.minimum.signed(), zone.maximum.signed())
                else {
                    return false;
                };
                let next = values.partition_point(|value| value.prefix() < least);
                let next = values.get(next);
                next.is_none_or(|value| value.prefix() > greatest)
            }
        }
    }

    /// The results of the test for rows that are not NULL.
    pub(super) fn evaluate(&self, frame: &Frame<'_>, known: &Selection) -> Truth {
        let mut yes = Selection::NONE;
        if let LaneData::Fixed { values, stride } = frame.lane(self.attribute).data {
            debug_assert_eq!(stride, 16);
            // SAFETY: the lane covers the vector.
            let values = unsafe { values.add(frame.place * 16).cast::<[u8; 16]>() };
            match &self.test {
                Bytes16Test::Compare(comparison @ Comparison::Equal, value)
                | Bytes16Test::Compare(comparison @ Comparison::NotEqual, value) => {
                    // SAFETY: as above.
                    let equal = unsafe { equal_rows(values, frame.rows, value.bytes(), known) };
                    yes = match comparison {
                        Comparison::Equal => equal,
                        _ => known.and_not(&equal),
                    };
                }
                Bytes16Test::Compare(comparison, value) => {
                    // SAFETY: as above.
                    let at = |row: usize| Bytes16::of(unsafe { *values.add(row) });
                    yes = select(known, |row| holds(*comparison, at(row).cmp(value)));
                }
                Bytes16Test::OneOf(list) => {
                    // Neighbours are often equal.
                    let mut last: Option<(Bytes16, bool)> = None;
                    yes = select(known, |row| {
                        // SAFETY: as above.
                        let value = Bytes16::of(unsafe { *values.add(row) });
                        let found = match last {
                            Some((before, found)) if before == value => found,
                            _ => list.binary_search(&value).is_ok(),
                        };
                        last = Some((value, found));
                        found
                    });
                }
            }
        }
        Truth {
            yes,
            no: match self.has_null {
                true => Selection::NONE,
                false => known.and_not(&yes),
            },
        }
    }
}

/// The rows of a selection for which a test holds.
fn select(rows: &Selection, mut test: impl FnMut(usize) -> bool) -> Selection {
    let mut found = Selection::NONE;
    rows.for_each(|row| found.words[row / 64] |= u64::from(test(row)) << (row % 64));
    found
}

/// The rows of a selection that have these bytes.
///
/// # Safety
/// There are `count` values, of any alignment.
unsafe fn equal_rows(
    values: *const [u8; 16],
    count: usize,
    wanted: [u8; 16],
    rows: &Selection,
) -> Selection {
    // SAFETY: this function's contract; bytes have no alignment.
    let values = unsafe { std::slice::from_raw_parts(values, count) };
    let wanted = u128::from_ne_bytes(wanted);
    let mut found = Selection::NONE;
    for (word, values) in found.words.iter_mut().zip(values.chunks(64)) {
        let bits = values.iter().enumerate();
        *word = bits.fold(0, |word, (bit, value)| {
            word | u64::from(u128::from_ne_bytes(*value) == wanted) << bit
        });
    }
    found.and(rows)
}
