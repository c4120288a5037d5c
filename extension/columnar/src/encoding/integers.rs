//! Encoding numbers as one block, in the smallest suitable form.
//!
//! For each order of differences (none, of rows, of differences) the residuals are measured once,
//! and the smallest way to [pack](super::residuals) them is found.

use super::block::FEW_MAX;
use super::bytes::{signed_len, write_signed, write_varint};
use super::divisor::common_factor;
use super::few::Few;
use super::format::{
    CONSTANT, DELTA, DELTA_OF_DELTA, LEVEL, POWER_SHIFT, REST, RISING_DELTA, RISING_DELTA_OF_DELTA,
};
use super::packed::packed_len;
use super::residuals::{Head, Plan, pack, write_head};
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
