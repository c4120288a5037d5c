//! The pins of this thread. A process that ends without unwinding its stack releases them by this
//! list.
//!
//! A pin is counted in shared memory and released when its value is dropped. PostgreSQL may end a
//! process in the middle of a wait through `exit`. Then nothing on the stack is dropped, and what
//! was pinned could never be evicted again.

use std::cell::RefCell;
use std::sync::atomic::AtomicU64;

use super::core::Core;
use super::segment_head;

/// Pins of one arena or of several, in the order in which they were taken.
#[derive(Default)]
struct Held {
    /// Base of the arena, offset of the entry, offset of the segment.
    segments: Vec<(usize, u64, u64)>,
    /// Base of the arena, slot.
    slots: Vec<(usize, u32)>,
}

thread_local! {
    static HELD: RefCell<Held> = RefCell::default();
}

fn base(core: &Core) -> usize {
    core.memory.base() as usize
}

/// Removes the last equal element. Pins are mostly released in the opposite order of their
/// acquisition.
fn remove<T: PartialEq>(list: &mut Vec<T>, item: &T) {
    // One that was taken by another thread is in that one's list.
    if let Some(place) = list.iter().rposition(|other| other == item) {
        list.swap_remove(place);
    }
}

/// Takes note of a pin of a segment.
pub(super) fn note_segment(core: &Core, entry: u64, segment: u64) {
    let item = (base(core), entry, segment);
    let _ = HELD.try_with(|held| held.borrow_mut().segments.push(item));
}

/// Removes a pin of a segment.
pub(super) fn forget_segment(core: &Core, entry: u64, segment: u64) {
    let item = (base(core), entry, segment);
    let _ = HELD.try_with(|held| remove(&mut held.borrow_mut().segments, &item));
}

/// Takes note of a pin of a relation.
pub(super) fn note_slot(core: &Core, slot: u32) {
    let item = (base(core), slot);
    let _ = HELD.try_with(|held| held.borrow_mut().slots.push(item));
}

/// Removes a pin of a relation.
pub(super) fn forget_slot(core: &Core, slot: u32) {
    let item = (base(core), slot);
    let _ = HELD.try_with(|held| remove(&mut held.borrow_mut().slots, &item));
}

/// Releases all pins of this thread in an arena, and returns their number.
///
/// # Safety
/// Nothing that is pinned is used or dropped afterwards.
pub(super) unsafe fn release_all(core: &Core) -> usize {
    let held = HELD.try_with(RefCell::take).unwrap_or_default();
    let (base, mut pins) = (base(core), 0);
    for (arena, entry, segment) in held.segments {
        if arena == base {
            // SAFETY: the pin keeps the segment, and the pin of the relation, released below, keeps
            // its entry.
            let entry: &AtomicU64 = unsafe { core.memory.head(entry) };
            segment_head::unpin(core, entry, segment);
            pins += 1;
        }
    }
    for (arena, slot) in held.slots {
        if arena == base {
            core.slot(slot).unpin();
            pins += 1;
        }
    }
    pins
}
