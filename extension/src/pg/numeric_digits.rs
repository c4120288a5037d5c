//! The digits of a number as PostgreSQL's `numeric` has them.
//!
//! ```text
//! bytes of a numeric     u16 head │ [i16 weight] │ i16 digit …                        little-endian
//! bytes of a state       count i32 │ weight i32 │ sign i32 │ scale i32 │ digit i16 …  network byte order
//! ```
//! A digit is a number below 10,000, and the first one counts 10,000 to the power of the weight. Zeros at both ends are
//! left out.

/// The base of the digits, and the decimal places of one.
const BASE: u128 = 10_000;
const PLACES: u32 = 4;
/// The sign of a negative number.
const NEGATIVE: u16 = 0x4000;

/// A number by its digits.
#[derive(Debug, PartialEq)]
pub struct NumericDigits {
    is_negative: bool,
    /// The number of decimal places after the point that are shown.
    scale: u8,
    weight: i32,
    digits: Vec<i16>,
}

impl NumericDigits {
    /// An integer that is to be divided by ten to the power of `scale`.
    pub fn of(value: i128, scale: u8) -> NumericDigits {
        let magnitude = value.unsigned_abs();
        // The first digit that is cut off holds the places that do not fill one.
        let part = u32::from(scale) % PLACES;
        let (mut rest, mut digits) = (magnitude, Vec::new());
        if part > 0 {
            let unit = 10_u128.pow(part);
            digits.push((rest % unit * 10_u128.pow(PLACES - part)) as i16);
            rest /= unit;
        }
        while rest > 0 {
            digits.push((rest % BASE) as i16);
            rest /= BASE;
        }
        let after_point = i32::from(scale.div_ceil(PLACES as u8));
        let mut weight = digits.len() as i32 - after_point - 1;
        while digits.last() == Some(&0) {
            digits.pop();
            weight -= 1;
        }
        digits.reverse();
        while digits.last() == Some(&0) {
            digits.pop();
        }
        let is_zero = digits.is_empty();
        NumericDigits {
            is_negative: value < 0,
            scale,
            weight: if is_zero { 0 } else { weight },
            digits,
        }
    }

    /// Adds the bytes that `numericvar_serialize` writes.
    pub fn push_state(&self, bytes: &mut Vec<u8>) {
        let sign = if self.is_negative { NEGATIVE } else { 0 };
        let head = [
            self.digits.len() as i32,
            self.weight,
            sign.into(),
            self.scale.into(),
        ];
        for field in head {
            bytes.extend(field.to_be_bytes());
        }
        for digit in &self.digits {
            bytes.extend(digit.to_be_bytes());
        }
    }

    /// The bytes of a `numeric` after its length.
    pub fn payload(&self) -> Vec<u8> {
        /// What the head of a short form has room for.
        const SHORT_SCALE_MAX: u8 = 63;
        const SHORT_WEIGHTS: std::ops::RangeInclusive<i32> = -64..=63;
        let mut bytes = Vec::with_capacity(4 + self.digits.len() * 2);
        if self.scale <= SHORT_SCALE_MAX && SHORT_WEIGHTS.contains(&self.weight) {
            let sign = u16::from(self.is_negative) << 13;
            let head = 0x8000 | sign | u16::from(self.scale) << 7 | self.weight as u16 & 0x7F;
            bytes.extend(head.to_le_bytes());
        } else {
            let sign = if self.is_negative { NEGATIVE } else { 0 };
            bytes.extend((sign | u16::from(self.scale)).to_le_bytes());
            bytes.extend((self.weight as i16).to_le_bytes());
        }
        for digit in &self.digits {
            bytes.extend(digit.to_le_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digits(value: i128, scale: u8) -> (i32, Vec<i16>) {
        let found = NumericDigits::of(value, scale);
        (found.weight, found.digits)
    }

    #[test]
    fn digits_are_those_of_postgresql() {
        assert_eq!(digits(0, 0), (0, vec![]));
        assert_eq!(digits(0, 5), (0, vec![]));
        assert_eq!(digits(7, 0), (0, vec![7]));
        assert_eq!(digits(10_000, 0), (1, vec![1]));
        assert_eq!(digits(1_250, 2), (0, vec![12, 5_000]));
        assert_eq!(digits(5, 2), (-1, vec![500]));
        assert_eq!(digits(5, 6), (-2, vec![500]));
        assert_eq!(digits(-123_456_789, 4), (1, vec![1, 2_345, 6_789]));
        assert_eq!(digits(120_000, 3), (0, vec![120]));
        assert_eq!(digits(i128::MIN, 0).0, 9);
    }

    #[test]
    fn a_state_has_fields_in_network_byte_order() {
        let mut bytes = Vec::new();
        NumericDigits::of(-10_002, 0).push_state(&mut bytes);
        let fields = [0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0x40, 0, 0, 0, 0, 0];
        assert_eq!(bytes[..16], fields);
        assert_eq!(bytes[16..], [0, 1, 0, 2]);
    }

    #[test]
    fn a_numeric_is_short_where_postgresql_makes_it_short() {
        let payload = NumericDigits::of(-1_250, 2).payload();
        assert_eq!(payload, [0x00, 0xA1, 12, 0, 0x88, 0x13]);
        let small = NumericDigits::of(5, 2).payload();
        assert_eq!(small[..2], [0x7F, 0x81]);
    }
}
