//! Packing the residuals of a block.
//!
//! Two ways to pack them are compared: a width for all residuals, and, where a few distant
//! residuals would widen all, a window around the median with patches. The window is chosen by a
//! histogram of distances from the median. It is then narrowed to its contents, so that one-sided
//! distributions lose no bit to symmetry.

use super::bytes::{signed_len, varint_len, write_signed, write_varint, zigzag};
use super::divisor::{Divisor, common_factor, common_power_of_two};
use super::format::EXTRAS;
use super::integers::Outliers;
use super::packed::packed_len;
use super::sample::sample;

/// Blocks of fewer rows are looked through for powers of two only, not for any factor.
const FACTORED_ROWS_MIN: usize = 64;

/// How residuals are to be packed.
pub(super) struct Plan {
    base: i64,
    factor: u64,
    width: u32,
    has_patches: bool,
    /// Bytes of base, head, bits and patches; the patches by estimate.
    pub(super) bytes: usize,
}

impl Plan {
    #[inline(always)]
    pub(super) fn of(residuals: &[i64]) -> Plan {
        let Some((&first, rest)) = residuals.split_first() else {
            return Plan::new(residuals, 0, 0, 1);
        };
        let (mut least, mut greatest) = (first, first);
        for &residual in rest {
            least = least.min(residual);
            greatest = greatest.max(residual);
        }
        if least == greatest {
            return Plan::new(residuals, least, least, 1);
        }
        let factor = match residuals.len() < FACTORED_ROWS_MIN {
            true => common_power_of_two(residuals),
            false => common_factor(residuals),
        };
        Plan::new(residuals, least, greatest, factor)
    }

    /// Takes a narrower window with patches if that saves bytes and may make fewer than `best`;
    /// answers the bytes it then takes.
    #[inline(always)]
    pub(super) fn patch(&mut self, residuals: &[i64], best: usize) -> usize {
        let before = Plan::new(residuals, self.base, self.base, self.factor).bytes;
        let first = self
            .bytes
            .saturating_sub(before + packed_len(residuals.len(), self.width));
        if let Some(mut patched) =
            Plan::with_patches(residuals, self.factor, best.saturating_sub(first))
        {
            patched.bytes += first;
            *self = patched;
        }
        self.bytes
    }

    /// For residuals from `least` to `greatest` without patches.
    #[inline(always)]
    fn new(residuals: &[i64], least: i64, greatest: i64, factor: u64) -> Plan {
        let width = 64 - (greatest.abs_diff(least) / factor).leading_zeros();
        let extras = if factor == 1 {
            0
        } else {
            varint_len(factor) + 3
        };
        Plan {
            base: least,
            factor,
            width,
            has_patches: false,
            bytes: signed_len(least) + 1 + extras + packed_len(residuals.len(), width),
        }
    }

    /// A narrower window with patches, if that saves bytes.
    #[inline(always)]
    fn with_patches(residuals: &[i64], factor: u64, bytes_max: usize) -> Option<Plan> {
        /// Below this there is nothing to gain.
        const WORTH_BYTES: usize = 12;
        if bytes_max < WORTH_BYTES {
            return None;
        }
        let sample = sample(residuals);
        let (middle, narrowed) = (sample.median(), factor.ilog2());
        let bits_min = sample.bits_min().saturating_sub(narrowed);
        if packed_len(residuals.len(), bits_min) + WORTH_BYTES > bytes_max {
            return None;
        }
        let distance = |residual: i64| {
            let bits = 64 - zigzag(residual.wrapping_sub(middle)).leading_zeros();
            bits.saturating_sub(narrowed)
        };
        let patched_min = sample.patched_bits_min(residuals.len(), middle, narrowed) / 8;
        if patched_min + WORTH_BYTES > bytes_max {
            return None;
        }
        let histogram = histogram(residuals, distance);
        let (best, best_bits) = best_width(&histogram, residuals.len(), bits_min)?;
        let (mut least, mut greatest, mut inside) = (i64::MAX, i64::MIN, 0);
        for &residual in residuals {
            if distance(residual) as usize <= best {
                least = least.min(residual);
                greatest = greatest.max(residual);
                inside += 1;
            }
        }
        if inside == 0 || inside == residuals.len() {
            return None;
        }
        let mut plan = Plan::new(residuals, least, greatest, factor);
        plan.has_patches = true;
        if factor == 1 {
            plan.bytes += 4;
        }
        plan.bytes += best_bits.saturating_sub(residuals.len() * best) / 8;
        (plan.bytes < bytes_max).then_some(plan)
    }

    #[inline(always)]
    pub(super) fn is_constant(&self) -> bool {
        self.width == 0 && !self.has_patches
    }

