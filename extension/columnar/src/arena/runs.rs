//! A relation's list of runs, a copy of its durable directory. It only grows.
//!
//! Entries are written, then their number is published; published entries never change but for
//! their flags. The number and the durable position that belongs to it are read together under a
//! sequence lock: odd while a writer, who holds the relation's lock, changes them.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64, fence};

use super::memory::{Memory, Shared};
use super::table::{ElementLayout, Table};

/// One run, or later one sealed segment. The pages of the durable directory contain the same bytes.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RunEntry {
    /// Number of the first row.
    pub first_row: u64,
    /// The number of rows.
    pub rows: u32,
    /// The transaction that inserted them.
    pub xmin: u32,
    /// Its command.
    pub cmin: u32,
    /// Hint bits: the only part that changes, by setting bits.
    pub flags: u32,
    /// Block at which the image begins.
    pub block: u32,
    /// Bytes of the image.
    pub bytes: u32,
    /// Where in the block; the caller's business.
    pub place: u32,
    /// The caller's business.
    pub extra: u32,
}

const _: () = assert!(size_of::<RunEntry>() == 40 && align_of::<RunEntry>() == 8);

impl RunEntry {
    /// The number of the row after the last.
    #[inline]
    pub fn end_row(&self) -> u64 {
        self.first_row + u64::from(self.rows)
    }
}

/// Where in the durable directory the next entry will be. Opaque here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Position {
    /// Block of the directory page.
    pub block: u32,
    /// Index of the entry in it.
    pub index: u32,
}

/// A [`RunEntry`] in shared memory.
#[repr(C)]
struct SharedRun {
    first_row: AtomicU64,
    rows: AtomicU32,
    xmin: AtomicU32,
    cmin: AtomicU32,
    flags: AtomicU32,
    block: AtomicU32,
    bytes: AtomicU32,
    place: AtomicU32,
    extra: AtomicU32,
}

// SAFETY: atomics only.
unsafe impl Shared for SharedRun {}

const _: () = assert!(size_of::<SharedRun>() == size_of::<RunEntry>());

/// 2^20 - 1 leaves of the first top's size: more entries than a u32 can count.
const RUN_TOPS: usize = 20;

const SHAPE: ElementLayout = ElementLayout {
    element_bytes: size_of::<SharedRun>() as u64,
    leaf_elements: 128,
};

const _: () = assert!(((64 << RUN_TOPS) - 64) * SHAPE.leaf_elements > u32::MAX as u64);

/// See the head of this file.
#[repr(C)]
pub(super) struct RunTable {
    sequence: AtomicU32,
    runs: AtomicU32,
    block: AtomicU32,
    index: AtomicU32,
    entries: Table<RUN_TOPS>,
}

impl RunTable {
    /// An empty list at no position; the table is empty already.
    pub(super) fn reset(&self) {
        self.sequence.store(0, Relaxed);
        self.runs.store(0, Relaxed);
        self.block.store(0, Relaxed);
        self.index.store(0, Relaxed);
    }

    #[inline]
    pub(super) fn len(&self) -> u32 {
        self.runs.load(Acquire)
    }

    pub(super) fn published(&self) -> (u32, Position) {
        loop {
            let before = self.sequence.load(Acquire);
            let published = (
                self.runs.load(Relaxed),
                Position {
                    block: self.block.load(Relaxed),
                    index: self.index.load(Relaxed),
                },
            );
            fence(Acquire);
            if before.is_multiple_of(2) && self.sequence.load(Relaxed) == before {
                return published;
            }
            // The writer is between a few stores; let it run should it have lost its processor.
            std::thread::yield_now();
        }
    }

    /// The entry at `index`, which must have been published.
    #[inline]
    fn entry(&self, memory: Memory, index: u32) -> Option<&SharedRun> {
        let offset = self.entries.get(memory, SHAPE, index.into())?;
        // SAFETY: a leaf consists of such entries (all zeros at first), and lives while the
        // relation is pinned.
        Some(unsafe { memory.head(offset) })
    }

