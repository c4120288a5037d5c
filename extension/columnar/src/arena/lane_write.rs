//! Writing bits, fixed-width values and marks of NULLs past a segment's resident rows.
//!
//! Words of bitmaps may contain resident rows too. They are changed by whole atomic stores that
//! leave the bits of those rows unchanged. There is one writer, so no update is lost.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, Release};

use super::Locks;
use super::core::Core;
use super::extend::{Batch, Room};
use super::layout::Layout;
use super::segment_head::ColumnHead;
use crate::bits;
use crate::body::Body;
use crate::column::Column;
use crate::kind::LaneKind;

const WORD_BYTES: usize = size_of::<u64>();

/// Sets `count` bits of the bitmap at offset `lane`, from bit `from` on. `value(done, bits)`
/// returns the next `bits` bits after the first `done`.
fn write_bits(
    core: Core,
    lane: u64,
    from: usize,
    count: usize,
    mut value: impl FnMut(usize, usize) -> u64,
) {
    bits::each_word(from, count, |index, shift, bits, done| {
        let mask = bits::low_bits(bits) << shift;
        // SAFETY: the bitmap covers all rows of the segment, and these are some of them.
        let word = unsafe { core.head::<AtomicU64>(lane + (index * WORD_BYTES) as u64) };
        let new = word.load(Relaxed) & !mask | value(done, bits) << shift;
        word.store(new, Relaxed);
    });
}

/// Creates the validity bitmap of a column, all ones, if it has none. Returns `None` if there is no
/// memory.
pub(super) fn prepare_validity<L: Locks>(room: &Room<'_, L>, head: &ColumnHead) -> Option<()> {
    if head.validity.load(Relaxed) != 0 {
        return Some(());
    }
    let words = bits::words(room.pin.head().rows_max.load(Relaxed) as usize);
    let bitmap = room.allocate((words * WORD_BYTES) as u64)?;
    // SAFETY: a fresh payload of that many bytes.
    unsafe {
        room.core
            .memory
            .bytes(bitmap)
            .write_bytes(0xff, words * WORD_BYTES);
    }
    head.validity.store(bitmap, Release);
    Some(())
}

/// Marks the NULLs of a batch that has some.
pub(super) fn write_validity(core: Core, head: &ColumnHead, validity: &[u64], batch: &Batch<'_>) {
    let bitmap = head.validity.load(Relaxed);
    if bitmap != 0 {
        write_bits(
            core,
            bitmap,
            batch.from as usize,
            batch.rows,
            |done, bits| bits::read(validity, batch.first + done, bits),
        );
    }
}

/// Zeros the lane between the resident rows and the first new one.
pub(super) fn clear_gap(core: Core, head: &ColumnHead, layout: Layout, resident: u32, from: u32) {
    if from <= resident || layout.kind == LaneKind::Absent {
        return;
    }
    let lane = head.lane.load(Relaxed);
    if layout.kind == LaneKind::Bool {
        let count = (from - resident) as usize;
        return write_bits(core, lane, resident as usize, count, |_, _| 0);
    }
    let (start, end) = (layout.lane_bytes(resident), layout.lane_bytes(from));
    // SAFETY: the lane covers all rows of the segment, and readers do not read these rows yet.
    unsafe {
        core.memory
            .bytes(lane + start)
            .write_bytes(0, (end - start) as usize);
    }
}

/// Writes a batch's bools or values of fixed width.
pub(super) fn write_values(core: Core, head: &ColumnHead, column: &Column, batch: &Batch<'_>) {
    let lane = head.lane.load(Relaxed);
    match column.body() {
        Body::Bool(bitmap) => {
            write_bits(core, lane, batch.from as usize, batch.rows, |done, bits| {
                bits::read(bitmap.words(), batch.first + done, bits)
            });
        }
        Body::Fixed { stride, values, .. } => {
            let source = &values[batch.first * stride..(batch.first + batch.rows) * stride];
            let start = lane + u64::from(batch.from) * *stride as u64;
            // SAFETY: the lane covers all rows of the segment, and readers do not read these rows
            // yet.
            unsafe {
                core.memory
                    .bytes(start)
                    .copy_from_nonoverlapping(source.as_ptr(), source.len());
            }
        }
        // Absent stores nothing; items are written elsewhere.
        Body::Absent | Body::Plain(_) | Body::Coded { .. } => {}
    }
}
