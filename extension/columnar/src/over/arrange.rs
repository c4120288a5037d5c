//! Rows in the order of their partitions, and within each in the order of sort keys.
//!
//! ```text
//! 1  count the rows of each partition; distribute the rows, which keeps their order
//! 2  did all rows come in the order of the keys? Then each partition is in order
//! 3  if not, for each partition that is not in order, for each key from the last to the first: NULLs apart, the others by a stable sort
//! ```
//! Rows of a time series come in the order of time, so step 3 is rare. Where it is needed and there is one key without
//! NULLs, keys are [distributed with the rows](super::keyed) and sorted beside them.
//!
//! If only the first rows of each partition are wanted, step 3 selects them (by quickselect, in linear time) and sorts
//! these alone.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::cmp::Ordering;
use std::ops::Range;

use super::keyed;
use super::numbers::NumberColumn;
use crate::buffer::reserve_huge;
use crate::interrupt;
use crate::vector::selection::Selection;

/// A key that rows are ordered by.
pub struct SortKey {
    /// The keys by row, as unsigned integers of the wanted order.
    pub keys: NumberColumn,
    /// Whether NULL comes before all values.
    pub nulls_first: bool,
    /// Whether the wanted order is from the greatest value to the least.
    pub is_descending: bool,
}

impl SortKey {
    /// No row yet.
    pub fn new(nulls_first: bool, is_descending: bool) -> SortKey {
        SortKey {
            keys: NumberColumn::default(),
            nulls_first,
            is_descending,
        }
    }

    /// The key of an integer, as [`append_order_keys`](crate::vector::operands::append_order_keys) adds it.
    #[cfg(test)]
    pub(super) fn key(&self, value: i64) -> u64 {
        let flip = if self.is_descending { u64::MAX } else { 0 };
        (value as u64 ^ 1 << 63) ^ flip
    }

    /// The integer of a key that [`append_order_keys`](crate::vector::operands::append_order_keys) has added.
    #[inline]
    pub fn value(&self, key: u64) -> i64 {
        let flip = if self.is_descending { u64::MAX } else { 0 };
        ((key ^ flip) ^ 1 << 63) as i64
    }

    /// Whether the keys of two rows are equal. NULL equals NULL.
    #[inline]
    fn is_equal(&self, a: usize, b: usize) -> bool {
        self.keys.get(a) == self.keys.get(b)
    }

    /// The order of two rows.
    #[inline]
    fn compare(&self, a: usize, b: usize) -> Ordering {
        match (self.keys.get(a), self.keys.get(b)) {
            (Some(a), Some(b)) => a.0.cmp(&b.0),
            (None, None) => Ordering::Equal,
            (None, Some(_)) if self.nulls_first => Ordering::Less,
            (Some(_), None) if !self.nulls_first => Ordering::Less,
            _ => Ordering::Greater,
        }
    }
}

/// Rows in order.
pub struct Arrangement {
    /// The row at each position.
    pub rows: Vec<u32>,
    /// The first position of each partition, and the end of the last one.
    pub(super) starts: Vec<u32>,
    /// Whether rows of a partition came in another order.
    pub is_sorted: bool,
    /// If there is one key without NULLs, its value at each position, once somebody needs it.
    keys: OnceCell<Vec<u64>>,
}

impl Arrangement {
    /// Arranges rows, of which there are fewer than 2^32. Each has the number of its partition;
    /// `ranks` are the places of the partitions.
    pub fn new(partitions: &[u32], ranks: &[u32], keys: &[SortKey]) -> Arrangement {
        if let [key] = keys
            && !key.keys.has_nulls()
            && !key.keys.values().is_sorted()
        {
            let starts = starts(partitions, ranks);
            let sorted = keyed::sort(partitions, (ranks, &starts), key.keys.values());
            return Arrangement {
                rows: sorted.rows,
                starts,
                is_sorted: sorted.is_sorted,
                keys: sorted.keys.into(),
            };
        }
        let mut arrangement = Arrangement::distributed(partitions, ranks);
        arrangement.sort(keys);
        arrangement
    }