    /// The run at `index`; an empty one past the end.
    #[inline]
    pub(super) fn get(&self, memory: Memory, index: u32) -> RunEntry {
        let Some(entry) = self.entry(memory, index) else {
            return RunEntry::default();
        };
        RunEntry {
            first_row: entry.first_row.load(Relaxed),
            rows: entry.rows.load(Relaxed),
            xmin: entry.xmin.load(Relaxed),
            cmin: entry.cmin.load(Relaxed),
            flags: entry.flags.load(Relaxed),
            block: entry.block.load(Relaxed),
            bytes: entry.bytes.load(Relaxed),
            place: entry.place.load(Relaxed),
            extra: entry.extra.load(Relaxed),
        }
    }

    pub(super) fn set_flags(&self, memory: Memory, index: u32, bits: u32) {
        if let Some(entry) = self.entry(memory, index) {
            entry.flags.fetch_or(bits, Relaxed);
        }
    }

    /// The first of `runs` runs for which `is_past` holds; it holds for all after it.
    fn partition(&self, memory: Memory, mut is_past: impl FnMut(u64, u32) -> bool) -> u32 {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let past = self.entry(memory, middle).is_some_and(|entry| {
                is_past(entry.first_row.load(Relaxed), entry.rows.load(Relaxed))
            });
            if past {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    /// The run that holds `row`.
    pub(super) fn find(&self, memory: Memory, row: u64) -> Option<u32> {
        let after = self.partition(memory, |first_row, _| first_row > row);
        let index = after.checked_sub(1)?;
        (row < self.get(memory, index).end_row()).then_some(index)
    }

    /// The index of the first run that ends after `row`; the number of runs if no run does.
    pub(super) fn first_ending_after(&self, memory: Memory, row: u64) -> u32 {
        self.partition(memory, |first_row, rows| first_row + u64::from(rows) > row)
    }

    /// Appends entries and moves the position, if there are `expected` runs now, their rows ascend
    /// without overlap and there is room. Under the relation's lock.
    pub(super) fn append(
        &self,
        memory: Memory,
        expected: u32,
        entries: &[RunEntry],
        position: Position,
        mut allocate: impl FnMut(u64) -> Option<u64>,
    ) -> bool {
        let runs = self.len();
        let Some(end) = u32::try_from(entries.len())
            .ok()
            .and_then(|more| runs.checked_add(more))
        else {
            return false;
        };
        let mut row = match runs.checked_sub(1) {
            Some(last) => self.get(memory, last).end_row(),
            None => 0,
        };
        for entry in entries {
            if entry.first_row < row || entry.first_row.checked_add(entry.rows.into()).is_none() {
                return false;
            }
            row = entry.end_row();
        }
        if runs != expected {
            return false;
        }
        for (index, entry) in (runs..).zip(entries) {
            let offset = self
                .entries
                .ensure(memory, SHAPE, index.into(), &mut allocate);
            let Some(offset) = offset else {
                return false;
            };
            // SAFETY: as in `entry`.
            let shared = unsafe { memory.head::<SharedRun>(offset) };
            shared.first_row.store(entry.first_row, Relaxed);
            shared.rows.store(entry.rows, Relaxed);
            shared.xmin.store(entry.xmin, Relaxed);
            shared.cmin.store(entry.cmin, Relaxed);
            shared.flags.store(entry.flags, Relaxed);
            shared.block.store(entry.block, Relaxed);
            shared.bytes.store(entry.bytes, Relaxed);
            shared.place.store(entry.place, Relaxed);
            shared.extra.store(entry.extra, Relaxed);
        }
        let sequence = self.sequence.load(Relaxed);
        self.sequence.store(sequence.wrapping_add(1), Relaxed);
        fence(Release);
        self.runs.store(end, Release);
        self.block.store(position.block, Relaxed);
        self.index.store(position.index, Relaxed);
        self.sequence.store(sequence.wrapping_add(2), Release);
        true
    }

    /// Frees all memory. The list has no users meanwhile.
    pub(super) fn release(&self, memory: Memory, free: impl FnMut(u64)) {
        self.entries.release(memory, SHAPE, |_| {}, free);
    }
}
