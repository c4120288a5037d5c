//! The allocator of the shared area: two-level segregated fit (TLSF; M. Masmano et al., "TLSF: a
//! new dynamic memory allocator for real-time systems", ECRTS 2004), with offsets instead of
//! pointers.
//!
//! The region is tiled by blocks whose sizes are multiples of a line of 64 bytes. The first line of
//! a block is its head, the rest its payload, so payloads are aligned to 64 bytes.
//!
//! | word of a head | meaning |
//! |---|---|
//! | 0 | lines of the block, head included |
//! | 1 | offset of the block before it, 0 for the first |
//! | 2 | whether it is free |
//! | 3, 4 | next and previous block of its free list, 0 at the ends |
//! | 5 | a link for the owner of a block in use |
//!
//! Free blocks hang in lists by size class. Classes are exact below 32 lines and a sixteenth of a
//! power of two above, so an allocation wastes little and finds a block in constant time.
//!
//! Invariants: the blocks tile `first..end`; no two neighbours are both free; a class's bit is set
//! if and only if its list is not empty; `used` is the sum of the blocks in use.
//!
//! Every function needs the allocator's lock.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::memory::{Memory, Shared};

/// Bytes of a line, the unit of allocation.
pub(super) const LINE_BYTES: u64 = 64;

const CLASSES: usize = 640;
const EXACT_LINES: u64 = 16;
const STEPS_LOG2: u32 = 4;
const BLOCK_LINES_MIN: u64 = 2;
/// The number of blocks searched in a list whose blocks may be too small. It bounds the time of an
/// allocation.
const LIST_SEARCH_MAX: usize = 64;

const LINES: u64 = 0;
const BEFORE: u64 = 1;
const FREE: u64 = 2;
const NEXT: u64 = 3;
const PREVIOUS: u64 = 4;
const LINK: u64 = 5;

/// The state of the region outside of its blocks.
#[repr(C)]
pub(super) struct RegionState {
    first: AtomicU64,
    end: AtomicU64,
    used: AtomicU64,
    occupied: [AtomicU64; CLASSES / 64],
    lists: [AtomicU64; CLASSES],
}

// SAFETY: atomics only.
unsafe impl Shared for RegionState {}

/// The region, as seen by one process.
#[derive(Clone, Copy)]
pub(super) struct Region {
    memory: Memory,
    state: u64,
}

/// The size class of a block of `lines`. It never falls as `lines` grow.
fn class_of(lines: u64) -> usize {
    if lines < EXACT_LINES {
        return lines as usize;
    }
    let log2 = lines.ilog2();
    let step = (lines >> (log2 - STEPS_LOG2)) & ((1 << STEPS_LOG2) - 1);
    (((log2 - STEPS_LOG2 + 1) << STEPS_LOG2) as u64 + step) as usize
}

/// The first class whose every block has `lines` or more.
fn class_that_fits(lines: u64) -> usize {
    if lines < EXACT_LINES {
        return lines as usize;
    }
    class_of(lines + (1 << (lines.ilog2() - STEPS_LOG2)) - 1)
}

impl Region {
    /// # Safety
    /// A [`RegionState`] that was initialised (or is all zeros, before
    /// [`initialise`](Self::initialise)) is at offset `state`.
    pub(super) unsafe fn new(memory: Memory, state: u64) -> Self {
        Region { memory, state }
    }

    /// Makes one free block of `first..end`; `first` is above 0 and a multiple of 64.
    ///
    /// # Safety
    /// The bytes are the region's own, and the state is all zeros.
    pub(super) unsafe fn initialise(self, first: u64, end: u64) {
        let lines = (end - first) / LINE_BYTES;
        self.state().first.store(first, Relaxed);
        self.state().end.store(first + lines * LINE_BYTES, Relaxed);
        self.field(first, LINES).store(lines, Relaxed);
        self.field(first, BEFORE).store(0, Relaxed);
        self.insert(first);
    }

    fn state(&self) -> &RegionState {
        // SAFETY: `new` was promised a state there, which is never freed.
        unsafe { self.memory.head(self.state) }
    }