    /// The rows of each partition in the order in which they came.
    fn distributed(partitions: &[u32], ranks: &[u32]) -> Arrangement {
        if ranks.len() == 1 {
            return Arrangement {
                rows: collected(0..partitions.len() as u32),
                starts: vec![0, partitions.len() as u32],
                is_sorted: false,
                keys: OnceCell::new(),
            };
        }
        let starts = starts(partitions, ranks);
        let mut places = starts.clone();
        let mut rows = zeros(partitions.len());
        for (row, partition) in partitions.iter().enumerate() {
            let place = &mut places[ranks[*partition as usize] as usize];
            rows[*place as usize] = row as u32;
            *place += 1;
        }
        Arrangement {
            rows,
            starts,
            is_sorted: false,
            keys: OnceCell::new(),
        }
    }

    /// Keeps so many first rows of each partition alone, which are the same as if all had been arranged.
    pub fn first_of_each(
        partitions: &[u32],
        ranks: &[u32],
        keys: &[SortKey],
        first: usize,
    ) -> Arrangement {
        let mut arrangement = Arrangement::distributed(partitions, ranks);
        let (mut end, mut room) = (0, Room::default());
        for partition in 0..ranks.len() {
            interrupt::check();
            let begin = arrangement.starts[partition] as usize;
            let rows = begin..arrangement.starts[partition + 1] as usize;
            let in_turn = arrangement.rows[rows.clone()].iter();
            if !is_in_order(in_turn.map(|row| *row as usize), keys) {
                arrangement.is_sorted = true;
                let rows = &mut arrangement.rows[rows.clone()];
                select_first(rows, keys, first, &mut room);
            }
            let kept = rows.len().min(first);
            arrangement.rows.copy_within(begin..begin + kept, end);
            arrangement.starts[partition] = end as u32;
            end += kept;
        }
        arrangement.starts[ranks.len()] = end as u32;
        arrangement.rows.truncate(end);
        arrangement
    }

    /// The positions of each partition.
    pub fn partitions(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let pairs = self.starts.windows(2);
        pairs.map(|pair| pair[0] as usize..pair[1] as usize)
    }

    /// The rows of a partition in order, by the partition's place.
    pub fn of_partition(&self, place: usize) -> &[u32] {
        &self.rows[self.starts[place] as usize..self.starts[place + 1] as usize]
    }

    /// The value of the only key at each position, if no value is NULL. `keys` are those of the arrangement.
    pub fn keys(&self, keys: &[SortKey]) -> Option<&[u64]> {
        let [key] = keys else { return None };
        if key.keys.has_nulls() {
            return None;
        }
        let values = key.keys.values();
        let gathered = || collected(self.rows.iter().map(|row| values[*row as usize]));
        Some(self.keys.get_or_init(gathered))
    }

    /// A column by position.
    pub(super) fn by_position<'a>(&self, column: &'a NumberColumn) -> Cow<'a, NumberColumn> {
        let is_in_order = self.starts.len() == 2 && !self.is_sorted;
        match is_in_order && self.rows.len() == column.len() {
            true => Cow::Borrowed(column),
            false => Cow::Owned(column.gather(&self.rows)),
        }
    }

    /// Whether the rows at two positions are equal in these keys.
    #[inline]
    pub fn are_peers(&self, keys: &[SortKey], a: usize, b: usize) -> bool {
        let (a, b) = (self.rows[a] as usize, self.rows[b] as usize);
        keys.iter().all(|key| key.is_equal(a, b))
    }

    fn sort(&mut self, keys: &[SortKey]) {
        if is_in_order(0..self.rows.len(), keys) {
            return;
        }
        let mut room = Room::default();
        for pair in self.starts.windows(2) {
            interrupt::check();
            let rows = &mut self.rows[pair[0] as usize..pair[1] as usize];
            if is_in_order(rows.iter().map(|row| *row as usize), keys) {
                continue;
            }
            self.is_sorted = true;
            keys.iter().rev().for_each(|key| room.sort(rows, key));
        }
    }
}

/// The first position of each partition, and the end of the last one.
fn starts(partitions: &[u32], ranks: &[u32]) -> Vec<u32> {
    let mut starts = vec![0_u32; ranks.len() + 1];
    for partition in partitions {
        starts[ranks[*partition as usize] as usize + 1] += 1;
    }
    for rank in 0..ranks.len() {
        starts[rank + 1] += starts[rank];
    }
    starts
}

