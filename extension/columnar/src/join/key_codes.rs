//! Codes of the values of a key, where neither side of an equality is a lane: equal values have one code.
//!
//! The values of the small side are taken in first. A value that it does not have has no code, nor has NULL.

use super::equal::SmallKey;
use crate::aggregate::key::canonical;
use crate::aggregate::key_values::{KeyValues, UNKNOWN};
use crate::vector::number::Scalar;

/// The codes of one key.
#[derive(Default)]
pub struct KeyCodes {
    values: KeyValues,
}

impl KeyCodes {
    /// The code of a value: a new one for a new value, until [`Self::close`].
    pub fn code(&mut self, value: SmallKey<'_>) -> Option<u32> {
        let code = match value {
            SmallKey::Null => UNKNOWN,
            SmallKey::Integer(integer) => {
                self.values.number(integer as u64, Scalar(integer as u64))
            }
            SmallKey::Float(float) => {
                let bits = canonical(float);
                self.values.number(bits, Scalar(bits))
            }
            SmallKey::Text(item) => self.values.text(item),
            SmallKey::Bytes16(value) => self.values.bytes16(value),
        };
        (code != UNKNOWN).then_some(code)
    }

    /// Gives no more new codes.
    pub fn close(&mut self) {
        self.values.close();
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.values.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_one_code() {
        let mut codes = KeyCodes::default();
        let short = |text: &[u8]| [&[(text.len() as u8 + 1) << 1 | 1], text].concat();
        let long = |text: &[u8]| [&((text.len() as u32 + 4) << 2).to_le_bytes()[..], text].concat();
        let first = codes.code(SmallKey::Text(&short(b"a")));
        assert!(first.is_some());
        assert_eq!(codes.code(SmallKey::Text(&long(b"a"))), first);
        assert_ne!(codes.code(SmallKey::Text(&short(b"b"))), first);
        let zero = codes.code(SmallKey::Float(0.0));
        assert_eq!(codes.code(SmallKey::Float(-0.0)), zero);
        let nan = codes.code(SmallKey::Float(f64::NAN));
        assert_eq!(codes.code(SmallKey::Float(-f64::NAN)), nan);
        assert_ne!(nan, zero);
        assert_eq!(codes.code(SmallKey::Null), None);
    }

    #[test]
    fn what_is_closed_knows_no_new_values() {
        let mut codes = KeyCodes::default();
        let known = codes.code(SmallKey::Integer(7));
        codes.close();
        assert_eq!(codes.code(SmallKey::Integer(7)), known);
        assert_eq!(codes.code(SmallKey::Integer(8)), None);
        assert_eq!(codes.code(SmallKey::Float(1.5)), None);
        assert_eq!(codes.code(SmallKey::Text(&[5, b'a'])), None);
        assert_eq!(codes.code(SmallKey::Null), None);
    }
}
