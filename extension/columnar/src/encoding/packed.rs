//! The packed residuals of a block: parsed, verified, unpacked with their patches. Nothing here
//! trusts the bytes, as in `block`.

use super::bytes::{ByteReader, malformed};
use super::format::{EXTRAS, WIDTH_MASK};
use super::kernel;
use crate::error::Result;

/// Packed residuals.
pub(super) struct Packed<'a> {
    base: u64,
    pub(super) factor: u64,
    pub(super) width: u32,
    /// The packed bits and the slack after them.
    bits: &'a [u8],
    pub(super) patches: usize,
    pub(super) outliers: usize,
    exceptions: ByteReader<'a>,
}

impl<'a> Packed<'a> {
    pub(super) fn parse(
        reader: &mut ByteReader<'a>,
        base: u64,
        residuals: usize,
        float_width: usize,
    ) -> Result<Self> {
        let head = reader.byte()?;
        let width = u32::from(head & WIDTH_MASK);
        if width > 64 {
            return malformed("a width exceeds 64 bits");
        }
        let (mut factor, mut patches, mut outliers, mut exception_bytes) = (1, 0, 0, 0);
        if head & EXTRAS != 0 {
            factor = reader.varint()?;
            patches = reader.count()?;
            outliers = reader.count()?;
            exception_bytes = reader.count()?;
        }
        if float_width == 0 && outliers > 0 {
            return malformed("an outlier where there are no floats");
        }
        let bits = reader.bytes_and_slack(packed_len(residuals, width))?;
        let exceptions = *reader;
        reader.bytes(exception_bytes)?;
        Ok(Packed {
            base,
            factor,
            width,
            bits,
            patches,
            outliers,
            exceptions,
        })
    }

    /// Checks the places of patches and outliers.
    pub(super) fn verify(&self, residuals: usize, rows: usize, float_width: usize) -> Result<()> {
        let mut reader = self.exceptions;
        let mut next = 0;
        for _ in 0..self.patches {
            let place = reader.count()?;
            reader.varint()?;
            if place >= residuals - next.min(residuals) {
                return malformed("a patch is outside its block");
            }
            next += place + 1;
        }
        let mut next = 0;
        for _ in 0..self.outliers {
            let place = reader.count()?;
            reader.bytes(float_width)?;
            if place >= rows - next.min(rows) {
                return malformed("an outlier is outside its block");
            }
            next += place + 1;
        }
        Ok(())
    }

    /// No residual times the factor and with the base added is less or greater; `None` if that
    /// takes decoding.
    pub(super) fn bounds(&self) -> Option<(i128, i128)> {
        let mut bounds = self.unpatched_bounds()?;
        let (least, greatest) = bounds;
        self.each_patch(|patch| {
            bounds.0 = bounds.0.min(least.checked_add(patch)?);
            bounds.1 = bounds.1.max(greatest.checked_add(patch)?);
            Some(())
        })?;
        Some(bounds)
    }

    /// Bounds of the sum of the first residuals, times the factor and with the base added to each,
    /// for every number of residuals from one to `residuals`. Returns `None` if they would require
    /// decoding.
    pub(super) fn sum_bounds(&self, residuals: usize) -> Option<(i128, i128)> {
        let (least, greatest) = self.unpatched_bounds()?;
        let (down, up) = (|step: i128| step.min(0), |step: i128| step.max(0));
        let times = |step: i128, count: usize| step.checked_mul(count as i128);
        let mut bounds = (
            times(down(least), residuals)?,
            times(up(greatest), residuals)?,
        );
        if self.width == 1 {
            // Bits are counted in no time, and steps of 0 and 1 are what keys make.
            let ones = self.ones(residuals);
            let sum = |each: fn(i128) -> i128| {
                times(each(least), residuals - ones)?.checked_add(times(each(greatest), ones)?)
            };
            bounds = (sum(down)?, sum(up)?);
        }
        self.each_patch(|patch| {
            bounds.0 = bounds.0.checked_add(down(patch))?;
            bounds.1 = bounds.1.checked_add(up(patch))?;
            Some(())
        })?;
        Some(bounds)
    }

