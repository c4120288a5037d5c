//! The items of a lane's dictionary, laid out for scans.

use super::lane::EncodedLane;
use crate::items::Items;

/// Items in the order of their codes.
pub struct ItemList {
    items: Items,
    /// The section from which the items were read.
    section: Vec<u8>,
    is_marked: bool,
}

impl ItemList {
    pub(super) fn new(items: Items, section: &[u8], is_marked: bool) -> Self {
        ItemList {
            items,
            section: section.to_vec(),
            is_marked,
        }
    }

    /// Whether the items of a lane's dictionary are these, in this order. Only the bytes of the
    /// dictionary are compared.
    pub fn is_of(&self, lane: &EncodedLane<'_>) -> bool {
        lane.dictionary_section().is_some_and(|section| {
            self.len() == lane.header.items as usize
                && self.is_marked == lane.header.is_marked
                && lane.kind.is_packed() == self.items.is_packed()
                && self.section == section
        })
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.items.bytes() + self.section.capacity()
    }

    /// The number of items.
    #[inline]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are no items.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item of a code.
    ///
    /// # Panics
    /// If the code is not below [`len`](Self::len).
    #[inline]
    pub fn item(&self, code: usize) -> &[u8] {
        self.items.item(code)
    }

    /// All items.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|code| self.item(code))
    }

    /// The offset of each item in the [heap](Self::heap), as
    /// [`LaneData::Codes`](crate::LaneData::Codes) requires it.
    #[inline]
    pub fn slots(&self) -> &[u64] {
        self.items.slots()
    }

    /// The bytes of the items, each aligned as [`item_align`](crate::item_align) requires. The heap
    /// itself begins at a multiple of 64 bytes.
    #[inline]
    pub fn heap(&self) -> &[u8] {
        self.items.heap()
    }
}
