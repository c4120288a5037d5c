//! The dictionary of one column of one segment: the offset and length of each item, and a table to
//! find it by.
//!
//! | words | dictionary with capacity for `n` items, all in one payload |
//! |---|---|
//! | n | slots: offset of each item. Readers use only these |
//! | 2n | hash table, as in [`crate::dictionary`]; n is a power of two |
//! | n / 2 | length of each item, 32 bits |
//!
//! A full dictionary is copied into one of twice the capacity. Readers may still use the old one,
//! so it stays until the segment is freed.
//!
//! Each dictionary of an arena has a number of its own, its *instance*. The dictionary of a new
//! segment may begin as a copy of its predecessor's. Results for the codes of the old one (which
//! items satisfy a condition, which group they form) then stay valid for the new one. There is no
//! copy if
//! - the new segment has no dictionary, or begins a trial: see [`super::extend`];
//! - the predecessor's dictionary has more than 8,192 items, or more than the new segment has rows;
//! - its items take more than 32 bytes for each of these rows;
//! - it has 256 items or more of which less than half are used: unused items would be copied
//!   forever;
//! - there is no memory.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

use super::Locks;
use super::core::Core;
use super::extend::{JUDGED_ITEMS_MIN, Room};
use super::items_write::{laid_bytes, lay, reserve};
use super::segment::SegmentPin;
use super::segment_head::{ColumnHead, SegmentHead};
use crate::bits;
use crate::dictionary::table_entry;
use crate::lane::DictionaryView;

const ITEMS_MIN: u32 = 16;

/// The most bytes of slots that a dictionary may have to be copied to the next segment.
const INHERITED_SLOT_BYTES_MAX: usize = 65_536;
const INHERITED_BYTES_A_ROW_MAX: u64 = 32;

fn dictionary_bytes(items_max: u32) -> u64 {
    u64::from(items_max) * 28
}

/// A dictionary's payload: where its parts lie.
#[derive(Clone, Copy)]
struct Parts {
    core: Core,
    offset: u64,
    items_max: u64,
}

impl Parts {
    fn of(core: Core, head: &ColumnHead) -> Self {
        Parts {
            core,
            offset: head.dictionary.load(Relaxed),
            items_max: head.items_max.load(Relaxed).into(),
        }
    }

    fn slot(&self, code: u32) -> *mut u64 {
        // SAFETY: codes are below `items_max`, so the slot is within the payload.
        unsafe { self.core.memory.bytes(self.offset + u64::from(code) * 8) }.cast()
    }

    fn table(&self, index: u64) -> &AtomicU64 {
        // SAFETY: the table has twice `items_max` words, after the slots.
        unsafe { self.core.head(self.offset + (self.items_max + index) * 8) }
    }

    fn table_mask(&self) -> u64 {
        self.items_max * 2 - 1
    }

    fn length(&self, code: u32) -> &AtomicU32 {
        // SAFETY: there are `items_max` lengths after slots and table.
        unsafe {
            self.core
                .head(self.offset + self.items_max * 24 + u64::from(code) * 4)
        }
    }

    fn item(&self, code: u32) -> &[u8] {
        // SAFETY: the code exists, so its slot and length name bytes that were written and do not
        // change until the segment, which is pinned, is freed.
        unsafe {
            let item = self.core.memory.bytes(*self.slot(code));
            std::slice::from_raw_parts(item, self.length(code).load(Relaxed) as usize)
        }
    }

    /// The index of the first table entry for which `stop` holds, searched from the hash's place.
    /// The table is never full.
    fn probe(&self, hash: u32, mut stop: impl FnMut(u64) -> bool) -> u64 {
        let mut index = u64::from(hash) & self.table_mask();
        while !stop(self.table(index).load(Relaxed)) {
            index = (index + 1) & self.table_mask();
        }
        index
    }
}

/// Creates the first dictionary of a new column, under the allocator's lock. Returns `None` if
/// there is no memory.
pub(super) fn make(core: Core, owner: &SegmentHead, head: &ColumnHead) -> Option<()> {
    let bytes = dictionary_bytes(ITEMS_MIN);
    let offset = core.allocate_for(owner, bytes)?;
    // SAFETY: a fresh payload of that many bytes.
    unsafe { core.memory.bytes(offset).write_bytes(0, bytes as usize) };
    let instances = &core.header().dictionaries;
    head.instance
        .store(instances.fetch_add(1, Relaxed) + 1, Relaxed);
    head.items_max.store(ITEMS_MIN, Relaxed);
    head.dictionary.store(offset, Release);
    Some(())
}

/// The number of a coded column's items that its resident rows use. A NULL counts as a use of code
/// 0. Requires the relation's lock.
pub(super) fn used_items(core: Core, pin: &SegmentPin, column: usize) -> usize {
    let head = pin.column(column);
    let items = head.items.load(Relaxed) as usize;
    let rows = pin.rows() as usize;
    if rows == 0 {
        return 0;
    }
    // SAFETY: a coded lane has a code for each resident row, and those do not change.
    let codes = unsafe {
        let codes = core.memory.bytes(head.lane.load(Relaxed)).cast::<u32>();
        std::slice::from_raw_parts(codes, rows)
    };
    // Rows may all be NULL, of code 0, while there is no item.
    let mut used = vec![0_u64; bits::words(items.max(1))];
    for &code in codes {
        used[code as usize / 64] |= 1 << (code % 64);
    }
    used.iter()
        .map(|word| word.count_ones() as usize)
        .sum::<usize>()
        .min(items)
}

