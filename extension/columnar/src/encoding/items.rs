//! The items of a lane's dictionary, laid out for scans.

use crate::items::Items;

/// Items in the order of their codes.
pub struct ItemList {
    items: Items,
}

impl ItemList {
    pub(super) fn new(items: Items) -> Self {
        ItemList { items }
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item of a code below [`len`](Self::len).
    ///
    /// # Panics
    /// If there is no such code.
    #[inline]
    pub fn item(&self, code: usize) -> &[u8] {
        self.items.item(code)
    }

    /// All items.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|code| self.item(code))
    }

    /// Where each item lies in the [heap](Self::heap), as [`LaneData::Codes`](crate::LaneData::Codes) wants it.
    #[inline]
    pub fn slots(&self) -> &[u64] {
        self.items.slots()
    }

    /// The items' bytes, each aligned as [`item_align`](crate::item_align) asks; the heap itself begins at a multiple of 64 bytes.
    #[inline]
    pub fn heap(&self) -> &[u8] {
        self.items.heap()
    }
}
