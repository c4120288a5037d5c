//! Rows with one key that has no NULLs, distributed and sorted together with their keys.
//!
//! ```text
//! keys whose range has 32 bits:   key - least key │ row    8 bytes, sorted by digits
//! other keys:                     key             │ row   16 bytes, sorted by comparison
//! ```
//! A partition's keys lie side by side, so neither sorting nor finding peers looks back at the column, where they are
//! far apart.

use super::arrange::{collected, zeros};
use crate::interrupt;

/// Bits of a digit.
const DIGIT_BITS: u32 = 8;
/// The values of a digit.
const DIGITS: usize = 1 << DIGIT_BITS;
/// Partitions of fewer rows are sorted by comparison.
const DIGITS_FROM: usize = 192;

/// Sorted rows.
pub(super) struct Sorted {
    /// The row at each position.
    pub(super) rows: Vec<u32>,
    /// The key at each position.
    pub(super) keys: Vec<u64>,
    /// Whether rows of a partition came in another order.
    pub(super) is_sorted: bool,
}

/// Brings rows into the order of their partitions, and each partition's into that of their keys. `starts` are the first
/// positions of the partitions in the order of their ranks. Rows that tie stay in their order.
pub(super) fn sort(partitions: &[u32], places: (&[u32], &[u32]), keys: &[u64]) -> Sorted {
    let least = keys.iter().copied().min().unwrap_or(0);
    let range = keys.iter().copied().max().unwrap_or(0) - least;
    match range <= u32::MAX.into() {
        true => sort_words(partitions, places, keys, (least, range)),
        false => sort_pairs(partitions, places, keys),
    }
}

/// A value of each row, by partition.
fn distributed<T: Copy + Default>(
    partitions: &[u32],
    (ranks, starts): (&[u32], &[u32]),
    of_row: impl Fn(usize) -> T,
) -> Vec<T> {
    let mut places = starts.to_vec();
    let mut values = zeros(partitions.len());
    for (row, partition) in partitions.iter().enumerate() {
        let place = &mut places[ranks[*partition as usize] as usize];
        values[*place as usize] = of_row(row);
        *place += 1;
    }
    values
}

/// Does as [`sort`] for keys from the least on, in a range of 32 bits.
fn sort_words(
    partitions: &[u32],
    places: (&[u32], &[u32]),
    keys: &[u64],
    (least, range): (u64, u64),
) -> Sorted {
    let word = |row: usize| (keys[row] - least) << 32 | row as u64;
    let mut words = distributed(partitions, places, word);
    let digits = (u64::BITS - range.leading_zeros()).div_ceil(DIGIT_BITS);
    let (mut room, mut is_sorted) = (Vec::new(), false);
    for pair in places.1.windows(2) {
        interrupt::check();
        let words = &mut words[pair[0] as usize..pair[1] as usize];
        // Rows of a partition ascend, so words with equal keys do.
        if words.is_sorted() {
            continue;
        }
        is_sorted = true;
        match words.len() < DIGITS_FROM {
            true => words.sort_unstable(),
            false => sort_by_digits(words, digits, &mut room),
        }
    }
    Sorted {
        rows: collected(words.iter().map(|word| *word as u32)),
        keys: collected(words.iter().map(|word| (word >> 32) + least)),
        is_sorted,
    }
}

/// Sorts words by so many digits from their 33rd bit on, the last digit first. Words that are equal in these stay in
/// their order.
fn sort_by_digits(words: &mut [u64], digits: u32, room: &mut Vec<u64>) {
    room.resize(words.len().max(room.len()), 0);
    // Each pass moves the words to the other place.
    let room = &mut room[..words.len()];
    let (mut from, mut to) = (words, room);
    for digit in 0..digits {
        let shift = 32 + digit * DIGIT_BITS;
        let of = |word: u64| (word >> shift) as usize & (DIGITS - 1);
        let mut places = [0_u32; DIGITS];
        from.iter().for_each(|word| places[of(*word)] += 1);
        let mut place = 0;
        for count in &mut places {
            place += std::mem::replace(count, place);
        }
        for word in from.iter() {
            let place = &mut places[of(*word)];
            to[*place as usize] = *word;
            *place += 1;
        }
        (from, to) = (to, from);
    }
    if digits % 2 == 1 {
        to.copy_from_slice(from);
    }
}

/// Does as [`sort`] for keys of any range.
fn sort_pairs(partitions: &[u32], places: (&[u32], &[u32]), keys: &[u64]) -> Sorted {
    let mut pairs = distributed(partitions, places, |row| (keys[row], row as u32));
    let mut is_sorted = false;
    for pair in places.1.windows(2) {
        interrupt::check();
        let pairs = &mut pairs[pair[0] as usize..pair[1] as usize];
        if !pairs.is_sorted() {
            is_sorted = true;
            pairs.sort_unstable();
        }
    }
    Sorted {
        rows: collected(pairs.iter().map(|(_, row)| *row)),
        keys: collected(pairs.iter().map(|(key, _)| *key)),
        is_sorted,
    }
}