    #[inline]
    fn field(&self, block: u64, field: u64) -> &AtomicU64 {
        // SAFETY: only offsets of blocks come here, and the head of a block stays a head, or
        // becomes free bytes of the region, under the lock that the caller holds.
        unsafe { self.memory.head(block + field * size_of::<u64>() as u64) }
    }

    #[inline]
    fn get(&self, block: u64, field: u64) -> u64 {
        self.field(block, field).load(Relaxed)
    }

    #[inline]
    fn set(&self, block: u64, field: u64, value: u64) {
        self.field(block, field).store(value, Relaxed);
    }

    /// Bytes of all blocks.
    pub(super) fn bytes(&self) -> u64 {
        self.state().end.load(Relaxed) - self.state().first.load(Relaxed)
    }

    /// Bytes of blocks in use, their heads included.
    pub(super) fn used(&self) -> u64 {
        self.state().used.load(Relaxed)
    }

    /// Bytes of the largest payload that could be had now.
    pub(super) fn largest(&self) -> u64 {
        let state = self.state();
        let Some(class) = (0..CLASSES)
            .rev()
            .find(|&class| state.lists[class].load(Relaxed) != 0)
        else {
            return 0;
        };
        let (mut block, mut lines) = (state.lists[class].load(Relaxed), 0);
        while block != 0 {
            lines = lines.max(self.get(block, LINES));
            block = self.get(block, NEXT);
        }
        (lines - 1) * LINE_BYTES
    }

    /// A payload of at least `bytes`, whose contents are anything. `None` if no free block is large
    /// enough.
    pub(super) fn allocate(&self, bytes: u64) -> Option<u64> {
        if bytes > self.bytes() {
            return None;
        }
        let lines = bytes.div_ceil(LINE_BYTES).max(BLOCK_LINES_MIN - 1) + 1;
        let block = self.find(lines)?;
        self.remove(block);
        let spare = self.get(block, LINES) - lines;
        if spare >= BLOCK_LINES_MIN {
            self.set(block, LINES, lines);
            let rest = block + lines * LINE_BYTES;
            self.set(rest, LINES, spare);
            self.set(rest, BEFORE, block);
            self.set_before_of_next(rest);
            self.insert(rest);
        }
        self.set(block, LINK, 0);
        let taken = self.get(block, LINES) * LINE_BYTES;
        self.state().used.store(self.used() + taken, Relaxed);
        Some(block + LINE_BYTES)
    }

    /// Frees a payload.
    pub(super) fn free(&self, payload: u64) {
        let mut block = payload - LINE_BYTES;
        debug_assert_eq!(self.get(block, FREE), 0, "freed twice");
        let mut lines = self.get(block, LINES);
        let used = self.used() - lines * LINE_BYTES;
        self.state().used.store(used, Relaxed);
        let next = block + lines * LINE_BYTES;
        if next < self.state().end.load(Relaxed) && self.get(next, FREE) == 1 {
            self.remove(next);
            lines += self.get(next, LINES);
        }
        let before = self.get(block, BEFORE);
        if before != 0 && self.get(before, FREE) == 1 {
            self.remove(before);
            lines += self.get(before, LINES);
            block = before;
        }
        self.set(block, LINES, lines);
        self.set_before_of_next(block);
        self.insert(block);
    }

    /// The owner's link of a payload in use: 0 until it is set.
    pub(super) fn link(&self, payload: u64) -> u64 {
        self.get(payload - LINE_BYTES, LINK)
    }

    pub(super) fn set_link(&self, payload: u64, link: u64) {
        self.set(payload - LINE_BYTES, LINK, link);
    }

    /// Bytes that a payload in use takes, its head included.
    pub(super) fn block_bytes(&self, payload: u64) -> u64 {
        self.get(payload - LINE_BYTES, LINES) * LINE_BYTES
    }

    /// Bytes of a payload in use.
    #[cfg(test)]
    pub(super) fn payload_bytes(&self, payload: u64) -> u64 {
        (self.get(payload - LINE_BYTES, LINES) - 1) * LINE_BYTES
    }

