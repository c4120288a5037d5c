//! A relation's slot in the shared area: its key, its pins, and the roots of its tables.
//!
//! | phase | who may pin | next |
//! |---|---|---|
//! | empty: never used | no process | busy |
//! | free: used before | no process | busy |
//! | busy: one process fills or empties it, under the allocator's lock | no process | live, free |
//! | live | every process | retired; busy if not pinned |
//! | retired: purged, or replaced by another generation | owners of a pin | busy once not pinned |
//!
//! Lookup is linear probing from the key's hash up to an empty slot. It takes no lock: a process
//! pins a live slot with the right key, and compares the key again under the protection of its pin.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

use super::RelationKey;
use super::memory::Shared;
use super::runs::RunTable;
use super::table::Table;

const PHASE_SHIFT: u32 = 32;
const PINS_MASK: u64 = (1 << PHASE_SHIFT) - 1;
const PHASE_MASK: u64 = 0b111 << PHASE_SHIFT;
const TOUCHED: u64 = 1 << 40;

pub(super) const EMPTY: u64 = 0;
pub(super) const FREE: u64 = 1 << PHASE_SHIFT;
pub(super) const BUSY: u64 = 2 << PHASE_SHIFT;
pub(super) const LIVE: u64 = 3 << PHASE_SHIFT;
pub(super) const RETIRED: u64 = 4 << PHASE_SHIFT;

/// Tops of the table of segments: enough for every row number.
pub(super) const SEGMENT_TOPS: usize = 13;

/// See the head of this file. The key and generation change only while the slot is busy.
#[repr(C, align(64))]
pub(super) struct RelationSlot {
    /// Pins in the low half, then the phase, then whether it was used since the clock passed.
    state: AtomicU64,
    storage_id: AtomicU64,
    shape: AtomicU64,
    generation: AtomicU64,
    space: AtomicU32,
    database: AtomicU32,
    file: AtomicU32,
    pub(super) runs: RunTable,
    pub(super) segments: Table<SEGMENT_TOPS>,
    /// The bytes of its resident segments; their limit, 0 = none; the segments evicted for the
    /// limit. Changed under the allocator's lock.
    bytes: AtomicU64,
    budget: AtomicU64,
    evictions: AtomicU64,
}

// SAFETY: atomics only.
unsafe impl Shared for RelationSlot {}

impl RelationSlot {
    #[inline]
    pub(super) fn phase(&self) -> u64 {
        self.state.load(Acquire) & PHASE_MASK
    }

    pub(super) fn key(&self) -> RelationKey {
        RelationKey {
            space: self.space.load(Relaxed),
            database: self.database.load(Relaxed),
            file: self.file.load(Relaxed),
            storage_id: self.storage_id.load(Relaxed),
            shape: self.shape.load(Relaxed),
        }
    }

    /// Declares the cached contents valid for a later generation. The caller owns a pin.
    pub(super) fn advance_generation(&self, from: u64, to: u64) -> bool {
        self.generation
            .compare_exchange(from, to, Relaxed, Relaxed)
            .is_ok()
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Relaxed)
    }

    /// Whether the slot holds this relation in this generation or a later one, whose contents are
    /// newer.
    fn is(&self, key: RelationKey, generation: u64) -> bool {
        self.key() == key && self.generation() >= generation
    }

    /// Pins the slot if it is live and holds this relation.
    pub(super) fn pin(&self, key: RelationKey, generation: u64) -> bool {
        if !self.is(key, generation) {
            return false;
        }
        let pinned = self.state.fetch_update(Acquire, Relaxed, |state| {
            (state & PHASE_MASK == LIVE).then_some((state + 1) | TOUCHED)
        });
        if pinned.is_err() {
            return false;
        }
        if !self.is(key, generation) {
            self.unpin();
            return false;
        }
        true
    }

    /// Pins once more what the caller has pinned already.
    pub(super) fn pin_again(&self) {
        self.state.fetch_add(1, Relaxed);
    }

    pub(super) fn unpin(&self) {
        self.state.fetch_sub(1, Release);
    }

    /// Takes an empty or free slot for a new relation. Under the allocator's lock.
    pub(super) fn fill(&self, key: RelationKey, generation: u64) {
        self.state.store(BUSY, Relaxed);
        self.space.store(key.space, Relaxed);
        self.database.store(key.database, Relaxed);
        self.file.store(key.file, Relaxed);
        self.storage_id.store(key.storage_id, Relaxed);
        self.shape.store(key.shape, Relaxed);
        self.generation.store(generation, Relaxed);
        self.runs.reset();
        debug_assert_eq!(
            self.bytes.load(Relaxed),
            0,
            "a segment outlived its relation"
        );
        self.budget.store(0, Relaxed);
        self.evictions.store(0, Relaxed);
        // Live, with one pin: the caller's.
        self.state.store((LIVE + 1) | TOUCHED, Release);
    }

    /// Prevents new pins of a live slot. Returns false if it was not live. Requires the allocator's
    /// lock.
    pub(super) fn retire(&self) -> bool {
        self.state
            .fetch_update(AcqRel, Relaxed, |state| {
                (state & PHASE_MASK == LIVE).then_some(state & !PHASE_MASK | RETIRED)
            })
            .is_ok()
    }

    /// Makes a slot of this phase busy if it is not pinned. Requires the allocator's lock.
    pub(super) fn seize(&self, phase: u64) -> bool {
        self.state
            .fetch_update(Acquire, Relaxed, |state| {
                (state & PHASE_MASK == phase && state & PINS_MASK == 0).then_some(BUSY)
            })
            .is_ok()
    }

    /// Bytes of its resident segments.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    pub(super) fn add_bytes(&self, bytes: u64) {
        self.bytes.store(self.bytes() + bytes, Relaxed);
    }

    pub(super) fn take_bytes(&self, bytes: u64) {
        self.bytes.store(self.bytes() - bytes, Relaxed);
    }

    /// The limit of its segments' bytes; 0 if there is none.
    pub(super) fn budget(&self) -> u64 {
        self.budget.load(Relaxed)
    }

    pub(super) fn set_budget(&self, bytes: u64) {
        self.budget.store(bytes, Relaxed);
    }

    /// Segments that left to keep the budget.
    pub(super) fn evictions(&self) -> u64 {
        self.evictions.load(Relaxed)
    }

    pub(super) fn count_eviction(&self) {
        self.evictions.fetch_add(1, Relaxed);
    }

    /// Whether the slot was used since the last call.
    pub(super) fn take_touched(&self) -> bool {
        self.state.fetch_and(!TOUCHED, Relaxed) & TOUCHED != 0
    }

    /// A busy slot whose tables have been released is free again. Under the allocator's lock.
    pub(super) fn set_free(&self) {
        self.state.store(FREE, Release);
    }
}
