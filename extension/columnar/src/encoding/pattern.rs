//! Sequences of numbers that repeat.
//!
//! Series that are scraped together have their samples at the same times, to the microsecond. In a
//! lane of times that is sorted by series, one sequence therefore repeats again and again; the
//! buckets of a histogram often have equal counts, too. Such a sequence is stored once, as a
//! *pattern*, and named by the blocks that repeat it.
//!
//! The rows of one key are cut, from their first row on, into *chunks* of at most a vector's rows,
//! so that series with equally many samples are cut alike. Equal chunks are found by a hash and
//! compared. The first and the last key of a lane are usually cut off by its ends: a chunk without
//! an equal is compared with the beginning and the end of its neighbours.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

use crate::limits::VECTOR_ROWS;

/// The fewest rows of a pattern. Naming a shorter one costs more than it saves.
const PATTERN_ROWS_MIN: usize = 4;

/// Rows that a block may hold, and the pattern that they repeat.
pub(super) struct Chunk {
    pub(super) rows: Range<usize>,
    /// Whether all numbers are known to be equal.
    pub(super) is_constant: bool,
    /// The index of the pattern, and its row that is the first of the chunk.
    pub(super) pattern: Option<(usize, usize)>,
}

/// The chunks of a lane, in order and without gaps, and the rows of its patterns.
pub(super) struct Chunks {
    pub(super) chunks: Vec<Chunk>,
    pub(super) patterns: Vec<Range<usize>>,
}

/// Cuts a lane at the rows where a key starts. Starts that do not ascend are ignored.
pub(super) fn cut(words: &[u64], starts: &[u32]) -> Chunks {
    let mut chunks = Vec::new();
    let mut first = 0;
    let ends = starts.iter().map(|&start| start as usize);
    for end in ends.chain([words.len()]) {
        if end <= first || end > words.len() {
            continue;
        }
        while first < end {
            let next = (first + VECTOR_ROWS).min(end);
            let number = words[first];
            chunks.push(Chunk {
                rows: first..next,
                is_constant: words[first..next].iter().all(|&word| word == number),
                pattern: None,
            });
            first = next;
        }
    }
    let mut patterns = Vec::new();
    if chunks.len() > 1 {
        find_equal(words, &mut chunks, &mut patterns);
        find_parts(words, &mut chunks, &mut patterns);
    }
    Chunks { chunks, patterns }
}

/// Finds chunks that are equal as a whole.
fn find_equal(words: &[u64], chunks: &mut [Chunk], patterns: &mut Vec<Range<usize>>) {
    // The first chunk of each content.
    let mut known: HashMap<u64, usize, BuildHasherDefault<AsItIs>> = HashMap::default();
    // Most chunks equal the successor of the chunk that the previous one equals.
    let mut last = 0;
    for index in 0..chunks.len() {
        if chunks[index].is_small() {
            continue;
        }
        let rows = chunks[index].rows.clone();
        let content = &words[rows.clone()];
        let is_equal = |first: usize| words[chunks[first].rows.clone()] == *content;
        if index == last || !is_equal(last) {
            last = *known.entry(hash(content)).or_insert(index);
            if last == index || !is_equal(last) {
                continue;
            }
        }
        let pattern = pattern_of(chunks, last, patterns);
        chunks[index].pattern = Some((pattern, 0));
    }
}

/// A hasher for values that are hashes already.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The pattern that a chunk repeats or becomes.
fn pattern_of(chunks: &mut [Chunk], index: usize, patterns: &mut Vec<Range<usize>>) -> usize {
    let chunk = &mut chunks[index];
    let (pattern, _) = *chunk.pattern.get_or_insert_with(|| {
        patterns.push(chunk.rows.clone());
        (patterns.len() - 1, 0)
    });
    pattern
}

/// Finds chunks that are the beginning or the end of a neighbour.
fn find_parts(words: &[u64], chunks: &mut [Chunk], patterns: &mut Vec<Range<usize>>) {
    for index in 0..chunks.len() {
        let rows = chunks[index].rows.clone();
        if chunks[index].pattern.is_some() || chunks[index].is_small() {
            continue;
        }
        let neighbours = [index.checked_sub(1), Some(index + 1)];
        for neighbour in neighbours.into_iter().flatten() {
            let Some(other) = chunks.get(neighbour) else {
                continue;
            };
            // A part of a part would need its whole to be stored.
            if other.rows.len() <= rows.len() || matches!(other.pattern, Some((_, 1..))) {
                continue;
            }
            let whole = &words[other.rows.clone()];
            let part = &words[rows.clone()];
            let first = if whole.starts_with(part) {
                0
            } else if whole.ends_with(part) {
                whole.len() - part.len()
            } else {
                continue;
            };
            if let Some((pattern, 0)) = other.pattern
                && patterns[pattern].len() != whole.len()
            {
                continue;
            }
            let pattern = pattern_of(chunks, neighbour, patterns);
            chunks[index].pattern = Some((pattern, first));
            break;
        }
    }
}

impl Chunk {
    /// Whether a chunk has so few numbers, or so equal ones, that they are small without a pattern.
    fn is_small(&self) -> bool {
        self.is_constant || self.rows.len() < PATTERN_ROWS_MIN
    }
}

/// A hash of numbers that may make a pattern.
fn hash(words: &[u64]) -> u64 {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut lanes = [0_u64; 4];
    let (quads, rest) = words.as_chunks::<4>();
    for quad in quads {
        for (lane, word) in lanes.iter_mut().zip(quad) {
            *lane = (lane.rotate_left(29) ^ word).wrapping_mul(MULTIPLIER);
        }
    }
    let all = lanes.iter().chain(rest);
    let hash = all.fold(words.len() as u64, |hash: u64, word| {
        (hash.rotate_left(29) ^ word).wrapping_mul(MULTIPLIER)
    });
    // A table looks at the lowest bits, which those above have had no part in.
    hash ^ (hash >> 32)
}
