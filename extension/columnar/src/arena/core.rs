//! The area of the arena that all its parts share, and allocation with eviction.
//!
//! When the region is full, memory is freed in this order, a step at a time until the allocation
//! fits:
//! 1. retired segments and relations without pins;
//! 2. the coldest segment without pins, by the clock algorithm: a hand moves around the ring of
//!    resident segments, passes over a segment that was pinned since its last visit, and evicts the
//!    next;
//! 3. a whole relation without pins, with its list of runs, by a hand of its own.
//!
//! A relation may have a budget of its own. Before its segments exceed the budget, its own coldest
//! segments are evicted, by the same marks. If all of them are pinned, the relation gets no more
//! memory.
//!
//! Functions marked *locked* require the allocator's lock.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::header::{Header, MAGIC, REGION_STATE_OFFSET, SLOTS_OFFSET};
use super::images;
use super::memory::{Memory, Shared};
use super::region::{LINE_BYTES, Region};
use super::segment_head::{self, SegmentHead};
use super::slot::{EMPTY, FREE, LIVE, RETIRED, RelationSlot};
use super::{ArenaStats, RelationKey};

/// Slots of relations take at most this part of the area.
const SLOTS_SHARE: u64 = 8;

/// Memory that readers can do without is not taken from the last part of the region, which is as large as the region
/// divided by this number.
const SPARE_SHARE: u64 = 8;

/// The smallest area: room for the header, a few relations and a few small segments.
pub(super) const BYTES_MIN: usize = 256 << 10;

const _: () = assert!(size_of::<Header>() * 8 < BYTES_MIN);

/// An area with its parts, as seen by one process.
#[derive(Clone, Copy)]
pub(super) struct Core {
    pub(super) memory: Memory,
    region: Region,
}

impl Core {
    /// Writes an empty arena.
    ///
    /// # Safety
    /// As for [`Memory::new`]; the area has `bytes` bytes, at least [`BYTES_MIN`], and nothing else
    /// uses it.
    pub(super) unsafe fn initialise(memory: Memory, bytes: u64, relations_max: u32) {
        let slot_bytes = size_of::<RelationSlot>() as u64;
        let slots_max = bytes / SLOTS_SHARE / slot_bytes;
        let slots = u64::from(relations_max).clamp(1, slots_max);
        let first = (SLOTS_OFFSET + slots * slot_bytes).next_multiple_of(LINE_BYTES);
        // SAFETY: header and slots are within the area; zero is a valid state of both, and the
        // region gets the rest.
        unsafe {
            memory.bytes(0).write_bytes(0, first as usize);
            let header = memory.head::<Header>(0);
            header.bytes.store(bytes, Relaxed);
            header.relations_max.store(slots as u32, Relaxed);
            Region::new(memory, REGION_STATE_OFFSET).initialise(first, bytes);
            header.magic.store(MAGIC, Release);
        }
    }

    /// # Safety
    /// As for [`Memory::new`], over an area that was initialised.
    ///
    /// # Panics
    /// If it was not.
    pub(super) unsafe fn attach(memory: Memory) -> Self {
        // SAFETY: the area is initialised, by this function's contract.
        let region = unsafe { Region::new(memory, REGION_STATE_OFFSET) };
        let core = Core { memory, region };
        assert_eq!(core.header().magic.load(Acquire), MAGIC, "not an arena");
        core
    }

    pub(super) fn header(&self) -> &Header {
        // SAFETY: the header is at 0 and never freed.
        unsafe { self.memory.head(0) }
    }

    /// A structure of atomics that is known to be at `offset`.
    ///
    /// # Safety
    /// As for [`Memory::head`].
    #[inline]
    pub(super) unsafe fn head<T: Shared>(&self, offset: u64) -> &T {
        // SAFETY: this function's contract.
        unsafe { self.memory.head(offset) }
    }

    pub(super) fn slots(&self) -> u32 {
        self.header().relations_max.load(Relaxed)
    }