    /// Appends base, head, bits and exceptions.
    #[inline(always)]
    pub(super) fn write(&self, residuals: &[i64], outliers: &Outliers, out: &mut Vec<u8>) {
        write_signed(self.base, out);
        let mut head = Head {
            width: self.width,
            factor: self.factor,
            patches: 0,
        };
        let count = residuals.len();
        if !self.has_patches {
            write_head(&head, &[], outliers, out);
            let above = residuals
                .iter()
                .map(|residual| residual.wrapping_sub(self.base) as u64);
            match self.factor {
                1 => pack(self.width, count, above, out),
                factor => {
                    let divisor = Divisor::of(factor);
                    pack(
                        self.width,
                        count,
                        above.map(|above| divisor.quotient(above)),
                        out,
                    )
                }
            }
            return write_outliers(outliers, out);
        }
        // Distances may need a bit more than there is.
        let quotient = |residual: i64| {
            (i128::from(residual) - i128::from(self.base)) / i128::from(self.factor)
        };
        let mut patches = Vec::new();
        let mut next = 0;
        for (place, &residual) in residuals.iter().enumerate() {
            let above = residual.wrapping_sub(self.base) as u64 / self.factor;
            if residual >= self.base && above <= low_mask(self.width) {
                continue;
            }
            write_varint((place - next) as u64, &mut patches);
            write_signed((quotient(residual) >> self.width) as i64, &mut patches);
            head.patches += 1;
            next = place + 1;
        }
        write_head(&head, &patches, outliers, out);
        let mask = low_mask(self.width);
        let low = residuals.iter().map(|&residual| match self.factor {
            // The low bits of a difference do not depend on those above.
            1 => residual.wrapping_sub(self.base) as u64 & mask,
            _ => quotient(residual) as u64 & mask,
        });
        pack(self.width, count, low, out);
        out.extend_from_slice(&patches);
        write_outliers(outliers, out);
    }
}

/// How many residuals have each distance.
#[inline(always)]
fn histogram(residuals: &[i64], distance: impl Fn(i64) -> u32) -> [u32; 65] {
    // Two, so that an equal one need not wait for the one before.
    let mut histograms = [[0_u32; 65]; 2];
    let (pairs, last) = residuals.as_chunks::<2>();
    for pair in pairs {
        for (histogram, &residual) in histograms.iter_mut().zip(pair) {
            histogram[distance(residual) as usize] += 1;
        }
    }
    for &residual in last {
        histograms[0][distance(residual) as usize] += 1;
    }
    let [mut histogram, other] = histograms;
    for (count, more) in histogram.iter_mut().zip(other) {
        *count += more;
    }
    histogram
}

/// The width of the window that takes the fewest bits with its patches, and these bits, for so many
/// residuals; `None`: that window holds all of them.
#[inline(always)]
fn best_width(histogram: &[u32; 65], rows: usize, bits_min: u32) -> Option<(usize, usize)> {
    let widest = histogram.iter().rposition(|&count| count > 0).unwrap_or(0);
    let (mut patches, mut patch_bits) = (0_usize, 0_usize);
    let (mut best, mut best_bits) = (widest, usize::MAX);
    for width in (bits_min.saturating_sub(1) as usize..=widest).rev() {
        // A gap of one byte, a continuation bit in eight, half a byte that is never full.
        let cost = rows * width + patches * 12 + patch_bits * 8 / 7;
        if cost < best_bits {
            (best, best_bits) = (width, cost);
        }
        patches += histogram[width] as usize;
        // These patches and the patches of greater widths have one bit more above a narrower
        // window.
        patch_bits += patches;
    }
    (best < widest).then_some((best, best_bits))
}

/// The head of packed residuals, before their bits.
pub(super) struct Head {
    pub(super) width: u32,
    pub(super) factor: u64,
    pub(super) patches: u64,
}

pub(super) fn write_head(head: &Head, patches: &[u8], outliers: &Outliers, out: &mut Vec<u8>) {
    if head.factor == 1 && patches.is_empty() && outliers.rows.is_empty() {
        out.push(head.width as u8);
        return;
    }
    out.push(head.width as u8 | EXTRAS);
    write_varint(head.factor, out);
    write_varint(head.patches, out);
    write_varint(outliers.rows.len() as u64, out);
    let mut bytes = patches.len();
    let mut next = 0;
    for &(row, _) in &outliers.rows {
        bytes += varint_len((row - next) as u64) + outliers.width;
        next = row + 1;
    }
    write_varint(bytes as u64, out);
}

pub(super) fn write_outliers(outliers: &Outliers, out: &mut Vec<u8>) {
    let mut next = 0;
    for &(row, bits) in &outliers.rows {
        write_varint((row - next) as u64, out);
        out.extend_from_slice(&bits.to_le_bytes()[..outliers.width]);
        next = row + 1;
    }
}

#[inline(always)]
fn low_mask(width: u32) -> u64 {
    u64::MAX.checked_shr(64 - width).unwrap_or_default()
}

/// Appends `count` numbers of one width, which have no bits above it, without gaps.
#[inline(always)]
pub(super) fn pack(
    width: u32,
    count: usize,
    numbers: impl Iterator<Item = u64>,
    out: &mut Vec<u8>,
) {
    if width == 0 {
        return;
    }
    out.reserve(packed_len(count, width));
    let (mut held, mut held_bits) = (0_u64, 0);
    for number in numbers {
        held |= number << held_bits;
        held_bits += width;
        if held_bits >= 64 {
            out.extend_from_slice(&held.to_le_bytes());
            held_bits -= 64;
            held = number.checked_shr(width - held_bits).unwrap_or_default();
        }
    }
    let bytes = held_bits.div_ceil(8) as usize;
    out.extend_from_slice(&held.to_le_bytes()[..bytes]);
}
