//! The right side in memory: for each key its rows in the order of time, found by binary search.
//!
//! ```text
//! read:  scan ─► times, ties, arrival, group (a number for each distinct key), columns   (an entry for each row, as read)
//! seal:  the rows of each group side by side, in the order of (time, tie, arrival)
//!        order[position] = row as read;  times[position] = its time
//! find:  key ─► group ─► the range of times between the bounds ─► from its near end, the first row that passes
//! ```
//! Times are images in the order of the times ([`crate::pg::kind`]), and keys are images that are
//! equal when keys are. A table that was filled in order returns each group's rows in order, so
//! nothing is sorted. This module calls no PostgreSQL function. Column values are datums; values
//! that are passed by reference are copied into [`super::values::Values`].
//!
//! *Memory* is counted completely and has a limit: [`History::make_room`] is called before each row.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use lanes_columnar::join::room::Taken;

use super::values::Values;

/// A hash function that multiplies and rotates: keys are short, and users gain nothing from collisions in their own
/// queries.
#[derive(Default)]
struct ShortHasher(u64);

const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

impl Hasher for ShortHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }

    fn write(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            let mut word = [0; 8];
            word.copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word));
        }
        let mut word = [0; 8];
        let rest = chunks.remainder();
        word[..rest.len()].copy_from_slice(rest);
        self.add(u64::from_le_bytes(word));
    }
}

impl ShortHasher {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(FACTOR);
    }
}

/// The place of a tie in the order: the rank of NULLs, then the image of the value.
pub type TieImage = (i8, i64);

/// The values of a column in all rows as read, as words.
#[derive(Default)]
pub struct Column {
    /// The datums; any word for NULL.
    pub values: Vec<usize>,
    /// Which values are NULL.
    pub nulls: Vec<bool>,
}

struct Group {
    first: u32,
    end: u32,
    /// The position where the last search ended: left rows often come in the order of time.
    cursor: u32,
}

/// The right side: filled first, then sealed and searched.
pub struct History {
    groups: HashMap<Box<[u8]>, u32, BuildHasherDefault<ShortHasher>>,
    /// The group of each row as read, until the history is sealed.
    group_of: Vec<u32>,
    ties: Vec<TieImage>,
    ties_per_row: usize,
    arrival: Vec<u64>,
    /// Times of the rows as read; by position once the history is sealed.
    times: Vec<i64>,
    order: Vec<u32>,
    ranges: Vec<Group>,
    /// Columns of the rows as read.
    pub columns: Vec<Column>,
    /// The values that columns point to.
    pub values: Values,
    key_bytes: usize,
    /// Rows for which memory is reserved.
    room: usize,
    /// Bytes that the history may use.
    limit: usize,
    /// How many groups had to be sorted.
    pub groups_sorted: usize,
}

impl History {
    /// An empty history, which may use this many bytes.
    pub fn new(columns: usize, ties_per_row: usize, limit: usize) -> History {
        History {
            groups: HashMap::default(),
            group_of: Vec::new(),
            ties: Vec::new(),
            ties_per_row,
            arrival: Vec::new(),
            times: Vec::new(),
            order: Vec::new(),
            ranges: Vec::new(),
            columns: (0..columns).map(|_| Column::default()).collect(),
            values: Values::default(),
            key_bytes: 0,
            room: 0,
            limit,
            groups_sorted: 0,
        }
    }

    /// Reserves memory for another row, whose key and values have this many bytes. False, with nothing reserved, if the
    /// history would exceed its limit or the number of rows that it can have.
    pub fn make_room(&mut self, key: usize, values: usize) -> bool {
        let rows = self.times.len();
        let mut beside = self.values.bytes() + self.values.more_bytes(values);
        beside += self.key_bytes + key_bytes(key) + groups_bytes(self.groups.capacity());
        if self.groups.len() == self.groups.capacity() {
            // While the table of groups grows, the old one still exists.
            beside += groups_bytes((2 * self.groups.capacity()).max(4));
        }
        let taken = Taken {
            rows,
            room: self.room,
            row_bytes: self.row_bytes(),
            list_bytes: LIST_BYTES.max(size_of::<TieImage>() * self.ties_per_row),
            beside,
        };
        let Some(room) = taken.room_for(rows + 1, self.limit) else {
            return false;
        };
        if rows >= u32::MAX as usize {
            return false;
        }
        if room > self.room {
            self.room = room;
            let more = room - rows;
            self.times.reserve_exact(more);
            self.group_of.reserve_exact(more);
            self.ties.reserve_exact(more * self.ties_per_row);
            self.arrival.reserve_exact(more);
            for column in &mut self.columns {
                column.values.reserve_exact(more);
                column.nulls.reserve_exact(more);
            }
        }
        true
    }

    /// Bytes that a row uses, including the memory for sealing it.
    fn row_bytes(&self) -> usize {
        8 + 4
            + size_of::<TieImage>() * self.ties_per_row
            + 8
            + 9 * self.columns.len()
            + SEALING_BYTES
    }

