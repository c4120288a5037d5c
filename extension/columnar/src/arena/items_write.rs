//! Writing items past a segment's resident rows: into chunks, and the codes or offsets of rows.
//!
//! Items are laid one after the other into chunks that grow with what the column has so far. In a
//! plain segment each row has the offset of its item in the area; equal neighbours and rows that
//! share a code of their column's dictionary share the item too. In a coded segment each row has a
//! code, and the segment's [dictionary](super::dictionary) has the offsets.

use std::sync::atomic::Ordering::Relaxed;

use super::Locks;
use super::core::Core;
use super::dictionary::intern;
use super::extend::{Batch, Room};
use super::layout::Layout;
use super::segment_head::ColumnHead;
use crate::bits;
use crate::body::Body;
use crate::buffer::is_identity;
use crate::column::Column;
use crate::dictionary::{Dictionary, item_hash};
use crate::items::Items;
use crate::kind::{LaneKind, item_align};

const CHUNK_BYTES_MIN: u64 = 1 << 10;
const CHUNK_BYTES_GROWN_MAX: u64 = 256 << 10;

/// The items of a column of a batch.
struct Source<'a> {
    items: &'a Items,
    /// Present if rows name items by code; otherwise row and item have the same index.
    coded: Option<(&'a [u32], &'a Dictionary)>,
    validity: Option<&'a [u64]>,
    first: usize,
    rows: usize,
}

impl<'a> Source<'a> {
    fn new(column: &'a Column, batch: &Batch<'_>) -> Option<Self> {
        let (items, coded) = match column.body() {
            Body::Plain(items) => (items, None),
            Body::Coded { codes, dictionary } => (dictionary.items(), Some((&**codes, dictionary))),
            Body::Absent | Body::Bool(_) | Body::Fixed { .. } => return None,
        };
        Some(Source {
            items,
            coded,
            validity: batch.validity(column),
            first: batch.first,
            rows: batch.rows,
        })
    }

    /// The item of each row of the batch, as an index; `None` where it is NULL.
    fn entries(&self) -> impl Iterator<Item = Option<usize>> {
        (self.first..self.first + self.rows).map(|row| {
            if self.validity.is_some_and(|words| !bits::get(words, row)) {
                return None;
            }
            Some(self.coded.map_or(row, |(codes, _)| codes[row] as usize))
        })
    }

    /// Whether two items are known to be the same bytes.
    fn is_shared(&self, a: usize, b: usize) -> bool {
        self.items.slot(a) == self.items.slot(b) && self.items.length(a) == self.items.length(b)
    }

    /// For each item of a coded column, whether a row of the batch that is not NULL has it.
    fn used(&self) -> Vec<bool> {
        let mut used = vec![false; self.items.len()];
        let Some((codes, _)) = self.coded else {
            return used;
        };
        match self.validity {
            None => {
                for &code in &codes[self.first..self.first + self.rows] {
                    used[code as usize] = true;
                }
            }
            Some(_) => {
                for entry in self.entries().flatten() {
                    used[entry] = true;
                }
            }
        }
        used
    }

    fn hash(&self, entry: usize) -> u32 {
        match self.coded {
            Some((_, dictionary)) => dictionary.hash(entry),
            None => item_hash(self.items.item(entry)),
        }
    }

    /// Walks the rows: `lay` is called for each item at its first appearance, and `each` for every
    /// row with its index in the batch and the result of `lay`. The results are kept, so no item is
    /// laid twice.
    fn walk<T: Copy>(
        &self,
        mut lay: impl FnMut(usize) -> Option<T>,
        mut each: impl FnMut(usize, Option<T>),
    ) -> Option<()> {
        let mut known = vec![None; self.coded.map_or(0, |_| self.items.len())];
        let mut last: Option<(usize, T)> = None;
        for (row, entry) in self.entries().enumerate() {
            let Some(entry) = entry else {
                each(row, None);
                continue;
            };
            let answer = if self.coded.is_some() {
                match known[entry] {
                    Some(answer) => answer,
                    None => {
                        let answer = lay(entry)?;
                        known[entry] = Some(answer);
                        answer
                    }
                }
            } else {
                match last {
                    Some((before, answer)) if self.is_shared(before, entry) => answer,
                    _ => lay(entry)?,
                }
            };
            last = Some((entry, answer));
            each(row, Some(answer));
        }
        Some(())
    }
}

pub(super) fn is_packed(layout: Layout) -> bool {
    matches!(layout.kind, LaneKind::Varlena { packed: true, .. })
}