    #[inline]
    pub(super) fn slot(&self, index: u32) -> &RelationSlot {
        debug_assert!(index < self.slots());
        let offset = SLOTS_OFFSET + u64::from(index) * size_of::<RelationSlot>() as u64;
        // SAFETY: there is a slot at each index, and slots are never freed.
        unsafe { self.memory.head(offset) }
    }

    /// *Locked.* A payload of `bytes`, for which colder data may be evicted.
    pub(super) fn allocate(&self, bytes: u64) -> Option<u64> {
        if bytes > self.region.bytes() {
            return self.refuse();
        }
        loop {
            if let Some(payload) = self.region.allocate(bytes) {
                return Some(payload);
            }
            if !self.reclaim() && !self.evict_segment() && !self.evict_relation() {
                return self.refuse();
            }
        }
    }

    fn refuse(&self) -> Option<u64> {
        self.header().refusals.fetch_add(1, Relaxed);
        None
    }

    /// *Locked.* A payload that belongs to a segment and is freed with it.
    pub(super) fn allocate_for(&self, head: &SegmentHead, bytes: u64) -> Option<u64> {
        let owner = head.owner.load(Relaxed);
        if owner != 0 && !self.keep_budget(owner - 1, bytes) {
            return None;
        }
        let payload = self.allocate(bytes)?;
        self.give_to_segment(head, payload);
        Some(payload)
    }

    /// *Locked.* A payload that belongs to a segment and is freed with it, as far as that evicts nothing and leaves
    /// room for others.
    pub(super) fn allocate_spare_for(&self, head: &SegmentHead, bytes: u64) -> Option<u64> {
        let owner = head.owner.load(Relaxed);
        let is_within_budget = owner == 0 || {
            let slot = self.slot(owner - 1);
            slot.budget() == 0 || slot.bytes().saturating_add(bytes) <= slot.budget()
        };
        let all = self.region.bytes();
        let is_spare = self.region.used().saturating_add(bytes) <= all - all / SPARE_SHARE;
        if !is_within_budget || !is_spare {
            return None;
        }
        let payload = self.region.allocate(bytes)?;
        self.give_to_segment(head, payload);
        Some(payload)
    }

    /// *Locked.* Notes that a payload belongs to a segment.
    fn give_to_segment(&self, head: &SegmentHead, payload: u64) {
        let owner = head.owner.load(Relaxed);
        self.region.set_link(payload, head.blocks.load(Relaxed));
        head.blocks.store(payload, Relaxed);
        let taken = self.region.block_bytes(payload);
        head.bytes.store(head.bytes.load(Relaxed) + taken, Relaxed);
        if owner != 0 {
            self.slot(owner - 1).add_bytes(taken);
        }
    }

    /// *Locked.* Bytes of a payload with the allocator's own.
    pub(super) fn block_bytes(&self, payload: u64) -> u64 {
        self.region.block_bytes(payload)
    }

    /// *Locked.* Ensures that a relation's segments may take so many more bytes. Returns false if
    /// all segments that could be evicted for them are pinned.
    pub(super) fn keep_budget(&self, index: u32, bytes: u64) -> bool {
        let slot = self.slot(index);
        let budget = slot.budget();
        while budget != 0 && slot.bytes().saturating_add(bytes) > budget {
            // In vain if they would not fit alone.
            if bytes > budget || !self.evict_segment_of(index) {
                self.header().refusals.fetch_add(1, Relaxed);
                return false;
            }
        }
        true
    }

    /// *Locked.* Evicts the coldest segment of a relation. Whether there was one to evict.
    fn evict_segment_of(&self, index: u32) -> bool {
        let header = self.header();
        let mut segment = header.segment_hand.load(Relaxed);
        for _ in 0..2 * header.segments.load(Relaxed) {
            // SAFETY: the ring contains resident segments, at least one.
            let head = unsafe { self.head::<SegmentHead>(segment) };
            let next = head.next.load(Relaxed);
            if head.owner.load(Relaxed) == index + 1 && self.try_evict(segment) {
                self.slot(index).count_eviction();
                return true;
            }
            segment = next;
        }
        false
    }