    /// Adds a row, for which [`Self::make_room`] has reserved memory. The caller adds its values to the columns.
    pub fn add(&mut self, key: &[u8], time: i64, ties: &[TieImage], arrival: u64) {
        let group = match self.groups.get(key) {
            Some(&group) => group,
            None => {
                let group = self.groups.len() as u32;
                self.groups.insert(key.into(), group);
                self.key_bytes += key_bytes(key.len());
                group
            }
        };
        self.group_of.push(group);
        self.times.push(time);
        self.ties.extend_from_slice(ties);
        self.arrival.push(arrival);
    }

    /// Puts the rows of each group side by side, in order.
    pub fn seal(&mut self) {
        let rows = self.times.len();
        let mut ends = vec![0u32; self.groups.len()];
        for &group in &self.group_of {
            ends[group as usize] += 1;
        }
        let mut first = 0;
        self.ranges = ends
            .iter()
            .map(|&count| {
                let range = Group {
                    first,
                    end: first + count,
                    cursor: 0,
                };
                first += count;
                range
            })
            .collect();
        let mut next: Vec<u32> = self.ranges.iter().map(|range| range.first).collect();
        self.order = vec![0; rows];
        for (row, &group) in self.group_of.iter().enumerate() {
            let place = &mut next[group as usize];
            self.order[*place as usize] = row as u32;
            *place += 1;
        }
        let (times, ties, arrival, width) =
            (&self.times, &self.ties, &self.arrival, self.ties_per_row);
        let image = |row: u32| {
            let row = row as usize;
            (
                times[row],
                &ties[row * width..(row + 1) * width],
                arrival[row],
            )
        };
        for range in &self.ranges {
            let rows = &mut self.order[range.first as usize..range.end as usize];
            if !rows.is_sorted_by(|&a, &b| image(a) <= image(b)) {
                rows.sort_unstable_by(|&a, &b| image(a).cmp(&image(b)));
                self.groups_sorted += 1;
            }
        }
        self.times = self
            .order
            .iter()
            .map(|&row| self.times[row as usize])
            .collect();
        self.group_of = Vec::new();
        self.ties = Vec::new();
        self.arrival = Vec::new();
    }

    /// The nearest row between the bounds (both inclusive) that passes. Looking backward, the search begins at the late
    /// end, otherwise at the early end.
    pub fn find(
        &mut self,
        key: &[u8],
        lower: i64,
        upper: i64,
        backward: bool,
        mut passes: impl FnMut(&[Column], usize) -> bool,
    ) -> Option<usize> {
        let &group = self.groups.get(key)?;
        let range = &mut self.ranges[group as usize];
        let times = &self.times[range.first as usize..range.end as usize];
        let order = &self.order[range.first as usize..range.end as usize];
        let columns = &self.columns;
        let mut row_passes = |place: usize, time: i64| {
            (lower <= time && time <= upper).then(|| {
                let row = order[place] as usize;
                passes(columns, row).then_some(row)
            })
        };
        if backward {
            let end = after(times, range.cursor as usize, upper);
            range.cursor = end as u32;
            for place in (0..end).rev() {
                if let Some(found) = row_passes(place, times[place])? {
                    return Some(found);
                }
            }
        } else {
            // The first time at or after `lower` is the first one after `lower - 1`.
            let start = match lower.checked_sub(1) {
                Some(before) => after(times, range.cursor as usize, before),
                None => 0,
            };
            range.cursor = start as u32;
            for (place, &time) in times.iter().enumerate().skip(start) {
                if let Some(found) = row_passes(place, time)? {
                    return Some(found);
                }
            }
        }
        None
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.times.len()
    }

    /// How many distinct keys there are.
    pub fn keys(&self) -> usize {
        self.groups.len()
    }

    /// Bytes that the history uses.
    pub fn bytes(&self) -> usize {
        let columns = self.columns.iter();
        let columns = columns.map(|column| column.values.capacity() * 8 + column.nulls.capacity());
        self.times.capacity() * 8
            + self.order.capacity() * 4
            + self.group_of.capacity() * 4
            + self.ties.capacity() * size_of::<TieImage>()
            + self.arrival.capacity() * 8
            + columns.sum::<usize>()
            + self.ranges.capacity() * size_of::<Group>()
            + groups_bytes(self.groups.capacity())
            + self.key_bytes
            + self.values.bytes()
    }
}

/// Bytes of a row in the widest list other than the ties.
const LIST_BYTES: usize = 8;
/// Bytes that sealing needs for a row: its position, and its time once more.
const SEALING_BYTES: usize = 4 + 8;

/// Bytes that a key uses: its own allocation, and for sealing the range of its group and three numbers.
fn key_bytes(length: usize) -> usize {
    (length + 8).next_multiple_of(16).max(32) + size_of::<Group>() + 3 * 4
}

/// Bytes of a hash table for this many groups: an eighth of its places stays free, and each place has one more byte.
fn groups_bytes(groups: usize) -> usize {
    match groups {
        0 => 0,
        _ => (groups * 8 / 7 + 1).next_power_of_two() * (size_of::<(Box<[u8]>, u32)>() + 1),
    }
}

