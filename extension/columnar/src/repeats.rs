//! The values of a column in a vector as repeats of equal values, read from sealed bytes without
//! decoding.

use std::ops::Range;

use crate::encoding::{Constant, EncodedLane};

/// The least average number of rows of a repeat. Shorter repeats are no faster than single rows.
pub(crate) const ROWS_MIN: usize = 12;

/// The repeats of a vector. Neighbours may be equal.
#[derive(Clone, Debug, Default)]
pub struct ValueRepeats {
    /// Where each of them ends.
    ends: Vec<u32>,
    /// The value of each repeat: the bits of a number, or a code. `None` is NULL.
    values: Vec<Option<u64>>,
}

impl ValueRepeats {
    /// Reads the repeats of the first rows of a vector. Returns false if the bytes do not consist
    /// of repeats, the repeats are short, the values are not numbers, or a code is not below
    /// `items`.
    pub(crate) fn read(
        &mut self,
        lane: &EncodedLane<'_>,
        vector: usize,
        rows: usize,
        items: usize,
    ) -> bool {
        self.ends.clear();
        self.values.clear();
        let mut end = 0;
        for (constant, length) in lane.repeats(vector).into_iter().flatten() {
            let value = match constant {
                Constant::Null => None,
                Constant::Bits(bits) => Some(bits),
                Constant::Code(code) if (code as usize) < items => Some(code.into()),
                Constant::Code(_) | Constant::Bytes(_) => return false,
            };
            end += length;
            self.ends.push(end.min(rows) as u32);
            self.values.push(value);
            if end >= rows {
                break;
            }
            if self.ends.len() * ROWS_MIN > rows {
                return false;
            }
        }
        end >= rows
    }

    /// Repeats with these numbers of rows and these values.
    #[cfg(test)]
    pub(crate) fn of(repeats: &[(usize, Option<u64>)]) -> ValueRepeats {
        let mut end = 0;
        ValueRepeats {
            ends: repeats
                .iter()
                .map(|(rows, _)| {
                    end += *rows as u32;
                    end
                })
                .collect(),
            values: repeats.iter().map(|(_, value)| *value).collect(),
        }
    }

    /// Each with its rows.
    pub fn iter(&self) -> impl Iterator<Item = (Option<u64>, Range<usize>)> + '_ {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        let rows = starts.zip(&self.ends);
        let rows = rows.map(|(start, end)| start as usize..*end as usize);
        self.values.iter().copied().zip(rows)
    }
}
