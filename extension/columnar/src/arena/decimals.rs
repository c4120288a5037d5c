//! Room for the integers of a column of `numeric`, beside its items: see [`decimal_lane`](crate::decimal_lane).
//!
//! The room belongs to the segment, counts as its memory, and is freed with it. It is made when the segment is opened
//! after a reader wanted it, under the allocator's lock, for the 8 bytes a row that it takes. Readers can do without,
//! so it is made only where nothing has to be evicted for it, and never from the last part of the arena or beyond the
//! relation's budget. If there is none, the next reader has to want it again.
//!
//! Only whole vectors of published rows have integers, and these do not change, also while the segment grows.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::segment::SegmentPin;
use crate::decimal_lane::DecimalLane;

impl SegmentPin {
    fn rows_max(&self) -> usize {
        self.head().rows_max.load(Relaxed) as usize
    }

    /// The integers that the segment keeps beside the items of a column of `numeric`.
    pub(super) fn decimals(&self, column: usize) -> DecimalLane {
        let head = self.column(column);
        let memory = self.core().memory;
        let room = match head.decimals.load(Acquire) {
            0 => std::ptr::null_mut(),
            // SAFETY: offsets in a column's head name bytes of the area, freed with the segment.
            offset => unsafe { memory.bytes(offset) },
        };
        // SAFETY: head and room live as long as the pinned segment, and the room was made for its rows.
        unsafe { DecimalLane::new(&raw const head.decimals_wanted, room, self.rows_max()) }
    }

    /// Whether a reader wanted integers of a column for which there is no room yet.
    pub(super) fn wants_decimals(&self, column: usize) -> bool {
        let head = self.column(column);
        head.decimals_wanted.load(Relaxed) != 0 && head.decimals.load(Relaxed) == 0
    }

    /// *Locked.* Makes room for the integers of a column, if there is some to spare.
    pub(super) fn make_room_for_decimals(&self, column: usize) {
        let head = self.column(column);
        head.decimals_wanted.store(0, Relaxed);
        if head.decimals.load(Relaxed) != 0 {
            return;
        }
        let (core, rows) = (self.core(), self.rows_max());
        let bytes = DecimalLane::room_bytes(rows) as u64;
        let Some(room) = core.allocate_spare_for(self.head(), bytes) else {
            return;
        };
        // SAFETY: a fresh payload of more bytes than that.
        unsafe {
            let zeros = DecimalLane::zero_bytes(rows);
            core.memory.bytes(room).write_bytes(0, zeros);
        }
        head.decimals.store(room, Release);
    }
}
