//! The order in which sealed rows lie: by key columns, and among equal keys as they came.
//!
//! Each key column is turned into words whose unsigned order is the order wanted, one or more a
//! row. The rows are sorted stably by the first word, and then those of each group that has it in
//! common by the next. A group's rows come as they were written, nearly sorted by time, and times
//! are the last key: a group that is in order already costs one look at each row. A large one that
//! is not takes a counting pass for each 11 bits in which its words differ, or one pass in all if
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
use crate::interrupt::{self, Steps};
use crate::kind::{LaneKind, Number};

mod words;

use words::{Words, float_word, int_word, long_word, words_of};

const DIGIT_BITS: u32 = 11;
/// More radix passes than this cost more than comparisons do.
const PASSES_MAX: u32 = 4;
/// Fewer rows than this are not worth the counting.
const RADIX_ROWS_MIN: usize = 4_096;
/// Words of so few bits are counted in one pass: the counters stay in the processor's second cache.
const ONE_PASS_BITS: u32 = 16;

/// Sorts rows of some columns by `keys`, the first of which counts most, and keeps the order of
/// those whose keys are equal.
///
/// # Panics
/// If a column does not have one of the rows.
pub fn sort_rows(keys: &[&Column], rows: &mut [u32]) {
    let mut levels = Vec::new();
    for key in keys {
        if key.null_count() == 0 {
            levels.append(&mut words_of(key));
            continue;
        }
        levels.push(Words::Own(
            (0..key.rows())
                .map(|row| u64::from(!key.is_valid(row)))
                .collect(),
        ));
        for words in words_of(key) {
            // The value of a NULL row is arbitrary.
            let word = |row| match key.is_valid(row) {
                true => words.at(row as u32),
                false => 0,
            };
            levels.push(Words::Own((0..key.rows()).map(word).collect()));
        }
    }
    sort_by_levels(&levels, rows);
}

