//! A pinned relation: its list of runs and its segments.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::core::Core;
use super::extend::{Batch, extend};
use super::held;
use super::runs::{Position, RunEntry};
use super::segment::{Segment, SegmentPin};
use super::segment_head;
use super::slot::RelationSlot;
use super::{Arena, Locks, RelationKey, RelationStats};
use crate::column::Column;
use crate::kind::LaneKind;
use crate::limits::{ROWS_MAX, segment_first_row, segment_of};

/// A handle on a cached relation, which is not evicted while the handle lives. Dropping it touches
/// one atomic and takes no lock.
///
/// Reading takes no lock either. [`publish`](Self::publish) and
/// [`extend_segment`](Self::extend_segment) take the relation's lock, and within it the
/// allocator's.
pub struct Relation<L: Locks> {
    arena: Arena<L>,
    slot: u32,
}

impl<L: Locks> Clone for Relation<L> {
    fn clone(&self) -> Self {
        self.slot().pin_again();
        held::note_slot(&self.arena.core, self.slot);
        Relation {
            arena: self.arena.clone(),
            slot: self.slot,
        }
    }
}

impl<L: Locks> Drop for Relation<L> {
    fn drop(&mut self) {
        held::forget_slot(&self.arena.core, self.slot);
        self.slot().unpin();
    }
}

impl<L: Locks> Relation<L> {
    /// Takes over a pin that the caller has.
    pub(super) fn new(arena: Arena<L>, slot: u32) -> Self {
        held::note_slot(&arena.core, slot);
        Relation { arena, slot }
    }

    fn slot(&self) -> &RelationSlot {
        self.arena.core.slot(self.slot)
    }

    /// The key with which the relation was opened.
    pub fn key(&self) -> RelationKey {
        self.slot().key()
    }

    /// The generation that it was opened with.
    pub fn generation(&self) -> u64 {
        self.slot().generation()
    }

    /// Declares the cached contents valid for a later generation, in which only flags of runs
    /// changed, and the cached flags were changed as well. Returns false and changes nothing if the
    /// generation is not `from`.
    pub fn advance_generation(&self, from: u64, to: u64) -> bool {
        self.slot().advance_generation(from, to)
    }

    /// The number of published runs.
    #[inline]
    pub fn runs(&self) -> u32 {
        self.slot().runs.len()
    }

    /// Where in the durable directory the entry after the published ones will be.
    pub fn position(&self) -> Position {
        self.published().1
    }

    /// [`runs`](Self::runs) and the [`position`](Self::position) that belongs to them.
    pub fn published(&self) -> (u32, Position) {
        self.slot().runs.published()
    }

    /// One of the published runs; an empty run at row 0 if the index is too great.
    #[inline]
    pub fn run(&self, index: u32) -> RunEntry {
        if index >= self.runs() {
            return RunEntry::default();
        }
        self.slot().runs.get(self.arena.core.memory, index)
    }

    /// Sets hint bits of a published run.
    pub fn set_flags(&self, index: u32, bits: u32) {
        if index < self.runs() {
            let memory = self.arena.core.memory;
            self.slot().runs.set_flags(memory, index, bits);
        }
    }

    /// Appends runs and moves the position, which may also move alone.
    ///
    /// False, with nothing changed, if there are not `expected_runs` now, if there is no room, or
    /// if the rows do not ascend without overlap.
    pub fn publish(&self, expected_runs: u32, entries: &[RunEntry], position: Position) -> bool {
        let core = self.arena.core;
        let locks = &self.arena.locks;
        locks.with_relation(self.key().hash(), || {
            let runs = &self.slot().runs;
            runs.append(core.memory, expected_runs, entries, position, |bytes| {
                locks.with_allocator(|| core.allocate(bytes))
            })
        })
    }

    /// Appends a run and moves the position, as [`publish`](Self::publish) does, and copies its rows from the
    /// columns into their segment, as [`extend_segment`](Self::extend_segment) does, under one lock. The rows lie in
    /// one segment. Whether the run was appended.
    pub fn publish_with_rows(
        &self,
        expected_runs: u32,
        entry: &RunEntry,
        position: Position,
        kinds: &[LaneKind],
        columns: &[Column],
    ) -> bool {
        let segment = segment_of(entry.first_row);
        let batch = Batch {
            kinds,
            from: (entry.first_row - segment_first_row(segment)) as u32,
            columns,
            first: 0,
            rows: entry.rows as usize,
            gap_ok: false,
        };
        let core = self.arena.core;
        let locks = &self.arena.locks;
        locks.with_relation(self.key().hash(), || {
            let runs = &self.slot().runs;
            let one = std::slice::from_ref(entry);
            let is_appended = runs.append(core.memory, expected_runs, one, position, |bytes| {
                locks.with_allocator(|| core.allocate(bytes))
            });
            if is_appended && segment <= segment_of(ROWS_MAX - 1) && batch.is_sound(segment) {
                extend(core, &**locks, self.slot, segment, &batch);
            }
            is_appended
        })
    }

    /// The run that holds `row`, if any does.
    pub fn find_run(&self, row: u64) -> Option<u32> {
        self.slot().runs.find(self.arena.core.memory, row)
    }

    /// The index of the first run that ends after the segment's first row; [`runs`](Self::runs) if
    /// no run does.
    pub fn first_run_of_segment(&self, segment: u32) -> u32 {
        let row = segment_first_row(segment);
        let runs = &self.slot().runs;
        runs.first_ending_after(self.arena.core.memory, row)
    }

