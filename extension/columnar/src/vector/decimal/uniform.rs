//! Reads many numbers of one scale.
//!
//! The columns of a table mostly have one scale, and numbers of few digits. Such a number is read without a branch for
//! its weight: its digits make an integer, and what to do with that stands in a table.

use super::item::{FORM, SCALE, SHORT};
use super::{SCALE_MAX, power_of_ten};

/// Digits to the base of 10,000 that an item may have here.
const DIGITS: i32 = 3;

/// The greatest exponent of ten by which [`DIGITS`] digits may be multiplied: the product is below 10^18.
const EXPONENT_MAX: i32 = 6;

/// How the digits of a `numeric` become its decimal: they are multiplied or divided by a power of ten. All numbers of
/// one weight (the place of their first digit) have the same step.
///
/// A division by ten to the power of n shifts by n bits, and multiplies by the inverse of five to the power of n among
/// the integers of 64 bits. If there is a remainder, a bit is lost by the shift, or the product is greater than any
/// quotient by that power of five.
#[derive(Clone, Copy)]
struct Step {
    shift: u32,
    /// The bits that the shift loses.
    lost: u64,
    multiplier: u64,
    /// The greatest product.
    most: u64,
}

impl Step {
    /// For ten to the power of an exponent.
    fn of(exponent: i32) -> Step {
        match exponent {
            0..=EXPONENT_MAX => Step {
                shift: 0,
                lost: 0,
                multiplier: power_of_ten(exponent as u8) as u64,
                most: u64::MAX,
            },
            -12..0 => {
                let shift = -exponent as u32;
                let power = 5_u64.pow(shift);
                Step {
                    shift,
                    lost: (1 << shift) - 1,
                    multiplier: inverse(power),
                    most: u64::MAX / power,
                }
            }
            // Zero alone fits.
            _ => Step {
                shift: 0,
                lost: u64::MAX,
                multiplier: 0,
                most: 0,
            },
        }
    }
}

/// The inverse of an odd integer among the integers of 64 bits.
fn inverse(odd: u64) -> u64 {
    // Each round doubles the number of bits that are right; five are at first.
    let rounds = 0..4;
    rounds.fold((3 * odd) ^ 2, |inverse: u64, _| {
        inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)))
    })
}

/// A reader of numbers of one scale.
pub(super) struct UniformReader {
    scale: u8,
    /// Form and scale of a head.
    expected: u64,
    /// What to do for each weight, by its seven bits.
    steps: Box<[Step; 128]>,
}

impl UniformReader {
    /// A reader of numbers of a scale up to [`SCALE_MAX`].
    pub(super) fn new(scale: u8) -> UniformReader {
        assert!(scale <= SCALE_MAX);
        let step = |bits: usize| {
            let weight = i32::from((bits as i8) << 1 >> 1);
            Step::of((weight + 1 - DIGITS) * 4 + i32::from(scale))
        };
        UniformReader {
            scale,
            expected: u64::from(SHORT | u16::from(scale) << 7),
            steps: Box::new(std::array::from_fn(step)),
        }
    }

    /// The scale.
    pub(super) fn scale(&self) -> u8 {
        self.scale
    }

    /// The magnitude and the number with the reader's scale; `None` if the item has another one, or is not so simple.
    ///
    /// # Safety
    /// `item` points to a `numeric` that is neither compressed nor out of line.
    #[inline(always)]
    pub(super) unsafe fn read(&self, item: *const u8) -> Option<(u64, i64)> {
        // SAFETY: this function's contract.
        let word = unsafe { word(item) }?;
        let digits = [word >> 16 & 0xFFFF, word >> 32 & 0xFFFF, word >> 48];
        let digits = digits[0] * 100_000_000 + digits[1] * 10_000 + digits[2];
        let step = &self.steps[(word & 0x7F) as usize];
        let magnitude = (digits >> step.shift).wrapping_mul(step.multiplier);
        let is_whole = (digits & step.lost == 0) & (magnitude <= step.most);
        let is_expected = word & u64::from(FORM | SCALE) == self.expected;
        let sign = -((word >> 13 & 1) as i64);
        (is_whole & is_expected).then_some((magnitude, (magnitude as i64 ^ sign) - sign))
    }
}

/// The head of an item with a header of one byte in the lowest 16 bits, and then its digits, up to three; `None` for
/// other items. A long head gives a word with another form.
///
/// # Safety
/// `item` points to a `numeric` that is neither compressed nor out of line.
#[inline(always)]
unsafe fn word(item: *const u8) -> Option<u64> {
    // SAFETY: this function's contract: a header of one byte counts the bytes of the item, itself included.
    unsafe {
        let half = |at: usize| u64::from(item.add(at).cast::<u16>().read_unaligned());
        let whole = |at: usize| u64::from(item.add(at).cast::<u32>().read_unaligned());
        match *item >> 1 | (*item & 1) << 7 {
            0x89 => Some(item.add(1).cast::<u64>().read_unaligned()),
            0x87 => Some(whole(1) | half(5) << 32),
            0x85 => Some(whole(1)),
            0x83 => Some(half(1)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverses_of_odd_integers_are_found() {
        for digits in 0..13 {
            let power = 5_u64.pow(digits);
            assert_eq!(power.wrapping_mul(inverse(power)), 1);
        }
    }
}
