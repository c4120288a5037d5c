//! A resident segment in shared memory, and its users.
//!
//! A relation's table has a word for each segment, the *entry*.
//!
//! | bits of an entry | meaning |
//! |---|---|
//! | 0-39 | offset of the segment in lines of 64 bytes; 0 = not resident |
//! | 40-61 | pins |
//! | 62 | pinned since the last visit of the clock's hand |
//!
//! Offset and pins share a word so that one compare-and-swap finds a segment and pins it: it cannot
//! be evicted in between. Eviction requires a word without pins.
//!
//! A segment that must be removed while it is read, because its columns have changed, is *retired*.
//! The word is emptied, and its pins move to `retired_pins` of the segment itself. Readers that do
//! not find their segment in the word release their pins there. The segment is freed when an
//! allocation next needs memory and the count is zero.
//!
//! If a later generation of the relation keeps a segment, the segment moves to another entry, and
//! the pins of the old entry move in the same way. `retired_pins` may then be above zero in a
//! resident segment, which is not evicted.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

use super::core::Core;
use super::memory::Shared;
use super::region::LINE_BYTES;
use super::table::ElementLayout;

/// Elements of the table of segments.
pub(super) const SHAPE: ElementLayout = ElementLayout {
    element_bytes: size_of::<AtomicU64>() as u64,
    leaf_elements: 512,
};

const PIN: u64 = 1 << 40;
const LINES_MASK: u64 = PIN - 1;
const TOUCHED: u64 = 1 << 62;
const PINS_MASK: u64 = (TOUCHED - 1) & !LINES_MASK;

/// The head of a segment. Its [`ColumnHead`]s follow, and then the zones.
#[repr(C, align(64))]
pub(super) struct SegmentHead {
    /// Offset of the entry.
    pub(super) entry: AtomicU64,
    /// Neighbours in the ring of resident segments; `next` also links retired ones.
    pub(super) previous: AtomicU64,
    pub(super) next: AtomicU64,
    /// Pins of a retired segment. Wraps below zero while pins are being moved here.
    pub(super) retired_pins: AtomicU64,
    /// The first payload that belongs to the segment, linked by the region.
    pub(super) blocks: AtomicU64,
    /// Rows that may be read: stored last, after all that belongs to them.
    pub(super) rows: AtomicU32,
    pub(super) rows_max: AtomicU32,
    pub(super) columns: AtomicU32,
    /// The relation's slot and 1; 0 while the segment is in no relation.
    pub(super) owner: AtomicU32,
    /// Bytes of the segment with all that hangs off it.
    pub(super) bytes: AtomicU64,
}

/// One column of a segment.
#[repr(C, align(64))]
pub(super) struct ColumnHead {
    /// The kind, and whether items are coded: see `layout`.
    pub(super) layout: AtomicU64,
    /// Offset of values, bits, slots or codes; 0 if absent.
    pub(super) lane: AtomicU64,
    /// Offset of the validity bitmap; 0 while there are no NULLs.
    pub(super) validity: AtomicU64,
    /// Offset of the dictionary; 0 if not coded.
    pub(super) dictionary: AtomicU64,
    /// The dictionary's items and room for them. Items are counted after they and their slots are
    /// there.
    pub(super) items: AtomicU32,
    pub(super) items_max: AtomicU32,
    /// The free rest of the chunk to which items are written, as offsets.
    pub(super) chunk_next: AtomicU64,
    pub(super) chunk_end: AtomicU64,
    /// Bytes of all chunks so far.
    pub(super) chunk_bytes: AtomicU64,
    /// The number of the dictionary, the number of the dictionary of which it is a copy (0 = none),
    /// and the number of copied items.
    pub(super) instance: AtomicU64,
    pub(super) parent: AtomicU64,
    pub(super) inherited: AtomicU32,
    /// Set by readers of numerics that found no room for their integers: see `decimals`.
    pub(super) decimals_wanted: AtomicU32,
    /// Offset of the room for integers; 0 if there is none.
    pub(super) decimals: AtomicU64,
}

// SAFETY: atomics only.
unsafe impl Shared for SegmentHead {}
// SAFETY: atomics only.
unsafe impl Shared for ColumnHead {}

const _: () = assert!(size_of::<SegmentHead>() == 64 && size_of::<ColumnHead>() == 128);

impl SegmentHead {
    /// Bytes of a segment's head with its columns' heads.
    pub(super) fn bytes(columns: usize) -> u64 {
        (size_of::<SegmentHead>() + columns * size_of::<ColumnHead>()) as u64
    }
}

/// The offset of a column's head.
#[inline]
pub(super) fn column_offset(segment: u64, column: usize) -> u64 {
    segment + SegmentHead::bytes(column)
}

/// The segment that an entry names; 0 if there is none.
#[inline]
pub(super) fn segment_of(word: u64) -> u64 {
    (word & LINES_MASK) * LINE_BYTES
}

/// Pins the segment of an entry, and answers its offset.
#[inline]
pub(super) fn pin(entry: &AtomicU64) -> Option<u64> {
    let word = entry
        .fetch_update(Acquire, Acquire, |word| {
            (segment_of(word) != 0).then_some((word + PIN) | TOUCHED)
        })
        .ok()?;
    Some(segment_of(word))
}

