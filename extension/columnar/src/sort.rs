//! The order in which sealed rows lie: by key columns, and among equal keys as they came.
//!
//! Each key column is turned into words whose unsigned order is the order wanted, one or more a row. The rows are sorted
//! stably by the first word, and then those of each group that has it in common by the next. A group's rows come as they
//! were written, nearly sorted by time, and times are the last key: a group that is in order already costs one look at
//! each row. A large one that is not takes a counting pass for each 11 bits in which its words differ, or one pass in all if
//! they are few; a small one, or one of runs that are sorted each, is merged by comparisons.
//!
//! | kind | words |
//! |---|---|
//! | signed | the value, sign bit flipped |
//! | float | PostgreSQL's order: NaN greatest, -0 before +0 |
//! | bool | 0, 1 |
//! | opaque | its bytes, 8 a word, as `memcmp` has them |
//! | items | the rank of its bytes among the column's, as `memcmp` has them |
//!
//! NULLs come last.

use crate::bits;
use crate::body::Body;
use crate::column::Column;
use crate::kind::{LaneKind, Number};

const DIGIT_BITS: u32 = 11;
/// More radix passes than this cost more than comparisons do.
const PASSES_MAX: u32 = 4;
/// Fewer rows than this are not worth the counting.
const RADIX_ROWS_MIN: usize = 4_096;
/// Words of so few bits are counted in one pass: the counters stay in the processor's second cache.
const ONE_PASS_BITS: u32 = 16;

/// Sorts rows of some columns by `keys`, the first of which counts most, and keeps the order of those whose keys are
/// equal.
///
/// # Panics
/// If a column does not have one of the rows.
pub fn sort_rows(keys: &[&Column], rows: &mut [u32]) {
    let mut levels = Vec::new();
    for key in keys {
        let mut words = words_of(key);
        if key.null_count() > 0 {
            levels.push(
                (0..key.rows())
                    .map(|row| u64::from(!key.is_valid(row)))
                    .collect(),
            );
            for words in &mut words {
                // What lies under a NULL is no key.
                let places = words.iter_mut().enumerate();
                places
                    .filter(|(row, _)| !key.is_valid(*row))
                    .for_each(|(_, word)| *word = 0);
            }
        }
        levels.append(&mut words);
    }
    sort_by_levels(&levels, rows);
}

/// Sorts rows stably by the first list of words, and those that are equal by the next.
fn sort_by_levels(levels: &[Vec<u64>], rows: &mut [u32]) {
    let Some((words, rest)) = levels.split_first() else {
        return;
    };
    sort_by_words(words, rows);
    if rest.is_empty() {
        return;
    }
    let same_word = |a: &u32, b: &u32| words[*a as usize] == words[*b as usize];
    for group in rows.chunk_by_mut(same_word).filter(|group| group.len() > 1) {
        sort_by_levels(rest, group);
    }
}

/// Whether two rows have the same keys. A NULL equals nothing.
pub fn same_keys(keys: &[&Column], a: u32, b: u32) -> bool {
    let (a, b) = (a as usize, b as usize);
    keys.iter()
        .all(|key| key.is_valid(a) && key.is_valid(b) && same_value(key, a, b))
}

fn same_value(key: &Column, a: usize, b: usize) -> bool {
    match key.body() {
        Body::Absent => true,
        Body::Bool(bitmap) => bits::get(bitmap.words(), a) == bits::get(bitmap.words(), b),
        Body::Fixed { stride, values, .. } => {
            let value = |row: usize| &values[row * stride..(row + 1) * stride];
            match key.kind() {
                LaneKind::Fixed {
                    number: Number::Float,
                    ..
                } => float_word(value(a)) == float_word(value(b)),
                _ => value(a) == value(b),
            }
        }
        Body::Plain(items) => items.item(a) == items.item(b),
        Body::Coded { codes, .. } => codes[a] == codes[b],
    }
}

