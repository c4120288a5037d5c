//! Encoding numbers as one block, in the smallest suitable form.
//!
//! For each order of differences (none, of rows, of differences) the residuals are measured once.
//! Two ways to pack them are compared: a width for all residuals, and, where a few distant
//! residuals would widen all, a window around the median with patches. The window is chosen by a
//! histogram of distances from the median. It is then narrowed to its contents, so that one-sided
//! distributions lose no bit to symmetry.

use super::block::FEW_MAX;
use super::bytes::{signed_len, varint_len, write_signed, write_varint, zigzag};
use super::divisor::{Divisor, common_factor, common_power_of_two};
use super::few::Few;
use super::format::{
    CONSTANT, DELTA, DELTA_OF_DELTA, EXTRAS, LEVEL, POWER_SHIFT, REST, RISING_DELTA,
    RISING_DELTA_OF_DELTA,
};
use super::packed::packed_len;
use super::sample::sample;
use crate::limits::VECTOR_ROWS;

/// The floats of a block that no decimal stands for.
#[derive(Default)]
pub(super) struct Outliers {
    /// Bytes of a float; 0 where there are no floats.
    pub(super) width: usize,
    /// Row of the block, bits of the float.
    pub(super) rows: Vec<(usize, u64)>,
}

/// How a block begins.
#[derive(Clone, Copy)]
pub(super) struct Start {
    /// Its rows are all that are left.
    pub(super) is_rest: bool,
    /// Its power of ten, in its place.
    pub(super) power: u8,
}

impl Start {
    pub(super) fn write(self, form: u8, rows: usize, out: &mut Vec<u8>) {
        let rest = if self.is_rest { REST } else { 0 };
        out.push(form | rest | self.power << POWER_SHIFT);
        if !self.is_rest {
            write_varint(rows as u64, out);
        }
    }
}

/// An estimate of the fewest bytes for one block of `rows` rows, from some pairs of neighbours one
/// after the other.
pub(super) fn bytes_min(pairs: &[i64], rows: usize) -> usize {
    let pairs = pairs.as_chunks::<2>().0;
    let mut numbers: Vec<i64> = pairs.iter().map(|pair| pair[1]).collect();
    let deltas = pairs.iter().map(|pair| pair[1].wrapping_sub(pair[0]));
    let mut deltas: Vec<i64> = deltas.collect();
    numbers.sort_unstable();
    deltas.sort_unstable();
    let (mut distinct, mut once) = (0, 0);
    for equal in numbers.chunk_by(|a, b| a == b) {
        distinct += 1;
        once += usize::from(equal.len() == 1);
    }
    // The share of the other rows with numbers that are not in the sample is about the share of the
    // sample with numbers that occur once (Good and Turing). Half of them are assumed to be
    // distinct.
    let distinct = distinct + rows * once / pairs.len() / 2;
    let few = match distinct < FEW_MAX {
        true => packed_len(rows, distinct.ilog2()) + distinct,
        false => usize::MAX,
    };
    few.min(patched_min(&numbers, rows))
        .min(patched_min(&deltas, rows))
}

/// An estimate of the fewest bytes for so many numbers, from a sorted sample, if numbers far from
/// the median are patched.
fn patched_min(sorted: &[i64], rows: usize) -> usize {
    // A factor of all numbers divides the common factor of the sample.
    let narrowed = common_factor(sorted).ilog2();
    let middle = sorted[sorted.len() / 2];
    let mut counts = [0_usize; 65];
    for &number in sorted {
        let bits = 64 - number.abs_diff(middle).leading_zeros();
        counts[bits.saturating_sub(narrowed) as usize] += 1;
    }
    let (mut outside, mut outside_bits, mut least) = (0, 0, usize::MAX);
    for (width, count) in counts.into_iter().enumerate().rev() {
        // A byte for the gap before each: less than it takes, as fewer may be far from the middle
        // than there seem to be.
        let patches = rows * (outside * 8 + outside_bits) / sorted.len();
        least = least.min((rows * width + patches) / 8);
        outside += count;
        outside_bits += outside;
    }
    least
}

/// In blocks of fewer rows patches save less than it costs to look for them: a third of a percent
/// of the bytes of node_exporter's samples in blocks of 33 rows, for a fifth of the time.
const PATCHED_ROWS_MIN: usize = 64;

/// Blocks of fewer rows are looked through for powers of two only, not for any factor.
const FACTORED_ROWS_MIN: usize = 64;

/// Memory for the differences of a block's numbers.
#[derive(Default)]
pub(super) struct Differences {
    deltas: Vec<i64>,
    changes: Vec<i64>,
}

/// Appends the block of these numbers, at least one, unless it would take more than about
/// `bytes_max`. Compiled twice: counting leading zeros and comparing numbers of 64 bits take one
/// instruction each since AVX2.
pub(super) fn write_block(
    numbers: &[i64],
    outliers: &Outliers,
    start: Start,
    bytes_max: usize,
    differences: &mut Differences,
    out: &mut Vec<u8>,
) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
        fn with_avx2(
            numbers: &[i64],
            outliers: &Outliers,
            start: Start,
            bytes_max: usize,
            differences: &mut Differences,
            out: &mut Vec<u8>,
        ) {
            write_block_anywhere(numbers, outliers, start, bytes_max, differences, out);
        }
        if is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
        {
            // SAFETY: the CPU supports AVX2, as just tested.
            return unsafe { with_avx2(numbers, outliers, start, bytes_max, differences, out) };
        }
    }
    write_block_anywhere(numbers, outliers, start, bytes_max, differences, out);
}