/// How many of the ascending `times` are at or before `limit`. The search is fast if the result is near `hint`.
fn after(times: &[i64], hint: usize, limit: i64) -> usize {
    let hint = hint.min(times.len());
    // The result lies between `low` and `high`.
    let (mut low, mut high) = (0, times.len());
    let mut step = 1;
    if hint == 0 || times[hint - 1] <= limit {
        low = hint;
        while low + step <= times.len() && times[low + step - 1] <= limit {
            low += step;
            step *= 2;
        }
        high = high.min(low + step);
    } else {
        high = hint - 1;
        while step <= high && times[high - step] > limit {
            high -= step;
            step *= 2;
        }
        low = low.max(high.saturating_sub(step));
    }
    low + times[low..high].partition_point(|&time| time <= limit)
}

#[cfg(test)]
mod tests {
    use super::super::values::BLOCK_WORDS;
    use super::*;

    #[test]
    fn searches_agree_with_counting_whatever_the_hint() {
        for length in 0..12usize {
            for spread in 1..4 {
                let times: Vec<i64> = (0..length as i64).map(|time| time / spread).collect();
                for hint in 0..=length + 1 {
                    for limit in -2..14 {
                        let expected = times.iter().filter(|&&time| time <= limit).count();
                        assert_eq!(
                            after(&times, hint, limit),
                            expected,
                            "{times:?} {hint} {limit}"
                        );
                    }
                }
            }
        }
    }

    fn history(rows: &[(&[u8], i64, TieImage, u64)]) -> History {
        let mut history = History::new(0, 1, usize::MAX);
        for &(key, time, tie, arrival) in rows {
            assert!(history.make_room(key.len(), 0));
            history.add(key, time, &[tie], arrival);
        }
        history.seal();
        history
    }

    #[test]
    fn equal_times_match_the_last_row_backward_and_the_first_row_forward() {
        let mut history = history(&[
            (b"a", 5, (0, 0), 1),
            (b"b", 5, (0, 0), 2),
            (b"a", 5, (0, 0), 3),
            (b"a", 3, (0, 0), 4),
        ]);
        let all = |_: &[Column], _| true;
        assert_eq!(history.groups_sorted, 1);
        assert_eq!(history.find(b"a", i64::MIN, 5, true, all), Some(2));
        assert_eq!(history.find(b"a", 5, i64::MAX, false, all), Some(0));
        assert_eq!(history.find(b"a", i64::MIN, 4, true, all), Some(3));
        assert_eq!(history.find(b"a", 4, 4, true, all), None);
        assert_eq!(history.find(b"c", i64::MIN, i64::MAX, true, all), None);
        assert_eq!(history.find(b"a", i64::MIN, i64::MAX, false, all), Some(3));
        assert_eq!(
            history.find(b"a", i64::MIN, 9, true, |_, row| row == 0),
            Some(0)
        );
        assert_eq!(history.find(b"a", 5, 9, true, |_, row| row == 3), None);
    }

    /// Fills a history with rows until no more fit, `per_key` of them for each key. Returns the number of rows.
    fn filled(limit: usize, per_key: usize, text: &[u8]) -> usize {
        let mut history = History::new(1, 1, limit);
        let mut texts = Vec::new();
        loop {
            let key = (texts.len() / per_key).to_le_bytes();
            if !history.make_room(key.len(), text.len()) {
                break;
            }
            history.add(&key, 1, &[(0, 0)], 1);
            let copy = history.values.copy(text);
            history.columns[0].values.push(copy);
            history.columns[0].nulls.push(false);
            texts.push(copy);
            let sealing = texts.len() * SEALING_BYTES;
            assert!(history.bytes() + sealing <= limit, "{limit} {per_key}");
        }
        history.seal();
        assert!(history.bytes() <= limit, "{limit} {per_key}");
        for copy in &texts {
            let copy = history.values.bytes_at(*copy, text.len());
            assert_eq!(copy.as_deref(), Some(text));
        }
        texts.len()
    }

    #[test]
    fn a_history_stays_within_its_memory_limit() {
        for limit in [0, 1_000, 200_000, 3_000_000] {
            for per_key in [1, 3, 1_000_000] {
                for length in [0, 5, 64, 100_000] {
                    let rows = filled(limit, per_key, &vec![7; length]);
                    // A row uses 57 bytes, its text and its key. At least half of the memory must be usable.
                    let each = 57 + length.next_multiple_of(8) + 140 / per_key;
                    let blocks = BLOCK_WORDS * 8 + 2 * length + 60_000;
                    let least = limit.saturating_sub(blocks) / each / 2;
                    assert!(
                        rows >= least,
                        "{rows} of {least}: {limit} {per_key} {length}"
                    );
                }
            }
        }
    }

    #[test]
    fn ties_decide_before_arrival() {
        let mut history = history(&[
            (b"", 1, (0, 9), 1),
            (b"", 1, (0, 2), 2),
            (b"", 1, (-1, 0), 3),
        ]);
        assert_eq!(history.find(b"", 1, 1, true, |_, _| true), Some(0));
        assert_eq!(history.find(b"", 1, 1, false, |_, _| true), Some(2));
    }
}
