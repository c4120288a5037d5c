//! A key of an equality join: how it is read from left rows, and the values that the small side has.

use crate::aggregate::key::{Key, KeyReader, canonical};
use crate::aggregate::key_values::{KeyValues, UNKNOWN};
use crate::bytes16::Bytes16;
use crate::vector::number::{NumberType, Scalar};

/// The value of a key in a row of the small side.
#[derive(Clone, Copy, Debug)]
pub enum SmallKey<'a> {
    /// NULL, which equals nothing.
    Null,
    /// An integer, widened to 64 bits.
    Integer(i64),
    /// A text as a stored item, header included.
    Text(&'a [u8]),
    /// A float, widened to 64 bits. Where the left key has 32 bits, it had too.
    Float(f64),
    /// 16 bytes.
    Bytes16(Bytes16),
}

/// A key of the left side, with the values that the small side has.
pub(super) struct EqualKey {
    pub(super) reader: KeyReader,
    pub(super) values: KeyValues,
    /// The integer that the small row before has, and its id.
    last: Option<(i64, u32)>,
}

impl EqualKey {
    pub(super) fn new(key: Key) -> EqualKey {
        EqualKey {
            reader: KeyReader::new(key).cutting(),
            values: KeyValues::default(),
            last: None,
        }
    }

    /// The canonical bits of all numbers, by id.
    pub(super) fn bits(&self) -> Vec<u64> {
        let mut bits = vec![0; self.values.len()];
        for (number, id) in self.values.integers().into_iter().flatten() {
            bits[id as usize] = number as u64;
        }
        bits
    }

    /// Forgets all values.
    pub(super) fn forget(&mut self) {
        self.values = KeyValues::default();
        self.last = None;
        self.reader.forget();
    }

    /// The canonical bits of a number.
    pub(super) fn word(&self, value: &SmallKey<'_>) -> Option<u64> {
        match (value, self.reader.number()) {
            (SmallKey::Integer(integer), _) => Some(*integer as u64),
            (SmallKey::Float(float), Some(NumberType::F32)) => Some(canonical(*float as f32)),
            (SmallKey::Float(float), _) => Some(canonical(*float)),
            _ => None,
        }
    }

    /// The id of a value that is not NULL.
    pub(super) fn id(&mut self, value: &SmallKey<'_>) -> u32 {
        match value {
            SmallKey::Integer(integer) => match self.last {
                Some((last, id)) if last == *integer => id,
                _ => {
                    let bits = *integer as u64;
                    let id = self.values.number(bits, Scalar(bits));
                    self.last = Some((*integer, id));
                    id
                }
            },
            SmallKey::Text(item) => self.values.text(item),
            SmallKey::Bytes16(value) => self.values.bytes16(*value),
            SmallKey::Float(_) => {
                let bits = self.word(value).unwrap_or_default();
                self.values.number(bits, Scalar(bits))
            }
            SmallKey::Null => UNKNOWN,
        }
    }
}