/// Sorts rows stably by the first list of words, and rows with equal words by the next list.
fn sort_by_levels(levels: &[Words], rows: &mut [u32]) {
    let Some((words, rest)) = levels.split_first() else {
        return;
    };
    // Looked at once, and not for each row.
    match words {
        Words::Long(values) => sort_by_words(&|row| long_word(values[row as usize]), rest, rows),
        Words::Int(values) => sort_by_words(&|row| int_word(values[row as usize]), rest, rows),
        Words::Own(words) => sort_by_words(&|row| words[row as usize], rest, rows),
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

/// Sorts rows stably by one word each, and those with the same by the levels that are left.
fn sort_by_words(word: &impl Fn(u32) -> u64, rest: &[Words], rows: &mut [u32]) {
    let (mut least, mut greatest, mut before, mut descents) = (u64::MAX, 0, 0, 0);
    let mut is_range = true;
    let first = rows.first().copied().unwrap_or_default();
    for (place, &row) in rows.iter().enumerate() {
        let word = word(row);
        least = least.min(word);
        greatest = greatest.max(word);
        descents += usize::from(word < before);
        before = word;
        is_range &= row == first.wrapping_add(place as u32);
    }
    if descents > 0 {
        let bits = 64 - (greatest - least).leading_zeros();
        // Merging sorted runs takes as many passes as their number has bits.
        let merges = usize::BITS - descents.leading_zeros();
        let passes = bits.div_ceil(DIGIT_BITS);
        if rows.len() < RADIX_ROWS_MIN || passes > PASSES_MAX || merges < passes {
            let steps = Steps::default();
            rows.sort_by(|&a, &b| {
                steps.step();
                word(a).cmp(&word(b))
            });
        } else if bits <= ONE_PASS_BITS && rows.len() >> bits > 0 {
            let ends = if is_range {
                let from = first..first + rows.len() as u32;
                count_once(word, least, bits, from, rows)
            } else {
                let from = rows.to_vec();
                count_once(word, least, bits, from.iter().copied(), rows)
            };
            let mut start = 0;
            for end in ends {
                let end = end as usize;
                sort_group(rest, &mut rows[start..end]);
                start = end;
            }
            return;
        } else {
            count_digits(word, least, passes, rows);
        }
    }
    if !rest.is_empty() {
        let steps = Steps::default();
        for group in rows.chunk_by_mut(|&a, &b| word(a) == word(b)) {
            steps.step();
            sort_group(rest, group);
        }
    }
}

/// Sorts rows that have in common what counts more.
fn sort_group(levels: &[Words], rows: &mut [u32]) {
    if rows.len() > 1 {
        sort_by_levels(levels, rows);
    }
}

/// The first place of each key, from the number of rows of each key.
fn places_of(counts: &mut [u32]) {
    let mut next = 0;
    for count in counts {
        next += std::mem::replace(count, next);
    }
}

/// Makes one counting pass over so many bits of each word above the least word, and moves rows to
/// their places in `to`. Returns where the rows of each possible word end.
fn count_once(
    word: &impl Fn(u32) -> u64,
    least: u64,
    bits: u32,
    from: impl Iterator<Item = u32> + Clone,
    to: &mut [u32],
) -> Vec<u32> {
    let mut places = vec![0_u32; 1 << bits];
    let key = |row: u32| (word(row) - least) as usize;
    for row in from.clone() {
        places[key(row)] += 1;
    }
    places_of(&mut places);
    for row in from {
        let place = &mut places[key(row)];
        to[*place as usize] = row;
        *place += 1;
    }
    places
}

/// A counting pass for each digit, the last one first.
fn count_digits(word: &impl Fn(u32) -> u64, least: u64, passes: u32, rows: &mut [u32]) {
    let mut from = rows
        .iter()
        .map(|&row| (word(row) - least, row))
        .collect::<Vec<_>>();
    let mut to = vec![(0, 0); from.len()];
    for pass in 0..passes {
        interrupt::check();
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
    fn all_ways_to_sort_agree_on_two_keys_and_on_any_rows() {
        let kind = LaneKind::Fixed {
            width: 4,
            stride: 4,
            number: Number::Signed,
        };
        let count = RADIX_ROWS_MIN as i64 * 2;
        for (series_of, time_of) in [
            // As scrapes come; then in the wrong order in time; then series that are far apart.
            (37_i64, 1_i64),
            (37, -1),
            (1_000_003, 7),
        ] {
            let series: Vec<i64> = (0..count)
                .map(|row| row * series_of % 101 * series_of - 50)
                .collect();
            let time: Vec<i64> = (0..count).map(|row| row / 200 * time_of).collect();
            let ints = series
                .iter()
                .map(|&v| Some((v as i32).to_ne_bytes().to_vec()));
            let columns = [build(kind, &ints.collect::<Vec<_>>()), signed(&time)];
            let all = 0..count as u32;
            let subsets: [Vec<u32>; 4] = [
                all.clone().collect(),
                all.clone().skip(5).collect(),
                all.clone().filter(|row| row % 3 > 0).collect(),
                all.rev().collect(),
            ];
            for mut rows in subsets {
                let mut wanted = rows.clone();
                wanted.sort_by_key(|&row| (series[row as usize], time[row as usize]));
                sort_rows(&[&columns[0], &columns[1]], &mut rows);
                assert!(
                    rows == wanted,
                    "{} rows, {series_of}, {time_of}",
                    wanted.len()
                );
            }
        }
    }

    #[test]
    fn a_long_sort_can_be_ended() {
        let rows = 50_000;
        let numbers = (0..rows).map(|row: u64| row.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let texts = numbers.clone().map(|n| Some(n.to_string().into_bytes()));
        let kind = LaneKind::Varlena {
            dictionary: false,
            packed: false,
        };
        let texts = build(kind, &texts.collect::<Vec<_>>());
        let numbers: Vec<i64> = numbers.map(|n| n as i64).collect();
        for column in [&texts, &signed(&numbers)] {
            let mut rows = (0..rows as u32).collect::<Vec<_>>();
            let looks = interrupt::looks_of(|| sort_rows(&[column], &mut rows));
            assert!(looks >= 50, "{looks}");
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