/// Makes sure that `bytes` bytes can be laid. `None`: no room.
pub(super) fn reserve<L: Locks>(room: &Room<'_, L>, head: &ColumnHead, bytes: u64) -> Option<()> {
    let left = head.chunk_end.load(Relaxed) - head.chunk_next.load(Relaxed);
    if bytes <= left {
        return Some(());
    }
    let so_far = head.chunk_bytes.load(Relaxed);
    let bytes = bytes.max(so_far.clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_GROWN_MAX));
    let chunk = room.allocate(bytes)?;
    head.chunk_next.store(chunk, Relaxed);
    head.chunk_end.store(chunk + bytes, Relaxed);
    head.chunk_bytes.store(so_far + bytes, Relaxed);
    Some(())
}

/// Bytes that an item may take with its alignment.
pub(super) fn laid_bytes(packed: bool, item: &[u8]) -> u64 {
    (item.len() + item_align(packed, item.len()) - 1) as u64
}

/// Lays an item into the room that was reserved, and answers its offset.
pub(super) fn lay(core: Core, head: &ColumnHead, packed: bool, item: &[u8]) -> u64 {
    let align = item_align(packed, item.len()) as u64;
    let offset = head.chunk_next.load(Relaxed).next_multiple_of(align);
    let next = offset + item.len() as u64;
    debug_assert!(next <= head.chunk_end.load(Relaxed) || item.is_empty());
    // SAFETY: memory in the chunk was reserved for this item, and it is not published yet.
    unsafe {
        core.memory
            .bytes(offset)
            .copy_from_nonoverlapping(item.as_ptr(), item.len());
    }
    head.chunk_next.store(next, Relaxed);
    offset
}

/// The result of [`prepare`] for [`write()`].
pub(super) enum Prepared {
    /// Nothing that writing could not find out again.
    Nothing,
    /// The segment's code for each item of the column; 0 for items without a row in the batch.
    ItemCodes(Vec<u32>),
    /// The segment's code for each row of the batch; 0 where it is NULL.
    RowCodes(Vec<u32>),
}

/// Does all that needs memory. `None`: no room.
pub(super) fn prepare<L: Locks>(
    room: &Room<'_, L>,
    head: &ColumnHead,
    layout: Layout,
    column: &Column,
    batch: &Batch<'_>,
) -> Option<Prepared> {
    let source = Source::new(column, batch)?;
    let packed = is_packed(layout);
    if !layout.coded {
        let mut bytes = 0;
        let count = |entry| {
            bytes += laid_bytes(packed, source.items.item(entry));
            Some(())
        };
        source.walk(count, |_, _| {})?;
        reserve(room, head, bytes)?;
        return Some(Prepared::Nothing);
    }
    let intern = |entry| {
        intern(
            room,
            head,
            packed,
            source.items.item(entry),
            source.hash(entry),
        )
    };
    if source.coded.is_none() {
        let mut answers = vec![0; source.rows];
        source.walk(intern, |row, code| answers[row] = code.unwrap_or(0))?;
        return Some(Prepared::RowCodes(answers));
    }
    let mut codes = vec![0; source.items.len()];
    for (entry, _) in (0..).zip(source.used()).filter(|(_, used)| *used) {
        codes[entry] = intern(entry)?;
    }
    Some(Prepared::ItemCodes(codes))
}

/// Writes a batch's codes or offsets. The batch was prepared.
pub(super) fn write(
    core: Core,
    head: &ColumnHead,
    layout: Layout,
    column: &Column,
    prepared: &Prepared,
    batch: &Batch<'_>,
) {
    let lane = head.lane.load(Relaxed);
    let start = lane + layout.lane_bytes(batch.from);
    let Some(source) = Source::new(column, batch) else {
        return;
    };
    // SAFETY: the lane covers all rows of the segment, and readers do not read these rows yet.
    let lane = || unsafe { core.memory.bytes(start) }.cast::<u32>();
    let copy = |codes: &[u32]| {
        // SAFETY: the lane covers the rows, and there are as many codes as the batch has rows.
        unsafe { lane().copy_from_nonoverlapping(codes.as_ptr(), codes.len()) }
    };
    match (prepared, source.coded) {
        (Prepared::RowCodes(codes), _) => return copy(codes),
        (Prepared::ItemCodes(map), Some((codes, _))) => {
            let codes = &codes[source.first..source.first + source.rows];
            if is_identity(map) && !map.is_empty() {
                return copy(codes);
            }
            for (row, &code) in codes.iter().enumerate() {
                // Without an item all rows are NULL, with code 0.
                let code = map.get(code as usize).copied().unwrap_or(0);
                // SAFETY: as above.
                unsafe { lane().add(row).write(code) };
            }
            return;
        }
        (Prepared::ItemCodes(_) | Prepared::Nothing, _) => {}
    }
    let packed = is_packed(layout);
    let lay = |entry| Some(lay(core, head, packed, source.items.item(entry)));
    source.walk(lay, |row, offset| {
        // SAFETY: as above.
        unsafe {
            let slots = core.memory.bytes(start).cast::<u64>();
            slots.add(row).write(offset.unwrap_or(0));
        }
    });
}