    fn set_before_of_next(&self, block: u64) {
        let next = block + self.get(block, LINES) * LINE_BYTES;
        if next < self.state().end.load(Relaxed) {
            self.set(next, BEFORE, block);
        }
    }

    /// A free block of at least `lines`, still in its list.
    fn find(&self, lines: u64) -> Option<u64> {
        if let Some(class) = self.occupied_from(class_that_fits(lines)) {
            return Some(self.state().lists[class].load(Relaxed));
        }
        // No class is sure to fit; one below it may still have a large enough block.
        let mut block = self.state().lists.get(class_of(lines))?.load(Relaxed);
        for _ in 0..LIST_SEARCH_MAX {
            if block == 0 || self.get(block, LINES) >= lines {
                break;
            }
            block = self.get(block, NEXT);
        }
        (block != 0 && self.get(block, LINES) >= lines).then_some(block)
    }

    /// The first class that has a block, from `class` on.
    fn occupied_from(&self, class: usize) -> Option<usize> {
        let occupied = &self.state().occupied;
        let mut word = class / 64;
        let mut bits = occupied.get(word)?.load(Relaxed) & (u64::MAX << (class % 64));
        while bits == 0 {
            word += 1;
            bits = occupied.get(word)?.load(Relaxed);
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }

    fn insert(&self, block: u64) {
        let class = class_of(self.get(block, LINES));
        let state = self.state();
        let next = state.lists[class].load(Relaxed);
        self.set(block, FREE, 1);
        self.set(block, NEXT, next);
        self.set(block, PREVIOUS, 0);
        if next != 0 {
            self.set(next, PREVIOUS, block);
        }
        state.lists[class].store(block, Relaxed);
        let bits = state.occupied[class / 64].load(Relaxed);
        state.occupied[class / 64].store(bits | 1 << (class % 64), Relaxed);
    }

    fn remove(&self, block: u64) {
        let class = class_of(self.get(block, LINES));
        let state = self.state();
        let (next, previous) = (self.get(block, NEXT), self.get(block, PREVIOUS));
        if next != 0 {
            self.set(next, PREVIOUS, previous);
        }
        if previous != 0 {
            self.set(previous, NEXT, next);
        } else {
            state.lists[class].store(next, Relaxed);
            if next == 0 {
                let bits = state.occupied[class / 64].load(Relaxed);
                state.occupied[class / 64].store(bits & !(1 << (class % 64)), Relaxed);
            }
        }
        self.set(block, FREE, 0);
    }

    /// Checks the invariants at the head of this file.
    #[cfg(test)]
    pub(super) fn assert_invariants(&self) {
        let state = self.state();
        let (mut block, mut before, mut used, mut was_free) =
            (state.first.load(Relaxed), 0, 0, false);
        let mut free_blocks = 0;
        while block < state.end.load(Relaxed) {
            assert_eq!(self.get(block, BEFORE), before);
            let (lines, free) = (self.get(block, LINES), self.get(block, FREE) == 1);
            assert!(lines >= BLOCK_LINES_MIN);
            assert!(!(free && was_free), "two free neighbours");
            if free {
                free_blocks += 1;
            } else {
                used += lines * LINE_BYTES;
            }
            (before, was_free) = (block, free);
            block += lines * LINE_BYTES;
        }
        assert_eq!(block, state.end.load(Relaxed));
        assert_eq!(used, self.used());
        for class in 0..CLASSES {
            let bit = state.occupied[class / 64].load(Relaxed) >> (class % 64) & 1;
            let mut block = state.lists[class].load(Relaxed);
            assert_eq!(bit == 1, block != 0);
            while block != 0 {
                assert_eq!(class_of(self.get(block, LINES)), class);
                free_blocks -= 1;
                block = self.get(block, NEXT);
            }
        }
        assert_eq!(free_blocks, 0, "a free block is in no list");
    }
}

#[cfg(test)]
mod tests;
