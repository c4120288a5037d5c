//! A shared array that grows without moving: leaves of equal size under tops of doubling size.
//!
//! Elements are found without a lock while others append. Top `k` contains `64 << k` offsets of
//! leaves. Tops and leaves are allocated with the first element in them, and live until the whole
//! table is released, so the address of an element never changes. A gap costs only its tops.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::memory::{Memory, Shared};

const FIRST_TOP_LEAVES: u64 = 64;

/// The size of a table's elements, which its owner knows.
#[derive(Clone, Copy)]
pub(super) struct ElementLayout {
    pub(super) element_bytes: u64,
    pub(super) leaf_elements: u64,
}

/// The root of a table. All zeros is an empty one.
#[repr(C)]
pub(super) struct Table<const TOPS: usize> {
    tops: [AtomicU64; TOPS],
}

// SAFETY: atomics only.
unsafe impl<const TOPS: usize> Shared for Table<TOPS> {}

/// The top that a leaf hangs under, and its place there.
fn place_of(leaf: u64) -> (usize, u64) {
    let top = (leaf / FIRST_TOP_LEAVES + 1).ilog2();
    (top as usize, leaf - FIRST_TOP_LEAVES * ((1 << top) - 1))
}

fn top_bytes(top: usize) -> u64 {
    (FIRST_TOP_LEAVES << top) * size_of::<u64>() as u64
}

impl<const TOPS: usize> Table<TOPS> {
    fn leaf_word(&self, memory: Memory, leaf: u64) -> Option<&AtomicU64> {
        let (top, place) = place_of(leaf);
        match self.tops.get(top)?.load(Acquire) {
            0 => None,
            // SAFETY: a top holds that many atomics, and lives as long as the table.
            tops => Some(unsafe { memory.head(tops + place * size_of::<u64>() as u64) }),
        }
    }

    /// The offset of an element, if its leaf is there.
    #[inline]
    pub(super) fn get(&self, memory: Memory, layout: ElementLayout, index: u64) -> Option<u64> {
        let word = self.leaf_word(memory, index / layout.leaf_elements)?;
        match word.load(Acquire) {
            0 => None,
            leaf => Some(leaf + index % layout.leaf_elements * layout.element_bytes),
        }
    }

    /// The offset of an element. Its leaf is allocated, all zeros, if it does not exist. Calls must
    /// not overlap. Returns `None` if there is no memory.
    pub(super) fn ensure(
        &self,
        memory: Memory,
        layout: ElementLayout,
        index: u64,
        mut allocate: impl FnMut(u64) -> Option<u64>,
    ) -> Option<u64> {
        let mut zeroed = |bytes: u64| {
            let offset = allocate(bytes)?;
            // SAFETY: a fresh payload of that many bytes that is not published yet.
            unsafe { memory.bytes(offset).write_bytes(0, bytes as usize) };
            Some(offset)
        };
        let leaf = index / layout.leaf_elements;
        let (top, _) = place_of(leaf);
        let tops = self.tops.get(top)?;
        if tops.load(Relaxed) == 0 {
            tops.store(zeroed(top_bytes(top))?, Release);
        }
        let word = self.leaf_word(memory, leaf)?;
        if word.load(Relaxed) == 0 {
            word.store(
                zeroed(layout.leaf_elements * layout.element_bytes)?,
                Release,
            );
        }
        self.get(memory, layout, index)
    }

    /// Empties the table: every element is passed to `visit`, then its leaf to `free`, and finally
    /// the tops. The table has no users meanwhile.
    pub(super) fn release(
        &self,
        memory: Memory,
        layout: ElementLayout,
        mut visit: impl FnMut(u64),
        mut free: impl FnMut(u64),
    ) {
        for (top, tops) in self.tops.iter().enumerate() {
            let offset = tops.swap(0, Relaxed);
            if offset == 0 {
                continue;
            }
            for word in (offset..offset + top_bytes(top)).step_by(size_of::<u64>()) {
                // SAFETY: a top consists of atomics; it is freed below.
                let leaf = unsafe { memory.head::<AtomicU64>(word) }.load(Relaxed);
                if leaf != 0 {
                    (0..layout.leaf_elements)
                        .for_each(|element| visit(leaf + element * layout.element_bytes));
                    free(leaf);
                }
            }
            free(offset);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tops_tile_the_leaves() {
        let mut expected = (0, 0);
        for leaf in 0..100_000 {
            assert_eq!(place_of(leaf), expected);
            expected.1 += 1;
            if expected.1 == FIRST_TOP_LEAVES << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
    }
}