/// Lets go of a pinned segment.
#[inline]
pub(super) fn unpin(core: &Core, entry: &AtomicU64, segment: u64) {
    let unpinned = entry.fetch_update(Release, Relaxed, |word| {
        (segment_of(word) == segment).then(|| word - PIN)
    });
    if unpinned.is_err() {
        // SAFETY: the pin moved here when the segment was retired, and still keeps it.
        let head = unsafe { core.head::<SegmentHead>(segment) };
        head.retired_pins.fetch_sub(1, Release);
    }
}

/// Puts a new segment into its entry, pinned once.
pub(super) fn publish(entry: &AtomicU64, segment: u64) {
    entry.store((segment / LINE_BYTES + PIN) | TOUCHED, Release);
}

/// Removes the segment from its entry if it is not pinned. If it was pinned since the last visit,
/// only that mark is removed.
pub(super) fn try_evict(entry: &AtomicU64) -> bool {
    let word = entry.load(Relaxed);
    if word & PINS_MASK != 0 {
        return false;
    }
    if word & TOUCHED != 0 {
        entry.fetch_and(!TOUCHED, Relaxed);
        return false;
    }
    entry.compare_exchange(word, 0, Acquire, Relaxed).is_ok()
}

/// Removes the segment from an entry of a relation without users.
pub(super) fn take_unpinned(entry: &AtomicU64) -> u64 {
    let word = entry.swap(0, Acquire);
    debug_assert_eq!(word & PINS_MASK, 0, "a pin outlived its relation");
    segment_of(word)
}

/// Adds a segment of the relation in this slot to the ring, where the hand comes by last. Under the
/// allocator's lock.
pub(super) fn join_ring(core: &Core, segment: u64, slot: u32) {
    // SAFETY: the caller has a segment there.
    let new = unsafe { core.memory.head::<SegmentHead>(segment) };
    core.slot(slot).add_bytes(new.bytes.load(Relaxed));
    new.owner.store(slot + 1, Relaxed);
    let header = core.header();
    // SAFETY: the ring holds resident segments, and so is this one.
    let head = |segment| unsafe { core.memory.head::<SegmentHead>(segment) };
    let next = match header.segment_hand.load(Relaxed) {
        0 => segment,
        hand => hand,
    };
    if next == segment {
        head(segment).next.store(segment, Relaxed);
        head(segment).previous.store(segment, Relaxed);
        header.segment_hand.store(segment, Relaxed);
    } else {
        let previous = head(next).previous.load(Relaxed);
        head(segment).next.store(next, Relaxed);
        head(segment).previous.store(previous, Relaxed);
        head(previous).next.store(segment, Relaxed);
        head(next).previous.store(segment, Relaxed);
    }
    header.segments.fetch_add(1, Relaxed);
}

/// Takes a segment out of the ring. Under the allocator's lock.
pub(super) fn leave_ring(core: &Core, segment: u64) {
    let header = core.header();
    // SAFETY: as in `join_ring`.
    let head = |segment| unsafe { core.memory.head::<SegmentHead>(segment) };
    let owner = head(segment).owner.swap(0, Relaxed);
    core.slot(owner - 1)
        .take_bytes(head(segment).bytes.load(Relaxed));
    let next = head(segment).next.load(Relaxed);
    let previous = head(segment).previous.load(Relaxed);
    if next == segment {
        header.segment_hand.store(0, Relaxed);
    } else {
        head(previous).next.store(next, Relaxed);
        head(next).previous.store(previous, Relaxed);
        if header.segment_hand.load(Relaxed) == segment {
            header.segment_hand.store(next, Relaxed);
        }
    }
    header.segments.fetch_sub(1, Relaxed);
}

/// Moves a segment from one entry to another, whose offset and relation's slot are parameters. Pins
/// of the old entry stay valid: they move to the segment itself, which is not freed while there are
/// any. Requires the relation's and the allocator's lock; `to` is empty, and the tables of both
/// entries are pinned.
pub(super) fn adopt(
    core: &Core,
    from: &AtomicU64,
    to: &AtomicU64,
    (to_offset, to_slot): (u64, u32),
) {
    let word = from.swap(0, AcqRel);
    let segment = segment_of(word);
    if segment == 0 {
        return;
    }
    // SAFETY: the entry named a resident segment.
    let head = unsafe { core.head::<SegmentHead>(segment) };
    head.retired_pins
        .fetch_add((word & PINS_MASK) / PIN, Relaxed);
    head.entry.store(to_offset, Relaxed);
    let owner = head.owner.swap(to_slot + 1, Relaxed);
    let bytes = head.bytes.load(Relaxed);
    core.slot(owner - 1).take_bytes(bytes);
    core.slot(to_slot).add_bytes(bytes);
    to.store((segment / LINE_BYTES) | TOUCHED, Release);
}

/// Hides a segment from new readers; existing pins stay valid. Requires the relation's and the
/// allocator's lock.
pub(super) fn retire(core: &Core, entry: &AtomicU64, segment: u64) {
    let header = core.header();
    let pins = (entry.swap(0, AcqRel) & PINS_MASK) / PIN;
    // SAFETY: the caller has the segment pinned.
    let head = unsafe { core.memory.head::<SegmentHead>(segment) };
    leave_ring(core, segment);
    head.retired_pins.fetch_add(pins, Relaxed);
    head.next.store(header.retired.load(Relaxed), Relaxed);
    header.retired.store(segment, Relaxed);
}
