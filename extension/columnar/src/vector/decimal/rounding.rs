//! Doubles that are converted to `numeric` and rounded, as PostgreSQL does it.
//!
//! PostgreSQL writes a double with 15 digits, and rounds what it has written, ties away from zero. A product of doubles
//! tells the result for all but those near a tie. For these the digits are written here too.

use std::io::Write;

use super::power_of_ten;

/// The digits that PostgreSQL writes.
const DIGITS: i32 = 15;

/// The most places.
pub const PLACES_MAX: u8 = 15;

/// Greater results are left to others.
const RESULT_MAX: f64 = 1e17;

/// Writing 15 digits changes a double by half of 10^-14 of it at most, and the product by much less.
const ERROR: f64 = 1e-14;

/// `round(double::numeric, places)` times ten to the power of `places`; `None` if the double is not finite or the
/// result is too great.
///
/// # Panics
/// If there are more than [`PLACES_MAX`] places.
#[inline]
pub fn round_double(double: f64, places: u8) -> Option<i64> {
    assert!(places <= PLACES_MAX);
    let product = double.abs() * power_of_ten(places) as f64;
    if product.is_nan() || product >= RESULT_MAX {
        return None;
    }
    let whole = product.floor();
    let above_tie = product - whole - 0.5;
    let magnitude = if above_tie.abs() > product * ERROR {
        whole as i64 + i64::from(above_tie > 0.0)
    } else {
        round_digits(double.abs(), places)?
    };
    Some(if double < 0.0 { -magnitude } else { magnitude })
}

/// Writes a double that is finite and not negative with all of its digits, and rounds them.
#[cold]
fn round_digits(double: f64, places: u8) -> Option<i64> {
    let mut written = [0_u8; 32];
    let mut left = &mut written[..];
    write!(left, "{:.*e}", DIGITS as usize - 1, double).ok()?;
    let unused = left.len();
    let written = str::from_utf8(&written[..written.len() - unused]).ok()?;
    let (digits, exponent) = written.split_once('e')?;
    let digits = digits.bytes().filter(u8::is_ascii_digit);
    let digits = digits.fold(0, |number, digit| number * 10 + i64::from(digit - b'0'));
    let exponent = exponent.parse::<i32>().ok()? - (DIGITS - 1) + i32::from(places);
    match exponent {
        0..=18 => digits.checked_mul(power_of_ten(exponent as u8)),
        -15..0 => {
            let divisor = power_of_ten(-exponent as u8);
            Some((digits + divisor / 2) / divisor)
        }
        // Less than a tenth.
        ..-15 => Some(0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What `round_double` returns, found from the written digits alone.
    fn expected(double: f64, places: u8) -> Option<i64> {
        let magnitude = round_digits(double.abs(), places)?;
        Some(if double < 0.0 { -magnitude } else { magnitude })
    }

    #[test]
    fn ties_are_rounded_away_from_zero() {
        assert_eq!(round_double(0.125, 2), Some(13));
        assert_eq!(round_double(-0.125, 2), Some(-13));
        // A little less than a tie as a double, but not with 15 digits.
        assert_eq!(round_double(1.005, 2), Some(101));
        assert_eq!(round_double(2.675, 2), Some(268));
        assert_eq!(round_double(0.5, 0), Some(1));
        assert_eq!(round_double(1.5, 0), Some(2));
        assert_eq!(round_double(2.5, 0), Some(3));
        assert_eq!(round_double(-0.0, 2), Some(0));
        assert_eq!(round_double(-1e-300, 2), Some(0));
        assert_eq!(round_double(9.995, 2), Some(1000));
    }

    #[test]
    fn digits_past_the_fifteenth_do_not_count() {
        assert_eq!(
            round_double(1_234_567_890_123.456_7, 3),
            Some(1_234_567_890_123_460)
        );
        assert_eq!(
            round_double(123_456_789_012_345.67, 2),
            Some(12_345_678_901_234_600)
        );
        assert_eq!(
            round_double(0.999_999_999_999_999_9, 15),
            Some(1_000_000_000_000_000)
        );
    }

    #[test]
    fn what_is_too_great_has_no_result() {
        let all = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e17, -1e300];
        assert!(all.iter().all(|double| round_double(*double, 0).is_none()));
        assert_eq!(round_double(1e15, 2), None);
    }

    proptest! {
        #[test]
        fn products_and_digits_tell_the_same(
            number in -1_000_000_000_i64..1_000_000_000,
            divisor in prop::sample::select(vec![1.0, 2.0, 3.0, 7.0, 8.0, 100.0, 1_000.0, 1e4, 1e9, 1e-3]),
            places in 0_u8..=10,
        ) {
            let double = number as f64 / divisor;
            prop_assume!(double.abs() * 10_f64.powi(places.into()) < RESULT_MAX);
            prop_assert_eq!(round_double(double, places), expected(double, places));
        }
    }
}
