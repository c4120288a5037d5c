//! A vector to blocks: where it is cut, and whether cutting pays.

use std::ops::Range;

use super::bytes::{write_signed, write_varint};
use super::decimal;
use super::format::{CONSTANT, PATTERN, POWER_BITS};
use super::integers::{self, Differences, Outliers, Start, write_block};
use super::pattern::Chunk;

/// Rows that a run of equal values needs on average, without a key, to be a block.
const PIECE_ROWS_MIN: usize = 16;

/// Bytes that the block of a piece takes at least: its tag, its rows, a number.
const PIECE_BYTES_MIN: usize = 3;

/// Pieces of fewer rows on average are too small to be blocks.
const TINY_ROWS: usize = 4;

/// Pieces of fewer rows on average are also weighed against one block for all.
const SHORT_ROWS: usize = 64;

/// Pairs of rows by which it is judged what a block would take.
const PAIRS: usize = 64;

/// The distance between sampled pairs, modulo the length of the block. It is prime, so the pairs
/// are scattered in blocks of most lengths.
const STRIDE: usize = 1_237;

/// Writes blocks, with memory that it keeps from one to the next.
pub(super) struct BlockWriter {
    numbers: Vec<i64>,
    outliers: Outliers,
    differences: Differences,
    /// Another way to write a block.
    other: Vec<u8>,
    /// With one block where there are many pieces.
    patience: Patience,
}

/// Whether to try an encoding that fails in most blocks of some lanes: after each failure it is
/// skipped twice as often.
#[derive(Default)]
struct Patience {
    failures: u32,
    left: u32,
}

impl Patience {
    const FAILURES_MAX: u32 = 5;

    fn is_due(&mut self) -> bool {
        let is_due = self.left == 0;
        self.left = self.left.saturating_sub(1);
        is_due
    }

    fn learn(&mut self, succeeded: bool) {
        self.failures = match succeeded {
            true => 0,
            false => (self.failures + 1).min(Self::FAILURES_MAX),
        };
        self.left = (1 << self.failures) - 1;
    }
}

impl BlockWriter {
    pub(super) fn new(float_width: usize) -> BlockWriter {
        BlockWriter {
            numbers: Vec::new(),
            outliers: Outliers {
                width: float_width,
                ..Outliers::default()
            },
            differences: Differences::default(),
            other: Vec::new(),
            patience: Patience::default(),
        }
    }

    /// One vector, in the blocks that its chunks suggest, or in one if that is smaller.
    pub(super) fn write_vector(
        &mut self,
        words: &[u64],
        rows: Range<usize>,
        chunks: &[Chunk],
        out: &mut Vec<u8>,
    ) {
        let (vector, start) = (&words[rows.clone()], out.len());
        if let [chunk] = chunks
            && chunk.pattern.is_none()
        {
            return self.write_runs(vector, out);
        }
        let pieces = chunks.len();
        if vector.len() == 1 || (pieces * TINY_ROWS > vector.len() && pieces > 1) {
            return self.write(vector, true, out);
        }
        let is_short = pieces * SHORT_ROWS > vector.len();
        let has_steps = self.outliers.width == 0 && chunks.iter().all(|chunk| chunk.is_constant);
        if is_short && has_steps {
            self.write_chunks(words, &rows, chunks, out);
            return self.write_steps(vector, rows.start, chunks, start, out);
        }
        let bytes_min = match is_short && self.patience.is_due() {
            true => self.bytes_min(vector, false),
            false => usize::MAX,
        };
        let mut one = std::mem::take(&mut self.other);
        one.clear();
        // No piece takes less, so pieces need not be tried.
        let enough = pieces * PIECE_BYTES_MIN;
        if bytes_min < enough {
            self.write(vector, true, &mut one);
        }
        if one.is_empty() || one.len() > enough {
            self.write_chunks(words, &rows, chunks, out);
            let bytes = out.len() - start;
            if one.is_empty() && bytes_min < bytes {
                self.write_within(vector, true, bytes, &mut one);
            }
            let is_better = !one.is_empty() && one.len() < bytes;
            if is_better {
                out.truncate(start);
                out.extend_from_slice(&one);
            }
            if bytes_min < bytes {
                self.patience.learn(is_better);
            }
        } else {
            out.extend_from_slice(&one);
        }
        self.other = one;
    }