/// The words of a key column, one list a word of the value; under a NULL lies anything.
fn words_of(key: &Column) -> Vec<Vec<u64>> {
    match key.body() {
        Body::Absent => Vec::new(),
        Body::Bool(bitmap) => {
            let words = (0..key.rows()).map(|row| u64::from(bits::get(bitmap.words(), row)));
            vec![words.collect()]
        }
        Body::Fixed {
            width,
            stride,
            values,
        } => {
            let values = values.chunks_exact(*stride).map(|value| &value[..*width]);
            match key.kind() {
                LaneKind::Fixed {
                    number: Number::Signed,
                    ..
                } => vec![values.map(signed_word).collect()],
                LaneKind::Fixed {
                    number: Number::Float,
                    ..
                } => vec![values.map(float_word).collect()],
                _ => (0..width.div_ceil(8))
                    .map(|word| {
                        let at = word * 8;
                        values
                            .clone()
                            .map(|value| opaque_word(&value[at..value.len().min(at + 8)]))
                            .collect()
                    })
                    .collect(),
            }
        }
        Body::Plain(items) => {
            let ranks = ranks((0..items.len()).map(|row| items.item(row)));
            vec![ranks]
        }
        Body::Coded { codes, dictionary } => {
            let items = dictionary.items();
            let ranks = ranks((0..items.len()).map(|code| items.item(code)));
            let rank = |&code: &u32| ranks.get(code as usize).copied().unwrap_or_default();
            vec![codes.iter().map(rank).collect()]
        }
    }
}

fn signed_word(value: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes[..value.len()].copy_from_slice(value);
    let shift = 64 - 8 * value.len() as u32;
    let widened = i64::from_ne_bytes(bytes) << shift >> shift;
    widened as u64 ^ 1 << 63
}

fn float_word(value: &[u8]) -> u64 {
    let number = match value.try_into() {
        Ok(bytes) => f64::from_ne_bytes(bytes),
        Err(_) => f64::from(f32::from_ne_bytes(value.try_into().unwrap_or_default())),
    };
    // -0 and +0 are one key, and so are all NaNs.
    let number = if number == 0.0 { 0.0 } else { number };
    let bits = if number.is_nan() {
        f64::NAN.to_bits() & !(1 << 63)
    } else {
        number.to_bits()
    };
    if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    }
}

fn opaque_word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_be_bytes(word)
}

/// For each item its place among the distinct ones in order.
fn ranks<'a>(items: impl Iterator<Item = &'a [u8]> + Clone) -> Vec<u64> {
    let mut distinct = items.clone().collect::<Vec<_>>();
    distinct.sort_unstable();
    distinct.dedup();
    items
        .map(|item| distinct.partition_point(|other| *other < item) as u64)
        .collect()
}

/// Sorts rows stably by one word each.
fn sort_by_words(words: &[u64], rows: &mut [u32]) {
    let (mut least, mut greatest, mut before, mut descents) = (u64::MAX, 0, 0, 0);
    for &row in rows.iter() {
        let word = words[row as usize];
        least = least.min(word);
        greatest = greatest.max(word);
        descents += usize::from(word < before);
        before = word;
    }
    if descents == 0 {
        return;
    }
    let bits = 64 - (greatest - least).leading_zeros();
    // Merging sorted runs takes as many passes as their number has bits.
    let merges = usize::BITS - descents.leading_zeros();
    let passes = bits.div_ceil(DIGIT_BITS);
    if rows.len() < RADIX_ROWS_MIN || passes > PASSES_MAX || merges < passes {
        rows.sort_by_key(|&row| words[row as usize]);
    } else if bits <= ONE_PASS_BITS && rows.len() >> bits > 0 {
        count_once(words, least, bits, rows);
    } else {
        count_digits(words, least, passes, rows);
    }
}

/// Where each of some keys goes on, from how many rows have it.
fn places_of(counts: &mut [u32]) {
    let mut next = 0;
    for count in counts {
        next += std::mem::replace(count, next);
    }
}

/// One counting pass over words of so many bits above the least.
fn count_once(words: &[u64], least: u64, bits: u32, rows: &mut [u32]) {
    let from = rows.to_vec();
    let mut places = vec![0_u32; 1 << bits];
    let key = |row: u32| (words[row as usize] - least) as usize;
    for &row in &from {
        places[key(row)] += 1;
    }
    places_of(&mut places);
    for &row in &from {
        let place = &mut places[key(row)];
        rows[*place as usize] = row;
        *place += 1;
    }
}

