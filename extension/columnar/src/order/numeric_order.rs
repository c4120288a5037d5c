//! The order of PostgreSQL's `numeric`, from the bytes that it is stored with.
//!
//! | header, 2 bytes | then | meaning |
//! |---|---|---|
//! | `00…`, `01…` | a weight of 2 bytes, digits | positive, negative |
//! | `10s… …w wwww ww` | digits | the sign `s`, the weight `w` of 7 bits with a sign |
//! | `1100`, `1101`, `1111` | | NaN, infinity, negative infinity |
//!
//! Digits are of base 10,000, of 2 bytes each; the first counts ten thousand to the power of the
//! weight. Equal numbers may have different scales, which are of no account here.

use std::cmp::Ordering;

/// A number of which the digits lie in an item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Parsed<'a> {
    NegativeInfinity,
    /// With the digits between zeros, of which the first one is not 0. Zero has none.
    Finite {
        is_negative: bool,
        weight: i32,
        digits: &'a [[u8; 2]],
    },
    Infinity,
    NotANumber,
}

const SPECIAL: u16 = 0xC000;
const SHORT: u16 = 0x8000;
const NEGATIVE: u16 = 0x4000;
const SHORT_NEGATIVE: u16 = 0x2000;
const SHORT_WEIGHT_BITS: u32 = 7;

fn number(payload: &[u8]) -> Parsed<'_> {
    let (pairs, _) = payload.as_chunks::<2>();
    let word = |at: usize| pairs.get(at).map_or(0, |pair| u16::from_ne_bytes(*pair));
    let header = word(0);
    if header & SPECIAL == SPECIAL {
        return match header & 0xF000 {
            0xD000 => Parsed::Infinity,
            0xF000 => Parsed::NegativeInfinity,
            _ => Parsed::NotANumber,
        };
    }
    let (is_negative, weight, first) = match header & SHORT {
        0 => (header & NEGATIVE != 0, i32::from(word(1) as i16), 2),
        _ => {
            let unused = u16::BITS - SHORT_WEIGHT_BITS;
            let weight = (header << unused) as i16 >> unused;
            (header & SHORT_NEGATIVE != 0, i32::from(weight), 1)
        }
    };
    let digits = pairs.get(first..).unwrap_or_default();
    let zeros = digits.iter().take_while(|digit| **digit == [0, 0]).count();
    let digits = &digits[zeros..];
    let last = digits.iter().rposition(|digit| *digit != [0, 0]);
    let digits = &digits[..last.map_or(0, |last| last + 1)];
    let is_zero = digits.is_empty();
    Parsed::Finite {
        is_negative: is_negative && !is_zero,
        weight: if is_zero { 0 } else { weight - zeros as i32 },
        digits,
    }
}

const ZERO: u64 = 1 << 63;
/// Bits of a digit below 10,000.
const DIGIT_BITS: u32 = 14;
/// Digits that an abbreviation has.
const DIGITS: usize = 3;

/// A number of the same order, that differs for most numbers that differ.
pub(super) fn abbreviation(payload: &[u8]) -> u64 {
    match number(payload) {
        Parsed::NegativeInfinity => 0,
        Parsed::Infinity => u64::MAX - 1,
        Parsed::NotANumber => u64::MAX,
        Parsed::Finite { digits: [], .. } => ZERO,
        Parsed::Finite {
            is_negative,
            weight,
            digits,
        } => {
            // A weight has 16 bits. Zeros before the first digit make it less than the least of them.
            let weight = (weight + (1 << 17)) as u64;
            let digit = |at: usize| digits.get(at).map_or(0, |digit| u16::from_ne_bytes(*digit));
            let size =
                (0..DIGITS).fold(weight, |size, at| size << DIGIT_BITS | u64::from(digit(at)));
            if is_negative {
                ZERO - size
            } else {
                ZERO + size
            }
        }
    }
}