/// Whether a segment of so many rows should begin with its predecessor's dictionary of a column, of
/// which `used` items are in use: see the head of this file.
pub(super) fn is_worth_inheriting(
    core: Core,
    before: &ColumnHead,
    used: usize,
    rows_max: u32,
) -> bool {
    let items = before.items.load(Relaxed);
    let count = items as usize;
    let parts = Parts::of(core, before);
    count > 0
        && count * size_of::<u64>() <= INHERITED_SLOT_BYTES_MAX
        && items <= rows_max
        && (count < JUDGED_ITEMS_MIN || used * 2 >= count)
        && (0..items)
            .map(|code| u64::from(parts.length(code).load(Relaxed)))
            .sum::<u64>()
            <= INHERITED_BYTES_A_ROW_MAX * u64::from(rows_max)
}

/// Puts a copy of the predecessor's dictionary, which is pinned, in the place of a new column's
/// empty one. `None`: no room; the column keeps its own.
pub(super) fn inherit<L: Locks>(
    room: &Room<'_, L>,
    head: &ColumnHead,
    packed: bool,
    before: &ColumnHead,
) -> Option<()> {
    let old = Parts::of(room.core, before);
    let items = before.items.load(Relaxed);
    let laid = (0..items).map(|code| laid_bytes(packed, old.item(code)));
    reserve(room, head, laid.sum())?;
    let bytes = dictionary_bytes(old.items_max as u32);
    let new = Parts {
        offset: room.allocate(bytes)?,
        ..old
    };
    let slots_bytes = old.items_max * size_of::<u64>() as u64;
    // SAFETY: a fresh payload as large as the old one. Of that, table and lengths are copied, which
    // only the holder of the relation's lock changes.
    unsafe {
        let payload = room.core.memory.bytes(new.offset);
        payload.write_bytes(0, slots_bytes as usize);
        let table = room.core.memory.bytes(old.offset + slots_bytes);
        payload
            .add(slots_bytes as usize)
            .copy_from_nonoverlapping(table, (bytes - slots_bytes) as usize);
    }
    for code in 0..items {
        let offset = lay(room.core, head, packed, old.item(code));
        // SAFETY: the code is below `items_max`, and the payload is not published yet.
        unsafe { new.slot(code).write(offset) };
    }
    head.items_max.store(new.items_max as u32, Relaxed);
    head.dictionary.store(new.offset, Release);
    head.items.store(items, Release);
    head.inherited.store(items, Relaxed);
    // The parent is stored last: a reader that sees it also sees everything copied from it.
    head.parent.store(before.instance.load(Relaxed), Release);
    Some(())
}

/// The part of a coded column's dictionary that readers may use.
pub(super) fn view(head: &ColumnHead) -> DictionaryView {
    let parent = head.parent.load(Acquire);
    DictionaryView {
        instance: head.instance.load(Relaxed),
        parent,
        inherited: match parent {
            0 => 0,
            _ => head.inherited.load(Relaxed),
        },
        items: head.items.load(Acquire),
    }
}

/// The code of an item in the segment's dictionary, to which it is added if it is new. `None`: no
/// room.
pub(super) fn intern<L: Locks>(
    room: &Room<'_, L>,
    head: &ColumnHead,
    packed: bool,
    item: &[u8],
    hash: u32,
) -> Option<u32> {
    let find = |parts: &Parts| {
        let index = parts.probe(hash, |entry| {
            entry == 0 || (entry >> 32) as u32 == hash && parts.item(entry as u32 - 1) == item
        });
        (index, parts.table(index).load(Relaxed))
    };
    let mut parts = Parts::of(room.core, head);
    let (mut index, entry) = find(&parts);
    if entry != 0 {
        return Some(entry as u32 - 1);
    }
    let code = head.items.load(Relaxed);
    if u64::from(code) == parts.items_max {
        grow(room, head)?;
        parts = Parts::of(room.core, head);
        index = find(&parts).0;
    }
    reserve(room, head, laid_bytes(packed, item))?;
    let offset = lay(room.core, head, packed, item);
    // SAFETY: the code is below `items_max`, and no reader reads its slot before a row has the
    // code.
    unsafe { parts.slot(code).write(offset) };
    parts.length(code).store(item.len() as u32, Relaxed);
    parts.table(index).store(table_entry(hash, code), Relaxed);
    head.items.store(code + 1, Release);
    Some(code)
}

/// Copies the dictionary into one of twice the room. `None`: no room.
fn grow<L: Locks>(room: &Room<'_, L>, head: &ColumnHead) -> Option<()> {
    let old = Parts::of(room.core, head);
    let items = head.items.load(Relaxed);
    let items_max = u32::try_from(old.items_max * 2).ok()?;
    let bytes = dictionary_bytes(items_max);
    let new = Parts {
        core: room.core,
        offset: room.allocate(bytes)?,
        items_max: items_max.into(),
    };
    // SAFETY: a fresh payload of that many bytes, into which the old slots fit.
    unsafe {
        let payload = room.core.memory.bytes(new.offset);
        payload.write_bytes(0, bytes as usize);
        new.slot(0)
            .copy_from_nonoverlapping(old.slot(0), items as usize);
    }
    for code in 0..items {
        let length = old.length(code).load(Relaxed);
        new.length(code).store(length, Relaxed);
    }
    for index in 0..=old.table_mask() {
        let entry = old.table(index).load(Relaxed);
        if entry != 0 {
            let place = new.probe((entry >> 32) as u32, |entry| entry == 0);
            new.table(place).store(entry, Relaxed);
        }
    }
    head.items_max.store(items_max, Relaxed);
    head.dictionary.store(new.offset, Release);
    Some(())
}