/// A counting pass for each digit, the last one first.
fn count_digits(words: &[u64], least: u64, passes: u32, rows: &mut [u32]) {
    let mut from = rows
        .iter()
        .map(|&row| (words[row as usize] - least, row))
        .collect::<Vec<_>>();
    let mut to = vec![(0, 0); from.len()];
    for pass in 0..passes {
        let digit = |word: u64| (word >> (pass * DIGIT_BITS)) as usize & ((1 << DIGIT_BITS) - 1);
        let mut places = [0_u32; 1 << DIGIT_BITS];
        for &(word, _) in &from {
            places[digit(word)] += 1;
        }
        places_of(&mut places);
        for &entry in &from {
            let place = &mut places[digit(entry.0)];
            to[*place as usize] = entry;
            *place += 1;
        }
        std::mem::swap(&mut from, &mut to);
    }
    for (row, (_, sorted)) in rows.iter_mut().zip(from) {
        *row = sorted;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::test_support::{any_kind, any_value, build, cases};

    fn signed(values: &[i64]) -> Column {
        let kind = LaneKind::Fixed {
            width: 8,
            stride: 8,
            number: Number::Signed,
        };
        let values = values.iter().map(|v| Some(v.to_ne_bytes().to_vec()));
        build(kind, &values.collect::<Vec<_>>())
    }

    #[test]
    fn the_first_key_counts_most_and_equals_stay_as_they_came() {
        let (series, time) = (signed(&[2, -1, 2, -1, 2]), signed(&[5, 9, 3, 9, 5]));
        let mut rows = vec![0, 1, 2, 3, 4];
        sort_rows(&[&series, &time], &mut rows);
        assert_eq!(rows, [1, 3, 2, 0, 4]);
    }

    #[test]
    fn radix_passes_agree_with_comparisons() {
        let mut state = 7_u64;
        for shift in [40, 50, 58] {
            let values = (0..RADIX_ROWS_MIN * 2).map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> shift) as i64 - 17
            });
            let values = values.collect::<Vec<_>>();
            let mut rows = (0..values.len() as u32).collect::<Vec<_>>();
            let mut wanted = rows.clone();
            wanted.sort_by_key(|&row| values[row as usize]);
            sort_rows(&[&signed(&values)], &mut rows);
            assert!(rows == wanted, "values below 2^{}", 64 - shift);
        }
    }

    #[test]
    fn zeros_are_one_key_and_so_are_nans() {
        let kind = LaneKind::Fixed {
            width: 8,
            stride: 8,
            number: Number::Float,
        };
        let values = [f64::NAN, 0.0, -f64::NAN, -0.0, f64::INFINITY, -1.0];
        let values = values.map(|v| Some(v.to_ne_bytes().to_vec()));
        let column = build(kind, &values);
        let mut rows = (0..6).collect::<Vec<_>>();
        sort_rows(&[&column], &mut rows);
        assert_eq!(rows, [5, 1, 3, 4, 0, 2]);
        assert!(same_keys(&[&column], 1, 3) && same_keys(&[&column], 0, 2));
        assert!(!same_keys(&[&column], 4, 0));
    }

    proptest! {
        #![proptest_config(cases(64))]

        #[test]
        fn equal_keys_lie_together_nulls_last(
            (kind, values) in any_kind().prop_flat_map(|kind| (Just(kind), prop::collection::vec(any_value(kind, 9), 0..80))),
        ) {
            let column = build(kind, &values);
            let mut rows = (0..values.len() as u32).collect::<Vec<_>>();
            sort_rows(&[&column], &mut rows);
            let mut seen = rows.clone();
            seen.sort_unstable();
            prop_assert!(seen.iter().copied().eq(0..values.len() as u32));
            let sorted = rows.iter().map(|&row| &values[row as usize]).collect::<Vec<_>>();
            if kind != LaneKind::Absent {
                let first_null = sorted.iter().position(|v| v.is_none()).unwrap_or(sorted.len());
                prop_assert!(sorted[first_null..].iter().all(|v| v.is_none()));
            }
            // Each key's rows are neighbours, in the order in which they came.
            for pair in rows.windows(2) {
                if same_keys(&[&column], pair[0], pair[1]) {
                    prop_assert!(pair[0] < pair[1]);
                }
            }
            let starts = rows.windows(2).filter(|pair| !same_keys(&[&column], pair[0], pair[1])).count();
            let mut distinct: Vec<u32> = Vec::new();
            for &row in &rows {
                if !distinct.iter().any(|&other| same_keys(&[&column], other, row)) {
                    distinct.push(row);
                }
            }
            prop_assert_eq!(starts + usize::from(!rows.is_empty()), distinct.len());
        }
    }
}