/// Compares two numbers, as `<` of `numeric` does.
pub(super) fn compare(a: &[u8], b: &[u8]) -> Ordering {
    let (a, b) = (number(a), number(b));
    let class = |number: Parsed<'_>| match number {
        Parsed::NegativeInfinity => 0,
        Parsed::Finite {
            is_negative: true, ..
        } => 1,
        Parsed::Finite { digits: [], .. } => 2,
        Parsed::Finite { .. } => 3,
        Parsed::Infinity => 4,
        Parsed::NotANumber => 5,
    };
    let size = |number| match number {
        Parsed::Finite { weight, digits, .. } => (weight, digits),
        _ => (0, [].as_slice()),
    };
    class(a).cmp(&class(b)).then_with(|| {
        let ((a_weight, a_digits), (b_weight, b_digits)) = (size(a), size(b));
        let digit = |digit: &[u8; 2]| u16::from_ne_bytes(*digit);
        let digits = || a_digits.iter().map(digit).cmp(b_digits.iter().map(digit));
        let order = a_weight.cmp(&b_weight).then_with(digits);
        if class(a) == 1 {
            order.reverse()
        } else {
            order
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A number as PostgreSQL stores it: `digits` of base 10,000, the first of this weight.
    fn stored(is_negative: bool, weight: i16, digits: &[u16], is_short: bool) -> Vec<u8> {
        let mut words = match is_short {
            true => vec![SHORT | u16::from(is_negative) << 13 | 3 << 7 | (weight as u16 & 0x7F)],
            false => vec![u16::from(is_negative) << 14 | 3, weight as u16],
        };
        words.extend_from_slice(digits);
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// A number in a form that is compared without thought: the sign times all digits, from those
    /// of 10,000 to the power of 10 down to that of -20.
    fn naive(is_negative: bool, weight: i16, digits: &[u16]) -> Vec<i32> {
        let sign = if is_negative { -1 } else { 1 };
        let digit = |place: i32| {
            let index = i32::from(weight) - place;
            let digit = usize::try_from(index)
                .ok()
                .and_then(|index| digits.get(index));
            sign * digit.map_or(0, |digit| i32::from(*digit))
        };
        (-20..=10).rev().map(digit).collect()
    }

    type Parts = (bool, i16, Vec<u16>, bool);

    fn any_number() -> impl Strategy<Value = Parts> {
        let digit = prop_oneof![Just(0), Just(1), Just(9_999), 0..10_000_u16];
        (
            any::<bool>(),
            -5..6_i16,
            prop::collection::vec(digit, 0..6),
            any::<bool>(),
        )
    }

    proptest! {
        #[test]
        fn numbers_are_ordered_by_their_digits(a in any_number(), b in any_number(), is_near: bool) {
            let b = match is_near {
                // A number that differs from `a` in its last digit alone.
                true => {
                    let mut digits = a.2.clone();
                    digits.last_mut().into_iter().for_each(|last| *last = b.2.first().copied().unwrap_or(0));
                    (a.0, a.1, digits, b.3)
                }
                false => b,
            };
            let bytes = |parts: &Parts| stored(parts.0, parts.1, &parts.2, parts.3);
            let expected = naive(a.0, a.1, &a.2).cmp(&naive(b.0, b.1, &b.2));
            let (a, b) = (bytes(&a), bytes(&b));
            prop_assert_eq!(compare(&a, &b), expected);
            let order = abbreviation(&a).cmp(&abbreviation(&b));
            prop_assert!(order == expected || order.is_eq());
        }
    }

    #[test]
    fn infinities_and_nan_have_their_places() {
        let special = |header: u16| header.to_ne_bytes().to_vec();
        let ordered = [
            special(0xF000),
            stored(true, i16::MAX, &[9_999, 9_999, 9_999, 9_999], false),
            stored(true, 0, &[1], true),
            stored(false, 0, &[], true),
            stored(false, i16::MIN, &[0, 1], false),
            stored(false, 0, &[1], true),
            stored(false, i16::MAX, &[9_999, 9_999, 9_999, 9_999], false),
            special(0xD000),
            special(0xC000),
        ];
        for (index, number) in ordered.iter().enumerate() {
            for (other_index, other) in ordered.iter().enumerate() {
                let expected = index.cmp(&other_index);
                assert_eq!(compare(number, other), expected);
                assert_eq!(abbreviation(number).cmp(&abbreviation(other)), expected);
            }
        }
    }
}