    /// Writes a vector, whose chunks' constants are in the output from `start` on, as steps between
    /// neighbours if that is smaller. The search for the smallest block would find this form for
    /// keys too, but takes much longer.
    fn write_steps(
        &mut self,
        vector: &[u64],
        first_row: usize,
        chunks: &[Chunk],
        start: usize,
        out: &mut Vec<u8>,
    ) {
        let places = chunks.iter().filter_map(|chunk| {
            let row = chunk.rows.start.checked_sub(first_row + 1)?;
            Some((row, vector[row + 1].wrapping_sub(vector[row]) as i64))
        });
        let steps: Vec<(usize, i64)> = places.filter(|&(_, step)| step != 0).collect();
        let mut other = std::mem::take(&mut self.other);
        other.clear();
        integers::write_steps(vector[0] as i64, &steps, vector.len(), &mut other);
        if other.len() < out.len() - start {
            out.truncate(start);
            out.extend_from_slice(&other);
        }
        self.other = other;
    }

    /// Writes one vector without keys, cut into blocks at long repeats.
    fn write_runs(&mut self, vector: &[u64], out: &mut Vec<u8>) {
        let start = out.len();
        let changes = vector.windows(2).filter(|pair| pair[0] != pair[1]).count();
        if changes == 0 || (changes + 1) * PIECE_ROWS_MIN > vector.len() {
            return self.write(vector, true, out);
        }
        let mut first = 0;
        for run in vector.chunk_by(|a, b| a == b) {
            first += run.len();
            self.write_constant(run[0], run.len(), first == vector.len(), out);
        }
        let mut one = std::mem::take(&mut self.other);
        one.clear();
        self.write(vector, true, &mut one);
        if one.len() < out.len() - start {
            out.truncate(start);
            out.extend_from_slice(&one);
        }
        self.other = one;
    }

