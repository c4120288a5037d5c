//! Items of any length in one heap, with the offset and the length of each.

use crate::buffer::Buffer;
use crate::kind::item_align;

/// A list of items.
///
/// Invariants: `slots` and `lengths` have the same length; every slot and length names bytes within
/// `heap`; every slot is aligned as [`item_align`] requires. Several entries may share bytes.
pub(crate) struct Items {
    packed: bool,
    slots: Buffer<u64>,
    lengths: Buffer<u32>,
    heap: Buffer<u8>,
}

impl Items {
    pub(crate) fn new(packed: bool) -> Self {
        Items {
            packed,
            slots: Buffer::new(),
            lengths: Buffer::new(),
            heap: Buffer::new(),
        }
    }

    /// Makes room for more entries, but not for their bytes.
    pub(crate) fn reserve(&mut self, count: usize) {
        self.slots.reserve(count);
        self.lengths.reserve(count);
    }

    #[inline]
    pub(crate) fn is_packed(&self) -> bool {
        self.packed
    }

    /// Bytes of memory in use.
    pub(crate) fn bytes(&self) -> usize {
        self.slots.byte_len() + self.lengths.byte_len() + self.heap.byte_len()
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    #[inline]
    pub(crate) fn item(&self, index: usize) -> &[u8] {
        let slot = self.slots[index] as usize;
        &self.heap[slot..slot + self.lengths[index] as usize]
    }

    #[inline]
    pub(crate) fn length(&self, index: usize) -> usize {
        self.lengths[index] as usize
    }

    #[inline]
    pub(crate) fn slot(&self, index: usize) -> u64 {
        self.slots[index]
    }

    #[inline]
    pub(crate) fn slots(&self) -> &Buffer<u64> {
        &self.slots
    }

    #[inline]
    pub(crate) fn heap(&self) -> &Buffer<u8> {
        &self.heap
    }

    /// Appends an item, whose length the caller has checked against the limit.
    #[inline]
    pub(crate) fn push(&mut self, item: &[u8]) {
        let align = item_align(self.packed, item.len());
        // Most items are short and packed.
        if align > 1 {
            let padding = self.heap.len().next_multiple_of(align) - self.heap.len();
            self.heap.extend_zeros(padding);
        }
        self.slots.push(self.heap.len() as u64);
        self.lengths.push(item.len() as u32);
        self.heap.extend_from_slice(item);
    }

    /// Appends items that follow each other in `bytes`. They are short and packed, so that they need no alignment. An
    /// entry without bytes stands for no item.
    pub(crate) fn extend_short(&mut self, lengths: &[u64], bytes: &[u8]) {
        debug_assert!(self.packed);
        let (first, mut next) = (self.len(), self.heap.len() as u64);
        self.push_empty(lengths.len());
        let slots = self.slots[first..].iter_mut();
        let entries = slots.zip(&mut self.lengths[first..]).zip(lengths);
        for ((slot, own), &length) in entries {
            *own = length as u32;
            *slot = if length == 0 { 0 } else { next };
            next += length;
        }
        self.heap.extend_from_slice(bytes);
    }

    /// Appends entries that stand for no item, as NULLs do.
    pub(crate) fn push_empty(&mut self, count: usize) {
        self.slots.extend_zeros(count);
        self.lengths.extend_zeros(count);
    }

    /// Appends `count` entries that share the bytes of entry `index`.
    #[inline]
    pub(crate) fn push_shared(&mut self, index: usize, count: usize) {
        let (slot, length) = (self.slots[index], self.lengths[index]);
        self.slots.extend_repeated(slot, count);
        self.lengths.extend_repeated(length, count);
    }

    /// The entries that `indices` name, over the same heap.
    pub(crate) fn select(self, indices: impl ExactSizeIterator<Item = Option<usize>>) -> Self {
        let (mut slots, mut lengths) = (Buffer::new(), Buffer::new());
        slots.reserve(indices.len());
        lengths.reserve(indices.len());
        for index in indices {
            slots.push(index.map_or(0, |index| self.slots[index]));
            lengths.push(index.map_or(0, |index| self.lengths[index]));
        }
        Items {
            slots,
            lengths,
            ..self
        }
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.slots.truncate(len);
        self.lengths.truncate(len);
        if len == 0 {
            self.heap.clear();
        }
    }

    pub(crate) fn byte_len(&self) -> usize {
        self.slots.byte_len() + self.lengths.byte_len() + self.heap.byte_len()
    }
}
