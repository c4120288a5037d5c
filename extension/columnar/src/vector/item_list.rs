//! A list of items that is made once, as the dictionary of lanes of codes.

use crate::dictionary::next_instance;
use crate::items::Items;
use crate::lane::{DictionaryView, LaneData};

/// Items, each of which has its place in the list as its code. Items that are equal as bytes appear
/// once.
pub struct ItemList {
    items: Items,
    instance: u64,
}

impl ItemList {
    /// A list of packed items, headers included.
    pub fn new<'a>(items: impl Iterator<Item = &'a [u8]>) -> ItemList {
        let mut list = Items::new(true);
        for item in items {
            list.push(item);
        }
        ItemList {
            items: list,
            instance: next_instance(),
        }
    }

    /// The dictionary, as a frame has it.
    pub fn view(&self) -> DictionaryView {
        DictionaryView {
            instance: self.instance,
            parent: 0,
            inherited: 0,
            items: self.items.len() as u32,
        }
    }

    /// The lane of these codes, each of which is a code of the list.
    pub fn lane(&self, codes: *const u32) -> LaneData {
        LaneData::Codes {
            codes,
            slots: self.items.slots().as_ptr(),
            heap: self.items.heap().as_ptr(),
        }
    }
}