#[inline(always)]
fn write_block_anywhere(
    numbers: &[i64],
    outliers: &Outliers,
    start: Start,
    bytes_max: usize,
    differences: &mut Differences,
    out: &mut Vec<u8>,
) {
    let rows = numbers.len();
    let first = numbers[0];
    let mut level = Plan::of(numbers);
    if level.is_constant() && outliers.rows.is_empty() {
        start.write(CONSTANT, rows, out);
        write_signed(first, out);
        return;
    }
    let Differences { deltas, changes } = differences;
    fill_deltas(numbers, deltas);
    let mut delta = Plan::of(deltas);
    delta.bytes += signed_len(first);
    fill_deltas(deltas, changes);
    let mut change = Plan::of(changes);
    change.bytes += signed_len(first) + deltas.first().map_or(0, |&step| signed_len(step));
    let mut best = bytes_max.min(level.bytes).min(delta.bytes);
    if rows > 2 {
        best = best.min(change.bytes);
    }
    // Patches are tried where they may make the smallest block.
    if rows >= PATCHED_ROWS_MIN {
        best = best.min(change.patch(changes, best));
        best = best.min(delta.patch(deltas, best));
        best = best.min(level.patch(numbers, best));
    }
    if let Some(few) = Few::of(numbers, best) {
        few.write(outliers, start, out);
    } else if best == level.bytes {
        start.write(LEVEL, rows, out);
        level.write(numbers, outliers, out);
    } else if best == delta.bytes {
        write_first(numbers, outliers, start, [DELTA, RISING_DELTA], out);
        delta.write(deltas, outliers, out);
    } else if rows > 2 && best == change.bytes {
        let forms = [DELTA_OF_DELTA, RISING_DELTA_OF_DELTA];
        write_first(numbers, outliers, start, forms, out);
        write_signed(deltas[0], out);
        change.write(changes, outliers, out);
    }
}

/// Begins a block of the first of these forms, or of the second, the rising one, where a whole
/// vector can have it.
fn write_first(
    numbers: &[i64],
    outliers: &Outliers,
    start: Start,
    [form, rising]: [u8; 2],
    out: &mut Vec<u8>,
) {
    let (first, last) = (numbers[0], numbers[numbers.len() - 1]);
    let is_rising = numbers.len() == VECTOR_ROWS && outliers.rows.is_empty() && numbers.is_sorted();
    start.write(if is_rising { rising } else { form }, numbers.len(), out);
    write_signed(first, out);
    if is_rising {
        write_varint(last.abs_diff(first), out);
    }
}

/// Appends a block of `rows` numbers, the last of its vector: the first one, and the differences to
/// the row before that are not 0, each with its place among the differences.
pub(super) fn write_steps(first: i64, steps: &[(usize, i64)], rows: usize, out: &mut Vec<u8>) {
    let start = Start {
        is_rest: true,
        power: 0,
    };
    let (mut least, mut greatest) = (0, 0);
    let (mut patches, mut next) = (Vec::new(), 0);
    for &(place, step) in steps {
        (least, greatest) = (step.min(least), step.max(greatest));
        write_varint((place - next) as u64, &mut patches);
        write_signed(step, &mut patches);
        next = place + 1;
    }
    let differences = rows - 1;
    let width = 64 - greatest.abs_diff(least).leading_zeros();
    start.write(DELTA, rows, out);
    write_signed(first, out);
    let no_outliers = Outliers::default();
    let mut head = Head {
        width,
        factor: 1,
        patches: 0,
    };
    if packed_len(differences, width) <= patches.len() {
        write_signed(least, out);
        write_head(&head, &[], &no_outliers, out);
        let mut above = vec![0_i64.abs_diff(least); differences];
        for &(place, step) in steps {
            above[place] = step.abs_diff(least);
        }
        return pack(width, differences, above.into_iter(), out);
    }
    (head.width, head.patches) = (0, steps.len() as u64);
    write_signed(0, out);
    write_head(&head, &patches, &no_outliers, out);
    out.extend_from_slice(&patches);
}

#[inline(always)]
fn fill_deltas(numbers: &[i64], deltas: &mut Vec<i64>) {
    deltas.clear();
    deltas.extend(numbers.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])));
}

/// How residuals are to be packed.
struct Plan {
    base: i64,
    factor: u64,
    width: u32,
    has_patches: bool,
    /// Bytes of base, head, bits and patches; the patches by estimate.
    bytes: usize,
}

impl Plan {
    #[inline(always)]
    fn of(residuals: &[i64]) -> Plan {
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
    fn patch(&mut self, residuals: &[i64], best: usize) -> usize {
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
        let widest = histogram.iter().rposition(|&count| count > 0).unwrap_or(0);
        let (mut patches, mut patch_bits) = (0_usize, 0_usize);
        let (mut best, mut best_bits) = (widest, usize::MAX);
        for width in (bits_min.saturating_sub(1) as usize..=widest).rev() {
            // A gap of one byte, a continuation bit in eight, half a byte that is never full.
            let cost = residuals.len() * width + patches * 12 + patch_bits * 8 / 7;
            if cost < best_bits {
                (best, best_bits) = (width, cost);
            }
            patches += histogram[width] as usize;
            // These patches and the patches of greater widths have one bit more above a narrower
            // window.
            patch_bits += patches;
        }
        if best == widest {
            return None;
        }
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
    fn is_constant(&self) -> bool {
        self.width == 0 && !self.has_patches
    }

    /// Appends base, head, bits and exceptions.
    #[inline(always)]
    fn write(&self, residuals: &[i64], outliers: &Outliers, out: &mut Vec<u8>) {
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
