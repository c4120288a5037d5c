//! Numbers to one block: the smallest of the forms that suit them.
//!
//! For each order of differences (none, of rows, of differences) the residuals are measured once. Two ways to pack them are
//! weighed: wide enough for all, and, where a few far ones would widen all, a window around the median with patches. The
//! window is chosen by a histogram of distances from the median, and then drawn close around what is in it, so that
//! distributions with one tail lose no bit to symmetry.

use super::block::{FEW_MAX, packed_len};
use super::bytes::{signed_len, varint_len, write_signed, write_varint, zigzag};
use super::format::{
    CONSTANT, DELTA, DELTA_OF_DELTA, EXTRAS, FEW, LEVEL, POWER_SHIFT, REST, SLACK_BYTES,
};

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

/// Memory for the differences of a block's numbers.
#[derive(Default)]
pub(super) struct Differences {
    deltas: Vec<i64>,
    changes: Vec<i64>,
}

/// Appends the block of these numbers, at least one.
pub(super) fn write_block(
    numbers: &[i64],
    outliers: &Outliers,
    start: Start,
    differences: &mut Differences,
    out: &mut Vec<u8>,
) {
    let rows = numbers.len();
    let first = numbers[0];
    let level = Plan::of(numbers);
    if level.is_constant() && outliers.rows.is_empty() {
        start.write(CONSTANT, rows, out);
        write_signed(first, out);
        return;
    }
    let Differences { deltas, changes } = differences;
    fill_deltas(numbers, deltas);
    let delta = Plan::of(deltas);
    fill_deltas(deltas, changes);
    let change = (rows > 2).then(|| Plan::of(changes));

    let level_bytes = level.bytes;
    let delta_bytes = delta.bytes + signed_len(first);
    let change_bytes = change.as_ref().map_or(usize::MAX, |change| {
        change.bytes + signed_len(first) + signed_len(deltas[0])
    });
    let best = level_bytes.min(delta_bytes).min(change_bytes);
    if let Some(few) = Few::of(numbers, best) {
        few.write(numbers, outliers, start, out);
    } else if best == level_bytes {
        start.write(LEVEL, rows, out);
        level.write(numbers, outliers, out);
    } else if let Some(change) = change.filter(|_| best == change_bytes) {
        start.write(DELTA_OF_DELTA, rows, out);
        write_signed(first, out);
        write_signed(deltas[0], out);
        change.write(changes, outliers, out);
    } else {
        start.write(DELTA, rows, out);
        write_signed(first, out);
        delta.write(deltas, outliers, out);
    }
}

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
        let factor = common_factor(residuals);
        let all = Plan::new(residuals, least, greatest, factor);
        match Plan::with_patches(residuals, factor, all.bytes) {
            Some(patched) => patched,
            None => all,
        }
    }

    /// For residuals from `least` to `greatest` without patches.
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
    fn with_patches(residuals: &[i64], factor: u64, bytes_max: usize) -> Option<Plan> {
        /// Below this there is nothing to gain.
        const WORTH_BYTES: usize = 12;
        if bytes_max < WORTH_BYTES {
            return None;
        }
        let middle = median(residuals);
        let narrowed = factor.ilog2();
        let distance = |residual: i64| {
            let bits = 64 - zigzag(residual.wrapping_sub(middle)).leading_zeros();
            bits.saturating_sub(narrowed)
        };
        let mut histogram = [0_u32; 65];
        for &residual in residuals {
            histogram[distance(residual) as usize] += 1;
        }
        let (mut patches, mut patch_bits) = (0_usize, 0_usize);
        let (mut best, mut best_bits) = (64, usize::MAX);
        for width in (0..=64).rev() {
            // A gap of one byte, a continuation bit in eight, half a byte that is never full.
            let cost = residuals.len() * width + patches * 12 + patch_bits * 8 / 7;
            if cost < best_bits {
                (best, best_bits) = (width, cost);
            }
            let here = histogram[width] as usize;
            patches += here;
            // Those of `width` bits and all before have one bit more above a narrower window.
            patch_bits += patches;
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

    fn is_constant(&self) -> bool {
        self.width == 0 && !self.has_patches
    }

    /// Appends base, head, bits and exceptions.
    fn write(&self, residuals: &[i64], outliers: &Outliers, out: &mut Vec<u8>) {
        write_signed(self.base, out);
        let mut patches = Vec::new();
        let mut patch_count = 0_u64;
        let mut last = 0;
        let mut packer = Packer::new(self.width, residuals.len());
        let mask = low_mask(self.width);
        for (place, &residual) in residuals.iter().enumerate() {
            let above = residual.wrapping_sub(self.base) as u64;
            // Most are inside the window and need no wide numbers.
            let quotient = match self.factor {
                1 if residual >= self.base => above,
                factor if residual >= self.base => above / factor,
                _ => u64::MAX,
            };
            if residual >= self.base && quotient <= mask {
                packer.push(quotient);
                continue;
            }
            let exact = (i128::from(residual) - i128::from(self.base)) / i128::from(self.factor);
            packer.push(exact as u64 & mask);
            write_varint((place - last) as u64, &mut patches);
            write_signed((exact >> self.width) as i64, &mut patches);
            patch_count += 1;
            last = place + 1;
        }
        write_packed(
            Head {
                width: self.width,
                factor: self.factor,
                patches: patch_count,
            },
            packer.bytes,
            patches,
            outliers,
            out,
        );
    }
}

/// What is said of packed residuals before their bits.
struct Head {
    width: u32,
    factor: u64,
    patches: u64,
}

fn write_packed(
    head: Head,
    bits: Vec<u8>,
    patches: Vec<u8>,
    outliers: &Outliers,
    out: &mut Vec<u8>,
) {
    let mut exceptions = patches;
    let mut next = 0;
    for &(row, bits) in &outliers.rows {
        write_varint((row - next) as u64, &mut exceptions);
        exceptions.extend_from_slice(&bits.to_le_bytes()[..outliers.width]);
        next = row + 1;
    }
    if head.factor == 1 && exceptions.is_empty() {
        out.push(head.width as u8);
    } else {
        out.push(head.width as u8 | EXTRAS);
        write_varint(head.factor, out);
        write_varint(head.patches, out);
        write_varint(outliers.rows.len() as u64, out);
        write_varint(exceptions.len() as u64, out);
    }
    out.extend_from_slice(&bits);
    out.extend_from_slice(&exceptions);
}

/// The greatest common divisor of all distances from the first; at least 1.
fn common_factor(residuals: &[i64]) -> u64 {
    let Some((&first, rest)) = residuals.split_first() else {
        return 1;
    };
    let mut factor = 0_u64;
    for residual in rest {
        let mut distance = residual.abs_diff(first);
        while distance != 0 {
            (factor, distance) = (distance, factor % distance);
        }
        if factor == 1 {
            break;
        }
    }
    factor.max(1)
}

/// The median of a sample.
fn median(residuals: &[i64]) -> i64 {
    const SAMPLE: usize = 15;
    let mut sample = [0; SAMPLE];
    let count = residuals.len().min(SAMPLE);
    for (index, slot) in sample[..count].iter_mut().enumerate() {
        *slot = residuals[index * residuals.len() / count];
    }
    let sample = &mut sample[..count];
    sample.sort_unstable();
    sample.get(count / 2).copied().unwrap_or_default()
}

#[inline]
fn low_mask(width: u32) -> u64 {
    u64::MAX.checked_shr(64 - width).unwrap_or_default()
}

/// Few distinct numbers and where they are.
struct Few {
    /// In order.
    distinct: Vec<i64>,
    width: u32,
}

impl Few {
    /// If that takes fewer than `bytes_max` bytes.
    fn of(numbers: &[i64], bytes_max: usize) -> Option<Few> {
        let mut distinct = Vec::new();
        // One that is equal to its neighbour is not looked for.
        let mut last = None;
        let mut spent = 0;
        for &number in numbers {
            if last == Some(number) {
                continue;
            }
            last = Some(number);
            if let Err(place) = distinct.binary_search(&number) {
                distinct.insert(place, number);
                spent += 2;
                if distinct.len() >= FEW_MAX || spent > bytes_max {
                    return None;
                }
            }
        }
        let width = usize::BITS - (distinct.len() - 1).leading_zeros();
        let mut before = 0;
        let mut table = 0;
        for &number in &distinct {
            table += signed_len(number.wrapping_sub(before));
            before = number;
        }
        let bytes = 2 + table + 1 + packed_len(numbers.len(), width);
        (bytes < bytes_max).then_some(Few { distinct, width })
    }

    fn write(&self, numbers: &[i64], outliers: &Outliers, start: Start, out: &mut Vec<u8>) {
        start.write(FEW, numbers.len(), out);
        write_varint(self.distinct.len() as u64 - 1, out);
        let mut before = 0_i64;
        for &number in &self.distinct {
            write_signed(number.wrapping_sub(before), out);
            before = number;
        }
        let mut packer = Packer::new(self.width, numbers.len());
        for number in numbers {
            let place = self.distinct.binary_search(number).unwrap_or_default();
            packer.push(place as u64);
        }
        let head = Head {
            width: self.width,
            factor: 1,
            patches: 0,
        };
        write_packed(head, packer.bytes, Vec::new(), outliers, out);
    }
}

/// Writes numbers of one width without gaps. Invariant: `bytes` has all bits so far; the last byte may be partly used.
struct Packer {
    width: u32,
    bytes: Vec<u8>,
    bit: usize,
}

impl Packer {
    fn new(width: u32, count: usize) -> Packer {
        let mut bytes = Vec::with_capacity(packed_len(count, width) + SLACK_BYTES);
        bytes.resize(packed_len(count, width), 0);
        Packer {
            width,
            bytes,
            bit: 0,
        }
    }

    /// `number` has no bits above the width.
    #[inline]
    fn push(&mut self, number: u64) {
        let (at, shift) = (self.bit / 8, self.bit % 8);
        self.bit += self.width as usize;
        let end = self.bit.div_ceil(8);
        let wide = u128::from(number) << shift;
        for (byte, new) in self.bytes[at..end].iter_mut().zip(wide.to_le_bytes()) {
            *byte |= new;
        }
    }
}