/// So many zeros, in huge pages if they are many: they are written in no order.
pub(super) fn zeros<T: Copy + Default>(count: usize) -> Vec<T> {
    let mut zeros = Vec::new();
    reserve_huge(&mut zeros, count);
    zeros.resize(count, T::default());
    zeros
}

/// What an iterator returns, in huge pages if it is much.
pub(super) fn collected<T: Copy>(items: impl ExactSizeIterator<Item = T>) -> Vec<T> {
    let mut all = Vec::new();
    reserve_huge(&mut all, items.len());
    all.extend(items);
    all
}

/// Makes room for the partitions of so many rows.
pub fn expect_partitions(rows: usize, partitions: &mut Vec<u32>) {
    reserve_huge(partitions, rows);
}

/// Adds the partitions of rows to those of earlier rows.
pub fn append_partitions(rows: &Selection, ids: &[u32], partitions: &mut Vec<u32>) {
    let count = rows.count();
    let wanted = partitions.len() + count;
    reserve_huge(partitions, wanted);
    match *rows == Selection::first(count) {
        true => partitions.extend_from_slice(&ids[..count]),
        false => rows.for_each(|row| partitions.push(ids[row])),
    }
}

/// The rows whose partitions have their places in a range of ranks.
pub fn rows_between(rows: &Selection, ids: &[u32], ranks: &[u32], range: &Range<u32>) -> Selection {
    let mut found = Selection::NONE;
    rows.for_each(|row| {
        let is_in = range.contains(&ranks[ids[row] as usize]);
        found.words[row / 64] |= u64::from(is_in) << (row % 64);
    });
    found
}

/// Whether rows are in the order of the keys.
fn is_in_order(rows: impl Iterator<Item = usize> + Clone, keys: &[SortKey]) -> bool {
    if let [key] = keys
        && !key.keys.has_nulls()
    {
        let values = key.keys.values();
        return rows.map(|row| values[row]).is_sorted();
    }
    let mut pairs = rows.clone().zip(rows.skip(1));
    pairs.all(|(a, b)| {
        let mut orders = keys.iter().map(|key| key.compare(a, b));
        orders.find(|order| order.is_ne()) != Some(Ordering::Greater)
    })
}

/// Brings the first rows of a partition to its begin, in their order. Rows that are equal stay in theirs.
fn select_first(rows: &mut [u32], keys: &[SortKey], first: usize, room: &mut Room) {
    let first = first.min(rows.len());
    let Some(last) = first.checked_sub(1) else {
        return;
    };
    if let [key] = keys
        && !key.keys.has_nulls()
    {
        // Keys beside their rows are compared without a look at the column.
        room.values.clear();
        let of_row = |row: &u32| key.keys.get(*row as usize).map(|key| (key.0, *row));
        room.values.extend(rows.iter().filter_map(of_row));
        room.values.select_nth_unstable(last);
        room.values[..first].sort_unstable();
        for (place, (_, row)) in rows.iter_mut().zip(&room.values[..first]) {
            *place = *row;
        }
        return;
    }
    let compare = |a: &u32, b: &u32| {
        let mut orders = keys.iter().map(|key| key.compare(*a as usize, *b as usize));
        let order = orders.find(|order| order.is_ne());
        order.unwrap_or_else(|| a.cmp(b))
    };
    rows.select_nth_unstable_by(last, compare);
    rows[..first].sort_unstable_by(compare);
}

/// Room for the rows of a partition.
#[derive(Default)]
struct Room {
    values: Vec<(u64, u32)>,
    nulls: Vec<u32>,
}

impl Room {
    /// Sorts rows by one key. Rows that are equal stay in their order.
    fn sort(&mut self, rows: &mut [u32], key: &SortKey) {
        self.values.clear();
        self.nulls.clear();
        for row in rows.iter() {
            match key.keys.get(*row as usize) {
                Some(value) => self.values.push((value.0, *row)),
                None => self.nulls.push(*row),
            }
        }
        self.values.sort_by_key(|(value, _)| *value);
        let (nulls, values) = match key.nulls_first {
            true => rows.split_at_mut(self.nulls.len()),
            false => {
                let (values, nulls) = rows.split_at_mut(self.values.len());
                (nulls, values)
            }
        };
        nulls.copy_from_slice(&self.nulls);
        for (place, (_, row)) in values.iter_mut().zip(&self.values) {
            *place = *row;
        }
    }
}