    /// *Locked.* Evicts a resident segment unless it is pinned or was pinned since the hand's last
    /// visit.
    fn try_evict(&self, segment: u64) -> bool {
        // SAFETY: the caller has a resident segment there.
        let head = unsafe { self.head::<SegmentHead>(segment) };
        // SAFETY: a resident segment's entry lives as long as its relation's table.
        let entry = unsafe { self.memory.head(head.entry.load(Relaxed)) };
        // Pins of an entry that it was in before. They only become fewer: more need the lock that
        // we have.
        let is_held = head.retired_pins.load(Acquire) != 0;
        if is_held || !segment_head::try_evict(entry) {
            images::age(self, segment);
            return false;
        }
        segment_head::leave_ring(self, segment);
        self.free_segment(segment);
        self.header().segment_evictions.fetch_add(1, Relaxed);
        true
    }

    /// *Locked.* Frees a segment that is in no list and has no users.
    pub(super) fn free_segment(&self, segment: u64) {
        // SAFETY: the caller has a segment there, which is freed last.
        let mut block = unsafe { self.head::<SegmentHead>(segment) }
            .blocks
            .load(Relaxed);
        while block != 0 {
            let next = self.region.link(block);
            self.region.free(block);
            block = next;
        }
        self.region.free(segment);
    }

    /// *Locked.* Frees what is retired and no longer pinned. Returns whether there was any.
    fn reclaim(&self) -> bool {
        let before = self.region.used();
        let header = self.header();
        let mut segment = header.retired.swap(0, Relaxed);
        while segment != 0 {
            // SAFETY: the list holds segments that were not freed.
            let head = unsafe { self.head::<SegmentHead>(segment) };
            let next = head.next.load(Relaxed);
            if head.retired_pins.load(Acquire) == 0 {
                self.free_segment(segment);
            } else {
                head.next.store(header.retired.load(Relaxed), Relaxed);
                header.retired.store(segment, Relaxed);
            }
            segment = next;
        }
        if header.retired_relations.load(Relaxed) > 0 {
            for index in 0..self.slots() {
                self.release_retired(self.slot(index));
            }
        }
        self.region.used() < before
    }

    /// *Locked.* Evicts the coldest segment. Whether there was one to evict.
    fn evict_segment(&self) -> bool {
        let header = self.header();
        // Twice round: the first may only take away second chances.
        for _ in 0..=2 * header.segments.load(Relaxed) {
            let segment = header.segment_hand.load(Relaxed);
            if segment == 0 {
                return false;
            }
            // SAFETY: the ring holds resident segments.
            let head = unsafe { self.head::<SegmentHead>(segment) };
            header.segment_hand.store(head.next.load(Relaxed), Relaxed);
            if self.try_evict(segment) {
                return true;
            }
        }
        false
    }

    /// *Locked.* Evicts a whole relation. Whether there was one to evict.
    fn evict_relation(&self) -> bool {
        let (header, slots) = (self.header(), self.slots());
        for _ in 0..2 * slots {
            let hand = header.relation_hand.load(Relaxed);
            header.relation_hand.store((hand + 1) % slots, Relaxed);
            let slot = self.slot(hand);
            if slot.phase() == LIVE && !slot.take_touched() && slot.seize(LIVE) {
                self.release(slot);
                header.relation_evictions.fetch_add(1, Relaxed);
                return true;
            }
        }
        false
    }

    /// *Locked.* Keeps a live relation from being found again.
    fn retire(&self, slot: &RelationSlot) {
        if slot.retire() {
            self.header().retired_relations.fetch_add(1, Relaxed);
        }
    }

    /// *Locked.* Frees a retired relation that is not pinned.
    fn release_retired(&self, slot: &RelationSlot) {
        if slot.phase() == RETIRED && slot.seize(RETIRED) {
            self.release(slot);
            self.header().retired_relations.fetch_sub(1, Relaxed);
        }
    }