    /// Copies rows `first..first + rows` of the columns into a segment, at its row `from`, and
    /// makes them resident. If the segment is not resident, it is made, and `from` is 0.
    ///
    /// Returns false and makes nothing resident if `from` is not the number of resident rows, if
    /// there is no memory even after eviction, or if the columns do not fit. The caller then loads
    /// what is missing or reads it from elsewhere. If the segment is resident with other `kinds`,
    /// it is also retired, and must be loaded again from row 0.
    pub fn extend_segment(
        &self,
        segment: u32,
        kinds: &[LaneKind],
        from: u32,
        columns: &[Column],
        first: usize,
        rows: usize,
    ) -> bool {
        let batch = Batch {
            kinds,
            from,
            columns,
            first,
            rows,
            gap_ok: false,
        };
        self.extend(segment, &batch)
    }

    /// Extends a segment like [`extend_segment`](Self::extend_segment), but rows between the
    /// resident rows and `from`, which no run contains, may be skipped. The contents of their lanes
    /// are unspecified, but within bounds.
    pub fn extend_segment_past_gap(
        &self,
        segment: u32,
        kinds: &[LaneKind],
        from: u32,
        columns: &[Column],
        first: usize,
        rows: usize,
    ) -> bool {
        let batch = Batch {
            kinds,
            from,
            columns,
            first,
            rows,
            gap_ok: true,
        };
        self.extend(segment, &batch)
    }

    fn extend(&self, segment: u32, batch: &Batch<'_>) -> bool {
        if segment > segment_of(ROWS_MAX - 1) || !batch.is_sound(segment) {
            return false;
        }
        let core = self.arena.core;
        let locks = &self.arena.locks;
        locks.with_relation(self.key().hash(), || {
            extend(core, &**locks, self.slot, segment, batch)
        })
    }

    /// Adopts the resident segments of an earlier generation of the same relation whose rows are
    /// unchanged. Pins of the earlier generation stay valid.
    pub fn adopt_segments(&self, earlier: &Relation<L>, segments: impl Iterator<Item = u32>) {
        if self.slot == earlier.slot || self.key() != earlier.key() {
            return;
        }
        let core = self.arena.core;
        let locks = &self.arena.locks;
        locks.with_relation(self.key().hash(), || {
            for segment in segments {
                let table = &earlier.slot().segments;
                let Some(from) = table.get(core.memory, segment_head::SHAPE, segment.into()) else {
                    continue;
                };
                let table = &self.slot().segments;
                let to = table.ensure(core.memory, segment_head::SHAPE, segment.into(), |bytes| {
                    locks.with_allocator(|| core.allocate(bytes))
                });
                let Some(to) = to else {
                    return;
                };
                locks.with_allocator(|| {
                    // SAFETY: the elements of the tables are entry words, and both relations are
                    // pinned.
                    let entries = unsafe { (core.head(from), core.head::<AtomicU64>(to)) };
                    if segment_head::segment_of(entries.1.load(Relaxed)) == 0 {
                        segment_head::adopt(&core, entries.0, entries.1, (to, self.slot));
                    }
                });
            }
        });
    }

    /// Limits the bytes of the relation's segments; 0 removes the limit. Segments over the limit
    /// are evicted at once, unless they are pinned.
    pub fn set_budget(&self, bytes: u64) {
        if self.slot().budget() == bytes {
            return;
        }
        let core = self.arena.core;
        self.arena.locks.with_allocator(|| {
            self.slot().set_budget(bytes);
            core.keep_budget(self.slot, 0);
        });
    }

    /// Runs `f` under the allocator's lock.
    pub(super) fn with_allocator<R>(&self, f: impl FnOnce() -> R) -> R {
        self.arena.locks.with_allocator(f)
    }

    /// The use of the arena by the relation.
    pub fn stats(&self) -> RelationStats {
        let slot = self.slot();
        RelationStats {
            bytes_used: slot.bytes(),
            bytes_max: slot.budget(),
            segment_evictions: slot.evictions(),
        }
    }

    /// Pins a segment for reading, if it is resident. One that is kept as [images](super::Images)
    /// has no columns and no rows.
    pub fn pin_segment(&self, segment: u32) -> Option<Segment<L>> {
        Some(Segment::new(self.pin(segment)?, self.clone()))
    }

    /// Pins the contents of a segment's entry.
    pub(super) fn pin(&self, segment: u32) -> Option<SegmentPin> {
        let core = self.arena.core;
        let table = &self.slot().segments;
        let entry = table.get(core.memory, segment_head::SHAPE, segment.into())?;
        SegmentPin::new(core, entry)
    }

    /// Calls `f` with the offset of a segment's entry under the relation's lock. Returns false if
    /// the segment does not exist or there is no memory for the entry.
    pub(super) fn in_entry(
        &self,
        segment: u32,
        f: impl FnOnce(Core, &L, u32, u64) -> bool,
    ) -> bool {
        if segment > segment_of(ROWS_MAX - 1) {
            return false;
        }
        let core = self.arena.core;
        let locks = &*self.arena.locks;
        locks.with_relation(self.key().hash(), || {
            let table = &self.slot().segments;
            let entry = table.ensure(core.memory, segment_head::SHAPE, segment.into(), |bytes| {
                locks.with_allocator(|| core.allocate(bytes))
            });
            entry.is_some_and(|entry| f(core, locks, self.slot, entry))
        })
    }
}
