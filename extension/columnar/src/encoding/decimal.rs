//! Floats as decimals: integers over a power of ten.
//!
//! The scheme follows ALP (Afroozeh, Kuffó, Boncz: "ALP: Adaptive Lossless floating-Point
//! Compression", 2023), with one departure: a decimal is converted back by a division instead of a
//! multiplication with two rounded powers. A division rounds once, so every decimal of up to 15
//! digits is restored exactly, and one exponent is searched for instead of two. A float that is not
//! restored bit by bit (NaN, infinity, -0, true doubles) is an outlier.

use super::integers::Outliers;
use super::kernel::{POWERS, decimal_to_f64};

/// Floats of a width: their bits in words, and back.
trait Float {
    fn widen(bits: u64) -> f64;
    fn narrow(value: f64) -> u64;
}

struct Double;
struct Single;

impl Float for Double {
    #[inline]
    fn widen(bits: u64) -> f64 {
        f64::from_bits(bits)
    }
    #[inline]
    fn narrow(value: f64) -> u64 {
        value.to_bits()
    }
}

impl Float for Single {
    #[inline]
    fn widen(bits: u64) -> f64 {
        f64::from(f32::from_bits(bits as u32))
    }
    #[inline]
    fn narrow(value: f64) -> u64 {
        u64::from((value as f32).to_bits())
    }
}

/// The integer that stands for a float under a power of ten, if one does.
#[inline]
fn decimal<F: Float>(bits: u64, power: u8) -> Option<i64> {
    let scaled = F::widen(bits) * POWERS[usize::from(power)];
    let number = if power == 0 {
        scaled as i64
    } else {
        nearest(scaled)
    };
    (F::narrow(decimal_to_f64(number, power)) == bits).then_some(number)
}

/// Adding it to a float below 2^51 leaves no bits for a fraction.
const SHIFT: f64 = 6_755_399_441_055_744.0;

/// The integer nearest to a float below 2^51; anything for others.
#[inline]
fn nearest(value: f64) -> i64 {
    ((value + SHIFT).to_bits() as i64).wrapping_sub(SHIFT.to_bits() as i64)
}

/// Converts floats, as bits, to decimals of one power of ten. Returns `None` if no power suits most
/// of them. The number of an outlier is the number before it.
pub(super) fn to_decimals(
    values: &[u64],
    numbers: &mut Vec<i64>,
    outliers: &mut Outliers,
) -> Option<u8> {
    match outliers.width {
        8 => convert::<Double>(values, numbers, outliers),
        _ => convert::<Single>(values, numbers, outliers),
    }
}

fn convert<F: Float>(
    values: &[u64],
    numbers: &mut Vec<i64>,
    outliers: &mut Outliers,
) -> Option<u8> {
    let power = power::<F>(values)?;
    outliers.rows.clear();
    if all_decimals::<F>(values, power, numbers) {
        return Some(power);
    }
    numbers.clear();
    let outliers_max = values.len() / 4 + 1;
    let mut before = None;
    for (row, &bits) in values.iter().enumerate() {
        match decimal::<F>(bits, power) {
            Some(number) => {
                if before.is_none() {
                    // Outliers before the first decimal.
                    numbers.fill(number);
                }
                numbers.push(number);
                before = Some(number);
            }
            None => {
                numbers.push(before.unwrap_or_default());
                outliers.rows.push((row, bits));
                if outliers.rows.len() > outliers_max {
                    return None;
                }
            }
        }
    }
    Some(power)
}

/// Whether all floats are decimals of a power of ten below 2^51, as most are: `numbers` are these
/// then, else anything. Without a branch a row, and compiled twice: with AVX2 it takes four rows at
/// a time.
fn all_decimals<F: Float>(values: &[u64], power: u8, numbers: &mut Vec<i64>) -> bool {
    #[inline(always)]
    fn body<F: Float>(values: &[u64], power: u8, numbers: &mut [i64]) -> bool {
        const LIMIT: f64 = (1_u64 << 51) as f64;
        let scale = POWERS[usize::from(power)];
        let mut all = true;
        for (number, &bits) in numbers.iter_mut().zip(values) {
            let scaled = F::widen(bits) * scale;
            let shifted = scaled + SHIFT;
            *number = (shifted.to_bits() as i64).wrapping_sub(SHIFT.to_bits() as i64);
            let back = F::narrow((shifted - SHIFT) / scale);
            all &= (back == bits) & (scaled.abs() < LIMIT);
        }
        all
    }
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx2")]
    fn with_avx2<F: Float>(values: &[u64], power: u8, numbers: &mut [i64]) -> bool {
        body::<F>(values, power, numbers)
    }
    numbers.resize(values.len(), 0);
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the CPU supports AVX2, as just tested.
        return unsafe { with_avx2::<F>(values, power, numbers) };
    }
    body::<F>(values, power, numbers)
}

/// The least power of ten that suits a sample, ignoring floats that no power suits.
fn power<F: Float>(values: &[u64]) -> Option<u8> {
    const SAMPLE: usize = 16;
    let count = values.len().min(SAMPLE);
    let (mut power, mut suited) = (0, 0);
    for index in 0..count {
        let bits = values[index * values.len() / count];
        // More digits never hurt a decimal of fewer, so the search goes on from the last.
        let suits = (power..POWERS.len() as u8).find(|&power| decimal::<F>(bits, power).is_some());
        if let Some(suits) = suits {
            power = suits;
            suited += 1;
        }
    }
    (2 * suited >= count).then_some(power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(values: &[f64]) -> Option<(u8, usize)> {
        let bits: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
        let mut outliers = Outliers {
            width: 8,
            ..Outliers::default()
        };
        let mut numbers = Vec::new();
        let power = to_decimals(&bits, &mut numbers, &mut outliers)?;
        let mut back: Vec<u64> = numbers
            .iter()
            .map(|&number| decimal_to_f64(number, power).to_bits())
            .collect();
        for &(row, bits) in &outliers.rows {
            back[row] = bits;
        }
        assert_eq!(back, bits);
        Some((power, outliers.rows.len()))
    }

    #[test]
    fn every_hundredth_is_a_decimal() {
        let count = if cfg!(miri) { 100 } else { 10_000 };
        let values: Vec<f64> = (0..count)
            .map(|number| f64::from(number - 5_000) / 100.0)
            .collect();
        assert_eq!(round_trip(&values), Some((2, 0)));
    }

    #[test]
    fn integers_to_the_last_bit_need_no_power() {
        let values: Vec<f64> = (0..50)
            .map(|shift| (1_u64 << shift) as f64 * 4097.0)
            .collect();
        assert_eq!(round_trip(&values), Some((0, 0)));
    }

    #[test]
    fn what_is_no_number_is_an_outlier() {
        let stale = f64::from_bits(0x7ff0_0000_0000_0002);
        let mut values = vec![0.5; 40];
        values[0] = stale;
        values[7] = -0.0;
        values[8] = f64::INFINITY;
        assert_eq!(round_trip(&values), Some((1, 3)));
    }

    #[test]
    fn true_doubles_are_no_decimals() {
        let values: Vec<f64> = (1..100).map(|number| 1.0 / f64::from(3 * number)).collect();
        assert_eq!(round_trip(&values), None);
    }
}