    /// An estimate of the fewest bytes for one block of these values, as decimals if they are
    /// decimals, or as bits.
    fn bytes_min(&mut self, words: &[u64], as_bits: bool) -> usize {
        let mut pairs = [0; 2 * PAIRS];
        for (index, pair) in pairs.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            // The rows are scattered, so that they have different places in pieces of one length.
            let row = index * STRIDE % (words.len() - 1);
            *pair = [words[row], words[row + 1]];
        }
        let numbers = &mut self.numbers;
        self.outliers.rows.clear();
        let is_decimal = !as_bits
            && self.outliers.width > 0
            && decimal::to_decimals(&pairs, numbers, &mut self.outliers).is_some();
        if !is_decimal {
            numbers.clear();
            numbers.extend(pairs.map(|word| word as i64));
        }
        integers::bytes_min(numbers, words.len())
    }

    fn write_chunks(
        &mut self,
        words: &[u64],
        rows: &Range<usize>,
        chunks: &[Chunk],
        out: &mut Vec<u8>,
    ) {
        // The first row of the repeat that ends at the current row.
        let mut equal_from = None;
        for chunk in chunks {
            let piece = chunk.rows.start.max(rows.start)..chunk.rows.end.min(rows.end);
            let value = words[piece.start];
            let is_constant =
                chunk.is_constant || words[piece.clone()].iter().all(|&word| word == value);
            if let Some(first) = equal_from
                && !(is_constant && words[first] == value)
            {
                self.write_constant(words[first], piece.start - first, false, out);
                equal_from = None;
            }
            let is_rest = piece.end == rows.end;
            if is_constant {
                let first = *equal_from.get_or_insert(piece.start);
                if is_rest {
                    self.write_constant(value, piece.end - first, true, out);
                }
            } else if let Some((pattern, first)) = chunk.pattern {
                let start = Start { is_rest, power: 0 };
                start.write(PATTERN, piece.len(), out);
                write_varint(pattern as u64, out);
                write_varint((first + piece.start - chunk.rows.start) as u64, out);
            } else {
                self.write(&words[piece], is_rest, out);
            }
        }
    }

    /// One block of one value.
    fn write_constant(&mut self, word: u64, rows: usize, is_rest: bool, out: &mut Vec<u8>) {
        let (mut power, mut number) = (0, word as i64);
        if self.outliers.width > 0 {
            power = POWER_BITS;
            if let Some(found) =
                decimal::to_decimals(&[word], &mut self.numbers, &mut self.outliers)
            {
                (power, number) = (found, self.numbers[0]);
            }
        }
        Start { is_rest, power }.write(CONSTANT, rows, out);
        write_signed(number, out);
    }

    /// One block of these values, at least one.
    pub(super) fn write(&mut self, words: &[u64], is_rest: bool, out: &mut Vec<u8>) {
        self.write_within(words, is_rest, usize::MAX, out);
    }

    /// Writes a block unless it takes more than about so many bytes.
    fn write_within(&mut self, words: &[u64], is_rest: bool, bytes_max: usize, out: &mut Vec<u8>) {
        let start = |power| Start { is_rest, power };
        self.outliers.rows.clear();
        let mut power = 0;
        let mut as_bits = self.outliers.width > 0;
        if as_bits
            && let Some(found) = decimal::to_decimals(words, &mut self.numbers, &mut self.outliers)
        {
            as_bits = false;
            power = found;
        }
        if as_bits {
            power = POWER_BITS;
            self.outliers.rows.clear();
        }
        if as_bits || self.outliers.width == 0 {
            self.numbers.clear();
            self.numbers.extend(words.iter().map(|&word| word as i64));
        }
        let begin = out.len();
        write_block(
            &self.numbers,
            &self.outliers,
            start(power),
            bytes_max,
            &mut self.differences,
            out,
        );
        if self.outliers.rows.is_empty() || out.len() == begin {
            return;
        }
        // With outliers the bits may be smaller after all.
        if words.len() > 1 && self.bytes_min(words, true) >= out.len() - begin {
            return;
        }
        self.outliers.rows.clear();
        self.numbers.clear();
        self.numbers.extend(words.iter().map(|&word| word as i64));
        let end = out.len();
        write_block(
            &self.numbers,
            &self.outliers,
            start(POWER_BITS),
            bytes_max,
            &mut self.differences,
            out,
        );
        // Nothing was written if it would not fit.
        if (1..end - begin).contains(&(out.len() - end)) {
            out.drain(begin..end);
        } else {
            out.truncate(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_tried_half_as_often_each_time_and_never_given_up() {
        let mut patience = Patience::default();
        let tries = |patience: &mut Patience, succeeds: bool| -> Vec<u32> {
            let tried = |_: &u32| {
                let is_due = patience.is_due();
                if is_due {
                    patience.learn(succeeds);
                }
                is_due
            };
            (0..100).filter(tried).collect()
        };
        assert_eq!(tries(&mut patience, false), [0, 2, 6, 14, 30, 62, 94]);
        let once_again = tries(&mut patience, true);
        assert_eq!(once_again, (once_again[0]..100).collect::<Vec<_>>());
    }

    #[test]
    fn what_fits_is_written_whichever_of_its_forms_does_not() {
        let mut writer = BlockWriter::new(8);
        for outliers in 0..12 {
            // Decimals among near neighbours, some of which take all their bits.
            let value = |row: u32| match row % 12 < outliers {
                true => 1.0 + f64::from(row) * f64::EPSILON,
                false => 1.0 + f64::from(row % 7) / 64.0,
            };
            let words: Vec<u64> = (0..48).map(|row| value(row).to_bits()).collect();
            let mut within = |bytes_max| {
                let mut out = Vec::new();
                writer.write_within(&words, true, bytes_max, &mut out);
                out.len()
            };
            let best = within(usize::MAX);
            for bytes_max in best + 1..best + 80 {
                let bytes = within(bytes_max);
                assert!(
                    (1..=bytes_max).contains(&bytes),
                    "{bytes} of {bytes_max}, {outliers}"
                );
            }
        }
    }
}