    /// The bounds without the patches.
    fn unpatched_bounds(&self) -> Option<(i128, i128)> {
        if self.outliers > 0 {
            return None;
        }
        let base = i128::from(self.base as i64);
        let residual_max = (1_u128 << self.width) - 1;
        let span = residual_max.checked_mul(u128::from(self.factor))?;
        Some((base, base.checked_add_unsigned(span)?))
    }

    /// Calls `visit` with the amount that each patch adds to a number. Returns `None` if an amount
    /// leaves the range of numbers, or `visit` returns `None`.
    #[inline]
    fn each_patch(&self, mut visit: impl FnMut(i128) -> Option<()>) -> Option<()> {
        if self.patches == 0 {
            return Some(());
        }
        let mut reader = self.exceptions;
        let unit = 1_i64.checked_shl(self.width).filter(|&unit| unit > 0)?;
        let unit = unit.checked_mul(i64::try_from(self.factor).ok()?)?;
        for _ in 0..self.patches {
            reader.count().ok()?;
            let high = reader.signed().ok()?;
            visit(i128::from(high) * i128::from(unit))?;
        }
        Some(())
    }

    /// The number of ones among so many residuals of one bit.
    fn ones(&self, residuals: usize) -> usize {
        let (bytes, rest) = (residuals / 8, residuals % 8);
        let whole: u32 = self.bits[..bytes]
            .iter()
            .map(|byte| byte.count_ones())
            .sum();
        let last = self.bits[bytes] & ((1 << rest) - 1);
        (whole + last.count_ones()) as usize
    }

    /// Whether all numbers are the base.
    pub(super) fn is_uniform(&self) -> bool {
        self.width == 0 && self.patches == 0 && self.outliers == 0
    }

    /// One of the numbers.
    pub(super) fn number(&self, place: usize) -> u64 {
        let residual = kernel::unpack_one(self.bits, self.width, 0, place);
        let mut number = residual.wrapping_mul(self.factor).wrapping_add(self.base);
        self.each_patched(|patched, more| {
            if patched == place {
                number = number.wrapping_add(more);
            }
        });
        number
    }

    /// The sum of the first numbers.
    pub(super) fn sum(&self, count: usize) -> u64 {
        let mut residuals = 0_u64;
        self.each_unpacked(count, |_, numbers| {
            residuals = numbers
                .iter()
                .fold(residuals, |sum, n| sum.wrapping_add(*n));
        });
        let mut sum = residuals
            .wrapping_mul(self.factor)
            .wrapping_add(self.base.wrapping_mul(count as u64));
        self.each_patched(|place, more| {
            if place < count {
                sum = sum.wrapping_add(more);
            }
        });
        sum
    }

    /// The sum of the sums of the first number, of the first two numbers, and so on up to `count`
    /// numbers.
    pub(super) fn sum_of_sums(&self, count: usize) -> u64 {
        let times = |place: usize| (count - place) as u64;
        let mut residuals = 0_u64;
        self.each_unpacked(count, |first, numbers| {
            let weighed = numbers.iter().zip(first..);
            residuals = weighed.fold(residuals, |sum, (n, place)| {
                sum.wrapping_add(n.wrapping_mul(times(place)))
            });
        });
        let all = (count * (count + 1) / 2) as u64;
        let mut sum = residuals
            .wrapping_mul(self.factor)
            .wrapping_add(self.base.wrapping_mul(all));
        self.each_patched(|place, more| {
            if place < count {
                sum = sum.wrapping_add(more.wrapping_mul(times(place)));
            }
        });
        sum
    }

    /// Calls `visit` with the first residuals as they are packed, some at a time, and the place of
    /// the first of them.
    fn each_unpacked(&self, count: usize, mut visit: impl FnMut(usize, &[u64])) {
        /// Residuals that begin at a whole byte, whatever their width.
        const AT_ONCE: usize = 256;
        if self.width == 0 {
            return;
        }
        let mut numbers = [0; AT_ONCE];
        for first in (0..count).step_by(AT_ONCE) {
            let numbers = &mut numbers[..(count - first).min(AT_ONCE)];
            let bits = &self.bits[first / 8 * self.width as usize..];
            kernel::unpack(bits, self.width, 0, numbers);
            visit(first, numbers);
        }
    }

