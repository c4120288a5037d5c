//! Reads a `numeric` as PostgreSQL stores it.
//!
//! ```text
//! varlena header (1 or 4 bytes) │ u16 head │ [i16 weight] │ u16 digit …      all little-endian
//! short head: 1 0 sign(1) scale(6) weight(7)       long head: 0 sign(1) scale(14), the weight follows
//! other head: 1 1 …                                NaN, an infinity
//! ```
//! A digit is a number below 10,000. The first one counts 10,000 to the power of the weight. Zeros
//! at the end are left out.

use super::{Decimal, SCALE_MAX, power_of_ten};
use crate::vector::text::item_payload;

/// The bits of a head that tell its form.
pub(super) const FORM: u16 = 0xC000;
pub(super) const SHORT: u16 = 0x8000;
const SPECIAL: u16 = 0xC000;

/// The bits of a short head that are its scale.
pub(super) const SCALE: u16 = 0x1F80;

/// More digits never fit into 64 bits.
const DIGITS_MAX: usize = 5;

/// What the head of a number says.
struct Head {
    is_negative: bool,
    scale: u16,
    weight: i32,
    /// The bytes of head and weight.
    bytes: usize,
}

impl Head {
    /// What a short head says.
    #[inline(always)]
    fn short(head: u16) -> Head {
        Head {
            is_negative: head & 0x2000 != 0,
            scale: (head & SCALE) >> 7,
            // Seven bits with a sign.
            weight: i32::from((head << 9) as i16 >> 9),
            bytes: 2,
        }
    }

    /// Returns `None` for a number without digits, such as NaN.
    #[inline(always)]
    fn read(payload: &[u8]) -> Option<Head> {
        let head = u16_at(payload, 0)?;
        match head & FORM {
            SHORT => Some(Head::short(head)),
            SPECIAL => None,
            sign => Some(Head {
                is_negative: sign != 0,
                scale: head & !FORM,
                weight: i32::from(u16_at(payload, 2)? as i16),
                bytes: 4,
            }),
        }
    }
}

#[inline(always)]
fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let pair = bytes.get(at..at + 2)?;
    Some(u16::from_le_bytes([pair[0], pair[1]]))
}

/// Reads a number; `None` if it does not fit.
///
/// # Safety
/// `item` points to a `numeric` that is neither compressed nor out of line.
#[inline(always)]
pub(super) unsafe fn read(item: *const u8) -> Option<Decimal> {
    // SAFETY: this function's contract: a header of one byte counts the bytes of the item.
    unsafe {
        let header = *item;
        let count = usize::from(header >> 1).wrapping_sub(3) / 2;
        if header & 1 == 1 && count <= 4 {
            let head = item.add(1).cast::<u16>().read_unaligned();
            if head & FORM == SHORT {
                return read_short(head, item.add(3).cast(), count);
            }
        }
        read_any(item_payload(item))
    }
}

/// Reads a number of up to four digits with a short head.
///
/// # Safety
/// There are so many digits.
#[inline(always)]
unsafe fn read_short(head: u16, digits: *const u16, count: usize) -> Option<Decimal> {
    // SAFETY: this function's contract.
    let digit = |index: usize| unsafe { i64::from(digits.add(index).read_unaligned()) };
    let magnitude = match count {
        0 => 0,
        1 => digit(0),
        2 => digit(0) * 10_000 + digit(1),
        3 => (digit(0) * 10_000 + digit(1)) * 10_000 + digit(2),
        _ => ((digit(0) * 10_000 + digit(1)) * 10_000 + digit(2)) * 10_000 + digit(3),
    };
    scaled(&Head::short(head), magnitude, count)
}

/// Reads a number of any form.
#[inline(never)]
pub(super) fn read_any(payload: &[u8]) -> Option<Decimal> {
    let head = Head::read(payload)?;
    let digits = &payload[head.bytes..];
    let count = digits.len() / 2;
    if count > DIGITS_MAX {
        return None;
    }
    let mut magnitude: i64 = 0;
    for digit in digits.chunks_exact(2) {
        let digit = i64::from(u16::from_le_bytes([digit[0], digit[1]]));
        magnitude = magnitude.checked_mul(10_000)?.checked_add(digit)?;
    }
    scaled(&head, magnitude, count)
}

/// Brings the digits, read as one integer, to the scale.
#[inline(always)]
fn scaled(head: &Head, magnitude: i64, count: usize) -> Option<Decimal> {
    if head.scale > SCALE_MAX.into() {
        return None;
    }
    let scale = head.scale as u8;
    // The places after the last digit, or before its end, that the scale asks for.
    let missing = (head.weight + 1 - count as i32) * 4 + i32::from(scale);
    let magnitude = match missing {
        0 => magnitude,
        // Constant divisors are fast.
        -1 => whole(magnitude / 10, magnitude % 10)?,
        -2 => whole(magnitude / 100, magnitude % 100)?,
        -3 => whole(magnitude / 1_000, magnitude % 1_000)?,
        _ if magnitude == 0 => 0,
        1..=18 => magnitude.checked_mul(power_of_ten(missing as u8))?,
        _ => return None,
    };
    let value = if head.is_negative {
        -magnitude
    } else {
        magnitude
    };
    Some(Decimal { value, scale })
}

/// The quotient of a division without remainder.
#[inline(always)]
fn whole(quotient: i64, remainder: i64) -> Option<i64> {
    (remainder == 0).then_some(quotient)
}
