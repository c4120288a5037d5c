//! Ids of series as bytes.
//!
//! Series that are registered together have consecutive ids, so ids are stored as ranges: the gap
//! before each range and its length. If that takes more bytes, they are stored as a Roaring bitmap
//! in its portable form.

use std::ops::RangeInclusive;

use super::cursor::{Cursor, write_number};
use crate::{IdSet, Malformed};

/// Ids as ranges, in ascending order, that do not touch.
#[derive(Default, Clone, Debug, PartialEq, Eq)]
pub struct Postings {
    ranges: Vec<(u32, u32)>,
}

const RANGES: u8 = 0;
const BITMAP: u8 = 1;
/// Ranges below which a bitmap is not tried: its header alone takes as much.
const BITMAP_RANGES_MIN: usize = 64;

impl Postings {
    /// Appends ids that come after all others.
    pub fn push(&mut self, ids: RangeInclusive<u32>) {
        let (first, last) = ids.into_inner();
        match self.ranges.last_mut() {
            Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
            _ => self.ranges.push((first, last)),
        }
    }

    /// The number of ids.
    pub fn count(&self) -> u64 {
        let counts = self
            .ranges
            .iter()
            .map(|(first, last)| u64::from(last - first) + 1);
        counts.sum()
    }

    /// The ids as a set.
    pub fn to_set(&self) -> IdSet {
        let mut set = IdSet::new();
        for (first, last) in &self.ranges {
            set.insert_range(*first..=*last);
        }
        set
    }

    /// Appends the ids to bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.push(RANGES);
        let mut next = 0;
        for (first, last) in &self.ranges {
            // Most ranges have one id, which the lowest bit of the gap marks.
            let gap = u64::from(first - next) << 1;
            match last - first {
                0 => write_number(gap, out),
                more => {
                    write_number(gap | 1, out);
                    write_number(u64::from(more), out);
                }
            }
            next = last.saturating_add(1);
        }
        if self.ranges.len() < BITMAP_RANGES_MIN {
            return;
        }
        let mut set = self.to_set();
        set.optimize();
        if set.serialized_size() + 1 < out.len() - start {
            out.truncate(start);
            out.push(BITMAP);
            // Writing into memory does not fail.
            let _ = set.serialize_into(&mut *out);
        }
    }

    /// Adds the ids in these bytes, which come after all others.
    ///
    /// # Errors
    /// If the bytes hold no ids.
    pub fn read(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        each_range(bytes, |first, last| self.push(first..=last))
    }
}

/// Ids of many postings, in any order.
#[derive(Default)]
pub struct Collected {
    /// Of postings that are ranges.
    ranges: Vec<(u32, u32)>,
    /// Of postings that are bitmaps.
    bitmaps: IdSet,
}

impl Collected {
    /// Adds the ids in bytes that [`Postings::write`] wrote.
    ///
    /// # Errors
    /// If the bytes hold no ids.
    pub fn add(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        if let Some((&BITMAP, bitmap)) = bytes.split_first() {
            self.bitmaps |= read_bitmap(bitmap)?;
            return Ok(());
        }
        each_range(bytes, |first, last| self.ranges.push((first, last)))
    }

    /// All ids as a set. They are sorted first: a set takes ids at its end many times as fast as
    /// between others.
    pub fn into_set(mut self) -> IdSet {
        self.ranges.sort_unstable();
        let mut set = IdSet::new();
        for (first, last) in self.ranges {
            match first == last {
                true => drop(set.insert(first)),
                false => drop(set.insert_range(first..=last)),
            }
        }
        set | self.bitmaps
    }
}

/// The ids in bytes that [`Postings::write`] wrote.
///
/// # Errors
/// If the bytes hold no ids.
pub fn read_set(bytes: &[u8]) -> Result<IdSet, Malformed> {
    let mut collected = Collected::default();
    collected.add(bytes)?;
    Ok(collected.into_set())
}

/// Whether some ids in bytes that [`Postings::write`] wrote are in a set.
///
/// # Errors
/// If the bytes hold no ids.
pub fn meets(bytes: &[u8], set: &IdSet) -> Result<bool, Malformed> {
    if let Some((&BITMAP, bitmap)) = bytes.split_first() {
        return Ok(!read_bitmap(bitmap)?.is_disjoint(set));
    }
    let mut meets = false;
    each_range_until(bytes, |first, last| {
        meets = match first == last {
            true => set.contains(first),
            false => set.range_cardinality(first..=last) > 0,
        };
        !meets
    })?;
    Ok(meets)
}

fn read_bitmap(bytes: &[u8]) -> Result<IdSet, Malformed> {
    IdSet::deserialize_from(bytes).map_err(|_| Malformed("a bitmap of ids cannot be read"))
}

fn each_range(bytes: &[u8], mut visit: impl FnMut(u32, u32)) -> Result<(), Malformed> {
    each_range_until(bytes, |first, last| {
        visit(first, last);
        true
    })
}

/// Calls `visit` with each range until it returns false.
fn each_range_until(
    bytes: &[u8],
    mut visit: impl FnMut(u32, u32) -> bool,
) -> Result<(), Malformed> {
    let mut cursor = Cursor(bytes);
    match cursor.bytes(1)? {
        [RANGES] => {}
        [BITMAP] => {
            read_bitmap(cursor.0)?.iter().all(|id| visit(id, id));
            return Ok(());
        }
        _ => return Err(Malformed("ids are kept in an unknown form")),
    }
    let mut next: u32 = 0;
    let large = Malformed("an id is too large");
    while !cursor.0.is_empty() {
        let gap = cursor.number()?;
        let more = match gap & 1 {
            0 => 0,
            _ => cursor.small()?,
        };
        let gap = u32::try_from(gap >> 1).map_err(|_| large.clone())?;
        let first = next.checked_add(gap).ok_or(large.clone())?;
        let last = first.checked_add(more).ok_or(large.clone())?;
        if !visit(first, last) {
            break;
        }
        next = last.saturating_add(1);
    }
    Ok(())
}