    /// Writes the numbers: `out` has one for each residual.
    pub(super) fn unpack(&self, out: &mut [u64]) {
        if self.factor == 1 {
            kernel::unpack(self.bits, self.width, self.base, out);
        } else {
            kernel::unpack(self.bits, self.width, 0, out);
            kernel::scale(out, self.factor, self.base);
        }
        self.each_patched(|place, more| {
            if let Some(number) = out.get_mut(place) {
                *number = number.wrapping_add(more);
            }
        });
    }

    /// Unpacks the low halves of the numbers like [`unpack`](Self::unpack). Returns false and does
    /// nothing if that is no less work than unpacking the whole numbers.
    pub(super) fn unpack_narrow(&self, out: &mut [u32]) -> bool {
        if self.factor != 1 || self.width > u32::BITS {
            return false;
        }
        kernel::unpack_narrow(self.bits, self.width, self.base as u32, out);
        self.each_patched(|place, more| {
            if let Some(number) = out.get_mut(place) {
                *number = number.wrapping_add(more as u32);
            }
        });
        true
    }

    /// Writes the sums of all numbers so far and `before`.
    pub(super) fn unpack_sums(&self, out: &mut [u64], before: u64) {
        if self.factor == 1 && self.patches == 0 {
            return kernel::unpack_sums(self.bits, self.width, self.base, before, out);
        }
        self.unpack(out);
        kernel::sum_deltas(out, before);
    }

    /// Writes the floats of 8 bytes that the numbers are over this power of ten.
    pub(super) fn unpack_decimals(&self, out: &mut [u64], power: u8) {
        if self.factor != 1 {
            self.unpack(out);
            return kernel::decimals_to_f64(out, power);
        }
        kernel::unpack_decimals(self.bits, self.width, self.base, power, out);
        self.each_patched(|place, more| {
            if let Some(value) = out.get_mut(place) {
                let number = kernel::unpack_one(self.bits, self.width, self.base, place);
                let number = number.wrapping_add(more) as i64;
                *value = kernel::decimal_to_f64(number, power).to_bits();
            }
        });
    }

    /// Calls `visit` with the places of all patches, in order, and the amounts that they add. The
    /// places of unverified blocks may be out of bounds.
    fn each_patched(&self, mut visit: impl FnMut(usize, u64)) {
        let mut reader = self.exceptions;
        let mut next = 0_usize;
        let unit = self.factor.checked_shl(self.width).unwrap_or_default();
        for _ in 0..self.patches {
            let (Ok(gap), Ok(high)) = (reader.count(), reader.signed()) else {
                return;
            };
            let place = next.saturating_add(gap);
            visit(place, (high as u64).wrapping_mul(unit));
            next = place.saturating_add(1);
        }
    }

    /// The places and the bits of all outliers, in order; places may be outside of unverified
    /// blocks.
    pub(super) fn each_outlier(&self, float_width: usize, mut visit: impl FnMut(usize, u64)) {
        if self.outliers == 0 {
            return;
        }
        let mut reader = self.exceptions;
        for _ in 0..2 * self.patches {
            if reader.varint().is_err() {
                return;
            }
        }
        let mut next = 0_usize;
        for _ in 0..self.outliers {
            let (Ok(gap), Ok(bytes)) = (reader.count(), reader.bytes(float_width)) else {
                return;
            };
            let place = next.saturating_add(gap);
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            visit(place, u64::from_le_bytes(whole));
            next = place.saturating_add(1);
        }
    }
}

/// Bytes of `count` packed residuals of `width` bits.
#[inline]
pub(super) fn packed_len(count: usize, width: u32) -> usize {
    (count * width as usize).div_ceil(8)
}