    /// *Locked.* Frees all that hangs off a busy slot, and the slot.
    fn release(&self, slot: &RelationSlot) {
        let free = |payload| self.region.free(payload);
        slot.runs.release(self.memory, free);
        let visit = |entry| {
            // SAFETY: the elements of the table are entry words.
            let segment = segment_head::take_unpinned(unsafe { self.memory.head(entry) });
            if segment != 0 {
                segment_head::leave_ring(self, segment);
                // SAFETY: the entry named a resident segment.
                let head = unsafe { self.head::<SegmentHead>(segment) };
                if head.retired_pins.load(Acquire) == 0 {
                    self.free_segment(segment);
                } else {
                    let header = self.header();
                    head.next.store(header.retired.load(Relaxed), Relaxed);
                    header.retired.store(segment, Relaxed);
                }
            }
        };
        slot.segments
            .release(self.memory, segment_head::SHAPE, visit, free);
        slot.set_free();
        self.header().relations.fetch_sub(1, Relaxed);
    }

    /// Pins the slot of this relation without a lock.
    pub(super) fn find(&self, key: RelationKey, generation: u64) -> Option<u32> {
        self.probe(key)
            .find(|&index| self.slot(index).pin(key, generation))
    }

    /// *Locked.* Pins the slot of this relation, and fills a slot if there is none. Other
    /// generations of the relation are retired.
    pub(super) fn find_or_fill(&self, key: RelationKey, generation: u64) -> Option<u32> {
        let mut found = None;
        for index in self.probe(key) {
            let slot = self.slot(index);
            if slot.phase() == LIVE && slot.key() == key {
                if slot.pin(key, generation) {
                    found = Some(index);
                } else {
                    self.retire(slot);
                }
            }
        }
        if found.is_some() {
            return found;
        }
        let index = self.vacant(key).or_else(|| {
            self.reclaim();
            self.vacant(key)
        });
        let index = index.or_else(|| {
            self.evict_relation();
            self.vacant(key)
        });
        let Some(index) = index else {
            self.header().refusals.fetch_add(1, Relaxed);
            return None;
        };
        self.slot(index).fill(key, generation);
        self.header().relations.fetch_add(1, Relaxed);
        Some(index)
    }

    /// *Locked.* Retires every relation for which `is_meant` is true, and frees the relations that
    /// are not pinned.
    pub(super) fn purge(&self, is_meant: impl Fn(RelationKey) -> bool) {
        for index in 0..self.slots() {
            let slot = self.slot(index);
            if slot.phase() == LIVE && is_meant(slot.key()) {
                self.retire(slot);
            }
        }
        self.reclaim();
    }

    /// The slots where a relation may be, in order of search.
    fn probe(&self, key: RelationKey) -> impl Iterator<Item = u32> {
        let slots = u64::from(self.slots());
        let start = key.hash() % slots;
        (start..slots)
            .chain(0..start)
            .map(|index| index as u32)
            .take_while(|&index| self.slot(index).phase() != EMPTY)
    }

    /// *Locked.* The first slot in order of search that can be filled.
    fn vacant(&self, key: RelationKey) -> Option<u32> {
        let slots = u64::from(self.slots());
        let start = key.hash() % slots;
        (start..slots)
            .chain(0..start)
            .map(|index| index as u32)
            .find(|&index| matches!(self.slot(index).phase(), EMPTY | FREE))
    }

    /// *Locked.*
    pub(super) fn stats(&self) -> ArenaStats {
        let header = self.header();
        ArenaStats {
            bytes_total: header.bytes.load(Relaxed),
            bytes_usable: self.region.bytes(),
            bytes_used: self.region.used(),
            bytes_largest_free: self.region.largest(),
            relations_max: u64::from(self.slots()),
            relations: header.relations.load(Relaxed),
            segments: header.segments.load(Relaxed),
            segment_evictions: header.segment_evictions.load(Relaxed),
            relation_evictions: header.relation_evictions.load(Relaxed),
            refusals: header.refusals.load(Relaxed),
        }
    }

    #[cfg(test)]
    pub(super) fn assert_invariants(&self) {
        self.region.assert_invariants();
    }
}
